"""Dialogue: asking, branching, sharing what was asked before, and reading answers."""

from .beliefs import beliefs_in
from .budget import Budget, run_budget
from .conversation import Conversation, GenerationFailedError, Reader
from .decision import read_decision
from .extraction import Extraction, Status, extract_answer, first_character
from .gathering import BranchesFailedError, gather
from .generations import Generations, keeping, kept_elsewhere
from .refusal import is_refusal
from .reply_text import without_reasoning
from .turn import CUT_OFF, Intervention, Turn

__all__ = [
    "CUT_OFF",
    "BranchesFailedError",
    "Budget",
    "Conversation",
    "Extraction",
    "GenerationFailedError",
    "Generations",
    "Intervention",
    "Reader",
    "Status",
    "Turn",
    "beliefs_in",
    "extract_answer",
    "first_character",
    "gather",
    "is_refusal",
    "keeping",
    "kept_elsewhere",
    "read_decision",
    "run_budget",
    "without_reasoning",
]
