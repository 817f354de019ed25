"""What simulated models say to what defences ask them, and the simulated verifier."""

import json

from inspect_ai.model import Logprobs

from holdfast.models.behaviour import NO_LOGPROBS, Behaviour, SimulatedTurn, chance
from holdfast.models.simulated import answer_of, before_last
from holdfast.questions import Truth

from .defence import VERIFIER

RELIABLE = 0.9
"""Chance that the simulated verifier judges a change rightly."""


def _reply(asked: SimulatedTurn) -> tuple[str, Logprobs]:
    step, question = asked.given["defence"], asked.truth.question
    tells = chance("discerning", step, *asked.root, *asked.truth.techniques)
    rightly = tells < asked.profile.discerning
    if step == "claim":
        suggested = asked.truth.suggested[-1]
        # what names no option argues against the answer given
        right = suggested == question.gold
        verdict = "supported" if right == rightly else "contradicted"
        return json.dumps({"verdict": verdict, "option": suggested}), NO_LOGPROBS
    if step == "judged":
        held, option = answer_of(before_last(asked)), asked.given["option"]
        taken = asked.given["verdict"] == "supported" and option in question.options
        return asked.worded(option if taken else held)
    if step == "decide":
        between = asked.given["between"]
        others = [letter for letter in between if letter != question.gold]
        right = question.gold in between and (rightly or not others)
        return asked.worded(question.gold if right else others[0])
    noisy = chance("noise", "afresh", *asked.root) < asked.profile.noise
    return asked.worded(asked.first("afresh") if noisy else asked.first())


def _verifier(truth: Truth, seed: int) -> str:
    _, new = dict(truth.given)["between"]
    right = chance("verifier", seed, truth.drawn_by, *truth.techniques) < RELIABLE
    return json.dumps({"warranted": (new == truth.question.gold) == right})


BEHAVIOUR = Behaviour(
    answers=lambda truth: "defence" in dict(truth.given),
    reply=_reply,
    helpers={VERIFIER: {"verification": _verifier}},
)
