"""The protocols that are known: those of this package, and those that other ones bring."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import registry
from holdfast.errors import InputError
from holdfast.files import import_file, named_path, text_of
from holdfast.lookups import until_declared
from holdfast.questions.question import digest_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from inspect_ai import Task

    from holdfast.models.behaviour import Behaviour

    from .protocol import Protocol


class Registered(Mapping[str, "Protocol[Any]"]):
    """Protocols by name, each loaded when it is first asked for."""

    def __init__(self, built_in: Mapping[str, str], group: str | None = None) -> None:
        """Name them.

        Args:
            built_in: by name, the module whose ``PROTOCOL`` it is; with a dot, one of this package.
            group: entry points of further ones.
        """
        self._own, self._group = built_in, group
        self._of_files: dict[str, Protocol[Any]] = {}

    def add(self, protocol: "Protocol[Any]") -> None:
        """Know a further protocol, of a file."""
        self._of_files[protocol.name] = protocol

    def __getitem__(self, name: str) -> "Protocol[Any]":
        if name in self._of_files:
            return self._of_files[name]
        if name in self._own:
            return _built_in(self._own[name], name)
        return _load_entry(self._load_entries()[name])

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self.others()

    def __len__(self) -> int:
        return len({*self._own, *self._load_entries(), *self._of_files})

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._load_entries() or name in self._of_files

    def own(self) -> "list[Protocol[Any]]":
        """Those of this package."""
        return [self[name] for name in self._own]

    def others(self) -> "Iterator[str]":
        """Names of those of other packages and of files."""
        names = dict.fromkeys([*self._load_entries(), *self._of_files])
        yield from (name for name in names if name not in self._own)

    def _load_entries(self) -> "Mapping[str, EntryPoint]":
        return _entry_points(self._group) if self._group else {}


PROTOCOLS = Registered(registry.PROTOCOLS, registry.GROUP)
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


SUFFIX = ".py"
"""Ends the name of a file that holds a protocol."""


def named_protocols(names: Sequence[str]) -> list[str]:
    """Names of protocols, those of files loaded from there."""
    return [load_protocol(name) if name.endswith(SUFFIX) else name for name in names]


def load_protocol(file: str) -> str:
    """Have the protocol of a file known, with the tables that it declares; its name.

    The file is run. Only who starts holdfast may name one: nothing that is read does.

    Raises:
        InputError: the file cannot be imported, has no ``PROTOCOL``, or one of a name that is
            taken.
    """
    path = named_path(file)
    text_of(path, "Give a protocol by name, or its file")
    path = path.resolve()
    module = f"holdfast_protocol_{digest_of(str(path))}"
    if module not in sys.modules:
        found_protocol = _import_protocol(module, path, file)
        namesake = PROTOCOLS.get(found_protocol.name) if found_protocol.name in PROTOCOLS else None
        if namesake is not None:
            del sys.modules[module]
            problem = (
                f"its protocol has the name '{found_protocol.name}', which another protocol has"
            )
            raise InputError(problem, file, field="PROTOCOL", remedy="Rename it")
        PROTOCOLS.add(found_protocol)
        registry.declare(module)
    protocol: Protocol[Any] = sys.modules[module].PROTOCOL
    return protocol.name


def _import_protocol(module: str, path: Path, file: str) -> "Protocol[Any]":
    """The protocol of a file, imported as a module of that name."""
    from .protocol import Protocol

    declaration = getattr(import_file(path, module, file), "PROTOCOL", None)
    if not isinstance(declaration, Protocol):
        del sys.modules[module]
        problem = "has no PROTOCOL" if declaration is None else "its PROTOCOL is not a Protocol"
        remedy = "Define it, as 'Add a protocol' in CONTRIBUTING.md shows"
        raise InputError(problem, file, remedy=remedy)
    return declaration


@cache
def task_named(name: str) -> "Callable[..., Task]":
    """The function that makes the Inspect task of a protocol or of a generation.

    A task is known to Inspect once this has been called.
    """
    from .task import task_of

    return task_of(PROTOCOLS[name] if name in PROTOCOLS else GENERATIONS[name])


@until_declared
def behaviours() -> "tuple[Behaviour, ...]":
    """What the defences and each protocol have simulated models do."""
    from holdfast.defences.simulated_defences import BEHAVIOUR

    return BEHAVIOUR, *(protocol.behaviour for protocol in _loadable() if protocol.behaviour)


def roles() -> tuple[str, ...]:
    """Models that the protocols need beside the one under test, by role."""
    from holdfast.defences.defence import VERIFIER

    of_protocols = (role for protocol in _loadable() for role in protocol.roles)
    return tuple(dict.fromkeys([*of_protocols, VERIFIER]))


def _loadable() -> "Iterator[Protocol[Any]]":
    """Ours, and those of packages that can be loaded: who asks for another is told why."""
    yield from PROTOCOLS.own()
    for name in PROTOCOLS.others():
        with suppress(InputError):
            yield PROTOCOLS[name]


def _built_in(module: str, name: str) -> "Protocol[Any]":
    protocol: Protocol[Any] | None = getattr(
        registry.module_named(resolve_name(module, __package__)), "PROTOCOL", None
    )
    if protocol is None:
        raise InputError(
            "has no PROTOCOL",
            module,
            field=name,
            remedy="Define it, as 'Add a protocol' in CONTRIBUTING.md shows",
        )
    return protocol


@cache
def _entry_points(group: str) -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # slow, and needed by no help text

    return {entry.name: entry for entry in entry_points(group=group)}


@cache
def _load_entry(entry: "EntryPoint") -> "Protocol[Any]":
    try:
        protocol: Protocol[Any] = entry.load()
    except Exception as error:  # another's package can fail in any way
        raise InputError(
            f"'{entry.name}' of {entry.value} cannot be loaded ({error})",
            field="PROTOCOL",
            remedy="Fix or remove that package",
        ) from error
    return protocol
