"""What every protocol's study has in common."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from holdfast.challenges import question_prompt, system_prompt
from holdfast.errors import InputError
from holdfast.questions import Fields, Question, QuestionSet, load_questions, shuffled

from .estimate import Estimate


class Study(Protocol):
    """A protocol's settings, resolved: what will be asked, before anything is."""

    @property
    def questions(self) -> QuestionSet:
        """What is asked."""
        ...

    @property
    def exact(self) -> bool:
        """Whether ``estimate`` counts exactly."""
        ...

    def left_out(self, question: Question) -> Mapping[str, str]:
        """Paths that cannot be put for this question, with the reason."""
        ...

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """What the question takes of the model under test."""
        ...

    def judged(self, question: Question, reply_tokens: int) -> Estimate:
        """What the question takes of a judge, where one is bound."""
        ...

    def opening(self, question: Question) -> str | None:
        """What an identical first request of another protocol can be known by; None for none."""
        ...

    def needs(self, setting: str) -> bool:
        """Whether anything that is asked depends on what a generator makes for that setting."""
        ...

    def remarks(self) -> list[str]:
        """What of the inputs is not used, one line each."""
        ...


def opening_estimate(opening: str, reply_tokens: int) -> Estimate:
    """What the plain question takes."""
    return Estimate(1, len(opening) // 4, reply_tokens)


def opening_of(system: str, question: Question) -> str:
    """The plain question under a system prompt, which several protocols begin with."""
    return f"{system_prompt(system) or ''}\x1f{question_prompt(question)}"


def reasons(study: Study, limit: int | None) -> dict[str, Counter[str]]:
    """By path, how many questions lack what it needs, and what that is."""
    counts: dict[str, Counter[str]] = {}
    for question in study.questions.first(limit).questions:
        for path, reason in study.left_out(question).items():
            counts.setdefault(path, Counter())[reason] += 1
    return counts


def asked_questions(
    questions: str,
    fields: str | list[str] | None,
    shuffle: int | None = None,
    stratify: str | None = None,
) -> QuestionSet:
    """The question set that a study's settings name, in the order in which it is asked.

    Raises:
        InputError: the set cannot be loaded, or strata are asked for without a shuffle.
    """
    found = load_questions(questions, Fields.parse(listed(fields)) if fields else None)
    if shuffle is None and stratify is not None:
        raise InputError(
            "strata are those of a sample",
            field="stratify",
            remedy="Give --shuffle SEED beside it",
        )
    return found if shuffle is None else shuffled(found, shuffle, stratify)


def listed(value: str | list[str] | int) -> str:
    """The value as one text: Inspect's own command line splits at commas and reads numbers."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def one_text(**settings: Any) -> None:
    """Refuse a setting that Inspect's command line has split or converted.

    Raises:
        InputError: a value is not one text.
    """
    for name, value in settings.items():
        if not isinstance(value, str):
            raise InputError(
                f"{name} is {value!r}, not one text",
                field="-T",
                remedy="Inspect splits and converts -T values; give it in a --task-config file",
            )


def sample_metadata(question: Question) -> dict[str, Any]:
    """What the log keeps of a question beside its text."""
    return {
        "gold": question.gold,
        "step": question.step,
        "system": question.system,
        "specialty": question.specialty,
        "subject": question.subject,
        "content_hash": question.content_hash,
    }
