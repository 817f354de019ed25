"""``holdfast medfuzz``: the permutation test of attacks, and one attack as it went."""

import hashlib
import json
import sys
from typing import Annotated, Any

import typer

from holdfast.errors import IncompleteRunError, InputError, counted

from . import options
from .writing import write_whole

medfuzz = typer.Typer(help="Test and show attacks.", no_args_is_help=True, rich_markup_mode=None)

LogDir = Annotated[str, typer.Argument(metavar="LOGDIR", help="Log dir of a medfuzz run.")]
Ids = Annotated[
    list[str] | None, typer.Option("--id", help="Id of a question; all, unless given. Repeatable.")
]


@medfuzz.command("test")
def permute(
    log_dir: LogDir,
    id: Ids = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, max=options.MOST, help="Attacks of each run, the best for review first."
        ),
    ] = None,
    controls: Annotated[
        int, typer.Option(min=1, max=10_000, help="Control fuzzes for each attack, M.")
    ] = 30,
    samples: Annotated[
        int, typer.Option(min=1, max=10_000, help="Direct answers that estimate each probability.")
    ] = 5,
    exemplars: options.Exemplars = "bank",
    shots: Annotated[int, typer.Option(min=0, max=1000, help="Exemplars shown.")] = 3,
    model_role: options.Roles = None,
    seed: options.Seed = 42,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    max_connections: options.MaxConnections = None,
    max_retries: options.MaxRetries = 8,
    as_json: options.AsJson = False,
) -> None:
    """Test whether successful attacks are more than any added text (Algorithm 2).

    The models are those of the run. The same command goes on if cut short, and more controls or
    samples add to those that are there.

    Example: holdfast medfuzz test runs --id 0012
    """
    from holdfast.dialogue import Budget
    from holdfast.questions import BANK_NAME, load_questions
    from holdfast.report import render
    from holdfast.results import TABLES, successful_attacks, turns_table, write_turns

    from . import settings
    from .evaluating import Evaluation, unfinished

    log_dir = settings.as_log_dir(log_dir)
    settings.load_prices(prices)
    given = settings.roles(model_role or [])
    if exemplars != BANK_NAME:
        load_questions(exemplars)  # what is wrong leaves nothing in the log dir
    budget = Budget(max_calls, max_tokens, max_cost)
    missing: list[str] = []
    ranked = TABLES["attack-list"](turns_table([log_dir], text=False))
    for run in successful_attacks(log_dir, id or []):
        chosen = _first(run.rows, ranked, limit)
        roles = settings.recorded_roles(run.header) | given
        models = [settings.recorded_model(run.header)]
        settings.check_prices([*models, *roles.values()], max_cost)
        study = settings.attack_test(
            {
                "attacks": _left(chosen, log_dir),
                "controls": controls,
                "samples": samples,
                "exemplars": exemplars,
                "shots": shots,
                "seed": seed,
            }
        )
        settings.check_roles([study], roles)
        sys.stderr.write(f"Testing {counted(len(chosen), 'attack')} on {models[0]}\n")
        logs = Evaluation(
            [study],
            models,
            log_dir,
            roles={role: roles[role] for role in study.study.required},
            generation={"max_retries": max_retries}
            | ({"max_connections": max_connections} if max_connections else {}),
            budget=budget,
        ).run()
        if left := unfinished(logs):
            missing.append(left)
    _, turns = write_turns(log_dir)
    rows = TABLES["permutation"](turns)
    sys.stdout.write(render(rows, "json" if as_json else "md", "permutation"))
    if not as_json:
        sys.stderr.write(f"Spent: {budget.calls} calls, {budget.cached} from the cache\n")
    if missing:
        raise IncompleteRunError(" ".join(missing))


def _first(rows: list[dict[str, Any]], ranked: Any, limit: int | None) -> list[dict[str, Any]]:
    """The first of a run's attacks by their rank for review."""
    if limit is None:
        return rows
    found = ranked.select("run", "question", "epoch").iter_rows()
    place = {key: number for number, key in enumerate(found)}
    ordered = sorted(rows, key=lambda r: place[r["run"], r["question"]["id"], r["replicate"]])
    return ordered[:limit]


def _left(rows: list[dict[str, Any]], log_dir: str) -> str:
    """The attacks in a file that is named by its content, so that a test knows what it tests."""
    if "://" in log_dir:
        raise InputError(
            "cannot hold the attacks to be tested", log_dir, remedy="Copy the logs to a local dir"
        )
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file = f"{log_dir}/attacks-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
    write_whole(text, file, "LOGDIR")
    return file


@medfuzz.command("show")
def show(
    log_dir: Annotated[
        str, typer.Argument(metavar="LOGDIR", help="Log dir, or turns table with texts.")
    ],
    id: Annotated[str, typer.Option("--id", help="Id of the question.")],
    replicate: Annotated[
        int | None,
        typer.Option(
            min=1, max=options.MOST, help="Replicate; the first that succeeded, unless given."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Model, where there are several.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Question set, where there are several.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one attack: what was added, the reasoning before and after, attempts, p-value.

    Example: holdfast medfuzz show runs --id 0012
    """
    from rich.console import Console

    from holdfast.report import attack_story, attack_view
    from holdfast.results import turns_table

    story = attack_story(turns_table([log_dir]), id, replicate, model, dataset)
    if as_json:
        sys.stdout.write(json.dumps(story, indent=2, ensure_ascii=False) + "\n")
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=100)
    console.print(attack_view(story))
