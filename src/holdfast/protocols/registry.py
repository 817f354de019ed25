"""The protocols that are known: those of this package, and those that other ones bring."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from typing import TYPE_CHECKING, Any

from holdfast import declared
from holdfast.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from inspect_ai import Task

    from holdfast.models.behaviour import Behaviour

    from .protocol import Protocol


class Registered(Mapping[str, "Protocol[Any]"]):
    """Protocols by name, each loaded when it is first asked for."""

    def __init__(self, own: Mapping[str, str], group: str | None = None) -> None:
        """Name them.

        Args:
            own: by name, the module whose ``PROTOCOL`` it is; with a dot, one of this package.
            group: entry points of further ones.
        """
        self._own, self._group = own, group

    def __getitem__(self, name: str) -> "Protocol[Any]":
        if name in self._own:
            return _built_in(self._own[name], name)
        return _loaded(self._others()[name])

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self.others()

    def __len__(self) -> int:
        return len({*self._own, *self._others()})

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._others()

    def own(self) -> "list[Protocol[Any]]":
        """Those of this package."""
        return [self[name] for name in self._own]

    def others(self) -> "Iterator[str]":
        """Names of those of other packages."""
        yield from (name for name in self._others() if name not in self._own)

    def _others(self) -> "Mapping[str, EntryPoint]":
        return _entry_points(self._group) if self._group else {}


PROTOCOLS = Registered(declared.PROTOCOLS, declared.GROUP)
"""Protocol by name."""

GENERATIONS = Registered(
    {
        "contexts": ".followup.context_generation",
        "distractors": ".single_turn.distractors",
        "labels": ".labelling",
        "plausibility": ".single_turn.plausibility",
    }
)
"""What generates the inputs of a study, by name."""


@cache
def task_named(name: str) -> "Callable[..., Task]":
    """The function that makes the Inspect task of a protocol or of a generation.

    A task is known to Inspect once this has been called.
    """
    from .task import task_of

    return task_of(PROTOCOLS[name] if name in PROTOCOLS else GENERATIONS[name])


@cache
def behaviours() -> "tuple[Behaviour, ...]":
    """What the defences and each protocol have simulated models do."""
    from holdfast.defences.simulated import BEHAVIOUR

    return BEHAVIOUR, *(known.behaviour for known in _loadable() if known.behaviour)


def roles() -> tuple[str, ...]:
    """Models that the protocols need beside the one under test, by role."""
    from holdfast.defences import VERIFIER

    of_protocols = (role for known in _loadable() for role in known.roles)
    return tuple(dict.fromkeys([*of_protocols, VERIFIER]))


def _loadable() -> "Iterator[Protocol[Any]]":
    """Ours, and those of packages that can be loaded: who asks for another is told why."""
    yield from PROTOCOLS.own()
    for name in PROTOCOLS.others():
        with suppress(InputError):
            yield PROTOCOLS[name]


def _built_in(module: str, name: str) -> "Protocol[Any]":
    found: Protocol[Any] | None = getattr(
        declared.module_named(resolve_name(module, __package__)), "PROTOCOL", None
    )
    if found is None:
        raise InputError(
            "has no PROTOCOL",
            module,
            field=name,
            remedy="Define it there, as 'Adding a protocol' of CONTRIBUTING.md says",
        )
    return found


@cache
def _entry_points(group: str) -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # slow, and needed by no help text

    return {entry.name: entry for entry in entry_points(group=group)}


@cache
def _loaded(entry: "EntryPoint") -> "Protocol[Any]":
    try:
        found: Protocol[Any] = entry.load()
    except Exception as error:  # another's package can fail in any way
        raise InputError(
            f"'{entry.name}' of {entry.value} cannot be loaded ({error})",
            field="PROTOCOL",
            remedy="Fix or remove that package",
        ) from error
    return found
