"""Dialogue: asking, branching, sharing what was asked before, and reading answers."""

from .budget import Budget, run_budget
from .conversation import Conversation, GenerationFailedError, Reader
from .extraction import (
    Extraction,
    Status,
    extract_answer,
    first_character,
    is_refusal,
    without_reasoning,
)
from .gathering import BranchesFailedError, gather
from .turn import Intervention, Turn

__all__ = [
    "BranchesFailedError",
    "Budget",
    "Conversation",
    "Extraction",
    "GenerationFailedError",
    "Intervention",
    "Reader",
    "Status",
    "Turn",
    "extract_answer",
    "first_character",
    "gather",
    "is_refusal",
    "run_budget",
    "without_reasoning",
]
