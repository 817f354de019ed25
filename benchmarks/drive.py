"""Measure what it costs to drive a follow-up study, beside the same study in plain Inspect.

Usage: python benchmarks/drive.py [--n 200] [--latency-ms 0] [--rounds 1] [--json FILE]
       [--questions FILE] [--max-connections 20] [--provider lean] [--no-study | --study]

The study has 15 generations a question, the first answer and 14 follow-ups, and is asked of a
server on loopback (benchmarks/server.py).  holdfast runs through its command line; the naive task
(benchmarks/naive.py) has one sample for each question and technique and asks each conversation
from its beginning.  Both say the same words under the same number of connections, in turn, each
in a process of its own with a fresh log dir.  Wall time, processor time and memory are those of
the whole process, from its start to its end.  Of several rounds the medians count.

Then all questions are put to a simulated model, without a server: `--no-study` leaves that out,
`--study` does nothing else.

By default the questions are those of ../shared/data/medqa/us_4_options_test.jsonl, seen from the
repository root, or the bundled ones where that file is not there.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.server import Server, running_server

# nothing here may import Inspect: a child's peak memory starts from that of its parent
from holdfast.challenges import (
    Technique,
    challenge_prompt,
    choose,
    load_catalogue,
    load_contexts,
    question_prompt,
    suggested_letter,
    system_prompt,
)
from holdfast.questions import QuestionSet, load_questions

ROOT = Path(__file__).resolve().parents[1]
MEDQA = ROOT.parent / "shared/data/medqa/us_4_options_test.jsonl"
NAIVE = ROOT / "benchmarks/naive.py"
LAUNCH = ROOT / "benchmarks/launch.py"
HOLDFAST = Path(sys.executable).parent / "holdfast"
SEED = 42
STUDY_MODEL = "simulated/claude-sonnet-4"


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
        calls_per_s: Calls by wall time.
        cpu_s: Seconds of processor time, user and system.
        cpu_ms_per_call: Milliseconds of processor time by calls.
        peak_rss_mb: Largest resident memory, in MiB.
    """

    wall_s: float
    calls: int
    repeated: int
    calls_per_s: float
    cpu_s: float
    cpu_ms_per_call: float
    peak_rss_mb: float

    @classmethod
    def of(cls, cost: Cost, calls: int, repeated: int) -> "Drive":
        """A process's cost by the calls it made.

        Args:
            cost: What the process took.
            calls: Completions asked for.
            repeated: How many of them had been asked before.
        """
        return cls(
            wall_s=cost.wall_s,
            calls=calls,
            repeated=repeated,
            calls_per_s=calls / cost.wall_s,
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
    command += ["--contexts", "synthetic", "--seed", str(SEED), "--log-dir", str(log_dir)]
    return [*command, "--json", *more]


def drive_holdfast(
    server: Server, questions: str, n: int, connections: int, provider: str
) -> Drive:
    """Run the study with holdfast.

    Args:
        server: What answers.
        questions: The questions, as ``--questions`` takes them.
        n: How many of them.
        connections: Most requests at once.
        provider: ``lean``, or ``openai`` for Inspect's own over the SDK.

    Raises:
        BenchmarkError: It made other than one call for each distinct conversation.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = holdfast_command(
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
    return Drive.of(cost, stats["calls"], stats["repeated"])


def techniques() -> tuple[Technique, ...]:
    """The techniques of the study."""
    return choose(load_catalogue(None), "all")


def write_samples(path: Path, questions: QuestionSet) -> None:
    """Write the samples of the naive task, in the words that holdfast uses.

    Args:
        path: The file to write.
        questions: The questions.
    """
    contexts = load_contexts("synthetic", questions, SEED)
    with path.open("w", encoding="utf-8") as lines:
        for question in questions.questions:
            context = contexts.of(question)
            challenges = {"baseline": ""}
            for technique in techniques():
                letter = suggested_letter(
                    question, "per-question", SEED, technique.id, None, context.second_best
                )
                values = {**context.texts, "incorr_letter": letter or ""}
                challenges[technique.id] = challenge_prompt(technique.template, question, values)
            for id, challenge in challenges.items():
                sample = {
                    "id": f"{question.id}/{id}",
                    "input": question_prompt(question),
                    "target": question.gold,
                    "challenge": challenge,
                }
                lines.write(json.dumps(sample) + "\n")


def study(questions: str) -> dict[str, Any]:
    """Put every question to a simulated model.

    Args:
        questions: The questions, as ``--questions`` takes them.

    Returns:
        The number of questions and generations, and what the process took.
    """
    n = len(load_questions(questions).questions)
    with tempfile.TemporaryDirectory() as folder:
        command = holdfast_command(questions, STUDY_MODEL, Path(folder, "logs"))
        cost = measured(command, Path(folder, "output"))
    return {"model": STUDY_MODEL, "questions": n, "generations": n * (1 + len(techniques()))} | (
        asdict(cost)
    )


def medians(rounds: Sequence[Drive]) -> dict[str, Any]:
    """The median of each figure.

    Args:
        rounds: What a contestant took in each round.
    """
    rows = [asdict(drive) for drive in rounds]
    return {name: median(row[name] for row in rows) for name in rows[0]}


RATIOS = {
    "wall": "wall_s",
    "calls": "calls",
    "cpu": "cpu_s",
    "cpu_per_call": "cpu_ms_per_call",
    "peak_rss": "peak_rss_mb",
}
"""Ratios of the naive task's figures to holdfast's, by name."""


def compare(
    questions: str, n: int, latency_ms: float, rounds: int, connections: int, provider: str
) -> dict[str, Any]:
    """Run the study with both, in turn.

    Args:
        questions: The questions, as ``--questions`` takes them.
        n: How many of them.
        latency_ms: The server's time to answer.
        rounds: Times each runs.
        connections: Most requests at once.
        provider: The one that holdfast asks through; the naive task has Inspect's ``openai``.

    Returns:
        The median figures of each, their ratios, and the figures of every round.
    """
    taken: dict[str, list[Drive]] = {"holdfast": [], "naive": []}
    with running_server(latency_ms=latency_ms, lifetime=3600.0 * rounds) as server:
        for _ in range(rounds):
            taken["holdfast"].append(drive_holdfast(server, questions, n, connections, provider))
            taken["naive"].append(drive_naive(server, questions, n, connections))
    figures = {name: medians(drives) for name, drives in taken.items()}
    return {
        "questions": n,
        "latency_ms": latency_ms,
        "max_connections": connections,
        "provider": provider,
        **figures,
        "naive_to_holdfast": {
            name: figures["naive"][figure] / figures["holdfast"][figure]
            for name, figure in RATIOS.items()
        },
        "rounds": {name: [asdict(drive) for drive in drives] for name, drives in taken.items()},
    }


SHOWN = {
    "wall_s": ("wall, s", ".1f", "wall"),
    "calls": ("calls", ".0f", "calls"),
    "calls_per_s": ("calls a second", ".0f", None),
    "cpu_s": ("processor time, s", ".1f", "cpu"),
    "cpu_ms_per_call": ("processor time a call, ms", ".2f", "cpu_per_call"),
    "peak_rss_mb": ("peak memory, MiB", ".0f", "peak_rss"),
}
"""Figures of the printed table: title, format and ratio."""


def print_comparison(console: Console, found: Mapping[str, Any]) -> None:
    """Print the figures of both contestants.

    Args:
        console: Where to.
        found: What ``compare`` returns.
    """
    table = Table(
        title=f"{found['questions']} questions x {1 + len(techniques())} generations, "
        f"{found['latency_ms']:g} ms, {found['max_connections']} connections, "
        f"{found['provider']}"
    )
    table.add_column("")
    for column in ("holdfast", "naive", "naive / holdfast"):
        table.add_column(column, justify="right")
    for figure, (title, form, ratio) in SHOWN.items():
        times = f"{found['naive_to_holdfast'][ratio]:.2f}" if ratio else ""
        figures = [format(found[name][figure], form) for name in ("holdfast", "naive")]
        table.add_row(title, *figures, times)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its figures.

    Args:
        arguments: Command-line arguments; by default those of the process.

    Returns:
        The exit status: 1 if a contestant failed.
    """
    parser = argparse.ArgumentParser(description="Measure what it costs to drive a study.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--questions", metavar="FILE", help="questions, by default MedQA's test")
    parser.add_argument("--n", type=int, default=200, help="how many of them are compared on")
    parser.add_argument("--latency-ms", type=float, default=0, help="of each reply")
    parser.add_argument("--rounds", type=int, default=1, help="times each contestant runs")
    parser.add_argument("--max-connections", type=int, default=20, help="requests at once")
    parser.add_argument("--provider", default="lean", help="holdfast's: lean (default) or openai")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-study", action="store_true", help="without the simulated study")
    which.add_argument("--study", action="store_true", help="the simulated study alone")
    parsed = parser.parse_args(arguments)
    console = Console()
    questions = parsed.questions or str(MEDQA)
    if parsed.questions is None and not MEDQA.is_file():
        console.print("MedQA is not there: the bundled questions take its place", style="yellow")
        questions = "bank"
    n = min(parsed.n, len(load_questions(questions).questions))
    figures: dict[str, Any] = {
        "questions": questions if questions == "bank" else Path(questions).name,
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "inspect_ai": version("inspect_ai"),
        "openai": version("openai"),
    }
    try:
        if not parsed.study:
            found = compare(
                questions, n, parsed.latency_ms, parsed.rounds, parsed.max_connections,
                parsed.provider,
            )  # fmt: skip
            figures["drive"] = found
            print_comparison(console, found)
        if not parsed.no_study:
            found = figures["study"] = study(questions)
            console.print(
                f"{found['questions']} questions x {1 + len(techniques())} generations on "
                f"{found['model']}: {found['wall_s']:.1f} s, {found['peak_rss_mb']:.0f} MiB"
            )
    except BenchmarkError as error:
        print(f"drive.py: {error}", file=sys.stderr)
        return 1
    if parsed.json is not None:
        parsed.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
