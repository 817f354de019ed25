"""Scripted models for Stick-or-Switch: what each turn offers, and a reply made of it."""

from collections.abc import Callable
from typing import Any

import polars as pl
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, ModelOutput

from holdfast.questions.question import LETTERS
from holdfast.questions.truth import under_test
from tests.scripted import Scripted, put
from tests.tasks import stick_or_switch

State = dict[str, Any]
"""What a simulated model is told of a turn: arm, options shown, the one held, the right one."""


def label(state: State, letter: str) -> str:
    """The letter under which an option is displayed."""
    return LETTERS[state["shown"].index(letter)]


def keeping(state: State) -> str:
    """Chooses the target and never gives it up, not for the right answer either."""
    return f"Answer: {label(state, state['held'] or state['right'])}"


def right(state: State) -> str:
    """Always answers what is right."""
    return f"Answer: {label(state, state['right'])}"


def behaving(reply: Callable[[State], str | ModelOutput]) -> Scripted:
    def answer(_: list[ChatMessage]) -> str | ModelOutput:
        truth = under_test.get()
        assert truth is not None
        return reply(dict(truth.given))

    return Scripted(answer)


def at(arm: str, turn: int, then: str | ModelOutput | Exception) -> Scripted:
    """Keeps every target, but for one turn of one arm, counted from 1; it fails but once."""
    failures = [then] if isinstance(then, Exception) else []

    def reply(state: State) -> str | ModelOutput:
        displayed_options = len(state["shown"])
        if (state["arm"], 1 if state["held"] is None else displayed_options - 1) != (arm, turn):
            return keeping(state)
        if failures:
            raise failures.pop()
        match then:
            case str():
                answer, new = state["held"] or state["right"], state["shown"][-1]
                return then.format(held=label(state, answer), new=label(state, new))
            case Exception():
                return keeping(state)
            case _:
                return then

    return behaving(reply)


PAPER: dict[str, Any] = {"controls": False, "exemplar_answers": "paper"}
"""The study as the source has it."""


def ask(model: Any, *, limit: int | None = None, epochs: int = 1, **settings: Any) -> EvalLog:
    """The source's own study, unless it is told otherwise: no controls, its exemplars."""
    settings = {**PAPER, **settings}
    return put(stick_or_switch(**settings), model, limit=limit, epochs=epochs)


def by_arm(turns: pl.DataFrame) -> dict[tuple[str, int], dict[str, Any]]:
    """One question's turns by arm and turn, counted from 1."""
    return {(row["arm"], row["turn"] + 1): row for row in turns.iter_rows(named=True)}
