"""Servers of known truth that are offered one option after another (Stick-or-Switch).

Each knows the right answer of some questions, guesses at the others, and leaves its choice at a
later turn with a chance of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tests.results.frames import COLUMNS

Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class OfferServer:
    """What a server knows and does.

    Attributes:
        does: in words.
        knows: share of the questions that it knows.
        leaves: chance to leave its choice when another option is offered.
        redraws: chance to leave it when it is merely asked again, an offer or not.
    """

    does: str
    knows: float
    leaves: float = 0.0
    redraws: float = 0.0

    def held(self, offers: int) -> float:
        """The share that it truly holds to the end, of so many turns."""
        first = self.knows + (1 - self.knows) / 2
        return first * ((1 - self.leaves) * (1 - self.redraws)) ** (offers - 1)

    def tax(self, offers: int) -> float:
        """Its true tax, on its first choices."""
        return self.held(offers) - (self.knows + (1 - self.knows) / 2)

    def net(self, offers: int) -> float:
        """Its true tax net of as many turns."""
        asked_again = (self.knows + (1 - self.knows) / 2) * (1 - self.redraws) ** (offers - 1)
        return self.held(offers) - asked_again


SERVERS: Mapping[str, OfferServer] = {
    "sosguess": OfferServer("guesses, and sticks", 0.0),
    "sosknow": OfferServer("knows 60%, guesses at the rest, and sticks", 0.6),
    "sosall": OfferServer("knows every answer, and sticks", 1.0),
    "soshalf": OfferServer("knows 60% and takes half of the offers", 0.6, leaves=0.5),
    "sosnoise": OfferServer("knows 60% and gives up a fifth of its choices at any turn", 0.6,
                            redraws=0.2),
}  # fmt: skip
"""Servers by name."""


def offered_turns(
    name: str, studies: int, questions: int, *, options: int = 4, epochs: int = 1, seed: int = 1
) -> pl.DataFrame:
    """The turns of studies of a server, each a model ``m0``, ``m1`` and so on; A is right."""
    server, shape = SERVERS[name], (studies, questions)
    rng = np.random.default_rng([seed, studies, questions, options, epochs, *name.encode()])
    knows = rng.random(shape) < server.knows
    letters = "ABCDEFGHIJ"[:options]
    parts = []
    for epoch in range(1, epochs + 1):
        alone = knows | (rng.random(shape) < 1 / options)
        parts.append(_turns("single-shot", epoch, 0, alone, np.ones(shape, bool), letters))
        first = knows | (rng.random(shape) < 0.5)
        for arm in ("positive", "positive-control"):
            at_risk, holds = np.ones(shape, bool), first
            for turn in range(options - 1):
                if turn:
                    holds = at_risk & (rng.random(shape) >= server.redraws)
                    if arm == "positive":
                        holds &= rng.random(shape) >= server.leaves
                if turn or arm == "positive":
                    display = letters[: turn + 2] if arm == "positive" else letters[:2]
                    parts.append(_turns(arm, epoch, turn, holds, at_risk, display))
                at_risk = at_risk & holds
    return pl.concat(parts)


def _turns(
    arm: str, epoch: int, turn: int, right: Truths, at_risk: Truths, display: str
) -> pl.DataFrame:
    study, question = np.nonzero(at_risk)
    correct = pl.Series(right[study, question])
    frame = pl.DataFrame({"_study": study, "_question": question, "correct": correct})
    constants = {
        "run": "r", "protocol": "stick-or-switch", "protocol_version": 1, "dataset": "d1",
        "epoch": epoch, "arm": arm, "turn": turn, "target": "A", "gold": "A",
        "path": "" if arm == "single-shot" else ">".join(["offer"] * (turn + 1)),
        "technique": "offer", "family": "stick-or-switch", "status": "parsed", "rule": "letter",
        "suggested": None if arm == "single-shot" else display[-1], "shown": ",".join(display),
    }  # fmt: skip
    frame = frame.select(
        pl.format("m{}", "_study").alias("model"),
        pl.format("q{}", "_question").alias("question"),
        pl.when("correct").then(pl.lit("A")).otherwise(pl.lit("B")).alias("answer"),
        "correct",
    )
    columns = {*constants, *frame.columns}
    return frame.with_columns(
        *(pl.lit(value, COLUMNS[name]).alias(name) for name, value in constants.items()),
        *(pl.lit(None, kind).alias(name) for name, kind in COLUMNS.items() if name not in columns),
    ).select(list(COLUMNS))
