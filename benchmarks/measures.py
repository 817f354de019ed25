"""Measure what it costs to compute every table: a synthetic study of a million turns.

The study is made up (``synthetic.py``) and written as Parquet. A process of its own reads it and
computes each table of ``holdfast.results``, on two cores; wall time, processor time and memory are
those of the whole process, from its start. With ``--before`` an earlier version of the package does
the same in turn, and their tables are held against each other.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

# nothing at the top may import holdfast: a child may be told to take another version of it

ROOT = Path(__file__).resolve().parents[1]
CORES = 2
MOST_S = 20.0
"""Seconds that a million turns may take."""
START_S = 5.0
"""Seconds more for a study of any size: starting Python, loading libraries."""
MOST_MB = 2e9 / 2**20
"""Memory that a study of up to a million turns may take, 2 GB."""
LIKE = 1e-9
"""Figures that differ by less are equal: sums in another order differ in their last digits."""


class BenchmarkError(Exception):
    """A process failed, or computed something else than it should."""


@dataclass(frozen=True)
class Taken:
    """What a process took for every table.

    Attributes:
        wall_s: Seconds, the start of the process included.
        cpu_s: Seconds of processor time of all threads, user and system.
        peak_rss_mb: Largest resident memory, in MiB.
        tables: By table, and ``read`` for the turns table itself, seconds of wall and processor
            time and the number of rows.
    """

    wall_s: float
    cpu_s: float
    peak_rss_mb: float
    tables: Mapping[str, Mapping[str, float]]


def most_seconds(turns: int) -> float:
    """Seconds that so many turns may take: those of a million in proportion, and the start."""
    return MOST_S if turns >= 1_000_000 else min(MOST_S, START_S + MOST_S * turns / 1_000_000)


def timed(table: Path, source: Path, results: Path, cores: int = CORES) -> Taken:
    """Compute every table in a process of its own.

    Args:
        table: The turns table, as Parquet.
        source: The folder that holds the package ``holdfast``.
        results: Folder for the tables as Parquet.
        cores: Processors that the process may use.

    Returns:
        What it took.

    Raises:
        BenchmarkError: It failed.
    """
    threads = dict.fromkeys(
        ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(cores)
    )
    command = [sys.executable, str(Path(__file__).resolve()), "--child", str(table), str(results)]
    start = time.perf_counter()
    ended = subprocess.run(
        [*command, "--cores", str(cores)],
        env=os.environ | threads | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    if ended.returncode:
        raise BenchmarkError(f"the tables ended with {ended.returncode}:\n{ended.stderr[-3000:]}")
    found = json.loads(ended.stdout)
    if Path(found.pop("package")).parent != source.resolve():
        raise BenchmarkError(f"the process took another package than that of {source}")
    return Taken(wall_s=wall, **found)


def compute(table: Path, results: Path, cores: int) -> dict[str, Any]:
    """Compute every table here and now.

    Args:
        table: The turns table.
        results: Folder for the tables.
        cores: Processors to use.

    Returns:
        The fields of ``Taken`` but ``wall_s``, and ``package``, where holdfast lies.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    import holdfast
    from holdfast.results.declaration import TABLES
    from holdfast.results.records import errors
    from holdfast.results.turns import turns_table

    calls: dict[str, Any] = {**TABLES, "errors": errors}
    # the baseline of MedQA-Followup's Table 3
    steps = "accuracy by step"
    if steps in TABLES:  # another version may name it otherwise
        calls[f"{steps}, overall"] = partial(TABLES[steps], relative_to="overall")
    tables: dict[str, dict[str, float]] = {}
    turns: Any = None
    for name, call in {"read": None, **calls}.items():
        wall, cpu = time.perf_counter(), time.process_time()
        rows = call(turns) if call else turns_table([str(table)], text=False)
        tables[name] = {
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "rows": rows.height,
        }
        if call:
            rows.write_parquet(results / f"{name}.parquet")
        else:
            turns = rows
    package = str(Path(holdfast.__file__).resolve().parent)
    return {"cpu_s": time.process_time(), "peak_rss_mb": _peak_mb(), "tables": tables,
            "package": package}  # fmt: skip


