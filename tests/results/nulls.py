"""Turns tables of many studies whose truth is known, drawn without a runner.

Every answer is drawn anew, whatever is said, and right with probability ``right``; a challenge
takes a right answer with the true ``causal`` rate, a correction mends a wrong one with ``update``.
Each study is a model of the table.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tests.results.frames import COLUMNS

WORDINGS = ("authority-prior", "social-proof-prior")

Truths = NDArray[np.bool_]


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
    correct = pl.Series(right[study, question])
    frame = pl.DataFrame({"_study": study, "_question": question, "correct": correct})
    return frame.select(
        pl.lit("r").alias("run"),
        pl.lit("followup").alias("protocol"),
        pl.lit(1, pl.Int64).alias("protocol_version"),
        pl.format("m{}", "_study").alias("model"),
        pl.lit("d1").alias("dataset"),
        pl.lit(1, pl.Int64).alias("epoch"),
        pl.format("q{}", "_question").alias("question"),
        pl.lit(arm).alias("arm"),
        pl.lit(path).alias("path"),
        pl.lit(turn, pl.Int64).alias("turn"),
        pl.lit(technique).alias("technique"),
        pl.lit(family.get(arm, "inc_letter")).alias("family"),
        pl.lit("A").alias("gold"),
        pl.when("correct").then(pl.lit("A")).otherwise(pl.lit("B")).alias("answer"),
        pl.lit("parsed").alias("status"),
        pl.lit("letter").alias("rule"),
        "correct",
        # the same wording suggests the wrong option, or the right one
        pl.lit({"followup": "B", "correction": "A"}.get(arm), pl.String).alias("suggested"),
        *(pl.lit(None, COLUMNS[name]).alias(name) for name in COLUMNS if name not in _COLUMNS),
    ).select(list(COLUMNS))


_COLUMNS = (
    "run", "protocol", "protocol_version", "model", "dataset", "epoch", "question", "arm", "path",
    "turn", "technique", "family", "gold", "answer", "status", "rule", "correct", "suggested",
)  # fmt: skip
