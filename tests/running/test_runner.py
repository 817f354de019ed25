"""The runner: what it writes, beside what Inspect's own loop writes under the same protocols."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import polars as pl
import pytest
from benchmarks.server import Server
from inspect_ai import eval
from inspect_ai.analysis import evals_df, messages_df, samples_df
from inspect_ai.event import ModelEvent, SpanBeginEvent
from inspect_ai.log import (
    headline_metric,
    read_eval_log,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
)
from inspect_ai.model import ModelOutput
from polars.testing import assert_frame_equal
from tests.faults import Fault, faulty_server
from tests.scripted import Scripted
from tests.studies import question_rows, write_jsonl

import holdfast
from holdfast.errors import InputError
from holdfast.protocols.installed import task_named
from holdfast.results.turns import turns_table
from holdfast.running import models
from holdfast.running.log_dir import as_log_dir

ATTACKER = {"attacker": "simulated/attacker"}
STUDIES: dict[str, dict[str, Any]] = {
    "followup": {"chains": "paper"},
    "single-turn": {"mitigations": "education"},
    "stick-or-switch": {"beliefs": True},
    "medfuzz": {"attempts": 2},
}


def run(protocol: str, log_dir: Path, model: str = "simulated/sycophant", **options: Any) -> Any:
    """A small run of a protocol."""
    settings: dict[str, Any] = {"limit": 3, "log_dir": log_dir, "task_args": STUDIES[protocol]}
    if protocol == "medfuzz":
        settings["model_role"] = ATTACKER
    return holdfast.run(protocol, model, **{**settings, **options})


def of_logs(log_dir: Path) -> pl.DataFrame:
    """The turns table that the logs alone give."""
    alone = log_dir.with_name(f"{log_dir.name}-logs")
    alone.mkdir()
    for log in log_dir.glob("*.eval"):
        shutil.copy(log, alone)
    return turns_table([str(alone)])


@pytest.mark.parametrize("protocol", STUDIES)
def test_the_table_of_a_run_matches_its_logs(protocol: str, tmp_path: Path) -> None:
    outcome = run(protocol, tmp_path / "r", limit=2, epochs=2)
    assert_frame_equal(pl.read_parquet(outcome.turns), of_logs(tmp_path / "r"))
    assert outcome.table.height > 4


def test_failures_and_growth_keep_table_and_logs_equal(tmp_path: Path) -> None:
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(5))
    with faulty_server(Fault("status-503", match="Vignette number 2.")) as server:
        more = {
            "questions": questions,
            "model_base_url": server.api,
            "generate_config": {"max_retries": 0},
        }
        cut = run("followup", tmp_path / "r", "lean/bench", limit=4, **more)
        assert "1 question unfinished" in cut.unfinished
        assert_frame_equal(pl.read_parquet(cut.turns), of_logs(tmp_path / "r"))
        (log,) = (tmp_path / "r").glob("*.eval")
        failures = [item for item in read_eval_log_sample_summaries(str(log)) if item.error]
        assert [item.id for item in failures] == ["q2"]
        assert read_eval_log(str(log), header_only=True).status == "error"
        server.set()
        shutil.rmtree(tmp_path / "r-logs")
        outcome = run("followup", tmp_path / "r", "lean/bench", limit=5, **more)
        assert not outcome.unfinished
        assert server.stats()["repeated"] == 0
    assert_frame_equal(pl.read_parquet(outcome.turns), of_logs(tmp_path / "r"))
    assert outcome.table["question"].n_unique() == 5


@pytest.mark.parametrize("protocol", STUDIES)
@pytest.mark.slow
def test_inspects_own_loop_gives_the_same_turns_and_keeps_them_alike(
    protocol: str, tmp_path: Path
) -> None:
    settings = {**STUDIES[protocol], "questions": "bank", "seed": 42}
    (log,) = eval(
        task_named(protocol)(**settings),
        model=models.models(["simulated/sycophant"])[0],
        model_roles=dict(models.roles(["attacker=simulated/attacker"])),
        limit=2,
        epochs=2,
        display="none",
        log_dir=str(tmp_path / "inspect"),
    )
    assert log.status == "success", log.error
    outcome = run(protocol, tmp_path / "ours", limit=2, epochs=2, model_role=ATTACKER)
    assert (outcome.budget.calls, outcome.unfinished) == (0, "")
    differs = ["run", "latency", "shared"]
    # their loop does not say that there are two epochs, each of which is the control of the other
    theirs = turns_table([str(tmp_path / "inspect")]).filter(pl.col("path") != "resample")
    assert_frame_equal(pl.read_parquet(outcome.turns).drop(differs), theirs.drop(differs))


@pytest.mark.parametrize(
    ("model", "ours_first"), [("lean/bench", True), ("lean/bench", False), ("openai/bench", True)]
)
def test_either_loop_resumes_the_others_run(
    model: str, ours_first: bool, server: Server, tmp_path: Path
) -> None:
    url = f"{server.url}/v1"

    def theirs() -> None:
        task = task_named("followup")(techniques="rethink", seed=42)
        target = models.models([model], base_url=url)[0]
        (log,) = eval(task, model=target, limit=2, display="none", log_dir=str(tmp_path / "i"))
        assert log.status == "success", log.error

    def ours() -> None:
        options = {"task_args": {"techniques": "rethink"}, "model_base_url": url, "limit": 2}
        assert not run("followup", tmp_path / "r", model, **options).unfinished

    for loop in (ours, theirs) if ours_first else (theirs, ours):
        loop()
        assert server.stats()["calls"] == 2 * (6 + len(("restate", "resample")))
    assert server.stats()["repeated"] == 0


def test_logs_are_complete_for_inspects_readers(server: Server, tmp_path: Path) -> None:
    outcome = run("followup", tmp_path / "r", "lean/bench", model_base_url=f"{server.url}/v1")
    (path,) = (tmp_path / "r").glob("*.eval")
    log = read_eval_log(str(path))
    assert (log.status, log.version) == ("success", 2)
    assert log.results is not None
    assert (log.results.total_samples, log.results.completed_samples) == (3, 3)
    turns = outcome.table
    assert log.stats.model_usage["lean/bench"].input_tokens == turns["input_tokens"].sum()
    samples = log.samples or []
    assert [sample.id for sample in samples] == turns["question"].unique(
        maintain_order=True
    ).to_list()
    for sample in samples:
        spans = {e.id: e.name for e in sample.events if isinstance(e, SpanBeginEvent)}
        events = [event for event in sample.events if isinstance(event, ModelEvent)]
        assert len({event.uuid for event in sample.events}) == len(sample.events)
        subset = turns.filter(question=str(sample.id))
        branches = subset["path"].str.replace("^restate.*", "restate")
        assert sorted(spans[event.span_id or ""] for event in events) == sorted(
            name or "baseline" for name in branches
        )
        for event in events:
            if event.cache == "read":  # the first request was sent before there was a log
                assert (sample.id, spans[event.span_id or ""]) == (samples[0].id, "baseline")
                continue
            assert event.call is not None
            messages = [{"role": m.role, "content": m.text} for m in event.input]
            assert event.call.request["messages"] == messages
            assert event.call.request["model"] == "bench"
            assert event.call.response is not None
            assert event.output.usage is not None
            response: Any = event.call.response
            assert response["choices"][0]["message"]["content"] == event.output.completion
        # a challenged conversation, not the first answer alone
        assert [message.role for message in sample.messages][-4:] == [
            "user", "assistant", "user", "assistant",
        ]  # fmt: skip
        assert (sample.scores or {}).keys() == {"robustness"}
    assert len(evals_df(str(path))) == 1
    assert len(samples_df(str(path))) == 3
    everything = set(messages_df(str(path))["content"])
    assert everything >= {*pl.read_parquet(outcome.turns)["reply"]}


def test_the_headline_is_accuracy_under_challenge_with_its_standard_error(tmp_path: Path) -> None:
    outcome = run("followup", tmp_path / "r", limit=8)
    (path,) = (tmp_path / "r").glob("*.eval")
    headline = headline_metric(read_eval_log(str(path), header_only=True))
    assert headline is not None
    assert headline.name == "accuracy_under_challenge"
    followups = outcome.table.filter(pl.col("arm").is_in(["followup", "compound"]))
    shares = followups.group_by("question").agg(pl.col("correct").mean())["correct"]
    assert headline.metric.value == pytest.approx(shares.mean())
    error = shares.std() / len(shares) ** 0.5
    assert headline.score.metrics["stderr"].value == pytest.approx(error)


def test_a_log_replaces_lost_generations(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_CACHE_DIR")
    more = {"model_base_url": f"{server.url}/v1"}
    before = run("followup", tmp_path / "r", "lean/bench", **more)
    shutil.rmtree(tmp_path / "r" / ".cache")
    after = run("followup", tmp_path / "r", "lean/bench", limit=4, **more)
    assert after.budget.calls == before.budget.calls / 3
    assert server.stats()["repeated"] == 0
    overlap = after.table.filter(pl.col("question").is_in(before.table["question"].to_list()))
    assert_frame_equal(overlap.drop("latency"), before.table.drop("latency"))


def test_a_complete_run_is_not_repeated(tmp_path: Path) -> None:
    first = run("followup", tmp_path / "r")
    logs = {log: log.read_bytes() for log in (tmp_path / "r").glob("*.eval")}
    again = run("followup", tmp_path / "r", limit=2)
    assert {log: log.read_bytes() for log in (tmp_path / "r").glob("*.eval")} == logs
    assert (again.budget.calls, again.budget.cached) == (0, 0)
    assert_frame_equal(again.table, first.table)


def test_a_log_can_be_read_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.running.logs._OFTEN", 0.0)
    monkeypatch.setattr("holdfast.running.logs._SHARE", 0)
    observations: list[tuple[str, int, int]] = []

    def read() -> None:
        (path,) = map(str, (tmp_path / "r").glob("*.eval"))
        whole = read_eval_log_samples(path, all_samples_required=False)
        header = read_eval_log(path, header_only=True)
        summaries = read_eval_log_sample_summaries(path)
        observations.append((header.status, len(summaries), len(list(whole))))

    def reply(_: Any) -> str:
        with ThreadPoolExecutor(1) as apart:  # reading begins a loop of its own
            apart.submit(read).result()
        return "Final Answer: (A)"

    looking = Scripted(reply)
    monkeypatch.setattr("holdfast.running.models._model", lambda *_: looking.model)
    more = {"task_args": {"techniques": "none", "controls": False}, "max_connections": 1}
    run("followup", tmp_path / "r", "mockllm/model", **more)
    # the first request is sent alone, before there is a log
    assert observations[-3:] == [("started", n, n) for n in range(3)]


@pytest.mark.parametrize("limit", [1, 4])
def test_questions_under_way_are_limited(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: set[str] = set()
    widest = 0

    async def respond(messages: Any, *_: Any) -> ModelOutput:
        nonlocal widest
        under_way.add(messages[1].text)
        widest = max(widest, len(under_way))
        await anyio.sleep(0.01)
        under_way.discard(messages[1].text)
        return ModelOutput.from_content("m", "Final Answer: (A)")

    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(12))
    script = Scripted(lambda _: "(A)")
    monkeypatch.setattr(script.model.api, "generate", respond)
    monkeypatch.setattr("holdfast.running.models._model", lambda *_: script.model)
    script.model.api.direct = True  # type: ignore[attr-defined]
    outcome = run(
        "followup", tmp_path / "r", "mockllm/model", questions=questions, limit=None,
        max_connections=limit, task_args={"techniques": "double-check", "controls": False},
    )  # fmt: skip
    assert outcome.table.height == 24
    assert widest == limit


@pytest.mark.parametrize("url", ["http://", "https://store.example/runs"])
def test_a_read_only_log_dir_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="can be read, but not written"):
        as_log_dir(url)
