"""``holdfast medfuzz``: attacks tested, put to other models, and one of them as it went."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import options
from holdfast.errors import IncompleteRunError, InputError, counted, printable
from holdfast.files import write_whole

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from holdfast.running.studies import Planned

    from .attack_log import Attacked

app = typer.Typer(
    help="Test, replay and show attacks.", no_args_is_help=True, rich_markup_mode=None
)

LogDir = Annotated[str, typer.Argument(metavar="LOGDIR", help="Log dir of a medfuzz run.")]
Ids = Annotated[
    list[str] | None, typer.Option("--id", help="Id of a question; default all. Repeatable.")
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1, max=options.MOST, help="At most N attacks of each run, in order of review."
    ),
]


@app.command("test")
@options.taking(
    "log_dir", "model", "id", "limit", "controls", "samples", "exemplars", "shots", "model_role",
    "model_base_url", "model_args", "seed", "call_limit", "token_limit", "cost_limit", "prices",
    "max_connections", "max_retries", "as_json",
)  # fmt: skip
def permute(
    log_dir: LogDir,
    model: Annotated[
        list[str], typer.Option(help="Model that the attacks were found on. Repeatable.")
    ],
    id: Ids = None,
    limit: Limit = None,
    controls: Annotated[
        int, typer.Option(min=1, max=10_000, help="Control texts per attack, M.")
    ] = 30,
    samples: Annotated[
        int, typer.Option(min=1, max=10_000, help="Direct answers per probability.")
    ] = 5,
    shots: Annotated[int, typer.Option(min=0, max=1000, help="Number of exemplars to show.")] = 3,
    as_json: options.AsJson = False,
    **given: Any,
) -> None:
    """Test whether successful attacks are more than any added text (Algorithm 2).

    Models, addresses and helpers are never taken from a log: name them as you did in 'run'.
    Repeat the command to continue; more controls or samples add to those that are there.

    Example: holdfast medfuzz test runs --model openai/gpt-4.1 --model-role attacker=openai/gpt-4.1
    """
    from holdfast.questions import BANK_NAME, load_questions
    from holdfast.results import TABLES, turns_table
    from holdfast.running import models
    from holdfast.running.log_dir import as_log_dir
    from holdfast.running.studies import check_roles, log_test

    from .attack_log import successful_attacks

    log_dir = as_log_dir(log_dir)
    models.load_prices(given["prices"])
    named = models.models(
        model, base_url=given["model_base_url"], model_args=given["model_args"] or []
    )
    roles = models.roles(given["model_role"] or [])
    models.check_prices([*named, *roles.values()], given["cost_limit"])
    exemplars = given["exemplars"]
    if exemplars != BANK_NAME:
        load_questions(exemplars)  # what is wrong leaves nothing in the log dir
    ranked = TABLES["attack-list"](turns_table([log_dir], text=False))
    tests = []
    for run, tested in _with_models(successful_attacks(log_dir, id or []), named, log_dir):
        chosen = _first(run.rows, ranked, limit)
        args = {
            "attacks": _left(chosen, log_dir),
            "controls": controls,
            "samples": samples,
            "exemplars": exemplars,
            "shots": shots,
            "seed": given["seed"],
        }
        study = log_test("medfuzz-test", args)
        check_roles([study], roles)
        told = f"Testing {counted(len(chosen), 'attack')} on {tested}"
        required = {role: roles[role] for role in study.study.required}
        tests.append(_Test(told, study, [tested], required))
    _put(tests, log_dir, "permutation", given, as_json=as_json)


def _with_models(
    runs: Sequence["Attacked"], named: Sequence["Model"], log_dir: str
) -> list[tuple["Attacked", "Model"]]:
    """Each run with the model of the command that bears its model's name."""
    from holdfast.running.models import unlike

    by_name = {str(model): model for model in named}
    attacked = dict.fromkeys(run.header.eval.model for run in runs)
    for name in by_name.keys() - attacked.keys():
        raise InputError(
            f"the attacks were found on {', '.join(map(repr, attacked))}, not on '{name}'",
            log_dir,
            field="--model",
            remedy="Name that model, or put the attacks to another one with "
            "'holdfast medfuzz replay'",
        )
    pairs = []
    for run in runs:
        name = run.header.eval.model
        if name not in by_name:
            sys.stderr.write(f"Left out: attacks on {printable(name)}, which no --model names\n")
            continue
        for option in unlike(by_name[name], run.header):
            sys.stderr.write(printable(f"Not taken from the log of {name}: {option}") + "\n")
        pairs.append((run, by_name[name]))
    return pairs


