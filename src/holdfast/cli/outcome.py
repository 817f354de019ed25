"""What a run left behind, for people and for machines."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.dialogue import CUT_OFF, Budget
from holdfast.errors import InputError, counted, printable
from holdfast.report import (
    attack_sentences,
    attack_table,
    conviction_summary,
    flexibility_sentence,
    human_line,
    render,
    summary_table,
)
from holdfast.results import (
    ATTACKER,
    TABLES,
    check_read_alike,
    compounding_summary,
    errors,
    is_simulated,
    sent_otherwise,
)

from .preparing import Prepared

_MEASURES = {
    name: TABLES[name]
    for name in (
        "accuracy", "flips", "survival", "tax", "flexibility", "attacks", "attack-summary",
        "faithfulness", "reading",
    )
}  # fmt: skip
"""What is printed of every run."""


@dataclass(frozen=True)
class Outcome:
    """What a run left behind.

    Attributes:
        log_dir: where the logs are.
        turns: path of the turns table.
        budget: what this call of the command has spent.
        table: the turns, without texts.
        left_out: by technique path, how many questions lacked what it needs, and what that is.
        questions_left_out: by question set, how many known defects of it were not asked.
        remarks: what of the inputs was not used.
        prepared: what was generated before the run.
        unfinished: what is missing and why, empty when the run is complete.
        interrupted: whether the user has stopped it.
    """

    log_dir: str
    turns: str
    budget: Budget
    table: pl.DataFrame
    left_out: Mapping[str, Counter[str]]
    questions_left_out: Mapping[str, int]
    remarks: Sequence[str]
    prepared: Sequence[Prepared]
    unfinished: str
    interrupted: bool = False

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "log_dir": self.log_dir,
            "turns": self.turns,
            "complete": not self.unfinished,
            "unfinished": self.unfinished,
            "calls": self.budget.calls,
            "cached": self.budget.cached,
            "tokens": self.budget.tokens,
            "cost": self.budget.cost,
            "estimated_calls": self.budget.estimated,
            "left_out": {path: dict(reasons) for path, reasons in self.left_out.items()},
            "questions_left_out": dict(self.questions_left_out),
            "remarks": list(self.remarks),
            "cut_off": cut_off(self.table).to_dicts(),
            "answered_by": answered_by(self.table).to_dicts(),
            "sent_otherwise": sent_otherwise(self.table).to_dicts(),
            "prepared": [made.as_json(spent=False) for made in self.prepared],
            **{
                name: json.loads(render(measure(self.table), "json"))
                for name, measure in _MEASURES.items()
            },
        }

    def print(self) -> None:
        """For people: a summary table for each study, then where everything is."""
        console = Console()
        if not console.is_terminal:
            console = Console(width=110)
        measured = {name: measure(self.table) for name, measure in _MEASURES.items()}
        for (run, model, dataset, protocol), _ in measured["accuracy"].group_by(
            "run", "model", "dataset", "protocol", maintain_order=True
        ):
            title = f"{model} on {dataset}: {protocol}"
            if is_simulated(str(model)):
                title += "  [SIMULATED: a parametric responder, not a measurement of a model]"
            console.print()
            own = {name: rows.filter(pl.col("run") == run) for name, rows in measured.items()}
            for part in _summary(own, title):
                console.print(part, soft_wrap=isinstance(part, Text))
        for row in measured["reading"].filter(pl.col("arm").is_null()).iter_rows(named=True):
            console.print(Text(printable(_read(row))), soft_wrap=True)
        for line in _read_unlike(self.table):
            console.print(Text(printable(line)), soft_wrap=True)
        for row in compounding_summary(self.table).iter_rows(named=True):
            if row["chains"]:
                told = f"{row['model']}: {row['sub_additive']} of {counted(row['chains'], 'chain')}"
                told += f" sub-additive, {row['recovered']} better than their worst part alone"
                console.print(Text(printable(told)))
        for path, reasons in self.left_out.items():
            for reason, n in reasons.items():
                console.print(Text(f"{path}: left out for {counted(n, 'question')} ({reason})"))
        for line in [*self.remarks, *(line for made in self.prepared for line in made.lines())]:
            console.print(Text(printable(line)), soft_wrap=True)
        for name, n in self.questions_left_out.items():
            console.print(Text(f"{name}: {counted(n, 'question')} left out (identical options)"))
        for row in errors(self.table).iter_rows(named=True):
            where = row["path"] or "first answer"
            console.print(
                Text(f"{row['model']}, {where}: {counted(row['n'], 'turn')} failed ({row['rule']})")
            )
        for row in cut_off(self.table).iter_rows(named=True):
            told = f"{row['model']}: {counted(row['n'], 'reply').replace('replys', 'replies')}"
            told += f" cut off by the limit of tokens, {row['unread']} of them without an answer"
            console.print(Text(printable(told)))
        for row in answered_by(self.table).iter_rows(named=True):
            told = f"{row['model']}: {counted(row['n'], 'turn')} answered by '{row['answered_by']}'"
            console.print(Text(printable(told)))
        for row in sent_otherwise(self.table).iter_rows(named=True):
            told = f"{row['model']}: not asked as set, {counted(row['n'], 'turn')}: "
            console.print(Text(printable(told + row["sent_otherwise"])), soft_wrap=True)
        spent = f"{self.budget.calls} calls, {self.budget.cached} from the cache"
        spent += f", {self.budget.tokens} tokens"
        if self.budget.cost:
            spent += f", ${self.budget.cost:.2f}"
        if self.budget.estimated:
            spent += f" (estimated for {counted(self.budget.estimated, 'call')}, of which the "
            spent += "server told no tokens)"
        console.print(Text(f"Spent: {spent}"), soft_wrap=True)
        console.print(Text(f"Logs:  {self.log_dir} (inspect view --log-dir {self.log_dir})"))
        console.print(Text(f"Turns: {self.turns}"), soft_wrap=True)


_UNDER_TEST = pl.col("arm") != ATTACKER
"""Turns of the model that the table names; an attacker's own are beside them."""


