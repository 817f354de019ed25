"""What the columns of tables say, and that an interval holds its figure."""

from functools import cache

import polars as pl
import pytest

from holdfast.results.columns import COMMON
from holdfast.results.declaration import TABLES
from holdfast.results.turns import SCHEMA
from tests.golden import SETS

LIKE = 1e-9


@cache
def columns(name: str) -> pl.Schema:
    return TABLES[name](pl.DataFrame(schema=SCHEMA)).schema


@pytest.mark.parametrize("name", TABLES)
def test_every_column_says_what_it_is(name: str) -> None:
    table = TABLES[name]
    silent = [column for column in columns(name) if not table.meaning(column)]
    assert not silent
    for column in columns(name):
        said = table.meaning(column)
        assert said[0] == said[0].upper()
        assert said.endswith(".")
        # it stands in a cell of a table
        assert "\n" not in said
        assert "|" not in said


@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_said_of_columns_that_are_not_there(name: str) -> None:
    table = TABLES[name]
    assert set(table.says) <= set(columns(name))
    ends = {column.rpartition("_")[0] for column in columns(name) if column.endswith("low")}
    assert set(table.intervals) <= ends
    # and nothing is said twice
    assert not {column for column, said in table.says.items() if said == COMMON.get(column)}


def test_every_common_column_is_in_several_tables() -> None:
    for column in COMMON:
        assert sum(column in columns(name) for name in TABLES) > 1, column


@pytest.mark.parametrize("name", TABLES)
def test_the_figure_of_an_interval_is_a_number_of_the_same_row(name: str) -> None:
    table, schema = TABLES[name], columns(name)
    for column in schema:
        if of := table.interval_of(column):
            assert schema[of].is_numeric(), f"{column} of {of}"


@pytest.mark.parametrize("turns", ["demo", "disturbed"])
@pytest.mark.parametrize("name", TABLES)
def test_an_interval_holds_its_figure(name: str, turns: str) -> None:
    table, rows = TABLES[name], of_set(name, turns)
    for low in (column for column in rows.columns if column.endswith("low")):
        of = table.interval_of(low)
        if not of:
            continue
        high = f"{low.removesuffix('low')}high"
        outside = rows.filter(
            (pl.col(low) > pl.col(of) + LIKE) | (pl.col(high) < pl.col(of) - LIKE)
        )
        assert outside.is_empty(), outside.select(low, of, high)
        # bounds come in pairs, and none stands without its figure
        assert rows.filter(pl.col(low).is_not_null(), pl.col(of).is_null()).is_empty()


@cache
def turns_of(name: str) -> pl.DataFrame:
    return SETS[name]()


@cache
def of_set(name: str, turns: str) -> pl.DataFrame:
    return TABLES[name](turns_of(turns))
