"""Dialogue: asking, branching, and sharing what was asked before."""

from .beliefs import beliefs_in
from .budget import Budget, run_budget
from .conversation import (
    JUDGEMENT_TOKENS,
    TESTED_ARM,
    UNCHALLENGED_ARMS,
    ConversationStart,
    Place,
    Run,
    Turn,
    place,
)
from .gathering import Branches, BranchesFailedError, gather
from .generations import Generations, generations, keeping, kept_elsewhere
from .guarding import make_call_sound, refusals
from .live_run import GenerationFailedError, Live, LiveTurn
from .probing import LASTING, Probe, fault_of_all, is_unreached, probing
from .request import request
from .sitting import CONNECTIONS, KEPT_AS, Connections, Sitting, branch, current_sitting
from .turn import (
    CUT_OFF,
    Choice,
    Intervention,
    ReplyReading,
    Rule,
    SecondReader,
    judged,
)

__all__ = [
    "CONNECTIONS",
    "CUT_OFF",
    "JUDGEMENT_TOKENS",
    "KEPT_AS",
    "LASTING",
    "TESTED_ARM",
    "UNCHALLENGED_ARMS",
    "Branches",
    "BranchesFailedError",
    "Budget",
    "Choice",
    "Connections",
    "ConversationStart",
    "GenerationFailedError",
    "Generations",
    "Intervention",
    "Live",
    "LiveTurn",
    "Place",
    "Probe",
    "ReplyReading",
    "Rule",
    "Run",
    "SecondReader",
    "Sitting",
    "Turn",
    "beliefs_in",
    "branch",
    "current_sitting",
    "fault_of_all",
    "gather",
    "generations",
    "is_unreached",
    "judged",
    "keeping",
    "kept_elsewhere",
    "make_call_sound",
    "place",
    "probing",
    "refusals",
    "request",
    "run_budget",
]
