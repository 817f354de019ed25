"""What a run left behind, for people and for machines."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from inspect_ai.model import Model
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.dialogue import CUT_OFF, Budget
from holdfast.errors import InputError, counted, printable
from holdfast.report import (
    attack_sentences,
    attack_table,
    conviction_summary,
    fitted,
    flexibility_sentence,
    headline,
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

from .estimating import Lacking
from .preparing import Prepared
from .settings import price_of

_MEASURES = {
    name: TABLES[name]
    for name in (
        "accuracy", "flips", "survival", "tax", "flexibility", "attacks", "attack-summary",
        "faithfulness", "reading",
    )
}  # fmt: skip
"""What is printed of every run."""


HARD_TO_READ = 0.05
"""Share of replies without a readable answer above which a run says so first."""


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
        models: who was asked, helpers too.
        lacking: techniques left out of every question because there are no contexts.
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
    models: Sequence[Model] = ()
    lacking: Sequence[Lacking] = ()

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
        for line in self._hard_to_read():
            console.print(Text(printable(line)), soft_wrap=True)
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
                shown = fitted(part, console.width) if isinstance(part, Table) else part
                console.print(shown, soft_wrap=isinstance(part, Text))
        for row in measured["reading"].filter(pl.col("arm").is_null()).iter_rows(named=True):
            console.print(Text(printable(_read(row))), soft_wrap=True)
        for line in _read_unlike(self.table):
            console.print(Text(printable(line)), soft_wrap=True)
        for row in compounding_summary(self.table).iter_rows(named=True):
            if row["chains"]:
                told = f"{row['model']}: {row['sub_additive']} of {counted(row['chains'], 'chain')}"
                told += f" sub-additive, {row['recovered']} better than their worst part alone"
                console.print(Text(printable(told)))
        for lack in self.lacking:
            console.print(Text(printable(str(lack))), soft_wrap=True)
        told_of = {path for lack in self.lacking for path in lack.paths}
        for path, reasons in self.left_out.items():
            for reason, n in reasons.items() if path not in told_of else ():
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
        console.print(Text(f"Spent: {spent(self.budget, self.models)}"), soft_wrap=True)
        console.print(Text(f"Logs:  {self.log_dir} (inspect view --log-dir {self.log_dir})"))
        console.print(Text(f"Turns: {self.turns}"), soft_wrap=True)
        if self.table.height:
            console.print(
                Text(f"\n{printable(headline(self.table, draw=False).sentence)}."), soft_wrap=True
            )
        console.print(Text(f"Next:  holdfast report {self.log_dir}"), soft_wrap=True)

    def _hard_to_read(self) -> Iterator[str]:
        """Models many of whose replies gave no answer, with two of those replies."""
        unreadable = pl.col("status").is_in(("none", "ambiguous"))
        replies = self.table.filter(~pl.col("shared"), pl.col("status") != "error", _UNDER_TEST)
        for (model,), own in replies.group_by("model", maintain_order=True):
            unread = own.filter(unreadable)
            if unread.height <= HARD_TO_READ * own.height:
                continue
            yield (
                f"{model}: {unread.height / own.height:.0%} of {own.height} replies could not be "
                "read. They count as wrong. Two of them:"
            )
            turns = pl.scan_parquet(self.turns) if self.turns.endswith(".parquet") else None
            if turns is not None and "reply" in turns.collect_schema():
                some = turns.filter(pl.col("model") == model, unreadable, _UNDER_TEST)
                for reply in some.head(2).collect()["reply"]:
                    said = " ".join(str(reply).split())
                    yield f"  {said[:200]}{'...' if len(said) > 200 else ''}"


def spent(budget: Budget, models: Sequence[Model]) -> str:
    """What a command has spent, in words.

    Args:
        budget: counted it.
        models: who was asked; dollars are told where the prices of all are known.
    """
    told = f"{budget.calls} calls, {budget.cached} from the cache, {budget.tokens} tokens"
    unpriced = [str(one) for one in models if not is_simulated(str(one)) and not price_of(str(one))]
    if budget.cost:
        told += f", ${budget.cost:.2f}"
    if budget.estimated:
        told += f" (estimated for {counted(budget.estimated, 'call')}, of which the server told "
        told += "no tokens)"
    if unpriced and budget.calls:
        told += f" (no price known for {', '.join(sorted(unpriced))}: give --prices FILE)"
    return told


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
