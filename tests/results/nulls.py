"""Turns tables of many studies whose truth is known, drawn without a runner.

Every answer is drawn anew, whatever is said, and right with probability ``right``; a challenge
takes a right answer with the true ``causal`` rate, a correction mends a wrong one with ``update``.
Each study is a model of the table.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from tests.results.frames import filled

WORDINGS = ("authority-prior", "social-proof-prior")

Truths = NDArray[np.bool_]

BOUND = 0.94 - 2.58 * (0.94 * 0.06 / 2000) ** 0.5
"""0.94, less what 2,000 studies leave to chance (99%); of 200 below 0.9 once in thousands."""
SIZES = [
    (200, 60, 0.9),
    *(pytest.param(2000, n, BOUND, marks=pytest.mark.slow) for n in (60, 200, 1273)),
]
"""Studies, their questions, and how many intervals have to hold the truth."""


def coverage(frame: pl.DataFrame, low: str, high: str, truth: float) -> float:
    """How often the interval holds the truth, of the studies that have one."""
    inside = frame.drop_nulls([low, high]).select(pl.lit(truth).is_between(low, high))
    assert inside.height >= frame.height * 0.9
    return float(inside.mean().item())


def studies(
    number: int,
    questions: int,
    *,
    right: float = 0.7,
    causal: float = 0.0,
    update: float = 0.0,
    seed: int = 1,
    chain: bool = False,
    wordings: Sequence[str] = WORDINGS,
) -> pl.DataFrame:
    """So many studies of follow-ups with controls and corrections, one epoch each."""
    rng = np.random.default_rng([seed, number, questions])
    shape = (number, questions)

    def anew() -> Truths:
        return rng.random(shape) < right

    def moved(rate: float) -> Truths:
        return rng.random(shape) < rate

    first = anew()
    everywhere = np.ones(shape, bool)
    parts = [_turns("baseline", "", 0, first, everywhere)]
    parts += [
        _turns("control", "resample", 0, anew(), everywhere),
        _turns("control", "restate", 1, anew(), everywhere),
    ]
    for wording in wordings:
        parts.append(_turns("followup", wording, 1, anew() & ~moved(causal), everywhere))
        right_after = anew() | moved(update)
        parts.append(_turns("correction", f"correction:{wording}", 1, right_after, ~first))
    if chain:
        parts += [
            _turns("control", "restate>restate", 2, anew(), everywhere),
            _turns("compound", ">".join(WORDINGS), 2, anew() & ~moved(causal), everywhere),
        ]
    return pl.concat(parts)


def challenged(number: int, questions: int, **settings: Any) -> pl.DataFrame:
    """The first answers and replies to challenges of ``studies``, without what is put beside."""
    turns = studies(number, questions, **settings)
    return turns.filter(pl.col("arm").is_in(["baseline", "followup"]))


def offered(
    number: int,
    questions: int,
    *,
    right: float = 0.7,
    causal: float = 0.0,
    seed: int = 1,
    turns: int = 3,
) -> pl.DataFrame:
    """So many studies of Stick-or-Switch, right answers held and their controls.

    An offer takes a held answer with the ``causal`` rate, beyond being answered anew.
    """
    rng = np.random.default_rng([seed, number, questions, turns])
    shape = (number, questions)
    first = rng.random(shape) < right
    parts = []
    for arm, rate in (("positive", causal), ("positive-control", 0.0)):
        mask, right_so_far = np.ones(shape, bool), first
        for turn in range(turns):
            if turn:
                right_so_far = (rng.random(shape) < right) & ~(rng.random(shape) < rate)
            # turn 1 is shared, and a conversation stops at its first departure
            if turn or arm == "positive":
                frame = _turns(arm, ">".join(["offer"] * (turn + 1)), turn, right_so_far, mask)
                options = "A," + ",".join("BCDEFGHIJ"[: turn + 1 if arm == "positive" else 1])
                parts.append(frame.with_columns(shown=pl.lit(options)))
            mask = mask & right_so_far
    return pl.concat(parts).with_columns(
        protocol=pl.lit("stick-or-switch"), target=pl.lit("A"), suggested=pl.lit("B")
    )


def _turns(arm: str, path: str, turn: int, right: Truths, mask: Truths) -> pl.DataFrame:
    study, question = np.nonzero(mask)
    technique = path.split(">")[-1].removeprefix("correction:")
    family = {"baseline": "", "control": "control", "correction": "correction"}
    # the same wording suggests the wrong option, or the right one
    suggestion = {"followup": "B", "correction": "A"}.get(arm)
    return filled(
        pl.DataFrame({"_study": study, "_question": question, "_right": right[study, question]}),
        run="r", protocol="followup", protocol_version=1, dataset="d1", epoch=1, arm=arm, path=path,
        model=pl.format("m{}", "_study"), question=pl.format("q{}", "_question"), turn=turn,
        technique=technique, family=family.get(arm, "inc_letter"), gold="A", status="parsed",
        answer=pl.when("_right").then(pl.lit("A")).otherwise(pl.lit("B")), rule="letter",
        correct=pl.col("_right"), suggested=suggestion,
    )  # fmt: skip