def cut_off(turns: pl.DataFrame) -> pl.DataFrame:
    """Replies that the limit of tokens cut off, by model, and how many gave no answer."""
    cut = turns.filter(pl.col("stop").is_in(CUT_OFF), ~pl.col("shared"), _UNDER_TEST)
    return cut.group_by("model", maintain_order=True).agg(
        n=pl.len(), unread=(pl.col("status") != "parsed").sum()
    )


def answered_by(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns that a server says another model has answered than the one asked."""
    asked = pl.col("model").str.split("/").list.last()
    answered = pl.col("answered_by").str.split("/").list.last()
    other = turns.filter(answered != asked, _UNDER_TEST)
    return other.group_by("model", "answered_by", maintain_order=True).agg(n=pl.len())


def _read(row: Mapping[str, Any]) -> str:
    """What a reader has read of a run."""
    who = f"{row['reader']}{' [SIMULATED]' if is_simulated(row['reader']) else ''}"
    return (
        f"{row['model']}, {row['protocol']}: {who} was given "
        f"{counted(row['n'] + row['unreadable'], 'turn')} to read and found an answer in "
        f"{row['n'] - row['reader_none']} (none in {row['reader_none']}, "
        f"{row['unreadable']} unreadable)"
    )


def _read_unlike(turns: pl.DataFrame) -> Iterator[str]:
    """Runs whose replies different rules or readers have read, as a run that went on later has."""
    for (_, model, protocol), own in turns.group_by(
        "run", "model", "protocol", maintain_order=True
    ):
        try:
            check_read_alike({"this run": own})
        except InputError as error:
            yield f"{model}, {protocol}: {error}"


def _summary(own: Mapping[str, pl.DataFrame], title: str) -> Iterator[Table | Text]:
    """What one run says of itself, by its protocol's own measures."""
    if own["survival"].height:
        yield conviction_summary(own["survival"], own["tax"], title)
        for row in own["flexibility"].iter_rows(named=True):
            yield Text(printable(flexibility_sentence(row)))
    elif own["attacks"].height:
        yield attack_table(own["attacks"], title)
        for row in own["attack-summary"].iter_rows(named=True):
            for told in attack_sentences(row, own["faithfulness"]):
                yield Text(printable(told))
        yield Text(human_line())
    else:
        yield summary_table(own["accuracy"], own["flips"], title)
