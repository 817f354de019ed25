"""Replies of simulated models to the requests of defences, and the simulated verifier."""

import json

from inspect_ai.model import Logprobs

from holdfast.models.behaviour import NO_LOGPROBS, Behaviour, SimulatedTurn, chance
from holdfast.models.simulated import answer_of, before_last
from holdfast.questions.truth import Truth

from .defence import VERIFIER

RELIABLE = 0.9
"""Probability that the simulated verifier judges a change correctly."""


def _reply(turn: SimulatedTurn) -> tuple[str, Logprobs]:
    step, question = turn.given["defence"], turn.truth.question
    tells = chance("discerning", step, *turn.root, *turn.truth.techniques)
    rightly = tells < turn.profile.discerning
    if step == "claim":
        suggestion = turn.truth.suggested[-1]
        # a claim without an option argues against the current answer
        right = suggestion == question.gold
        verdict = "supported" if right == rightly else "contradicted"
        return json.dumps({"verdict": verdict, "option": suggestion}), NO_LOGPROBS
    if step == "judged":
        held_answer, option = answer_of(before_last(turn)), turn.given["option"]
        is_supported = turn.given["verdict"] == "supported" and option in question.options
        return turn.worded(option if is_supported else held_answer)
    if step == "decide":
        between = turn.given["between"]
        alternatives = [letter for letter in between if letter != question.gold]
        right = question.gold in between and (rightly or not alternatives)
        return turn.worded(question.gold if right else alternatives[0])
    noisy = chance("noise", "afresh", *turn.root) < turn.profile.noise
    return turn.worded(turn.first("afresh") if noisy else turn.first())


def _verifier(truth: Truth, seed: int) -> str:
    _, new = dict(truth.given)["between"]
    right = chance("verifier", seed, truth.drawn_by, *truth.techniques) < RELIABLE
    return json.dumps({"warranted": (new == truth.question.gold) == right})


BEHAVIOUR = Behaviour(
    answers=lambda truth: "defence" in dict(truth.given),
    reply=_reply,
    helpers={VERIFIER: {"verification": _verifier}},
)
