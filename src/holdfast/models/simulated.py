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
from holdfast.questions.truth import RESAMPLE_SEEDS, Truth

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
        facts = dict(truth.given)
        if not facts.keys().isdisjoint(UNDER_DEFENCE):
            later += [getattr(profile, name) for name in _OF_DEFENCES]
        truths = (
            truth.drawn_by,
            truth.question.content_hash,
            *truth.techniques,
            *truth.families,
            *truth.suggested,
        )
        # an arm is looked at with what is shown alone: elsewhere the same words share a reply
        items = [item for item in truth.given if item[0] != "arm" or "shown" in dict(truth.given)]
        behaviour = behaviour_of(truth)
        key = [*truths, *truth.path, items] if behaviour and behaviour.by_path else [*truths, items]
        return "\x1f".join([self._figures, *map(str, key), *map(str, later)])

    @cached_property
    def _figures(self) -> str:
        """All that the profile says, as it was written when it was one list."""
        profile = self.profile
        beside = {"noise", "update", *_OF_DEFENCES, *(profile.model_extra or ())}
        figures = profile.model_dump(exclude=beside)
        for behaviour in behaviours():
            figures |= profile.of(behaviour.chances).model_dump()
        return json.dumps(figures, separators=(",", ":"), ensure_ascii=False)

    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, Logprobs | None]:
        """What the profile says to the turn under way, in one of several wordings."""
        helper, seed = assistant(self.model_name), config.seed or 0
        seed -= truth.resample * RESAMPLE_SEEDS  # its noise makes another answer, not its seed
        if truth.purpose not in (helper or ("answer",)):
            services = [name for name, serves in assistants().items() if truth.purpose in serves]
            raise InputError(
                f"'simulated/{self.model_name}' gives no {truth.purpose}",
                field="--model",
                remedy=f"Use simulated/{services[0]}" if services else "Use simulated/sycophant",
            )
        if helper:
            return helper[truth.purpose](truth, seed), None
        behaviour = behaviour_of(truth)
        turn = SimulatedTurn(self.model_name, self.profile, truth, seed, bool(config.logprobs))
        text, logprobs = behaviour.reply(turn) if behaviour else _answer_challenge(turn)
        return text, logprobs if config.logprobs else None


UNDER_DEFENCE = ("defence", "hardened", "sample", "sure")
"""What a simulated model is told of a request that a defence makes."""

_OF_DEFENCES = ("heeded", "refused", "discerning", "wavering")

_SURE, _UNSURE = 0.95, 0.55
"""Confidence of a changed answer that is given with more than the one before, and with less."""


def _answer_challenge(turn: SimulatedTurn) -> tuple[str, Logprobs]:
    """What is said to a question and to the challenges of its path."""
    letter = answer_of(turn)
    cue = _cue(turn, letter)
    if "sure" in turn.given and letter != answer_of(before_last(turn)):
        wavers = chance("wavering", *turn.root, *turn.truth.techniques) < turn.profile.wavering
        return turn.worded(letter, cue, _UNSURE if wavers else _SURE)
    return turn.worded(letter, cue)


def before_last(turn: SimulatedTurn) -> SimulatedTurn:
    """The same before the last step of its path."""
    truth = turn.truth
    earlier = dataclasses.replace(
        truth,
        path=truth.path[:-1],
        families=truth.families[:-1],
        suggested=truth.suggested[:-1],
    )
    return dataclasses.replace(turn, truth=earlier)


def answer_of(turn: SimulatedTurn) -> str:
    """Replay the path from the first answer: noise can redraw it, a challenge abandon or mend.

    A further sample is another draw of what each step does; of the first answer, by noise alone.
    """
    truth, question, profile = turn.truth, turn.truth.question, turn.profile
    sample = ("sample", turn.given["sample"]) if "sample" in turn.given else ()
    letter = turn.first()
    if sample and chance("noise", *turn.root, *sample) < profile.noise:
        letter = turn.first(*sample)
    is_hardened = "hardened" in turn.given
    is_warned = "mitigation" in truth.families
    for depth, technique in enumerate(truth.techniques):
        draw_key = (*turn.root, *truth.techniques[: depth + 1], *sample)
        family, suggestion = truth.families[depth], truth.suggested[depth]
        if family == "mitigation":
            continue
        if chance("noise", *draw_key) < profile.noise:
            letter = turn.first("noise", *truth.techniques[: depth + 1], *sample)
        if family in ("control", "inert"):
            continue
        if family == "correction":
            update = profile.update * (1 - profile.refused) if is_hardened else profile.update
            if letter != question.gold and chance("update", *draw_key) < update:
                letter = question.gold
            continue
        abandon, recover = profile.chances(technique, family)
        if is_warned:
            abandon *= 1 - profile.mitigated
        if is_hardened:
            abandon *= 1 - profile.heeded
        if letter == question.gold:
            if chance("abandon", *draw_key) < abandon:
                letter = _draw_alternative(turn, suggestion, draw_key)
        elif chance("recover", *draw_key) < recover:
            letter = question.gold
        elif suggestion is not None and chance("adopt", *draw_key) < abandon:
            letter = suggestion
    return letter


def _cue(turn: SimulatedTurn, letter: str) -> str:
    """What the reply says of the challenge, where it names it."""
    truth = turn.truth
    name = cue_names().get(truth.techniques[-1]) if truth.path else None
    if name is None or chance("cue", *turn.root, *truth.techniques) >= turn.profile.named:
        return ""
    if letter == answer_of(before_last(turn)):
        return f"I checked {name}, and it does not change my answer. "
    return f"In light of {name}, I change my answer. "


def _draw_alternative(
    turn: SimulatedTurn, suggestion: str | None, draw_key: tuple[object, ...]
) -> str:
    alternatives = [letter for letter in turn.truth.question.distractors if letter != suggestion]
    if suggestion is not None and (
        not alternatives or chance("follow", *draw_key) < turn.profile.follow
    ):
        return suggestion
    return pick(alternatives, "elsewhere", *draw_key)
