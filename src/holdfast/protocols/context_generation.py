"""Contexts from a generator (MedQA-Followup, section 3 and appendix F)."""

import re
from dataclasses import dataclass

from inspect_ai import Task, task
from inspect_ai.model import get_model

from holdfast.challenges import (
    CONTEXTS,
    Fault,
    context_prompt,
    drawn_sentences,
    read_context,
    second_best_prompt,
    template_version,
    text_key,
)
from holdfast.dialogue import Conversation, Intervention, gather
from holdfast.errors import InputError
from holdfast.questions import Question, QuestionSet
from holdfast.reading import extract_answer

from .estimate import Estimate
from .preparing import Preparation, Row, obtain, preparation
from .study import asked_questions, listed, settings_of

_LONGEST = 200

Length = int | None
"""Sentences of an ablation's contexts; None for the study's own."""


@dataclass(frozen=True)
class ContextStudy(Preparation):
    """Context generation with every setting resolved.

    Attributes:
        questions: what contexts are written for.
        sentences: of the study's own contexts; None draws 4 to 10 for each question.
        lengths: sentences of the contexts of an ablation.
        seed: fixes the drawn numbers of sentences, with the question.
    """

    questions: QuestionSet
    sentences: int | None
    lengths: tuple[int, ...]
    seed: int

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations where every text holds at the first go: the lower bound."""
        prompts = [second_best_prompt(question)] + [
            context_prompt(kind, question, question.distractors[0], self.number(question, length))
            # a length that is the study's own is asked for once
            for length in (None, *(n for n in self.lengths if n != self.number(question, None)))
            for kind in CONTEXTS
        ]
        n = len(prompts)
        return Estimate(n, sum(map(len, prompts)) // 4, n * reply_tokens)

    def number(self, question: Question, length: Length) -> int:
        """How many sentences a context has."""
        return length or self.sentences or drawn_sentences(question, self.seed)


def context_study(
    questions: str = "bank",
    sentences: int | None = None,
    lengths: str | list[str] | int = "none",
    seed: int = 42,
    fields: str | list[str] | None = None,
    shuffle: int | None = None,
    stratify: str | None = None,
) -> ContextStudy:
    """Contexts for the follow-up protocol, written by the model as generator.

    Args:
        questions: ``bank``, ``medqa``, ``medmcqa``, a file, or ``hf:NAME@REVISION[:SPLIT]``.
        sentences: of each context; None draws 4 to 10 for each question (appendix F).
        lengths: comma-separated numbers of sentences of a length ablation; ``none``.
        seed: of the drawn numbers of sentences and of the model's sampling.
        fields: which column holds what, such as ``stem=vignette,gold=key``.
        shuffle: seed of the order in which questions are asked; with a limit, of the sample.
        stratify: label whose shares every beginning of that order keeps (step, system, ...).

    Raises:
        InputError: a setting that cannot be used.
    """
    if sentences is not None and (not isinstance(sentences, int) or sentences < 1):
        raise InputError(f"sentences is {sentences!r}", field="-T", remedy="Give 1 or more")
    asked = asked_questions(questions, fields, shuffle, stratify)
    return ContextStudy(asked, sentences, context_lengths(lengths), seed)


def context_lengths(value: str | list[str] | int) -> tuple[int, ...]:
    """The lengths of an ablation, such as ``1,10,20`` (section 4.3), in sentences; ``none``.

    Raises:
        InputError: a part is no positive whole number.
    """
    found: dict[int, None] = {}
    for part in listed(value).split(","):
        if part.strip() in ("", "none"):
            continue
        if not part.strip().isdecimal() or len(part) > 9 or not 1 <= int(part) <= _LONGEST:
            raise InputError(
                f"length '{part[:40]}' is not a number of sentences from 1 to {_LONGEST}",
                field="lengths",
                remedy="Give numbers such as 1,10,20",
            )
        found[int(part)] = None
    return tuple(found)


@task
@settings_of(context_study)
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
    root = Conversation(get_model(), question, purpose="context")
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
            for kind in CONTEXTS:
                branches.start(text_key(kind, length), write, kind, length)
    return [
        {
            "question": question.id,
            "content_hash": question.content_hash,
            "length": length,
            "sentences": study.number(question, length),
            "second_best": None if isinstance(second_best, Fault) else second_best,
            **_texts({kind: found[text_key(kind, length)] for kind in CONTEXTS}),
        }
        for length in (None, *study.lengths)
    ]


def _texts(found: dict[str, tuple[str, str | None] | Fault]) -> Row:
    row: Row = {}
    missing: dict[str, str] = {}
    for kind, result in found.items():
        if isinstance(result, Fault):
            missing[kind] = result.kind
            row[kind] = None
        else:
            row[kind] = result[0]
            if kind == "alternative_context":
                row["alternative_answer"] = result[1]
    return {**row, "missing": missing}
