"""Accuracy by stratum of the questions, and by the length of a context."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import polars as pl

from holdfast.errors import unknown

from .accuracy import (
    ACCURACY_AXIS,
    ACCURACY_SAYS,
    RANKS,
    accuracy_notes,
    accuracy_text,
    as_averages,
    conversations_of,
    rated,
    with_change,
    with_effect,
    with_ranks,
)
from .changes import CHANGE
from .charts.chart import Chart, counted, known, label
from .charts.dots import Dots, Measure, Of, Series
from .charts.lines import Axis, Lines
from .controls import EFFECT, FEWEST
from .declaration import Section, Table
from .first_answers import BASELINE, FAMILY_AVERAGE, STUDY, with_first
from .grid import (
    Cell,
    Grid,
    HeatmapCell,
    Line,
    Row,
    RowBlock,
    Studies,
    mark_of,
    matrix,
    n_notes,
    net_notes,
    one_line,
    percent,
    studies,
    unread_notes,
)
from .inference import looked_up

Stratum = Literal["step", "system", "specialty", "subject"]
RelativeTo = Literal["stratum", "overall"]


def strata_columns(by: Stratum) -> tuple[str, ...]:
    """Return the columns of ``strata``, with the column named after the stratum."""
    return (
        *STUDY[1:], "arm", "path", "technique", "family", by, "n", "questions", "correct",
        "accuracy", "low", "high", "baseline", *CHANGE, "relative_to", "unparsed", "refused",
        "non_response", *EFFECT, "run",
    )  # fmt: skip


def strata(turns: pl.DataFrame, by: Stratum, relative_to: RelativeTo = "stratum") -> pl.DataFrame:
    """Compute the rows of ``accuracy`` within each stratum.

    Questions without a stratum count in no row, but in the overall accuracy of first answers.
    ``attributable`` is as in ``accuracy`` for both baselines.

    Args:
        turns: a turns table.
        by: the stratum.
        relative_to: meaning of ``baseline``. ``stratum``: accuracy of the first answers to the
            row's questions. ``overall``: accuracy of the model's first answers to all questions
            (MedQA-Followup, appendix D.3 and Table 3).

    Returns:
        One row for each study, path and stratum, and one for each family average, sorted by family,
        then by stratum. Steps are in natural order. Other strata are in order of degradation, least
        first, by the family's mean relative change over the models (MedQA-Followup, Figures 7-9),
        or in natural order without this mean.

    Raises:
        InputError: ``relative_to`` has another value.
    """
    if relative_to not in get_args(RelativeTo):
        raise unknown("baseline", relative_to, get_args(RelativeTo), "relative_to")
    answered_turns = with_first(turns)
    turns_with_label = answered_turns.filter(pl.col(by).is_not_null())
    rows, firsts = rated(turns_with_label, (by,)), None
    if relative_to == "overall":
        firsts = answered_turns.filter(pl.col("arm") == BASELINE)
        overall = firsts.group_by(STUDY).agg(baseline=pl.col("correct").mean())
        rows = looked_up(rows.drop("baseline"), overall, STUDY)
        rows = rows.with_columns(compared="accuracy")
    rows = with_change(rows, turns_with_label, (by,), firsts).with_columns(
        relative_to=pl.lit(relative_to)
    )
    rows = with_effect(rows, turns, (by,))
    rows = looked_up(rows, _questions(turns_with_label, by), [*STUDY, by, *_ROW], nulls_equal=True)
    return _order_rows(rows, by).select(strata_columns(by))


_ROW = ("arm", "path", "technique", "family")


def _questions(turns_with_label: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the number of questions behind each row."""
    average = as_averages(turns_with_label)
    return pl.concat([
        rows.group_by(*STUDY, by, *_ROW).agg(questions=pl.col("question").n_unique().cast(pl.Int64))
        for rows in (turns_with_label, average)
    ])  # fmt: skip


def _order_rows(rows: pl.DataFrame, by: Stratum) -> pl.DataFrame:
    block = ["protocol", "family"]
    places = {name: place for place, name in enumerate(sorted(rows[by].unique(), key=_natural))}
    rows = rows.with_row_index("_row").with_columns(
        _protocol=pl.col("_row").min().over("protocol"),
        _family=pl.col("_row").min().over(block),
        _place=pl.col(by).replace_strict(places, return_dtype=pl.Int64),
    )
    # averages of mitigations have a path, the family's plain average has none
    averages = rows.filter(pl.col("arm") == FAMILY_AVERAGE, pl.col("path") == "")
    mean_loss = -pl.col("relative_change").sort().mean()
    degradation = averages.group_by(*block, by).agg(_degradation=mean_loss)
    rows = looked_up(rows, degradation, [*block, by])
    natural = ["_place", "_row"]
    within = natural if by == "step" else ["_degradation", *natural]
    return rows.sort("_protocol", "_family", *within, nulls_last=True)