@app.command("replay")
@options.taking(
    "log_dir", "model", "id", "limit", "confirmed", "model_base_url", "model_args", "seed",
    "call_limit", "token_limit", "cost_limit", "prices", "max_connections", "max_retries",
    "as_json",
)  # fmt: skip
def replay(
    log_dir: LogDir,
    model: Annotated[
        list[str], typer.Option(help="Model that the attacks are put to. Repeatable.")
    ],
    id: Ids = None,
    limit: Limit = None,
    confirmed: Annotated[
        bool, typer.Option("--confirmed", help="Only attacks that are confirmed.")
    ] = False,
    as_json: options.AsJson = False,
    **given: Any,
) -> None:
    """Put the successful attacks of a run to other models: do they transfer?

    Each model is asked the original, and if it is right, the attacked question and the original
    again. Repeat the command to continue.

    Example: holdfast medfuzz replay runs --model openai/gpt-4.1
    """
    from holdfast.results import TABLES, turns_table
    from holdfast.running import models
    from holdfast.running.log_dir import as_log_dir
    from holdfast.running.studies import log_test

    from .attack_log import successful_attacks

    log_dir = as_log_dir(log_dir)
    models.load_prices(given["prices"])
    tested = models.models(
        model, base_url=given["model_base_url"], model_args=given["model_args"] or []
    )
    models.check_prices(tested, given["cost_limit"])
    ranked = TABLES["attack-list"](turns_table([log_dir], text=False))
    if confirmed:
        ranked = ranked.filter("confirmed")
    listed = set(ranked.select("run", "question", "epoch").iter_rows())
    chosen: list[dict[str, Any]] = []
    for run in (found := successful_attacks(log_dir, id or [])):
        rows = [r for r in run.rows if (r["run"], r["question"]["id"], r["replicate"]) in listed]
        chosen += _first(rows, ranked, limit)
    if not chosen:
        raise InputError("has no confirmed attack", log_dir, remedy="Leave --confirmed out")
    system = found[0].header.eval.task_args.get("system_prompt", "expert")
    tests = []
    for dataset in dict.fromkeys(row["dataset"] for row in chosen):
        own = [row for row in chosen if row["dataset"] == dataset]
        args = {
            "attacks": _left(own, log_dir),
            "number": len(own),
            "system_prompt": system,
            "seed": given["seed"],
        }
        told = f"Replaying {counted(len(own), 'attack')} on {dataset}"
        tests.append(_Test(told, log_test("medfuzz-replay", args), tested))
    _put(tests, log_dir, "transfer", given, as_json=as_json)


@dataclass(frozen=True)
class _Test:
    """A test of attacks, the models that it is put to and their helpers by role."""

    told: str
    study: "Planned"
    models: Sequence["Model"]
    roles: Mapping[str, "Model"] = field(default_factory=dict)


def _put(
    tests: Sequence[_Test], log_dir: str, table: str, given: Mapping[str, Any], *, as_json: bool
) -> None:
    """Put tests to their models, within one budget, and print what they found."""
    from holdfast.cli.outcome import Drawn
    from holdfast.dialogue import Budget
    from holdfast.render import render
    from holdfast.results import TABLES, write_turns
    from holdfast.running.evaluation import Evaluation

    budget = Budget(given["call_limit"], given["token_limit"], given["cost_limit"])
    generation = {"max_retries": given["max_retries"]}
    if given["max_connections"]:
        generation["max_connections"] = given["max_connections"]
    missing = []
    for test in tests:
        sys.stderr.write(f"{test.told}\n")
        ended = Evaluation(
            [test.study],
            test.models,
            log_dir,
            roles=test.roles,
            generation=generation,
            budget=budget,
            progress=Drawn(),
        ).run()
        if ended.unfinished:
            missing.append(ended.unfinished)
    _, turns = write_turns(log_dir)
    sys.stdout.write(render(TABLES[table](turns), "json" if as_json else "md", table))
    if not as_json:
        sys.stderr.write(f"Spent: {budget.calls} calls, {budget.cached} from the cache\n")
    if missing:
        raise IncompleteRunError(" ".join(missing))


def _first(rows: list[dict[str, Any]], ranked: Any, limit: int | None) -> list[dict[str, Any]]:
    """The first of a run's attacks by their rank for review; identical ones are one."""
    if limit is not None:
        found = ranked.select("run", "question", "epoch").iter_rows()
        place = {key: number for number, key in enumerate(found)}
        rows = sorted(rows, key=lambda r: place[r["run"], r["question"]["id"], r["replicate"]])
    different = {(row["question"]["id"], row["modified"]): row for row in reversed(rows)}
    return list(reversed(different.values()))[:limit]


def _left(rows: list[dict[str, Any]], log_dir: str) -> str:
    """The attacks in a file that is named by its content, so that a test knows what it tests."""
    if "://" in log_dir:
        raise InputError(
            "cannot store the attacks to test", log_dir, remedy="Copy the logs to a local dir"
        )
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file = f"{log_dir}/attacks-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
    write_whole(text, file, "LOGDIR")
    return file


@app.command("show")
def show(
    log_dir: Annotated[
        str, typer.Argument(metavar="LOGDIR", help="Log dir, or turns table with texts.")
    ],
    id: Annotated[str, typer.Option("--id", help="Id of the question.")],
    replicate: Annotated[
        int | None,
        typer.Option(min=1, max=options.MOST, help="Replicate; default the first that succeeded."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Model, if there are several.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Question set, if there are several.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one attack: what was added, the reasoning before and after, attempts, p-value.

    Example: holdfast medfuzz show runs --id 0012
    """
    from rich.console import Console

    from holdfast.results import turns_table

    from .attack_log import attack_story, attack_view

    story = attack_story(turns_table([log_dir]), id, replicate, model, dataset)
    if as_json:
        options.print_json(story)
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=100)
    console.print(attack_view(story))
