"""Dialogue: asking, branching, sharing what was asked before, and reading answers."""

from .budget import Budget, run_budget
from .conversation import Conversation, GenerationFailedError
from .extraction import Extraction, Status, extract_answer
from .gathering import BranchesFailedError, gather
from .turn import Intervention, Turn

__all__ = [
    "BranchesFailedError",
    "Budget",
    "Conversation",
    "Extraction",
    "GenerationFailedError",
    "Intervention",
    "Status",
    "Turn",
    "extract_answer",
    "gather",
    "run_budget",
]
