"""Replies that are odd are replies: they have a status, and no other turn is touched."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.faults import LARGE, Fault, faulty_server

from .driving import MARK, MARKED, TURNS, Sound, Study

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
        turns, here = study.turns(), pl.col("path") == MARKED
        assert turns.filter(~here).equals(sound_by(provider).filter(~here))
        odd = turns.filter(here)
        assert odd.select("status", "rule", "stop").rows() == [(status, rule, stop)] * 3
        assert (outcome["calls"], outcome["complete"]) == (3 * TURNS, True)

        # an odd reply is kept like any other: nothing is asked again as the run grows
        server.set()
        more = replace(study, techniques="rethink,authority-prior").outcome()
        assert more["calls"] == 3
        assert server.stats()["repeated"] == 0
    if kind == "large":
        assert odd["reply"].str.len_chars().to_list() == [LARGE + 19] * 3


def _summary(kind: str, tmp_path: Path, *more: str) -> Any:
    with faulty_server(Fault(kind, match=MARK, seconds=0.1)) as server:
        study = Study(server, tmp_path)
        return study.outcome(*more), study.run(*more).stdout


def test_cut_off_replies_are_counted_in_the_summary(tmp_path: Path) -> None:
    outcome, printed = _summary("cut-off", tmp_path)
    assert outcome["cut_off"] == [{"model": "lean/bench", "n": 3, "unread": 3}]
    assert "lean/bench: 3 replies cut off by the token limit, 3 of them without an" in printed


def test_another_model_than_the_one_asked_is_named_in_the_summary(tmp_path: Path) -> None:
    outcome, printed = _summary("wrong-model", tmp_path)
    named = {"model": "lean/bench", "answered_by": "another-model-7b", "n": 3}
    assert outcome["answered_by"] == [named]
    assert "lean/bench: 3 turns answered by 'another-model-7b'" in printed


def test_a_sound_run_says_neither(tmp_path: Path) -> None:
    outcome, printed = _summary("slow-drip", tmp_path)
    assert (outcome["cut_off"], outcome["answered_by"]) == ([], [])
    assert "cut off" not in printed
    assert "answered by" not in printed
