"""Turns tables of many studies of MedFuzz whose truth is known, drawn without a runner.

Every answer is drawn anew, whatever is said, and right with probability ``right``. Of the attacks a
share ``causal`` acts: the answer to one that does is never right, however often it is asked. Each
study is a model of the table.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from holdfast.protocols.medfuzz.attack_arms import MOST_AGAIN, REWRITES
from tests.results.frames import COLUMNS

Truths = NDArray[np.bool_]


def attack_studies(
    number: int,
    questions: int,
    *,
    right: float = 0.7,
    causal: float = 0.0,
    attempts: int = 5,
    replicates: int = 1,
    confirm: int = 0,
    seed: int = 1,
) -> pl.DataFrame:
    """So many studies, with the controls of every attempt, and successes asked again."""
    rng = np.random.default_rng([seed, number, questions])
    shape = (number, questions * replicates)

    def anew() -> Truths:
        return rng.random(shape) < right

    first = anew()
    parts = [_turns("baseline", "", first, np.ones(shape, bool), questions, attempts)]
    going, effective, successes = first, np.zeros(shape, bool), np.zeros(shape, np.int64)
    controls = {"inert": first, "reask": first}
    for k in range(1, attempts + 1):
        acts = rng.random(shape) < causal
        stands = anew() & ~acts
        parts.append(_turns("attacker", f"fuzz@{k}", stands, going, questions))
        parts.append(_turns("attack", f"fuzz@{k}", stands, going, questions, acts=acts))
        changes = going & ~stands
        effective, successes = np.where(changes, acts, effective), np.where(changes, k, successes)
        going = going & stands
        for arm, left in controls.items():
            stands = anew()
            parts.append(_turns(arm, f"{arm}@{k}", stands, left, questions))
            controls[arm] = left & stands
    for n in range(1, confirm + 1):
        right_again, mask = anew() & ~effective, successes > 0
        parts.append(_turns("again", f"fuzz@1>again@{n}", right_again, mask, questions))
        parts.append(_turns("again-plain", f"again@{n}", anew(), successes > 0, questions))
    for text in range(1, REWRITES + 1 if confirm else 1):
        path, mask = f"fuzz@1>inert@{text}", successes > 0
        for n in range(MOST_AGAIN + 1):
            stands = anew()
            step = f"{path}>again@{n}" if n else path
            parts.append(_turns("again-inert", step, stands, mask, questions))
            mask = mask & ~stands
    return pl.concat(parts)


def net_turned(k: int, *, right: float, causal: float) -> float:
    """The true net share of right answers that ``k`` attacks turn."""
    return right**k - (right * (1 - causal)) ** k


def _turns(
    arm: str,
    path: str,
    right: Truths,
    mask: Truths,
    questions: int,
    attempts: int | None = None,
    acts: Truths | None = None,
) -> pl.DataFrame:
    study, unit = np.nonzero(mask)
    text, replies = pl.String(), arm != "attacker"
    mark = (mask if acts is None else acts)[study, unit]
    frame = pl.DataFrame(
        {
            "_study": study, "_unit": unit, "_acts": mark,
            "correct": right[study, unit] & np.bool_(replies),
        }
    )  # fmt: skip
    answer = pl.when("correct").then(pl.lit("A")).otherwise(pl.lit("B" if replies else None, text))
    values = {
        "run": pl.lit("r"), "protocol": pl.lit("medfuzz"), "model": pl.format("m{}", "_study"),
        "dataset": pl.lit("d1"), "epoch": 1 + pl.col("_unit") // questions,
        "question": pl.format("q{}", pl.col("_unit") % questions), "arm": pl.lit(arm),
        "path": pl.lit(path), "status": pl.lit("parsed"), "rule": pl.lit("letter"),
        "correct": pl.col("correct"), "answer": answer, "gold": pl.lit("A"),
        "attempts": pl.lit(attempts, pl.Int64),
        # an attack is called by what it does
        "rewrite": pl.lit(None, text) if acts is None else pl.format("{} {}", "_unit", "_acts"),
    }  # fmt: skip
    empty = {name: pl.lit(None, kind) for name, kind in COLUMNS.items() if name not in values}
    return frame.select(**(values | empty)).select(COLUMNS.names())
