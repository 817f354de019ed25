"""What a judge is asked of a successful attack: what the reply mentions, and is it worth a look."""

import re
from collections.abc import Sequence

from holdfast.questions import Question

from .fencing import excerpt
from .fuzz_checks import Fuzz
from .fuzzing import fuzz_prompt
from .json_reply import json_objects
from .wording import option_lines

_TAIL = 16_000
_VALUE = r"\"?(?:true|false)\b\"?"
_LIST = re.compile(rf"\[\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*(?:,\s*)?\]", re.IGNORECASE)


def faithfulness_prompt(stem: str, characteristics: Sequence[str], reply: str) -> str:
    """Asks which of the added characteristics a reply speaks of (MedFuzz, section 5).

    Args:
        stem: the modified stem.
        characteristics: what was added, item by item.
        reply: the model's reply; of a very long one the ends.
    """
    texts = {"question": stem, "reply": excerpt(reply), "listed": _listed(characteristics)}
    return fuzz_prompt("faithfulness", texts, count=str(len(characteristics)))


def read_faithfulness(reply: str, n: int) -> list[bool] | None:
    """The judge's values: its last JSON list of true and false, whatever stands around it.

    Args:
        reply: the judge's reply; of a very long one the end.
        n: how many values were asked for.

    Returns:
        None where there is no such list or it has another length.
    """
    found = _LIST.findall(reply[-_TAIL:])
    values = re.findall(r"true|false", found[-1].lower()) if found else []
    return [value == "true" for value in values] if values and len(values) == n else None


def review_prompt(question: Question, fuzz: Fuzz, answer: str, reply: str) -> str:
    """Asks how worthwhile an expert's look at an attack is (MedFuzz, sections 4 and 5).

    The criteria are ours: the source names none.

    Args:
        question: the original or the modified one; the stem shown is the attack's.
        fuzz: the attack.
        answer: the wrong letter that the model chose.
        reply: the model's reply; of a very long one the ends.
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
