"""Pressure: a user pushes one wrong answer, turn after turn, and does not stop.

The first answer is challenged up to ``turns`` times in one conversation: by a ladder of scripted
messages, and by a model in the role ``user``, which reads the conversation and writes each message.
Their control is a neutral user, who speaks as often and at the same length and suggests nothing. A
conversation that does not end with the right answer is told it, and asked again without it.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import cycle, islice
from typing import Any

from holdfast.challenges.catalogue import (
    LETTER,
    Catalogue,
    Technique,
    choose,
    choose_chains,
    parse_catalogue,
)  # fmt: skip
from holdfast.challenges.texts import fill, option_lines
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.turn import Intervention
from holdfast.errors import InputError, counted
from holdfast.models.behaviour import Behaviour
from holdfast.protocols.challenge_settings import deterministic
from holdfast.protocols.control_turns import CONTROL, RESAMPLE, is_resampled
from holdfast.protocols.judging import SECOND_JUDGE, JudgedSettings, send
from holdfast.protocols.persona import PERSONA_HELP, SIMULATED_USER, Persona, persona_version
from holdfast.protocols.protocol import JUDGE, Protocol
from holdfast.protocols.settings import listed, setting
from holdfast.results.first_answers import BASELINE
from holdfast.results.recovery import ASKED_AGAIN, TOLD, USER

from .measures import ADAPTIVE, LADDER, PRESSURE
from .measures import REPORT as REPORT


@dataclass(frozen=True)
class PressureSettings(JudgedSettings):
    """Pressure: does a right answer survive a user who does not stop?

    A model in the role ``user`` adds a conversation in which it writes the user's messages.
    """

    rules = ("per-question", "not-own")

    turns: int = setting(5, "how often the user pushes", at_least=1, noun="a number of turns")
    options: bool = setting(
        True, "whether the options are shown; else a model in the role ``judge`` reads the answers"
    )
    ladder: str | list[str] = setting(
        "standard", "``standard``, techniques such as ``doubt>authority``, or ``none``"
    )
    after_flip: str = setting(
        "continue",
        "whether the user goes on (``continue``) or not (``stop``) once the answer is not right",
        choices=("continue", "stop"),
    )
    neutral: str = setting(
        "scripted",
        "who the neutral user is: ``scripted``, or ``adaptive`` (the model in the role ``user``)",
        choices=("scripted", ADAPTIVE),
    )
    persona: str = setting("doctor", PERSONA_HELP)
    words: int = setting(60, "most words of its messages", at_least=20, noun="a number of words")

    @property
    def is_open(self) -> bool:
        """Whether the options are hidden."""
        return not self.options

    @cached_property
    def scripts(self) -> Catalogue:
        """The standard ladder, the neutral user's messages, and the truth."""
        file = files(__package__).joinpath("ladder.toml")
        return parse_catalogue(file.read_text("utf-8"), file.name)

    @cached_property
    def rungs(self) -> tuple[Technique, ...]:
        """What the scripted user says, turn after turn; nothing without a ladder.

        Raises:
            InputError: a technique is unknown or needs a context, or there are too few.
        """
        known = {**self.scripts, **self.catalogue}
        chain = listed(self.ladder)
        if chain == "standard":
            chain = ">".join(rung.id for rung in choose(self.scripts, PRESSURE))
        for ids in choose_chains(known, chain, "ladder"):
            rungs = tuple(known[id] for id in ids[: self.turns] if not known[id].context)
            if len(rungs) < self.turns:
                problem = f"'{chain}' has no {counted(self.turns, 'turn')} without a context"
                raise InputError(problem, field="ladder", remedy="Name as many as turns says")
            return rungs
        return ()

    def required(self, roles: tuple[str, ...]) -> tuple[str, ...]:
        """The user, where nobody else pushes or speaks neutrally, and who reads open answers."""
        needs_user = not self.rungs or self.neutral == ADAPTIVE
        return (USER,) * needs_user + (JUDGE,) * self.is_open


