"""``holdfast reread``: replies read again, without asking the model that gave them."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import counted, printable

from . import options

if TYPE_CHECKING:
    from .rereading import Reread


def reread(
    log_dir: Annotated[str, typer.Argument(metavar="LOGDIR", help="Log dir of finished runs.")],
    reader: options.Reader = None,
    reader_all: options.ReaderAll = False,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    max_connections: options.MaxConnections = None,
    max_retries: options.MaxRetries = 8,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave prompts and replies out of the turns table.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Read the replies of finished runs again, by the rules of this version and by a reader.

    No model under test is asked. Logs stay as they are; the readings are left beside them.

    Example: holdfast reread runs --reader openai/gpt-5-mini
    """
    from inspect_ai.model import GenerateConfig

    from holdfast.dialogue import Budget
    from holdfast.protocols import READER, READER_ALL

    from . import settings
    from .log_dir_lock import kept_in
    from .rereading import Rereading

    log_dir = settings.as_log_dir(log_dir)
    settings.load_prices(prices)
    roles = settings.roles(settings.role_arguments(None, reader=reader, reader_all=reader_all))
    settings.check_prices([*roles.values()], max_cost)
    rereading = Rereading(
        log_dir,
        roles.get(READER) or roles.get(READER_ALL),
        every=READER_ALL in roles,
        budget=Budget(max_calls, max_tokens, max_cost, kept_in(log_dir)),
        generation=GenerateConfig(max_retries=max_retries, max_connections=max_connections),
        text=not no_text,
    )
    turns, runs = rereading.run()
    if as_json:
        told = {"log_dir": log_dir, "turns": turns, "runs": [asdict(run) for run in runs]}
        sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
        return
    for line in [*(line for run in runs for line in _lines(run)), f"Turns: {turns}"]:
        sys.stdout.write(f"{printable(line)}\n")


def _lines(run: "Reread") -> Iterator[str]:
    """One run, for people."""
    yield (
        f"{run.model} on {run.dataset}: {run.protocol}: {counted(run.read, 'turn')} read again, "
        f"{run.changed} changed"
    )
    if run.lacking:
        yield (
            f"  {counted(run.lacking, 'turn')} cannot be read again: the log lacks the options "
            "that they were read against"
        )
    if run.elsewhere:
        yield (
            f"  {counted(run.elsewhere, 'conversation')} would have gone elsewhere: run it again "
            "in a new log dir"
        )
    if run.calls or run.cached:
        ended = ", ".join(f"{n} {status}" for status, n in run.readings.items())
        spent = f"{counted(run.calls, 'call')}, {run.cached} from the cache, {run.tokens} tokens"
        yield f"  reader: {ended}; {spent}" + (f", ${run.cost:.2f}" if run.cost else "")
