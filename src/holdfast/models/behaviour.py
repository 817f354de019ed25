"""What simulated models do: profiles, draws, wordings, and the behaviour that a protocol brings.

Draws are hashes, so that no reply depends on machine or order.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from inspect_ai.model import Logprob, Logprobs, TopLogprob
from pydantic import BaseModel, ConfigDict, Field

from holdfast.errors import InputError, did_you_mean
from holdfast.files import packaged
from holdfast.lookups import until_declared
from holdfast.questions.truth import Purpose, Truth
from holdfast.registry import BEHAVIOURS, named


class Chances(BaseModel):
    """What a protocol's own turns go by, part of the profile of a simulated model."""

    model_config = ConfigDict(frozen=True)


C = TypeVar("C", bound=Chances)


class Profile(BaseModel):
    """The known truth behind a simulated model. Accuracies in percent, chances in 0 to 1.

    What protocols declare for their own turns (``Chances``) stands beside its fields.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    about: str
    """One line: what it does, and where its figures come from."""
    baseline: float = Field(ge=0, le=100)
    """Accuracy of the first answer."""
    accuracy: dict[str, float] = {}
    """Accuracy after one challenge (for single-turn techniques: to the biased question)."""
    abandon: dict[str, float] = {}
    """Chance to abandon a right answer, by technique or family, or ``default``."""
    recover: float = Field(default=0.05, ge=0, le=1)
    """Chance that a challenged wrong answer is corrected, unless an accuracy asks for more."""
    follow: float = Field(default=0.9, ge=0, le=1)
    """Of the abandoned answers, the share that goes to the suggested option."""
    noise: float = Field(default=0.0, ge=0, le=1)
    """Chance that a later or another answer is drawn anew as the first was, whatever is said."""
    update: float = Field(default=0.5, ge=0, le=1)
    """Chance that a wrong answer becomes right where the right option is named or supported; no
    source gives it."""
    mitigated: float = Field(default=0.5, ge=0, le=1)
    """Of the answers that a bias would take, the share that a mitigation saves."""
    named: float = Field(default=0.5, ge=0, le=1)
    """Share of the challenged replies that name the challenge."""
    heeded: float = Field(default=0.5, ge=0, le=1)
    """Of the answers that a challenge would take, the share that a hardened prompt saves."""
    refused: float = Field(default=0.2, ge=0, le=1)
    """Of the corrections that would be followed, the share that a hardened prompt loses."""
    discerning: float = Field(default=0.8, ge=0, le=1)
    """Chance to tell rightly which of two answers is right, or whether a claim is."""
    wavering: float = Field(default=0.7, ge=0, le=1)
    """Share of the changed answers that are given with less confidence than the answer before."""

    def of(self, kind: type[C]) -> C:
        """What a protocol's own turns go by, where the profile or the protocol's default says it.

        Args:
            kind: the class in which the protocol declares it.
        """
        return kind.model_validate(self.model_extra)

    def chances(self, technique: str, family: str) -> tuple[float, float]:
        """Chance to abandon a right answer, and chance to mend a wrong one.

        With competence c and recovery r, accuracy a after the challenge is
        ``c (1 - abandon) + (1 - c) r``; it is solved for ``abandon``, or, where more is corrected
        than r allows, for r.
        """
        if technique not in self.accuracy:
            abandon_chances = self.abandon
            return abandon_chances.get(
                technique, abandon_chances.get(family, abandon_chances.get("default", 0.0))
            ), self.recover
        competence, after = self.baseline / 100, self.accuracy[technique] / 100
        if after > competence + (1 - competence) * self.recover:
            return 0.0, (after - competence) / (1 - competence)
        # a low accuracy leaves no room for the full recovery
        recover = min(self.recover, after / (1 - competence)) if competence < 1 else 0.0
        if competence == 0:  # nothing to abandon
            return 0.0, recover
        return 1 - (after - (1 - competence) * recover) / competence, recover


@cache
def cue_names() -> dict[str, str]:
    """What each technique is called by a reply that names it."""
    return {id: str(name) for id, name in packaged(__package__, "cue_names.toml").items()}


def chance(*key: object) -> float:
    """A number in [0, 1) fixed by the key."""
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:7]) / 2**56


def pick(letters: Sequence[str], *key: object) -> str:
    """One of the letters, fixed by the key."""
    return letters[int(chance(*key) * len(letters))]


WORDINGS = (
    "Going through the case step by step, {text} explains it best.\n\nFinal Answer: ({letter})",
    "The findings fit {text} better than the other options.\n\n**Final Answer:** ({letter})",
    "I weighed each option against the stem. The answer is {letter}.",
    "Summary of the case, then each option in turn: {text} remains.\n\n**Answer: {letter}**",
    "<think>Other options are worth a thought.</think>Taken together: {text}.\n\n"
    "Final Answer: {letter}",
    "Considering everything, {text} is best supported.\n\n$\\boxed{{{letter}}}$",
    '{{"reasoning": "step by step", "answer": "{letter}"}}',
)

CONFIDENCE = 0.85
"""Probability given to what is answered; the other options share the rest."""

CHOICES = ("Answer: {label}", "**Answer: {label}**", "Answer: {label}. {text}")
STICKS = (
    "Answer: {label}",
    "I would stick to my original answer.",
    "Stick",
    "I'll stay with {label}.",
    "I would not switch.",
)
SWITCHES = (
    "Answer: {label}",
    "I would switch to the new option.",
    "Switch",
    "I'll switch to {label}.",
)
PROBES = ("Answer: {label}", "**Answer: {label}**", "Answer: ({label})")


@dataclass(frozen=True)
class SimulatedTurn:
    """A turn under way, as a simulated model knows it.

    Attributes:
        model: the profile's name, part of every draw.
        profile: its chances.
        truth: the question and the challenge.
        seed: the run's seed.
        logprobs: whether log-probabilities are asked for.
    """

    model: str
    profile: Profile
    truth: Truth
    seed: int
    logprobs: bool = True

    @property
    def given(self) -> dict[str, Any]:
        """What the model is told beside the messages."""
        return dict(self.truth.given)

    @property
    def root(self) -> tuple[object, ...]:
        """What every draw on this question is fixed by."""
        return self.model, self.seed, self.truth.replicate, self.truth.drawn_by

    def first(self, *again: object) -> str:
        """The first answer to the question, right as often as the profile says.

        Args:
            again: what an answer drawn anew is fixed by.
        """
        question, key = self.truth.question, (*self.root, *again)
        right = chance("first", *key) < self.profile.baseline / 100
        return question.gold if right else pick(question.distractors, "first-wrong", *key)

    def worded(
        self, letter: str, before: str = "", confidence: float = CONFIDENCE
    ) -> tuple[str, Logprobs]:
        """An answer to the whole question in one of several wordings."""
        truth, options = self.truth, self.truth.question.options
        wording = WORDINGS[
            int(chance("wording", truth.drawn_by, *truth.techniques) * len(WORDINGS))
        ]
        # str.format never looks inside the texts that it fills in
        text = before + wording.format(letter=letter, text=_without_markup(options[letter]))
        if not self.logprobs:
            return text, NO_LOGPROBS
        share = (1 - confidence) / (len(options) - 1)
        mass = {letter: confidence} | {option: share for option in options if option != letter}
        return text, decided_at(text, text.rindex(letter), letter, mass)


Says = Callable[[Truth, int], str]
"""What a helper of a study says, given the truth and the run's seed."""


