"""What Inspect finds by name: tasks and models. Loaded through the entry point `inspect_ai`."""

from inspect_ai.model import ModelAPI, modelapi

from .protocols.installed import GENERATIONS, PROTOCOLS, task_named

TASKS = [
    task_named(protocol.name) for table in (PROTOCOLS, GENERATIONS) for protocol in table.own()
]


@modelapi(name="simulated")
def simulated() -> type[ModelAPI]:
    """``simulated/PROFILE``."""
    from .models.simulated import Simulated

    return Simulated


@modelapi(name="lexical")
def lexical() -> type[ModelAPI]:
    """``lexical/overlap``."""
    from .models.offline import Lexical

    return Lexical


@modelapi(name="lean")
def lean() -> type[ModelAPI]:
    """``lean/MODEL``."""
    from .models.lean import Lean

    return Lean


@modelapi(name="recorded")
def recorded() -> type[ModelAPI]:
    """``recorded/FILE``."""
    from .models.offline import Recorded

    return Recorded
