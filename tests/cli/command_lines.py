"""Command lines with bad values: every option of every command that the application declares."""

import os
import random
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.cli.app import app

SECONDS = 60
"""After so long a command has hung."""

_DEEP = 20_000

VALUES = (
    "", " ", "-", "x", "=", "a=", "=b", "a=b", "a=nan", "-1", "0", "1", "2", "1.5", "-0.0",
    "1e308", "nan", "inf", "-inf", "1e-300", str(10**20), str(-(10**20)), str(2**63), "9" * 5000,
    "true", "null", "None", "\t", "a\nb", "\r\n", "\x1b[31m", "é😀", "\u202e", "\udcff", "%s",
    "{}", "{0}", "$HOME", "*", "?", "#", "[bold]", "a" * 5000, "a/" * 3000, "{", "{a: ",
    "[" * _DEEP, "{a: " * _DEEP, "a,b", "a|b", "a>b", ">", ",", "1/0", "0/0", "2/1", "1/2",
    "auto", "bank", "none", "all", "generate", "json", "md", "local", "~nosuchuser/x",
    "/dev/null", "/dev/null/x", "/proc/self/mem", "nosuch://x/y", "memory://x/y", "http://",
    "http://[", "file:///", "hf:", "hf:x", "hf:x@y", "hf:@:", "https://u:p@127.0.0.1:9/v1",
    "openai/x", "simulated/nobody", "simulated/sycophant", "recorded/none.jsonl",
    "lexical/overlap", "mockllm/model", "x/", "judge=x/y", "judge={model: 3}",

    "{temperature: 1}", "{max_retries: 1}", "{seed: 1}", "generator=simulated/generator",
    "attacker={model: simulated/attacker, base_url: 3}", "judge={base_url: x}",
    "judge={model: simulated/judge, config: 1}", "config=1", "base_url=1", "model=x", "memoize=1",
    "role=x", "techniques=x", "chains=>", "chains=paper", "lengths=0", f"lengths={10**20}",
    "shots=-1", f"shots={10**20}", "suggest=none.json", "seed=1e9", f"seed={10**30}", "step=x",
    "stem=x,options=y", "options=A|B,gold=C", "gold_base=7", f"attempts={10**20}", "attempts=0",
    "order=x", "turns=0",
)  # fmt: skip
"""What is typed where something else is meant. None is a place outside the working folder."""

FILES = (
    "dir", "empty", "loop.json", "dangling.csv", "loop", "deep.json", "deep.jsonl", "deep.yaml",
    "deep.toml", "binary.csv", "binary.parquet", "latin.csv", "header.csv", "list.json",
    "null.json", "number.json", "numbers.jsonl", "strings.yaml", "dates.yaml", "tables.toml",
    "study.toml", "protocol.py", "broken.py", "half.parquet", "half.eval",
    "no.eval", "dir.parquet", "dir.jsonl", "file/x.jsonl", "q.jsonl",
    "runs",
    "turns.parquet", "nan.json", "aliases.yaml", "rules.toml", "mapping.toml", "emptydir",
)  # fmt: skip
"""What stands where a file is meant; ``write_files`` makes them."""


def write_files(folder: Path) -> None:
    """The files of ``FILES`` that are not made by a command, in a folder."""
    (folder / "dir").mkdir()
    (folder / "dir" / "x").write_text("x")
    for name in ("emptydir", "dir.parquet", "dir.jsonl"):
        (folder / name).mkdir()
    (folder / "empty").touch()
    (folder / "loop").symlink_to("loop")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "dangling.csv").symlink_to("nowhere.csv")
    (folder / "file").touch()
    texts = {
        "deep.json": "[" * _DEEP + "]" * _DEEP,
        "deep.jsonl": '{"id": "1", "stem": "s", "gold": "A", "options": ' + "[" * _DEEP + "\n",
        "deep.yaml": "a: " + "[" * _DEEP + "]" * _DEEP,
        "deep.toml": "a = " + "[" * _DEEP + "]" * _DEEP,
        "header.csv": "id,stem,A,B,gold\n",
        "list.json": "[1, null, [], {}]",
        "null.json": "null",
        "number.json": "9" * 5000,
        "numbers.jsonl": '{"id": 1, "stem": 2, "options": 3, "gold": 4, "question": 5}\n1\n"x"\n',
        "strings.yaml": "a: b\nmodel: x\n",
        "dates.yaml": "a: 2026-01-01\n1: {input: 2026-01-01, output: .nan}\n",
        "tables.toml": '[[rule]]\nname = 3\n[turn]\nmodel = []\n[technique]\nid = {a = 1}\n',
        "nan.json": '{"simulated/sycophant": {"input": NaN, "output": -1e999}}',
        "aliases.yaml": "a: &a [*a]\nb: !!python/object:x.Y {}\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "study.toml").write_text('protocols = "followup"\nlimit = 1\n')
    (folder / "protocol.py").write_text("PROTOCOL = 1\n")
    (folder / "broken.py").write_text("raise SystemExit(1)\n")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 4)
    for name in ("binary.parquet", "no.eval"):
        (folder / name).write_bytes(b"PAR1" + bytes(range(256)) * 4 + b"PAR1")
    (folder / "latin.csv").write_bytes("id,stem,A,B,gold\n1,é,ü,b,A\n".encode("latin-1"))