@dataclass(frozen=True)
class Behaviour:
    """What simulated models do under a protocol beside answering the question and challenges.

    Attributes:
        answers: whether a turn is the protocol's own.
        reply: what a profile says to such a turn.
        by_path: such a reply depends on every step of its path, with its variant.
        helpers: what helpers say, by their name and what they are asked for.
        chances: what its own turns go by.
        bundled_chances: these by the name of a bundled profile; further profiles too, each
            ``like`` one that is known before.
        profiles: profiles that have the figures of a source, by name, given a data set.
        datasets: those whose figures differ.
    """

    answers: Callable[[Truth], bool] = lambda truth: False
    reply: Callable[[SimulatedTurn], tuple[str, Logprobs]] = lambda turn: turn.worded(turn.first())
    by_path: bool = False
    helpers: Mapping[str, Mapping[Purpose, Says]] = field(default_factory=dict)
    chances: type[Chances] = Chances
    bundled_chances: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    profiles: Callable[[str], Mapping[str, Profile]] = lambda dataset: {}
    datasets: tuple[str, ...] = ()


def behaviours() -> tuple[Behaviour, ...]:
    """What each protocol that is registered brings."""
    all_behaviours: tuple[Behaviour, ...] = named(BEHAVIOURS)()
    return all_behaviours


