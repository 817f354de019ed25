"""Contexts from a generator (MedQA-Followup, section 3 and appendix F)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai import Task, task

from holdfast.challenges import (
    CONTEXTS,
    SUPPORTING,
    Fault,
    alternative_fault,
    drawn_sentences,
    fill,
    json_object,
    letter_fault,
    option_lines,
    text_fault,
    text_key,
)
from holdfast.dialogue import Conversation, Intervention, gather
from holdfast.errors import InputError
from holdfast.files import packaged
from holdfast.protocols.preparing import Preparation, Row, obtain, preparation
from holdfast.protocols.protocol import Protocol, settings_of
from holdfast.protocols.settings import QuestionSettings, listed, setting
from holdfast.protocols.study import Estimate, tested
from holdfast.questions import Question, QuestionSet
from holdfast.reading import extract_answer

_LONGEST = 200

Length = int | None
"""Sentences of an ablation's contexts; None for the study's own."""


@dataclass(frozen=True)
class ContextStudy(Preparation):
    """Context generation with every setting resolved.

    ``sentences`` of the study's own contexts; None draws 4 to 10 for each question.
    ``corrections`` says whether texts for the right options are written too.
    """

    questions: QuestionSet
    sentences: int | None
    lengths: tuple[int, ...]
    seed: int
    corrections: bool = False

    def kinds(self, length: Length) -> tuple[str, ...]:
        """What is written at a length."""
        return (*CONTEXTS, SUPPORTING) if self.corrections and length is None else CONTEXTS

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations where every text holds at the first go: the lower bound."""
        prompts = [second_best_prompt(question)] + [
            context_prompt(kind, question, question.distractors[0], self.number(question, length))
            # a length that is the study's own is asked for once
            for length in (None, *(n for n in self.lengths if n != self.number(question, None)))
            for kind in self.kinds(length)
        ]
        n = len(prompts)
        return Estimate(n, sum(map(len, prompts)) // 4, n * reply_tokens)

    def number(self, question: Question, length: Length) -> int:
        """How many sentences a context has."""
        return length or self.sentences or drawn_sentences(question, self.seed)


@dataclass(frozen=True)
class ContextSettings(QuestionSettings[ContextStudy]):
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

    def study(self) -> ContextStudy:
        """What will be asked."""
        lengths = context_lengths(self.lengths)
        return ContextStudy(self.asked(), self.sentences, lengths, self.seed, self.corrections)


def context_lengths(value: str | list[str] | int) -> tuple[int, ...]:
    """The lengths of an ablation, such as ``1,10,20`` (section 4.3), in sentences; ``none``."""
    found: dict[int, None] = {}
    for part in listed(value).split(","):
        if part.strip() in ("", "none"):
            continue
        if not part.strip().isdecimal() or len(part) > 9 or not 1 <= int(part) <= _LONGEST:
            what = f"length '{part[:40]}' is not a number of sentences from 1 to {_LONGEST}"
            raise InputError(what, field="lengths", remedy="Give numbers such as 1,10,20")
        found[int(part)] = None
    return tuple(found)


@task
@settings_of(ContextSettings)
def contexts(study: ContextStudy) -> Task:
    """Contexts for the follow-up protocol, written by the model as generator."""
    return preparation(
        "contexts",
        study.questions,
        lambda question: _rows(study, question),
        seed=study.seed,
        version=template_version(),
    )


_SECOND_BEST = re.compile(r"\bsecond[- ]best\b", re.IGNORECASE)


async def _rows(study: ContextStudy, question: Question) -> list[Row]:
    """The question's rows of the context file, one for each length."""
    root = Conversation(tested(), question, purpose="context")
    wrong = {letter: question.options[letter] for letter in question.distractors}

    def read_second_best(reply: str) -> str | Fault:
        # a reply's second best is nobody's answer, unless it was asked for
        answer = extract_answer(_SECOND_BEST.sub("best", reply), wrong).answer
        return answer or Fault("no second-best option", "is not the letter of an option to choose")

    chat = root.branch(Intervention("second-best"))
    second_best = await obtain(chat, second_best_prompt(question), read_second_best)
    found: dict[str, tuple[str, str | None] | Fault] = {}

    async def write(kind: str, length: Length) -> None:
        n, key = study.number(question, length), text_key(kind, length)
        if kind == "misleading_context" and isinstance(second_best, Fault):
            found[key] = second_best
            return
        letter = None if isinstance(second_best, Fault) else second_best
        found[key] = await obtain(
            root.branch(Intervention(kind, suggested=letter, variant=str(n))),
            context_prompt(kind, question, letter, n),
            lambda reply: read_context(kind, reply, question, n),
        )

    async with gather() as branches:
        for length in (None, *study.lengths):
            for kind in study.kinds(length):
                branches.start(text_key(kind, length), write, kind, length)
    return [
        {
            "question": question.id,
            "content_hash": question.content_hash,
            "length": length,
            "sentences": study.number(question, length),
            "second_best": None if isinstance(second_best, Fault) else second_best,
            **_texts({kind: found[text_key(kind, length)] for kind in study.kinds(length)}),
        }
        for length in (None, *study.lengths)
    ]


def _texts(found: dict[str, tuple[str, str | None] | Fault]) -> Row:
    row: Row = {}
    for kind, result in found.items():
        row[kind] = None if isinstance(result, Fault) else result[0]
        if kind == "alternative_context" and not isinstance(result, Fault):
            row["alternative_answer"] = result[1]
    missing = {kind: one.kind for kind, one in found.items() if isinstance(one, Fault)}
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
        found = json_object(reply, "alternative_answer", "context")
        diagnosis, named = found.get("alternative_answer"), found.get("context")
        if not isinstance(diagnosis, str) or not isinstance(named, str):
            detail = 'is no JSON object with the texts "alternative_answer" and "context"'
            return Fault("no JSON", detail)
        diagnosis, text = diagnosis.strip(), named.strip()
        if fault := alternative_fault(diagnosis, text, question):
            return fault
    fault = text_fault(text, sentences)
    if not fault and kind == SUPPORTING:
        fault = letter_fault(text, question)
    return fault or (text, diagnosis)


def _wording() -> Mapping[str, Any]:
    return packaged(__package__, "context_generation.toml")


PROTOCOL = Protocol(ContextSettings, contexts)
