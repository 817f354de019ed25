"""Where tables are declared, and what they are called, for who has no time to import them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MODULES = (
    "holdfast.results.net",
    "holdfast.results.accuracy",
    "holdfast.results.flows",
    "holdfast.results.strata",
    "holdfast.protocols.followup.compounding",
    "holdfast.protocols.single_turn.measures",
    "holdfast.protocols.followup.cues",
    "holdfast.protocols.stick_or_switch.convictions",
    "holdfast.protocols.stick_or_switch.flexibility",
    "holdfast.protocols.stick_or_switch.scale",
    "holdfast.results.dynamics",
    "holdfast.protocols.medfuzz.attacks",
    "holdfast.protocols.medfuzz.significance",
    "holdfast.protocols.medfuzz.faithfulness",
    "holdfast.results.agreement",
)
"""Modules that declare tables, in the order in which they are listed."""

GROUP = "holdfast.protocols"
"""Entry points by which a package brings a protocol: ``NAME = "MODULE:PROTOCOL"``."""


@cache
def declaring() -> tuple[str, ...]:
    """Every module that declares tables: ours, and those of packages that bring a protocol.

    One that cannot be loaded declares nothing: who asks for its protocol is told why.
    """
    from importlib.metadata import entry_points  # slow, and needed by no help text

    found = list(MODULES)
    for entry in entry_points(group=GROUP):
        with suppress(Exception):  # another's package can fail in any way
            import_module(entry.module)
            found.append(entry.module)
    return tuple(dict.fromkeys(found))


class Lazily(Mapping[str, T]):
    """A mapping that is made when it is first looked into.

    A package that brings tables imports what looks them up: none can be made on import.
    """

    def __init__(self, make: Callable[[], Mapping[str, T]]) -> None:
        """Take what makes it."""
        self._make = make

    @cached_property
    def _found(self) -> Mapping[str, T]:
        return self._make()

    def __getitem__(self, key: str) -> T:
        return self._found[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


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
