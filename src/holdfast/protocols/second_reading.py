"""A language model that reads replies beside the rules: which option does each commit to?"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from inspect_ai.model import GenerateConfig, Model

from holdfast.challenges import excerpt, fence, fill_marked, json_object, option_lines
from holdfast.dialogue import Choice, Conversation, Reading
from holdfast.errors import InputError
from holdfast.files import packaged
from holdfast.questions import Question
from holdfast.reading import Extraction, without_reasoning

from .study import READER, READER_ALL, Estimate, bound

LEFT = ("none", "ambiguous")
"""Statuses with which the rules leave a reply to the reader."""

RULE = "reader"
"""``rule`` of an answer that the reader has read."""


@dataclass(frozen=True)
class Reader:
    """A reader of the replies to one question.

    Attributes:
        model: who reads.
        every: whether it reads every reply, not only those that the rules leave.
        question: as it was first put; the reader is not shown it.
        config: settings of generation that no reading hangs on.
    """

    model: Model
    every: bool
    question: Question
    config: GenerateConfig = field(default_factory=GenerateConfig)

    async def __call__(self, choice: Choice, reply: str, rules: Extraction) -> Reading:
        """What counts of a reply: the reader's answer where it is asked and gives one."""
        said = without_reasoning(reply)
        if not self._is_asked(said, rules):
            return Reading(rules)
        # replicates of a reply are the same to read, and so are replies to the question put anew
        config = self.config.merge(GenerateConfig(temperature=0.0))
        chat = Conversation(self.model, self.question, config=config, purpose="reading")
        output = await chat.say(
            reading_prompt(choice.options, choice.decision, said),
            reply=said,
            options=tuple(choice.options.items()),
            decision=choice.decision,
        )
        found = read_reading(without_reasoning(output.completion), choice.options)
        answer = None if found is None or found == UNREADABLE else choice.letters[found]
        status = "parsed" if answer else found or "none"
        notes = {"answer_reader": answer, "reader_status": status}
        return Reading(counting(rules, answer, status, every=self.every), notes)

    def _is_asked(self, said: str, rules: Extraction) -> bool:
        if rules.status == "error" or rules.rule == "content-filter" or not said.strip():
            return False
        return self.every or rules.status in LEFT


def counting(rules: Extraction, answer: str | None, status: str, *, every: bool) -> Extraction:
    """Of two readings of a reply the one that counts."""
    if answer is not None and (every or rules.answer is None):
        return Extraction(answer, "parsed", RULE)
    if every and status == "none" and rules.answer is not None:
        return Extraction(None, "none", RULE)
    return rules


def reader_of(question: Question, tested: Model) -> Reader | None:
    """The reader that is bound; None without one."""
    some, every = bound(READER), bound(READER_ALL)
    model = every or some
    if model is None:
        return None
    if some and every:
        what = f"'{READER}' and '{READER_ALL}' both have a model"
        raise InputError(what, field="--model-role", remedy="Give one of them")
    check_reader(str(model), [str(tested)])
    return Reader(model, every is not None, question)


def check_reader(reader: str, tested: list[str]) -> None:
    """Refuse a reader that would read its own replies.

    Raises:
        InputError: it is among the models under test.
    """
    if reader in tested:
        what = f"'{reader}' is also the model under test"
        raise InputError(what, field="--reader", remedy="Give another model as the reader")


def read_by(reader: Reader | None) -> dict[str, Any]:
    """Who reads beside the rules, by the names of the turns table; nothing without a reader."""
    if reader is None:
        return {}
    return {
        "reader": str(reader.model),
        "reader_all": reader.every,
        "reader_prompt": reading_version(),
    }


def readings_of(replies: Estimate, reply_tokens: int) -> dict[str, Estimate]:
    """What the readings of so many replies take, by role; without ``reader-all`` at the most."""
    n = replies.generations
    every = Estimate(n, n * (500 + reply_tokens), n * 10, replies.least)
    return {READER: replace(every, fewest=0), READER_ALL: every}


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
    shown = {
        letter: f"{text} ({wording[marks[letter]]})" if letter in marks else text
        for letter, text in options.items()
    }
    texts = {"options": option_lines(shown), "reply": excerpt(reply)}
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
