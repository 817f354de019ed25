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
"""Results that are kept; one of a million turns takes some 100 MB."""

_KEYS = (
    "run", "model", "dataset", "protocol", "question", "step", "system", "specialty", "subject",
)  # fmt: skip
"""Columns that turns are grouped and joined by most."""

_results: OrderedDict[tuple[Any, ...], Any] = OrderedDict()


def once(
    function: Callable[Concatenate[pl.DataFrame, P], T], /
) -> Callable[Concatenate[pl.DataFrame, P], T]:
    """Have a function of a table of turns return the same result for the same table.

    The last results are kept for as long as their table is there. They are shared, and no caller
    may change one in place.

    Args:
        function: takes a table and hashable settings.
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
    """The turns with numbers for the texts of ``_KEYS``, which group and join faster."""
    return turns.with_columns(pl.col(_KEYS).cast(pl.Categorical))


def in_words(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of a table with texts for such numbers."""
    return rows.with_columns(pl.col(pl.Categorical).cast(pl.String))
