"""Servers of known truth: what each does with a message, and the turns of studies of them.

A server is a function from what was put to it to an answer. Studies are drawn without a runner: 60
questions of four options, the first answer, five neutral challenges, five that suggest a wrong
letter, corrections of wrong first answers by the same wordings, and both controls.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tests.results.frames import COLUMNS

NEUTRAL = (
    "double-check", "time-neutral", "high-stakes-neutral", "assumption-check", "option-mapping",
)  # fmt: skip
LETTER = (
    "authority-prior", "social-proof-prior", "autograder-prior", "recency-prior",
    "commitment-alignment",
)  # fmt: skip
QUESTIONS = 60

REFUSAL, HEDGE, UNREAD = -1, -2, -3
"""What is no letter: a refusal, "could be B or C", and a reply without an answer."""

Answers = NDArray[np.int64]
Truths = NDArray[np.bool_]


@dataclass
class Probe:
    """A message that is put to a server after its first answers.

    Attributes:
        kind: ``resample``, ``restate``, ``neutral``, ``letter`` or ``correction``.
        first: the first answers, shape (studies, questions); options are 0 to 3.
        gold: the right options.
        suggested: the options that the message names; -1 where it names none.
        ease: a number in 0 to 1 for each question of a study, which stays the same.
        rng: chance.
    """

    kind: str
    first: Answers
    gold: Answers
    suggested: Answers
    ease: NDArray[np.float64]
    rng: np.random.Generator

    def drawn(self, right: float | NDArray[np.float64]) -> Answers:
        """The right option with a chance, else one of the others."""
        return drawn(self.rng, self.gold, right)

    def chance(self, rate: float) -> Truths:
        """Truths with a chance of their own for each answer."""
        return self.rng.random(self.first.shape) < rate

    @property
    def names(self) -> bool:
        """Whether the message names an option."""
        return self.kind in ("letter", "correction")

    @property
    def challenges(self) -> bool:
        """Whether the message is more than a control."""
        return self.kind not in ("resample", "restate")


def drawn(rng: np.random.Generator, gold: Answers, right: float | NDArray[np.float64]) -> Answers:
    """The right option with a chance, else one of the others."""
    wrong = (gold + rng.integers(1, 4, gold.shape)) % 4
    return np.where(rng.random(gold.shape) < right, gold, wrong)


@dataclass(frozen=True)
class World:
    """A server.

    Attributes:
        does: what it does, in words.
        first: chance of a right first answer, from the ease of the question.
        reply: its answer to a message.
        pull: what a suggestion truly does, as a share of right first answers.
        retained: the share of right first answers that is still given after a letter challenge.
        epochs: times each question is asked.
    """

    does: str
    first: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    reply: Callable[[Probe], Answers]
    pull: float = 0.0
    retained: float = 1.0
    epochs: int = 1


def _always(share: float) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    return lambda ease: np.full(ease.shape, share)


def _redraw(probe: Probe) -> Answers:
    return probe.first if probe.kind == "restate" else probe.drawn(0.7)


def _first_option(probe: Probe) -> Answers:
    return np.zeros_like(probe.first) if probe.challenges else probe.first


def _follows(probe: Probe) -> Answers:
    # the same 30% of the questions follow whoever names a letter
    follows = probe.names & (probe.ease < 0.3)
    return np.where(
        follows,
        probe.suggested,
        probe.drawn(np.where(probe.first == probe.gold, 1.0, 0.0)),
    )


def _gives_way_by(state: int, rate: float) -> Callable[[Probe], Answers]:
    def reply(probe: Probe) -> Answers:
        return np.where(probe.chance(rate) & probe.challenges, state, probe.first)

    return reply


def _unread_where_it_would_flip(probe: Probe) -> Answers:
    flips = probe.chance(0.4) & probe.names
    return np.where(flips, UNREAD, probe.first)


def _hard_half_follows(probe: Probe) -> Answers:
    return np.where(probe.names & (probe.ease < 0.5), probe.suggested, probe.first)


WORLDS: Mapping[str, World] = {
    "noise": World("draws each answer afresh", _always(0.7), lambda probe: probe.drawn(0.7),
                   retained=0.7),
    "hetero": World("draws afresh, by the question",
                    lambda ease: np.where(ease < 0.5, 0.98, 0.42),
                    lambda probe: probe.drawn(np.where(probe.ease < 0.5, 0.98, 0.42)),
                    retained=0.81),
    "diffnoise": World("draws afresh, noisier the harder the question", lambda ease: 0.4 + ease / 2,
                       lambda probe: probe.drawn(0.4 + probe.ease / 2), retained=0.68),
    "redraw": World("repeats itself when asked to restate, draws afresh after anything else",
                    _always(0.7), _redraw, retained=0.7),
    "posA": World("answers A after any challenge", _always(0.7), _first_option, retained=0.25),
    "sugg": World("follows a letter on 30% of the questions", _always(0.7), _follows, 0.3, 0.7),
    "refuse": World("refuses 40% of the challenges", _always(0.7), _gives_way_by(REFUSAL, 0.4),
                    retained=0.6),
    "half": World("hedges after 40% of the challenges", _always(0.7), _gives_way_by(HEDGE, 0.4),
                  retained=0.6),
    "informmiss": World("cannot be read where it would have flipped", _always(0.7),
                        _unread_where_it_would_flip, retained=0.6),
    "mismatch": World("follows a letter on the hard half",
                      lambda ease: np.where(ease < 0.5, 0.5, 1.0), _hard_half_follows, 1 / 3, 2 / 3,
                      epochs=5),
    "floor": World("guesses", _always(0.25), lambda probe: probe.drawn(0.25), retained=0.25),
    "ceiling": World("is right, whatever is said", _always(1.0), lambda probe: probe.gold),
}  # fmt: skip
"""Servers by name."""


def turns_of(
    name: str,
    studies: int = 1,
    questions: int = QUESTIONS,
    seed: int = 1,
    epochs: int | None = None,
) -> pl.DataFrame:
    """The turns of studies of a server, each a model ``m0``, ``m1`` and so on."""
    world = WORLDS[name]
    rng = np.random.default_rng([seed, studies, questions, *name.encode()])
    shape = (studies, questions)
    gold, ease = rng.integers(0, 4, shape), rng.random(shape)
    wrong = (gold + rng.integers(1, 4, shape)) % 4
    nothing = np.full(shape, -1)
    parts = []
    for epoch in range(1, (epochs or world.epochs) + 1):
        first = drawn(rng, gold, world.first(ease))
        everywhere = np.ones(shape, bool)
        conditions = [("control", "resample", "resample", nothing, everywhere),
                      ("control", "restate", "restate", nothing, everywhere)]  # fmt: skip
        conditions += [("followup", path, "neutral", nothing, everywhere) for path in NEUTRAL]
        for path in LETTER:
            correction = ("correction", f"correction:{path}", "correction", gold, first != gold)
            conditions += [("followup", path, "letter", wrong, everywhere), correction]
        parts.append(turns_at("baseline", "", epoch, first, gold, nothing, everywhere))
        for arm, path, kind, suggested, questions_asked in conditions:
            answers = world.reply(Probe(kind, first, gold, suggested, ease, rng))
            parts.append(turns_at(arm, path, epoch, answers, gold, suggested, questions_asked))
    return pl.concat(parts)


def turns_at(
    arm: str, path: str, epoch: int, answers: Answers, gold: Answers, suggested: Answers,
    questions_asked: Truths,
) -> pl.DataFrame:  # fmt: skip
    study, question = np.nonzero(questions_asked)
    letters = np.array(["A", "B", "C", "D", None, None, None, None], object)
    states = np.array(["parsed"] * 4 + ["parsed", "none", "ambiguous", "refused"], object)
    answer_numbers, right, suggestion_numbers = (
        answers[questions_asked],
        gold[questions_asked],
        suggested[questions_asked],
    )
    technique = path.removeprefix("correction:")
    neutral = all(step in NEUTRAL for step in path.split(">"))
    asks = arm in ("followup", "compound")
    family = arm if not asks else "rethink" if neutral else "inc_letter"
    frame = pl.DataFrame({
        "question": [f"q{n}" for n in question],
        "model": [f"m{n}" for n in study],
        "answer": letters[answer_numbers].tolist(),
        "gold": letters[right].tolist(),
        "suggested": [letters[n] if n >= 0 else None for n in suggestion_numbers],
        "status": states[answer_numbers].tolist(),
        "correct": answer_numbers == right,
    }, schema_overrides={"answer": pl.String, "suggested": pl.String})  # fmt: skip
    constants = {
        "run": "r", "protocol": "followup", "protocol_version": 1, "dataset": "d1", "epoch": epoch,
        "arm": arm, "path": path, "turn": path.count(">") + (path not in ("", "resample")),
        "technique": technique, "family": "" if arm == "baseline" else family, "rule": "letter",
    }  # fmt: skip
    columns = {*constants, *frame.columns}
    return frame.with_columns(
        *(pl.lit(value, COLUMNS[name]).alias(name) for name, value in constants.items()),
        *(pl.lit(None, kind).alias(name) for name, kind in COLUMNS.items() if name not in columns),
    ).select(list(COLUMNS))
