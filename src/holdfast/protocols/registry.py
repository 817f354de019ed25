"""The protocols that are known: a line each, and those that other installed packages bring."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from holdfast.declared import GROUP
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.models.behaviour import Behaviour

    from .protocol import Protocol


class Registered(Mapping[str, "Protocol"]):
    """Protocols by name, each loaded when it is first asked for."""

    def __init__(self, own: Mapping[str, str], group: str | None = None) -> None:
        """Name them.

        Args:
            own: by name, the module below this package whose ``PROTOCOL`` it is.
            group: entry points of further ones.
        """
        self._own, self._group = own, group

    def __getitem__(self, name: str) -> "Protocol":
        if name in self._own:
            found: Protocol = import_module(self._own[name], __package__).PROTOCOL
            return found
        return _loaded(self._others()[name])

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in self._others() if name not in self._own)

    def __len__(self) -> int:
        return len({*self._own, *self._others()})

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._others()

    def own(self) -> "list[Protocol]":
        """Those of this package."""
        return [self[name] for name in self._own]

    def _others(self) -> Mapping[str, EntryPoint]:
        return _entry_points(self._group) if self._group else {}


PROTOCOLS = Registered(
    {
        "followup": ".followup.protocol",
        "single-turn": ".single_turn.protocol",
        "stick-or-switch": ".stick_or_switch.protocol",
        "medfuzz": ".medfuzz.protocol",
    },
    GROUP,
)
"""Protocol by name."""

TESTS = Registered({"medfuzz-test": ".medfuzz.permutation"})
"""What a command of its own runs on the logs of a protocol, by name."""

PREPARATIONS = Registered(
    {
        "contexts": ".followup.context_generation",
        "distractors": ".single_turn.distractors",
        "systems": ".labelling",
    }
)
"""Tasks that make what a study needs, by name."""


@cache
def behaviours() -> "tuple[Behaviour, ...]":
    """What each protocol has simulated models do.

    A package that cannot be loaded has none: who asks for its protocol is told why.
    """
    found = []
    for name in PROTOCOLS:
        try:
            found.append(PROTOCOLS[name].behaviour)
        except InputError:
            continue
    return tuple(behaviour for behaviour in found if behaviour)


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}


@cache
def _loaded(entry: EntryPoint) -> "Protocol":
    try:
        found: Protocol = entry.load()
    except Exception as error:  # another's package can fail in any way
        raise InputError(
            f"'{entry.name}' of {entry.value} cannot be loaded ({error})",
            field="PROTOCOL",
            remedy="Fix or remove that package",
        ) from error
    return found
