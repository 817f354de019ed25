"""Wrong first answers that become right: by chance, and by what is said."""

import numpy as np
import polars as pl
import pytest

from holdfast.results.flows import retained_and_corrected
from tests.worlds import turns_of

STUDIES = 200


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ["noise", "hetero", "diffnoise", "floor"])
def test_corrections_by_chance_do_not_count(name: str) -> None:
    rows = retained_and_corrected(turns_of(name, STUDIES)).filter(pl.col("family").is_null())
    assert rows.height == STUDIES
    # plainly counted, many of the wrong ones became right
    assert rows["corrected_share"].mean() > 0.2  # type: ignore[operator]
    holds = rows.filter(pl.col("corrected_net_low") <= 0, pl.col("corrected_net_high") >= 0)
    assert holds.height >= 0.93 * STUDIES
    assert rows["corrected_net"].mean() == pytest.approx(0, abs=0.02)


def test_corrections_beyond_chance_are_recovered() -> None:
    turns = turns_of("noise", STUDIES)
    # of the replies that would be wrong, a third is right
    mended_rows = (pl.col("arm") == "followup") & pl.Series(
        np.random.default_rng(5).random(turns.height) < 1 / 3
    )
    turns = turns.with_columns(
        correct=pl.col("correct") | mended_rows,
        answer=pl.when(mended_rows).then("gold").otherwise("answer"),
    )
    rows = retained_and_corrected(turns).filter(pl.col("family").is_null())
    truth = (1 - 0.7) / 3
    assert rows["corrected_net"].mean() == pytest.approx(truth, abs=0.02)
    holds = rows.filter(pl.lit(truth).is_between("corrected_net_low", "corrected_net_high"))
    assert holds.height >= 0.9 * STUDIES
