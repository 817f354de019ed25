"""Caches of look-ups in declaring modules, cleared when another module is declared."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_forgetting: list[Callable[[], None]] = []


def forget() -> None:
    """Clear all caches of look-ups."""
    for forget_one in _forgetting:
        forget_one()


def until_declared(function: Callable[P, T]) -> Callable[P, T]:
    """Cache the results of a function until another module is declared."""
    cache: dict[tuple[object, ...], T] = {}
    _forgetting.append(cache.clear)

    @wraps(function)
    def looked_up(*args: P.args, **kwargs: P.kwargs) -> T:
        key = (*args, *kwargs.items())
        if key not in cache:
            cache[key] = function(*args, **kwargs)
        return cache[key]

    return looked_up