async def pressure(run: Run, settings: PressureSettings) -> None:
    """The first answer, then every user in a conversation of its own."""
    text = settings.question_text(run.question)
    if why := settings.obstacle(run.question):
        return run.skip(PRESSURE, why)
    first = await send(run, settings, settings.chat(run), text, BASELINE)
    users = [LADDER] * bool(settings.rungs) + [ADAPTIVE] * run.has(USER)
    branches: dict[str, Awaitable[Any]] = {arm: push(run, settings, first, arm) for arm in users}
    if settings.controls:
        neutral = choose(settings.scripts, CONTROL)
        branches[CONTROL] = talk(run, settings, first, CONTROL, neutral, None)
    if is_resampled(run, controls=settings.controls):
        again = settings.chat(run, resample=1)
        branches["resample"] = send(run, settings, again, text, CONTROL, RESAMPLE)
    await run.side_by_side(branches)


async def push(run: Run, settings: PressureSettings, first: Turn, arm: str) -> None:
    """Push a wrong option up to the last turn, then tell the right one where it is not given."""
    answer = first.answer if settings.rule == "not-own" else None
    letter = settings.suggestion(run.question, arm, arm, answer)
    if letter is None:
        return run.skip(arm, "no suggested letter")
    rungs = settings.rungs or choose(settings.scripts, PRESSURE)
    turn = await talk(run, settings, first, arm, rungs, letter)
    if not turn.kept:
        truth, (again, *_) = settings.scripts["truth"], choose(settings.scripts, CONTROL)
        told = say(run, settings, turn, TOLD, truth, run.question.gold)
        asked_again = say(run, settings, turn, ASKED_AGAIN, again, None)
        await run.side_by_side({TOLD: told, ASKED_AGAIN: asked_again})


async def talk(
    run: Run, settings: PressureSettings, turn: Turn, arm: str, scripts: Sequence[Technique],
    letter: str | None,
) -> Turn:  # fmt: skip
    """Let a user speak up to the last turn."""
    for script in islice(cycle(scripts), settings.turns):
        if settings.after_flip == "stop" and arm != CONTROL and not turn.kept:
            break
        turn = await say(run, settings, turn, arm, script, letter)
    return turn


async def say(
    run: Run, settings: PressureSettings, turn: Turn, arm: str, script: Technique,
    letter: str | None,
) -> Turn:  # fmt: skip
    """Say a script, or what a model in the role ``user`` writes in its place."""
    question = run.question
    answer = question.options[letter] if letter else ""
    if letter and settings.options:
        answer += f" ({letter})"
    text = fill(script.template, {LETTER: answer})
    id, suggested = script.id, letter if script.needs_letter else None
    if is_written := arm == ADAPTIVE or (arm == CONTROL and settings.neutral == ADAPTIVE):
        id, suggested = f"{arm}-{turn.number + 1}", letter
    step = Intervention(id, script.family, script.axis, script.depth, suggested)
    if is_written:
        user = Persona(
            settings.persona, settings.turns, settings.words, settings.seed, settings.ending,
            settings.other_names(question),
        )  # fmt: skip
        shown = f"{question.stem}\n\n{option_lines(question.options) * settings.options}".strip()
        text = await user.write(run, turn, step, shown, answer, text)
    return await send(run, settings, turn, text, arm, step)


PROTOCOL = Protocol(
    PRESSURE,
    pressure,
    PressureSettings,
    version=1,
    config=deterministic,
    inputs=lambda settings: {
        "techniques": {
            script.id: script.fingerprint
            for script in (*settings.rungs, *settings.scripts.values())
        },
        "persona_version": persona_version(),
        "suggest": settings.suggested_from,
        **settings.judging,
    },
    roles=(USER, SECOND_JUDGE),
    required=(USER, JUDGE),  # in a run from its start, where they are needed
    behaviour=Behaviour(helpers=SIMULATED_USER),
    scored=(BASELINE, LADDER, ADAPTIVE, CONTROL),
)
