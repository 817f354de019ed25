"""The attacker of MedFuzz: what it is asked for, and asked for again (sections 3 and 4)."""

from collections.abc import Callable, Mapping
from typing import Any

from inspect_ai.model import GenerateConfig, ResponseSchema

from holdfast.challenges import Fault, excerpt, fence, fill, option_lines
from holdfast.dialogue import Conversation
from holdfast.errors import InputError
from holdfast.files import packaged
from holdfast.protocols.preparing import AGAIN
from holdfast.protocols.sample_run import SampleRun
from holdfast.protocols.study import bound
from holdfast.questions import Purpose, Question
from holdfast.reading import Extraction, is_refusal, without_reasoning

from .arms import ATTACKER, REFUSALS
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


def told(reply: str, hidden: str) -> str:
    """A reply as others read it, with the hidden reasoning before it told apart."""
    texts = {"hidden": excerpt(hidden), "reply": reply}
    return fuzz_prompt("told_apart", texts) if hidden else reply


def again_fuzz_prompt(fault: Fault) -> str:
    """Asks for the same attack once more, and says what was wrong."""
    return fuzz_prompt("again", {}, fault=fault.detail, limit=str(MOST_WORDS))


def control_prompt(question: Question, fuzz: Fuzz, number: int) -> str:
    """Asks for a control of an attack; its number, from 1, makes each request another."""
    runs = [
        f"{place}. ({word_count(run)} words) {run}" for place, run in enumerate(fuzz.added, start=1)
    ]
    return fuzz_prompt(
        "control",
        {"question": question.stem, "modified": fuzz.stem, "runs": "\n".join(runs)},
        words=str(fuzz.words),
        number=str(number),
    )


def again_control_prompt(fault: Fault) -> str:
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


def attackers_conversation(
    run: SampleRun, assumption: str, purpose: Purpose, seed: int
) -> Conversation:
    """A conversation with the attacker, before anything is asked.

    Raises:
        InputError: no attacker is bound.
    """
    model = bound(ATTACKER)
    if model is None:
        raise InputError(
            "no model has the role 'attacker'",
            field="--model-role",
            remedy="Give --model-role attacker=MODEL; it is never the model under test",
        )
    json_schema = CONTROL_SCHEMA if purpose == "control" else FUZZ_SCHEMA
    schema = ResponseSchema.model_validate({"name": "modification", "json_schema": json_schema})
    return run.begin(
        model,
        system=attacker_system(assumption),
        config=GenerateConfig(temperature=1.0, response_schema=schema),
        seed=seed,
        purpose=purpose,
    )


async def modify(
    attacker: Conversation,
    prompt: str,
    read: Callable[[str], Fuzz | Fault],
    again: Callable[[Fault], str],
    **given: Any,
) -> Fuzz | Fault:
    """Ask for a modification, and say what was wrong with it until it can be used.

    Every try is a turn of the arm ``attacker``: read, it has the status ``parsed``, else its rule
    is what was wrong.

    Args:
        attacker: a conversation with the attacker; what is said becomes part of it.
        prompt: what is asked for.
        read: finds it in a reply without its reasoning, or says what is wrong.
        again: asks once more, and says what was wrong.
        given: what a simulated attacker is told beside the prompt.

    Returns:
        The modification, or the last reply's fault.
    """
    found: Fuzz | Fault = Fault("empty", "is empty")
    refused = 0

    def reading(reply: str) -> Extraction:
        nonlocal found
        text = without_reasoning(reply)
        found = read(text)
        # an analysis in the first person can sound like a refusal
        if isinstance(found, Fault) and found.kind == "no JSON" and is_refusal(text):
            found = Fault("refused", "declines what was asked for")
        if not isinstance(found, Fault):
            return Extraction(None, "parsed", "valid")
        return Extraction(None, "refused" if found.kind == "refused" else "none", found.kind)

    for attempt in range(1 + AGAIN):
        await attacker.ask(prompt, arm="attacker", read=reading, **given, attempt=attempt)
        if not isinstance(found, Fault):
            break
        refused += found.kind == "refused"
        if refused == REFUSALS:
            break
        prompt = again(found)
    return found
