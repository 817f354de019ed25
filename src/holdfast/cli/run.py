"""Commands ``holdfast run`` and ``demo``, which run a study on models."""

import sys
from typing import Annotated, Any

import typer

import holdfast
from holdfast.errors import IncompleteRunError, InputError, InterruptedRunError, counted
from holdfast.files import write_whole
from holdfast.registry import DEMO, PROTOCOLS

from . import options

_OUTPUT_PANEL = {"rich_help_panel": options.OUTPUT}


@options.taking(
    "protocols", "model", "model_role", "model_base_url", "target", "model_args",
    "max_tokens",
    "generate_config",
    "questions", "limit", "shuffle", "epochs", "labels",
    "task_args", "seed", "defence", "allow_simulated_inputs",
    "call_limit", "token_limit", "cost_limit", "prices", "max_connections",
    options.of_run("log_dir", default=None, show_default="runs"),
    "dry_run", "until", "every", "as_json", "no_text", "shards", "ray", "shard",
)  # fmt: skip
def run(
    protocols: Annotated[
        list[str],
        typer.Argument(
            metavar="PROTOCOL", help=f"{', '.join(PROTOCOLS)}, a FILE.py, or one STUDY.toml."
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model, as Inspect names it, such as openai/gpt-4.1; http/NAME with --target; or "
            "python:FILE.py:FUNCTION. Repeatable.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    questions: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{options.QUESTION_SOURCES} Repeatable.",
            rich_help_panel=options.QUESTIONS,
            show_default="bank",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Count generations, tokens (400 per reply) and dollars. Calls no model.",
            **_OUTPUT_PANEL,
        ),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="RULES.toml",
            help="Ask in random order until these rules are decided. Exit codes are those of gate.",
            **_OUTPUT_PANEL,
        ),
    ] = None,
    every: Annotated[
        int | None, typer.Option(min=1, hidden=True, help="Questions per look of --until.")
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(min=1, max=1024, hidden=True, help="Number of processes (shards)."),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            hidden=True, help="Address of a Ray cluster for the shards, or 'local' to start one."
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(hidden=True, help="Run only shard K of N in this process (K/N)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", **_OUTPUT_PANEL)] = False,
    **arguments: Any,
) -> None:
    """Run protocols on models.

    Repeat the command to resume a run. Finished generations are never repeated.

    Example: holdfast run followup --model openai/gpt-4.1 --limit 50

    Example: holdfast run study.toml --dry-run
    """
    from holdfast.running.study_file import UNTIL, with_study_file

    _check_shards(until, shards, ray, shard)
    arguments |= {"protocols": protocols, "model": model, "questions": questions, UNTIL: until}
    # an option that is not given must not override the study file
    arguments = with_study_file(
        {name: value for name, value in arguments.items() if _is_given(value)}
    )
    rules = arguments.pop(UNTIL, None)
    if shard and not (dry_run or rules):
        _run_shard(arguments, shard, as_json=as_json)
        return
    arguments["models"] = arguments.pop("model", ())
    if dry_run:
        _print_plan(arguments, as_json=as_json)
    elif rules is not None:
        _check_shards(rules, shards, ray, shard)
        _run_until_decided(rules, arguments, every, as_json=as_json)
    else:
        _run_study(arguments, shards, ray, as_json=as_json)


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != []


def _check_shards(
    until: str | None, shards: int | None, ray: str | None, shard: str | None
) -> None:
    """Refuse shard options that cannot be combined."""
    if shard and (shards or ray):
        raise InputError(
            "cannot be combined with --shards or --ray, which run every shard",
            field="--shard",
            remedy="Remove --shard, or remove --shards and --ray",
        )
    if until and (shard or shards or ray):
        raise InputError(
            "needs one process that sees all questions",
            field="--until",
            remedy="Remove --shards, --shard and --ray",
        )


def _run_study(
    arguments: dict[str, Any], shards: int | None, ray: str | None, *, as_json: bool
) -> None:
    from .outcome import Drawn, printed, printed_tables

    printed_tables()  # a missing module must raise before a call is paid for
    split: Any = shards or (None if ray else "auto")
    outcome = holdfast.run(**arguments, shards=split, ray=ray, progress=Drawn())
    if not (as_json and outcome.interrupted):
        printed(outcome, as_json=as_json)
    if outcome.interrupted:
        raise InterruptedRunError
    if outcome.unfinished:
        raise IncompleteRunError(outcome.unfinished)


def _run_shard(arguments: dict[str, Any], shard: str, *, as_json: bool) -> None:
    from holdfast.running.resolved import resolved
    from holdfast.running.shard import Shard
    from holdfast.running.shards import run_shard

    from .outcome import Drawn

    running = resolved(arguments, Drawn())
    report = run_shard(running, Shard.parse(shard))
    if as_json:
        left = {"missing": report.missing, "reasons": report.reasons}
        content = {"shard": str(report.shard), **report.spending, **left}
        options.print_json(content | {"complete": not report.missing})
    else:
        sys.stdout.write(f"{report}\n")
    if report.unfinished:
        raise IncompleteRunError(report.unfinished)


def _print_plan(arguments: dict[str, Any], *, as_json: bool) -> None:
    from holdfast.render.tables import render

    study_plan = holdfast.plan(**arguments)
    sys.stderr.writelines(f"{line}\n" for line in study_plan.lacking)
    told_of = {path for line in study_plan.lacking for path in line.paths}
    for path, reason, n in study_plan.left_out:
        if path not in told_of:
            sys.stderr.write(f"{path}: skipped for {counted(n, 'question')} ({reason})\n")
    sys.stdout.write(render(study_plan.table, "json" if as_json else "md"))


def _run_until_decided(
    rules: str, arguments: dict[str, Any], batch: int | None, *, as_json: bool
) -> None:
    """Ask until rules are decided, print the verdicts, and exit with the code of a gate."""
    from .outcome import Drawn
    from .results import print_looked

    result = holdfast.verdict(rules, **arguments, every=batch or holdfast.BATCH, progress=Drawn())
    # only the count is used, so the inputs need no second check
    whole = holdfast.plan(**{**arguments, "allow_simulated_inputs": True})
    full_study = int(whole.table["generations"].sum())
    calls = result.calls + (result.outcome.budget.cached if result.outcome else 0)
    code = print_looked(
        result.looked, as_json=as_json, questions=result.questions, calls=result.calls,
        cost=result.cost, full_study=full_study, ended=result.ended,
    )  # fmt: skip
    if not as_json:
        cost = f", ${result.cost:,.2f}" if result.cost else ""
        sys.stdout.write(
            f"Asked: {counted(result.questions, 'question')}, {counted(calls, 'call')}{cost}. "
            f"The full study needs {full_study:,} calls.\n"
        )
        if result.ended:
            reason = "The budget is spent" if result.ended == "budget" else "No questions are left"
            sys.stdout.write(f"{reason}. Some rules are still undecided.\n")
    raise typer.Exit(code)


def demo(
    log_dir: Annotated[
        str, typer.Option(help="Log directory. The turns table is written there too.")
    ] = "runs/demo",
) -> None:
    """Run the bundled bank on two simulated models, without an API key or network.

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
