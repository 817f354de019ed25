"""What is declared where: protocols, and the modules that declare tables and what they need.

Imports none of it. Names are here for what has no time to import what they name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from holdfast.errors import InputError
from holdfast.lookups import forget, until_declared

T = TypeVar("T")

PROTOCOLS = {
    "followup": "holdfast.protocols.followup.protocol",
    "single-turn": "holdfast.protocols.single_turn.protocol",
    "stick-or-switch": "holdfast.protocols.stick_or_switch.protocol",
    "medfuzz": "holdfast.protocols.medfuzz.protocol",
}
"""Module of each protocol, whose ``PROTOCOL`` it is."""

DEMO: dict[str, Any] = {
    "protocols": ("single-turn", "followup", "stick-or-switch", "medfuzz"),
    "model_role": {"attacker": "simulated/attacker"},
    "task_args": {"chains": "paper", "corrections": True, "attempts": 1},
}
"""What the demo runs, as ``holdfast.run`` takes it."""

MODULES = (
    "holdfast.results.worst",
    "holdfast.results.net",
    "holdfast.results.accuracy",
    "holdfast.results.epochs",
    "holdfast.results.wordings",
    "holdfast.results.flows",
    "holdfast.results.defences",
    "holdfast.results.flagging",
    "holdfast.results.strata",
    "holdfast.protocols.followup.published",
    "holdfast.protocols.followup.compounding",
    "holdfast.protocols.single_turn.measures",
    "holdfast.protocols.followup.cues",
    "holdfast.protocols.stick_or_switch.convictions",
    "holdfast.protocols.stick_or_switch.flexibility",
    "holdfast.protocols.stick_or_switch.scale",
    "holdfast.protocols.stick_or_switch.published",
    "holdfast.results.dynamics",
    "holdfast.protocols.medfuzz.replicates",
    "holdfast.protocols.medfuzz.net",
    "holdfast.protocols.medfuzz.attacks",
    "holdfast.protocols.medfuzz.significance",
    "holdfast.protocols.medfuzz.transfer",
    "holdfast.protocols.medfuzz.faithfulness",
    "holdfast.results.audit",
)
"""Modules that declare tables, published figures and turns, in the order of their listing."""

GROUP = "holdfast.protocols"
"""Entry points by which a package brings a protocol: ``NAME = "MODULE:PROTOCOL"``."""


def module_named(name: str) -> ModuleType:
    """A module of this package that is named here.

    Raises:
        InputError: there is none of the name.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it imports is not
        remedy = "Correct the name there, or add the module"
        raise InputError(f"no module '{name}'", "holdfast/declared.py", remedy=remedy) from error


def reported() -> tuple[str, ...]:
    """Modules that may declare what the report says of a protocol, in the order in which it does.

    ``report`` beside the protocol where there is one, else the module of the protocol.
    """
    folders = {module: module_named(module.rpartition(".")[0]) for module in PROTOCOLS.values()}
    beside = {module: f"{folder.__name__}.report" for module, folder in folders.items()}
    return tuple(report if find_spec(report) else module for module, report in beside.items())


_of_files: list[str] = []
"""Names of the modules of protocol files that are loaded."""


def declare(module: str) -> None:
    """Have a module's declarations count too."""
    _of_files.append(module)
    forget()


def declaring(own: tuple[str, ...] = MODULES) -> tuple[str, ...]:
    """Every module that declares something: ours, and those of other protocols.

    One that cannot be loaded declares nothing: who asks for its protocol is told why.
    """
    return (*_installed(own), *_of_files)


@cache
def _installed(own: tuple[str, ...]) -> tuple[str, ...]:
    """These modules, and those of packages that bring a protocol."""
    from importlib.metadata import entry_points  # slow, and needed by no help text

    found = list(own)
    for entry in entry_points(group=GROUP):
        with suppress(Exception):  # another's package can fail in any way
            import_module(entry.module)
            found.append(entry.module)
    return tuple(dict.fromkeys(found))


def found_in(modules: Iterable[str], kind: type[T]) -> list[T]:
    """What modules declare of a kind, in their order.

    Args:
        modules: their names, as they are imported.
        kind: the class of what is declared.
    """
    found = [
        value
        for name in modules
        for value in vars(module_named(name)).values()
        if isinstance(value, kind)
    ]
    # a module may import what another one declares
    return list({id(value): value for value in found}.values())


class Lazily(Mapping[str, T]):
    """A mapping that is made when it is first looked into, and anew once more is declared.

    A package that brings tables imports what looks them up: none can be made on import.
    """

    def __init__(self, make: Callable[[], Mapping[str, T]]) -> None:
        """Take what makes it."""
        self._found = until_declared(make)

    def __getitem__(self, key: str) -> T:
        return self._found()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


_TABLE = re.compile(r'^\w+ = Table\(\s*"([^"]+)"', re.M)


def table_names(modules: Sequence[str] = MODULES) -> tuple[str, ...]:
    """Names of the tables that modules declare, read off their source.

    The help of the command line tells them, and importing what measures takes longer than it may.

    Args:
        modules: as they are imported; one without a source file is imported after all.
    """
    return tuple(name for module in modules for name in _names(module))


def _names(module: str) -> list[str]:
    top, *rest = module.split(".")
    spec = find_spec(top)  # looks for no more than the package, and imports nothing
    folders = (spec and spec.submodule_search_locations) or []
    for folder in folders:
        file = Path(folder, *rest).with_suffix(".py")
        if file.is_file():
            return _TABLE.findall(file.read_text(encoding="utf-8"))
    from holdfast.results.declaration import tables_of

    return list(tables_of([module]))
