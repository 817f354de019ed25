"""The printed figures of MedQA-Followup (Manczak et al., 2025) and of published question sets."""

import tomllib
from collections.abc import Iterator
from decimal import Decimal
from functools import cache, partial
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from holdfast.files import packaged
from holdfast.results.published_figures import (
    ALL_MODELS,
    OTHER_WORDING,
    PublishedSource,
    Row,
    named,
    share,
)

PrintedShare = Annotated[str, StringConstraints(pattern=r"^\d+\.\d \([+-]\d+\.\d%\)$")]
"""An accuracy with its relative change as a table prints it: ``54.0 (-40.7%)``."""

PrintedChange = Annotated[str, StringConstraints(pattern=r"^[+-]\d+\.\d%$")]
"""A relative change as a table prints it: ``-8.9%``."""


class _FollowupFigures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Printed(_FollowupFigures):
    place: str
    about: str


class Family(_FollowupFigures):
    """The rows of one family in a table of accuracies; columns in the order of the models."""

    arm: Literal["single-turn", "followup"]
    family: str
    techniques: dict[str, tuple[PrintedShare, ...]]
    """Printed row by technique, ids as in the catalogues."""
    average: tuple[PrintedShare, ...]
    """The printed row of the average."""


class AccuracyTable(_Printed):
    """A table of accuracies by technique."""

    baseline: tuple[Decimal, ...]
    """Accuracy of the first answers in percent, by model."""
    families: tuple[Family, ...]


class StepTable(_Printed):
    """Relative changes by family and USMLE step."""

    steps: tuple[str, ...]
    """Names of the steps as the turns table has them."""
    changes: dict[str, tuple[tuple[PrintedChange, ...], ...]]
    """By family: for each model, one change for each step."""


class SubAdditive(_Printed):
    """The share of chains with less effect than their parts together."""

    share: Annotated[str, StringConstraints(pattern=r"^\d+%$")]


class SystemChange(_Printed):
    """The relative change of one model in one medical system."""

    model: str
    family: str
    system: str
    change: PrintedChange


class MedQAFollowup(_FollowupFigures):
    """Every figure that the paper prints as a number (figures 2 to 9 are drawings)."""

    citation: str
    short: str
    """The citation where room is short, as in a table's ``run``."""
    dataset: str
    questions: int
    models: tuple[str, ...]
    accuracy: dict[str, AccuracyTable]
    """``paper``: Table 2; ``paper-no-system``: Table 4."""
    steps: StepTable
    sub_additive: SubAdditive
    systems: tuple[SystemChange, ...]

    @model_validator(mode="after")
    def _one_figure_a_model(self) -> Self:
        for table in self.accuracy.values():
            rows = [row for f in table.families for row in (*f.techniques.values(), f.average)]
            if any(len(row) != len(self.models) for row in (table.baseline, *rows)):
                raise ValueError(f"{table.place}: a row without one figure for each model")
        for name, by_model in self.steps.changes.items():
            if len(by_model) != len(self.models) or any(
                len(row) != len(self.steps.steps) for row in by_model
            ):
                raise ValueError(f"{self.steps.place}: {name} lacks a model or a step")
        return self

    def accuracies(self, source: str, model: str) -> tuple[Decimal, dict[str, Decimal]]:
        """One column of a table of accuracies."""
        column, table = self.models.index(model), self.accuracy[source]
        by_technique = {
            technique: Decimal(row[column].split()[0])
            for family in table.families
            for technique, row in family.techniques.items()
        }
        return table.baseline[column], by_technique


@cache
def medqa_followup() -> MedQAFollowup:
    """The figures of the paper, read once."""
    text = files(__package__).joinpath("published.toml").read_text("utf-8")
    return MedQAFollowup.model_validate(tomllib.loads(text, parse_float=Decimal))


_AXES = {"rethink": "indirect", "context": "indirect", "inc_letter": "direct",
         "wrong_op": "indirect"}  # fmt: skip
_OF_A_SUBSET = "wrong_op"
"""Run on the subset of questions that KGGD published; its size is not printed."""


