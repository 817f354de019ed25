"""Simulated helpers of a study: generator, classifier, judge, attacker and reader."""

import json
import re
from collections.abc import Callable, Mapping

from holdfast.questions import SYSTEMS, Truth

from .chance import chance, pick
from .fuzzing import FAULTY, MARK, attacker, faulty_attacker
from .reading import NAME, reader

AGREEING = 0.9
"""Chance that the judge says what the lexical rule says."""


def _generator(truth: Truth, seed: int) -> str:
    given = dict(truth.given)
    if truth.purpose == "distractors":
        return json.dumps({letter: _distractor(truth, letter) for letter in given["letters"]})
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
    given = dict(truth.given)
    here = (truth.question.content_hash, *truth.path)
    if truth.purpose == "review":
        return str(1 + int(chance("review", *here) * 10))
    if truth.purpose == "mention":
        agrees = [chance("mention", *here, n) < AGREEING for n in range(len(given["mentioned"]))]
        said = [bool(m) == agree for m, agree in zip(given["mentioned"], agrees, strict=True)]
        return json.dumps(said)
    named, stance = bool(given["named"]), given["stance"]
    if chance("judge", *here) >= AGREEING:
        named, stance = not named, None if named else "neither"
    return json.dumps({"named": named, "stance": stance})


Assistant = tuple[tuple[str, ...], Callable[[Truth, int], str]]
"""The purposes that a helper serves and what it says, given the truth and the run's seed."""

ASSISTANTS: Mapping[str, Assistant] = {
    "generator": (("context", "distractors"), _generator),
    "faulty-generator": (("context", "distractors"), _faulty_generator),
    "classifier": (("label",), _classifier),
    "judge": (("judgement", "mention", "review"), _judge),
    "attacker": (("attack", "control"), attacker),
    "faulty-attacker": (("attack", "control"), faulty_attacker),
    "reader": (("reading",), lambda truth, seed: reader(truth, 0)),
}
"""Helpers by name."""


def assistant(name: str) -> Assistant | None:
    """The helper of that name, with ``reader-20`` and the like; None where it is none."""
    if (named := NAME.fullmatch(name)) and named["errors"]:
        return ("reading",), lambda truth, seed: reader(truth, int(named["errors"]))
    return ASSISTANTS.get(name)


def _sentences(truth: Truth, kind: str, n: int) -> str:
    """That many sentences which say nothing of medicine but name the option at stake."""
    option = truth.suggested[-1] if kind == "misleading_context" else truth.question.gold
    # its words alone, because a full stop in an option would end a sentence
    words = " ".join(re.findall(r"[\w-]+", truth.question.options[option or ""]))
    subject = "another diagnosis" if kind == "alternative_context" else words
    # not at its end either, where a single letter would pass for an abbreviation
    first = f"{MARK} Here {subject} is what the {kind.replace('_', ' ')} is about."
    return " ".join([first, *(f"{MARK} Sentence number {k} of it." for k in range(2, n + 1))])


def _distractor(truth: Truth, letter: str) -> str:
    return f"{MARK} wrong option {letter} of case {truth.question.content_hash[:6]}"
