"""Contexts from a generator (MedQA-Followup, section 3 and appendix F)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inspect_ai.model import GenerateConfig

from holdfast.challenges.catalogue import CONTEXTS, INERT, SUPPORTING
from holdfast.challenges.contexts import (
    alternative_fault,
    drawn_sentences,
    letter_fault,
    text_fault,
    text_key,
)
from holdfast.challenges.texts import Fault, fill, json_object, option_lines
from holdfast.dialogue.conversation import Run
from holdfast.dialogue.turn import Intervention
from holdfast.errors import InputError
from holdfast.files import packaged
from holdfast.protocols.generating import Row, obtain
from holdfast.protocols.protocol import Protocol
from holdfast.protocols.settings import QuestionSettings, listed, setting
from holdfast.questions.question import Question
from holdfast.reading.answers import extract_answer

_LONGEST = 200

Length = int | None
"""Sentences of an ablation's contexts; None for the study's own."""


@dataclass(frozen=True)
class ContextSettings(QuestionSettings):
    """Contexts for the follow-up protocol, written by the model as generator."""

    sentences: int | None = setting(
        None, "of each context; None draws 4 to 10 for each question (appendix F)", at_least=1
    )
    lengths: str | list[str] | int = setting(
        "none", "comma-separated numbers of sentences of a length ablation; ``none``", grows=True
    )
    seed: int = setting(42, "seed of the drawn numbers of sentences and of the model's sampling")
    corrections: bool = setting(
        False, "whether a true context for each right option is written beside them", grows=True
    )
    inert: bool = setting(
        False,
        "whether a passage on the topic that argues for nothing is written at each length",
        grows=True,
    )

    @cached_property
    def all_lengths(self) -> tuple[Length, ...]:
        """The study's own length, and those of the ablation."""
        return (None, *context_lengths(self.lengths))

    def kinds(self, length: Length) -> tuple[str, ...]:
        """What is written at a length."""
        supporting = (SUPPORTING,) if self.corrections and length is None else ()
        return (*CONTEXTS, *supporting, *((INERT,) if self.inert else ()))

    def number(self, question: Question, length: Length) -> int:
        """How many sentences a context has."""
        return length or self.sentences or drawn_sentences(question, self.seed)


def context_lengths(value: str | list[str] | int) -> tuple[int, ...]:
    """The lengths of an ablation, such as ``1,10,20`` (section 4.3), in sentences; ``none``."""
    lengths: dict[int, None] = {}
    for part in listed(value).split(","):
        if part.strip() in ("", "none"):
            continue
        if not part.strip().isdecimal() or len(part) > 9 or not 1 <= int(part) <= _LONGEST:
            problem = f"length '{part[:40]}' is not a number of sentences from 1 to {_LONGEST}"
            raise InputError(problem, field="lengths", remedy="Give numbers such as 1,10,20")
        lengths[int(part)] = None
    return tuple(lengths)


_SECOND_BEST = re.compile(r"\bsecond[- ]best\b", re.IGNORECASE)


async def generate_contexts(run: Run, settings: ContextSettings) -> None:
    """Ask for the second-best option, and for each kind of context at each length."""
    question, chat = run.question, run.chat(purpose="context")
    wrong = {letter: question.options[letter] for letter in question.distractors}

    def read_second_best(reply: str) -> str | Fault:
        # a reply's second best is nobody's answer, unless it was asked for
        answer = extract_answer(_SECOND_BEST.sub("best", reply), wrong).answer
        return answer or Fault("no second-best option", "is not the letter of an option to choose")

    second_best = await obtain(
        chat, second_best_prompt(question), read_second_best, question.distractors[0],
        step=Intervention("second-best"),
    )  # fmt: skip
    texts: dict[str, tuple[str, str | None] | Fault] = {}

    async def write(kind: str, length: Length) -> None:
        n, key = settings.number(question, length), text_key(kind, length)
        if kind == "misleading_context" and isinstance(second_best, Fault):
            texts[key] = second_best
            return
        letter = None if isinstance(second_best, Fault) else second_best
        texts[key] = await obtain(
            chat,
            context_prompt(kind, question, letter, n),
            lambda reply: read_context(kind, reply, question, n),
            ("", None),
            step=Intervention(kind, suggested=letter, variant=str(n)),
        )

    await run.side_by_side(
        {
            text_key(kind, length): write(kind, length)
            for length in settings.all_lengths
            for kind in settings.kinds(length)
        }
    )
    run.rows += [
        {
            "question": question.id,
            "content_hash": question.content_hash,
            "length": length,
            "sentences": settings.number(question, length),
            "second_best": None if isinstance(second_best, Fault) else second_best,
            **_texts({kind: texts[text_key(kind, length)] for kind in settings.kinds(length)}),
        }
        for length in settings.all_lengths
    ]


def _texts(results: dict[str, tuple[str, str | None] | Fault]) -> Row:
    row: Row = {}
    for kind, result in results.items():
        row[kind] = None if isinstance(result, Fault) else result[0]
        if kind == "alternative_context" and not isinstance(result, Fault):
            row["alternative_answer"] = result[1]
    missing = {kind: fault.kind for kind, fault in results.items() if isinstance(fault, Fault)}
    return {**row, "missing": missing}


def template_version() -> int:
    """Version of the prompts that generate contexts."""
    return int(_wording()["version"])


def second_best_prompt(question: Question) -> str:
    """Asks for the most plausible wrong option."""
    wrong = {letter: question.options[letter] for letter in question.distractors}
    values = {
        "correct_letter": question.gold,
        "question": question.stem,
        "options_text": option_lines(wrong),
    }
    return fill(_wording()["second_best"], values)


def context_prompt(kind: str, question: Question, second_best: str | None, sentences: int) -> str:
    """Asks for a context."""
    values = {
        "question": question.stem,
        "correct_answer": question.gold,
        "correct_text": question.options[question.gold],
        "options_text": option_lines(question.options),
        "num_sentences": str(sentences),
    }
    if second_best is not None:
        values |= {"wrong_answer": second_best, "wrong_text": question.options[second_best]}
    return fill(_wording()[kind], values)


def read_context(
    kind: str, reply: str, question: Question, sentences: int
) -> tuple[str, str | None] | Fault:
    """The context in a generator's reply, and for an alternative the diagnosis it names."""
    diagnosis = None
    text = re.sub(r"^\s*\**Context\**:\**", "", reply, flags=re.IGNORECASE).strip()
    if kind == "alternative_context":
        if not text:
            return Fault("empty", "is empty")
        reply_object = json_object(reply, "alternative_answer", "context")
        diagnosis, context = reply_object.get("alternative_answer"), reply_object.get("context")
        if not isinstance(diagnosis, str) or not isinstance(context, str):
            detail = 'is no JSON object with the texts "alternative_answer" and "context"'
            return Fault("no JSON", detail)
        diagnosis, text = diagnosis.strip(), context.strip()
        if fault := alternative_fault(diagnosis, text, question):
            return fault
    fault = text_fault(text, sentences)
    if not fault and kind in (SUPPORTING, INERT):
        fault = letter_fault(text, question)
    return fault or (text, diagnosis)


def _wording() -> Mapping[str, Any]:
    return packaged(__package__, "context_generation.toml")


PROTOCOL = Protocol(
    "contexts",
    generate_contexts,
    ContextSettings,
    template_version(),
    config=lambda settings: GenerateConfig(temperature=0.0, seed=settings.seed),
    generates=True,
)
