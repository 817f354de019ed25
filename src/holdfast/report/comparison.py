"""Comparisons as people read them: their tables, what is said of them, and the page."""

import base64
import json
from collections.abc import Sequence

import polars as pl

from holdfast.results import FAMILY_AVERAGE, is_imported, is_simulated
from holdfast.results.declaration import count
from holdfast.results.grid import Block, Cell, Grid, Line, Row, percent

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
from .tables import FORMATS, latex, markdown, markdown_text, one_line
from .templating import environment, source

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
    """A table for each protocol and data set."""
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
            "For conversations, gained and lost count what the row says. Switches: of the "
            "questions on which both abstained."
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


_TEMPLATE = "comparison.html.j2"


def comparison_page(rows: pl.DataFrame, notes: Sequence[str] = ()) -> str:
    """The page: what the comparison says, its forest plot, its tables, the questions that changed.

    It has no scripts and asks for nothing outside itself; every text is escaped. It follows the
    reader's choice of light or dark and prints light.

    Args:
        rows: those of ``holdfast.results.compare``.
        notes: sentences on what was left out.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    from markupsafe import Markup  # which other commands do without

    listed = rows.to_dicts()
    headline, *others = sentences(listed) or ["Nothing was compared"]
    changed = [
        {
            "label": comparison_label(row),
            "study": one_line(f"{row['protocol']}, {row['dataset']}"),
            "gained": list(map(one_line, row["gained_questions"])),
            "lost": list(map(one_line, row["lost_questions"])),
        }
        for row in listed
        if changes([row])
    ]
    page: str = (
        environment()
        .get_template(_TEMPLATE)
        .render(
            css=Markup(source("page.css")),
            sides=side_lines(listed),
            simulated=any("[SIMULATED]" in line for line in side_lines(listed)),
            headline=headline,
            sentences=others,
            figures={name: _figure(rows, dark=name == "dark") for name in ("light", "dark")},
            grids=comparison_grids(listed, notes),
            changed=changed,
        )
    )
    return page


def _figure(rows: pl.DataFrame, *, dark: bool) -> str:
    """The forest plot as an address that holds it; as an image it can run nothing."""
    from .figures.comparison import comparison
    from .figures.export import exported

    drawn = exported(comparison(rows, dark=dark), "svg")
    svg = drawn if isinstance(drawn, bytes) else drawn.encode()
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
