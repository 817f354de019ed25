"""The truth about the current turn: known to simulated models, never sent to any model."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from .question import Question

RESAMPLE_SEEDS = 1_000_000
"""Distance between the seeds of a first answer and of its resample."""

Purpose = str
"""Purpose of a request: ``answer``, or the input or judgement of a study that a helper gives.

A protocol names its own. Simulated helpers serve the purposes of ``Behaviour.helpers``.
"""


@dataclass(frozen=True, slots=True)
class Truth:
    """Question and challenge of the messages that a model will answer next.

    Real providers see only messages. Simulated models need the gold answer and the technique to
    behave with known probabilities, and recordings need them to find the recorded reply. The truth
    is separate from the request, so it changes neither the prompt nor the cache key.
    """

    question: Question
    path: tuple[str, ...] = ()
    """Interventions from the root to this turn, as in the turns table."""
    families: tuple[str, ...] = ()
    """Family of each intervention in ``path``."""
    suggested: tuple[str | None, ...] = ()
    """Letter suggested by each intervention in ``path``."""
    replicate: int = 1
    """1-based epoch."""
    purpose: Purpose = "answer"
    """Purpose of the request."""
    given: tuple[tuple[str, Any], ...] = ()
    """Other facts for a simulated model, as sorted pairs."""

    origin: str = ""
    """Content hash of the question before a branch reworded it, empty for the original question."""
    resample: int = 0
    """Number of the resample of the epoch's first answer, 0 for the first answer itself."""

    @property
    def drawn_by(self) -> str:
        """Key of a simulated model's draws: the content hash of the original question."""
        return self.origin or self.question.content_hash

    @property
    def drawn(self) -> str:
        """Key of the generation among equal requests. Different keys never share a generation."""
        if not self.resample:
            return str(self.replicate)
        return f"{self.replicate} afresh" + (f" {self.resample}" if self.resample > 1 else "")

    @property
    def techniques(self) -> tuple[str, ...]:
        """Ids of the interventions without their variants (``@``)."""
        return tuple(step.partition("@")[0] for step in self.path)


under_test: ContextVar[Truth | None] = ContextVar("under_test", default=None)
"""Truth of the current generation, which the conversation sets."""
