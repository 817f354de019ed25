"""Output of a run: progress while it runs, and the summary at its end."""

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import polars as pl
from inspect_ai.model import Model
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from holdfast.dialogue.budget import Budget
from holdfast.dialogue.turn import CUT_OFF
from holdfast.errors import InputError, counted, printable
from holdfast.render.reported import REPORTS, report_of
from holdfast.render.tables import render
from holdfast.render.terminal import Summary, fitted, summary_of_challenges
from holdfast.report.decision import opening
from holdfast.results import declaration
from holdfast.results.arms import in_arms
from holdfast.results.declaration import TABLES
from holdfast.results.grid import percent
from holdfast.results.missing import hard_to_read, missing_notes
from holdfast.results.readings import check_read_alike
from holdfast.results.records import errors, sent_otherwise
from holdfast.results.runs import is_simulated, system_of
from holdfast.running.models import price_of
from holdfast.running.progress import Progress
from holdfast.running.resolved import Outcome

from . import options

_Turns = TypeVar("_Turns", pl.DataFrame, pl.LazyFrame)

HARD_TO_READ = 0.05
"""Share of unparsed replies above which the summary opens with a warning."""


_OFTEN = 0.1
"""Seconds between two updates of the bar."""


class Drawn(Progress):
    """Progress bar on standard error, with lines above the bar."""

    _bar: Bar | None = None

    def say(self, line: str) -> None:
        """Print one line, above the bar if there is one."""
        if self._bar:
            self._bar.console.print(Text(line), soft_wrap=True)
        else:
            super().say(line)

    @contextmanager
    def asking(self, budget: Budget, total: int | None) -> Iterator[None]:
        """Draw a bar that advances with the budget's count of answered requests."""
        bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[cost]}"),
            console=Console(stderr=True),
            transient=True,
        )
        turns = bar.add_task("asking", total=total, rate="", cost="")
        before, last = budget.calls + budget.cached, 0.0

        def advance(budget: Budget) -> None:
            nonlocal last
            if time.monotonic() - last < _OFTEN:  # a redraw costs more than a request
                return
            last = time.monotonic()
            speed = bar.tasks[turns].speed
            bar.update(
                turns,
                completed=budget.calls + budget.cached - before,
                rate=f"{speed:.0f}/s" if speed else "",
                cost=f"${budget.cost:.2f}" if budget.cost else "",
            )

        budget.on_turn = advance
        with bar:
            self._bar = bar
            try:
                yield
            finally:
                self._bar = None


def printed(outcome: Outcome, *, as_json: bool) -> None:
    """Print an outcome as JSON, or as a summary of each study followed by notes."""
    if as_json:
        options.print_json(_as_json(outcome))
        return
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=110)

    def say(line: str, *, wrap: bool = False) -> None:
        console.print(Text(line), soft_wrap=not wrap)

    table = outcome.run_turns
    for line in _hard_to_read(outcome):
        say(printable(line))
    tables = _compute_tables(table)
    for (run, model, dataset, protocol), _ in tables["accuracy"].group_by(
        "run", "model", "dataset", "protocol", maintain_order=True
    ):
        title = f"{system_of({'model': model, 'run': run})} on {dataset}: {protocol}"
        if is_simulated(str(model)):
            title += "  [SIMULATED: not a measurement of a model]"
        console.print()
        run_tables = {name: rows.filter(pl.col("run") == run) for name, rows in tables.items()}
        for part in _summary(str(protocol), run_tables, title):
            if isinstance(part, str):
                say(printable(part))
            else:
                fits = fitted(part, console.width) if isinstance(part, Summary) else part
                console.print(fits)
    for line in missing_notes(
        tables["accuracy"].to_dicts(), lambda row: f"{system_of(row)}, {row['protocol']}"
    ):
        say(printable(line), wrap=True)
    for row in tables["reading"].filter(pl.col("arm").is_null()).iter_rows(named=True):
        say(printable(_reader_line(row)))
    for row in tables["replays"].iter_rows(named=True):
        say(printable(_replay_line(row)), wrap=True)
    for line in _read_unlike(table):
        say(printable(line))
    for report in REPORTS.values():
        for line in report.remarks(table) if report.remarks else ():
            say(printable(line), wrap=True)
    for lack in outcome.lacking:
        say(printable(str(lack)))
    told_of = {path for lack in outcome.lacking for path in lack.paths}
    for path, reasons in outcome.left_out.items():
        for reason, n in reasons.items() if path not in told_of else ():
            say(f"{path}: skipped for {counted(n, 'question')} ({reason})", wrap=True)
    for line in [
        *outcome.remarks,
        *(line for file in outcome.prepared for line in file.lines()),
    ]:
        say(printable(line))
    for name, n in outcome.questions_left_out.items():
        say(f"{name}: {counted(n, 'question')} skipped (identical options)", wrap=True)
    for line in _malfunctions(table):
        say(line, wrap=True)
    for row in sent_otherwise(table).iter_rows(named=True):
        mismatch_line = (
            f"{row['model']}: {counted(row['n'], 'turn')} sent with other settings than given: "
        )
        say(printable(mismatch_line + row["sent_otherwise"]))
    say(f"Spent: {spent(outcome.budget, outcome.models)}")
    say(f"Logs:  {outcome.log_dir} (inspect view --log-dir {outcome.log_dir})", wrap=True)
    say(f"Turns: {outcome.turns}")
    if table.height:
        say(f"\n{printable(' '.join(opening(table)))}")
    behind = table.filter(pl.col("defence") != "none")
    more = (
        ""
        if behind.is_empty()
        else f", holdfast table {outcome.log_dir} --table defences --by model"
    )
    say(f"Next:  holdfast report {outcome.log_dir}{more}")


