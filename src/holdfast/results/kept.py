"""Cache of results that several tables compute from the same turns."""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import polars as pl

P = ParamSpec("P")
T = TypeVar("T")

_MOST_RESULTS = 6
"""Number of cached results; a result from a million turns takes about 100 MB."""

_KEYS = (
    "run", "model", "dataset", "protocol", "question", "step", "system", "specialty", "subject",
)  # fmt: skip
"""Columns that turns are most often grouped and joined by."""

_results: OrderedDict[tuple[Any, ...], Any] = OrderedDict()


def once(
    function: Callable[Concatenate[pl.DataFrame, P], T], /
) -> Callable[Concatenate[pl.DataFrame, P], T]:
    """Cache the results of a function of a turns table.

    The last results are cached as long as their table exists. They are shared, so callers must not
    change them in place.

    Args:
        function: function of a table and hashable settings.
    """

    @wraps(function)
    def kept(turns: pl.DataFrame, /, *args: P.args, **kwargs: P.kwargs) -> T:
        table = id(turns)
        key = (table, function, args, *sorted(kwargs.items()))
        if key not in _results:
            result = function(turns, *args, **kwargs)
            weakref.finalize(turns, _forget, table)
            _results[key] = result
            while len(_results) > _MOST_RESULTS:
                _results.popitem(last=False)
        _results.move_to_end(key)
        stored_result: T = _results[key]
        return stored_result

    return kept


def _forget(table: int) -> None:
    for key in [key for key in _results if key[0] == table]:
        del _results[key]


@once
def in_codes(turns: pl.DataFrame) -> pl.DataFrame:
    """Replace the texts of ``_KEYS`` by numbers, which group and join faster."""
    return turns.with_columns(pl.col(_KEYS).cast(pl.Categorical))


def in_words(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace the numbers of ``in_codes`` by their texts."""
    return rows.with_columns(pl.col(pl.Categorical).cast(pl.String))
