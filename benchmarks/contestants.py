"""Who drives the follow-up study in the benchmark, each in its own process, and what it took.

holdfast runs through its command line, the naive task (benchmarks/naive.py) with one sample for
each question and technique, the peers (benchmarks/peers.py) as clients alone.  All say the same.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.server import Server

# nothing here may import Inspect: a child's peak memory starts from that of its parent
from holdfast.challenges.catalogue import Technique, choose, load_catalogue
from holdfast.challenges.contexts import load_contexts
from holdfast.challenges.suggestion import suggested_letter
from holdfast.challenges.texts import challenge_prompt, question_prompt, system_prompt
from holdfast.questions.loading import QuestionSet, load_questions
from holdfast.questions.question import Question

ROOT = Path(__file__).resolve().parents[1]
NAIVE = ROOT / "benchmarks/naive.py"
PEERS = ROOT / "benchmarks/peers.py"
LAUNCH = ROOT / "benchmarks/launch.py"
HOLDFAST = Path(sys.executable).parent / "holdfast"
SEED = 42


class BenchmarkError(Exception):
    """A contestant failed, or did not do what it is measured at."""


@dataclass(frozen=True)
class Cost:
    """What a process took from start to end.

    Attributes:
        wall_s: Seconds.
        cpu_s: Seconds of processor time, user and system.
        peak_rss_mb: Largest resident memory, in MiB.
    """

    wall_s: float
    cpu_s: float
    peak_rss_mb: float


@dataclass(frozen=True)
class Drive:
    """What a contestant took for the study.

    Attributes:
        wall_s: Seconds.
        calls: Completions that the server was asked for.
        repeated: How many of them it had been asked before.
        asking_s: Seconds from the first request to the last reply, by the server's clock.
        calls_per_s: Calls by that time.
        cpu_s: Seconds of processor time, user and system.
        cpu_ms_per_call: Milliseconds of processor time by calls.
        peak_rss_mb: Largest resident memory, in MiB.
    """

    wall_s: float
    calls: int
    repeated: int
    asking_s: float
    calls_per_s: float
    cpu_s: float
    cpu_ms_per_call: float
    peak_rss_mb: float

    @classmethod
    def of(cls, cost: Cost, calls: int, repeated: int, asking_s: float) -> "Drive":
        """A process's cost by the calls it made.

        Args:
            cost: What the process took.
            calls: Completions asked for.
            repeated: How many of them had been asked before.
            asking_s: Seconds from the first request to the last reply.
        """
        return cls(
            wall_s=cost.wall_s,
            calls=calls,
            repeated=repeated,
            asking_s=asking_s,
            calls_per_s=calls / asking_s if asking_s else 0.0,
            cpu_s=cost.cpu_s,
            cpu_ms_per_call=1000 * cost.cpu_s / calls,
            peak_rss_mb=cost.peak_rss_mb,
        )


def measured(command: Sequence[str], output: Path) -> Cost:
    """Run a command and measure its process.

    Args:
        command: The command; it gets no settings of Inspect's from this environment.
        output: File for its standard output and error.

    Returns:
        What it took.

    Raises:
        BenchmarkError: It failed.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INSPECT_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or every start compiles holdfast anew
    environment["OPENAI_API_KEY"] = "none"
    figures = output.with_name(f"{output.name}.json")
    launch = [sys.executable, "-I", "-S", str(LAUNCH), str(figures), *command]
    with output.open("wb") as sink:
        process = subprocess.run(
            launch, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=environment, check=False
        )
    if process.returncode:
        tail = output.read_text("utf-8", errors="replace")[-3000:]
        raise BenchmarkError(f"{' '.join(command)} ended with {process.returncode}:\n{tail}")
    return Cost(*json.loads(figures.read_text("utf-8")))


def holdfast_command(questions: str, model: str, log_dir: Path, *more: str) -> list[str]:
    """The study by holdfast's command line.

    Args:
        questions: The questions, as ``--questions`` takes them.
        model: The model.
        log_dir: Where logs and finished generations go.
        *more: Further options.
    """
    command = [str(HOLDFAST), "run", "followup", "--model", model, "--questions", questions]
    command += ["-T", "contexts=synthetic", "--allow-simulated-inputs"]
    command += ["--seed", str(SEED), "--log-dir", str(log_dir)]
    # the peers have no controls
    return [*command, "-T", "controls=false", "--json", *more]


