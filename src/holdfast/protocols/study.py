"""What every protocol's study has in common: what it asks, what it will take, its task."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import GenerateConfig, Model, get_model, model_roles
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver
from inspect_ai.viewer import ViewerConfig

from holdfast.challenges import question_prompt, system_prompt
from holdfast.defences import Block, wording_of
from holdfast.dialogue import seated
from holdfast.questions import LABELS, Question, QuestionSet
from holdfast.simulation import MADE_OF


@dataclass(frozen=True)
class Estimate:
    """Generations and tokens.

    Attributes:
        generations: assistant turns asked for, at the most.
        input_tokens: tokens read, by a rule of thumb.
        output_tokens: tokens written, by an assumed reply length.
        fewest: assistant turns asked for at the least; None where that is ``generations``.
    """

    generations: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    fewest: int | None = None

    @property
    def least(self) -> int:
        """Assistant turns asked for at the least."""
        return self.generations if self.fewest is None else self.fewest

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(
            self.generations + other.generations,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.least + other.least,
        )

    def __sub__(self, other: "Estimate") -> "Estimate":
        return self + other.times(-1)

    def times(self, n: int) -> "Estimate":
        """The same, n times over."""
        return Estimate(
            self.generations * n, self.input_tokens * n, self.output_tokens * n, self.least * n
        )


@dataclass(frozen=True)
class Turns:
    """Generations by their place in a conversation.

    Attributes:
        first: those that begin one.
        gone_on: those of them on which another one follows.
        shallow: those that begin one or follow on one that does.
    """

    first: int
    gone_on: int
    shallow: int


class Study(ABC):
    """A protocol's settings, resolved: what will be asked, before anything is."""

    questions: QuestionSet
    """What is asked."""

    epochs = 1
    """Times each question is asked, unless the user says otherwise."""

    required: tuple[str, ...] = ()
    """Roles without which nothing can be asked."""

    defence: Block | None = None
    """What stands around the model under test."""

    simulated: tuple[str, ...] = ()
    """What reaches the model and says nothing of medicine, in words."""

    def repeated(self, epochs: int) -> "Study":
        """The same study where each question is asked so often."""
        return self

    @property
    def exact(self) -> bool:
        """Whether ``estimate`` counts exactly."""
        return True

    @abstractmethod
    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations and tokens that the question takes of the model under test."""

    def turns(self, question: Question) -> "Turns":
        """How many of the generations that ``estimate`` counts stand where in a conversation."""
        n = self.estimate(question, 0).generations
        return Turns(n, 0, n)

    def needed(self, question: Question, reply_tokens: int) -> Estimate:
        """What ``estimate`` says, with what the defence takes beside it.

        What a defended model is asked as it is without the defence is asked once: the run without
        it has it already, for as many turns as do not follow on a defended one.
        """
        own, defence = self.estimate(question, reply_tokens), self.defence
        if defence is None:
            return own
        turns, calls = self.turns(question), defence.calls
        most = calls.beyond(turns.first, turns.gone_on, own.generations - turns.first)[1]
        # a conversation that stops early has few later turns
        first = min(turns.first, own.least)
        later = own.least - first
        fewest = calls.beyond(first, min(turns.gone_on, later), later)[0]
        shared = turns.shallow if defence.plain else turns.first if defence.first_plain else 0
        if own.generations == 0:
            return own
        total = own.generations - shared + most
        tokens = total / own.generations
        return Estimate(
            total,
            round(own.input_tokens * tokens),
            round(own.output_tokens * tokens),
            max(own.least - turns.shallow if defence.plain else own.least - shared, 0) + fewest,
        )

    def left_out(self, question: Question) -> Mapping[str, str]:
        """Paths, or arms, that cannot be put for this question, with the reason."""
        return {}

    def helped(self, question: Question, reply_tokens: int) -> Mapping[str, Estimate]:
        """What the question takes of each helper, by role, where one is bound."""
        return {}

    def helping(self, question: Question, reply_tokens: int) -> Mapping[str, Estimate]:
        """What ``helped`` says, and what the defence asks of its helper."""
        helped, defence = dict(self.helped(question, reply_tokens)), self.defence
        if defence is None or defence.role is None:
            return helped
        own, first = self.estimate(question, 0), self.turns(question).first
        fewest = max(own.least - first, 0) * defence.calls.helper[0]
        most = (own.generations - first) * defence.calls.helper[1]
        read = len(question_prompt(question)) // 4 + 200 + 2 * reply_tokens
        return {**helped, defence.role: Estimate(most, most * read, most * 20, fewest)}

    def openings(self, question: Question) -> tuple[str, ...]:
        """What identical first requests of another protocol can be known by."""
        return ()

    def needs(self, setting: str) -> bool:
        """Whether anything that is asked depends on what a generator makes for that setting."""
        return False

    def remarks(self) -> list[str]:
        """What of the inputs is not used, one line each."""
        return []


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
        scorer: scores the turns that the solver leaves in the sample's store; None for a study that
            only its tables can measure.
        viewer: how the log viewer lists the samples.
        protocol: name of the protocol.
        version: raised when the protocol changes in a way that changes prompts or results.
        config: generation settings that the protocol asks for.
        metadata: digests of further inputs.
    """
    return Task(
        dataset=_Asked(study),
        solver=solver,
        scorer=scorer,
        config=config,
        epochs=study.epochs,
        fail_on_error=True,
        continue_on_fail=True,
        version=version,
        metadata={
            "protocol": protocol,
            "questions": study.questions.fingerprint,
            **metadata,
            **({MADE_OF: study.simulated} if study.simulated else {}),
            **({DEFENCE: [study.defence.id, wording_of(study.defence)]} if study.defence else {}),
        },
        viewer=viewer,
        headline_metric=HeadlineMetric(metric="accuracy_under_challenge"),
    )


class _Asked(MemoryDataset):
    """A study's questions as samples: each made when it is put, all for who rearranges them."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._all: list[Sample] = []
        super().__init__(self._all, study.questions.name)

    @property
    def samples(self) -> list[Sample]:
        """All of them."""
        if not self._all:
            self._all = [_sample(self._study, one) for one in self._study.questions.questions]
        return self._all

    @samples.setter
    def samples(self, samples: list[Sample]) -> None:
        self._all = samples

    def __getitem__(self, index: Any) -> Any:
        """One, or some."""
        if self._all or isinstance(index, slice):
            return super().__getitem__(index)
        return _sample(self._study, self._study.questions.questions[index])

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self._study.questions.questions)


def _sample(study: Study, question: Question) -> Sample:
    return Sample(
        id=question.id,
        input=question.stem,
        choices=list(question.options.values()),
        target=question.gold,
        metadata={
            "gold": question.gold,
            **{label: getattr(question, label) for label in LABELS},
            "content_hash": question.content_hash,
            "left_out": study.left_out(question),
        },
    )


DEFENCE = "defence"
"""In the metadata of a log: name of the defence, and the digest of what it says."""
JUDGE = "judge"
READER = "reader"
"""Reads the replies in which the rules find no answer, or several."""
READER_ALL = "reader-all"
"""Reads every reply."""


def tested() -> Model:
    """The model under test, or the generator of a preparation."""
    sitting = seated.get()
    return sitting.tested if sitting else get_model()


def bound(role: str) -> Model | None:
    """The model in that role, None without one."""
    # never by get_model(role=...), which fills a role that is not bound with the model under test
    sitting = seated.get()
    model = sitting.roles.get(role) if sitting else model_roles().get(role)
    return model if isinstance(model, Model) or model is None else model[0]
