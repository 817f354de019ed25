"""A protocol: its settings, its Inspect task, and what else the house asks of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from inspect_ai import Task

from holdfast.dialogue import Choice
from holdfast.models.behaviour import Behaviour
from holdfast.questions import Question

from .settings import Settings, signature
from .study import Study

P = ParamSpec("P")
S = TypeVar("S", bound=Study)

Logged = Mapping[str, Any]
"""A logged turn, by the names of the turns table."""


@dataclass(frozen=True)
class Rereading:
    """How the logged turns of a protocol are read again.

    Attributes:
        choice: what a turn was read against that showed options in an order of its own, given the
            settings in the log, the question, the turn, and the answer of the turn before as it is
            read now; without it, all that it showed.
        elsewhere: how many conversations of a question would have gone elsewhere, given the
            settings, the question, and the turns that now answer their target and did not, or the
            other way round.
        put: the question as a turn put it, where the log does not have its options; None where
            they cannot be told.
    """

    choice: Callable[[Mapping[str, Any], Question, Logged, str | None], Choice] | None = None
    elsewhere: Callable[[Mapping[str, Any], Question, Sequence[Logged]], int] | None = None
    put: Callable[[Question, Logged], Question | None] | None = None


@dataclass(frozen=True)
class Protocol:
    """A protocol, or a task beside the protocols, as the command line sees it.

    Attributes:
        settings: what it can be told.
        task: makes the Inspect task; its parameters are the settings.
        roles: models that help with it, beside a generator, a judge and a reader.
        generated: settings whose value may be ``generate``, with the preparation that makes it.
        behaviour: what simulated models do under it; None where they only answer.
        rereading: how its logged turns are read again; None where each was a choice among all.
    """

    settings: type[Settings[Any]]
    task: Callable[..., Task]
    roles: tuple[str, ...] = ()
    generated: Mapping[str, str] = field(default_factory=dict)
    behaviour: Behaviour | None = None
    rereading: Rereading | None = None

    def study(self, **settings: Any) -> Any:
        """The settings resolved without a model.

        Raises:
            InputError: a setting names something unknown, or a file cannot be used.
        """
        return self.settings(**settings).study()


_resolved: ContextVar["Study | None"] = ContextVar("resolved", default=None)


@contextmanager
def resolved(study: Study) -> Iterator[None]:
    """Have the tasks that are made inside take this study for their settings.

    A task is known to Inspect by the function and the arguments that it is made with; resolving
    them again would read the questions a second time, and hold them twice.
    """
    token = _resolved.set(study)
    try:
        yield
    finally:
        _resolved.reset(token)


def settings_of(
    settings: Callable[P, Settings[S]],
) -> Callable[[Callable[[S], Task]], Callable[P, Task]]:
    """Make a function of a study one of the study's settings."""

    def decorate(make: Callable[[S], Task]) -> Callable[P, Task]:
        @wraps(make)
        def with_settings(*args: P.args, **kwargs: P.kwargs) -> Task:
            known = cast("S | None", _resolved.get())
            return make(settings(*args, **kwargs).study() if known is None else known)

        declared = cast("type[Settings[S]]", settings)
        with_settings.__dict__["__signature__"] = signature(declared)
        return with_settings

    return decorate
