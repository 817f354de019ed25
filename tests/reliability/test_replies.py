"""Replies that are odd are replies: they have a status, and no other turn is touched."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.faults import LARGE, Fault, faulty_server

from .driving import FAULT_PATH, MARK, TURNS, Sound, Study

ODD = [
    ("refusal", "refused", "content-filter", "content_filter"),
    ("content-filter", "refused", "content-filter", "content_filter"),
    ("filtered-request", "refused", "content-filter", "content_filter"),
    ("cut-off", "none", "cut-off", "max_tokens"),
    ("empty-content", "none", "empty", "stop"),
    ("null-content", "none", "empty", "stop"),
    ("large", "parsed", "final-answer", "stop"),
    ("wrong-model", "parsed", "final-answer", "stop"),
]


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("kind", "status", "rule", "stop"),
    [
        pytest.param(*odd, id=odd[0], marks=[pytest.mark.slow] if odd[0] == "large" else [])
        for odd in ODD
    ],
)
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_an_odd_reply_has_a_status_and_touches_no_other_turn(
    provider: str, kind: str, status: str, rule: str, stop: str, sound_by: Sound, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, provider=provider)
        outcome = study.outcome()
        turns, at_fault = study.turns(), pl.col("path") == FAULT_PATH
        assert turns.filter(~at_fault).equals(sound_by(provider).filter(~at_fault))
        odd = turns.filter(at_fault)
        assert odd.select("status", "rule", "stop").rows() == [(status, rule, stop)] * 3
        assert (outcome["calls"], outcome["complete"]) == (3 * TURNS, True)

        # an odd reply is kept like any other: nothing is asked again as the run grows
        server.set()
        more = replace(study, techniques="rethink,authority-prior").outcome()
        assert more["calls"] == 3
        assert server.stats()["repeated"] == 0
    if kind == "large":
        assert odd["reply"].str.len_chars().to_list() == [LARGE + 19] * 3


@pytest.mark.parametrize(
    ("kind", "cut_off", "answered_by", "words"),
    [
        ("cut-off", {"n": 1, "unread": 1}, None, "cut off"),
        ("wrong-model", None, {"answered_by": "another-model-7b", "n": 1}, "another-model-7b"),
        ("slow-drip", None, None, ""),
    ],
)
def test_the_summary_counts_truncated_and_foreign_replies(
    kind: str, cut_off: Any, answered_by: Any, words: str, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK, seconds=0.1)) as server:
        study = Study(server, tmp_path, n=1)
        outcome, summary = study.outcome(), study.run().stdout
    assert outcome["cut_off"] == ([{"model": "lean/bench", **cut_off}] if cut_off else [])
    assert outcome["answered_by"] == (
        [{"model": "lean/bench", **answered_by}] if answered_by else []
    )
    assert words in summary
    assert ("cut off" in summary, "answered by" in summary) == (
        cut_off is not None,
        answered_by is not None,
    )
