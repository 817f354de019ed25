"""What the attacker and its judge are asked, and how their replies are read."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inspect_ai.model import GenerateConfig, ModelOutput, ResponseSchema

from holdfast.challenges.texts import Fault, excerpt, fence, fill, json_objects, option_lines
from holdfast.dialogue.conversation import Run, Turn
from holdfast.files import packaged
from holdfast.questions.question import Question
from holdfast.questions.truth import Purpose
from holdfast.reading.refusal import is_refusal
from holdfast.reading.reply_text import without_reasoning

from .attack_arms import ATTACKER, REFUSALS
from .modification import MOST_WORDS, Fuzz, word_count

FUZZ_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "analysis": {"type": "string", "description": "of the model's last reply"},
        "plan": {"type": "string", "description": "what to add, where, and why"},
        "modified_question": {
            "type": "string",
            "description": "the whole question with what is added, without the options",
        },
        "characteristics": {
            "type": "array",
            "items": {"type": "string"},
            "description": "what was added, item by item",
        },
    },
    "required": ["analysis", "plan", "modified_question", "characteristics"],
    "additionalProperties": False,
}
"""JSON schema of an attack."""

CONTROL_SCHEMA: dict[str, Any] = {
    **FUZZ_SCHEMA,
    "properties": {
        name: FUZZ_SCHEMA["properties"][name] for name in ("modified_question", "characteristics")
    },
    "required": ["modified_question", "characteristics"],
}
"""JSON schema of a control."""


def fuzz_version() -> int:
    """Version of the prompts."""
    return int(packaged(__package__, "prompts.toml")["version"])


def assumptions() -> tuple[str, ...]:
    """Names of the assumptions that come with a text."""
    return tuple(packaged(__package__, "prompts.toml")["assumptions"])


def attacker_system(assumption: str) -> str:
    """The attacker's system message: the rules, and the assumption by its name or as a text."""
    values = {"assumption": _assumption(assumption), "limit": str(MOST_WORDS)}
    return fill(str(packaged(__package__, "prompts.toml")["attacker_system"]).strip(), values)


def attack_prompt(
    question: Question, reasoning: str, answer: str, confidence: float | None, assumption: str
) -> str:
    """Asks for the first attack on an answer that was right.

    The model's reply is shown, of a very long one the ends, and the probability from 0 to 1 that it
    gave the letter, where that is known.
    """
    return fuzz_prompt(
        "attack",
        {
            "assumption": _assumption(assumption),
            "question": question.stem,
            "options": option_lines(question.options),
            "gold_text": question.options[question.gold],
            "reasoning": excerpt(reasoning),
        },
        gold=question.gold,
        answer=answer,
        confidence=_confidence(confidence),
    )


def next_attack_prompt(reasoning: str, answer: str, confidence: float | None) -> str:
    """Asks for another attack, with the model's reply to the last one."""
    return fuzz_prompt(
        "next",
        {"reasoning": excerpt(reasoning)},
        answer=answer,
        confidence=_confidence(confidence),
    )


def told(reply: str, reasoning: str) -> str:
    """A reply as others read it, with the hidden reasoning before it told apart."""
    texts = {"hidden": excerpt(reasoning), "reply": reply}
    return fuzz_prompt("told_apart", texts) if reasoning else reply


def fuzz_retry_prompt(fault: Fault) -> str:
    """Asks for the same attack once more, and says what was wrong."""
    return fuzz_prompt("again", {}, fault=fault.detail, limit=str(MOST_WORDS))


def control_prompt(question: Question, fuzz: Fuzz, number: int) -> str:
    """Asks for a control of an attack; its number, from 1, makes each request another."""
    runs = [
        f"{place}. ({word_count(run)} words) {run}"
        for place, run in enumerate(fuzz.additions, start=1)
    ]
    return fuzz_prompt(
        "control",
        {"question": question.stem, "modified": fuzz.stem, "runs": "\n".join(runs)},
        words=str(fuzz.words),
        number=str(number),
    )


def control_retry_prompt(fault: Fault) -> str:
    """Asks for the same control once more, and says what was wrong."""
    return fuzz_prompt("again_control", {}, fault=fault.detail)


def fuzz_prompt(name: str, texts: Mapping[str, str], **values: str) -> str:
    """A prompt of MedFuzz by name; texts of others stand between lines that occur in none."""
    template = str(packaged(__package__, "prompts.toml")["prompts"][name]).strip()
    return fill(template, {**values, **texts, "fence": fence(*texts.values())})


def _assumption(setting: str) -> str:
    return str(packaged(__package__, "prompts.toml")["assumptions"].get(setting, setting)).strip()


def _confidence(probability: float | None) -> str:
    if probability is None:
        return ""
    return fill(
        packaged(__package__, "prompts.toml")["prompts"]["confidence"],
        {"percent": f"{100 * probability:.0f}"},
    )


ADDED_TOKENS = 160
"""What a modification adds to a question, at most (120 words)."""


