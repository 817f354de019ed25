"""What simulated models do in Stick-or-Switch: choose, stick or switch by known chances."""

import math
import re
from collections.abc import Mapping

from inspect_ai.model import Logprobs
from pydantic import Field

from holdfast.files import packaged
from holdfast.models.behaviour import (
    CHOICES,
    CONFIDENCE,
    STICKS,
    SWITCHES,
    Behaviour,
    Chances,
    Profile,
    SimulatedTurn,
    chance,
    decided_at,
    pick,
)
from holdfast.protocols.few_shot import ABSTAIN
from holdfast.questions import LETTERS

from .published import stick_or_switch


class Sticking(Chances):
    """What a simulated model does with options that are offered one after another."""

    isolated: float | None = Field(default=None, ge=0, le=1)
    """Chance to choose the right one of two options; that of a right first answer if None."""
    abstain: float = Field(default=0.7, ge=0, le=1)
    """Chance to answer none of the above where that is right."""
    stick: dict[str, float] = Field(default_factory=dict)
    """Chance to stick to the target at a further offer, by arm (``positive``, ``negative``); 1."""
    stick_on: dict[str, float] = Field(default_factory=dict)
    """The same at the third turn and later, where it is another one."""
    flexible: float = Field(default=1.0, ge=0, le=1)
    """Chance to switch from an abstention to the right answer where it is offered."""


def _decided(asked: SimulatedTurn) -> str:
    """The option answered, of those in play.

    The chance to choose the target is that of a right first answer, or of an abstention; later
    turns stick with a chance of their own, the same at each, so that survival is
    ``S(t) = S(1) stick ** (t - 1)`` unless a profile has another chance from the third turn on.
    With ``noise`` a later turn is first decided anew, as turn 1 was, whatever is said: a control
    has ``S(t) = S(1) (1 - noise + noise S(1)) ** (t - 1)``, and offers ``stick ** (t - 1)`` of it.
    """
    own, root, given = asked.profile.of(Sticking), asked.root, asked.given
    arm, shown, held = given["arm"], given["shown"], given["held"]
    abstaining = given["right"] == ABSTAIN
    known = asked.profile.baseline / 100
    if abstaining:
        known = own.abstain
    elif arm.startswith("positive") and own.isolated is not None:
        known = own.isolated
    if held is None:
        # one draw for all arms that ask the same, so that what is known once is known again
        if chance("abstain" if abstaining else "first", *root) < known:
            return str(given["right"])
        return pick([letter for letter in shown if letter != given["right"]], "other", arm, *root)
    offered = given.get("offered", shown[-1])
    # a control shows the same two options at every turn
    place = (len(shown), len(asked.truth.path)) if "offered" in given else (len(shown),)
    if chance("noise", arm, *place, *root) < asked.profile.noise:
        right = chance("anew", arm, *place, *root) < known
        held = held if right == (held == given["right"]) else offered
    if held == offered:
        return str(held)
    if arm == "flexible-correct":
        return str(offered if chance("flexible", *root) < own.flexible else held)
    stick = own.stick.get(arm, 1.0)
    if len(shown) > 3:
        stick = own.stick_on.get(arm, stick)
    return str(held if chance("stick", arm, *place, *root) < stick else offered)


def _worded(letter: str, asked: SimulatedTurn) -> tuple[str, Logprobs]:
    """The answer in one of several wordings, with its log-probabilities."""
    truth, given = asked.truth, asked.given
    shown, held = given["shown"], given["held"]
    label = LETTERS[shown.index(letter)]
    offered = LETTERS[shown.index(given.get("offered", shown[-1]))]
    wordings = CHOICES if held is None else SWITCHES if label == offered else STICKS
    key = ("wording", truth.drawn_by, given["arm"], len(shown))
    wording = pick(wordings, *key)
    text = " ".join(truth.question.options.get(letter, "None of the Above").split())
    said = wording.format(label=label, text=text.strip("\"'`*_$\\{}<>()[].:"))
    if "{label}" in wording:
        start = wording.index("{label}")
        others = [LETTERS[place] for place in range(len(shown)) if LETTERS[place] != label]
        return said, _logprobs(said, start, label, others)
    word = next(w for w in ("switch", "Switch", "stick", "Stick") if w in said)
    other = {"switch": "stick", "Switch": "Stick", "stick": "switch", "Stick": "Switch"}[word]
    return said, _logprobs(said, said.index(word), word, [other])


def _logprobs(text: str, start: int, token: str, others: list[str]) -> Logprobs:
    rest = {other: (1 - CONFIDENCE) / len(others) for other in others}
    return decided_at(text, start, token, {token: CONFIDENCE} | rest)


def _profiles(dataset: str) -> Mapping[str, Profile]:
    return {_slug(model): _profile(model, dataset) for model in stick_or_switch().models}


def _slug(model: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", model.lower()).strip("-")


def _profile(model: str, dataset: str) -> Profile:
    """The profile that gives back a model's cells of Tables A.1 to A.3, four options each.

    Not printed, and assumed: a right answer to all options at once is known or guessed, so the
    share right of two options follows from that of four; further offers find the same chance to
    stick. An abstention at turn 1 is as likely as the printed end needs.
    """
    figures = stick_or_switch()
    right, suggested = figures.conviction.cells[model][dataset], figures.flexibility.cells[model]
    at_once, held = float(right.single_shot) / 100, float(right.multi_turn) / 100
    isolated = (2 * at_once + 1) / 3
    refuses = 1 - float(suggested[dataset].incorrect) / 100
    to_the_end = float(figures.abstention.cells[model][dataset].multi_turn) / 100
    abstain = min(1.0, to_the_end / refuses**2)
    own = Sticking(
        isolated=isolated,
        abstain=abstain,
        stick={"positive": math.sqrt(held / isolated), "negative": refuses},
        # for Llama-3.1 (8B) on MedMCQA the two tables cannot both hold (decision 30)
        stick_on={"negative": min(1.0, to_the_end / (abstain * refuses))},
        flexible=float(suggested[dataset].correct) / 100,
    )
    return Profile(
        about=f"{model} on {dataset}: {figures.short}, Tables A.1 to A.3",
        baseline=float(right.single_shot),
        **own.model_dump(),
    )


BEHAVIOUR = Behaviour(
    # options on display that are no direct probe
    answers=lambda truth: "shown" in dict(truth.given) and "probe" not in dict(truth.given),
    reply=lambda asked: _worded(_decided(asked), asked),
    chances=Sticking,
    bundled=packaged(__package__, "profiles.toml"),
    profiles=_profiles,
    datasets=stick_or_switch().datasets,
)