def earlier_command(folder: Path) -> Callable[..., list[str]]:
    """``holdfast_command`` of another version, as its own benchmark has it.

    Args:
        folder: The version's repository root, with holdfast installed in its ``.venv``.

    Raises:
        BenchmarkError: The version is not there, or says no command.
    """
    python = folder.resolve() / ".venv/bin/python"
    if not python.exists():
        raise BenchmarkError(f"{python} is not there: install holdfast in it")
    code = (
        "import json, pathlib, sys; from benchmarks.contestants import holdfast_command as made; "
        "given = json.loads(sys.argv[1]); given[2] = pathlib.Path(given[2]); "
        "print(json.dumps(made(*given)))"
    )

    def command(*given: object) -> list[str]:
        made = subprocess.run(
            [python, "-c", code, json.dumps([*map(str, given)])],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise BenchmarkError(f"{folder} says no command:\n{made.stderr[-3000:]}")
        words: list[str] = json.loads(made.stdout)
        return words

    return command


def drive_holdfast(
    server: Server,
    questions: str,
    n: int,
    connections: int,
    provider: str,
    command_of: Callable[..., list[str]] = holdfast_command,
) -> Drive:
    """Run the study with holdfast.

    Args:
        server: What answers.
        questions: The questions, as ``--questions`` takes them.
        n: How many of them.
        connections: Most requests at once.
        provider: ``lean``, or ``openai`` for Inspect's own over the SDK.
        command_of: The command line of the version that is run.

    Raises:
        BenchmarkError: It made other than one call for each distinct conversation.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = command_of(
            questions, f"{provider}/bench", Path(folder, "logs"),
            "--model-base-url", f"{server.url}/v1",
            "--limit", str(n), "--max-connections", str(connections),
        )  # fmt: skip
        drive = driven(server, command, Path(folder, "output"))
    calls = n * (1 + len(techniques()))
    if (drive.calls, drive.repeated) != (calls, 0):
        raise BenchmarkError(
            f"holdfast made {drive.calls} calls, {drive.repeated} of them repeated; "
            f"{calls} distinct ones were expected"
        )
    return drive


def drive_naive(server: Server, questions: str, n: int, connections: int) -> Drive:
    """Run the study with the naive task.

    Args:
        server: What answers.
        questions: The questions, as ``--questions`` takes them.
        n: How many of them.
        connections: Most requests at once.

    Raises:
        BenchmarkError: It made other than one call for the baseline and two for each technique.
    """
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder, "samples.jsonl")
        write_samples(samples, load_questions(questions).first(n))
        command = [
            sys.executable, str(NAIVE), str(samples),
            "--base-url", f"{server.url}/v1", "--log-dir", str(Path(folder, "logs")),
            "--max-connections", str(connections), "--system", system_prompt("expert") or "",
        ]  # fmt: skip
        drive = driven(server, command, Path(folder, "output"))
    calls = n * (1 + 2 * len(techniques()))
    if drive.calls != calls:
        raise BenchmarkError(f"the naive task made {drive.calls} calls; {calls} were expected")
    return drive


def drive_peer(
    peer: str, python: str, server: Server, questions: str, n: int, connections: int
) -> Drive:
    """Run the study with a client alone.

    Args:
        peer: Its name in benchmarks/peers.py.
        python: The interpreter that has it.
        server: What answers.
        questions: The questions, as ``--questions`` takes them.
        n: How many of them.
        connections: Most requests at once.

    Raises:
        BenchmarkError: It made other than one call for each distinct conversation.
    """
    with tempfile.TemporaryDirectory() as folder:
        conversations = Path(folder, "conversations.jsonl")
        write_conversations(conversations, load_questions(questions).first(n))
        command = [
            python, str(PEERS), peer, str(conversations),
            "--base-url", f"{server.url}/v1", "--connections", str(connections),
        ]  # fmt: skip
        drive = driven(server, command, Path(folder, "output"))
    calls = n * (1 + len(techniques()))
    if (drive.calls, drive.repeated) != (calls, 0):
        raise BenchmarkError(
            f"{peer} made {drive.calls} calls, {drive.repeated} of them repeated; "
            f"{calls} distinct ones were expected"
        )
    return drive


def has_peer(python: str, module: str) -> bool:
    """Whether an interpreter finds a module.

    Args:
        python: The interpreter.
        module: The module's name.
    """
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def driven(server: Server, command: Sequence[str], output: Path) -> Drive:
    """Run a command against a server and count its calls.

    Args:
        server: What answers.
        command: The command.
        output: File for what it prints.
    """
    server.reset()
    cost = measured(command, output)
    stats = server.stats()
    return Drive.of(cost, stats["calls"], stats["repeated"], server.seconds())


def techniques() -> tuple[Technique, ...]:
    """The techniques of the study."""
    return choose(load_catalogue(None), "all")


def write_samples(path: Path, questions: QuestionSet) -> None:
    """Write the samples of the naive task, in the words that holdfast uses.

    Args:
        path: The file to write.
        questions: The questions.
    """
    with path.open("w", encoding="utf-8") as lines:
        for question, said in _challenges(questions):
            for id, challenge in {"baseline": "", **said}.items():
                sample = {
                    "id": f"{question.id}/{id}",
                    "input": question_prompt(question),
                    "target": question.gold,
                    "challenge": challenge,
                }
                lines.write(json.dumps(sample) + "\n")


def write_conversations(path: Path, questions: QuestionSet) -> None:
    """Write the conversations of the peers, in the words that holdfast uses.

    Args:
        path: The file to write.
        questions: The questions.
    """
    system = {"role": "system", "content": system_prompt("expert")}
    with path.open("w", encoding="utf-8") as lines:
        for question, said in _challenges(questions):
            asked = {"role": "user", "content": question_prompt(question)}
            one = {
                "id": question.id,
                "messages": [system, asked],
                "challenges": list(said.values()),
            }
            lines.write(json.dumps(one) + "\n")


def _challenges(questions: QuestionSet) -> Iterator[tuple[Question, dict[str, str]]]:
    """Each question with what is said to its first answer, by technique."""
    contexts = load_contexts("synthetic", questions, SEED)
    for question in questions.questions:
        context = contexts.of(question)
        said = {}
        for technique in techniques():
            letter = suggested_letter(
                question, "per-question", SEED, technique.id, None, context.second_best
            )
            values = {**context.texts, "incorr_letter": letter or ""}
            said[technique.id] = challenge_prompt(technique.template, question, values)
        yield question, said
