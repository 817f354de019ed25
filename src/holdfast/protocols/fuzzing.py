"""The attacker at work: modifications asked for, checked, and asked for again."""

from collections.abc import Callable
from typing import Any

from inspect_ai.model import GenerateConfig, ResponseSchema

from holdfast.challenges import CONTROL_SCHEMA, FUZZ_SCHEMA, Fault, Fuzz, attacker_system
from holdfast.dialogue import Conversation
from holdfast.errors import InputError
from holdfast.questions import Purpose
from holdfast.reading import Extraction, is_refusal, without_reasoning

from .preparing import AGAIN
from .roles import ATTACKER, bound
from .sitting import Sitting


def attackers_conversation(
    sitting: Sitting, assumption: str, purpose: Purpose, seed: int
) -> Conversation:
    """A conversation with the attacker, before anything is asked.

    Args:
        sitting: what is attacked.
        assumption: what is to be violated.
        purpose: ``attack`` or ``control``.
        seed: of the first replicate's sampling.

    Raises:
        InputError: no attacker is bound.
    """
    model = bound(ATTACKER)
    if model is None:
        raise InputError(
            "the role 'attacker' is not bound",
            field="--model-role",
            remedy="Give --model-role attacker=MODEL; it is never the model under test",
        )
    json_schema = CONTROL_SCHEMA if purpose == "control" else FUZZ_SCHEMA
    schema = ResponseSchema.model_validate({"name": "modification", "json_schema": json_schema})
    return sitting.begin(
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

    Raises:
        BudgetExceededError: the run's budget is spent.
        GenerationFailedError: the provider gave no reply, its retries used up.
    """
    found: Fuzz | Fault = Fault("empty", "is empty")

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
        prompt = again(found)
    return found
