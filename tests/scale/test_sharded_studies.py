"""Shards of several protocols and models, and how they are kept apart."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast.dialogue.budget import Budget
from holdfast.errors import InputError
from holdfast.results.runs import logs_in, run_id
from holdfast.results.turns import turns_table
from holdfast.running.log_dir import lock_log_dir, lock_shard
from holdfast.running.shard import Shard
from holdfast.running.shards import Sharding
from tests.studies import holdfast, question_rows, write_jsonl


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.running.log_dir._PATIENCE", 0.1)


def run(*arguments: str) -> None:
    result = holdfast("run", *arguments)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_several_protocols_models_and_sets_give_the_unsharded_table(tmp_path: Path) -> None:
    subset = write_jsonl(tmp_path / "own.jsonl", question_rows(5))
    study = (
        "followup", "stick-or-switch", "--questions", "bank", "--questions", subset,
        "--model", "simulated/sycophant", "--model", "simulated/steadfast",
        "--limit", "4", "-T", "techniques=authority-prior",
    )  # fmt: skip
    run(*study, "--log-dir", "whole")
    for number in (3, 1, 2):
        run(*study, "--log-dir", "parts", "--shard", f"{number}/3")
    whole, parts = (turns_table([log_dir]).drop("latency") for log_dir in ("whole", "parts"))
    assert whole["run"].n_unique() == 8
    assert parts.equals(whole)
    assert {run_id(log) for log in logs_in("parts")} == {run_id(log) for log in logs_in("whole")}


@pytest.mark.slow
def test_a_run_grows_in_shards(tmp_path: Path) -> None:
    study = ("followup", "--model", "simulated/sycophant", "--limit", "4")
    run(*study, "-T", "techniques=authority-prior", "--log-dir", "grown")
    for more in (["--limit", "4"], ["--limit", "6"], ["--limit", "6", "--epochs", "2"]):
        for shard in ("1/2", "2/2"):
            run(*study, *more, "--log-dir", "grown", "--shard", shard)
    run(*study, "--limit", "6", "--epochs", "2", "--log-dir", "whole")
    of_shards, whole = (turns_table([log_dir]).drop("latency") for log_dir in ("grown", "whole"))
    # the one technique was put once, with a control of its own that two epochs do not need
    assert of_shards.filter(path="resample").height == 4
    of_shards = of_shards.filter(pl.col("path") != "resample")
    keys = ["question", "epoch", "path"]
    assert of_shards.sort(keys).equals(whole.sort(keys))
    places = [
        frame.select("question", "epoch").unique(maintain_order=True)
        for frame in (of_shards, whole)
    ]
    assert places[0].equals(places[1])


def test_more_shards_than_questions(tmp_path: Path) -> None:
    for number in range(1, 4):
        run("followup", "--model", "simulated/sycophant", "--limit", "2", "--shard", f"{number}/3")
    assert turns_table(["runs"])["question"].n_unique() == 2


def refused() -> list[str]:
    """The shards that may not be put now."""

    def allowed(shard: Shard) -> bool:
        try:
            with lock_shard("r", shard):
                return True
        except InputError:
            return False

    return [str(shard) for shard in (Shard(2, 1), Shard(2, 2), Shard(3, 1)) if not allowed(shard)]


def test_shards_exclude_each_other() -> None:
    assert refused() == []
    with lock_shard("r", Shard(2, 1)):
        assert refused() == ["1/2", "1/3"]
        result = holdfast("run", "followup", "--model", "simulated/sycophant", "--log-dir", "r")
        assert (result.returncode, "using shard 1/2" in result.stderr) == (2, True)
    with lock_log_dir("r"):
        assert refused() == ["1/2", "2/2", "1/3"]
        with lock_shard("r", Shard(2, 1), alone=False):  # put by whoever holds the log dir
            pass
    assert refused() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--shard", "1/2", "--shards", "2"], "Remove --shard"),
        (["--shard", "5/2"], "Write K/N with K from 1 to N"),
        (["--ray", "local"], "Add --shards N"),
        (
            ["--shard", "1/2", "--model-role", "generator=simulated/steadfast"],
            "'holdfast generate contexts'",
        ),
    ],
)
def test_incompatible_options_are_refused(options: list[str], words: str) -> None:
    result = holdfast("run", "followup", "--model", "simulated/sycophant", *options)
    assert result.returncode == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    result = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "1",
        "--shards", "1", "--ray", "local",
    )  # fmt: skip
    assert result.returncode == 2
    assert "pip install 'holdfast[ray]'" in result.stderr


def test_an_unreadable_log_has_no_finished_question(tmp_path: Path) -> None:
    run("followup", "--model", "simulated/sycophant", "--limit", "2", "--shard", "1/1")
    (log,) = Path("runs").glob("*.eval")
    log.write_bytes(log.read_bytes()[:-100])
    run("followup", "--model", "simulated/sycophant", "--limit", "2", "--shard", "1/1")
    with suppress(ValueError):
        log.unlink()
    assert isinstance(turns_table(["runs"]), pl.DataFrame)
    assert turns_table(["runs"])["question"].n_unique() == 2


def test_shards_divide_what_preparation_leaves_of_the_budget() -> None:
    running: Any = None
    options = {"call_limit": 10, "token_limit": 50, "cost_limit": None, "seed": 1}
    spent = Budget(calls=4, tokens=70, cost=2.0)
    assert Sharding(running, options, 2)._remaining_options(spent) == {
        "call_limit": 6, "token_limit": 0, "cost_limit": None, "seed": 1
    }  # fmt: skip
