"""Protocols: one module for each system of the source papers, each an Inspect task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inspect_ai import Task

from .estimate import Estimate
from .followup import FollowupStudy, followup, followup_study


@dataclass(frozen=True)
class Protocol:
    """A protocol as the command line sees it.

    Attributes:
        task: makes the Inspect task; its parameters are the protocol's settings.
        study: resolves the same settings without a model.
    """

    task: Callable[..., Task]
    study: Callable[..., FollowupStudy]


PROTOCOLS: Mapping[str, Protocol] = {"followup": Protocol(followup, followup_study)}
"""Protocol by name."""

__all__ = [
    "PROTOCOLS",
    "Estimate",
    "FollowupStudy",
    "Protocol",
    "followup",
    "followup_study",
]
