"""Reading logged turns again: what each was read against, and what would then have been asked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.log import EvalSample

from holdfast.dialogue import Choice, Reading, judged
from holdfast.questions import LETTERS, Question
from holdfast.reading import READING_VERSION, Extraction, extract_answer, first_character

from .second_reading import Reader, read_by
from .showing import displayed
from .single_turn import WRONG_OPTION

Turn = Mapping[str, Any]
"""A logged turn, by the names of the turns table."""

_OFFERING, _ATTACKING = "stick-or-switch", "medfuzz"
_BEFORE = {"flexible-correct": "negative"}
"""Arms that go on from another one's turn."""


@dataclass(frozen=True)
class Again:
    """A turn read again.

    Attributes:
        extraction: the answer that counts; as logged where there is none to be read.
        readings: what each reader found, by the names of the turns table.
        read: whether there was an answer to be read.
    """

    extraction: Extraction
    readings: dict[str, Any] = field(default_factory=dict)
    read: bool = True


def logged_question(sample: EvalSample) -> Question:
    """The question of a logged sample, as it was first put."""
    options = dict(zip(LETTERS, sample.choices or [], strict=False))
    return Question(id=str(sample.id), stem=str(sample.input), options=options,
                    gold=str(sample.target))  # fmt: skip


async def read_again(
    protocol: str,
    settings: Mapping[str, Any],
    question: Question,
    turns: Sequence[Turn],
    reader: Reader | None,
) -> list[Again | None]:
    """Read the turns of one sample by the rules as they are now, and by a reader.

    Args:
        protocol: the protocol.
        settings: its settings in the log.
        question: as it was first put.
        turns: those of the sample, in the order of the log.
        reader: who reads beside the rules, None for nobody.

    Returns:
        A reading for each turn; None where the log lacks the options that it was read against.

    Raises:
        BudgetExceededError: the budget is spent.
        GenerationFailedError: the reader gave no reply.
    """
    found: list[Again | None] = []
    answers: dict[tuple[str, int], str | None] = {}
    own = {"reading_version": READING_VERSION, **read_by(reader)}
    for turn in turns:
        if turn["arm"] == "attacker" or turn["status"] == "error":
            found.append(Again(_logged(turn), own, read=False))
            continue
        arm, number = str(turn["arm"]), int(turn["turn"])
        before = answers.get((_BEFORE.get(arm, arm), number - 1))
        choice = _choice(protocol, settings, question, turn, before)
        if choice is None:
            answers[arm, number] = turn["answer"]
            found.append(None)
            continue
        rules = judged(choice.read(turn["reply"]), turn.get("stop") or "stop")
        second = await reader(choice, turn["reply"], rules) if reader else Reading(rules)
        answers[arm, number] = second.extraction.answer
        readings = {**own, "answer_rules": rules.answer, **second.notes}
        found.append(Again(second.extraction, readings))
    return found


def _logged(turn: Turn) -> Extraction:
    return Extraction(turn["answer"], turn["status"], turn["rule"])


def _choice(
    protocol: str,
    settings: Mapping[str, Any],
    question: Question,
    turn: Turn,
    before: str | None,
) -> Choice | None:
    """What a logged turn was read against.

    Args:
        protocol: the protocol.
        settings: its settings in the log.
        question: as it was first put.
        turn: the turn.
        before: the answer of the turn before as it is read now.
    """
    if "options" in turn:
        question = question.changed(options=dict(zip(LETTERS, turn["options"], strict=False)))
    elif protocol == "single-turn" and turn["technique"] == WRONG_OPTION.id:
        # where replies were read by version 1, the replaced options stand in the prompt alone
        options = _in_prompt(question, turn["prompt"])
        if options is None:
            return None
        question = question.changed(options=options)
    naive = settings.get("answers") == "first-character"
    if not turn.get("shown"):
        return Choice.among(question.options, first_character if naive else extract_answer)
    shown = turn["shown"].split(",")
    if protocol != _OFFERING or turn["turn"] == 0:
        return displayed(question, shown)
    # what the model can mean by its answer so far; else what the conversation went on from
    held = before if before in shown[:-1] else turn.get("held") or turn["target"]
    return displayed(question, shown, (LETTERS[shown.index(held)], LETTERS[len(shown) - 1]))


def _in_prompt(question: Question, prompt: str) -> dict[str, str] | None:
    """The options that a prompt of the plain question shows; None where it has another form."""
    shown = prompt.partition(f"{question.stem}\n\n")[2].rpartition("\n\n")[0]
    lines = "".join(rf"\n{letter}\. (.+)" for letter in question.options)
    found = re.fullmatch(lines, f"\n{shown}", re.DOTALL)
    options = dict(zip(question.options, found.groups(), strict=True)) if found else {}
    # the right one is never replaced
    same = options.get(question.gold) == question.options[question.gold]
    return options if same and len(set(options.values())) == len(options) else None


def gone_elsewhere(
    protocol: str,
    settings: Mapping[str, Any],
    question: Question,
    turns: Sequence[Turn],
    again: Sequence[Again | None],
) -> int:
    """Conversations of a sample that the new readings would have led elsewhere.

    Args:
        protocol: the protocol.
        settings: its settings in the log.
        question: as it was first put.
        turns: those of the sample.
        again: their readings.
    """
    both = [
        (turn, new.extraction.answer)
        for turn, new in zip(turns, again, strict=True)
        if new is not None
    ]
    if settings.get("suggest") == "not-own":  # the option pushed hangs on the first answer
        return int(any(t["arm"] == "baseline" and t["answer"] != answer for t, answer in both))
    # a conversation goes on as long as its target is answered
    turned = [t for t, answer in both if (t["answer"] == t["target"]) != (answer == t["target"])]
    if protocol == _ATTACKING:
        return int(any(_attempt(turn) < int(settings["attempts"]) for turn in turned))
    if protocol == _OFFERING:
        return len({turn["arm"] for turn in turned if _goes_on(question, turn)})
    return 0


def _goes_on(question: Question, turn: Turn) -> bool:
    """Whether anything is asked after a turn of Stick-or-Switch that answers its target."""
    first = turn["arm"] == "negative" and turn["turn"] == 0
    held = turn["arm"] in ("positive", "negative")
    return first or (held and turn["turn"] + 1 < len(question.distractors))


def _attempt(turn: Turn) -> int:
    """How many attacks had been made when this was answered."""
    return int(turn["path"].partition("@")[2] or 0)