def _accuracy(source: str) -> Iterator[Row]:
    """Rows of ``accuracy`` and of ``single-turn`` from a table of accuracies.

    ``n`` is null for averages and for the wrong options, which were put to an unstated part.
    """
    paper = medqa_followup()
    table = paper.accuracy[source]
    run = f"{paper.short}, {table.place}"
    for column, model in enumerate(paper.models):
        baseline = share(table.baseline[column])
        common: Row = {"model": named(model), "dataset": paper.dataset, "run": run}
        common |= {"path": "", "technique": "", "baseline": baseline}
        protocol = ""
        for family in table.families:
            if family.arm != protocol:
                protocol = family.arm
                run_label = f"{run}, {OTHER_WORDING}" if protocol == "single-turn" else run
                common |= {"run": run_label}
                yield common | {
                    "protocol": protocol, "arm": "baseline", "family": "", "axis": "", "depth": "",
                    "n": paper.questions, "accuracy": baseline, "mitigation": "",
                }  # fmt: skip
            rows = [("", family.average), *family.techniques.items()]
            # each family's average stands below its techniques, as in the paper
            for technique, cell in [*rows[1:], rows[0]]:
                accuracy, change = cell[column].strip(")").split(" (")
                has_figure = technique and family.family != _OF_A_SUBSET
                yield common | {
                    "protocol": protocol,
                    "arm": family.arm if technique else "family-average",
                    "path": technique,
                    "technique": technique,
                    "family": family.family,
                    "axis": _AXES[family.family],
                    "depth": "deep" if family.arm == "followup" else "shallow",
                    "n": paper.questions if has_figure else None,
                    "accuracy": share(Decimal(accuracy)),
                    "relative_change": _change(change),
                    "mitigation": "",
                }


def _families(source: str) -> Iterator[Row]:
    return (row for row in _accuracy(source) if row["arm"] == "family-average")


def _single_turn(source: str) -> Iterator[Row]:
    return (row for row in _accuracy(source) if row["protocol"] == "single-turn")


def _steps() -> Iterator[Row]:
    paper = medqa_followup()
    for column, model in enumerate(paper.models):
        for family, by_model in paper.steps.changes.items():
            for step, change in zip(paper.steps.steps, by_model[column], strict=True):
                yield _of_family(paper, model, family, change, paper.steps.place) | {
                    "step": step,
                    "relative_to": "overall",
                }


def _systems() -> Iterator[Row]:
    paper = medqa_followup()
    for cell in paper.systems:
        yield _of_family(paper, cell.model, cell.family, cell.change, cell.place) | {
            "system": cell.system
        }


def _of_family(paper: MedQAFollowup, model: str, family: str, change: str, place: str) -> Row:
    return {
        "model": named(model),
        "dataset": paper.dataset,
        "protocol": "followup",
        "arm": "family-average",
        "path": "",
        "technique": "",
        "family": family,
        "axis": _AXES[family],
        "depth": "deep",
        "relative_change": _change(change),
        "run": f"{paper.short}, {place}",
    }


def _compounding_summary() -> Iterator[Row]:
    paper = medqa_followup()
    yield {
        "model": named(ALL_MODELS),
        "dataset": paper.dataset,
        "smaller_drop_share": _change(paper.sub_additive.share),
        "run": f"{paper.short}, {paper.sub_additive.place}",
    }


def _change(text: str) -> float:
    return float(Decimal(text.rstrip("%")) / 100)


PAPER = PublishedSource(
    "paper",
    "MedQA-Followup (Manczak et al., 2025), Tables 2 and 3, sections 4.4 and D.2; system "
    "prompt for the general-purpose models",
    {
        "accuracy": lambda: _accuracy("paper"),
        "accuracy by family": lambda: _families("paper"),
        "single-turn": lambda: _single_turn("paper"),
        "accuracy by step": _steps,
        "accuracy by system": _systems,
        "chains by model": _compounding_summary,
    },
)

NO_SYSTEM = PublishedSource(
    "paper-no-system",
    "MedQA-Followup (Manczak et al., 2025), Table 4; no system prompt",
    {
        "accuracy": lambda: _accuracy("paper-no-system"),
        "accuracy by family": lambda: _families("paper-no-system"),
        "single-turn": lambda: _single_turn("paper-no-system"),
    },
)


_PERCENT = ("accuracy", "baseline", "flip_rate")


def _rows(name: str, table: str) -> Iterator[Row]:
    """Rows of a table; an average over pressures or subjects is a row of its own path."""
    figures = packaged(__package__, "published_sets.toml")[name]
    common: Row = {
        "dataset": figures["dataset"],
        "run": figures["run"],
        "path": "",
        "technique": "",
    }
    cells: list[dict[str, Any]] = figures.get("accuracy" if table == "single-turn" else table, [])
    if table == "flips":
        cells = cells + [
            {"model": model, "path": path, "technique": path, "flip_rate": rate}
            for model, rates in figures.get("models", {}).items()
            for path, rate in zip(figures["flip_rates"], rates, strict=True)
        ]
    for row in cells:
        shares = {key: float(value) / 100 for key, value in row.items() if key in _PERCENT}
        yield common | row | shares | {"model": named(row["model"])}


def _source(name: str, *tables: str) -> PublishedSource:
    figures = packaged(__package__, "published_sets.toml")[name]
    return PublishedSource(
        name, figures["citation"], {table: partial(_rows, name, table) for table in tables}
    )


MEDMISBENCH = _source("medmisbench", "accuracy", "single-turn", "flips")
WHOFLIPS = _source("whoflips", "flips")
SYCOBENCH = _source("sycobench-600", "flips")
