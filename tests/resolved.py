"""Studies of the protocols, by their settings."""

from collections.abc import Callable
from functools import partial

from holdfast.protocols import Study
from holdfast.protocols.registry import GENERATIONS, PROTOCOLS

Build = Callable[..., Study]


def _study(name: str, *args: object, **kwargs: object) -> Study:
    protocol = PROTOCOLS[name] if name in PROTOCOLS else GENERATIONS[name]
    named = {"questions": args[0]} if args else {}
    return protocol.study(**named, **kwargs)


followup_study: Build = partial(_study, "followup")
single_turn_study: Build = partial(_study, "single-turn")
stick_or_switch_study: Build = partial(_study, "stick-or-switch")
medfuzz_study: Build = partial(_study, "medfuzz")
context_study: Build = partial(_study, "contexts")
distractor_study: Build = partial(_study, "distractors")
label_study: Build = partial(_study, "systems")
