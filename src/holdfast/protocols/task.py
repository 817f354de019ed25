"""The Inspect task of a study: a sample for each question and epoch, scored from its turns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from inspect_ai import Task
from inspect_ai import task as inspect_task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import Model, get_model, model_roles
from inspect_ai.solver import Generate, Solver, TaskState, solver

from holdfast.defences.defence import wording_of
from holdfast.defences.defended import DefendedLive
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.sitting import current_sitting
from holdfast.encoding import json_bytes
from holdfast.errors import InputError
from holdfast.questions.question import LABELS, Question
from holdfast.results.arms import turns_of
from holdfast.results.runs import GROWS, INPUTS
from holdfast.simulation import MADE_OF

from .protocol import Protocol, Study, StudyPlan
from .scoring import LEFT_OUT, PREPARED_KEY, TURNS, robustness, samples_view, score_keys
from .second_reading import read_by, reader_of
from .settings import signature

DEFENCE = "defence"
"""In the metadata of a log: name of the defence, and the digest of what it says."""


def tested() -> Model:
    """The model under test, or the generator of a preparation."""
    sitting = current_sitting.get()
    return sitting.tested_model if sitting else get_model()


def bound(role: str) -> Model | None:
    """The model in that role, None without one."""
    # never by get_model(role=...), which fills a role that is not bound with the model under test
    sitting = current_sitting.get()
    model = sitting.roles.get(role) if sitting else model_roles().get(role)
    return model if isinstance(model, Model) or model is None else model[0]


_loaded_study: ContextVar[tuple[Study, StudyPlan] | None] = ContextVar("loaded", default=None)


@contextmanager
def loaded(study: Study, plan: StudyPlan) -> Iterator[None]:
    """Have the tasks that are made inside take this study for their settings.

    A task is known to Inspect by the function and the arguments that it is made with; loading the
    settings again would read the questions a second time, and hold them twice.

    Args:
        study: the study.
        plan: what is asked of it.
    """
    token = _loaded_study.set((study, plan))
    try:
        yield
    finally:
        _loaded_study.reset(token)


def task_of(protocol: Protocol[Any]) -> Callable[..., Task]:
    """The function that makes a protocol's task; its parameters are the settings."""

    def make(*args: Any, **kwargs: Any) -> Task:
        if study_and_plan := _loaded_study.get():
            return study_task(*study_and_plan)
        study = protocol.study(**signature(protocol.settings).bind(*args, **kwargs).arguments)
        return study_task(study, study.plan())

    make.__name__ = make.__qualname__ = protocol.name.replace("-", "_")
    make.__doc__ = protocol.settings.__doc__
    make.__module__ = protocol.method.__module__
    make.__dict__["__signature__"] = signature(protocol.settings)
    return inspect_task(make)


def study_task(study: Study, plan: StudyPlan) -> Task:
    """The task of a study, scored on the turns that are planned."""
    protocol, defence = study.protocol, study.defence
    study.settings.check_made()
    scored_paths = [
        path for path in plan.paths if not protocol.scored or path[0] in protocol.scored
    ]
    keys = [] if protocol.generates else score_keys(scored_paths)
    return Task(
        dataset=_Questions(study),
        solver=_solver(study),
        scorer=None
        if protocol.generates
        else robustness(keys, turns_of(protocol.name).stops_early),
        config=study.config,
        epochs=study.epochs,
        fail_on_error=True,
        continue_on_fail=True,
        version=protocol.version,
        metadata={
            "preparation" if protocol.generates else "protocol": protocol.name,
            "questions": study.questions.fingerprint,
            INPUTS: protocol.input_settings,
            GROWS: protocol.growing,
            **protocol.inputs(study.settings),
            **({MADE_OF: study.simulated} if study.simulated else {}),
            **({DEFENCE: [defence.id, wording_of(defence)]} if defence else {}),
        },
        viewer=None if protocol.generates else samples_view([key for _, _, key in keys]),
        headline_metric=HeadlineMetric(metric="accuracy_under_challenge"),
    )


def _solver(study: Study) -> Solver:
    """Asks a question; its turns are left in the log, those of an unfinished one too."""
    questions = {question.id: question for question in study.questions.questions}

    @solver(name=study.name.replace("-", "_"))
    def ask() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            _check_roles(study)
            question = questions[str(state.sample_id)]
            reader = reader_of(question, tested(), bound)
            live = DefendedLive(tested(), bound, reader, defence=study.defence)
            run = Run(question, live, state.epoch, study.epochs)
            try:
                await study.method(run)
            finally:
                turns = run.ordered
                columns = read_by(reader)
                if run.final and run.final.counts:
                    columns["final_counts"] = True
                # a turn that a judge has read says so itself
                records = [{**columns, **turn.record()} for turn in turns]
                # as one text: what is in a store is walked, compared and copied with every span
                state.store.set(TURNS, json_bytes(records).decode())
                if run.rows:
                    state.store.set(PREPARED_KEY, run.rows)
                state.metadata[LEFT_OUT] = dict(run.skipped_paths)
            if (letters := _choose_shown_turn(turns)) is not None:
                state.messages = list(letters.messages)
                state.output.completion = letters.reply
            return state

        return solve

    return ask()


def _check_roles(study: Study) -> None:
    """Refuse to ask without a helper: Inspect's own command line checks none."""
    for role in study.required:
        if bound(role) is None:
            raise InputError(
                f"no model has the role '{role}'",
                field="--model-role",
                remedy=f"Give --model-role {role}=MODEL; it is never the model under test",
            )


def _choose_shown_turn(turns: list[Turn]) -> Turn | None:
    """The turn whose conversation the log viewer shows: the first challenged one that gave way."""
    answers = [turn for turn in turns if turn.target is not None and turn.output is not None]
    challenges = [turn for turn in answers if turn.is_challenge]
    gave_way = (t for t in challenges if t.extraction and t.extraction.answer != t.target)
    return next(gave_way, next(iter(challenges), next(iter(answers), None)))


class _Questions(MemoryDataset):
    """A study's questions as samples: each made when it is asked, all for who rearranges them."""

    def __init__(self, study: Study) -> None:
        self._questions = study.questions.questions
        self._all: list[Sample] = []
        super().__init__(self._all, study.questions.name)

    @property
    def samples(self) -> list[Sample]:
        """All of them."""
        if not self._all:
            self._all = [_sample(question) for question in self._questions]
        return self._all

    @samples.setter
    def samples(self, samples: list[Sample]) -> None:
        self._all = samples

    def __getitem__(self, index: Any) -> Any:
        """One, or some."""
        if self._all or isinstance(index, slice):
            return super().__getitem__(index)
        return _sample(self._questions[index])

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self._questions)


def _sample(question: Question) -> Sample:
    return Sample(
        id=question.id,
        input=question.stem,
        choices=list(question.options.values()),
        target=question.gold,
        metadata={
            "gold": question.gold,
            **{label: getattr(question, label) for label in LABELS},
            "content_hash": question.content_hash,
        },
    )
