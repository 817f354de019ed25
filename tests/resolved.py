"""Studies of the protocols, by their settings."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from holdfast.protocols.followup.context_generation import ContextSettings
from holdfast.protocols.followup.protocol import FollowupSettings
from holdfast.protocols.labelling import LabelSettings
from holdfast.protocols.medfuzz.permutation import MedFuzzTestSettings
from holdfast.protocols.medfuzz.protocol import MedFuzzSettings
from holdfast.protocols.settings import Settings
from holdfast.protocols.single_turn.distractors import DistractorSettings
from holdfast.protocols.single_turn.protocol import SingleTurnSettings
from holdfast.protocols.stick_or_switch.protocol import StickOrSwitchSettings

P = ParamSpec("P")
S = TypeVar("S")


def resolving(settings: Callable[P, Settings[S]]) -> Callable[P, S]:
    return lambda *args, **kwargs: settings(*args, **kwargs).study()


followup_study = resolving(FollowupSettings)
single_turn_study = resolving(SingleTurnSettings)
stick_or_switch_study = resolving(StickOrSwitchSettings)
medfuzz_study = resolving(MedFuzzSettings)
medfuzz_test_study = resolving(MedFuzzTestSettings)
context_study = resolving(ContextSettings)
distractor_study = resolving(DistractorSettings)
label_study = resolving(LabelSettings)
