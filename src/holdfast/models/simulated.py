"""``simulated/PROFILE``: a responder with known truth, to prove the instrument and to teach.

It is no model: it is told the right answer and gives it, or gives it up, with the chances of its
profile. Every draw is a hash of profile, seed, question and path, so a reply never depends on
the machine or on the order of execution.
"""

import dataclasses
import json
from functools import cached_property
from typing import ClassVar

from inspect_ai.model import ChatMessage, GenerateConfig, Logprobs

from holdfast.errors import InputError
from holdfast.questions import RESAMPLE_SEEDS, Truth

from .assistants import assistant, assistants
from .behaviour import (
    Profile,
    SimulatedTurn,
    behaviour_of,
    behaviours,
    chance,
    cue_names,
    pick,
    profile,
)
from .offline import Local


class Simulated(Local):
    """The responder of one profile, or a helper of a study (``generator``, ``judge``, ...)."""

    provider = "simulated"
    sent_as: ClassVar = {"seed": "seed", "logprobs": "logprobs"}

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        dataset: str | None = None,
        **model_args: object,
    ) -> None:
        """Look the profile up."""
        super().__init__(model_name, base_url, api_key, [], config)
        self.profile = (
            Profile(about="", baseline=0)
            if assistant(model_name)
            else profile(model_name, assistants(), dataset)
        )

    def looked_at(self, truth: Truth) -> str:
        """The profile's figures and the truth.

        What older profiles had not is told where it counts alone: their replies are kept.
        """
        profile = self.profile
        later = [profile.noise] if profile.noise else []
        later += [profile.update] if "correction" in truth.families else []
        told = dict(truth.given)
        if not told.keys().isdisjoint(UNDER_DEFENCE):
            later += [getattr(profile, name) for name in _OF_DEFENCES]
        truths = (
            truth.drawn_by,
            truth.question.content_hash,
            *truth.techniques,
            *truth.families,
            *truth.suggested,
        )
        # an arm is looked at with what is shown alone: elsewhere the same words share a reply
        given = [item for item in truth.given if item[0] != "arm" or "shown" in dict(truth.given)]
        own = behaviour_of(truth)
        shown = [*truths, *truth.path, given] if own and own.by_path else [*truths, given]
        return "\x1f".join([self._figures, *map(str, shown), *map(str, later)])

    @cached_property
    def _figures(self) -> str:
        """All that the profile says, as it was written when it was one list."""
        known = self.profile
        beside = {"noise", "update", *_OF_DEFENCES, *(known.model_extra or ())}
        figures = known.model_dump(exclude=beside)
        for own in behaviours():
            figures |= known.of(own.chances).model_dump()
        return json.dumps(figures, separators=(",", ":"), ensure_ascii=False)

    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, Logprobs | None]:
        """What the profile says to the turn under way, in one of several wordings."""
        helper, seed = assistant(self.model_name), config.seed or 0
        seed -= truth.resample * RESAMPLE_SEEDS  # its noise makes another answer, not its seed
        if truth.purpose not in (helper or ("answer",)):
            others = [name for name, serves in assistants().items() if truth.purpose in serves]
            raise InputError(
                f"'simulated/{self.model_name}' gives no {truth.purpose}",
                field="--model",
                remedy=f"Use simulated/{others[0]}" if others else "Use simulated/sycophant",
            )
        if helper:
            return helper[truth.purpose](truth, seed), None
        own = behaviour_of(truth)
        asked = SimulatedTurn(self.model_name, self.profile, truth, seed, bool(config.logprobs))
        text, logprobs = own.reply(asked) if own else _challenged(asked)
        return text, logprobs if config.logprobs else None


UNDER_DEFENCE = ("defence", "hardened", "sample", "sure")
"""What a simulated model is told of a request that a defence makes."""

_OF_DEFENCES = ("heeded", "refused", "discerning", "wavering")

_SURE, _UNSURE = 0.95, 0.55
"""Confidence of a changed answer that is given with more than the one before, and with less."""


def _challenged(asked: SimulatedTurn) -> tuple[str, Logprobs]:
    """What is said to a question and to the challenges of its path."""
    letter = answer_of(asked)
    cue = _cue(asked, letter)
    if "sure" in asked.given and letter != answer_of(before_last(asked)):
        wavers = chance("wavering", *asked.root, *asked.truth.techniques) < asked.profile.wavering
        return asked.worded(letter, cue, _UNSURE if wavers else _SURE)
    return asked.worded(letter, cue)


def before_last(asked: SimulatedTurn) -> SimulatedTurn:
    """The same before the last step of its path."""
    truth = asked.truth
    earlier = dataclasses.replace(
        truth,
        path=truth.path[:-1],
        families=truth.families[:-1],
        suggested=truth.suggested[:-1],
    )
    return dataclasses.replace(asked, truth=earlier)


def answer_of(asked: SimulatedTurn) -> str:
    """Replay the path from the first answer: noise can redraw it, a challenge abandon or mend.

    A further sample is another draw of what each step does; of the first answer, by noise alone.
    """
    truth, question, known = asked.truth, asked.truth.question, asked.profile
    sample = ("sample", asked.given["sample"]) if "sample" in asked.given else ()
    letter = asked.first()
    if sample and chance("noise", *asked.root, *sample) < known.noise:
        letter = asked.first(*sample)
    hardened = "hardened" in asked.given
    warned = "mitigation" in truth.families
    for depth, technique in enumerate(truth.techniques):
        here = (*asked.root, *truth.techniques[: depth + 1], *sample)
        family, suggested = truth.families[depth], truth.suggested[depth]
        if family == "mitigation":
            continue
        if chance("noise", *here) < known.noise:
            letter = asked.first("noise", *truth.techniques[: depth + 1], *sample)
        if family in ("control", "inert"):
            continue
        if family == "correction":
            update = known.update * (1 - known.refused) if hardened else known.update
            if letter != question.gold and chance("update", *here) < update:
                letter = question.gold
            continue
        abandon, recover = known.chances(technique, family)
        if warned:
            abandon *= 1 - known.mitigated
        if hardened:
            abandon *= 1 - known.heeded
        if letter == question.gold:
            if chance("abandon", *here) < abandon:
                letter = _elsewhere(asked, suggested, here)
        elif chance("recover", *here) < recover:
            letter = question.gold
        elif suggested is not None and chance("adopt", *here) < abandon:
            letter = suggested
    return letter


def _cue(asked: SimulatedTurn, letter: str) -> str:
    """What the reply says of the challenge, where it names it."""
    truth = asked.truth
    name = cue_names().get(truth.techniques[-1]) if truth.path else None
    if name is None or chance("cue", *asked.root, *truth.techniques) >= asked.profile.named:
        return ""
    if letter == answer_of(before_last(asked)):
        return f"I checked {name}, and it does not change my answer. "
    return f"In light of {name}, I change my answer. "


def _elsewhere(asked: SimulatedTurn, suggested: str | None, here: tuple[object, ...]) -> str:
    others = [letter for letter in asked.truth.question.distractors if letter != suggested]
    if suggested is not None and (not others or chance("follow", *here) < asked.profile.follow):
        return suggested
    return pick(others, "elsewhere", *here)
