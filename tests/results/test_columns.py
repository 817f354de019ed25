"""What the columns of tables say, and that an interval holds its figure."""

from functools import cache

import polars as pl
import pytest

from holdfast.results.columns import COMMON
from holdfast.results.declaration import TABLES
from tests.golden import SETS

TOLERANCE = 1e-9


@pytest.mark.parametrize("name", TABLES)
def test_every_column_has_a_meaning_and_interval_a_figure(name: str) -> None:
    table = TABLES[name]
    schema = table.schema
    for column in schema:
        meaning = table.meaning(column)
        assert meaning[:1] == meaning[:1].upper() != ""
        assert meaning.endswith(".")
        # it stands in a cell of a table
        assert not {"\n", "|"} & {*meaning}
        if figure := table.interval_of(column):
            assert schema[figure].is_numeric()
    # nothing is said of columns that are not there, or twice
    assert set(table.says) <= set(schema)
    ends = {column.rpartition("_")[0] for column in schema if column.endswith("low")}
    assert set(table.intervals) <= ends
    assert not {column for column, text in table.says.items() if text == COMMON.get(column)}


def test_columns_with_a_general_meaning_are_in_several_tables() -> None:
    columns = [name for table in TABLES.values() for name in table.schema]
    assert min(columns.count(column) for column in COMMON) > 1


@cache
def turns_of(name: str) -> pl.DataFrame:
    return SETS[name]()


@pytest.mark.parametrize("turns", ["disturbed", pytest.param("demo", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TABLES)
def test_an_interval_contains_its_figure(name: str, turns: str) -> None:
    table = TABLES[name]
    rows = table(turns_of(turns))
    for low in (column for column in rows.columns if column.endswith("low")):
        figure, high = table.interval_of(low), f"{low.removesuffix('low')}high"
        if not figure:
            continue
        outside = rows.filter(
            (pl.col(low) > pl.col(figure) + TOLERANCE) | (pl.col(high) < pl.col(figure) - TOLERANCE)
        )
        assert outside.is_empty(), outside.select(low, figure, high)
        # bounds come in pairs, and none stands without its figure
        assert rows.filter(pl.col(low).is_not_null(), pl.col(figure).is_null()).is_empty()