def _as_json(outcome: Outcome) -> dict[str, Any]:
    table, budget = outcome.run_turns, outcome.budget
    tables = _compute_tables(table)
    return {
        "log_dir": outcome.log_dir,
        "turns": outcome.turns,
        "complete": not outcome.unfinished,
        "unfinished": outcome.unfinished,
        "calls": budget.calls,
        "cached": budget.cached,
        "tokens": budget.tokens,
        "cost": budget.cost,
        "estimated_calls": budget.estimated,
        "left_out": {path: dict(reasons) for path, reasons in outcome.left_out.items()},
        "questions_left_out": dict(outcome.questions_left_out),
        "remarks": list(outcome.remarks),
        "cut_off": _cut_off(table).to_dicts(),
        "answered_by": _answered_by(table).to_dicts(),
        "sent_otherwise": sent_otherwise(table).to_dicts(),
        "prepared": [file.as_json(with_spending=False) for file in outcome.prepared],
        # every run has the names of all tables, which scripts rely on
        **{
            name: json.loads(render(tables[name], "json")) if name in tables else []
            for name in printed_tables()
        },
    }


def _malfunctions(table: pl.DataFrame) -> Iterator[str]:
    """Yield lines on turns that failed, were cut off, or were answered by another model."""
    for row in errors(table).iter_rows(named=True):
        where = row["path"] or "first answer"
        yield f"{row['model']}, {where}: {counted(row['n'], 'turn')} failed ({row['rule']})"
    for row in _cut_off(table).iter_rows(named=True):
        trouble = f"{row['model']}: {counted(row['n'], 'reply').replace('replys', 'replies')}"
        trouble += f" cut off by the token limit, {row['unread']} of them without an answer"
        yield printable(trouble)
    for row in _answered_by(table).iter_rows(named=True):
        trouble = f"{row['model']}: {counted(row['n'], 'turn')} answered by '{row['answered_by']}'"
        yield printable(trouble)


def _hard_to_read(outcome: Outcome) -> Iterator[str]:
    """Yield a warning for each model with many unparsed replies, with examples and a remedy."""
    turns = pl.scan_parquet(outcome.turns) if outcome.turns.endswith(".parquet") else None
    texts = turns if turns is not None and "reply" in turns.collect_schema() else None
    for reply_row in hard_to_read(outcome.run_turns, HARD_TO_READ, texts):
        yield (
            f"{reply_row.model}: {reply_row.unread / reply_row.replies:.0%} of "
            f"{reply_row.replies} replies could not be parsed. They count as wrong. For "
            "example:"
        )
        for reply in reply_row.examples:
            words = " ".join(reply.split())
            yield f"  {words[:200]}{'...' if len(words) > 200 else ''}"
        yield (
            f"  Let a second model read them: holdfast score {outcome.log_dir} --model-role "
            "reader=MODEL. If replies are cut off, raise --max-tokens."
        )


