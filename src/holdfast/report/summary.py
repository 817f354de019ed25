"""The summary of a run on the terminal."""

import math
from typing import Any

import polars as pl
from rich.table import Table
from rich.text import Text

from holdfast.errors import printable


def summary_table(accuracy: pl.DataFrame, flips: pl.DataFrame, title: str) -> Table:
    """One study's accuracies and flips, the families one below the other.

    Args:
        accuracy: rows of ``accuracy`` for one model, data set and protocol.
        flips: rows of ``flips`` for the same.
        title: the table's caption; data, never markup.
    """
    table = Table(title=Text(printable(title)), title_justify="left", caption_justify="left")
    table.caption = Text(
        "Accuracy with its 95% Wilson interval. Change: relative to the first answers. "
        "Given up: of the right first answers, the share that became wrong "
        "(to the suggested option / to another). Unread: replies with no readable answer."
    )
    table.add_column("Challenge", overflow="fold", min_width=24)
    for column in ("n", "Accuracy %", "95% interval", "Change %", "Given up %", "Sugg./other"):
        table.add_column(column, justify="right")
    table.add_column("Unread", justify="right")
    by_path = {row["path"]: row for row in flips.iter_rows(named=True)}
    rows = list(accuracy.iter_rows(named=True))
    averages = {_block(row): row for row in rows if row["arm"] == "family-average"}
    blocks: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["arm"] != "family-average":
            blocks.setdefault(_block(row), []).append(row)
    chains = blocks.get(("compound", ""), [])
    if len(chains) > MOST_CHAINS:
        del blocks["compound", ""]
        table.caption.append(
            f" {len(chains)} chains of techniques are not shown: see 'holdfast table --table "
            "compounding'."
        )
    for block, members in sorted(blocks.items(), key=lambda item: _ARMS.index(item[0][0])):
        table.add_section()
        title = " ".join(part for part in block[1:] if part) or block[0]
        if block in averages:
            table.add_row(*_cells(f"{title} (average)", averages[block], None), style="bold")
        elif block[0] != "baseline":
            table.add_row(_HEADINGS.get(block[0], title), style="bold")
        for row in members:
            # what all members have in common is in the heading
            path = (
                str(row["path"]).rpartition(">")[2]
                if block[-1].startswith("with ")
                else (str(row["path"]).replace(">", " > "))
            )
            name = "first answer" if block[0] == "baseline" else f"  {path}"
            table.add_row(*_cells(name, row, by_path.get(row["path"])))
    return table


Row = dict[str, Any]

MOST_CHAINS = 12
"""Chains that the summary still shows one by one."""

_ARMS = ("baseline", "single-turn", "followup", "length", "compound", "")
_HEADINGS = {"length": "contexts of so many sentences", "compound": "compounding"}


def _block(row: Row) -> tuple[str, ...]:
    """What stands together: an arm; of it, a family and what is said against it."""
    arm, path = str(row["arm"]), str(row["path"])
    average = arm == "family-average"
    if average:
        arm = "single-turn" if row["depth"] == "shallow" else "followup"
    if arm not in ("single-turn", "followup"):
        return (arm if arm in _ARMS else "", "" if arm in _ARMS else arm)
    mitigation = path if average else path.rpartition(">")[0]
    return (arm, str(row["family"]), f"with {mitigation}" if mitigation else "")


def _cells(name: str, row: dict[str, object], flip: dict[str, object] | None) -> list[Text]:
    first = row["arm"] == "baseline"
    cells = [
        name,
        str(row["n"]),
        _percent(row["accuracy"]),
        f"{_percent(row['low'])} to {_percent(row['high'])}",
        "" if first else _percent(row["relative_change"], signed=True),
        "" if flip is None else _percent(flip["flip_rate"]),
        "" if flip is None else f"{flip['right_to_suggested']}/{flip['right_to_other']}",
        str(row["unparsed"]),
    ]
    return [Text(printable(cell)) for cell in cells]


def _percent(value: object, *, signed: bool = False) -> str:
    if not isinstance(value, float) or math.isnan(value):
        return "n/a"
    return f"{100 * value:+.1f}" if signed else f"{100 * value:.1f}"