def _natural(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts numbers within names by value."""
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(digits) if digits else -1) for text, digits in parts]


_FIRST = "Baseline"
_UNKNOWN = "–"
_CELLS = (
    "Cells: relative change of the family's average accuracy in percent. Baseline: accuracy of "
    "the first answers in percent."
)


def _steps_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Lay out steps: a table by protocol, a row by study, a column by family and step."""
    columns = studies(rows)
    averages = _averages(rows)
    protocols = dict.fromkeys(row["protocol"] for row in averages)
    grids = [_steps([r for r in averages if r["protocol"] == p], columns) for p in protocols]
    return None if None in grids else [grid for grid in grids if grid is not None]


def _steps(rows: Sequence[Row], columns: Studies) -> Grid | None:
    # baselines first, then families in order
    blocks = sorted(dict.fromkeys(map(_block, rows)), key=lambda name: not _is_first(name))
    rows = sorted(rows, key=lambda row: blocks.index(_block(row)))
    heads = list(dict.fromkeys((_block(row), row["step"]) for row in rows))
    figures = [_figure(row, columns, "", f"{_block(row)}, {row['step']}") for row in rows]
    grid = matrix(figures, columns.headers, "", ())
    if grid is None:
        return None
    ((upright,),) = (block.groups for block in grid.blocks)
    present = sorted({figure.column for figure in figures})
    lines = tuple(
        Line(columns.headers[study], tuple(head.cells[study] for head in upright))
        for study in present
    )
    counts_by_step = {
        f"{block}, {one_line(step)}": _counts([head.cells[study] for study in present])
        for (block, step), head in zip(heads, upright, strict=True)
    }
    count_texts = [f"{name} {text}" for name, text in counts_by_step.items() if text != _UNKNOWN]
    notes = [_CELLS, *net_notes(rows), *columns.notes(), *_relative_to(rows, columns, "step")]
    notes += [f"n, by row where it differs: {'; '.join(count_texts)}."] if count_texts else []
    return Grid(
        "",
        tuple(one_line(step) for _, step in heads),
        (RowBlock("", (lines,)),),
        tuple(notes),
        spans=tuple((block, sum(head[0] == block for head in heads)) for block in blocks),
    )


def _strata_layout(rows: Sequence[Row], by: str) -> list[Grid] | None:
    """Lay out strata: a block for each family, a row for each stratum, a column for each study."""
    columns = studies(rows)
    averages = _averages(rows)
    figures = [_figure(row, columns, _block(row), one_line(str(row[by]))) for row in averages]
    notes = [
        _CELLS,
        *net_notes(averages),
        *columns.notes(),
        *_relative_to(averages, columns, by),
    ]
    notes.append(
        "n: replies behind a figure" + (", by column." if len(columns.headers) > 1 else ".")
    )
    grid = matrix(figures, columns.headers, by, notes)
    return None if grid is None else [_with_n(grid)]


def _with_n(grid: Grid) -> Grid:
    """Add a first column with n, as one number if the studies agree."""

    def counted(line: Line) -> Line:
        return Line(line.label, (Cell(_counts(line.cells)), *line.cells))

    blocks = tuple(
        RowBlock(block.heading, tuple(tuple(map(counted, group)) for group in block.groups))
        for block in grid.blocks
    )
    return replace(grid, columns=("n", *grid.columns), blocks=blocks)


def _counts(cells: Iterable[Cell]) -> str:
    """Format the number of replies behind figures, as one number if all studies agree."""
    numbers = [_UNKNOWN if cell.n is None else str(cell.n) for cell in cells]
    return numbers[0] if len(set(numbers)) == 1 else " / ".join(numbers)


def _averages(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["arm"] in (BASELINE, FAMILY_AVERAGE)]


def _is_first(block: str) -> bool:
    return block.split(", ")[0] == _FIRST


def _block(row: Row) -> str:
    protocol = row["protocol"]
    parts = [_FIRST if row["arm"] == BASELINE else one_line(row["family"] or "")]
    parts += [one_line(row["path"])] if row["arm"] == FAMILY_AVERAGE and row["path"] else []
    parts += [one_line(protocol)] if protocol != "followup" else []
    return ", ".join(parts)


def _figure(row: Row, columns: Studies, block: str, label: str) -> HeatmapCell:
    """Return the cell of a study's average accuracy, or its change."""
    if row["arm"] == BASELINE:
        text = percent(row["accuracy"])
    else:
        change = percent(row["relative_change"], with_sign=True)
        net = percent(row["attributable"], with_sign=True)
        text = " ".join(filter(None, [f"{change}%" if change else "", f"({net})" if net else ""]))
    place = columns.of(row)
    return HeatmapCell(place, block, "", label, text, n=row["n"], of=conversations_of(row))


def _relative_to(rows: Sequence[Row], columns: Studies, by: str) -> list[str]:
    """Note the first answers that the changes are relative to, by study if they differ."""
    meanings = {
        "stratum": f"the first answers of the same {by}",
        "overall": "all first answers of the model",
        None: "first answers that the source does not state",
    }
    by_meaning: dict[str, list[str]] = {}
    for row in rows:
        names = by_meaning.setdefault(meanings[row["relative_to"]], [])
        if columns.header(row) not in names:
            names.append(columns.header(row))
    has_several = len(by_meaning) > 1
    return [
        f"Change relative to {meaning}{': ' + ', '.join(names) if has_several else ''}."
        for meaning, names in by_meaning.items()
    ]


def _strata(by: str, plural: str, order: str) -> Chart:
    """Build a chart: a panel for each family, a row for each stratum, a dot for each study."""

    def meaning(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
        """Explain a dot and its baseline."""
        meanings = {"stratum": f"of the same {by}", "overall": "of the model to all questions"}
        meanings_present = [
            meanings.get(baseline_name)
            for baseline_name in dict.fromkeys(row["relative_to"] for row in rows)
        ]
        baseline_text = " or, where published, ".join(
            baseline_name for baseline_name in meanings_present if baseline_name
        )
        return (
            f"{plural} {order}. Whiskers: 95% intervals. "
            f"{f'Relative to the first answers {baseline_text}. ' if baseline_text else ''}"
        ).rstrip()

    return Chart(
        title=f"Change of the family's average accuracy, by {by}",
        notes=(counted("questions", "questions"), meaning, _few_note),
        empty=f"no family has an average by {by} over {FEWEST} questions or more",
        remedy="Give the questions labels with run --labels FILE",
        keep=_select_averages,
        panel="{named}",
        words={"named": _family},
        across=2,
        together=True,
        kind=Dots(
            x=Measure("Relative change", around=("relative_change", *_ENDS)),
            of=[Of("relative_change", *_ENDS)],
            place=lambda row: label(row[by], 60), zero=True, width=300,
        ),
    )  # fmt: skip


_ENDS = ("change_low", "change_high")


def _select_averages(rows: Sequence[Row]) -> list[Row]:
    average_rows = [row for row in known("relative_change")(rows) if row["arm"] == FAMILY_AVERAGE]
    # published figures have no number of questions
    return [row for row in average_rows if row["questions"] is None or row["questions"] >= FEWEST]


def _few_note(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    changes = [row for row in known("relative_change")(all_rows) if row["arm"] == FAMILY_AVERAGE]
    few_count = len(changes) - len(rows)
    return f"Not drawn: {few_count:,} of fewer than {FEWEST} questions." if few_count else ""


def _family(row: Row) -> str:
    protocol = row["protocol"] if row["protocol"] != "followup" else ""
    parts = (row["family"], row["path"], protocol)
    return label(", ".join(part for part in parts if part), 80)


_WORST_LAST = "from the least to the most degraded on average"
_STEPS_CHART = _strata("step", "Steps", "in their order")
_SYSTEMS_CHART = _strata("system", "Systems", _WORST_LAST)
_SPECIALTIES_CHART = _strata("specialty", "Specialties", _WORST_LAST)
_SUBJECTS_CHART = _strata("subject", "Subjects", _WORST_LAST)


def _select_lengths(rows: Sequence[Row]) -> list[Row]:
    charted_rows = known("accuracy")(rows)
    return charted_rows if any(row["sentences"] is not None for row in charted_rows) else []


_LENGTHS_CHART = Chart(
    title="Accuracy after a follow-up, by the length of its context",
    notes=(
        counted("n", "questions (and epochs)"),
        "Whiskers: 95% intervals. Dashed: accuracy of the first answers to the same questions.",
    ),
    empty="no context of a fixed length has an accuracy",
    keep=_select_lengths,
    panel="{study} ({dataset})",
    across=3,
    kind=Lines(
        x=Axis("sentences", "Sentences of the context", "numbers"),
        y=ACCURACY_AXIS,
        of=[Of("accuracy")],
        series=Series("Technique", lambda row: label(row["technique"])),
        level=lambda row: row["baseline"],
        whiskers=True,
        width=250,
        height=190,
    ),
)


STRATA_SECTION = Section(
    "strata",
    "Strata",
    "Which questions",
    "The same measures by the kind of question (strata). Cells are changes relative to the "
    "first answers to the same questions. Few questions give wide intervals: the tables show n.",
    4,
)


_STRATA: dict[Stratum, str] = {
    "step": "USMLE step of the questions.",
    "system": "USMLE system of the questions.",
    "specialty": "Clinical specialty of the questions.",
    "subject": "Subject of the questions.",
}

_SAYS = {
    **{name: ACCURACY_SAYS[name] for name in ("path", "accuracy")},
    "baseline": "Accuracy of the first answers to the row's own questions, or to all questions of "
    "the study where `relative_to` is `overall`.",
    "p_value": "P-value of the change, clustered by question. From first answers to the same "
    "questions, the test is that of `accuracy`; from those to more questions, it is by "
    "Obuchowski's (1998) statistic.",
    "p_adjusted": "The p-value after Holm's correction over the rows of a family and arm in a "
    "study, or over the averages of a study, all strata together.",
}


def _stratum_fields(stratum: Stratum) -> dict[str, Any]:
    """Return the parts that the tables of strata share."""
    return {
        "measure": partial(strata, by=stratum),
        "layout": partial(_strata_layout, by=stratum),
        "lead": "Smallest loss first.",
        "section": "strata",
        "takes": ("relative_to",),
        "says": {stratum: _STRATA[stratum], **_SAYS},
        "intervals": {"": "accuracy"},
    }


STEPS = Table(
    "accuracy by step",
    title="By step of the licensing examination (USMLE)",
    chart=_STEPS_CHART,
    **_stratum_fields("step") | {"layout": _steps_layout, "lead": "Family averages."},
)

SYSTEMS = Table(
    "accuracy by system",
    title="By organ system",
    chart=_SYSTEMS_CHART,
    **_stratum_fields("system"),
)

SPECIALTIES = Table(
    "accuracy by specialty",
    title="By clinical specialty",
    chart=_SPECIALTIES_CHART,
    **_stratum_fields("specialty"),
)

SUBJECTS = Table(
    "accuracy by subject",
    title="By subject",
    chart=_SUBJECTS_CHART,
    **_stratum_fields("subject"),
)


LENGTHS_COLUMNS = (
    "model", "dataset", "technique", "family", "sentences", "n", "correct", "accuracy", "low",
    "high", "baseline", *CHANGE, "unparsed", "refused", "non_response", *RANKS, "run",
)  # fmt: skip


def lengths(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute accuracy by technique and context length (MedQA-Followup, section 4.3, Figure 3).

    The figures are those of ``accuracy``. Contexts of the usual length have no row.

    Returns:
        One row for each model, data set, technique and number of ``sentences``, shortest first
        within a technique.
    """
    answered_turns = with_first(turns, arms=("length",))
    rows = with_ranks(with_change(rated(answered_turns), answered_turns), answered_turns)
    rows = rows.filter(pl.col("arm") == "length").with_row_index("_row")
    rows = rows.with_columns(
        sentences=pl.col("path").str.extract(r"@(\d+)$").cast(pl.Int64),
        _study=pl.col("_row").min().over(STUDY),
        _technique=pl.col("_row").min().over(*STUDY, "technique"),
    )
    return rows.sort("_study", "_technique", "sentences", "_row").select(LENGTHS_COLUMNS)


def _lengths_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Lay out accuracies by technique and number of sentences (MedQA-Followup, Figure 3)."""
    columns = studies(rows)
    figures = [
        HeatmapCell(
            columns.of(row),
            "",
            row["technique"],
            f"{one_line(row['technique'])}, {row['sentences']}",
            accuracy_text(row),
            mark_of(row),
            row["n"],
            of={**row, "arm": "length", "path": f"{row['technique']}@{row['sentences']}"},
        )
        for row in rows
    ]
    notes = [*accuracy_notes(rows), *columns.notes(), *n_notes(figures, columns.headers)]
    notes += unread_notes(rows, columns)
    grid = matrix(figures, columns.headers, "Technique, sentences of context", notes)
    return None if grid is None else [grid]


LENGTHS_SECTION = Section(
    "lengths",
    "Lengths",
    "Longer arguments",
    "The same argument in 1, 10 or 20 sentences (length ablation).",
    6,
)

LENGTHS = Table(
    "accuracy by length",
    lengths,
    layout=_lengths_layout,
    title="Accuracy by length of the context",
    lead="A line for each technique.",
    section="lengths",
    chart=_LENGTHS_CHART,
    says={
        "sentences": "Number of sentences of the context.",
        "p_adjusted": "The p-value after Holm's correction over the techniques and lengths of a "
        "family in a study.",
        "ranked": "Number of lengths of the technique, which are ranked.",
    },
    intervals={"": "accuracy"},
)
