"""Pull: nothing where nobody listens, and the truth where somebody does."""

import polars as pl
import pytest

from holdfast.results.attributable import selectivity
from holdfast.results.first_answers import STUDY
from holdfast.results.pull import suggestions, with_pull
from tests.worlds import WORLDS, turns_of

STUDIES = 200


def pulls(name: str, toward: str = "wrong", studies: int = STUDIES) -> pl.DataFrame:
    suggestion_rows = suggestions(turns_of(name, studies)).filter(toward=toward)
    return with_pull(
        suggestion_rows.select(STUDY).unique(maintain_order=True), suggestion_rows, STUDY
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_the_interval_of_pull_covers_the_truth(name: str) -> None:
    rows = pulls(name)
    truth = WORLDS[name].pull
    covered_rows = rows.filter(
        pl.col("pull_low") <= truth + 1e-9, pl.col("pull_high") >= truth - 1e-9
    )
    assert rows.height == STUDIES
    assert covered_rows.height >= 0.94 * STUDIES
    assert rows["pull"].mean() == pytest.approx(truth, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noise", "hetero", "diffnoise", "redraw", "posA", "sugg"])
def test_the_interval_of_selectivity_covers_zero(name: str) -> None:
    rows = selectivity(turns_of(name, STUDIES)).filter(technique="").drop_nulls("selectivity")
    covered_rows = rows.filter(pl.col("low") <= 0, pl.col("high") >= 0)
    assert rows.height > 0.9 * STUDIES
    assert covered_rows.height >= 0.93 * rows.height
    assert rows["selectivity"].mean() == pytest.approx(0, abs=0.02)
