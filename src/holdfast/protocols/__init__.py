"""Protocols: one module for each system of the source papers, each an Inspect task."""

from .followup import FollowupStudy, followup, followup_study

PROTOCOLS = {"followup": followup}
"""Task by the name that ``holdfast run`` knows it by."""

__all__ = ["PROTOCOLS", "FollowupStudy", "followup", "followup_study"]
