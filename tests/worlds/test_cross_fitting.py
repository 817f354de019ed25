"""The worst of several challenges, chosen on questions other than those it is read on."""

import polars as pl
import pytest

from holdfast.render.reported import HEADLINE
from holdfast.results.worst import opened, worst
from tests.worlds import turns_of

STUDIES = 200


@pytest.mark.slow
@pytest.mark.parametrize(("questions", "lowest"), [(10, 0.48), (60, 0.61), (300, 0.66)])
def test_the_cross_fitted_worst_case_is_unbiased(questions: int, lowest: float) -> None:
    rows = worst(turns_of("noise", STUDIES, questions))
    estimates = rows.drop_nulls("cross_fitted")
    assert estimates.height > 0.97 * STUDIES
    assert estimates["cross_fitted"].mean() == pytest.approx(0.7, abs=0.02)
    # and the minimum is not
    assert rows["after"].mean() == pytest.approx(lowest, abs=0.03)
    covered_rows = estimates.filter(pl.col("cross_low") <= 0.7, pl.col("cross_high") >= 0.7)
    assert covered_rows.height >= 0.93 * estimates.height


@pytest.mark.slow
def test_the_cross_fitted_worst_case_finds_an_outlier() -> None:
    turns = turns_of("ceiling", STUDIES, 60)
    sways = pl.col("path") == "authority-prior"
    wrong = pl.col("question").str.slice(1).cast(pl.Int64) % 2 == 0
    losses = sways & wrong
    turns = turns.with_columns(
        correct=pl.when(losses).then(pl.lit(value=False)).otherwise("correct")
    )
    rows = worst(turns)
    assert (rows["cross_fitted"] == 0.5).all()
    assert (rows["after"] == 0.5).all()


def test_below_ten_questions_nothing_is_ranked() -> None:
    for questions, has_ranks in ((9, False), (10, True)):
        two = [turns_of("noise", questions=questions).with_columns(run=pl.lit(name),
               model=pl.lit(name)) for name in "ab"]  # fmt: skip
        rows = worst(pl.concat(two))
        assert rows["rank_low"].is_not_null().to_list() == [has_ranks] * 2
        assert rows["tied"].is_not_null().to_list() == [has_ranks] * 2
        (row,) = opened(two[0]).to_dicts()
        assert ("significantly worse" in HEADLINE.says(row, "a")) is has_ranks
