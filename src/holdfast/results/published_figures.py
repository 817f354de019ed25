"""Printed figures of the source papers, as rows of holdfast's tables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from holdfast.errors import InputError, did_you_mean
from holdfast.registry import Lazily, declaring, found_in

from .declaration import TABLES
from .grid import PUBLISHED_MARK

Row = dict[str, Any]

ALL_MODELS = "all models"
"""Model name of an average over the models of a paper."""


OTHER_WORDING = "biases in BiasMedQA's wording"
"""Suffix of ``run`` for published figures of biases with another wording."""


@dataclass(frozen=True)
class PublishedSource:
    """Source of a set of published figures.

    Attributes:
        name: name for ``--compare-with``.
        citation: paper and tables, for readers.
        rows: rows by table. A table without an entry has no published figures.
    """

    name: str
    citation: str
    rows: Mapping[str, Callable[[], Iterator[Row]]]


def published(table: str, source: str = "paper") -> pl.DataFrame:
    """Return published figures in the columns of a table, to compare with measured figures.

    Figures are as printed, never recomputed: accuracies as shares, changes as fractions. Values
    that the paper does not print are null, including all intervals and counts of right answers.
    ``n`` is the number of questions if the paper states it. The model of an average over models is
    ``all models``. ``model`` ends in ``[published]``. ``run`` names paper and table.

    Args:
        table: name of a table, key of ``TABLES``.
        source: key of ``PUBLISHED_SOURCES``.

    Returns:
        Rows with the columns and types of ``table``, empty if the paper prints no such figure.

    Raises:
        InputError: the table or the source does not exist.
    """
    if table not in TABLES:
        raise InputError(f"unknown table '{table}'", remedy=did_you_mean(table, TABLES))
    if source not in PUBLISHED_SOURCES:
        raise InputError(
            f"unknown published source '{source}'", remedy=did_you_mean(source, PUBLISHED_SOURCES)
        )
    schema = TABLES[table].schema
    rows = PUBLISHED_SOURCES[source].rows.get(table, lambda: iter(()))()
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def compared_with_published(
    rows: pl.DataFrame, table: str, source: str
) -> tuple[pl.DataFrame, str]:
    """Append the published figures to a table's rows, and return them with notes for the reader.

    For a table of strata, only changes relative to the overall first answers are added, because the
    paper prints no others.

    Args:
        rows: rows of the table.
        table: name of the table.
        source: key of ``PUBLISHED_SOURCES``.

    Raises:
        InputError: the source does not exist.
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
    """Return the name of a paper's model in rows of published figures."""
    return f"{model} {PUBLISHED_MARK}"


def share(percent: Decimal) -> float:
    """Convert a percentage to a share."""
    return float(percent / 100)


PUBLISHED_SOURCES: Mapping[str, PublishedSource] = Lazily(
    lambda: {source.name: source for source in found_in(declaring(), PublishedSource)}
)
"""Sets of published figures by name."""
