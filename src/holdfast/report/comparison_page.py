"""The comparison as one HTML file that needs nothing else."""

import base64
from collections.abc import Sequence

import polars as pl

from .comparison_layout import comparison_grids
from .comparison_words import changes, comparison_label, sentences, side_lines
from .tables import one_line
from .templating import environment, source

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
