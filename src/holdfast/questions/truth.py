"""What is true of the turn under way: known to the simulated models, never sent to any model."""

from contextvars import ContextVar
from dataclasses import dataclass

from .question import Question


@dataclass(frozen=True, slots=True)
class Truth:
    """The question and the challenge behind the messages that a model is about to answer.

    Real providers see messages only. The simulated ones need the gold answer and the technique
    to behave with known probabilities, and recordings need them to find the recorded reply. It
    travels beside the request, so it changes neither the prompt nor the cache key.
    """

    question: Question
    path: tuple[str, ...] = ()
    """Ids of the interventions from the root to this turn."""
    families: tuple[str, ...] = ()
    """Family of each intervention in ``path``."""
    suggested: tuple[str | None, ...] = ()
    """Letter pushed by each intervention in ``path``."""
    replicate: int = 1
    """1-based epoch."""


under_test: ContextVar[Truth | None] = ContextVar("under_test", default=None)
"""Set by the conversation around each generation."""
