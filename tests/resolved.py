"""Studies of the protocols, by their settings."""

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.protocols import GENERATIONS, PROTOCOLS, Study

Build = Callable[..., Study]


def _study(name: str, questions: str | None = None, **settings: Any) -> Study:
    if questions is not None:
        settings["questions"] = questions
    return (PROTOCOLS[name] if name in PROTOCOLS else GENERATIONS[name]).study(**settings)


followup_study: Build = partial(_study, "followup")
single_turn_study: Build = partial(_study, "single-turn")
stick_or_switch_study: Build = partial(_study, "stick-or-switch")
medfuzz_study: Build = partial(_study, "medfuzz")
context_study: Build = partial(_study, "contexts")
distractor_study: Build = partial(_study, "distractors")
label_study: Build = partial(_study, "systems")
