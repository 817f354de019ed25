"""Published: the figures that the source papers print, as data. Knows of nothing else here."""

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

__all__ = [
    "AccuracyTable",
    "Family",
    "MedQAFollowup",
    "PrintedChange",
    "PrintedShare",
    "StepTable",
    "SubAdditive",
    "SystemChange",
    "medqa_followup",
]
