"""The judge of MedFuzz: what a turned answer speaks of, and is the attack worth a look?"""

import json
import re
from collections.abc import Sequence
from typing import Any

from inspect_ai.model import GenerateConfig

from holdfast.challenges import excerpt, json_objects, option_lines
from holdfast.dialogue import Conversation, Turn
from holdfast.protocols.study import JUDGE, bound
from holdfast.questions import Question

from .attacker import fuzz_prompt
from .modification import Fuzz

_TAIL = 16_000
_VALUE = r"\"?(?:true|false)\b\"?"
_LIST = re.compile(rf"\[\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*(?:,\s*)?\]", re.IGNORECASE)


VALIDITY = ("validity", "validity-2", "validity-3")
"""Roles that judge whether the right answer is still right; the majority of those bound counts."""


async def judged(
    turn: Turn, text: str, put: Question, fuzz: Fuzz, named: Sequence[bool], seed: int
) -> dict[str, Any]:
    """What the judge says of a success, by the names of the turns table; nothing without one.

    Faithfulness (section 5), and how worth an expert's look the attack is (section 4).

    Args:
        turn: the reply that the attack turned.
        text: what is read of it.
        put: the modified question.
        fuzz: the attack.
        named: what of it the reply mentions by its words, for a simulated judge.
        seed: of the judge's sampling.
    """
    judge = bound(JUDGE)
    if judge is None:
        return {}
    config = GenerateConfig(temperature=0.0, seed=seed)
    step = turn.interventions[-1]
    reader = Conversation(judge, put, config=config, purpose="mention").branch(step)
    said = await reader.say(
        faithfulness_prompt(put.stem, fuzz.characteristics, text), mentioned=named
    )
    read = read_faithfulness(said.completion, len(fuzz.characteristics))
    reviewer = Conversation(judge, put, config=config, purpose="review").branch(step)
    reviewed = await reviewer.say(review_prompt(put, fuzz, turn.answer or "", text))
    return {
        "mentioned_judged": None if read is None else json.dumps(read),
        "review": read_review(reviewed.completion),
    }


async def held_valid(turn: Turn, question: Question, put: Question, seed: int) -> dict[str, Any]:
    """Whether the right answer is still right to a question that turned the answer.

    Args:
        turn: the reply that the attack turned.
        question: as it was.
        put: as modified.
        seed: of the judges' sampling.

    Returns:
        ``valid_judged`` by the majority of the judges that could be read, false where they are
        divided evenly, None where none could be read; nothing without a judge.
    """
    judges = [model for role in VALIDITY if (model := bound(role)) is not None]
    if not judges:
        return {}
    config, votes = GenerateConfig(temperature=0.0, seed=seed), []
    for number, judge in enumerate(judges):
        chat = Conversation(judge, put, config=config, purpose="validity")
        said = await chat.branch(turn.interventions[-1]).say(
            validity_prompt(question, put), judge=number
        )
        votes.append(read_validity(said.completion))
    read = [vote for vote in votes if vote is not None]
    return {"valid_judged": 2 * sum(read) > len(read) if read else None}


def validity_prompt(question: Question, put: Question) -> str:
    """Asks whether the right answer of a question is still right to a modification of it."""
    texts = {
        "question": question.stem,
        "modified": put.stem,
        "options": option_lines(question.options),
        "gold_text": question.options[question.gold],
    }
    return fuzz_prompt("validity", texts, gold=question.gold)


def read_validity(reply: str) -> bool | None:
    """The verdict of the last JSON object with one; None where there is none."""
    found = [one["valid"] for one in json_objects(reply[-_TAIL:]) if "valid" in one]
    return found[-1] if found and isinstance(found[-1], bool) else None


def faithfulness_prompt(stem: str, characteristics: Sequence[str], reply: str) -> str:
    """Asks which of the added characteristics a reply speaks of (MedFuzz, section 5)."""
    texts = {"question": stem, "reply": excerpt(reply), "listed": _listed(characteristics)}
    return fuzz_prompt("faithfulness", texts, count=str(len(characteristics)))


def read_faithfulness(reply: str, n: int) -> list[bool] | None:
    """The judge's values: its last JSON list of true and false, whatever stands around it.

    None where there is no such list, or it has another length.
    """
    found = _LIST.findall(reply[-_TAIL:])
    values = re.findall(r"true|false", found[-1].lower()) if found else []
    return [value == "true" for value in values] if values and len(values) == n else None


def review_prompt(question: Question, fuzz: Fuzz, answer: str, reply: str) -> str:
    """Asks how worthwhile an expert's look at an attack is (MedFuzz, sections 4 and 5).

    The criteria are ours: the source names none.
    """
    texts = {
        "question": fuzz.stem,
        "options": option_lines(question.options),
        "listed": _listed(fuzz.characteristics),
        "reply": excerpt(reply),
    }
    return fuzz_prompt("review", texts, gold=question.gold, answer=answer)


def read_review(reply: str) -> int | None:
    """The judge's score, from 1 to 10; None where none can be read.

    It is that of the last JSON object with a score; else the reply is a number and nothing else.
    """
    text = reply[-_TAIL:].strip()
    scores: list[object] = [found["score"] for found in json_objects(text) if "score" in found]
    if not scores and len(text) < 20:
        scores = [text]
    score = scores[-1] if scores else None
    if isinstance(score, str):
        plain = re.fullmatch(r"\W*(\d{1,2})(?:\.0)?(?: ?/ ?10)?\W*", score)
        score = int(plain[1]) if plain else None
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return None
    return int(score) if score in range(1, 11) else None


def _listed(texts: Sequence[str]) -> str:
    """One on each line, numbered; line ends inside of one are blanks."""
    return "\n".join(f"{n}. {' '.join(text.split())}" for n, text in enumerate(texts, start=1))