def _tested_turns(turns: _Turns) -> _Turns:
    """Return the turns of the model under test, without turns of helper models."""
    return turns.filter(~in_arms(lambda protocol_turns: protocol_turns.helpers))


def spent(budget: Budget, models: Sequence[Model]) -> str:
    """Return a sentence with the calls, tokens and dollars that a command has spent."""
    spending = f"{budget.calls} calls, {budget.cached} from the cache, {budget.tokens} tokens"
    models_without_price = [
        str(model) for model in models if not is_simulated(str(model)) and not price_of(str(model))
    ]
    if budget.cost:
        spending += f", ${budget.cost:.2f}"
    if budget.estimated:
        spending += f" (estimated for {counted(budget.estimated, 'call')}; the server reported "
        spending += "no tokens)"
    if models_without_price and budget.calls:
        spending += (
            f" (no price known for {', '.join(sorted(models_without_price))}: give --prices FILE)"
        )
    return spending


def _cut_off(turns: pl.DataFrame) -> pl.DataFrame:
    """Count replies cut off by the token limit, and how many were unparsed, by model."""
    cut = _tested_turns(turns).filter(pl.col("stop").is_in(CUT_OFF), ~pl.col("shared"))
    return cut.group_by("model", maintain_order=True).agg(
        n=pl.len(), unread=(pl.col("status") != "parsed").sum()
    )


def _answered_by(turns: pl.DataFrame) -> pl.DataFrame:
    """Count turns that, according to the server, another model answered."""
    requested_model = pl.col("model").str.split("/").list.last()
    answering_model = pl.col("answered_by").str.split("/").list.last()
    mismatches = _tested_turns(turns).filter(answering_model != requested_model)
    return mismatches.group_by("model", "answered_by", maintain_order=True).agg(n=pl.len())


def _reader_line(row: Mapping[str, Any]) -> str:
    """Return a sentence about a second reader's work on a run."""
    who = f"{row['reader']}{' [SIMULATED]' if is_simulated(row['reader']) else ''}"
    return (
        f"{row['model']}, {row['protocol']}: {who} read "
        f"{counted(row['n'] + row['unreadable'], 'turn')} and found an answer in "
        f"{row['n'] - row['reader_none']} (no answer in {row['reader_none']}, unusable verdict "
        f"in {row['unreadable']})"
    )


def _replay_line(row: Mapping[str, Any]) -> str:
    """Return a sentence about the replies to turns that an assistant was sent again."""
    differ, moved = (
        f"{percent(row[f'{name}_share'])}% [{percent(row[f'{name}_low'])}, "
        f"{percent(row[f'{name}_high'])}]"
        for name in ("differ", "moved")
    )
    return (
        f"{system_of(row)}, {row['protocol']}: {row['replays']} replies were asked for again, "
        f"because each branch has a session of its own. {differ} came out otherwise, {moved} with "
        "another answer"
    )


def _read_unlike(turns: pl.DataFrame) -> Iterator[str]:
    """Yield a line for each run whose replies were read by different rules or readers.

    This happens when a run is resumed with another version or reader.
    """
    for (_, model, protocol), study_turns in turns.group_by(
        "run", "model", "protocol", maintain_order=True
    ):
        try:
            check_read_alike({"this run": study_turns})
        except InputError as error:
            yield f"{model}, {protocol}: {error}"


def printed_tables(protocols: Collection[str] | None = None) -> dict[str, declaration.Table]:
    """Return the tables that are printed after a run of these protocols, None for all of them.

    Raises:
        InputError: a module that declares tables or reports is missing.
    """
    reports = [report for name, report in REPORTS.items() if protocols is None or name in protocols]
    table_names = [name for report in reports for name in report.tables]
    names = ("accuracy", "flips", *table_names, "reading", "replays")
    return {name: TABLES[name] for name in names}


def _compute_tables(turns: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the printed tables of the protocols that ran."""
    tables = printed_tables(set(turns["protocol"].unique()))
    return {name: table(turns) for name, table in tables.items()}


def _summary(protocol: str, tables: Mapping[str, pl.DataFrame], title: str) -> list[Table | str]:
    """Return the summary of one run by its protocol's measures, or else by challenge."""
    summary = report_of(protocol).summary
    parts = list(summary(tables, title)) if summary else []
    return parts or [summary_of_challenges(tables["accuracy"], tables["flips"], title)]
