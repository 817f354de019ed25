"""Comparisons as people read them: their tables, and what is said of them."""

import json
from collections.abc import Sequence

import polars as pl

from holdfast.results import FAMILY_AVERAGE, is_imported, is_simulated

from .comparison_words import (
    CHANGED,
    CONVERSATIONS,
    SIGNIFICANT,
    changes,
    comparison_label,
    p_value,
    sentences,
    side_lines,
    signed_interval,
)
from .grid import Block, Cell, Grid, Line, latex, markdown
from .listings import count
from .matrix import percent
from .studies import Row
from .tables import FORMATS, markdown_text, one_line

_HEADERS = (
    "n", "A %", "B %", "B less A (points)", "95% interval", "Gained", "Lost", "p", "p (Holm)",
)  # fmt: skip


def render_comparison(
    rows: pl.DataFrame, format: str, notes: Sequence[str] = (), *, changed: bool = False
) -> str:
    """The comparison as text, ending in a newline.

    Args:
        rows: those of ``holdfast.results.compare``.
        format: one of ``FORMATS``. JSON always holds the questions that changed.
        notes: sentences on what was left out; not in CSV and JSON, which are data.
        changed: whether the questions that changed are listed; in CSV as JSON lists.
    """
    if format == "json":
        return FORMATS[format](rows)
    if format == "csv":
        lists = [pl.Series(name, map(_list_text, rows[name]), pl.String) for name in CHANGED]
        return FORMATS[format](rows.with_columns(lists) if changed else rows.drop(CHANGED))
    listed = rows.to_dicts()
    said = sentences(listed)
    more = [*notes, *(changes(listed) if changed else [])]
    above = [*side_lines(listed), *said]
    if format == "latex":
        return latex(comparison_grids(listed, [*above, *more]))
    shown = "".join(f"{markdown_text(line)}\n\n" for line in above)
    return shown + markdown(comparison_grids(listed, more))


def comparison_grids(rows: Sequence[Row], notes: Sequence[str] = ()) -> list[Grid]:
    """A table for each protocol and data set.

    Args:
        rows: rows of a comparison.
        notes: sentences below the last table.
    """
    grids = []
    studies = list(dict.fromkeys((row["protocol"], row["dataset"]) for row in rows))
    for study in studies:
        own = [row for row in rows if (row["protocol"], row["dataset"]) == study]
        groups: dict[tuple[str, str, str], list[Line]] = {}
        for row in own:
            lines = groups.setdefault(_group(row), [])
            lines.append(Line(comparison_label(row), tuple(map(Cell, _cells(row)))))
        blocks = (Block("", tuple(tuple(lines) for lines in groups.values())),)
        below = (*_legend(rows), *map(one_line, notes)) if study == studies[-1] else ()
        grids.append(Grid(one_line(f"{study[0]}, {study[1]}"), _HEADERS, blocks, below))
    return grids


def _list_text(ids: pl.Series | None) -> str | None:
    return None if ids is None else json.dumps(ids.to_list(), ensure_ascii=False)


def _cells(row: Row) -> list[str]:
    n = count(row["n"])
    if row["questions"] != row["n"]:
        n = f"{n} ({row['questions']})"
    return [
        n,
        percent(row["a"]),
        percent(row["b"]),
        percent(row["difference"], signed=True),
        signed_interval(row),
        count(row["gained"]),
        count(row["lost"]),
        p_value(row["p_value"]).removeprefix("= "),
        p_value(row["p_adjusted"]).removeprefix("= "),
    ]


def _legend(rows: Sequence[Row]) -> list[str]:
    lines = [
        "n: questions that both answered"
        + (
            ", those of several epochs or techniques counted each (in brackets: questions)."
            if any(row["n"] != row["questions"] for row in rows)
            else "."
        ),
        "Gained: right on B alone. Lost: right on A alone. p: McNemar's exact test, clustered by "
        "question where it was asked several times; Holm: corrected within a family. A difference "
        f"shows where the corrected p is below {SIGNIFICANT}.",
    ]
    if any(row["measure"] in CONVERSATIONS for row in rows):
        lines.append(
            "Of conversations, gained and lost count what the line says. Switches: of the "
            "questions at which both abstained."
        )
    simulated = dict.fromkeys(
        name.upper() for name in ("a", "b") for row in rows if is_simulated(row[f"model_{name}"])
    )
    if simulated:
        lines.append(f"SIMULATED replies, of no real model: {' and '.join(simulated)}.")
    imported = [
        name.upper() for name in ("a", "b") if any(is_imported(row[f"run_{name}"]) for row in rows)
    ]
    if imported:
        lines.append(f"IMPORTED, not asked by holdfast: {' and '.join(imported)}.")
    return lines


def _group(row: Row) -> tuple[str, str, str]:
    averaged = row["arm"] in ("followup", "single-turn", FAMILY_AVERAGE)
    kind = "accuracy" if row["measure"] == "accuracy" else "other"
    return kind, "" if averaged or kind == "other" else row["arm"], row["family"]
