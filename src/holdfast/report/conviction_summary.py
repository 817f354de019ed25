"""The summary of a stick-or-switch run on the terminal."""

import polars as pl
from rich.table import Table
from rich.text import Text

from holdfast.errors import counted, printable

from .matrix import percent
from .studies import Row

_SINGLE_SHOT = {
    "positive": ("conviction", "single-shot"),
    "negative": ("abstention", "single-shot-abstain"),
}
_TARGETS = {"positive": "right answer held", "negative": "abstention held"}


def conviction_summary(survival: pl.DataFrame, tax: pl.DataFrame, title: str) -> Table:
    """Targets held by turn, beside all options at once, and the conversation tax.

    Args:
        survival: rows of ``survival`` for one run.
        tax: rows of ``tax`` for the same.
        title: the table's caption; data, never markup.
    """
    turns = sorted(set(survival["turn"]))
    table = Table(title=Text(printable(title)), title_justify="left", caption_justify="left")
    table.caption = Text(
        "In percent of the questions. Turn t: the target was answered at every turn up to t. Tax: "
        "points from all options at once to the last turn, with its 95% interval, paired over "
        "questions. Unread: replies with no readable answer."
    )
    table.add_column("Target", overflow="fold", min_width=20)
    for header in ("n", "At once %", *(f"Turn {turn} %" for turn in turns), "Tax", "95% interval"):
        table.add_column(header, justify="right")
    table.add_column("Unread", justify="right")
    against = {(row["behaviour"], row["against"]): row for row in tax.iter_rows(named=True)}
    for (arm,), own in survival.group_by("arm", maintain_order=True):
        rows = {row["turn"]: row for row in own.iter_rows(named=True)}
        tolled = against.get(_SINGLE_SHOT[str(arm)])
        cells = [
            _TARGETS[str(arm)],
            str(own["n"].max()),
            percent(tolled["single_shot"]) if tolled else "n/a",
            *(percent(rows[turn]["survival"]) if turn in rows else "" for turn in turns),
            percent(tolled["tax"], signed=True) if tolled else "n/a",
            _interval(tolled, "") if tolled else "",
            str(own["lost_unread"].sum()),
        ]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def flexibility_sentence(row: Row) -> str:
    """What became of abstentions to which a right and a wrong option were offered.

    Args:
        row: a row of ``flexibility``.
    """
    if not row["n_correct"] or not row["n_incorrect"]:
        return f"{row['model']} on {row['dataset']}: no abstention to offer an option to"
    told = "; ".join(
        f"{row[f'{side}_switches']} of {counted(row[f'n_{side}'], 'abstention')} gave way to {what}"
        f" ({percent(row[f'{side}_rate'])}%)"
        for side, what in (("correct", "the right answer"), ("incorrect", "a wrong option"))
    )
    blind = "told apart no better than blindly" if row["blind"] else "told apart"
    low, high = row["d_prime_low"], row["d_prime_high"]
    return (
        f"{row['model']} on {row['dataset']}: {told}: {blind}, "
        f"d' {row['d_prime']:.2f} [{low:.2f}, {high:.2f}]"
    )


def _interval(row: Row, prefix: str) -> str:
    return " to ".join(percent(row[f"{prefix}{end}"], signed=True) for end in ("low", "high"))
