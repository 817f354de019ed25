"""Models that answer from a function and keep what they were asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, StopReason, get_model

from holdfast.protocols.scoring import PREPARED_KEY
from holdfast.questions.truth import Truth, under_test

Reply = Callable[[list[ChatMessage]], str | ModelOutput]


# without a repr of its own: the cache's key holds that of a model's arguments
@dataclass(eq=False, repr=False)
class Scripted:
    """Answers from ``reply(messages)``; no two share a generation."""

    reply: Reply
    name: str = "model"
    asked: list[list[ChatMessage]] = field(default_factory=list)
    truths: list[Truth | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model: Model = get_model(
            f"mockllm/{self.name}", custom_outputs=self._respond, memoize=False
        )

    @property
    def prompts(self) -> list[str]:
        """The last message of each request, in the order of asking."""
        return [messages[-1].text for messages in self.asked]

    def _respond(self, messages: list[ChatMessage], *_: Any) -> ModelOutput:
        self.asked.append(list(messages))
        self.truths.append(under_test.get())
        output = self.reply(messages)
        if isinstance(output, str):
            output = said(output)
        # without a usage the framework would fetch a tokenizer
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output


def said(text: str, stop_reason: StopReason = "stop") -> ModelOutput:
    """A reply that ended for that reason."""
    return ModelOutput.from_content("scripted", text, stop_reason=stop_reason)


def put(
    task: Task,
    model: Any,
    *,
    limit: int | None = None,
    epochs: int = 1,
    roles: Mapping[str, Any] | None = None,
) -> EvalLog:
    """Any task of ours through a real ``eval``."""
    (log,) = eval(
        task,
        model=model,
        model_roles=dict(roles) if roles else None,
        limit=limit,
        epochs=epochs,
        # the quietest: "none" draws the table of all metrics at the end, for nobody
        display="log",
        score_display=False,
        log_realtime=False,
        log_model_api=False,
    )
    return log


def prepared(log: EvalLog) -> list[dict[str, Any]]:
    """The rows that a preparation left in the log."""
    return [row for sample in log.samples or [] for row in sample.store.get(PREPARED_KEY, [])]


def errors(log: EvalLog) -> list[str]:
    """Messages of the questions that could not be finished."""
    return [sample.error.message for sample in log.samples or [] if sample.error]
