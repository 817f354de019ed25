"""The USMLE system of each question, by a classifier (MedQA-Followup, appendix D.2, Table 5)."""

import re
from dataclasses import dataclass

from inspect_ai import Task, task

from holdfast.challenges import Fault, fill, option_lines
from holdfast.dialogue import Conversation
from holdfast.files import packaged
from holdfast.questions import SYSTEMS, Question, QuestionSet

from .preparing import Preparation, Row, obtain, preparation
from .protocol import Protocol, settings_of
from .settings import QuestionSettings, setting
from .study import Estimate, tested


@dataclass(frozen=True)
class LabelStudy(Preparation):
    """Labelling with every setting resolved."""

    questions: QuestionSet
    seed: int

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """One generation where the first reply can be read."""
        return Estimate(1, len(system_label_prompt(question)) // 4, min(reply_tokens, 10))


@dataclass(frozen=True)
class LabelSettings(QuestionSettings[LabelStudy]):
    """The USMLE system of each question, by the model as classifier."""

    seed: int = setting(42, "seed of the model's sampling")

    def study(self) -> LabelStudy:
        """What will be asked."""
        return LabelStudy(self.asked(), self.seed)


@task
@settings_of(LabelSettings)
def systems(study: LabelStudy) -> Task:
    """The USMLE system of each question, by the model as classifier."""

    async def rows(question: Question) -> list[Row]:
        chat = Conversation(tested(), question, purpose="label")
        found = await obtain(chat, system_label_prompt(question), read_system)
        label = {"missing": found.kind} if isinstance(found, Fault) else {"system": found}
        return [{"question": question.id, "content_hash": question.content_hash, **label}]

    return preparation("systems", study.questions, rows, seed=study.seed, version=label_version())


def label_version() -> int:
    """Version of the prompt that asks for a label."""
    return int(packaged(__package__, "labelling.toml")["version"])


def system_label_prompt(question: Question) -> str:
    """Asks for the number of the question's system."""
    values = {
        "categories": "\n".join(f"{n}. {name}" for n, name in enumerate(SYSTEMS)),
        "question": question.stem,
        "options_text": option_lines(question.options),
    }
    return fill(packaged(__package__, "labelling.toml")["system"].removeprefix("\n"), values)


def read_system(reply: str) -> str | Fault:
    """The system that a classifier names, by number or by name."""
    named = [system for system in SYSTEMS if system.casefold() in reply.casefold()]
    numbers = {int(n) for n in re.findall(r"(?<![\d.-])\d{1,2}(?![\d.]*\d)", reply)}
    known = {SYSTEMS[n] for n in numbers if n < len(SYSTEMS)}
    if len(numbers) == len(known) == 1 and set(named) <= known:
        return known.pop()
    # a lone number that is another category's contradicts the name
    if len(named) == 1 and not (len(numbers) == 1 and known):
        return named[0]
    return Fault("no category", "does not name one category by its number")


PROTOCOL = Protocol(LabelSettings, systems)
