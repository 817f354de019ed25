"""The printed figures of the source papers as rows of our own tables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from holdfast.errors import InputError, did_you_mean
from holdfast.registry import Lazily, declaring, found_in

from .declaration import TABLES
from .grid import PUBLISHED_MARK
from .turns import SCHEMA

Row = dict[str, Any]

ALL_MODELS = "all models"
"""Whose figures an average over the models of a paper is given for."""


OTHER_WORDING = "biases in BiasMedQA's wording"
"""Ends the ``run`` of printed figures whose biases are worded otherwise than ours."""


@dataclass(frozen=True)
class PublishedSource:
    """Source of a set of published figures.

    Attributes:
        name: as ``--compare-with`` knows it.
        citation: paper and tables, for a reader.
        rows: rows by table; a table that is not named has no printed figure.
    """

    name: str
    citation: str
    rows: Mapping[str, Callable[[], Iterator[Row]]]


def published(table: str, source: str = "paper") -> pl.DataFrame:
    """Published figures in the columns of one of our tables, to compare with measured ones.

    Figures are those printed, never recomputed: accuracies as shares, changes as fractions, and
    null where the paper prints nothing, so intervals and counts of right answers always. ``n`` is
    the number of questions where the paper says on how many a figure is. An average over models
    is a row of ``all models``. ``model`` ends in ``[published]``; ``run`` names paper and table.

    Args:
        table: name of a table, key of ``TABLES``.
        source: key of ``PUBLISHED_SOURCES``.

    Returns:
        Rows with the columns and types of ``table``; none where the paper prints no such figure.

    Raises:
        InputError: there is no such table or source.
    """
    if table not in TABLES:
        raise InputError(f"unknown table '{table}'", remedy=did_you_mean(table, TABLES))
    if source not in PUBLISHED_SOURCES:
        raise InputError(
            f"unknown published source '{source}'", remedy=did_you_mean(source, PUBLISHED_SOURCES)
        )
    schema = TABLES[table](pl.DataFrame(schema=SCHEMA)).schema
    rows = PUBLISHED_SOURCES[source].rows.get(table, lambda: iter(()))()
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def compared_with_published(
    rows: pl.DataFrame, table: str, source: str
) -> tuple[pl.DataFrame, str]:
    """A table with the published figures below its own rows, and what a reader must know of them.

    Of a table of strata only the reading that the paper prints is put beside, which is the change
    relative to the overall first answers.

    Args:
        rows: rows of the table.
        table: its name.
        source: key of ``PUBLISHED_SOURCES``.

    Raises:
        InputError: there is no such source.
    """
    published_rows = published(table, source)
    if published_rows.is_empty():
        return rows, f"{PUBLISHED_SOURCES[source].citation}: no figures for the table '{table}'"
    all_rows = pl.concat([rows, published_rows], how="vertical_relaxed")
    if "overall" in published_rows.get_column("relative_to", default=pl.Series()).to_list() and (
        rows["relative_to"].eq("stratum").any()
    ):
        return all_rows, (
            "The published changes are relative to the overall first answers; "
            "use --relative-to overall for yours"
        )
    return all_rows, ""


def named(model: str) -> str:
    """A model of a paper, as the rows of published figures call it."""
    return f"{model} {PUBLISHED_MARK}"


def share(percent: Decimal) -> float:
    """A percentage as a share."""
    return float(percent / 100)


PUBLISHED_SOURCES: Mapping[str, PublishedSource] = Lazily(
    lambda: {source.name: source for source in found_in(declaring(), PublishedSource)}
)
"""Sets of published figures by name."""
