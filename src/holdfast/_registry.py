"""Tasks and models that Inspect finds by name, through the entry point `inspect_ai`."""

from inspect_ai.model import ModelAPI, modelapi

from .protocols.installed import GENERATIONS, PROTOCOLS, task_named

TASKS = [
    task_named(protocol.name) for table in (PROTOCOLS, GENERATIONS) for protocol in table.own()
]


@modelapi(name="simulated")
def simulated() -> type[ModelAPI]:
    """Return the model class for ``simulated/PROFILE``."""
    from .models.simulated import Simulated

    return Simulated


@modelapi(name="lexical")
def lexical() -> type[ModelAPI]:
    """Return the model class for ``lexical/overlap``."""
    from .models.offline import Lexical

    return Lexical


@modelapi(name="lean")
def lean() -> type[ModelAPI]:
    """Return the model class for ``lean/MODEL``."""
    from .models.lean import Lean

    return Lean


@modelapi(name="http")
def http() -> type[ModelAPI]:
    """Return the model class for ``http/NAME``."""
    from .models.http import Http

    return Http


@modelapi(name="python")
def python() -> type[ModelAPI]:
    """Return the model class for ``python:FILE.py:FUNCTION``."""
    from .models.function import Function

    return Function


@modelapi(name="recorded")
def recorded() -> type[ModelAPI]:
    """Return the model class for ``recorded/FILE``."""
    from .models.offline import Recorded

    return Recorded