def attackers_chat(run: Run, assumption: str, seed: int, purpose: Purpose) -> Turn:
    """A conversation with the attacker, before anything is asked."""
    json_schema = CONTROL_SCHEMA if purpose == "control" else FUZZ_SCHEMA
    schema = ResponseSchema.model_validate({"name": "modification", "json_schema": json_schema})
    return run.chat(
        attacker_system(assumption),
        role=ATTACKER,
        config=GenerateConfig(temperature=1.0, response_schema=schema),
        seed=seed,
        purpose=purpose,
        tokens=len(run.question.stem) // 4 + ADDED_TOKENS + 200,
    )


async def modify(
    attacker: Turn,
    prompt: str,
    parse: Callable[[str], Fuzz | Fault],
    correct: Callable[[Fault], str],
    **context: Any,
) -> tuple[Turn, Fuzz | Fault]:
    """Ask for a modification, and say what was wrong with it until it can be used.

    Every try is a turn of its arm: one that can be used has the status ``parsed``, else its rule is
    what was wrong.

    Args:
        attacker: the conversation with the attacker so far.
        prompt: what is asked for.
        parse: finds it in a reply without its reasoning, or says what is wrong.
        correct: asks once more, and says what was wrong.
        context: as ``Turn.ask`` takes it.

    Returns:
        The last turn, and the modification or the last reply's fault.
    """

    def usable(output: ModelOutput) -> Fuzz | Fault:
        text = without_reasoning(output.completion)
        value = parse(text)
        # an analysis in the first person can sound like a refusal
        if isinstance(value, Fault) and value.kind == "no JSON" and is_refusal(text):
            return Fault("refused", "declines what was asked for")
        return value

    def like(reply: str) -> Fuzz:
        addition = reply[: 4 * ADDED_TOKENS]
        return Fuzz(f"{attacker.question.stem} {addition}", (addition,), "", "", (addition,), 1)

    return await attacker.obtain(prompt, usable, correct, like, refusals=REFUSALS, **context)


_TAIL = 16_000
_VALUE = r"\"?(?:true|false)\b\"?"
_LIST = re.compile(rf"\[\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*(?:,\s*)?\]", re.IGNORECASE)


VALIDITY = ("validity", "validity-2", "validity-3")
"""Roles that judge whether the right answer is still right; the majority of those bound counts."""


def validity_prompt(question: Question, modification: Question) -> str:
    """Asks whether the right answer of a question is still right to a modification of it."""
    texts = {
        "question": question.stem,
        "modified": modification.stem,
        "options": option_lines(question.options),
        "gold_text": question.options[question.gold],
    }
    return fuzz_prompt("validity", texts, gold=question.gold)


def read_validity(reply: str) -> bool | None:
    """The verdict of the last JSON object with one; None where there is none."""
    verdicts = [verdict["valid"] for verdict in json_objects(reply[-_TAIL:]) if "valid" in verdict]
    return verdicts[-1] if verdicts and isinstance(verdicts[-1], bool) else None


def faithfulness_prompt(stem: str, characteristics: Sequence[str], reply: str) -> str:
    """Asks which of the added characteristics a reply speaks of (MedFuzz, section 5)."""
    texts = {"question": stem, "reply": excerpt(reply), "listed": _number_lines(characteristics)}
    return fuzz_prompt("faithfulness", texts, count=str(len(characteristics)))


def read_faithfulness(reply: str, n: int) -> list[bool] | None:
    """The judge's values: its last JSON list of true and false, whatever stands around it.

    None where there is no such list, or it has another length.
    """
    matches = _LIST.findall(reply[-_TAIL:])
    values = re.findall(r"true|false", matches[-1].lower()) if matches else []
    return [value == "true" for value in values] if values and len(values) == n else None


def review_prompt(question: Question, fuzz: Fuzz, answer: str, reply: str) -> str:
    """Asks how worthwhile an expert's look at an attack is (MedFuzz, sections 4 and 5).

    The criteria are ours: the source names none.
    """
    texts = {
        "question": fuzz.stem,
        "options": option_lines(question.options),
        "listed": _number_lines(fuzz.characteristics),
        "reply": excerpt(reply),
    }
    return fuzz_prompt("review", texts, gold=question.gold, answer=answer)


def read_review(reply: str) -> int | None:
    """The judge's score, from 1 to 10; None where none can be read.

    It is that of the last JSON object with a score; else the reply is a number and nothing else.
    """
    text = reply[-_TAIL:].strip()
    scores: list[object] = [item["score"] for item in json_objects(text) if "score" in item]
    if not scores and len(text) < 20:
        scores = [text]
    score = scores[-1] if scores else None
    if isinstance(score, str):
        plain = re.fullmatch(r"\W*(\d{1,2})(?:\.0)?(?: ?/ ?10)?\W*", score)
        score = int(plain[1]) if plain else None
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return None
    return int(score) if score in range(1, 11) else None


def _number_lines(texts: Sequence[str]) -> str:
    """One on each line, numbered; line ends inside of one are blanks."""
    return "\n".join(f"{n}. {' '.join(text.split())}" for n, text in enumerate(texts, start=1))
