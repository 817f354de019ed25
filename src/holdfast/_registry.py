"""Tasks and models that Inspect finds by name, through the entry point `inspect_ai`."""

from inspect_ai.model import modelapi

from .protocols.installed import GENERATIONS, PROTOCOLS, task_named
from .registry import PROVIDERS, named

TASKS = [
    task_named(protocol.name) for table in (PROTOCOLS, GENERATIONS) for protocol in table.own()
]


for provider, place in PROVIDERS.items():
    modelapi(name=provider)(lambda place=place: named(place))
