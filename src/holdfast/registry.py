"""What is declared where: protocols, and the modules that declare tables and what they need.

Imports none of it. Names are here for what has no time to import what they name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
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

TABLES = {
    "worst": "holdfast.results.worst:WORST",
    "retention": "holdfast.results.retention:RETENTION",
    "attributable": "holdfast.results.attributable:ATTRIBUTABLE",
    "flips by control": "holdfast.results.attributable:CONTROLS",
    "selectivity": "holdfast.results.attributable:SELECTIVITY",
    "accuracy": "holdfast.results.accuracy:ACCURACY",
    "accuracy by family": "holdfast.results.accuracy:FAMILIES",
    "variance by epoch": "holdfast.results.epochs:EPOCHS",
    "variance by wording": "holdfast.results.wordings:WORDINGS",
    "flips": "holdfast.results.flows:FLIPS",
    "flips by family": "holdfast.results.flows:HOLDING",
    "flips by outcome": "holdfast.results.flows:FLOWS",
    "defences": "holdfast.results.defences:DEFENCES",
    "defences by model": "holdfast.results.defences:BEST_DEFENCE",
    "flagging": "holdfast.results.flagging:FLAGGING",
    "flagging by budget": "holdfast.results.flagging:FLAGGING_CURVE",
    "accuracy by step": "holdfast.results.strata:STEPS",
    "accuracy by system": "holdfast.results.strata:SYSTEMS",
    "accuracy by specialty": "holdfast.results.strata:SPECIALTIES",
    "accuracy by subject": "holdfast.results.strata:SUBJECTS",
    "accuracy by length": "holdfast.results.strata:LENGTHS",
    "chains": "holdfast.protocols.followup.compounding:COMPOUNDING",
    "chains by part": "holdfast.protocols.followup.compounding:PARTS",
    "chains by model": "holdfast.protocols.followup.compounding:SUMMARY",
    "single-turn": "holdfast.protocols.single_turn.measures:SINGLE_TURN",
    "cues": "holdfast.protocols.followup.cue_tables:CUES",
    "survival": "holdfast.protocols.stick_or_switch.convictions:SURVIVAL",
    "tax": "holdfast.protocols.stick_or_switch.convictions:TAX",
    "flexibility": "holdfast.protocols.stick_or_switch.flexibility:FLEXIBILITY",
    "positions": "holdfast.protocols.stick_or_switch.flexibility:POSITIONS",
    "positions by winner": "holdfast.protocols.stick_or_switch.flexibility:WINNERS",
    "beliefs": "holdfast.protocols.stick_or_switch.flexibility:BELIEFS",
    "scale": "holdfast.protocols.stick_or_switch.scale:SCALE",
    "survival by path": "holdfast.results.dynamics:RESISTANCE",
    "turn-of-flip": "holdfast.results.dynamics:TURN_OF_FLIP",
    "attacks by control": "holdfast.protocols.medfuzz.net_attacks:ATTACK_NET",
    "attacks": "holdfast.protocols.medfuzz.attacks:ATTACKS",
    "attack-summary": "holdfast.protocols.medfuzz.attacks:ATTACK_SUMMARY",
    "attacks by question": "holdfast.protocols.medfuzz.attacks:ATTACK_LIST",
    "permutation": "holdfast.protocols.medfuzz.significance:PERMUTATION",
    "transfer": "holdfast.protocols.medfuzz.transfer:TRANSFER",
    "faithfulness": "holdfast.protocols.medfuzz.faithfulness:FAITHFULNESS",
    "reading": "holdfast.results.audit:READING",
    "audit": "holdfast.results.audit:AUDIT_TABLE",
}
"""Each table, as ``MODULE:NAME``, in the order of their listing; ``accuracy by step`` is what
``--table accuracy --by step`` shows."""

_BESIDE = (
    "holdfast.protocols.followup.published",
    "holdfast.protocols.stick_or_switch.published",
    "holdfast.protocols.medfuzz.replicates",
)
"""Modules that declare published figures and turns, and no table."""

MODULES = tuple(dict.fromkeys([*(place.partition(":")[0] for place in TABLES.values()), *_BESIDE]))
"""Modules that declare tables, sections of the report, published figures and turns."""

BY = " by "
"""What stands between a table's name and what its rows are by."""

BEHAVIOURS = "holdfast.protocols.installed:behaviours"
"""What tells what simulated models do, as ``MODULE:NAME``: called when one is asked."""

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
        raise InputError(f"no module '{name}'", "holdfast/registry.py", remedy=remedy) from error


def named(place: str) -> Any:
    """What stands at a ``MODULE:NAME`` of this package, imported now."""
    module, _, name = place.partition(":")
    return getattr(module_named(module), name)


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


def declaring(modules: tuple[str, ...] = MODULES) -> tuple[str, ...]:
    """Every module that declares something: ours, and those of other protocols.

    One that cannot be loaded declares nothing: who asks for its protocol is told why.
    """
    return (*_list_modules(modules), *_of_files)


@cache
def _list_modules(modules: tuple[str, ...]) -> tuple[str, ...]:
    """These modules, and those of packages that bring a protocol."""
    from importlib.metadata import entry_points  # slow, and needed by no help text

    names = list(modules)
    for entry in entry_points(group=GROUP):
        with suppress(Exception):  # another's package can fail in any way
            import_module(entry.module)
            names.append(entry.module)
    return tuple(dict.fromkeys(names))


def found_in(modules: Iterable[str], kind: type[T]) -> list[T]:
    """What modules declare of a kind, in their order.

    Args:
        modules: their names, as they are imported.
        kind: the class of what is declared.
    """
    values = [
        value
        for name in modules
        for value in vars(module_named(name)).values()
        if isinstance(value, kind)
    ]
    # a module may import what another one declares
    return list({id(value): value for value in values}.values())


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


def ways(tables: Iterable[str]) -> dict[str, list[str]]:
    """What the rows of each table can be by, by the table's name; "" where it needs no ``--by``.

    Args:
        tables: names such as ``accuracy`` and ``accuracy by step``.
    """
    ways_by_name: dict[str, list[str]] = {}
    for table in tables:
        name, _, by = table.partition(BY)
        ways_by_name.setdefault(name, []).append(by)
    return ways_by_name
