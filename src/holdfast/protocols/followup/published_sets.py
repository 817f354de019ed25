"""The printed figures of the papers behind the published question sets."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from holdfast.files import packaged
from holdfast.results.published import Row, Source, named

_PERCENT = ("accuracy", "baseline", "flip_rate")


def _rows(name: str, table: str) -> Iterator[Row]:
    """Rows of a table; an average over pressures or subjects is a row of its own path."""
    printed = packaged(__package__, "published_sets.toml")[name]
    common: Row = {
        "dataset": printed["dataset"],
        "run": printed["run"],
        "path": "",
        "technique": "",
    }
    given: list[dict[str, Any]] = printed.get("accuracy" if table == "single-turn" else table, [])
    if table == "flips":
        given = given + [
            {"model": model, "path": path, "technique": path, "flip_rate": rate}
            for model, rates in printed.get("models", {}).items()
            for path, rate in zip(printed["flip_rates"], rates, strict=True)
        ]
    for row in given:
        shares = {key: float(value) / 100 for key, value in row.items() if key in _PERCENT}
        yield common | row | shares | {"model": named(row["model"])}


def _source(name: str, *tables: str) -> Source:
    printed = packaged(__package__, "published_sets.toml")[name]
    return Source(name, printed["citation"], {one: partial(_rows, name, one) for one in tables})


MEDMISBENCH = _source("medmisbench", "accuracy", "single-turn", "flips")
WHOFLIPS = _source("whoflips", "flips")
SYCOBENCH = _source("sycobench-600", "flips")
