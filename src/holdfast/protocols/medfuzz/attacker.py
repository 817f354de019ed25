"""Prompts for the attacker and its judge, and parsing of their replies."""

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
    """Return the version of the prompts."""
    return int(packaged(__package__, "prompts.toml")["version"])


def assumptions() -> tuple[str, ...]:
    """Return the names of the bundled assumptions."""
    return tuple(packaged(__package__, "prompts.toml")["assumptions"])


def attacker_system(assumption: str) -> str:
    """Return the attacker's system message: the rules, and the assumption by name or as a text."""
    values = {"assumption": _assumption(assumption), "limit": str(MOST_WORDS)}
    return fill(str(packaged(__package__, "prompts.toml")["attacker_system"]).strip(), values)


def attack_prompt(
    question: Question, reasoning: str, answer: str, confidence: float | None, assumption: str
) -> str:
    """Return the prompt for the first attack on a right answer.

    The prompt contains the model's reply, shortened if it is very long, and the probability of its
    answer, 0 to 1, if known.
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
    """Return the prompt for another attack, with the model's reply to the last one."""
    return fuzz_prompt(
        "next",
        {"reasoning": excerpt(reasoning)},
        answer=answer,
        confidence=_confidence(confidence),
    )


def with_hidden_reasoning(reply: str, reasoning: str) -> str:
    """Return a reply for a prompt, with the hidden reasoning in a separate part."""
    texts = {"hidden": excerpt(reasoning), "reply": reply}
    return fuzz_prompt("told_apart", texts) if reasoning else reply


def fuzz_retry_prompt(fault: Fault) -> str:
    """Return the prompt to repeat an attack, with the fault of the last one."""
    return fuzz_prompt("again", {}, fault=fault.detail, limit=str(MOST_WORDS))


def control_prompt(question: Question, fuzz: Fuzz, number: int) -> str:
    """Return the prompt for a control of an attack; its 1-based number distinguishes requests."""
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
    """Return the prompt to repeat a control, with the fault of the last one."""
    return fuzz_prompt("again_control", {}, fault=fault.detail)


def fuzz_prompt(name: str, texts: Mapping[str, str], **values: str) -> str:
    """Fill a prompt of MedFuzz, with texts between delimiters that none of them contains."""
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
"""Assumed maximum number of tokens that a modification adds (120 words)."""


def attackers_chat(run: Run, assumption: str, seed: int, purpose: Purpose) -> Turn:
    """Start a conversation with the attacker."""
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
    """Ask for a modification until it is valid, and describe each fault to the attacker.

    Every try is a turn of its arm. A valid one has the status ``parsed``. For an invalid one, the
    rule is the fault.

    Args:
        attacker: the conversation with the attacker so far.
        prompt: prompt for the modification.
        parse: function that parses a reply without its reasoning or returns its fault.
        correct: function from a fault to the next prompt.
        context: as for ``Turn.ask``.

    Returns:
        The last turn, with the modification or the last reply's fault.
    """

    def usable(output: ModelOutput) -> Fuzz | Fault:
        text = without_reasoning(output.completion)
        value = parse(text)
        # an analysis in the first person can resemble a refusal
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
"""Roles that judge whether the right answer is still right; the majority of those bound decides."""


def validity_prompt(question: Question, modification: Question) -> str:
    """Return the prompt whether a question's right answer is still right after a modification."""
    texts = {
        "question": question.stem,
        "modified": modification.stem,
        "options": option_lines(question.options),
        "gold_text": question.options[question.gold],
    }
    return fuzz_prompt("validity", texts, gold=question.gold)


def read_validity(reply: str) -> bool | None:
    """Return the verdict of the last JSON object with a verdict, None without one."""
    verdicts = [verdict["valid"] for verdict in json_objects(reply[-_TAIL:]) if "valid" in verdict]
    return verdicts[-1] if verdicts and isinstance(verdicts[-1], bool) else None


def faithfulness_prompt(stem: str, characteristics: Sequence[str], reply: str) -> str:
    """Return the prompt which added characteristics a reply mentions (MedFuzz, section 5)."""
    texts = {"question": stem, "reply": excerpt(reply), "listed": _number_lines(characteristics)}
    return fuzz_prompt("faithfulness", texts, count=str(len(characteristics)))


def read_faithfulness(reply: str, n: int) -> list[bool] | None:
    """Return the judge's values: the last JSON list of true and false in the reply.

    None without such a list, or if its length is not ``n``.
    """
    matches = _LIST.findall(reply[-_TAIL:])
    values = re.findall(r"true|false", matches[-1].lower()) if matches else []
    return [value == "true" for value in values] if values and len(values) == n else None


def review_prompt(question: Question, fuzz: Fuzz, answer: str, reply: str) -> str:
    """Return the prompt how useful an expert's review of an attack is (MedFuzz, sections 4 and 5).

    The source gives no criteria, so they are holdfast's.
    """
    texts = {
        "question": fuzz.stem,
        "options": option_lines(question.options),
        "listed": _number_lines(fuzz.characteristics),
        "reply": excerpt(reply),
    }
    return fuzz_prompt("review", texts, gold=question.gold, answer=answer)


def read_review(reply: str) -> int | None:
    """Return the judge's score from 1 to 10, None if it cannot be parsed.

    It is the score of the last JSON object with a score, or else the reply itself if it is only a
    number.
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
    """Return numbered texts, one per line, with line ends inside a text replaced by blanks."""
    return "\n".join(f"{n}. {' '.join(text.split())}" for n, text in enumerate(texts, start=1))
