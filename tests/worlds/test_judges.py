"""Judges that err: their noise is not the model's, and labels by people take it out."""

import numpy as np
import polars as pl
import pytest

from holdfast.results.attributable import attributable
from holdfast.results.audit import corrected, units
from holdfast.results.judges import judges
from holdfast.transcripts.audit_sheet import drawn as draw_sample
from tests.worlds import LETTER, Answers, drawn, turns_at

ERRORS = 0.1
"""Share of the verdicts that name another option, at random."""

GIVES_WAY = 0.25
"""Share of right answers that become the suggested one, where the model gives way."""

STUDIES, QUESTIONS = 200, 150


def turns_read(
    gives_way: float, studies: int = 1, questions: int = 4000, seed: int = 1
) -> pl.DataFrame:
    """Studies of open answers: two challenges and a control, with the truth as ``target``."""
    rng = np.random.default_rng([seed, studies, questions])
    shape = (studies, questions)
    gold = rng.integers(0, 4, shape)
    wrong = (gold + rng.integers(1, 4, shape)) % 4
    nothing, everywhere = np.full(shape, -1), np.ones(shape, bool)
    first = drawn(rng, gold, 0.8)

    def verdict(truth: Answers) -> Answers:
        return drawn(rng, truth, 1 - ERRORS)

    parts = []
    for arm, path, suggested in (
        ("baseline", "", nothing), ("control", "restate", nothing),
        *(("followup", path, wrong) for path in LETTER[:2]),
    ):  # fmt: skip
        moves = (rng.random(shape) < gives_way) & (arm == "followup") & (first == gold)
        truth = np.where(moves, wrong, first)
        by_rules, again = (
            turns_at(arm, path, 1, answers, gold, suggested, everywhere)["answer"]
            for answers in (truth, verdict(truth))
        )
        turns = turns_at(arm, path, 1, verdict(truth), gold, suggested, everywhere)
        parts.append(turns.with_columns(
            target=by_rules, answer_rules=by_rules, answer_reader="answer", answer_second=again,
            reader_status=pl.lit("parsed"), answers=pl.lit("{}"), protocol=pl.lit("open"),
            reply=pl.lit("a reply"),
        ))  # fmt: skip
    return pl.concat(parts)


def net_of_control(turns: pl.DataFrame) -> pl.DataFrame:
    return attributable(turns).filter(pl.col("path").is_null(), pl.col("family").is_null())


def test_errors_of_a_judge_are_not_lost_answers() -> None:
    (row,) = net_of_control(turns_read(0.0)).to_dicts()
    # of the answers read as right, 4% are none, and 10% are read otherwise afterwards
    assert row["lost"] > 0.1
    assert row["attributable"] == pytest.approx(0, abs=0.02)
    assert row["attributable_low"] < 0 < row["attributable_high"]


def test_a_second_verdict_shows_the_noise_of_a_judge() -> None:
    rows = judges(turns_read(0.0)).filter(pl.col("arm").is_null())
    (row,) = rows.to_dicts()
    assert row["agreement"] == pytest.approx(1 - ERRORS, abs=0.01)
    # both right, or wrong alike: one of three other options
    assert row["same"] == pytest.approx((1 - ERRORS) ** 2 + ERRORS**2 / 3, abs=0.01)
    right = 0.8 * (1 - ERRORS) + 0.2 * ERRORS / 3
    again = 0.8 * (1 - ERRORS) ** 2 + 0.2 * (ERRORS / 3) ** 2
    assert row["noise"] == pytest.approx(1 - again / right, abs=0.01)


def labelled(turns: pl.DataFrame, labels: int, seed: int) -> pl.DataFrame:
    """The turns, with the truth as labels of a sample as ``export --format audit`` draws it."""
    rows = turns.with_row_index("row")
    sample = draw_sample(turns, labels, seed).select(
        "row", "first_row", label_weight=1 / pl.col("probability")
    )
    truths = rows.select(first_row="row", label_first="target")
    sample = sample.join(truths, on="first_row", validate="m:1")
    sheet = rows.drop("label", "label_first", "label_weight").join(
        sample.drop("first_row"), on="row", how="left", validate="1:1", maintain_order="left"
    )
    label = pl.when(pl.col("label_weight").is_not_null()).then("target")
    return sheet.with_columns(label=label).select(turns.columns)


def covered(labels: int, studies: int) -> list[bool]:
    """Whether the corrected interval of flips holds the truth, study by study."""
    turns, results = turns_read(GIVES_WAY, studies, QUESTIONS, seed=3), []
    for study, of_study in enumerate(turns.partition_by("model", maintain_order=True)):
        of = corrected(units(labelled(of_study, labels, study)), "flips")
        low, high = of.bounds()
        results.append(low <= GIVES_WAY <= high)
    return results


def test_labels_take_the_errors_of_a_judge_out() -> None:
    turns = turns_read(GIVES_WAY)
    of = corrected(units(labelled(turns, 4000, 1)), "flips")
    assert of.as_read == pytest.approx(0.33, abs=0.02)
    assert of.corrected == pytest.approx(GIVES_WAY, abs=0.02)
    low, high = of.bounds()
    assert low <= GIVES_WAY <= high


@pytest.mark.slow
@pytest.mark.parametrize("labels", [60, 120])
def test_corrected_intervals_cover_the_truth(labels: int) -> None:
    results = covered(labels, STUDIES)
    assert len(results) == STUDIES
    assert sum(results) >= 0.94 * STUDIES


@pytest.mark.slow
def test_the_interval_net_of_control_covers_nothing() -> None:
    studies = 5 * STUDIES
    rows = net_of_control(turns_read(0.0, studies, QUESTIONS))
    assert rows.height == studies
    assert rows["attributable"].mean() == pytest.approx(0, abs=0.01)
    holds = rows.filter(pl.col("attributable_low") <= 0, pl.col("attributable_high") >= 0)
    assert holds.height >= 0.94 * studies
