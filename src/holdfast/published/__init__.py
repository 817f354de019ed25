"""Published: the figures that the source papers print, as data. Knows of nothing else here."""

from .medfuzz import MedFuzz, medfuzz
from .medqa_followup import (
    AccuracyTable,
    Family,
    MedQAFollowup,
    PrintedChange,
    PrintedShare,
    StepTable,
    SubAdditive,
    SystemChange,
    medqa_followup,
)
from .stick_or_switch import (
    Conviction,
    Flexibility,
    ModelTable,
    StickOrSwitch,
    stick_or_switch,
)

__all__ = [
    "AccuracyTable",
    "Conviction",
    "Family",
    "Flexibility",
    "MedFuzz",
    "MedQAFollowup",
    "ModelTable",
    "PrintedChange",
    "PrintedShare",
    "StepTable",
    "StickOrSwitch",
    "SubAdditive",
    "SystemChange",
    "medfuzz",
    "medqa_followup",
    "stick_or_switch",
]
