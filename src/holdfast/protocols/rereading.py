"""Reading logged turns again: what each was read against, and what would then have been asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.log import EvalSample

from holdfast.dialogue import HANDED_OVER, SETTLED, Choice, Reading, judged
from holdfast.questions import LETTERS, Question
from holdfast.reading import READING_VERSION, Extraction, extract_answer, first_character
from holdfast.results import turns_of

from .protocol import Logged, Rereading
from .registry import PROTOCOLS, TESTS
from .second_reading import Reader, read_by
from .showing import displayed


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
    options, gold = dict(zip(LETTERS, sample.choices or [], strict=False)), str(sample.target)
    return Question(id=str(sample.id), stem=str(sample.input), options=options, gold=gold)


async def read_again(
    protocol: str,
    settings: Mapping[str, Any],
    question: Question,
    turns: Sequence[Logged],
    reader: Reader | None,
) -> list[Again | None]:
    """Read the turns of one sample by the rules as they are now, and by a reader.

    Returns:
        A reading for each turn; None where the log lacks the options that it was read against.
    """
    found: list[Again | None] = []
    answers: dict[tuple[str, int], str | None] = {}
    own = {"reading_version": READING_VERSION, **read_by(reader)}
    own_turns = turns_of(protocol)
    for turn in turns:
        settled = turn["rule"] in (HANDED_OVER, SETTLED)  # a defence knows what it has said
        if turn["arm"] in own_turns.helpers or turn["status"] == "error" or settled:
            answers[str(turn["arm"]), int(turn["turn"])] = turn["answer"]
            logged = Extraction(turn["answer"], turn["status"], turn["rule"])
            found.append(Again(logged, own, read=False))
            continue
        arm, number = str(turn["arm"]), int(turn["turn"])
        other = answers.get((own_turns.continues.get(arm, arm), number - 1))
        before = answers.get((arm, number - 1), other)
        choice = _choice(_own(protocol), settings, question, turn, before)
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


def _choice(
    own: Rereading,
    settings: Mapping[str, Any],
    question: Question,
    turn: Logged,
    before: str | None,
) -> Choice | None:
    """What a logged turn was read against."""
    if "options" in turn:
        question = question.changed(options=dict(zip(LETTERS, turn["options"], strict=False)))
    elif own.put and (found := own.put(question, turn)) is not question:
        if found is None:
            return None
        question = found
    naive = settings.get("answers") == "first-character"
    if not turn.get("shown"):
        return Choice.among(question.options, first_character if naive else extract_answer)
    if own.choice:
        return own.choice(settings, question, turn, before)
    return displayed(question, turn["shown"].split(","))


def _own(protocol: str) -> Rereading:
    """What is the protocol's own, nothing where it is not known."""
    known = PROTOCOLS if protocol in PROTOCOLS else TESTS
    return (known[protocol].rereading if protocol in known else None) or Rereading()


def gone_elsewhere(
    protocol: str,
    settings: Mapping[str, Any],
    question: Question,
    turns: Sequence[Logged],
    again: Sequence[Again | None],
) -> int:
    """Conversations of a sample that the new readings would have led elsewhere."""
    pairs = zip(turns, again, strict=True)
    both = [(turn, new.extraction.answer) for turn, new in pairs if new is not None]
    if settings.get("suggest") == "not-own":  # the option pushed hangs on the first answer
        return int(any(t["arm"] == "baseline" and t["answer"] != answer for t, answer in both))
    # a conversation goes on as long as its target is answered
    turned = [t for t, answer in both if (t["answer"] == t["target"]) != (answer == t["target"])]
    elsewhere = _own(protocol).elsewhere
    return elsewhere(settings, question, turned) if elsewhere else 0
