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

from .driving import FAULT_PATH, MARK, TURNS, Sound, Study, apart

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
def test_malformed_fields_are_unknown_and_the_answer_counts(
    kind: str, sound: pl.DataFrame, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path)
        outcome = study.outcome()
        assert (outcome["calls"], server.stats()["attempts"]) == (3 * TURNS, 3 * TURNS)
        turns, at_fault = study.turns(), pl.col("path") == FAULT_PATH
        assert study.outcome()["calls"] == 0
    assert turns.filter(~at_fault).equals(sound.filter(~at_fault))
    unknown = list(UNKNOWN[kind])
    known_columns = turns.filter(at_fault).drop(unknown)
    assert known_columns.equals(sound.filter(at_fault).drop(unknown))
    odd = turns.filter(at_fault).select(unknown)
    assert all(row == tuple(0 if n in TOKENS else "unknown" for n in unknown) for row in odd.rows())


@pytest.mark.rest_slow
@pytest.mark.parametrize("provider", ["lean", "openai"])
@pytest.mark.parametrize("kind", ["half-emoji", "half-emoji-model", "huge-usage"])
def test_unwritable_characters_are_replaced(
    provider: str, kind: str, sound_by: Sound, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, provider=provider)
        study.outcome()
    at_fault = pl.col("path") == FAULT_PATH
    assert study.turns().filter(~at_fault).equals(sound_by(provider).filter(~at_fault))
    odd = study.turns().filter(at_fault)
    assert odd["status"].to_list() == ["parsed"] * 3
    if kind == "half-emoji":
        assert odd["reply"].to_list() == ["So be it \ufffd\n\nFinal Answer: (A)"] * 3
    elif kind == "half-emoji-model":
        assert odd["answered_by"].to_list() == ["bench\ufffd"] * 3
    else:
        assert odd["input_tokens"].to_list() == [0] * 3
    export = holdfast(
        "export", study.log_dir, "--format", "openai-chat", "-o", tmp_path / "chats.jsonl"
    )
    assert export.returncode == 0, export.stderr


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("kind", "words", "attempts"),
    [
        ("error-in-200", "the worker is restarting", 2),
        ("lasting-error-in-200", "HTTP 404: no such adapter. A retry will not help", 1),
    ],
)
def test_an_error_sent_as_a_reply_keeps_the_servers_words(
    kind: str, words: str, attempts: int, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        run = Study(server, tmp_path, n=1).run("--generate-config", "{max_retries: 1}")
        assert run.returncode == 3
        assert words in run.stderr.strip().splitlines()[-1]
        assert server.stats()["faults"] == {kind: attempts}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["endless", "gzip-bomb"])
def test_an_endless_reply_is_abandoned_at_64_mib(kind: str, tmp_path: Path) -> None:
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
    assert study.turns().filter(pl.col("status") == "error")["path"].to_list() == [FAULT_PATH]


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


def test_a_seed_beyond_64_bits_is_refused_first(tmp_path: Path) -> None:
    with faulty_server() as server:
        # what replicates add to a seed has to fit too
        for arguments in (
            ("--seed", str(2**63)), ("-T", f"seed={2**63}"), ("--seed", str(-(2**70))),
            ("--seed", str(2**63 - 1), "--epochs", "2"),
        ):  # fmt: skip
            run = Study(server, tmp_path).run(*arguments)
            assert run.returncode == 2, run.stderr
            assert "Traceback" not in run.stderr
        assert server.stats()["attempts"] == 0
        assert not (tmp_path / "r").exists()
        outcome = Study(server, tmp_path).outcome("--seed", str(2**62))
        assert json.dumps(outcome)
