"""Replies that no server should send: nothing is lost but what makes no sense."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from benchmarks.contestants import LAUNCH, Cost

from tests.faults import Fault, faulty_server
from tests.studies import HOLDFAST, holdfast

from .driving import MARK, MARKED, TURNS, Sound, Study, apart

TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")

UNKNOWN = {
    "huge-usage": ("input_tokens",),
    "negative-usage": ("output_tokens",),
    "usage-as-text": TOKENS,
    "usage-of-texts": ("input_tokens",),
    "no-usage": TOKENS,
    "finish-as-list": ("stop",),
    "logprobs-as-text": (),
    "logprobs-of-texts": (),
    "reasoning-as-object": (),
    "model-as-object": (),
    "content-in-parts": (),
    "endless-digits": (),
    "deep": (),
}
"""By kind, the columns of the turns table that such a reply leaves unknown."""


@pytest.mark.rest_slow
@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_is_malformed_is_unknown_and_the_answer_counts(
    kind: str, sound: pl.DataFrame, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path)
        outcome = study.outcome()
        assert (outcome["calls"], server.stats()["attempts"]) == (3 * TURNS, 3 * TURNS)
        turns, here = study.turns(), pl.col("path") == MARKED
        assert study.outcome()["calls"] == 0
    assert turns.filter(~here).equals(sound.filter(~here))
    unknown = list(UNKNOWN[kind])
    known = turns.filter(here).drop(unknown)
    assert known.equals(sound.filter(here).drop(unknown))
    odd = turns.filter(here).select(unknown)
    assert all(row == tuple(0 if n in TOKENS else "unknown" for n in unknown) for row in odd.rows())


@pytest.mark.rest_slow
@pytest.mark.parametrize("provider", ["lean", "openai"])
@pytest.mark.parametrize("kind", ["half-emoji", "half-emoji-model", "huge-usage"])
def test_what_no_file_could_hold_is_replaced_and_the_turns_table_is_written(
    provider: str, kind: str, sound_by: Sound, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, provider=provider)
        study.outcome()
    here = pl.col("path") == MARKED
    assert study.turns().filter(~here).equals(sound_by(provider).filter(~here))
    odd = study.turns().filter(here)
    assert odd["status"].to_list() == ["parsed"] * 3
    if kind == "half-emoji":
        assert odd["reply"].to_list() == ["So be it \ufffd\n\nFinal Answer: (A)"] * 3
    elif kind == "half-emoji-model":
        assert odd["answered_by"].to_list() == ["bench\ufffd"] * 3
    else:
        assert odd["input_tokens"].to_list() == [0] * 3
    written = holdfast(
        "export", study.log_dir, "--format", "openai-chat", "-o", tmp_path / "chats.jsonl"
    )
    assert written.returncode == 0, written.stderr


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("kind", "told", "asked"),
    [
        ("error-in-200", "the worker is restarting", 2),
        ("lasting-error-in-200", "HTTP 404: no such adapter. A retry will not help", 1),
    ],
)
def test_an_error_with_the_status_of_a_reply_is_told_in_the_servers_words(
    kind: str, told: str, asked: int, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        run = Study(server, tmp_path, n=1).run("--generate-config", "{max_retries: 1}")
        assert run.returncode == 3
        assert told in run.stderr.strip().splitlines()[-1]
        assert server.stats()["faults"] == {kind: asked}


@pytest.mark.rest_slow
@pytest.mark.parametrize("kind", ["endless", "gzip-bomb"])
def test_a_reply_without_end_is_given_up_at_64_mib(kind: str, tmp_path: Path) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, n=1)
        launch = [sys.executable, LAUNCH, tmp_path / "cost.json", HOLDFAST]
        run = subprocess.run(
            [*map(str, [*launch, *study.command("--json")])],
            capture_output=True, text=True, env=apart(), timeout=300, check=False,
        )  # fmt: skip
        cost = Cost(*json.loads((tmp_path / "cost.json").read_text()))
        assert run.returncode == 3, run.stderr
        assert server.stats()["faults"] == {kind: 1}
        assert server.stats()["finished"] == TURNS - 1
    last = run.stderr.strip().splitlines()[-1]
    assert "the reply is larger than 64 MiB" in last
    assert "LEAN_MAX_REPLY_MIB" in last
    # a run by itself takes some 300 MiB
    assert 100 < cost.peak_rss_mb < 900
    assert study.turns().filter(pl.col("status") == "error")["path"].to_list() == [MARKED]


@pytest.mark.slow
def test_the_largest_reply_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with faulty_server(Fault("large", match=MARK)) as server:
        study = Study(server, tmp_path, n=1)
        monkeypatch.setenv("LEAN_MAX_REPLY_MIB", "9")
        run = study.run("--json")
        assert run.returncode == 3
        assert "larger than 9 MiB" in run.stderr
        monkeypatch.setenv("LEAN_MAX_REPLY_MIB", "10")
        assert study.outcome()["calls"] == 1
        monkeypatch.setenv("LEAN_MAX_REPLY_MIB", "much")
        run = study.run()
    assert run.returncode == 2
    assert run.stderr == ("holdfast: LEAN_MAX_REPLY_MIB: is 'much'. Give a whole number of MiB.\n")


def test_a_seed_beyond_64_bits_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with faulty_server() as server:
        # what replicates add to a seed has to fit too
        for given in (
            ("--seed", str(2**63)), ("-T", f"seed={2**63}"), ("--seed", str(-(2**70))),
            ("--seed", str(2**63 - 1), "--epochs", "2"),
        ):  # fmt: skip
            run = Study(server, tmp_path).run(*given)
            assert run.returncode == 2, run.stderr
            assert "Traceback" not in run.stderr
        assert server.stats()["attempts"] == 0
        assert not (tmp_path / "r").exists()
        outcome = Study(server, tmp_path).outcome("--seed", str(2**62))
        assert json.dumps(outcome)
