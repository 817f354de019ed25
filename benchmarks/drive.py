"""Measure what it costs to drive a follow-up study, beside others who drive the same one.

Usage: python benchmarks/drive.py [--n 100] [--latency-ms 0,50,500] [--max-connections 50,100,500]
       [--rounds 1] [--peers PYTHON] [--before FOLDER] [--full] [--json FILE]
       [--questions FILE] [--provider lean] [--no-memory | --memory | --study]

The study has 15 generations a question, the first answer and 14 follow-ups, and is asked of a
server on loopback (benchmarks/server.py) at every latency under every number of connections.
Beside holdfast runs the floor, a bare aiohttp client; at one latency for each number of
connections the naive Inspect task, litellm and lm-evaluation-harness's client too, with `--full`
at every one.  Each runs in a process of its own with a fresh log dir, all in turn.  Processor time
and memory are those of the whole process; the rate is that of the asking, from the first request
to the last reply.  Of several rounds the medians count.  litellm and lm-evaluation-harness run
with the Python that `--peers` names (`pip install litellm "lm-eval[api]" aiohttp` there), and are
left out where they are not.  `--before` names the repository root of another version of holdfast,
installed in its `.venv`: it runs in turn with this one.

Then memory: 200, 1,273 and 10,000 questions are put to a simulated model with one follow-up each,
with `--full` with all 14.  `--memory` does nothing else, `--no-memory` leaves it out; `--study`
does nothing but put all questions with all follow-ups to the simulated model.  Without options it
takes under ten minutes on two cores.

By default the questions are those of ../shared/data/medqa/us_4_options_test.jsonl, seen from the
repository root, or the bundled ones where that file is not there.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.contestants import (
    ROOT,
    BenchmarkError,
    Drive,
    drive_holdfast,
    drive_naive,
    drive_peer,
    earlier_command,
    has_peer,
    holdfast_command,
    measured,
    techniques,
)
from benchmarks.server import Server, running_server

# nothing here may import Inspect: a child's peak memory starts from that of its parent
from holdfast.questions.loading import load_questions

__all__ = ["BenchmarkError", "main", "many_questions", "measured"]

MEDQA = ROOT.parent / "shared/data/medqa/us_4_options_test.jsonl"
STUDY_MODEL = "simulated/claude-sonnet-4"
SIZES = (200, 1_273, 10_000)
"""Numbers of questions whose memory is compared."""

LATENCIES, CONNECTIONS = (0.0, 50.0, 500.0), (50, 100, 500)
EVERYONE_AT = ((0.0, 50), (50.0, 500), (500.0, 100))
"""Latencies and connections at which all contestants run without ``--full``."""

Contest = Callable[[Server, int], Drive]
"""Drives the study against a server under so many connections."""


def contestants(
    questions: str, n: int, provider: str, python: str, before: Path | None = None
) -> dict[str, Contest]:
    """Who takes part, by name, holdfast and the floor first.

    Args:
        questions: The questions, as ``--questions`` takes them.
        n: How many of them.
        provider: The one that holdfast asks through; the naive task has Inspect's ``openai``.
        python: The interpreter of litellm and lm-evaluation-harness.
        before: The folder of another version of holdfast.
    """

    def client(peer: str, interpreter: str) -> Contest:
        return lambda server, most: drive_peer(peer, interpreter, server, questions, n, most)

    found: dict[str, Contest] = {
        "holdfast": lambda server, most: drive_holdfast(server, questions, n, most, provider),
        "bare": client("bare", sys.executable),
        "naive": lambda server, most: drive_naive(server, questions, n, most),
    }
    for peer, module in (("litellm", "litellm"), ("lm-eval", "lm_eval")):
        if has_peer(python, module):
            found[peer] = client(peer, python)
    if before is not None:
        command = earlier_command(before)
        found["before"] = lambda server, most: drive_holdfast(
            server, questions, n, most, provider, command
        )
    return found


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
    "cpu_per_further_call": "cpu_ms_further_call",
    "peak_rss": "peak_rss_mb",
}
"""Ratios of a contestant's figures to holdfast's, by name."""


def starts(one_question: Mapping[str, Contest]) -> dict[str, Drive]:
    """What each takes for a single question, which is mostly to start and to end.

    Args:
        one_question: Who, by name, with the study of one question.
    """
    with running_server() as server:
        return {name: contest(server, 1) for name, contest in one_question.items()}


def compare(
    taking_part: Mapping[str, Contest],
    started: Mapping[str, Drive],
    latency_ms: float,
    connections: int,
    rounds: int,
) -> dict[str, Any]:
    """Run the study with everyone, in turn.

    Args:
        taking_part: Who, by name; ``holdfast`` among them.
        started: What each takes for a single question.
        latency_ms: The server's time to answer.
        connections: Most requests at once.
        rounds: Times each runs.

    Returns:
        The median figures of each, their ratios to holdfast's, and the figures of every round.
        ``to_ideal`` is the time of asking by calls x latency / connections, None without a latency;
        ``cpu_ms_further_call`` leaves out what a single question takes.
    """
    taken: dict[str, list[Drive]] = {name: [] for name in taking_part}
    with running_server(latency_ms=latency_ms, lifetime=3600.0 * rounds) as server:
        for _ in range(rounds):
            for name, contest in taking_part.items():
                taken[name].append(contest(server, connections))
    figures = {name: medians(drives) for name, drives in taken.items()}
    ours = figures["holdfast"]
    for name, found in figures.items():
        first, calls = started[name], found["calls"] - started[name].calls
        further = 1000 * (found["cpu_s"] - first.cpu_s) / calls if calls > 0 else None
        found["cpu_ms_further_call"] = further
        ideal = found["calls"] * latency_ms / 1000 / connections
        found["to_ideal"] = found["asking_s"] / ideal if ideal else None
    return {
        "latency_ms": latency_ms,
        "max_connections": connections,
        "contestants": figures,
        "to_holdfast": {
            name: {
                ratio: found[figure] / ours[figure]
                for ratio, figure in RATIOS.items()
                if found[figure] is not None and ours[figure]
            }
            for name, found in figures.items()
            if name != "holdfast"
        },
        "rounds": {name: [asdict(drive) for drive in drives] for name, drives in taken.items()},
    }


SHOWN: dict[str, tuple[str, str, str | None]] = {
    "calls": ("calls", ".0f", None),
    "calls_per_s": ("calls/s", ".0f", None),
    "to_ideal": ("x ideal", ".2f", None),
    "wall_s": ("wall s", ".1f", None),
    "cpu_s": ("CPU s", ".1f", "cpu"),
    "cpu_ms_per_call": ("ms/call", ".2f", None),
    "cpu_ms_further_call": ("ms/further", ".2f", "cpu_per_further_call"),
    "peak_rss_mb": ("MiB", ".0f", None),
}
"""Figures of the printed table: title, format and ratio."""


def print_comparison(console: Console, found: Mapping[str, Any]) -> None:
    """Print the figures of all contestants, a line each, with ratios to holdfast's in brackets.

    Args:
        console: Where to.
        found: What ``compare`` returns.
    """
    table = Table(title=f"{found['latency_ms']:g} ms, {found['max_connections']} connections")
    table.add_column("")
    for title, _, _ in SHOWN.values():
        table.add_column(title, justify="right")
    for name, figures in found["contestants"].items():
        cells = []
        for figure, (_, form, ratio) in SHOWN.items():
            shown = format(figures[figure], form) if figures[figure] is not None else ""
            if ratio in found["to_holdfast"].get(name, ()):
                shown += f" ({found['to_holdfast'][name][ratio]:.2f})"
            cells.append(shown)
        table.add_row(name, *cells)
    console.print(table)


def study(questions: str, *more: str, generations: int = 0) -> dict[str, Any]:
    """Put every question to a simulated model.

    Args:
        questions: The questions, as ``--questions`` takes them.
        *more: Further options of ``holdfast run followup``.
        generations: How many a question takes, by default all techniques' and the first.

    Returns:
        The number of questions and generations, and what the process took.
    """
    n = len(load_questions(questions).questions)
    with tempfile.TemporaryDirectory() as folder:
        command = holdfast_command(questions, STUDY_MODEL, Path(folder, "logs"), *more)
        cost = measured(command, Path(folder, "output"))
    total = n * (generations or 1 + len(techniques()))
    return {"model": STUDY_MODEL, "questions": n, "generations": total} | asdict(cost)


def many_questions(path: Path, questions: str, n: int) -> None:
    """Write as many questions as are wanted, each a numbered case of one that is there.

    Args:
        path: The file to write.
        questions: The questions, as ``--questions`` takes them.
        n: How many to write.
    """
    there = load_questions(questions).questions
    with path.open("w", encoding="utf-8") as lines:
        for number in range(n):
            one = there[number % len(there)]
            row = {
                "id": f"case-{number + 1}",
                "question": f"Case {number + 1}. {one.stem}",
                "options": dict(one.options),
                "answer_idx": one.gold,
            }
            lines.write(json.dumps(row) + "\n")


def memory(questions: str, full: bool) -> list[dict[str, Any]]:
    """What studies of several sizes take.

    Args:
        questions: The questions that the larger sets repeat.
        full: With every technique, not the first one alone.
    """
    asked = () if full else ("-T", f"techniques={techniques()[0].id}")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for n in SIZES:
            path = Path(folder, f"{n}.jsonl")
            many_questions(path, questions, n)
            found.append(study(str(path), *asked, generations=0 if full else 2))
    return found


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
    parser.add_argument("--n", type=int, default=100, help="how many of them are compared on")
    listed = partial(_numbers, kind=float)
    parser.add_argument("--latency-ms", type=listed, default=LATENCIES, help="of each reply")
    listed = partial(_numbers, kind=int)
    parser.add_argument("--max-connections", type=listed, default=CONNECTIONS, help="at once")
    parser.add_argument("--rounds", type=int, default=1, help="times each contestant runs")
    parser.add_argument("--provider", default="lean", help="holdfast's: lean (default) or openai")
    parser.add_argument("--peers", default=sys.executable, help="Python of litellm and lm-eval")
    parser.add_argument("--before", type=Path, help="repository root of another version")
    parser.add_argument("--full", action="store_true", help="everyone everywhere, all follow-ups")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-memory", action="store_true", help="without the memory by size")
    which.add_argument("--memory", action="store_true", help="the memory by size alone")
    which.add_argument("--study", action="store_true", help="the simulated study alone")
    parsed = parser.parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=100)
    questions = parsed.questions or str(MEDQA)
    if parsed.questions is None and not MEDQA.is_file():
        console.print("MedQA is not there: the bundled questions take its place", style="yellow")
        questions = "bank"
    n = min(parsed.n, len(load_questions(questions).questions))
    figures: dict[str, Any] = {
        "questions": questions if questions == "bank" else Path(questions).name,
        "n": n,
        "provider": parsed.provider,
        "processors": os.cpu_count(),
        "load_before": os.getloadavg(),
        "python": platform.python_version(),
        "inspect_ai": version("inspect_ai"),
        "openai": version("openai"),
    }
    failed = False
    try:
        if not (parsed.study or parsed.memory):
            figures["drive"] = found_by_cell = []
            for cell in _drives(console, parsed, questions, n):
                found_by_cell.append(cell)
        if not (parsed.study or parsed.no_memory):
            figures["memory"] = memory(questions, parsed.full)
        if parsed.study:
            figures["study"] = study(questions)
    except BenchmarkError as error:
        print(f"drive.py: {error}", file=sys.stderr)
        failed = True
    for found in [*figures.get("memory", ()), *filter(None, [figures.get("study")])]:
        console.print(
            f"{found['questions']:,} questions, {found['generations']:,} generations on "
            f"{found['model']}: {found['wall_s']:.1f} s, {found['peak_rss_mb']:.0f} MiB"
        )
    if parsed.json is not None:
        parsed.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return int(failed)


def _drives(
    console: Console, parsed: argparse.Namespace, questions: str, n: int
) -> Iterator[dict[str, Any]]:
    """Every latency under every number of connections, one after the other."""
    everyone = contestants(questions, n, parsed.provider, parsed.peers, parsed.before)
    console.print(
        f"{n} questions x {1 + len(techniques())} generations, {parsed.provider}. CPU in ms for "
        "each call, and for each further one after the first question's; in brackets the ratio to "
        "holdfast's."
    )
    if not {"litellm", "lm-eval"} <= everyone.keys():
        console.print("litellm or lm-eval is not there: see --peers", style="yellow")
    started = starts(contestants(questions, 1, parsed.provider, parsed.peers, parsed.before))
    cells = list(product(parsed.latency_ms, parsed.max_connections))
    for latency, connections in cells:
        all_here = parsed.full or len(cells) == 1 or (latency, connections) in EVERYONE_AT
        always = ("holdfast", "bare", "before")
        taking_part = {
            name: contest for name, contest in everyone.items() if all_here or name in always
        }
        found = compare(taking_part, started, latency, connections, parsed.rounds)
        print_comparison(console, found)
        yield found


def _numbers(text: str, kind: type[float]) -> tuple[float, ...]:
    return tuple(kind(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
