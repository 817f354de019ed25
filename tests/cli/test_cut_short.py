"""A command that is killed or runs out of budget goes on: nothing finished is asked again."""

import json
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
from tests.cli.commands import Facts
from tests.cli.serving_all import reply_to
from tests.fuzzing import ATTACKS_ALONE, Script, at, script_server
from tests.studies import (
    HOLDFAST,
    finished_generations,
    holdfast,
    holdfast_apart,
    question_rows,
    write_jsonl,
)

CONNECTIONS = 4
SETTINGS: dict[str, tuple[str, ...]] = {
    "single-turn": ("run", "single-turn", "-T", "biases=recency,cultural"),
    "stick-or-switch": ("run", "stick-or-switch", "-T", "shots=0"),
    "medfuzz": ("run", "medfuzz", *ATTACKS_ALONE, "--epochs", "2"),
    "contexts": ("generate", "contexts", "--lengths", "2"),
    "contexts, then follow-ups": ("run", "followup", "-T", "techniques=context"),
    "a reader": ("run", "followup", "-T", "techniques=rethink"),
}


def command(name: str, site: Script, folder: Path, questions: int = 12) -> list[str]:
    """A study of these settings, with all that it leaves in a folder."""
    folder.mkdir(exist_ok=True)
    source = write_jsonl(folder.parent / "q.jsonl", question_rows(questions))
    writer = f"{{model: openai/writer, base_url: {site.url}}}"
    target = ["--model", "openai/gpt-4-target", "--model-base-url", site.url]
    models = {
        "medfuzz": at(site),
        "contexts": ["--model", "openai/writer", "--model-base-url", site.url,
                     "-o", str(folder / "contexts.jsonl")],
        "contexts, then follow-ups": [*target, "--model-role", f"generator={writer}"],
        "a reader": ["--model", "simulated/sycophant",
                     "--model-role", f"reader-all={writer.replace('writer', 'gpt-4-reader')}"],
    }  # fmt: skip
    return [*SETTINGS[name], *models.get(name, target), "--questions", source, "--json",
            "--max-connections", str(CONNECTIONS), "--log-dir", str(folder / "logs")]  # fmt: skip


def content(folder: Path) -> bytes | pl.DataFrame:
    """What a command leaves, without what tells of time."""
    turns = folder / "logs" / "turns.parquet"
    if turns.exists():
        return pl.read_parquet(turns).drop("latency")
    return (folder / "contexts.jsonl").read_bytes()


def check_same(folder: Path, unbroken: Path) -> None:
    left, right = content(folder), content(unbroken)
    if isinstance(left, pl.DataFrame) and isinstance(right, pl.DataFrame):
        assert left.equals(right)
        assert left["run"].n_unique() == 1
    else:
        assert left == right


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_killed_command_resumes_without_repeats(
    name: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    with script_server(reply_to, latency_ms=30) as site:
        whole = holdfast_apart(*command(name, site, tmp_path / "unbroken"), env=environment)
        assert whole.returncode == 0, whole.stderr
        calls, requests = json.loads(whole.stdout)["calls"], len(site.requests)
        site.requests.clear()
        process = subprocess.Popen(
            [str(HOLDFAST), *command(name, site, tmp_path / "killed")],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while len(site.requests) < requests // 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.1)
        assert requests // 2 <= len(site.requests) < requests
        assert not (tmp_path / "killed" / "contexts.jsonl").exists()
        logs = tmp_path / "killed" / "logs"
        cached_calls = finished_generations(logs) + finished_generations(logs / "preparation")
        second_run = holdfast_apart(*command(name, site, tmp_path / "killed"), env=environment)
        assert second_run.returncode == 0, second_run.stderr
        # only what was in flight at the kill is asked once more, by either model
        assert json.loads(second_run.stdout)["calls"] == calls - cached_calls
        assert site.repeated <= 2 * CONNECTIONS
    check_same(tmp_path / "killed", tmp_path / "unbroken")


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_budget_is_kept_and_the_command_resumes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_CACHE_DIR")
    with script_server(reply_to) as site:
        whole = holdfast(*command(name, site, tmp_path / "unbroken", 6))
        assert whole.returncode == 0, whole.stderr
        calls = json.loads(whole.stdout)["calls"]
        limit = calls * 2 // 5
        site.requests.clear()
        parts: list[Facts] = []
        for part in range(3):
            run = holdfast(*command(name, site, tmp_path / "r", 6), "--call-limit", str(limit))
            assert run.returncode == (3 if part < 2 else 0), run.stderr
            if run.returncode:
                assert f"{limit} of {limit} calls" in run.stderr
            if run.stdout:  # while contexts are written there is no outcome of a run
                parts.append(json.loads(run.stdout))
        assert site.repeated == 0
    assert [part["complete"] for part in parts] == [False] * (len(parts) - 1) + [True]
    # a text that the budget kept from being written is not counted as missing
    assert [part["missing"] for part in parts if "missing" in part] == [{}] * (
        len(parts) if name == "contexts" else 0
    )
    assert {part["calls"] for part in parts[:-1]} <= {limit}
    assert parts[-1]["calls"] == calls - 2 * limit
    check_same(tmp_path / "r", tmp_path / "unbroken")
