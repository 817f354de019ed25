"""Simulated helper models of a study: generator, classifier, judge and reader."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from holdfast.lookups import until_declared
from holdfast.questions.bank import SYSTEMS
from holdfast.questions.truth import Purpose, Truth
from holdfast.reading.reply_text import without_reasoning
from holdfast.simulation import MARK

from .behaviour import CHOICES, PROBES, STICKS, SWITCHES, WORDINGS, Says, behaviours, chance, pick

FAULTY = 0.5
"""Probability that a faulty helper gives an unusable reply."""

AGREEING = 0.9
"""Probability that the judge agrees with the lexical rule."""


def _generator(truth: Truth, seed: int) -> str:
    facts = dict(truth.given)
    if truth.purpose == "distractors":
        return json.dumps({letter: _distractor(truth, letter) for letter in facts["letters"]})
    step = truth.path[-1]
    kind, _, length = step.partition("@")
    if kind == "second-best":
        return pick(truth.question.distractors, "second-best", truth.question.content_hash)
    text = _sentences(truth, kind, int(length))
    if kind != "alternative_context":
        return text
    diagnosis = f"{MARK} syndrome {truth.question.content_hash[:6]}"
    return json.dumps({"alternative_answer": diagnosis, "context": text})


def _faulty_generator(truth: Truth, seed: int) -> str:
    attempt = dict(truth.given).get("attempt")
    key = (truth.question.content_hash, *truth.path, attempt)
    if chance("faulty", *key) >= FAULTY:
        return _generator(truth, seed)
    option = next(iter(truth.question.options.values()))
    faults = (
        "",
        "I'm sorry, but I cannot provide medical information that supports a wrong answer.",
        f"{MARK} Prose instead of what was asked for. It goes on for a while. Then it ends.",
        json.dumps({"alternative_answer": option, "context": f"{MARK} It is an option."}),
    )
    return faults[int(chance("which", *key) * len(faults))]


def _classifier(truth: Truth, seed: int) -> str:
    if truth.question.system in SYSTEMS:
        return str(SYSTEMS.index(truth.question.system))
    return pick([str(n) for n in range(len(SYSTEMS))], "system", truth.question.content_hash)


def _judge(truth: Truth, seed: int) -> str:
    facts = dict(truth.given)
    is_named, stance = bool(facts["named"]), facts["stance"]
    if chance("judge", truth.question.content_hash, *truth.path) >= AGREEING:
        is_named, stance = not is_named, None if is_named else "neither"
    return json.dumps({"named": is_named, "stance": stance})


def _compare(truth: Truth, seed: int) -> str:
    """Return a verdict for the set that shares more words with the right option.

    With probability ``1 - AGREEING``, return a different verdict.
    """

    def words(text: str) -> set[str]:
        return set(re.findall(r"\w+", text.casefold()))

    right = words(truth.question.options[truth.question.gold])
    first, second = (
        sum(len(right & words(text)) for text in texts) for texts in dict(truth.given)["sets"]
    )
    verdict = "same" if first == second else "1" if first > second else "2"
    if chance("plausibility", truth.question.content_hash) >= AGREEING:
        verdict = pick([x for x in ("1", "2", "same") if x != verdict], truth.question.content_hash)
    return json.dumps({"more_plausible": verdict})


_BUILT_IN: Mapping[str, Mapping[Purpose, Says]] = {
    "generator": {"context": _generator, "distractors": _generator},
    "faulty-generator": {"context": _faulty_generator, "distractors": _faulty_generator},
    "classifier": {"label": _classifier},
    "judge": {"judgement": _judge, "plausibility": _compare},
    "reader": {"reading": lambda truth, seed: _reader(truth, 0)},
}


@until_declared
def assistants() -> Mapping[str, Mapping[Purpose, Says]]:
    """Return the helpers by name, each with its reply functions by purpose of the request."""
    services = {name: dict(serves) for name, serves in _BUILT_IN.items()}
    for behaviour in behaviours():
        for name, serves in behaviour.helpers.items():
            services.setdefault(name, {}).update(serves)
    return services


def assistant(name: str) -> Mapping[Purpose, Says] | None:
    """Return the helper with the given name, None if there is none.

    Names such as ``reader-20`` are supported.
    """
    if (match := NAME.fullmatch(name)) and match["errors"]:
        return {"reading": lambda truth, seed: _reader(truth, int(match["errors"]))}
    return assistants().get(name)


def _sentences(truth: Truth, kind: str, n: int) -> str:
    """Return ``n`` sentences that name the option concerned but have no medical content."""
    option = truth.suggested[-1] if kind == "misleading_context" else truth.question.gold
    # only the words, because a full stop in an option would end a sentence
    words = " ".join(re.findall(r"[\w-]+", truth.question.options[option or ""]))
    subject = {"alternative_context": "another diagnosis", "inert_context": "nothing"}.get(
        kind, words
    )
    # not at the end of the sentence, where a single letter would look like an abbreviation
    first = f"{MARK} Here {subject} is what the {kind.replace('_', ' ')} is about."
    return " ".join([first, *(f"{MARK} Sentence number {k} of it." for k in range(2, n + 1))])


def _distractor(truth: Truth, letter: str) -> str:
    return f"{MARK} wrong option {letter} of case {truth.question.content_hash[:6]}"


NAME = re.compile(r"reader(?:-(?P<errors>100|[1-9]?\d))?")
"""Name of a reader. ``reader`` makes no errors, ``reader-20`` makes 20 in 100 readings."""


def _reader(truth: Truth, errors: int) -> str:
    """Return the reading of a reply, with errors determined by the options and the reply.

    If the reply gives an answer, an error returns another option or no answer, each with
    probability 0.5. If the reply gives no answer, an error returns an option.

    Args:
        truth: truth of the reading, with the reply, the displayed options and the decision in
            ``given``.
        errors: number of wrong readings in 100.
    """
    facts = dict(truth.given)
    letters = [letter for letter, _ in facts["options"]]
    answer = _answer(facts)
    draw_key = ("reader", errors, facts["options"], facts["reply"])
    if chance(*draw_key) < errors / 100:
        alternatives = [letter for letter in letters if letter != answer]
        is_missed = answer is not None and chance("missed", *draw_key) < 0.5
        answer = None if is_missed else pick(alternatives, "other", *draw_key)
    return json.dumps({"answer": answer})


def _answer(facts: Mapping[str, Any]) -> str | None:
    """Return the displayed letter in the reply of a simulated model, None for any other reply."""
    reply = facts["reply"]
    decisions = []
    if facts["decision"]:
        for wordings, letter in zip((STICKS, SWITCHES), facts["decision"], strict=True):
            decisions += [letter for wording in wordings if wording == reply]
    matches = [match for pattern in _patterns() if (match := pattern.search(reply))]
    last = max(matches, key=lambda match: match.start(1), default=None)
    return decisions[0] if decisions else last[1] if last else None


@cache
def _patterns() -> tuple["re.Pattern[str]", ...]:
    return tuple(_compile_patterns())


def _compile_patterns() -> Iterator["re.Pattern[str]"]:
    """Yield a pattern for each wording at the end of a reply, with its letter as a group."""
    for wording in (*WORDINGS, *CHOICES, *STICKS, *SWITCHES, *PROBES):
        text, letter = "\x00", "\x01"
        reply = without_reasoning(wording.format(text=text, letter=letter, label=letter))
        if letter in reply:
            plain = re.escape(reply).replace(text, ".*?").replace(letter, "([A-Z])")
            yield re.compile(rf"{plain}\Z", re.DOTALL)
