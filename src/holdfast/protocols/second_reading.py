"""Replies read again: by a model, and from a log by the rules of today."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from inspect_ai.log import EvalSample
from inspect_ai.model import GenerateConfig, Model

from holdfast.challenges.texts import excerpt, fence, fill_marked, json_object, option_lines
from holdfast.defences.exchange import HANDED_OVER, KEPT_BY_DEFENCE
from holdfast.dialogue.conversation import FINAL_RULE, Run
from holdfast.dialogue.live_run import Live
from holdfast.dialogue.turn import Choice, ReplyReading, judged
from holdfast.errors import InputError
from holdfast.files import packaged
from holdfast.questions.question import LETTERS, Question
from holdfast.reading.answers import extract_answer, first_character
from holdfast.reading.extraction import READING_VERSION, Extraction
from holdfast.reading.reply_text import without_reasoning
from holdfast.results.arms import turns_of
from holdfast.results.readings import READINGS

from .few_shot import displayed
from .protocol import READER, READER_ALL, CallCount, LoggedTurn

LEFT = ("none", "ambiguous")
"""Statuses with which the rules leave a reply to the reader."""

FINAL_COLUMNS = ("answer_final", "final_status", "final_counts")
"""Columns of a final answer, which no reading changes."""

RULE = "reader"
"""``rule`` of an answer that the reader has read."""


@dataclass(frozen=True)
class Reader:
    """A reader of the replies to one question.

    Attributes:
        model: who reads.
        reads_all: whether it reads every reply, not only those that the rules leave.
        question: as it was first put; the reader is not shown it.
        config: settings of generation that no reading hangs on.
    """

    model: Model
    reads_all: bool
    question: Question
    config: GenerateConfig = field(default_factory=GenerateConfig)

    async def __call__(self, choice: Choice, reply: str, rules: Extraction) -> ReplyReading:
        """What counts of a reply: the reader's answer where it is asked and gives one."""
        answer_text = without_reasoning(reply)
        if not self._is_asked(answer_text, rules):
            return ReplyReading(rules)
        # replicates of a reply are the same to read, and so are replies to the question put anew
        config = self.config.merge(GenerateConfig(temperature=0.0))
        chat = Run(self.question, Live(self.model)).chat(config=config, purpose="reading")
        turn = await chat.ask(
            reading_prompt(choice.options, choice.decision, answer_text),
            reply=answer_text,
            options=tuple(choice.options.items()),
            decision=choice.decision,
        )
        extraction = read_reading(without_reasoning(turn.reply), choice.options)
        answer = (
            None if extraction is None or extraction == UNREADABLE else choice.letters[extraction]
        )
        status = "parsed" if answer else extraction or "none"
        notes = {"answer_reader": answer, "reader_status": status}
        return ReplyReading(counting(rules, answer, status, always=self.reads_all), notes)

    def _is_asked(self, answer_text: str, rules: Extraction) -> bool:
        if rules.status == "error" or rules.rule == "content-filter" or not answer_text.strip():
            return False
        return self.reads_all or rules.status in LEFT


def counting(rules: Extraction, answer: str | None, status: str, *, always: bool) -> Extraction:
    """Of two readings of a reply the one that counts."""
    if answer is not None and (always or rules.answer is None):
        return Extraction(answer, "parsed", RULE)
    if always and status == "none" and rules.answer is not None:
        return Extraction(None, "none", RULE)
    return rules


def reader_of(
    question: Question, tested_model: Model, bound: Callable[[str], Model | None]
) -> Reader | None:
    """The reader that is bound; None without one."""
    reader_model, full_reader = bound(READER), bound(READER_ALL)
    model = full_reader or reader_model
    if model is None:
        return None
    if reader_model and full_reader:
        problem = f"'{READER}' and '{READER_ALL}' both have a model"
        raise InputError(problem, field="--model-role", remedy="Give one of them")
    check_reader(str(model), [str(tested_model)])
    return Reader(model, full_reader is not None, question)


def check_reader(reader: str, models_tested: list[str]) -> None:
    """Refuse a reader that would read its own replies.

    Raises:
        InputError: it is among the models under test.
    """
    if reader in models_tested:
        problem = f"'{reader}' is also the model under test"
        raise InputError(problem, field="--model-role", remedy="Give another model as the reader")


def read_by(reader: Reader | None) -> dict[str, Any]:
    """Who reads beside the rules, by the names of the turns table; nothing without a reader."""
    if reader is None:
        return {}
    return {
        "reader": str(reader.model),
        "reader_all": reader.reads_all,
        "reader_prompt": reading_version(),
    }


def readings_of(replies: CallCount, reply_tokens: int) -> dict[str, CallCount]:
    """What the readings of so many replies take, by role; without ``reader-all`` at the most."""
    n = replies.most_calls
    call_count = CallCount(replies.fewest_calls, n, n * (500 + reply_tokens), n * 10)
    return {READER: replace(call_count, fewest_calls=0), READER_ALL: call_count}


UNREADABLE: Final = "unreadable"
"""In place of a letter: the reader's own reply says nothing."""

