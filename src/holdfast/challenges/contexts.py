"""Contexts for the challenges that need one: from the bank, from a file, or placeholders."""

import os

from holdfast.errors import InputError, did_you_mean
from holdfast.questions import BANK_NAME, SUFFIXES, Question, QuestionSet, bank_items

from .context import Context, Contexts, text_key
from .context_file import read_contexts
from .generation import drawn_sentences
from .suggestion import draw
from .technique import CONTEXTS

SYNTHETIC = "synthetic"
"""Name of the placeholder contexts, for runs without a generator."""

GENERATE = "generate"
"""Name of contexts that a generator writes before the study."""

GENERATED = "generated:"
"""Before the name of a file that a generator has written for this very study."""


def load_contexts(
    source: str, questions: QuestionSet, seed: int, lengths: tuple[int, ...] = ()
) -> Contexts:
    """Contexts for a question set.

    Args:
        source: ``auto`` (the bank's own for the bank, else none), ``bank``, ``synthetic``,
            ``generate`` (placeholders of the right length, to plan with), ``none``, a file, or
            a file that was generated for this study (``generated:FILE``).
        questions: the questions they are for.
        seed: seeds the placeholders' second-best option and lengths.
        lengths: lengths of an ablation, for placeholders.

    Raises:
        InputError: the file cannot be read, a row is bad, or no row is for these questions.
    """
    match source:
        case "none":
            return Contexts("none")
        case "auto":
            ours = {item["id"] for item in bank_items()}
            return (
                _bank(questions)
                if any(q.id in ours for q in questions.questions)
                else Contexts("none")
            )
        case "bank":
            return _matching(_bank(questions), questions, source)
        case "synthetic" | "generate":
            return Contexts(
                source, {q.id: _placeholder(q, seed, lengths) for q in questions.questions}
            )
        case _ if source.startswith(GENERATED):
            return read_contexts(source.removeprefix(GENERATED), questions, generated=True)
        case _ if not source.endswith(SUFFIXES) and not os.path.exists(source):
            raise InputError(
                f"no such contexts '{source}'",
                field="--contexts",
                remedy=did_you_mean(source, ("auto", BANK_NAME, SYNTHETIC, GENERATE, "none")),
            )
        case _:
            return _matching(read_contexts(source, questions), questions, source)


def _bank(questions: QuestionSet) -> Contexts:
    asked = {q.id: (q.options, q.gold) for q in questions.questions}
    return Contexts(
        BANK_NAME,
        {
            item["id"]: Context(item["second_best"], {kind: item[kind] for kind in CONTEXTS})
            for item in bank_items()
            # a file can use the bank's ids for questions of its own
            if asked.get(item["id"]) in (None, (item["options"], item["gold"]))
        },
    )


def _placeholder(question: Question, seed: int, lengths: tuple[int, ...]) -> Context:
    second_best = draw(question.distractors, seed, question.content_hash, "second-best")

    sentences = {"": drawn_sentences(question, seed), **{str(n): n for n in lengths}}
    return Context(
        second_best,
        {
            text_key(kind, length): placeholder_text(kind, question, second_best, n)
            for length, n in sentences.items()
            for kind in CONTEXTS
        },
    )


def placeholder_text(kind: str, question: Question, second_best: str, sentences: int) -> str:
    """Says nothing of medicine: it holds the place of a generated context in a simulated run."""
    said = {
        "misleading_context": f"The presentation has features seen with: "
        f"{question.options[second_best]}",
        "alternative_context": "A diagnosis outside the options could also explain it",
        "edge_case_context": f"Information needed to settle this is missing: "
        f"{question.options[question.gold]}",
    }[kind]
    more = (f"This is placeholder sentence number {n}" for n in range(2, sentences + 1))
    return ". ".join([f"[synthetic placeholder context] {said}", *more])


def _matching(contexts: Contexts, questions: QuestionSet, source: str) -> Contexts:
    if not any(q.id in contexts.by_question for q in questions.questions):
        raise InputError(
            f"has no context for any of the {len(questions.questions)} questions of "
            f"'{questions.name}'",
            source,
            field="question",
            remedy="Give the contexts that were built for this question set",
        )
    return contexts
