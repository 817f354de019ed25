"""Differences between models: chance where there is none, and the family where there is one."""

import numpy as np
import polars as pl
import pytest

from holdfast.results.comparison import compare
from holdfast.results.differences import family_differences, mean_ranks
from tests.worlds import turns_of

STUDIES = 200


def differences(turns: pl.DataFrame) -> pl.DataFrame:
    return family_differences(turns.with_columns(run=pl.col("model")))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noise", "hetero", "sugg", "refuse"])
def test_equal_models_rarely_differ_significantly(name: str) -> None:
    turns = turns_of(name, 2 * STUDIES)
    number = pl.col("model").str.slice(1).cast(pl.Int64)
    # every two models are a study of the same questions
    turns = turns.with_columns(dataset=pl.format("d{}", number // 2))
    rows = differences(turns)
    assert rows["dataset"].n_unique() == STUDIES
    assert rows.height == 3 * STUDIES
    real = rows.filter(pl.col("p_adjusted") < 0.05)["dataset"].n_unique()
    assert real <= 0.09 * STUDIES
    holds = rows.filter(pl.col("low") <= 0, pl.col("high") >= 0)
    assert holds.height >= 0.93 * rows.height


def test_a_difference_in_one_family_is_found_there() -> None:
    holds, gives = (turns_of("ceiling").with_columns(model=pl.lit(name)) for name in "ab")
    falls = (pl.col("model") == "b") & (pl.col("family") == "inc_letter")
    odd = pl.col("question").str.slice(1).cast(pl.Int64) % 2 == 1
    right = pl.when(falls & odd).then(pl.lit(value=False)).otherwise("correct")
    rows = differences(pl.concat([holds, gives]).with_columns(correct=right))
    by_family = {row["family"]: row for row in rows.to_dicts()}
    assert by_family["inc_letter"]["difference"] == pytest.approx(0.5)
    assert (by_family["inc_letter"]["model"], by_family["inc_letter"]["other_model"]) == ("a", "b")
    assert by_family["inc_letter"]["p_adjusted"] < 1e-6
    assert by_family["inc_letter"]["low"] < 0.5 < by_family["inc_letter"]["high"]
    assert by_family["rethink"]["difference"] == 0.0
    assert by_family["rethink"]["p_adjusted"] == 1.0
    assert by_family[None]["difference"] == pytest.approx(0.25)


DROPS = ("drop", "net")


def compared(name: str, studies: int, falls: float = 0.0) -> pl.DataFrame:
    """A server against itself, a data set for each study; B loses some answers to any letter."""
    pair = turns_of(name, studies, epochs=2).with_columns(
        dataset=pl.col("model").str.replace("m", "d")
    )
    a, b = (
        pair.filter(epoch=epoch).with_columns(
            epoch=pl.lit(1, pl.Int64), run=pl.lit(run), model=pl.lit(run)
        )
        for epoch, run in ((1, "a"), (2, "b"))
    )
    losses = pl.col("family").eq("inc_letter") & pl.Series(
        np.random.default_rng(3).random(b.height) < falls
    )
    b = b.with_columns(
        correct=pl.when(losses).then(pl.lit(value=False)).otherwise("correct"),
        answer=pl.when(losses).then("suggested").otherwise("answer"),
    )
    rows = compare(a, b).rows
    return rows.filter((pl.col("arm") == "family-average") | (pl.col("arm") == "followup"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sugg", "noise", "hetero"])
def test_of_equal_models_neither_drops_more(name: str) -> None:
    rows = compared(name, STUDIES)
    for kind in DROPS:
        bounded_rows = rows.drop_nulls(f"{kind}_low")
        assert bounded_rows.height == rows.height
        holds = bounded_rows.filter(pl.col(f"{kind}_low") <= 0, pl.col(f"{kind}_high") >= 0)
        assert holds.height >= 0.93 * bounded_rows.height


@pytest.mark.slow
def test_a_larger_drop_is_seen_net_of_first_answers_and_controls() -> None:
    # seven in ten are right, and of these a third is lost
    rows = compared("noise", 40, falls=1 / 3).filter(family="inc_letter", arm="family-average")
    for kind in DROPS:
        assert rows[f"{kind}_difference"].mean() == pytest.approx(0.7 / 3, abs=0.03)
        holds = rows.filter(pl.lit(0.7 / 3).is_between(f"{kind}_low", f"{kind}_high"))
        assert holds.height >= 34


def test_below_ten_questions_nothing_is_tested() -> None:
    two = [turns_of("noise", questions=9).with_columns(model=pl.lit(name)) for name in "ab"]
    assert differences(pl.concat(two)).is_empty()


def ladder(step: float, seed: int) -> pl.DataFrame:
    """Eight models that answer at random, each so much more often right than the one before."""
    return pl.concat([
        turns_of("noise", seed=100 * seed + place)
        .with_columns(model=pl.lit(f"m{place}"), run=pl.lit(f"m{place}"),
                      correct=pl.Series(rng_right(0.45 + step * place, seed, place)))
        for place in range(8)
    ])  # fmt: skip


def rng_right(share: float, seed: int, place: int) -> list[bool]:
    rows = turns_of("noise", seed=100 * seed + place).height
    return list(np.random.default_rng([seed, place]).random(rows) < share)


@pytest.mark.slow
def test_ranks_separate_models_five_points_apart() -> None:
    width, misses, studies = 0.0, 0, 20
    for seed in range(studies):
        for row in mean_ranks(ladder(0.05, seed)).to_dicts():
            place = 8 - int(row["model"][1:])
            width += 1 + row["mean_rank_high"] - row["mean_rank_low"]
            misses += not row["mean_rank_low"] <= place <= row["mean_rank_high"]
    assert width / studies / 8 < 3.5
    assert misses <= 2


@pytest.mark.slow
def test_equal_models_share_all_ranks() -> None:
    apart = 0
    for seed in range(40):
        rows = mean_ranks(ladder(0.0, seed))
        apart += rows.select((pl.col("mean_rank_high") - pl.col("mean_rank_low") < 7).any()).item()
    assert apart <= 6
