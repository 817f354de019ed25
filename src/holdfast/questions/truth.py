"""What is true of the turn under way: known to the simulated models, never sent to any model."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from .question import Question

RESAMPLE_SEEDS = 1_000_000
"""How far the seed of a question that is asked afresh lies above that of its first answer."""

Purpose = Literal[
    "answer",
    "context",
    "distractors",
    "plausibility",
    "label",
    "judgement",
    "attack",
    "control",
    "mention",
    "review",
    "validity",
    "reading",
    "verification",
]
"""What a model is asked for: the answer, or something that a study is prepared or read with."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The question and the challenge behind the messages that a model is about to answer.

    Real providers see messages only. The simulated ones need the gold answer and the technique
    to behave with known probabilities, and recordings need them to find the recorded reply. It
    travels beside the request, so it changes neither the prompt nor the cache key.
    """

    question: Question
    path: tuple[str, ...] = ()
    """Interventions from the root to this turn, as in the turns table."""
    families: tuple[str, ...] = ()
    """Family of each intervention in ``path``."""
    suggested: tuple[str | None, ...] = ()
    """Letter pushed by each intervention in ``path``."""
    replicate: int = 1
    """1-based epoch."""
    purpose: Purpose = "answer"
    """What the model is asked for."""
    given: tuple[tuple[str, Any], ...] = ()
    """What else a simulated model is told, as sorted pairs."""

    origin: str = ""
    """Content hash of the question before a branch put it otherwise; empty for its own."""
    resample: int = 0
    """Which further time the epoch's first question is asked afresh; 0 for the first."""

    @property
    def drawn_by(self) -> str:
        """What a simulated model's draws are fixed by: the question as it was first put."""
        return self.origin or self.question.content_hash

    @property
    def drawn(self) -> str:
        """Which of the generations of one request this is to be: no two of them are shared."""
        if not self.resample:
            return str(self.replicate)
        return f"{self.replicate} afresh" + (f" {self.resample}" if self.resample > 1 else "")

    @property
    def techniques(self) -> tuple[str, ...]:
        """Ids of the interventions without their variants (``@``)."""
        return tuple(step.partition("@")[0] for step in self.path)


under_test: ContextVar[Truth | None] = ContextVar("under_test", default=None)
"""Set by the conversation around each generation."""
