"""The printed figures of the source papers as rows of our own tables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from holdfast.errors import InputError, did_you_mean
from holdfast.protocols.followup.published import MedQAFollowup, medqa_followup
from holdfast.protocols.stick_or_switch.published import stick_or_switch

from .convictions import ABSTENTION, CONVICTION, SINGLE_SHOT
from .scale import sizes, with_sizes
from .turns import SCHEMA

Row = dict[str, Any]

_AXES = {"rethink": "indirect", "context": "indirect", "inc_letter": "direct",
         "wrong_op": "indirect"}  # fmt: skip
_ALL = "all models"
_OF_A_SUBSET = "wrong_op"
"""Run on the subset of questions that KGGD published; its size is not printed."""


@dataclass(frozen=True)
class Source:
    """Where a set of published figures comes from.

    Attributes:
        citation: paper and tables, for a reader.
        rows: rows by table; a table that is not named has no printed figure.
    """

    citation: str
    rows: Mapping[str, Callable[[], Iterator[Row]]]


def published(table: str, source: str = "paper") -> pl.DataFrame:
    """Published figures in the columns of one of our tables, to stand beside measured ones.

    Figures are those printed, never recomputed: accuracies as shares, changes as fractions, and
    null where the paper prints nothing, so intervals and counts of right answers always. ``n`` is
    the number of questions in MedQA, null for averages and for the wrong options, which were put
    to an unstated part of them, and in Stick-or-Switch. Its Table A.2 is against single-shot
    accuracy; its averages are rows of ``all models``. ``model`` ends in ``[published]``; ``run``
    names paper and table.

    Args:
        table: name of a table, key of ``TABLES``.
        source: key of ``PUBLISHED``.

    Returns:
        Rows with the columns and types of ``table``; none where the paper prints no such figure.

    Raises:
        InputError: there is no such table or source.
    """
    from . import TABLES  # the tables are gathered in the room's face, which knows this module

    if table not in TABLES:
        raise InputError(f"unknown table '{table}'", remedy=did_you_mean(table, TABLES))
    if source not in PUBLISHED:
        raise InputError(
            f"unknown published source '{source}'", remedy=did_you_mean(source, PUBLISHED)
        )
    schema = TABLES[table](pl.DataFrame(schema=SCHEMA)).schema
    rows = PUBLISHED[source].rows.get(table, lambda: iter(()))()
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def beside_published(rows: pl.DataFrame, table: str, source: str) -> tuple[pl.DataFrame, str]:
    """A table with the published figures below its own rows, and what a reader must know of them.

    Of a table of strata only the reading that the paper prints is put beside, which is the change
    relative to the overall first answers.

    Args:
        rows: rows of the table.
        table: its name.
        source: key of ``PUBLISHED``.

    Raises:
        InputError: there is no such source.
    """
    printed = published(table, source)
    if printed.is_empty():
        return rows, f"{PUBLISHED[source].citation}: no figures for the table '{table}'"
    both = pl.concat([rows, printed], how="vertical_relaxed")
    if "overall" in printed.get_column("relative_to", default=pl.Series()).to_list() and (
        rows["relative_to"].eq("stratum").any()
    ):
        return both, (
            "The published changes are relative to the overall first answers; "
            "use --relative-to overall for yours"
        )
    return both, ""


def _accuracy(source: str) -> Iterator[Row]:
    """Rows of ``accuracy`` and of ``single-turn`` from a table of accuracies."""
    paper = medqa_followup()
    table = paper.accuracy[source]
    run = f"{paper.short}, {table.place}"
    for column, model in enumerate(paper.models):
        baseline = _share(table.baseline[column])
        common: Row = {"model": _named(model), "dataset": paper.dataset, "run": run}
        common |= {"path": "", "technique": "", "baseline": baseline}
        protocol = ""
        for family in table.families:
            if family.arm != protocol:
                protocol = family.arm
                yield common | {
                    "protocol": protocol, "arm": "baseline", "family": "", "axis": "", "depth": "",
                    "n": paper.questions, "accuracy": baseline, "mitigation": "",
                }  # fmt: skip
            rows = [("", family.average), *family.techniques.items()]
            # each family's average stands below its techniques, as in the paper
            for technique, printed in [*rows[1:], rows[0]]:
                accuracy, change = printed[column].strip(")").split(" (")
                known = technique and family.family != _OF_A_SUBSET
                yield common | {
                    "protocol": protocol,
                    "arm": family.arm if technique else "family-average",
                    "path": technique,
                    "technique": technique,
                    "family": family.family,
                    "axis": _AXES[family.family],
                    "depth": "deep" if family.arm == "followup" else "shallow",
                    "n": paper.questions if known else None,
                    "accuracy": _share(Decimal(accuracy)),
                    "relative_change": _change(change),
                    "mitigation": "",
                }


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
    for printed in paper.systems:
        yield _of_family(paper, printed.model, printed.family, printed.change, printed.place) | {
            "system": printed.system
        }


def _of_family(paper: MedQAFollowup, model: str, family: str, change: str, place: str) -> Row:
    return {
        "model": _named(model),
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
        "model": _named(_ALL),
        "dataset": paper.dataset,
        "sub_additive_share": _change(paper.sub_additive.share),
        "run": f"{paper.short}, {paper.sub_additive.place}",
    }


def _tax() -> Iterator[Row]:
    paper = stick_or_switch()
    run = f"{paper.short}, Tables A.1 and A.2"
    for model in (*paper.models, _ALL):
        for dataset in paper.datasets:
            for behaviour, table in (
                (CONVICTION, paper.conviction),
                (ABSTENTION, paper.abstention),
            ):
                printed = table.average if model == _ALL else table.cells[model]
                yield {
                    "model": _named(model),
                    "dataset": dataset,
                    "behaviour": behaviour,
                    "against": SINGLE_SHOT,
                    "single_shot": _share(printed[dataset].single_shot),
                    "end_to_end": _share(printed[dataset].multi_turn),
                    "tax": _share(printed[dataset].difference),
                    "run": run,
                }


def _flexibility() -> Iterator[Row]:
    paper = stick_or_switch()
    table = paper.flexibility
    for model, printed in (*table.cells.items(), (_ALL, table.average)):
        for dataset, cell in printed.items():
            yield {
                "model": _named(model),
                "dataset": dataset,
                "correct_rate": _share(cell.correct),
                "incorrect_rate": _share(cell.incorrect),
                "difference": _share(cell.difference),
                "run": f"{paper.short}, {table.place}",
            }


def _scale() -> Iterator[Row]:
    paper = stick_or_switch()
    rows = [
        {
            "model": _named(model),
            "dataset": dataset,
            "single_shot": _share(held.single_shot),
            "conviction": _share(held.multi_turn),
            "tax": _share(held.difference),
            "abstention": _share(abstained.multi_turn),
            "abstention_tax": _share(abstained.difference),
            "correct_rate": _share(switched.correct),
            "incorrect_rate": _share(switched.incorrect),
            "run": f"{paper.short}, Tables A.1 to A.3",
        }
        for model in paper.models
        for dataset in paper.datasets
        for held, abstained, switched in [
            (
                paper.conviction.cells[model][dataset],
                paper.abstention.cells[model][dataset],
                paper.flexibility.cells[model][dataset],
            )
        ]
    ]
    yield from with_sizes(pl.DataFrame(rows), sizes()).to_dicts()


def _named(model: str) -> str:
    return f"{model} [published]"


def _share(percent: Decimal) -> float:
    return float(percent / 100)


def _change(printed: str) -> float:
    return float(Decimal(printed.rstrip("%")) / 100)


PUBLISHED: Mapping[str, Source] = {
    "paper": Source(
        "MedQA-Followup (Manczak et al., 2025), Tables 2 and 3, sections 4.4 and D.2; system "
        "prompt for the general-purpose models",
        {
            "accuracy": lambda: _accuracy("paper"),
            "single-turn": lambda: _single_turn("paper"),
            "steps": _steps,
            "systems": _systems,
            "compounding-summary": _compounding_summary,
        },
    ),
    "paper-no-system": Source(
        "MedQA-Followup (Manczak et al., 2025), Table 4; no system prompt",
        {
            "accuracy": lambda: _accuracy("paper-no-system"),
            "single-turn": lambda: _single_turn("paper-no-system"),
        },
    ),
    "stick-or-switch": Source(
        "Stick-or-Switch (Guo et al., 2026), Tables A.1 to A.3",
        {"tax": _tax, "flexibility": _flexibility, "scale": _scale},
    ),
}
"""Sets of published figures by name."""