def _peak_mb() -> float:
    """Largest resident memory of this process in MiB, since it became this program."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:  # no Linux
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)
    return next(int(line.split()[1]) / 2**10 for line in status.splitlines() if "VmHWM" in line)


def differences(before: Path, after: Path) -> list[str]:
    """What two versions computed differently, one sentence each; new tables and columns aside.

    Args:
        before: Folder of tables.
        after: The same of the other version.
    """
    import polars as pl
    from polars.testing import assert_frame_equal

    found = []
    for path in sorted(before.glob("*.parquet")):
        if not (after / path.name).exists():
            found.append(f"{path.stem}: gone")
            continue
        old, new = pl.read_parquet(path), pl.read_parquet(after / path.name)
        missing = [name for name in old.columns if name not in new.columns]
        if missing:
            found.append(f"{path.stem}: without {', '.join(missing)}")
        kept = [name for name in old.columns if name in new.columns]
        try:
            assert_frame_equal(old.select(kept), new.select(kept), abs_tol=LIKE, rel_tol=LIKE)
        except AssertionError as error:
            found.append(f"{path.stem}: {' '.join(str(error).split())[:200]}")
    return found


def measure(turns: int, before: Path | None = None, rounds: int = 1) -> dict[str, Any]:
    """Time every table of a synthetic study.

    Args:
        turns: Its turns, at least.
        before: Folder that holds another version of the package, to be timed in turn.
        rounds: Times each runs; the fastest counts, as others may use the machine.

    Returns:
        The study's size, what each took, and with ``before`` the ratios and differences.
    """
    sys.path[:0] = [str(ROOT)]
    from benchmarks.synthetic import synthetic_turns

    sources = {"before": before} if before else {}
    sources["holdfast"] = ROOT / "src"
    taken: dict[str, list[Taken]] = {name: [] for name in sources}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "turns.parquet")
        made = synthetic_turns(turns)
        made.write_parquet(table, compression="zstd")
        figures: dict[str, Any] = {
            "turns": made.height,
            "questions": made["question"].n_unique(),
            "models": made["model"].n_unique(),
            "file_mb": table.stat().st_size / 2**20,
        }
        del made
        for name in sources:
            Path(folder, name).mkdir()
        for _ in range(rounds):
            for name, source in sources.items():
                taken[name].append(timed(table, source.resolve(), Path(folder, name)))
        best = {name: min(all_, key=lambda one: one.wall_s) for name, all_ in taken.items()}
        figures |= {name: asdict(one) for name, one in best.items()}
        if before:
            old, new = best["before"], best["holdfast"]
            figures["before_to_holdfast"] = {
                "wall": old.wall_s / new.wall_s,
                "cpu": old.cpu_s / new.cpu_s,
                "peak_rss": old.peak_rss_mb / new.peak_rss_mb,
            }
            figures["differences"] = differences(Path(folder, "before"), Path(folder, "holdfast"))
    own = best["holdfast"]
    figures["bounds"] = {"wall_s": most_seconds(turns), "peak_rss_mb": MOST_MB}
    figures["within_bounds"] = own.wall_s < most_seconds(turns) and own.peak_rss_mb < MOST_MB
    return figures


def print_figures(found: Mapping[str, Any]) -> None:
    """Print what each table took.

    Args:
        found: What ``measure`` returns.
    """
    from rich.console import Console
    from rich.table import Table

    sides = [name for name in ("before", "holdfast") if name in found]
    table = Table(title=f"{found['turns']} turns, {found['models']} models, {CORES} cores")
    table.add_column("", no_wrap=True)
    table.add_column("rows", justify="right")
    for side in sides:
        table.add_column(f"{side}, s", justify="right")
        table.add_column("processor, s", justify="right")
    own = found["holdfast"]["tables"]
    for name, figures in own.items():
        each = [found[side]["tables"].get(name) for side in sides]
        cells = [f"{one[key]:.2f}" if one else "" for one in each for key in ("wall_s", "cpu_s")]
        table.add_row(name, f"{figures['rows']:.0f}", *cells)
    table.add_section()
    whole = [f"{found[side][key]:.2f}" for side in sides for key in ("wall_s", "cpu_s")]
    table.add_row("whole process", "", *whole)
    memory = [text for side in sides for text in (f"{found[side]['peak_rss_mb']:.0f}", "")]
    table.add_row("peak memory, MiB", "", *memory)
    console = Console()
    console.print(table)
    if "before_to_holdfast" in found:
        ratios = found["before_to_holdfast"].items()
        console.print("before / holdfast: " + ", ".join(f"{k} {v:.2f}" for k, v in ratios))
        console.print("\n".join(found["differences"]) or "the same tables", markup=False)
    bounds = found["bounds"]
    console.print(
        f"{'within' if found['within_bounds'] else 'OVER'} the bounds: "
        f"{bounds['wall_s']:.0f} s, {bounds['peak_rss_mb']:.0f} MiB"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its figures.

    Args:
        arguments: Command-line arguments; by default those of the process.

    Returns:
        The exit status: 1 if a process failed, a bound was passed or versions differ.
    """
    parser = argparse.ArgumentParser(description="Measure what it costs to compute every table.")
    parser.add_argument("--turns", type=int, default=1_000_000, help="rows of the turns table")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--before", type=Path, metavar="DIR", help="an earlier version's src folder"
    )
    parser.add_argument("--rounds", type=int, default=1, help="times each runs; the fastest counts")
    parser.add_argument("--cores", type=int, default=CORES, help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, nargs=2, help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if parsed.child:
        table, results = parsed.child
        print(json.dumps(compute(table, results, parsed.cores)))
        return 0
    try:
        found = measure(parsed.turns, parsed.before, parsed.rounds)
    except BenchmarkError as error:
        print(f"measures.py: {error}", file=sys.stderr)
        return 1
    print_figures(found)
    if parsed.json is not None:
        machine = {"processors": os.cpu_count(), "python": platform.python_version(),
                   "polars": version("polars")}  # fmt: skip
        parsed.json.write_text(json.dumps(machine | found, indent=2) + "\n", encoding="utf-8")
    return 0 if found["within_bounds"] and not found.get("differences") else 1


if __name__ == "__main__":
    sys.exit(main())
