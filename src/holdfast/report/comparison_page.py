"""Comparisons for people: sentences, tables and the page."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from holdfast.render.tables import FORMATS, latex, markdown, markdown_text, one_line
from holdfast.results.declaration import Computed, Count, Share, count, shown_columns
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.grid import (
    Cell,
    Grid,
    Line,
    Row,
    RowBlock,
    grouped,
    mark_of,
    percent,
)
from holdfast.results.missing import bounds_text, lacks, read_both_text
from holdfast.results.runs import is_imported, is_simulated
from holdfast.results.standing import FIGURE

from .comparison_labels import CONVERSATIONS, comparison_label, of_many, pair_label, side_names
from .comparison_sentences import (
    SIGNIFICANT,
    leading,
    p_value,
    rank_sides,
    sentences,
    signed_interval,
)
from .page import environment, source

_SIMULATED_MARK = " [SIMULATED]"


CHANGED_LISTS = ("gained_questions", "lost_questions")


def side_lines(rows: Sequence[Row]) -> list[str]:
    """Return a line for each side with model, mitigation, runs, data sets and simulation mark."""
    lines = []
    if of_many(rows):
        of_side: dict[str, dict[str, None]] = {}
        for row in rows:
            for end in "ab":
                name = f"{row[f'side_{end}']}{_SIMULATED_MARK * is_simulated(row[f'model_{end}'])}"
                of_side.setdefault(name, {})[str(row[f"run_{end}"])] = None
        return [
            one_line(f"{name}: {'run' if len(value) == 1 else 'runs'} {', '.join(value)}")
            for name, value in of_side.items()
        ]
    for name in ("a", "b"):
        settings: dict[tuple[str, str | None], list[Row]] = {}
        for row in rows:
            settings.setdefault((row[f"model_{name}"], row[f"mitigation_{name}"]), []).append(row)
        facts = []
        for (model, mitigation), value in settings.items():
            runs = dict.fromkeys(str(row[f"run_{name}"]) for row in value)
            datasets = dict.fromkeys(
                row["dataset" if name == "a" else "dataset_b"] for row in value
            )
            parts = [
                f"{model}{_SIMULATED_MARK * is_simulated(model)}",
                *([f"mitigation {mitigation}"] if mitigation else []),
                f"{'run' if len(runs) == 1 else 'runs'} {', '.join(runs)}",
                ", ".join(datasets),
            ]
            facts.append(", ".join(parts))
        lines.append(one_line(f"{name.upper()}: {'; '.join(facts)}"))
    return lines


def changes(rows: Sequence[Row]) -> list[str]:
    """Return a sentence on the changed questions of each row with changes."""
    change_lists = []
    for row in rows:
        parts = [
            f"{word} {', '.join(map(one_line, row[name]))}"
            for word, name in (("gained", CHANGED_LISTS[0]), ("lost", CHANGED_LISTS[1]))
            if row[name]
        ]
        if parts:
            change_lists.append(f"{_changed_label(row)}: {'; '.join(parts)}.")
    return change_lists


def _changed_label(row: Row) -> str:
    """Return the label of a row, with its pair if there are several."""
    return (
        f"{comparison_label(row)}, {pair_label(row)}" if "side_a" in row else comparison_label(row)
    )


def render_comparison(
    rows: pl.DataFrame,
    format: str,
    notes: Sequence[str] = (),
    *,
    opening: Sequence[str] = (),
    with_changes: bool = False,
    all_challenges: bool = False,
) -> str:
    """Return the comparison as text, ending in a newline.

    Args:
        rows: rows of ``holdfast.results.compare`` or ``standing``.
        format: one of ``FORMATS``. JSON always contains the changed questions.
        notes: sentences on skipped turns. CSV and JSON omit them, because they are data.
        opening: the sentences that a report of the same turns opens with.
        with_changes: whether to list the changed questions (in CSV as JSON lists).
        all_challenges: whether to show ranks and pairs of every challenge for three or more
            models. CSV and JSON always contain them.
    """
    if format == "json":
        return FORMATS[format](rows)
    if format == "csv":
        lists = [pl.Series(name, map(_list_text, rows[name]), pl.String) for name in CHANGED_LISTS]
        return FORMATS[format](
            rows.with_columns(lists) if with_changes else rows.drop(CHANGED_LISTS)
        )
    row_dicts = rows.to_dicts()
    lead_sentences = sentences(row_dicts, opening)
    more = [*notes, *(changes(row_dicts) if with_changes else [])]
    above = [*side_lines(row_dicts), *lead_sentences]
    if format == "latex":
        return latex(comparison_grids(row_dicts, [*above, *more], all_challenges=all_challenges))
    head = "".join(f"{markdown_text(line)}\n\n" for line in above)
    return head + markdown(comparison_grids(row_dicts, more, all_challenges=all_challenges))


def comparison_grids(
    rows: Sequence[Row], notes: Sequence[str] = (), *, all_challenges: bool = False
) -> list[Grid]:
    """Return a table for each protocol and data set, or rank and pair tables for many models."""
    if of_many(rows):
        return _standing_grids(rows if all_challenges else leading(rows), notes)
    a, b = side_names(rows)
    columns = [
        replace(column, header=_SIDE_HEADERS[column.name].format(a=a, b=b))
        if column.name in _SIDE_HEADERS
        else column
        for column in shown_columns(_COLUMNS, rows)
    ]
    grids = []
    studies = list(dict.fromkeys((row["protocol"], row["dataset"]) for row in rows))
    for study in studies:
        study_rows = [row for row in rows if (row["protocol"], row["dataset"]) == study]
        groups: dict[tuple[str, str, str], list[Line]] = {}
        for row in study_rows:
            lines = groups.setdefault(_group(row), [])
            cells = tuple(column.cell(row) for column in columns)
            lines.append(Line(comparison_label(row), cells))
        blocks = (RowBlock("", tuple(tuple(lines) for lines in groups.values())),)
        below = (*_legend(rows), *map(one_line, notes)) if study == studies[-1] else ()
        headers = tuple(column.header for column in columns)
        grids.append(Grid(one_line(f"{study[0]}, {study[1]}"), headers, blocks, below))
    return grids


def _standing_grids(rows: Sequence[Row], notes: Sequence[str]) -> list[Grid]:
    """Return a table of ranks and a table of pairs, with a heading for each measure."""
    ranks, pairs, columns = [], [], shown_columns(_PAIR_COLUMNS, rows)
    for figure_rows in grouped(rows, *FIGURE):
        row = figure_rows[0]
        heading = one_line(f"{row['protocol']}, {row['dataset']}: {comparison_label(row)}")
        ranked_sides = rank_sides(figure_rows)
        lines = []
        for side, row, end, low, high in ranked_sides:
            worst = f" ({one_line(row[f'path_{end}'])})" if row[f"path_{end}"] else ""
            place = {"rank_low": low, "rank_high": high, "ranked": len(ranked_sides)}
            rank = Cell(str(low) if low == high else f"{low} to {high}", mark_of(place))
            cells = (Cell(_answer_count(row)), Cell(f"{percent(row[end])}{worst}"), rank)
            lines.append(Line(one_line(side), cells))
        ranks.append(RowBlock(heading, (tuple(lines),)))
        pair_lines = [
            Line(pair_label(row), tuple(column.cell(row) for column in columns))
            for row in figure_rows
        ]
        pairs.append(RowBlock(heading, (tuple(pair_lines),)))
    headers = tuple(column.header for column in columns)
    return [
        Grid("Model", ("n", "Share %", "Rank"), tuple(ranks), (_RANKS,), _MARKED_WHERE),
        Grid("Pair", headers, tuple(pairs), (*_pair_legend(rows), *map(one_line, notes))),
    ]


def _list_text(ids: pl.Series | None) -> str | None:
    return None if ids is None else json.dumps(ids.to_list(), ensure_ascii=False)


def _answer_count(row: Row) -> str:
    """Return the number of paired answers, with the number of questions if it is smaller."""
    questions = f" ({row['questions']})" if row["questions"] != row["n"] else ""
    return f"{count(row['n'])}{questions}"


def _bounds(row: Row) -> str:
    return bounds_text(row, with_sign=True) if lacks(row) else ""


def _read_both(row: Row) -> str:
    return read_both_text(row, "read_both_difference", with_sign=True) if lacks(row) else ""


_COLUMNS = (
    Computed("n", "n", show=_answer_count),
    Share("A %", "a"),
    Share("B %", "b"),
    Share("B minus A (points)", "difference", signed=True),
    Computed("95% interval", "low", show=signed_interval),
    Share("Drop, B minus A", "drop_difference", "drop_", signed=True, optional=True),
    Share("Drop from control, B minus A", "net_difference", "net_", signed=True, optional=True),
    Computed("Bounds (points)", "worst_low", optional=True, show=_bounds),
    Computed("Both parsed (points)", "read_both", optional=True, show=_read_both),
    Count("Gained", "gained"),
    Count("Lost", "lost"),
    Computed("p", "p_value", show=lambda row: p_value(row["p_value"]).removeprefix("= ")),
    Computed(
        "p (Holm)", "p_adjusted", show=lambda row: p_value(row["p_adjusted"]).removeprefix("= ")
    ),
)

_SIDE_HEADERS = {"a": "{a} %", "b": "{b} %", "difference": "{b} minus {a} (points)"}
"""Headers with the names of the sides."""

_PAIR_COLUMNS = tuple(
    replace(column, header="Difference (points)") if column.name == "difference" else column
    for column in _COLUMNS
    if column.name not in ("a", "b", "gained", "lost")
)
_MARKED_WHERE = "each measure, if only one rank is possible"
_RANKS = (
    "Rank: range of ranks that the model can have among these models (1: highest share), at 95% "
    "for all models of a measure together."
)


def _pair_legend(rows: Sequence[Row]) -> list[str]:
    sides = [(row, end) for row in rows for end in "ab"]
    simulated_sides = [(row, end) for row, end in sides if is_simulated(row[f"model_{end}"])]
    imported_sides = [(row, end) for row, end in sides if is_imported(row[f"run_{end}"])]
    legend = [
        "95% interval: covers all pairs together (Bonferroni). p (Holm): corrected over all "
        "pairs of a measure. Two models are distinguishable if p (Holm) is below 0.05. The ranks "
        "follow from these pairs. After the worst challenge: the lowest share of each model, "
        "whose worst challenge may differ.",
    ]
    for words_for, sides_marked in (
        ("SIMULATED, not a measurement of a model", simulated_sides),
        ("IMPORTED, not collected by holdfast", imported_sides),
    ):
        names = dict.fromkeys(one_line(row[f"side_{end}"]) for row, end in sides_marked)
        legend += [f"{words_for}: {', '.join(names)}."] if names else []
    return legend


def _legend(rows: Sequence[Row]) -> list[str]:
    a, b = side_names(rows)
    sides = {"a": a, "b": b}
    lines = [
        "n: questions that both sides answered"
        + (
            ". Each epoch and technique counts (number of questions in brackets)."
            if any(row["n"] != row["questions"] for row in rows)
            else "."
        ),
        f"Gained: only {b} is right. Lost: only {a} is right. p: McNemar's exact test, "
        "clustered by question if a question was asked several times. Holm: corrected within a "
        f"family. A difference is significant if the corrected p is below {SIGNIFICANT}.",
    ]
    if any(map(lacks, rows)):
        lines.append(
            f"Bounds: lowest and highest {b} minus {a} for any outcome of the missing replies "
            "(unparsed, refused or failed). Both parsed: over pairs with an answer on both sides."
        )
    if any(row["measure"] in CONVERSATIONS for row in rows):
        lines.append(
            "In rows on conversations, gained and lost count the outcome in the row's name. "
            "Switches: over the questions on which both models abstained."
        )
    simulated_models = dict.fromkeys(
        sides[name] for name in sides for row in rows if is_simulated(row[f"model_{name}"])
    )
    if simulated_models:
        lines.append(f"SIMULATED, not a measurement of a model: {' and '.join(simulated_models)}.")
    imported_models = [
        sides[name] for name in sides if any(is_imported(row[f"run_{name}"]) for row in rows)
    ]
    if imported_models:
        lines.append(f"IMPORTED, not collected by holdfast: {' and '.join(imported_models)}.")
    return lines


def _group(row: Row) -> tuple[str, str, str]:
    is_averaged = row["arm"] in ("followup", "single-turn", FAMILY_AVERAGE)
    kind = "accuracy" if row["measure"] == "accuracy" else "other"
    return kind, "" if is_averaged or kind == "other" else row["arm"], row["family"]


_TEMPLATE = "comparison.html.j2"


def comparison_page(
    rows: pl.DataFrame,
    notes: Sequence[str] = (),
    *,
    opening: Sequence[str] = (),
    all_challenges: bool = False,
) -> str:
    """Build the page with sentences, forest plot, tables and changed questions.

    The page has no scripts and loads nothing from outside. All text is escaped. The page follows
    the reader's light or dark mode and prints light.

    Args:
        rows: rows of ``holdfast.results.compare`` or ``standing``.
        notes: sentences on skipped turns.
        opening: as for ``render_comparison``.
        all_challenges: as for ``render_comparison``.

    Raises:
        InputError: the rows contain nothing to draw.
    """
    from markupsafe import Markup  # slow, and other commands do not need it

    row_dicts = rows.to_dicts()
    is_short = of_many(row_dicts) and not all_challenges
    figure_rows = pl.DataFrame(leading(row_dicts), rows.schema) if is_short else rows
    headline, *other_sentences = sentences(row_dicts, opening) or ["Nothing was compared"]
    change_lists = [
        {
            "label": _changed_label(row),
            "study": one_line(f"{row['protocol']}, {row['dataset']}"),
            "gained": list(map(one_line, row["gained_questions"])),
            "lost": list(map(one_line, row["lost_questions"])),
        }
        for row in row_dicts
        if changes([row])
    ]
    page: str = (
        environment()
        .get_template(_TEMPLATE)
        .render(
            css=Markup(source("page.css")),
            sides=side_lines(row_dicts),
            simulated=any("[SIMULATED]" in line for line in side_lines(row_dicts)),
            headline=headline,
            sentences=other_sentences,
            difference=_difference(row_dicts),
            figures={name: _figure(figure_rows, dark=name == "dark") for name in ("light", "dark")},
            grids=comparison_grids(row_dicts, notes, all_challenges=all_challenges),
            changed=change_lists,
        )
    )
    return page


def _difference(rows: Sequence[Row]) -> str:
    """Return the name of the difference, such as ``m2 minus m1``."""
    return (
        "{1} minus {0}".format(*side_names(rows))
        if not of_many(rows)
        else "one model minus another"
    )


def _figure(rows: pl.DataFrame, *, dark: bool) -> str:
    """Return the forest plot as a data URL. As an image, it cannot run scripts."""
    from holdfast.render.chart_files import exported

    from .comparison_figure import comparison

    figure = exported(comparison(rows, dark=dark), "svg")
    svg = figure if isinstance(figure, bytes) else figure.encode()
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
