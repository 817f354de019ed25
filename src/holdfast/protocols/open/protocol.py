"""Open answers: questions without their options, challenged by the techniques in words."""

import re
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any

from holdfast.challenges.catalogue import LETTER, MISLEADING, SUPPORTING, Technique
from holdfast.challenges.texts import fill
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.turn import Intervention
from holdfast.protocols.challenge_settings import TechniqueSettings, deterministic, obstacle
from holdfast.protocols.control_turns import CONTROL, RESAMPLE, is_resampled
from holdfast.protocols.judging import (
    OPEN_BEHAVIOUR,
    SECOND_JUDGE,
    JudgedSettings,
    send,
    wording,
)  # fmt: skip
from holdfast.protocols.persona import PERSONA_HELP, SIMULATED_USER, Persona, persona_version
from holdfast.protocols.protocol import JUDGE, Protocol
from holdfast.protocols.settings import setting
from holdfast.results.first_answers import BASELINE
from holdfast.results.recovery import USER

from .measures import OPEN
from .measures import REPORT as REPORT


@dataclass(frozen=True)
class OpenSettings(TechniqueSettings, JudgedSettings):
    """Open answers: does an answer in the model's own words survive a challenge?

    A model in the role ``judge`` says what was answered. One in the role ``user`` adds a challenge
    that it writes.
    """

    persona: str = setting("doctor", PERSONA_HELP)
    words: int = setting(60, "most words of its message", at_least=20, noun="a number of words")


async def open_answers(run: Run, settings: OpenSettings) -> None:
    """The first answer, then every challenge, control and correction on top of it."""
    text = settings.question_text(run.question)
    if why := settings.obstacle(run.question):
        return run.skip(OPEN, why)
    first = await send(run, settings, settings.chat(run), text, BASELINE)
    branches: dict[str, Awaitable[Any]] = {}
    for technique in settings.chosen_techniques:
        branches[technique.id] = challenge(run, settings, first, technique)
    for technique in settings.corrected:
        branches[f"correction:{technique.id}"] = correct(run, settings, first, technique)
    if run.has(USER):
        branches[USER] = push(run, settings, first)
    if settings.controls:
        restate = Intervention("restate", CONTROL)
        branches["restate"] = send(run, settings, first, wording()["restate"], CONTROL, restate)
    if is_resampled(run, controls=settings.controls):
        again = settings.chat(run, resample=1)
        branches["resample"] = send(run, settings, again, text, CONTROL, RESAMPLE)
    await run.side_by_side(branches)


async def challenge(run: Run, settings: OpenSettings, first: Turn, technique: Technique) -> None:
    """Put a technique, with the suggested answer in words."""
    context = settings.loaded_contexts.of(run.question)
    why = obstacle(context, technique)
    if OF_OPTIONS.search(technique.template):
        why = "speaks of options, which are not shown"
    letter = suggest(settings, first, technique.id) if technique.needs_letter else None
    if technique.needs_letter and letter is None:
        why = "no suggested answer"
    if why:
        return run.skip(technique.id, why)
    values = context.at("") | {LETTER: f'"{run.question.options[letter]}"' if letter else ""}
    suggested = context.second_best if technique.context == MISLEADING else letter
    step = step_of(technique, suggested)
    await send(run, settings, first, fill(technique.template, values), "followup", step)


async def correct(run: Run, settings: OpenSettings, first: Turn, technique: Technique) -> None:
    """Put a technique for the right answer, where the first one is wrong."""
    question, context = run.question, settings.loaded_contexts.of(run.question)
    if technique.context and (why := context.obstacle(SUPPORTING)):
        return run.skip(f"correction:{technique.id}", why)
    if first.answer in (None, question.gold):
        return
    values = context.at("") | {LETTER: f'"{question.options[question.gold]}"'}
    values[MISLEADING] = values.get(SUPPORTING, "")
    step = replace(step_of(technique, question.gold), family="correction", purpose="correction")
    text = fill(technique.correction or technique.template, values)
    await send(run, settings, first, text, "correction", step)


async def push(run: Run, settings: OpenSettings, first: Turn) -> None:
    """Put a challenge that a model in the role ``user`` writes."""
    letter = suggest(settings, first, USER)
    if letter is None:
        return run.skip(USER, "no suggested answer")
    answer = run.question.options[letter]
    step = Intervention(USER, "pressure", "direct", "deep", letter)
    script = fill(settings.catalogue["authority-prior"].template, {LETTER: f'"{answer}"'})
    names = settings.other_names(run.question)
    user = Persona(settings.persona, 1, settings.words, settings.seed, settings.ending, names)
    text = await user.write(run, first, step, run.question.stem, answer, script)
    await send(run, settings, first, text, "followup", step)


def suggest(settings: OpenSettings, first: Turn, path: str) -> str | None:
    """The wrong answer to suggest; None where none is known."""
    question = first.question
    answer = first.answer if settings.rule == "not-own" else None
    second_best = settings.loaded_contexts.of(question).second_best
    return settings.suggestion(question, path, path, answer, second_best)


def step_of(technique: Technique, suggested: str | None) -> Intervention:
    """The step of a technique."""
    return Intervention(technique.id, technique.family, technique.axis, technique.depth, suggested)


OF_OPTIONS = re.compile(r"\boptions?\b|\(A, B", re.IGNORECASE)
"""In a template that cannot be put without options."""

PROTOCOL = Protocol(
    OPEN,
    open_answers,
    OpenSettings,
    version=1,
    config=deterministic,
    inputs=lambda settings: {
        "contexts": settings.loaded_contexts.fingerprints,
        "contexts_from": settings.loaded_contexts.name,
        "techniques": {item.id: item.fingerprint for item in settings.chosen_techniques},
        "persona_version": persona_version(),
        "suggest": settings.suggested_from,
        **settings.judging,
    },
    roles=(USER, SECOND_JUDGE),
    required=(JUDGE,),
    generated={"contexts": "contexts"},
    behaviour=replace(OPEN_BEHAVIOUR, helpers={**OPEN_BEHAVIOUR.helpers, **SIMULATED_USER}),
)
