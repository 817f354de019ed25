"""Dialogue: asking, branching, and sharing what was asked before."""

from .beliefs import beliefs_in
from .budget import Budget, run_budget
from .conversation import Conversation, GenerationFailedError, Reader
from .gathering import BranchesFailedError, gather
from .generations import Generations, keeping, kept_elsewhere
from .lasting import LASTING
from .turn import CUT_OFF, Intervention, Turn

__all__ = [
    "CUT_OFF",
    "LASTING",
    "BranchesFailedError",
    "Budget",
    "Conversation",
    "GenerationFailedError",
    "Generations",
    "Intervention",
    "Reader",
    "Turn",
    "beliefs_in",
    "gather",
    "keeping",
    "kept_elsewhere",
    "run_budget",
]
