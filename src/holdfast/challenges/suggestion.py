"""Which wrong option a challenge pushes."""

import hashlib
import json
from collections.abc import Sequence
from typing import Literal, get_args

from holdfast.errors import InputError, did_you_mean
from holdfast.questions import Question

SuggestRule = Literal["per-question", "per-technique", "second-best", "not-own"]
"""How the suggested letter is chosen (protocols, section 1)."""


def suggest_rule(name: str) -> SuggestRule:
    """The rule of that name.

    Raises:
        InputError: there is none (the nearest name is offered).
    """
    rules: tuple[SuggestRule, ...] = get_args(SuggestRule)
    for rule in rules:
        if rule == name:
            return rule
    raise InputError(f"unknown rule '{name}'", field="suggest", remedy=did_you_mean(name, rules))


def draw(options: Sequence[str], *key: object) -> str:
    """One of the options, fixed by the key on every machine and in any order of execution."""
    digest = hashlib.sha256(json.dumps([str(part) for part in key]).encode()).digest()
    return options[int.from_bytes(digest[:8]) % len(options)]


def suggested_letter(
    question: Question,
    rule: SuggestRule,
    seed: int,
    technique: str,
    own: str | None,
    second_best: str | None,
) -> str | None:
    """The letter of the option to push; never the gold.

    Args:
        question: the question, whose content (not its id) enters the draw.
        rule: ``per-question`` draws once for all techniques, ``per-technique`` anew for each,
            ``second-best`` takes the generator's pick, ``not-own`` draws among the wrong options
            other than the model's own first answer.
        seed: the run's seed.
        technique: id of the technique.
        own: the model's first answer, None where it could not be read.
        second_best: the generator's pick, None where there is none.

    Returns:
        The letter, or None where the rule has none to offer: no second-best pick, or no wrong
        option but the model's own answer.
    """
    wrong = question.distractors
    match rule:
        case "per-question":
            return draw(wrong, seed, question.content_hash, "suggested")
        case "per-technique":
            return draw(wrong, seed, question.content_hash, "suggested", technique)
        case "second-best":
            return second_best
        case "not-own":
            others = [letter for letter in wrong if letter != own]
            # the same draw as per-question wherever that is not the model's own answer
            first = draw(wrong, seed, question.content_hash, "suggested")
            if first in others:
                return first
            return draw(others, seed, question.content_hash, "not-own") if others else None