MAPPING = """
[turn]
model = "model"
question = "question"
gold = "gold"
reply = "reply"
"""


def write_inputs(folder: Path) -> None:
    """What the commands of ``GOOD`` read: questions, rules, a mapping, finished runs."""
    rows = question_rows(2)
    write_jsonl(folder / "q.jsonl", rows)
    (folder / "rules.toml").write_text('[[rule]]\nfamily = "*"\nmin_accuracy = 0.1\n')
    (folder / "mapping.toml").write_text('options = "options"\n' + MAPPING)
    write_jsonl(
        folder / "replies.jsonl",
        [{"question": row["id"], "model": "m", "reply": "A", **row} for row in rows],
    )
    write_jsonl(folder / "contexts.jsonl", [{"question": "q0", "positive": "a", "negative": "b"}])
    write_jsonl(folder / "distractors.jsonl", [{"question": "q0", "distractors": ["x", "y", "z"]}])
    for arguments in (GOOD["run"], (*_MEDFUZZ, "--log-dir", "fuzzed")):
        run = holdfast(*arguments)
        assert run.returncode == 0, run.stderr
    (folder / "turns.parquet").write_bytes((folder / "runs" / "turns.parquet").read_bytes())
    whole = (folder / "turns.parquet").read_bytes()
    (folder / "half.parquet").write_bytes(whole[: len(whole) // 2])
    log = next((folder / "runs").glob("*.eval")).read_bytes()
    (folder / "half.eval").write_bytes(log[: len(log) // 2])


_RUN = ("run", "followup", "--questions", "q.jsonl", "--limit", "1", "-T", "techniques=rethink")
_MEDFUZZ = (
    "run", "medfuzz", "--questions", "q.jsonl", "--limit", "1", "--epochs", "1", "-T", "attempts=1",
    "--model", "simulated/fuzz-swayed", "--model-role", "attacker=simulated/attacker",
)  # fmt: skip

GOOD: dict[str, tuple[str, ...]] = {
    "run": (*_RUN, "--model", "simulated/sycophant"),
    "power": ("power", "--baseline", "90", "--difference", "5"),
    "table": ("table", "runs"),
    "report": ("report", "runs", "--conversations", "5"),
    "compare": ("compare", "runs", "fuzzed"),
    "gate": ("gate", "runs", "--rules", "rules.toml"),
    "import": ("import", "replies.jsonl", "--mapping", "mapping.toml"),
    "score": ("score", "runs"),
    "export": ("export", "runs", "--format", "csv"),
    "check": ("check", "q.jsonl"),
    "list protocols": ("list", "protocols"),
    "list questions": ("list", "questions"),
    "list techniques": ("list", "techniques"),
    "list defences": ("list", "defences"),
    "list tables": ("list", "tables"),
    "generate contexts": (
        "generate", "contexts", "--questions", "q.jsonl", "--limit", "1", "--model",
        "simulated/generator",
    ),
    "generate distractors": (
        "generate", "distractors", "--questions", "q.jsonl", "--limit", "1", "--model",
        "simulated/generator",
    ),
    "generate labels": (
        "generate", "labels", "--questions", "q.jsonl", "--limit", "1", "--model",
        "simulated/classifier",
    ),
    "generate plausibility": (
        "generate", "plausibility", "--questions", "bank", "--limit", "1", "--model",
        "simulated/judge", "--distractors", "bank",
    ),
}  # fmt: skip
"""A command line that works, for each command; a combination puts other values into it."""

TOO_LONG = ("demo",)
"""Commands that take a minute whatever is given; their one option is ``run``'s too."""


@dataclass(frozen=True)
class Parameter:
    """An option or argument, by what is typed.

    Attributes:
        option: as it is typed; None for an argument.
        flag: whether it takes no value.
    """

    option: str | None
    flag: bool = False


@dataclass(frozen=True)
class Combination:
    """A command line: a good one with values added or replaced."""

    command: str
    additions: tuple[str, ...]
    arguments: tuple[str, ...] = field(default=(), repr=False)


def parameters() -> dict[str, list[Parameter]]:
    """The parameters of every command, by its name."""
    table: dict[str, list[Parameter]] = {}

    def walk(command: Any, name: tuple[str, ...]) -> None:
        if hasattr(command, "commands"):
            for part, child in command.commands.items():
                walk(child, (*name, part))
            return
        table[" ".join(name)] = [
            Parameter(parameter.opts[0] if parameter.param_type_name == "option" else None,
                      bool(getattr(parameter, "is_flag", False)))
            for parameter in command.params
        ]  # fmt: skip

    walk(typer.main.get_command(app), ())
    return table


def combinations(number: int, seed: int) -> Iterator[Combination]:
    """So many command lines; each option of each command comes at least once if there are enough.

    Args:
        number: how many.
        seed: of what is drawn.
    """
    rng = random.Random(seed)
    pairs = [
        (command, option)
        for command, options in parameters().items()
        if command not in TOO_LONG
        for option in options
    ]
    for n in range(number):
        if n % len(pairs) == 0:
            rng.shuffle(pairs)
        command, first = pairs[n % len(pairs)]
        extras = rng.sample(parameters()[command], k=rng.choice((0, 0, 1)))
        arguments = _draw_arguments(command, first, rng) + tuple(
            part
            for extra in extras
            if extra != first
            for part in _draw_arguments(command, extra, rng)
        )
        yield Combination(command, arguments, _merge(command, arguments))


def _draw_arguments(command: str, parameter: Parameter, rng: random.Random) -> tuple[str, ...]:
    value = rng.choice(rng.choice((VALUES, FILES)))
    if parameter.option is None:
        return (value,)
    if parameter.flag:
        return (parameter.option,)
    if parameter.option in ("-T", "--model-role", "-M") and "=" not in value and rng.random() < 0.5:
        value = f"{rng.choice(('techniques', 'contexts', 'suggest', 'judge', 'top_p'))}={value}"
    return parameter.option, value


def _merge(command: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The good command line with what is given; what stands for an argument takes its place."""
    good = list(GOOD[command])
    words = len(command.split())
    if (
        arguments
        and not arguments[0].startswith("-")
        and len(good) > words
        and arguments[0] not in good
    ):
        good[words] = arguments[0]
        return (*good, *arguments[1:])
    for n, part in enumerate(arguments[:-1]):
        if part.startswith("--") and part in good:  # required ones are replaced
            good[good.index(part) + 1] = arguments[n + 1]
    return (*good, *arguments)


class Hung(BaseException):
    """A command has taken too long."""


@contextmanager
def _limit_time() -> Iterator[None]:
    def hang(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _list_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Files of a folder by name, with size and time of change."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for root, _, names in os.walk(folder)
        for path in (Path(root, name) for name in names)
    }


def fault(combination: Combination, folder: Path, code: int | None = None) -> str:
    """What is wrong with how a command line ends; empty where nothing is.

    Args:
        combination: the command line.
        folder: the working folder, with ``write_files`` and ``write_inputs``.
        code: the exit code that it must have; any that is documented, unless given.
    """
    before = _list_files(folder)
    try:
        with _limit_time():
            run = holdfast(*combination.arguments)
    except Hung:
        return f"took more than {SECONDS} s"
    except BaseException:
        return "".join(traceback.format_exc()[-1500:])
    new = {name for name, stat in _list_files(folder).items() if before.get(name) != stat}
    if run.returncode not in ((0, 1, 2, 3, 4) if code is None else (code,)):
        return f"exit code {run.returncode}"
    if "Traceback" in run.stderr or "Traceback" in run.stdout:
        return run.stderr[-1500:]
    if any("partial" in name for name in new):
        return f"half-written: {sorted(new)}"
    lines = run.stderr.splitlines()
    if run.returncode == 2 and not (lines and lines[-1].startswith("holdfast: ")):
        return f"exit code 2 without a line that says why: {run.stderr[-300:]!r}"
    if run.returncode == 2 and new:
        return f"refused ({lines[-1][:200]}), and yet written: {sorted(new)[:5]}"
    return ""
