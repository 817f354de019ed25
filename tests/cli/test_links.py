"""A link in a received log dir: whatever command runs there, nothing outside of it changes."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.studies import Done, holdfast, question_rows, write_jsonl

RULES = "[[rule]]\nmin_accuracy = 0.5\n"
RUN = ("run", "followup", "single-turn", "--model", "simulated/sycophant",
       "--model-role", "generator=simulated/generator", "-T", "techniques=rag-style,double-check",
       "-T", "biases=recency")  # fmt: skip


@pytest.fixture(autouse=True)
def default_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_CACHE_DIR", raising=False)


@pytest.fixture(scope="module")
def received_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and all that goes into commands on it."""
    folder = tmp_path_factory.mktemp("received")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOLDFAST_CACHE_DIR", raising=False)
        write_jsonl(folder / "q.jsonl", question_rows(2))
        write_jsonl(folder / "l.jsonl", [{"question": "q1", "system": "s"}])
        (folder / "rules.toml").write_text(RULES)
        assert run(folder).returncode == 0
        sheet = folder / "audit.csv"
        export = holdfast("export", folder / "runs", "--format", "audit", "-o", sheet)
        assert export.returncode == 0, export.stderr
        labels = pl.read_csv(sheet, infer_schema=False)
        labels.with_columns(label=pl.lit("B"), label_first=pl.lit("B")).write_csv(sheet)
    return folder


@pytest.fixture
def folder(received_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(received_folder, tmp_path / "received")


def run(folder: Path, *more: str) -> Done:
    return holdfast(*RUN, "--questions", folder / "q.jsonl", "--labels", folder / "l.jsonl",
                    "--log-dir", folder / "runs", *more)  # fmt: skip


def grow(folder: Path) -> Done:
    shutil.rmtree(folder / "runs" / ".cache", ignore_errors=True)
    return run(folder, "--epochs", "2")


def sharded(folder: Path) -> Done:
    questions = ("--questions", folder / "q.jsonl", "--log-dir", folder / "runs")
    return holdfast("run", "followup", "--model", "simulated/sycophant", *questions, "-T",
                    "techniques=double-check", "--shard", "1/2")  # fmt: skip


def score(folder: Path) -> Done:
    return holdfast("score", folder / "runs")


def audit(folder: Path) -> Done:
    return holdfast("import", folder / "audit.csv", "--audit", folder / "runs")


def verdict(folder: Path) -> Done:
    return holdfast("run", "followup", "--until", folder / "rules.toml",
                    "--model", "simulated/sycophant",
                    "--limit", "4", "--log-dir", folder / "runs")  # fmt: skip


def into(folder: Path, name: str, *command: str | Path) -> Done:
    return holdfast(*command, "-o", folder / "runs" / name)


def report(folder: Path) -> Done:
    return into(folder, "report.html", "report", folder / "runs")


def site(folder: Path) -> Done:
    return holdfast("report", folder / "runs", "--leaderboard", folder / "runs" / "site")


def figures(folder: Path) -> Done:
    return holdfast("report", folder / "runs", "-o", folder / "r.html",
                    "--figures", folder / "runs" / "figures")  # fmt: skip


def table(folder: Path) -> Done:
    return into(folder, "t.csv", "table", folder / "runs", "--format", "csv")


def export(folder: Path) -> Done:
    return into(folder, "hub", "export", folder / "runs", "--format", "hub")


def contexts(folder: Path) -> Done:
    return into(folder, "c.jsonl", "generate", "contexts", "--model", "simulated/generator",
                "--limit", "2", "--log-dir", folder / "made")  # fmt: skip


def junit(folder: Path) -> Done:
    return holdfast("gate", folder / "runs", "--rules", folder / "rules.toml", "--junit",
                    folder / "runs" / "junit.xml")  # fmt: skip


FILES: dict[str, Callable[[Path], Done]] = {
    "turns.parquet": run,
    "plan.json": run,
    "labels.jsonl": run,
    ".holdfast.pid": score,
    ".holdfast.lock": score,
    ".shard-1-of-2.lock": sharded,
    "readings.parquet": score,
    "contexts.jsonl": run,
    "distractors.jsonl": run,
    "audit.parquet": audit,
    "verdict.json": verdict,
    "report.html": report,
    "t.csv": table,
    "c.jsonl": contexts,
    "junit.xml": junit,
}
"""What a command writes beside logs, or what a user has it write there."""

FOLDERS: dict[str, Callable[[Path], Done]] = {
    ".cache": grow, "preparation": run, "site": site, "figures": figures, "hub": export,
    "preparation/.cache": run,
}  # fmt: skip


def seen(outside: Path) -> dict[str, tuple[int, bytes | None]]:
    """Everything below a folder, with its time and content."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in (outside, *sorted(outside.rglob("*")))
    }


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder of the user that must stay as it is."""
    outside = tmp_path / "outside"
    (outside / "empty").mkdir(parents=True)
    (outside / "mine.txt").write_text('{"dataset": "mine"}\n')
    before = seen(outside)
    yield outside
    assert seen(outside) == before


def put_link(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def check_one_line(result: Done, path: Path) -> None:
    """It has replaced the link, or has refused it in one line."""
    assert "Traceback" not in result.stderr
    if result.returncode != 2:
        assert not path.is_symlink() or not path.exists()
        return
    assert result.stdout == ""
    assert str(path) in result.stderr.splitlines()[-1], result.stderr


@pytest.mark.parametrize("target", ["mine.txt", "new.txt"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.rest_slow
def test_files_are_not_written_through_links(
    name: str, target: str, folder: Path, outside: Path
) -> None:
    path = folder / "runs" / name
    put_link(path, outside / target)
    if FILES[name] is verdict:
        shutil.rmtree(folder / "runs")
        (folder / "runs").mkdir()
        put_link(path, outside / target)
    check_one_line(FILES[name](folder), path)


@pytest.mark.parametrize("target", [".", "empty"])
@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.rest_slow
def test_nothing_is_written_into_a_folder_that_is_a_link(
    name: str, target: str, folder: Path, outside: Path
) -> None:
    path = folder / "runs" / name
    put_link(path, outside / target)
    check_one_line(FOLDERS[name](folder), path)


def test_the_partial_file_is_not_a_link(
    folder: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getpid", lambda: 7)
    for name in ("turns.parquet", "plan.json", "labels.jsonl", "readings.parquet"):
        put_link(folder / "runs" / f".{name}.7.partial", outside / "mine.txt")
    assert run(folder).returncode == 0
    assert score(folder).returncode == 0


@pytest.mark.parametrize("target", ["mine.txt", "empty", "new.txt"])
def test_a_damaged_log_is_set_aside_in_its_folder(target: str, folder: Path, outside: Path) -> None:
    log = sorted((folder / "runs").glob("*.eval"))[0]
    log.write_bytes(log.read_bytes()[:500])
    put_link(log.with_name(f"{log.name}.damaged"), outside / target)
    check_one_line(run(folder), log)


@pytest.mark.slow
def test_the_users_log_dir_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (folder / "runs").rename(tmp_path / "disk")
    (folder / "runs").symlink_to(tmp_path / "disk")
    assert run(folder).returncode == 0
    assert score(folder).returncode == 0
    assert report(folder).returncode == 0
