"""``holdfast run``, ``plan`` and ``demo``: a study put to models."""

import inspect
import sys
from typing import Annotated, Any

import typer

import holdfast
from holdfast.declared import DEMO, PROTOCOLS
from holdfast.errors import IncompleteRunError, InputError, InterruptedRunError, counted
from holdfast.files import write_whole
from holdfast.running.options import REPLY_TOKENS

from . import options


@options.taking(
    "protocols", "model", "questions", *options.RUN, "shards", "ray", "shard", "as_json"
)
def run(
    protocols: Annotated[
        list[str],
        typer.Argument(metavar="PROTOCOL", help=f"{', '.join(PROTOCOLS)}."),
    ],
    model: Annotated[
        list[str],
        typer.Option(help="Model as Inspect names it, such as openai/gpt-4.1. Repeatable."),
    ] = [],  # noqa: B006 (Typer copies it)
    questions: options.QuestionSets = ["bank"],  # noqa: B006
    shards: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes that share the questions.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(help="Address of a Ray cluster for the shards; local starts one here."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="K/N: only the K-th of N shards, in this process.")
    ] = None,
    as_json: options.AsJson = False,
    **given: Any,
) -> None:
    """Run protocols on models.

    The same command continues a run that was cut short; nothing finished is asked again.

    Example: holdfast run followup --model openai/gpt-4.1 --limit 50
    """
    from .outcome import Drawn, printed, printed_tables

    if shard and (shards or ray):
        raise InputError(
            "runs one shard, --shards and --ray run all of them",
            field="--shard",
            remedy="Leave one of them out",
        )
    named = {"protocols": protocols, "model": model, "questions": questions}
    if shard:
        _run_shard({**given, **named}, shard, as_json=as_json)
        return
    printed_tables()  # what is missing for them is named before a call is paid for
    outcome = holdfast.run(
        protocols, model, questions, shards=shards, ray=ray, progress=Drawn(), **given
    )
    if not (as_json and outcome.interrupted):
        printed(outcome, as_json=as_json)
    if outcome.interrupted:
        raise InterruptedRunError
    if outcome.unfinished:
        raise IncompleteRunError(outcome.unfinished)


def _run_shard(given: dict[str, Any], shard: str, *, as_json: bool) -> None:
    from holdfast.running.run import resolved
    from holdfast.running.shard import Shard
    from holdfast.running.shards import run_shard

    from .outcome import Drawn

    running = resolved(given, Drawn())
    report = run_shard(running, Shard.parse(shard))
    if as_json:
        left = {"missing": report.missing, "reasons": report.reasons}
        told = {"shard": str(report.shard), **report.spent, **left}
        options.print_json(told | {"complete": not report.missing})
    else:
        sys.stdout.write(f"{report}\n")
    if report.unfinished:
        raise IncompleteRunError(report.unfinished)


def plan(reply_tokens: int, as_json: bool, **given: Any) -> None:
    """Count generations, tokens and dollars before a model is called.

    Takes every option of 'run', so the same command line can be planned and run. Generations are
    exact (bounds where a study adapts); tokens and cost are estimates.

    Example: holdfast plan followup --model openai/gpt-4.1 --prices prices.json
    """
    from holdfast.render import render

    for name in ("shards", "ray", "shard"):  # nothing is asked
        del given[name]
    named = (given.pop("protocols"), given.pop("model"), given.pop("questions"))
    found = holdfast.plan(*named, reply_tokens=reply_tokens, **given)
    sys.stderr.writelines(f"{line}\n" for line in found.lacking)
    told_of = {path for line in found.lacking for path in line.paths}
    for path, reason, n in found.left_out:
        if path not in told_of:
            sys.stderr.write(f"{path}: left out for {counted(n, 'question')} ({reason})\n")
    sys.stdout.write(render(found.table, "json" if as_json else "md"))


_REPLY_TOKENS = Annotated[
    int, typer.Option(min=1, max=options.MOST, help="Assumed length of a reply, in tokens.")
]
options.taking(
    *inspect.signature(run).parameters.values(),
    options.keyword("reply_tokens", REPLY_TOKENS, _REPLY_TOKENS),
)(plan)


def demo(
    log_dir: Annotated[str, typer.Option(help="Where logs and the turns table go.")] = "runs/demo",
) -> None:
    """Run the bundled bank on two simulated models, without key or network.

    Example: holdfast demo
    """
    from holdfast.running.log_dir import as_log_dir

    from .outcome import Drawn, printed

    log_dir = as_log_dir(log_dir)
    models = ["simulated/claude-sonnet-4", "simulated/steadfast"]
    outcome = holdfast.run(models=models, log_dir=log_dir, progress=Drawn(), **DEMO)
    printed(outcome, as_json=False)
    page = f"{log_dir}/report.html"
    write_whole(holdfast.report(log_dir, title="holdfast demo").html, page)
    sys.stdout.write(f"Report: {page} (open it in a browser)\n")
