"""Family averages by stratum and model (MedQA-Followup, Table 3 and Figures 7 to 9)."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from holdfast.results import FAMILY_AVERAGE

from .heading import headed
from .heatmap import full, heatmap, signed, width_of
from .marks import across
from .panels import Panels, Row, counts, label, nothing, panels

_LONGEST, _CELL = 72, 58
_PLURALS = {
    "step": "Steps",
    "system": "Systems",
    "specialty": "Specialties",
    "subject": "Subjects",
}


def steps(frame: pl.DataFrame) -> alt.VConcatChart:
    """By examination step, in their order."""
    return _figure(frame, "step")


def systems(frame: pl.DataFrame) -> alt.VConcatChart:
    """By organ system, from the least to the most degraded."""
    return _figure(frame, "system")


def specialties(frame: pl.DataFrame) -> alt.VConcatChart:
    """By specialty, from the least to the most degraded."""
    return _figure(frame, "specialty")


def subjects(frame: pl.DataFrame) -> alt.VConcatChart:
    """By subject, from the least to the most degraded."""
    return _figure(frame, "subject")


def _figure(frame: pl.DataFrame, by: str) -> alt.VConcatChart:
    """A heatmap for each family: strata as rows, studies as columns.

    Raises:
        InputError: no family average has a change.
    """
    shown = panels(frame, together=True, published="narrower")
    rows = [
        row
        for row in shown.every()
        if row["arm"] == FAMILY_AVERAGE and row["relative_change"] is not None
    ]
    if not rows:
        raise nothing(
            f"no family has an average by {by}", "Give the questions labels with run --labels FILE"
        )
    limit = full([row["relative_change"] for row in rows])
    drawn = []
    for family in dict.fromkeys(_family(row) for row in rows):
        own = [row for row in rows if _family(row) == family]
        drawn.append(_panel(own, by, shown, limit).properties(title=family))
    studies = list({row["study"]: None for row in rows})
    beside = across(list(_labels(rows, by).values()), width_of(studies, _CELL))
    order = "in their order" if by == "step" else "from the least to the most degraded on average"
    return headed(
        [alt.concat(*drawn, columns=beside)],
        f"Change of the family's average accuracy, by {by}",
        (
            counts([row["n"] for row in rows], "replies"),
            f"Cells: relative change in percent; orange is a loss. {_PLURALS[by]} {order}. "
            f"{_relative_to(rows, by)} No intervals: look at n before you look at a change.",
        ),
        shown,
    )


def _panel(rows: Sequence[Row], by: str, shown: Panels, limit: float) -> alt.LayerChart:
    labels = _labels(rows, by)
    values = [
        {
            "column": row["study"],
            "row": labels[row[by]],
            "share": row["relative_change"],
            "text": signed(row["relative_change"]),
            "ink": row["ink"],
        }
        for row in rows
    ]
    present = {row["study"] for row in rows}
    names = [name for name in shown.names if name in present]
    return heatmap(values, names, list(labels.values()), limit, "Relative change", harm="below")


def _labels(rows: Sequence[Row], by: str) -> dict[str, str]:
    """Each stratum as shown, with n where its studies agree."""
    found: dict[str, str] = {}
    for stratum in dict.fromkeys(row[by] for row in rows):
        numbers = {row["n"] for row in rows if row[by] == stratum} - {None}
        n = f" (n = {numbers.pop():,})" if len(numbers) == 1 else ""
        name = f"{label(stratum, _LONGEST)}{n}"
        found[stratum] = name if name not in found.values() else f"{name} ({len(found) + 1})"
    return found


def _family(row: Row) -> str:
    parts = [row["family"] or "", row["path"] or ""]
    parts += [row["protocol"]] if row["protocol"] != "followup" else []
    return label(", ".join(part for part in parts if part), 80)


def _relative_to(rows: Sequence[Row], by: str) -> str:
    meanings = {"stratum": f"of the same {by}", "overall": "of the model to all questions"}
    found = dict.fromkeys(row["relative_to"] for row in rows)
    said = [meanings[one] for one in found if one in meanings]
    return f"Relative to the first answers {' or, where published, '.join(said)}." if said else ""
