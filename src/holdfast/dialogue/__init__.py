"""Dialogue: asking, branching, and sharing what was asked before."""

from .beliefs import beliefs_in
from .budget import Budget, run_budget
from .conversation import Conversation, GenerationFailedError
from .defending import HANDED_OVER, SETTLED, Defence, Defended, Exchange
from .gathering import Branches, BranchesFailedError, gather
from .generations import Generations, generations, keeping, kept_elsewhere
from .guarding import make_call_sound, refusals
from .probing import LASTING, Probe, fault_of_all, is_unreached, probing
from .sitting import KEPT_AS, Connections, Sitting, branch, seated
from .turn import (
    CUT_OFF,
    UNCHALLENGED,
    Choice,
    Intervention,
    Reading,
    Rule,
    SecondReader,
    Turn,
    judged,
)

__all__ = [
    "CUT_OFF",
    "HANDED_OVER",
    "KEPT_AS",
    "LASTING",
    "SETTLED",
    "UNCHALLENGED",
    "Branches",
    "BranchesFailedError",
    "Budget",
    "Choice",
    "Connections",
    "Conversation",
    "Defence",
    "Defended",
    "Exchange",
    "GenerationFailedError",
    "Generations",
    "Intervention",
    "Probe",
    "Reading",
    "Rule",
    "SecondReader",
    "Sitting",
    "Turn",
    "beliefs_in",
    "branch",
    "fault_of_all",
    "gather",
    "generations",
    "is_unreached",
    "judged",
    "keeping",
    "kept_elsewhere",
    "make_call_sound",
    "probing",
    "refusals",
    "run_budget",
    "seated",
]
