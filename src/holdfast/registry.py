"""Registry of protocols, tables and the modules that declare them.

The registry holds names and imports no module, which keeps ``--help`` fast.
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
    "open": "holdfast.protocols.open.protocol",
    "pressure": "holdfast.protocols.pressure.protocol",
}
"""Module of each protocol. The module declares the protocol as ``PROTOCOL``."""

PROVIDERS = {
    "simulated": "holdfast.models.simulated:Simulated",
    "lexical": "holdfast.models.offline:Lexical",
    "recorded": "holdfast.models.offline:Recorded",
    "lean": "holdfast.models.lean:Lean",
    "http": "holdfast.models.http:Http",
    "python": "holdfast.models.function:Function",
}
"""``MODULE:NAME`` of the model class of each provider."""

DEMO: dict[str, Any] = {
    "protocols": ("single-turn", "followup", "stick-or-switch", "medfuzz", "open", "pressure"),
    "model_role": {"attacker": "simulated/attacker", "judge": "simulated/judge"},
    "task_args": {"chains": "paper", "corrections": True, "attempts": 1, "turns": 3},
}
"""Arguments of ``holdfast.run`` for the demo."""

TABLES = {
    "worst": "holdfast.results.worst:WORST",
    "remaining": "holdfast.results.remaining:REMAINING",
    "retention": "holdfast.results.retention:RETENTION",
    "retention by technique": "holdfast.results.retention:TECHNIQUES",
    "retention by pair": "holdfast.results.differences:RETENTION_DIFFERENCES",
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
    "recovery": "holdfast.results.recovery:RECOVERY",
    "concessions": "holdfast.results.apologies:CONCESSIONS",
    "attacks by control": "holdfast.protocols.medfuzz.net_attacks:ATTACK_NET",
    "attacks": "holdfast.protocols.medfuzz.attacks:ATTACKS",
    "attack-summary": "holdfast.protocols.medfuzz.attacks:ATTACK_SUMMARY",
    "attacks by question": "holdfast.protocols.medfuzz.attacks:ATTACK_LIST",
    "permutation": "holdfast.protocols.medfuzz.significance:PERMUTATION",
    "transfer": "holdfast.protocols.medfuzz.transfer:TRANSFER",
    "faithfulness": "holdfast.protocols.medfuzz.faithfulness:FAITHFULNESS",
    "pressure": "holdfast.protocols.pressure.measures:SURVIVAL",
    "letters": "holdfast.protocols.open.measures:LETTERS",
    "judges": "holdfast.results.judges:JUDGES",
    "reading": "holdfast.results.audit:READING",
    "audit": "holdfast.results.audit:AUDIT_TABLE",
    "final-answers": "holdfast.results.final_answers:FINAL_ANSWERS",
    "replays": "holdfast.results.replays:REPLAYS_TABLE",
}
"""``MODULE:NAME`` of each table, in listing order. ``--table accuracy --by step`` shows the table
``accuracy by step``."""

_BESIDE = (
    "holdfast.protocols.followup.published",
    "holdfast.protocols.stick_or_switch.published",
    "holdfast.protocols.medfuzz.replicates",
)
"""Modules that declare published values and turns but no table."""

MODULES = tuple(dict.fromkeys([*(place.partition(":")[0] for place in TABLES.values()), *_BESIDE]))
"""Modules that declare tables, report sections, published values and turns."""

BY = " by "
"""Separator between a table's name and its grouping."""

BEHAVIOURS = "holdfast.protocols.installed:behaviours"
"""``MODULE:NAME`` of the function that returns the behaviour of simulated models."""

GROUP = "holdfast.protocols"
"""Entry point group for protocols of other packages: ``NAME = "MODULE:PROTOCOL"``."""


def module_named(name: str) -> ModuleType:
    """Import a module of this package by name.

    Raises:
        InputError: the module does not exist.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module exists but one of its imports is missing
        remedy = "Correct the name there, or add the module"
        raise InputError(
            f"names the module '{name}', which does not exist",
            "holdfast/registry.py",
            remedy=remedy,
        ) from error


def named(place: str) -> Any:
    """Import and return the object at a ``MODULE:NAME`` of this package."""
    module, _, name = place.partition(":")
    return getattr(module_named(module), name)


def reported() -> tuple[str, ...]:
    """Return the modules that may declare reports of protocols, in report order.

    For each protocol: the module ``report`` in its package, or else the module of the protocol.
    """
    folders = {module: module_named(module.rpartition(".")[0]) for module in PROTOCOLS.values()}
    beside = {module: f"{folder.__name__}.report" for module, folder in folders.items()}
    return tuple(report if find_spec(report) else module for module, report in beside.items())


_of_files: list[str] = []
"""Names of the modules of protocol files that are loaded."""


def declare(module: str) -> None:
    """Add the declarations of a module."""
    _of_files.append(module)
    forget()


def declaring(modules: tuple[str, ...] = MODULES) -> tuple[str, ...]:
    """Return every declaring module, bundled or from other packages.

    Modules that cannot be loaded are skipped here. A request for their protocol raises the error.
    """
    return (*_list_modules(modules), *_of_files)


@cache
def _list_modules(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return these modules and the modules of packages that add a protocol."""
    from importlib.metadata import entry_points  # slow, and --help does not need it

    names = list(modules)
    for entry in entry_points(group=GROUP):
        with suppress(Exception):  # a foreign package can fail in any way
            import_module(entry.module)
            names.append(entry.module)
    return tuple(dict.fromkeys(names))


def found_in(modules: Iterable[str], kind: type[T]) -> list[T]:
    """Return all objects of a class that the modules declare, in module order.

    Args:
        modules: import names of the modules.
        kind: class of the declared objects.
    """
    values = [
        value
        for name in modules
        for value in vars(module_named(name)).values()
        if isinstance(value, kind)
    ]
    # a module may import an object that another module declares
    return list({id(value): value for value in values}.values())


class Lazily(Mapping[str, T]):
    """Lazy mapping, built on first access and rebuilt when a module is declared.

    Packages that add tables import the modules that look tables up, so the mapping cannot be
    built on import.
    """

    def __init__(self, make: Callable[[], Mapping[str, T]]) -> None:
        """Store the function that builds the mapping."""
        self._found = until_declared(make)

    def __getitem__(self, key: str) -> T:
        return self._found()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


def ways(tables: Iterable[str]) -> dict[str, list[str]]:
    """Return the groupings of each table by table name. "" stands for no ``--by``.

    Args:
        tables: names such as ``accuracy`` and ``accuracy by step``.
    """
    ways_by_name: dict[str, list[str]] = {}
    for table in tables:
        name, _, by = table.partition(BY)
        ways_by_name.setdefault(name, []).append(by)
    return ways_by_name
