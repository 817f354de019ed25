"""The USMLE system of each question, by a classifier (MedQA-Followup, appendix D.2, Table 5)."""

import re
from dataclasses import dataclass

from inspect_ai.model import GenerateConfig

from holdfast.challenges.texts import Fault, fill, option_lines
from holdfast.dialogue.conversation import Run
from holdfast.files import packaged
from holdfast.questions.bank import SYSTEMS
from holdfast.questions.question import Question

from .generating import obtain
from .protocol import Protocol
from .settings import QuestionSettings, setting


@dataclass(frozen=True)
class LabelSettings(QuestionSettings):
    """The USMLE system of each question, by the model as classifier."""

    seed: int = setting(42, "seed of the model's sampling")


async def label(run: Run, settings: LabelSettings) -> None:
    """Ask for the system of a question."""
    question = run.question
    chat = run.chat(purpose="label", tokens=10)
    system = await obtain(chat, system_label_prompt(question), read_system, SYSTEMS[0])
    result = {"missing": system.kind} if isinstance(system, Fault) else {"system": system}
    run.rows.append({"question": question.id, "content_hash": question.content_hash, **result})


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
    systems = [system for system in SYSTEMS if system.casefold() in reply.casefold()]
    numbers = {int(n) for n in re.findall(r"(?<![\d.-])\d{1,2}(?![\d.]*\d)", reply)}
    numbered_systems = {SYSTEMS[n] for n in numbers if n < len(SYSTEMS)}
    if len(numbers) == len(numbered_systems) == 1 and set(systems) <= numbered_systems:
        return numbered_systems.pop()
    # a lone number that is another category's contradicts the name
    if len(systems) == 1 and not (len(numbers) == 1 and numbered_systems):
        return systems[0]
    return Fault("no category", "does not name one category by its number")


PROTOCOL = Protocol(
    "labels",
    label,
    LabelSettings,
    label_version(),
    config=lambda settings: GenerateConfig(temperature=0.0, seed=settings.seed),
    generates=True,
)
