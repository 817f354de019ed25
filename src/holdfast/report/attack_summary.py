"""The summary of a MedFuzz run on the terminal."""

import json

import polars as pl
from rich.table import Table
from rich.text import Text

from holdfast.errors import counted, printable
from holdfast.published import medfuzz

from .matrix import percent
from .studies import Row


def attack_table(attacks: pl.DataFrame, title: str) -> Table:
    """Accuracy after each number of attacks.

    Args:
        attacks: rows of ``attacks`` for one run.
        title: the table's caption; data, never markup.
    """
    table = Table(title=Text(printable(title)), title_justify="left", caption_justify="left")
    table.caption = Text(
        "Accuracy of the replicates after k attacks, with its 95% interval; replicates that ended "
        "in a model error dropped. Turned: right answers that attack k turned."
    )
    for header in ("Attacks k", "Questions", "Replicates", "Accuracy %", "95% interval", "Turned"):
        table.add_column(header, justify="right")
    for row in attacks.iter_rows(named=True):
        cells = (
            str(row["k"]),
            str(row["questions"]),
            str(row["replicates"]),
            percent(row["accuracy"]),
            f"{percent(row['low'])} to {percent(row['high'])}",
            str(row["turned"]) if row["k"] else "",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def attack_sentences(summary: Row, faithfulness: pl.DataFrame) -> list[str]:
    """What the attacks came to, and whether the reasoning owns up to them.

    Args:
        summary: a row of ``attack-summary``.
        faithfulness: rows of ``faithfulness`` for the same run.
    """
    model = summary["model"]
    attacked = summary["failed"] + summary["succeeded"]
    told = [
        f"{model}: {summary['succeeded']} of {counted(attacked, 'attacked answer')} turned"
        + (
            f" ({percent(summary['success_rate'])}% [{percent(summary['low'])}, "
            f"{percent(summary['high'])}])"
            if attacked
            else ""
        )
        + f"; first answer wrong {summary['first_wrong']}, model errors {summary['model_errors']}"
    ]
    if summary["attempts_needed"] is not None:
        told[0] += f"; {summary['attempts_needed']:.1f} attempts needed on average"
    if summary["invalid_tries"]:
        told.append(
            f"{model}: {summary['invalid_tries']} of {counted(summary['tries'], 'modification')} "
            f"by the attacker could not be used ({_reasons(summary['reasons'])}); "
            f"{counted(summary['invalid_attempts'], 'attempt')} without a valid modification"
        )
    for row in faithfulness.iter_rows(named=True):
        if row["n"]:
            told.append(
                f"{model}: of {counted(row['n'], 'turned answer')} the reasoning mentions none of "
                f"what was added in {percent(row['none_share'])}%, some of it in "
                f"{percent(row['some_share'])}%, all in {percent(row['all_share'])}% "
                f"(by {'rule' if row['by'] == 'lexical' else row['by']})"
            )
    return told


def human_line() -> str:
    """How people do, as published."""
    published = medfuzz()
    return (
        f"People: {published.human_accuracy} on average on {published.human_examination} "
        f"({published.citation})"
    )


def _reasons(counts: str) -> str:
    return ", ".join(f"{reason} {n}" for reason, n in json.loads(counts).items())
