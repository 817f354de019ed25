"""The summary of a run on the terminal."""

import math

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
    averages = {
        row["family"]: row
        for row in accuracy.filter(pl.col("arm") == "family-average").iter_rows(named=True)
    }
    turns = list(accuracy.filter(pl.col("arm") != "family-average").iter_rows(named=True))
    previous = None
    for row in sorted(turns, key=lambda row: _block(row, averages)):
        block = _block(row, averages)
        if block != previous:
            table.add_section()
            if row["arm"] == "followup" and row["family"] in averages:
                table.add_row(*_cells(f"{row['family']} (average)", averages[row["family"]], None),
                              style="bold")  # fmt: skip
            elif row["arm"] == "compound":
                table.add_row("compounding", style="bold")
        previous = block
        name = (
            "first answer"
            if row["arm"] == "baseline"
            else "  " + str(row["path"]).replace(">", " > ")
        )
        table.add_row(*_cells(name, row, by_path.get(row["path"])))
    return table


def _block(row: dict[str, object], averages: dict[str, dict[str, object]]) -> int:
    match row["arm"]:
        case "baseline":
            return -1
        case "followup":
            return list(averages).index(str(row["family"]))
        case _:
            return len(averages)


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