def behaviour_of(truth: Truth) -> Behaviour | None:
    """The behaviour of the protocol whose turn it is; None for a question or a challenge."""
    return next((behaviour for behaviour in behaviours() if behaviour.answers(truth)), None)


@until_declared
def datasets() -> tuple[str, ...]:
    """Data sets between which figures of the sources differ; the first unless told otherwise."""
    return tuple(name for behaviour in behaviours() for name in behaviour.datasets)


@until_declared
def profiles(dataset: str | None = None) -> dict[str, Profile]:
    """Every bundled profile by name.

    Args:
        dataset: one of ``datasets``.
    """
    data_by_name = dict(packaged(__package__, "profiles.toml"))
    for behaviour in behaviours():
        for name, protocol_profiles in behaviour.bundled_chances.items():
            further = {key: value for key, value in protocol_profiles.items() if key != "like"}
            data_by_name[name] = data_by_name.get(protocol_profiles.get("like", name), {}) | further
    profiles_by_name = {name: Profile.model_validate(data) for name, data in data_by_name.items()}
    for behaviour in behaviours():
        profiles_by_name |= behaviour.profiles(dataset or datasets()[0])
    return profiles_by_name


def profile(name: str, more_names: Iterable[str] = (), dataset: str | None = None) -> Profile:
    """The profile of that name.

    Args:
        name: the name.
        more_names: names that are known beside the profiles, to be offered too.
        dataset: as for ``profiles``.

    Raises:
        InputError: there is none (the nearest name is offered).
    """
    if dataset is not None and dataset not in datasets():
        raise InputError(
            f"no figures for '{dataset}'",
            field="-M dataset",
            remedy=did_you_mean(dataset, datasets()),
        )
    match = profiles(dataset).get(name)
    if match is None:
        raise InputError(
            f"unknown profile '{name}'",
            field="--model",
            remedy=did_you_mean(name, [*profiles(), *more_names]),
        )
    return match


NO_LOGPROBS = Logprobs(content=[])


def decided_at(text: str, start: int, token: str, mass: Mapping[str, float]) -> Logprobs:
    """Log-probabilities of a text that is certain but for one token."""
    top = [TopLogprob(token=letter, logprob=_log(p)) for letter, p in mass.items()]
    decides = Logprob(token=token, logprob=_log(mass[token]), top_logprobs=top)
    around = [text[:start], text[start + len(token) :]]
    before, after = ([Logprob(token=piece, logprob=0.0)] if piece else [] for piece in around)
    return Logprobs(content=[*before, decides, *after])


def _log(probability: float) -> float:
    return math.log(probability) if probability else -math.inf


def _without_markup(option: str) -> str:
    """The option on one line and short, so that the reply's form stays what the wording says."""
    return " ".join(option.split())[:80].strip("\"'`*_$\\{}<>()[].:")
