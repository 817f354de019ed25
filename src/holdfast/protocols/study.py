"""What every protocol's study has in common."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver
from inspect_ai.viewer import ViewerConfig

from holdfast.challenges import question_prompt, system_prompt
from holdfast.errors import InputError, did_you_mean
from holdfast.questions import Fields, Question, QuestionSet, load_questions, shuffled

from .estimate import Estimate

P = ParamSpec("P")
S = TypeVar("S", bound="Study")


class Study(ABC):
    """A protocol's settings, resolved: what will be asked, before anything is."""

    questions: QuestionSet
    """What is asked."""

    epochs = 1
    """Times each question is asked, unless the user says otherwise."""

    required: tuple[str, ...] = ()
    """Roles without which nothing can be asked."""

    @property
    def exact(self) -> bool:
        """Whether ``estimate`` counts exactly."""
        return True

    @abstractmethod
    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations and tokens that the question takes of the model under test.

        Args:
            question: one of the study's questions.
            reply_tokens: assumed length of a reply.
        """

    def left_out(self, question: Question) -> Mapping[str, str]:
        """Paths, or arms, that cannot be put for this question, with the reason."""
        return {}

    def helped(self, question: Question, reply_tokens: int) -> Mapping[str, Estimate]:
        """What the question takes of each helper, by role, where one is bound."""
        return {}

    def opening(self, question: Question) -> str | None:
        """What an identical first request of another protocol can be known by; None for none."""
        return None

    def needs(self, setting: str) -> bool:
        """Whether anything that is asked depends on what a generator makes for that setting."""
        return False

    def remarks(self) -> list[str]:
        """What of the inputs is not used, one line each."""
        return []


_resolved: ContextVar["Study | None"] = ContextVar("resolved", default=None)


@contextmanager
def resolved(study: Study) -> Iterator[None]:
    """Have the tasks that are made inside take this study for their settings.

    A task is known to Inspect by the function and the arguments that it is made with; resolving
    them again would read the questions a second time, and hold them twice.

    Args:
        study: what the task's own settings resolve to.
    """
    token = _resolved.set(study)
    try:
        yield
    finally:
        _resolved.reset(token)


def settings_of(study: Callable[P, S]) -> Callable[[Callable[[S], Task]], Callable[P, Task]]:
    """Make a function of a study one of the study's settings, so that each is declared once.

    Args:
        study: resolves the settings.
    """

    def decorate(make: Callable[[S], Task]) -> Callable[P, Task]:
        @wraps(study)
        def with_settings(*args: P.args, **kwargs: P.kwargs) -> Task:
            known = cast("S | None", _resolved.get())
            return make(study(*args, **kwargs) if known is None else known)

        with_settings.__name__ = make.__name__
        return with_settings

    return decorate


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


def history(reasoning_history: str) -> GenerateConfig:
    """Whether hidden reasoning of earlier turns is sent again, as a setting of generation.

    Raises:
        InputError: none of ``none``, ``all``, ``last`` and ``auto``.
    """
    if reasoning_history not in _HISTORIES:
        raise InputError(
            f"unknown reasoning_history '{reasoning_history}'",
            field="-T",
            remedy=did_you_mean(str(reasoning_history), _HISTORIES),
        )
    return GenerateConfig.model_validate({"reasoning_history": reasoning_history})


_HISTORIES = ("none", "all", "last", "auto")


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


def protocol_task(
    study: Study,
    solver: Solver,
    scorer: Scorer | None = None,
    viewer: ViewerConfig | None = None,
    *,
    protocol: str,
    version: int,
    config: GenerateConfig,
    **metadata: Any,
) -> Task:
    """The Inspect task of a protocol: one sample a question and replicate.

    Args:
        study: what is asked.
        solver: puts it.
        scorer: scores the turns that the solver leaves in the sample's store; None for a study
            that only its tables can measure.
        viewer: how the log viewer lists the samples.
        protocol: name of the protocol.
        version: raised when the protocol changes in a way that changes prompts or results.
        config: generation settings that the protocol asks for.
        metadata: digests of further inputs.
    """
    return Task(
        dataset=MemoryDataset(
            [_sample(study, question) for question in study.questions.questions],
            name=study.questions.name,
        ),
        solver=solver,
        scorer=scorer,
        config=config,
        epochs=study.epochs,
        fail_on_error=True,
        continue_on_fail=True,
        version=version,
        metadata={"protocol": protocol, "questions": study.questions.fingerprint, **metadata},
        viewer=viewer,
    )


def _sample(study: Study, question: Question) -> Sample:
    return Sample(
        id=question.id,
        input=question.stem,
        choices=list(question.options.values()),
        target=question.gold,
        metadata={
            "gold": question.gold,
            "step": question.step,
            "system": question.system,
            "specialty": question.specialty,
            "subject": question.subject,
            "content_hash": question.content_hash,
            "left_out": study.left_out(question),
        },
    )
