"""Simulated models in Stick-or-Switch, which choose, stick or switch with known chances."""

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
from holdfast.questions.question import LETTERS

from .published import stick_or_switch


class Sticking(Chances):
    """Chances of a simulated model with options that are offered one after another."""

    isolated: float | None = Field(default=None, ge=0, le=1)
    """Chance to choose the right of two options. None means that of a right first answer."""
    abstain: float = Field(default=0.7, ge=0, le=1)
    """Chance to answer none of the above if it is right."""
    stick: dict[str, float] = Field(default_factory=dict)
    """Chance to stick to the target at a further offer, by arm (``positive``, ``negative``); 1."""
    stick_on: dict[str, float] = Field(default_factory=dict)
    """The same chance at the third turn and later, if it differs."""
    flexible: float = Field(default=1.0, ge=0, le=1)
    """Chance to switch from an abstention to the right answer if it is offered."""


def _choose_letter(turn: SimulatedTurn) -> str:
    """Return the answered option among those in play.

    The chance to choose the target is that of a right first answer, or of an abstention. Later
    turns stick with a separate chance, equal at each turn, so survival is ``S(t) = S(1) stick ** (t
    - 1)`` unless a profile has another chance from the third turn on. With ``noise``, a later turn
    is first decided again as at turn 1, whatever the prompt: a control has ``S(t) = S(1) (1 - noise
    + noise S(1)) ** (t - 1)``, and offers ``stick ** (t - 1)`` of it.
    """
    chances, root, facts = turn.profile.of(Sticking), turn.root, turn.given
    arm, letters, held_option = facts["arm"], facts["shown"], facts["held"]
    abstaining = facts["right"] == ABSTAIN
    competence = turn.profile.baseline / 100
    if abstaining:
        competence = chances.abstain
    elif arm.startswith("positive") and chances.isolated is not None:
        competence = chances.isolated
    if held_option is None:
        # one draw for all arms with the same question, so that knowledge is consistent
        if chance("abstain" if abstaining else "first", *root) < competence:
            return str(facts["right"])
        return pick([letter for letter in letters if letter != facts["right"]], "other", arm, *root)
    offered_option = facts.get("offered", letters[-1])
    # a control shows the same two options at every turn
    place = (len(letters), len(turn.truth.path)) if "offered" in facts else (len(letters),)
    if chance("noise", arm, *place, *root) < turn.profile.noise:
        right = chance("anew", arm, *place, *root) < competence
        held_option = held_option if right == (held_option == facts["right"]) else offered_option
    if held_option == offered_option:
        return str(held_option)
    if arm == "flexible-correct":
        return str(offered_option if chance("flexible", *root) < chances.flexible else held_option)
    stick = chances.stick.get(arm, 1.0)
    if len(letters) > 3:
        stick = chances.stick_on.get(arm, stick)
    return str(held_option if chance("stick", arm, *place, *root) < stick else offered_option)


def _word_answer(letter: str, turn: SimulatedTurn) -> tuple[str, Logprobs]:
    """Return the answer in one of several wordings, with its log-probabilities."""
    truth, facts = turn.truth, turn.given
    letters, held_option = facts["shown"], facts["held"]
    label = LETTERS[letters.index(letter)]
    offered_label = LETTERS[letters.index(facts.get("offered", letters[-1]))]
    wordings = CHOICES if held_option is None else SWITCHES if label == offered_label else STICKS
    key = ("wording", truth.drawn_by, facts["arm"], len(letters))
    wording = pick(wordings, *key)
    text = " ".join(truth.question.options.get(letter, "None of the Above").split())
    reply = wording.format(label=label, text=text.strip("\"'`*_$\\{}<>()[].:"))
    if "{label}" in wording:
        start = wording.index("{label}")
        alternatives = [LETTERS[place] for place in range(len(letters)) if LETTERS[place] != label]
        return reply, _logprobs(reply, start, label, alternatives)
    word = next(w for w in ("switch", "Switch", "stick", "Stick") if w in reply)
    opposite = {"switch": "stick", "Switch": "Stick", "stick": "switch", "Stick": "Switch"}[word]
    return reply, _logprobs(reply, reply.index(word), word, [opposite])


def _logprobs(text: str, start: int, token: str, alternatives: list[str]) -> Logprobs:
    masses = {option: (1 - CONFIDENCE) / len(alternatives) for option in alternatives}
    return decided_at(text, start, token, {token: CONFIDENCE} | masses)


def _profiles(dataset: str) -> Mapping[str, Profile]:
    return {_slug(model): _profile(model, dataset) for model in stick_or_switch().models}


def _slug(model: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", model.lower()).strip("-")


def _profile(model: str, dataset: str) -> Profile:
    """Return the profile that reproduces a model's cells of Tables A.1 to A.3, with four options.

    The paper does not print some chances, which are assumed: a right answer to all options at once
    is known or guessed, so the share right of two options follows from that of four. All later
    offers have the same chance to stick. The chance of an abstention at turn 1 follows from the
    printed end.
    """
    figures = stick_or_switch()
    right, flexibility_cell = (
        figures.conviction.cells[model][dataset],
        figures.flexibility.cells[model],
    )
    at_once, kept_share = float(right.single_shot) / 100, float(right.multi_turn) / 100
    turn_one_share = (2 * at_once + 1) / 3
    refuses = 1 - float(flexibility_cell[dataset].incorrect) / 100
    to_the_end = float(figures.abstention.cells[model][dataset].multi_turn) / 100
    abstain = min(1.0, to_the_end / refuses**2)
    chances = Sticking(
        isolated=turn_one_share,
        abstain=abstain,
        stick={"positive": math.sqrt(kept_share / turn_one_share), "negative": refuses},
        # for Llama-3.1 (8B) on MedMCQA the two tables are inconsistent (decision 30)
        stick_on={"negative": min(1.0, to_the_end / (abstain * refuses))},
        flexible=float(flexibility_cell[dataset].correct) / 100,
    )
    return Profile(
        about=f"{model} on {dataset}: {figures.short}, Tables A.1 to A.3",
        baseline=float(right.single_shot),
        **chances.model_dump(),
    )


BEHAVIOUR = Behaviour(
    # turns that show options, except for direct probes
    answers=lambda truth: "shown" in dict(truth.given) and "probe" not in dict(truth.given),
    reply=lambda simulated_turn: _word_answer(_choose_letter(simulated_turn), simulated_turn),
    chances=Sticking,
    bundled_chances=packaged(__package__, "profiles.toml"),
    profiles=_profiles,
    datasets=stick_or_switch().datasets,
)
