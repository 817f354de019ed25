"""Command ``holdfast score``, which parses the replies of finished runs again."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.errors import InputError, counted, printable

from . import options

if TYPE_CHECKING:
    from holdfast.running.rescoring import Scored


@options.taking(
    "log_dir",
    options.of_run(
        "model_role",
        help="reader=MODEL (only replies the rules cannot parse) or reader-all=MODEL.",
    ),
    "call_limit", "token_limit", "cost_limit", "prices", "max_connections", "max_retries",
    "no_text", "as_json",
)  # fmt: skip
def score(
    log_dir: Annotated[
        str, typer.Argument(metavar="LOGDIR", help="Log directory of finished runs.")
    ],
    as_json: options.AsJson = False,
    **arguments: Any,
) -> None:
    """Parse replies of finished runs again, with the current rules and an optional reader.

    Calls no model under test. Leaves the logs unchanged and stores the new results next to them.

    Example: holdfast score runs --model-role reader=openai/gpt-5-mini
    """
    from dataclasses import asdict

    from inspect_ai.model import GenerateConfig

    from holdfast.dialogue.budget import Budget
    from holdfast.protocols.protocol import READER, READER_ALL
    from holdfast.running import models
    from holdfast.running.log_dir import as_log_dir, kept_in
    from holdfast.running.rescoring import Scoring

    from .outcome import Drawn

    log_dir = as_log_dir(log_dir)
    models.load_prices(arguments["prices"])
    roles = models.roles(arguments["model_role"] or ())
    for role in roles.keys() - {READER, READER_ALL}:
        raise InputError(
            f"'score' does not use the role '{role}'",
            field="--model-role",
            remedy=f"Give {READER}=MODEL or {READER_ALL}=MODEL",
        )
    models.check_prices([*roles.values()], arguments["cost_limit"])
    limits = (arguments["call_limit"], arguments["token_limit"], arguments["cost_limit"])
    turns, runs = Scoring(
        log_dir,
        roles.get(READER) or roles.get(READER_ALL),
        reads_all=READER_ALL in roles,
        budget=Budget(*limits, kept_in(log_dir)),
        generation=GenerateConfig(
            max_retries=arguments["max_retries"], max_connections=arguments["max_connections"]
        ),
        text=not arguments["no_text"],
        progress=Drawn(),
    ).run()
    if as_json:
        facts = {"log_dir": log_dir, "turns": turns, "runs": [asdict(run) for run in runs]}
        options.print_json(facts)
        return
    for line in [*(line for run in runs for line in _lines(run)), f"Turns: {turns}"]:
        sys.stdout.write(f"{printable(line)}\n")


def _lines(run: "Scored") -> Iterator[str]:
    """Yield the lines that describe one rescored run."""
    from holdfast.results.runs import system_of

    study = f"{system_of(vars(run))} on {run.dataset}: {run.protocol}"
    yield f"{study}: {counted(run.read, 'turn')} parsed again, {run.changed} changed"
    if run.lacking:
        yield (
            f"  {counted(run.lacking, 'turn')} could not be parsed again, because the log lacks "
            "the options"
        )
    if run.elsewhere:
        yield (
            f"  {counted(run.elsewhere, 'conversation')} would have continued differently. Run "
            "the study again in a new log directory"
        )
    if run.calls or run.cached:
        counts = ", ".join(f"{n} {status}" for status, n in run.readings.items())
        calls = f"{counted(run.calls, 'call')}, {run.cached} from the cache, {run.tokens} tokens"
        yield f"  reader: {counts}; {calls}" + (f", ${run.cost:.2f}" if run.cost else "")
