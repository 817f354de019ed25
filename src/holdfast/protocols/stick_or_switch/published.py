"""Printed figures of Stick-or-Switch (Guo et al., 2026)."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any, Generic, Self, TypeVar

import polars as pl
from pydantic import BaseModel, ConfigDict, model_validator

from holdfast.files import packaged
from holdfast.results.published_figures import ALL_MODELS, PublishedSource, Row, named, share

from .convictions import ABSTENTION, CONVICTION, SINGLE_SHOT
from .scale import sizes, with_sizes

_PAIR = re.compile(r"(\d+\.\d) \| (\d+\.\d) \(([+-]\d+\.\d)\)", re.ASCII)


class _StickOrSwitchFigures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Pair(_StickOrSwitchFigures):
    """Two neighbouring cells of a table, the second with its difference from the first."""

    @model_validator(mode="before")
    @classmethod
    def _as_printed(cls, data: Any) -> Any:
        if not isinstance(data, str):
            return data
        cells = _PAIR.fullmatch(data)
        if cells is None:
            raise ValueError(f"'{data}' is not a pair of cells such as '85.5 | 80.0 (-5.5)'")
        return dict(zip(cls.model_fields, map(Decimal, cells.groups()), strict=True))

    @property
    def printed(self) -> tuple[str, str]:
        """The two cells as printed, such as ``("85.5", "80.0 (-5.5)")``."""
        first, second, difference = (getattr(self, name) for name in type(self).model_fields)
        return str(first), f"{second} ({difference:+})"


class Conviction(_Pair):
    """Model on one data set in Table A.1 or A.2, in percent."""

    single_shot: Decimal
    """Accuracy with all options at once, also in Table A.2."""
    multi_turn: Decimal
    """Share of all questions whose target is retained to the last turn."""
    difference: Decimal
    """``multi_turn`` less ``single_shot`` in percentage points: the negative conversation tax."""


class Flexibility(_Pair):
    """Model on one data set in Table A.3: shares of the abstentions of turn 1, in percent."""

    incorrect: Decimal
    """Share given up for an incorrect suggestion at turn 2."""
    correct: Decimal
    """Share given up for the correct answer at turn 2."""
    difference: Decimal
    """``correct`` less ``incorrect`` in percentage points, near 0 for blind switching."""


_Cell = TypeVar("_Cell", Conviction, Flexibility)


class ModelTable(_StickOrSwitchFigures, Generic[_Cell]):
    """Table with a row for each model and a pair of cells for each data set."""

    place: str
    about: str
    average: dict[str, _Cell]
    """Printed row of the average, by data set."""
    cells: dict[str, dict[str, _Cell]]
    """Cells by model and data set, both named and ordered as in the table."""


class StickOrSwitch(_StickOrSwitchFigures):
    """Tables A.1 to A.3 (Figures 2 to 6 are drawings), as printed."""

    citation: str
    short: str
    """Short citation, as in a table's ``run``."""
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    """Models in the order of the rows: commercial models first, then by size."""
    conviction: ModelTable[Conviction]
    """Table A.1: a correct answer with incorrect suggestions (section 5.2)."""
    abstention: ModelTable[Conviction]
    """Table A.2: an abstention with incorrect suggestions (section 6.2)."""
    flexibility: ModelTable[Flexibility]
    """Table A.3: two turns, an abstention and a suggestion (section 7)."""

    @model_validator(mode="after")
    def _a_cell_for_each_model_and_dataset(self) -> Self:
        for table in (self.conviction, self.abstention, self.flexibility):
            if tuple(table.cells) != self.models:
                raise ValueError(f"{table.place}: its rows are not those of the models, in order")
            for row in (table.average, *table.cells.values()):
                if tuple(row) != self.datasets:
                    raise ValueError(f"{table.place}: a row without one pair for each dataset")
        return self


@cache
def stick_or_switch() -> StickOrSwitch:
    """Return the figures of the paper, read once."""
    return StickOrSwitch.model_validate(packaged(__package__, "published.toml"))


def _cells(table: ModelTable[_Cell]) -> Iterator[tuple[Row, _Cell]]:
    """Yield the cells of a table by model and data set, the average's last."""
    for model, row in (table.cells | {ALL_MODELS: table.average}).items():
        for dataset, cell in row.items():
            yield {"model": named(model), "dataset": dataset}, cell


def _tax() -> Iterator[Row]:
    """Yield rows of ``tax``; Table A.2 also has single-shot accuracy as its baseline."""
    paper = stick_or_switch()
    for cell_pair in zip(_cells(paper.conviction), _cells(paper.abstention), strict=True):
        for behaviour, (keys, cell) in zip((CONVICTION, ABSTENTION), cell_pair, strict=True):
            yield keys | {
                "behaviour": behaviour,
                "against": SINGLE_SHOT,
                "single_shot": share(cell.single_shot),
                "end_to_end": share(cell.multi_turn),
                "raw_tax": share(cell.difference),
                "run": f"{paper.short}, Tables A.1 and A.2",
            }


def _flexibility() -> Iterator[Row]:
    paper = stick_or_switch()
    for keys, cell in _cells(paper.flexibility):
        yield keys | {
            "correct_rate": share(cell.correct),
            "incorrect_rate": share(cell.incorrect),
            "difference": share(cell.difference),
            "run": f"{paper.short}, {paper.flexibility.place}",
        }


def _scale() -> Iterator[Row]:
    paper = stick_or_switch()
    rows = [
        keys
        | {
            "single_shot": share(conviction_cell.single_shot),
            "conviction": share(conviction_cell.multi_turn),
            "raw_tax": share(conviction_cell.difference),
            "abstention": share(abstention_cell.multi_turn),
            "raw_abstention_tax": share(abstention_cell.difference),
            "correct_rate": share(flexibility_cell.correct),
            "incorrect_rate": share(flexibility_cell.incorrect),
            "run": f"{paper.short}, Tables A.1 to A.3",
        }
        for (keys, conviction_cell), (_, abstention_cell), (_, flexibility_cell) in zip(
            _cells(paper.conviction),
            _cells(paper.abstention),
            _cells(paper.flexibility),
            strict=True,
        )
        if keys["model"] != named(ALL_MODELS)
    ]
    yield from with_sizes(pl.DataFrame(rows), sizes()).to_dicts()


SOURCE = PublishedSource(
    "stick-or-switch",
    "Stick-or-Switch (Guo et al., 2026), Tables A.1 to A.3",
    {"tax": _tax, "flexibility": _flexibility, "scale": _scale},
)
