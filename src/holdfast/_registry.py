"""Tasks and models that Inspect finds by name, through the entry point `inspect_ai`."""

from collections.abc import Callable

from inspect_ai.model import ModelAPI, modelapi

from .protocols.installed import GENERATIONS, PROTOCOLS, task_named
from .registry import PROVIDERS, named

TASKS = [
    task_named(protocol.name) for table in (PROTOCOLS, GENERATIONS) for protocol in table.own()
]


def _provider(name: str) -> Callable[[], type[ModelAPI]]:
    def load() -> type[ModelAPI]:
        provider: type[ModelAPI] = named(PROVIDERS[name])
        return provider

    return load


for name in PROVIDERS:
    modelapi(name=name)(_provider(name))
