"""Studies of the protocols, by their settings."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from holdfast.dialogue.conversation import TESTED_ARM
from holdfast.protocols.installed import GENERATIONS, PROTOCOLS
from holdfast.protocols.protocol import Study
from holdfast.protocols.settings import signature
from holdfast.questions.question import Question

Build = Callable[..., Study]


def _study(name: str, *args: Any, epochs: int | None = None, **settings: Any) -> Study:
    protocol = PROTOCOLS[name] if name in PROTOCOLS else GENERATIONS[name]
    arguments = signature(protocol.settings).bind(*args, **settings).arguments
    return protocol.study(epochs=epochs, **arguments)


followup_study: Build = partial(_study, "followup")
single_turn_study: Build = partial(_study, "single-turn")
stick_or_switch_study: Build = partial(_study, "stick-or-switch")
medfuzz_study: Build = partial(_study, "medfuzz")
context_study: Build = partial(_study, "contexts")
distractor_study: Build = partial(_study, "distractors")
label_study: Build = partial(_study, "labels")


def bounds(
    study: Study, limit: int | None = None, role: str = TESTED_ARM, roles: Collection[str] = ()
) -> list[tuple[int, int]]:
    """By question, how many requests to a role it takes at the least and at the most."""
    explorer = study.explorer({*roles, *({role} - {TESTED_ARM})})
    plans = [explorer.plan(question) for question in study.questions.first(limit).questions]
    return [(plan.fewest_calls.get(role, 0), plan.most_calls.get(role, 0)) for plan in plans]


def counted(
    study: Study, limit: int | None = None, role: str = TESTED_ARM, roles: Collection[str] = ()
) -> list[int]:
    """By question, how many requests to a role it takes, whatever is answered."""
    limits = bounds(study, limit, role, roles)
    assert all(fewest == maximum for fewest, maximum in limits), limits
    return [maximum for _, maximum in limits]


def skipped(study: Study, question: Question) -> Mapping[str, str]:
    """Paths that cannot be asked of a question, with the reason."""
    return study.explorer().plan(question).skipped_paths
