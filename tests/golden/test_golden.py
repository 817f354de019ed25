"""Tables keep their figures while the code of tables changes."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.golden import SETS, tables, written

LIKE = 1e-8


@pytest.mark.parametrize(
    "name", ["demo", *(pytest.param(name, marks=pytest.mark.slow) for name in list(SETS)[1:])]
)
def test_tables_have_their_golden_figures(name: str) -> None:
    reference, current = written(name), dict(tables(SETS[name]()))
    # a table that is new is written with the next change that is wanted
    assert set(reference) <= set(current)
    different = []
    for table, rows in reference.items():
        try:
            assert_frame_equal(current[table], rows, abs_tol=LIKE, rel_tol=LIKE)
        except AssertionError as error:
            different.append(f"{table}: {' '.join(str(error).split())[:300]}")
    assert not different, "\n".join(different)


def test_a_changed_figure_is_noticed() -> None:
    rows = written("demo")["accuracy"]
    variant = rows.with_columns(pl.col("accuracy") + 1e-7)
    with pytest.raises(AssertionError):
        assert_frame_equal(rows, variant, abs_tol=LIKE, rel_tol=LIKE)
