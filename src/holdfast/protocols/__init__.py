"""Protocols: one module for each system of the source papers, each an Inspect task.

Beside them the preparations, tasks that make what a study needs: contexts, wrong options, labels.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai import Task

from .context_generation import ContextStudy, context_study, contexts
from .distractor_generation import DistractorStudy, distractor_study, distractors
from .estimate import Estimate
from .followup import FollowupStudy, followup, followup_study
from .labelling import LabelStudy, label_study, systems
from .medfuzz import MedFuzzStudy, medfuzz, medfuzz_study
from .medfuzz_test import MedFuzzTestStudy, medfuzz_test, medfuzz_test_study
from .preparing import PREPARED
from .rereading import Again, gone_elsewhere, logged_question, read_again
from .roles import ATTACKER, JUDGE, READER, READER_ALL
from .second_reading import Reader, check_reader, counting, read_by, readings_of
from .single_turn import SingleTurnStudy, single_turn, single_turn_study
from .stick_or_switch import StickOrSwitchStudy, stick_or_switch, stick_or_switch_study
from .study import Study, opening_estimate, reasons, resolved


@dataclass(frozen=True)
class Protocol:
    """A protocol or a preparation as the command line sees it.

    Attributes:
        task: makes the Inspect task; its parameters are the settings.
        study: resolves the same settings without a model.
        generated: settings whose value may be ``generate``, with the preparation that makes it.
    """

    task: Callable[..., Task]
    study: Callable[..., Any]
    generated: Mapping[str, str]


PROTOCOLS: Mapping[str, Protocol] = {
    "followup": Protocol(followup, followup_study, {"contexts": "contexts"}),
    "single-turn": Protocol(single_turn, single_turn_study, {"distractors": "distractors"}),
    "stick-or-switch": Protocol(stick_or_switch, stick_or_switch_study, {}),
    "medfuzz": Protocol(medfuzz, medfuzz_study, {}),
}
"""Protocol by name."""

MEDFUZZ_TEST = Protocol(medfuzz_test, medfuzz_test_study, {})
"""What ``holdfast medfuzz test`` runs on the attacks of ``medfuzz``."""

PREPARATIONS: Mapping[str, Protocol] = {
    "contexts": Protocol(contexts, context_study, {}),
    "distractors": Protocol(distractors, distractor_study, {}),
    "systems": Protocol(systems, label_study, {}),
}
"""Preparation by name."""

__all__ = [
    "ATTACKER",
    "JUDGE",
    "MEDFUZZ_TEST",
    "PREPARATIONS",
    "PREPARED",
    "PROTOCOLS",
    "READER",
    "READER_ALL",
    "Again",
    "ContextStudy",
    "DistractorStudy",
    "Estimate",
    "FollowupStudy",
    "LabelStudy",
    "MedFuzzStudy",
    "MedFuzzTestStudy",
    "Protocol",
    "Reader",
    "SingleTurnStudy",
    "StickOrSwitchStudy",
    "Study",
    "check_reader",
    "context_study",
    "contexts",
    "counting",
    "distractor_study",
    "distractors",
    "followup",
    "followup_study",
    "gone_elsewhere",
    "label_study",
    "logged_question",
    "medfuzz",
    "medfuzz_study",
    "medfuzz_test",
    "medfuzz_test_study",
    "opening_estimate",
    "read_again",
    "read_by",
    "readings_of",
    "reasons",
    "resolved",
    "single_turn",
    "single_turn_study",
    "stick_or_switch",
    "stick_or_switch_study",
    "systems",
]