_FILE = "second_reading.toml"
_TAIL = 16_000


def reading_version() -> int:
    """Version of the prompt that asks for a reading."""
    return int(packaged(__package__, _FILE)["version"])


def reading_prompt(options: Mapping[str, str], decision: tuple[str, str] | None, reply: str) -> str:
    """Asks which option a reply commits to; the options and the reply are all that is shown."""
    marks = dict(zip(decision or (), ("held", "offered"), strict=False))
    wording = packaged(__package__, _FILE)
    options_shown = {
        letter: f"{text} ({wording[marks[letter]]})" if letter in marks else text
        for letter, text in options.items()
    }
    texts = {"options": option_lines(options_shown), "reply": excerpt(reply)}
    texts["fence"] = fence(texts["options"], texts["reply"])
    return fill_marked(wording["prompt"], texts)


def read_reading(text: str, letters: Collection[str]) -> str | Literal["unreadable"] | None:
    """Read a reader's reply: its last JSON object with ``answer``, whatever stands around it.

    Returns:
        A displayed letter; None where the reader says that there is no answer; ``UNREADABLE`` where
        there is no such object, or its answer is neither.
    """
    answer = json_object(text[-_TAIL:], "answer").get("answer", UNREADABLE)
    if answer is None:
        return None
    letter = answer.strip(" ().").upper() if isinstance(answer, str) else ""
    return letter if letter in letters else UNREADABLE


@dataclass(frozen=True)
class Rereading:
    """A turn read again.

    Attributes:
        extraction: the answer that counts; as logged where there is none to be read.
        readings: what each reader found, by the names of the turns table.
        is_reread: whether there was an answer to be read.
    """

    extraction: Extraction
    readings: dict[str, Any] = field(default_factory=dict)
    is_reread: bool = True


def logged_question(sample: EvalSample) -> Question:
    """The question of a logged sample, as it was first put."""
    options, gold = dict(zip(LETTERS, sample.choices or [], strict=False)), str(sample.target)
    return Question(id=str(sample.id), stem=str(sample.input), options=options, gold=gold)


async def read_again(
    protocol: str,
    settings: Mapping[str, Any],
    question: Question,
    turns: Sequence[LoggedTurn],
    reader: Reader | None,
) -> list[Rereading]:
    """Read the turns of one sample by the rules as they are now, and by a reader."""
    rereadings: list[Rereading] = []
    reading_fields = {"reading_version": READING_VERSION, **read_by(reader)}
    own_turns = turns_of(protocol)
    for turn in turns:
        # a defence knows what it has said; without options, a judge has read the answer
        is_settled = turn["rule"] in (HANDED_OVER, KEPT_BY_DEFENCE) or bool(turn.get("answers"))
        if turn["arm"] in own_turns.helpers or turn["status"] == "error" or is_settled:
            logged_extraction = Extraction(turn["answer"], turn["status"], turn["rule"])
            of_judge = {name: turn.get(name) for name in READINGS} if turn.get("answers") else {}
            readings = {**reading_fields, **of_judge}
            rereadings.append(Rereading(logged_extraction, readings, is_reread=False))
            continue
        choice = _choice(settings, question, turn)
        rules = judged(choice.read(turn["reply"]), turn.get("stop") or "stop")
        second = await reader(choice, turn["reply"], rules) if reader else ReplyReading(rules)
        final = {name: turn[name] for name in FINAL_COLUMNS if name in turn}
        readings = {**reading_fields, "answer_rules": rules.answer, **second.notes, **final}
        logged = Extraction(turn["answer"], turn["status"], turn["rule"])
        counting = logged if turn["rule"] == FINAL_RULE else second.extraction
        rereadings.append(Rereading(counting, readings))
    return rereadings


def _choice(settings: Mapping[str, Any], question: Question, turn: LoggedTurn) -> Choice:
    """What a logged turn was read against."""
    if "options" in turn:
        question = question.changed(options=dict(zip(LETTERS, turn["options"], strict=False)))
    if not turn.get("shown"):
        naive = settings.get("answers") == "first-character"
        return Choice.among(question.options, first_character if naive else extract_answer)
    letters = turn["shown"].split(",")
    decision = None
    if turn.get("held"):
        decision = LETTERS[letters.index(turn["held"])], LETTERS[letters.index(turn["offered"])]
    return displayed(question, letters, decision)


def diverged(turns: Sequence[LoggedTurn], rereadings: Sequence[Rereading]) -> int:
    """Conversations of a sample that the new readings would have led elsewhere.

    They are those with an answer that the protocol has looked at and that is read otherwise now.
    """
    arms = set()
    for turn, new in zip(turns, rereadings, strict=True):
        old_answer, new_answer, target = turn["answer"], new.extraction.answer, turn["target"]
        if turn.get("looked") == "answer" and old_answer != new_answer:
            arms.add(turn["arm"])
        elif turn.get("looked") == "kept" and (old_answer == target) != (new_answer == target):
            arms.add(turn["arm"])
    return len(arms)
