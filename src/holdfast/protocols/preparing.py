"""Asking a model for something that a study needs, until it can be used."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver

from holdfast.challenges import Fault, fill
from holdfast.dialogue import Conversation
from holdfast.files import packaged
from holdfast.questions import Question, QuestionSet
from holdfast.reading import is_refusal, without_reasoning

from .study import Study

AGAIN = 3
"""How often a reply that cannot be used is asked for again (protocols, section 1)."""

PREPARED = "prepared"
"""Where in the sample's store the rows are."""

T = TypeVar("T")

Row = dict[str, Any]


class Preparation(Study):
    """What the studies of all preparations have in common."""

    exact = False
    """A reply that fails its check is asked for again."""


def preparation(
    name: str,
    questions: QuestionSet,
    rows: Callable[[Question], Awaitable[list[Row]]],
    *,
    seed: int,
    version: int,
    **metadata: Any,
) -> Task:
    """The Inspect task of a preparation: one sample a question, its rows in the store.

    Args:
        name: what is prepared; the table that comes of it.
        questions: what it is prepared for.
        rows: asks the model and returns a question's rows.
        seed: of the model's sampling.
        version: of the prompts.
        metadata: digests of further inputs.
    """
    asked = {question.id: question for question in questions.questions}

    @solver(name=f"prepare_{name}")
    def prepare() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.store.set(PREPARED, await rows(asked[str(state.sample_id)]))
            return state

        return solve

    return Task(
        dataset=MemoryDataset(
            [Sample(id=q.id, input=q.stem, target=q.gold) for q in questions.questions],
            name=questions.name,
        ),
        solver=prepare(),
        config=GenerateConfig(temperature=0.0, seed=seed),
        fail_on_error=True,
        continue_on_fail=True,
        version=version,
        metadata={"preparation": name, "questions": questions.fingerprint, **metadata},
    )


async def obtain(
    chat: Conversation, prompt: str, read: Callable[[str], T | Fault], **given: object
) -> T | Fault:
    """Ask, check, and say what was wrong until the reply can be used.

    The fault is told in the same conversation, because at temperature 0 the same request would
    bring the same reply. A simulated model is told what is ``given`` beside the prompt.

    Returns:
        What was read, or the last reply's fault.
    """
    for attempt in range(1 + AGAIN):
        output = await chat.say(prompt, **given, attempt=attempt)
        found = _declined(output) or read(without_reasoning(output.completion))
        if not isinstance(found, Fault):
            break
        prompt = again_prompt(found)
    return found


def again_prompt(fault: Fault) -> str:
    """Asks once more, and says what was wrong."""
    return fill(packaged(__package__, "preparing.toml")["again"], {"fault": fault.detail})


def _declined(output: ModelOutput) -> Fault | None:
    if output.stop_reason == "content_filter" or is_refusal(without_reasoning(output.completion)):
        return Fault("refused", "declines what was asked for")
    if output.stop_reason in ("max_tokens", "model_length"):
        return Fault("cut off", "was cut off before its end")
    return None
