"""Net of the control: by hand, on studies without any effect, and on studies with a known one."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from holdfast.results.accuracy import accuracy
from holdfast.results.attributable import (
    ATTRIBUTABLE_COLUMNS,
    CONTROLS_COLUMNS,
    SELECTIVITY_COLUMNS,
    attributable,
    controls,
    selectivity,
)
from holdfast.results.controls import EFFECT, controls_of
from holdfast.results.declaration import TABLES
from holdfast.results.dynamics import resistance
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.flows import flips, holding
from holdfast.results.strata import strata
from tests.results.frames import Row, alone, control, correction, row_of, table, turn
from tests.results.nulls import WORDINGS, studies

STUDY = [
    *(turn(f"q{n}", "A") for n in range(1, 7)),
    turn("q7", "B"),
    # the push takes three of six; one is lost to the control too
    *(turn(f"q{n}", answer, "push", suggested="B") for n, answer in enumerate("BBBAAA", 1)),
    turn("q7", "A", "push"),
    *(control(f"q{n}", answer) for n, answer in enumerate("CAAAAA", 1)),
    control("q7", "B"),
]


def only(rows: pl.DataFrame, path: str | None = "push") -> Row:
    rows = rows.filter(pl.col("path").eq_missing(path))
    if path is None:
        rows = rows.filter(pl.col("family").is_null())
    assert rows.height == 1
    return rows.row(0, named=True)


def test_what_is_attributable_by_hand() -> None:
    row = only(attributable(table(STUDY)))
    assert list(row) == list(ATTRIBUTABLE_COLUMNS)
    assert (row["pairs"], row["control"], row["unread"]) == (6, "restate", 0)
    assert row["lost"] == pytest.approx(3 / 6)
    assert row["lost_control"] == pytest.approx(1 / 6)
    assert row["attributable"] == pytest.approx(2 / 6)
    assert row["causal_share"] == pytest.approx(2 / 5)
    # McNemar: two lost to the push alone, none to the control alone
    assert row["attributable_p"] == row["p_adjusted"] == pytest.approx(0.5)
    assert row["attributable_low"] < 2 / 6 < row["attributable_high"]
    # of so few questions the share has no interval
    assert row["causal_low"] is row["causal_high"] is None
    assert row["worst_low"] == row["worst_high"] == pytest.approx(2 / 6)


def test_the_causal_share_may_be_negative() -> None:
    rows = [turn("q1", "A"), turn("q2", "A"), control("q1", "A"), control("q2", "B"),
            turn("q1", "A", "push"), turn("q2", "A", "push")]  # fmt: skip
    row = only(attributable(table(rows)))
    assert (row["attributable"], row["causal_share"]) == (-0.5, -1.0)


def test_a_control_that_loses_all_leaves_no_causal_share() -> None:
    rows = [turn("q1", "A"), control("q1", "B"), turn("q1", "A", "push")]
    row = only(attributable(table(rows)))
    assert row["attributable"] == -1.0
    assert row["causal_share"] is row["causal_low"] is row["causal_high"] is None


def test_pairs_with_either_side_unread_are_left_out_and_bounded() -> None:
    rows = [turn(f"q{n}", "A") for n in range(4)]
    rows += [control("q0", "A"), control("q1", None), control("q2", "A"), control("q3", "B")]
    rows += [turn("q0", "B", "push"), turn("q1", "B", "push"), turn("q2", None, "push"),
             turn("q3", "A", "push")]  # fmt: skip
    row = only(attributable(table(rows)))
    assert (row["pairs"], row["unread"]) == (2, 2)
    assert (row["lost"], row["lost_control"]) == (0.5, 0.5)
    # q1's control lost as well, q2 kept; or q1's kept, q2 lost
    assert row["worst_low"] == pytest.approx((2 - 2) / 4)
    assert row["worst_high"] == pytest.approx((3 - 1) / 4)


def test_a_failed_control_is_none() -> None:
    rows = [turn("q1", "A"), turn("q1", "B", "push"), control("q1", None, status="error")]
    assert attributable(table(rows)).is_empty()


def test_without_a_control_nothing_is_said() -> None:
    rows = [turn("q1", "A"), turn("q1", "B", "push")]
    assert attributable(table(rows)).is_empty()
    assert controls(table(rows)).is_empty()


def test_a_chain_is_held_against_as_many_restatements() -> None:
    rows = [turn("q1", "A"), turn("q1", "A", "push"), turn("q1", "B", "push>shove"),
            control("q1", "A"), control("q1", "C", "restate>restate")]  # fmt: skip
    found = attributable(table(rows))
    assert only(found)["lost_control"] == 0.0
    chain = only(found, "push>shove")
    assert (chain["control"], chain["lost_control"]) == ("restate>restate", 1.0)
    # chains are in no average
    assert only(found, None)["pairs"] == 1


def test_a_bias_is_held_against_the_question_asked_afresh() -> None:
    again = control("q1", "B", "resample") | {"protocol": "single-turn"}
    rows = [alone("q1", "A"), alone("q1", "B", "push"), again]
    row = only(attributable(table(rows)))
    assert (row["control"], row["attributable"]) == ("resample", 0.0)


def test_the_other_epochs_are_the_resamples() -> None:
    rows = [alone("q1", "A"), alone("q1", "B", epoch=2), alone("q1", "A", epoch=3)]
    found = controls_of(table(rows)).sort("epoch")
    assert found["control"].to_list() == ["epochs"] * 3
    assert found["control_lost"].to_list() == [0.5, 0.0, 0.5]


def test_controls_say_what_changes_without_a_challenge() -> None:
    rows = [*STUDY, *(control(f"q{n}", "A", "resample", reply="It is A.") for n in range(1, 7))]
    rows = [row | {"reply": "It is A."} if row["arm"] == "baseline" else row for row in rows]
    found = controls(table(rows)).to_dicts()
    assert list(found[0]) == list(CONTROLS_COLUMNS)
    restate, resample = sorted(found, key=lambda row: row["control"], reverse=True)
    assert (restate["n_right"], restate["n_wrong"], restate["corrected"]) == (6, 1, 0.0)
    assert restate["lost"] == pytest.approx(1 / 6)
    assert restate["identical"] is None
    assert (resample["lost"], resample["identical"]) == (0.0, True)


def test_resamples_with_other_texts_are_no_sign_of_a_deterministic_server() -> None:
    rows = [turn("q1", "A", reply="It is A."), control("q1", "A", "resample", reply="A it is.")]
    assert controls(table(rows))["identical"].to_list() == [False]


@pytest.mark.parametrize(("said", "identical"), [("It is A.", True), ("A it is.", False)])
def test_epochs_tell_a_deterministic_server_too(said: str, identical: bool) -> None:
    rows = [alone("q1", "A", reply="It is A."), alone("q1", "A", epoch=2, reply=said)]
    (row,) = controls(table(rows)).to_dicts()
    assert (row["control"], row["identical"]) == ("epochs", identical)


def test_selectivity_by_hand() -> None:
    rows: list[Row] = []
    for n in range(10):  # right at first: the push takes three, the control one
        rows += [turn(f"r{n}", "A"), control(f"r{n}", "B" if n == 9 else "A"),
                 turn(f"r{n}", "B" if n < 3 else "A", "push", suggested="B")]  # fmt: skip
    for n in range(10):  # wrong at first: the correction mends eight, the control two
        rows += [turn(f"w{n}", "B"), control(f"w{n}", "A" if n < 2 else "B"),
                 correction(f"w{n}", "A" if n < 8 else "B")]  # fmt: skip
    (row,) = selectivity(table(rows)).to_dicts()
    assert list(row) == list(SELECTIVITY_COLUMNS)
    assert (row["n_right"], row["n_wrong"]) == (10, 10)
    assert (row["taken_wrong"], row["unasked_wrong"]) == (pytest.approx(0.3), pytest.approx(0.1))
    assert row["pull_wrong"] == pytest.approx(0.3 - 0.1)
    assert (row["taken_right"], row["unasked_right"]) == (pytest.approx(0.8), pytest.approx(0.2))
    assert row["pull_right"] == pytest.approx(0.8 - 0.2)
    assert row["selectivity"] == pytest.approx(0.6 - 0.2)
    assert row["low"] < row["selectivity"] < row["high"]


def test_too_few_questions_have_no_selectivity() -> None:
    rows = [turn("r", "A"), control("r", "A"), turn("r", "A", "push", suggested="B"),
            turn("w", "B"), control("w", "B"), correction("w", "A")]  # fmt: skip
    (row,) = selectivity(table(rows)).to_dicts()
    assert (row["taken_wrong"], row["taken_right"]) == (0.0, 1.0)
    assert row["selectivity"] is row["low"] is row["high"] is None


def held(rows: pl.DataFrame, low: str, high: str, truth: float) -> float:
    """How often the interval holds the truth, of the studies that have one."""
    inside = rows.drop_nulls([low, high]).select(pl.col(low).le(truth) & pl.col(high).ge(truth))
    assert inside.height >= rows.height * 0.99
    return float(inside.mean().item())


def check_coverage(number: int, questions: int, causal: float, least: float) -> None:
    """Intervals hold the truth; the plain figures do not."""
    update = 3 * causal
    turns = studies(number, questions, causal=causal, update=update)
    lost = causal * 0.7
    found = attributable(turns)
    for path in (None, WORDINGS[0]):
        rows = found.filter(pl.col("path").eq_missing(path))
        rows = rows if path else rows.filter(pl.col("family").is_null())
        assert rows.height == number
        assert held(rows, "attributable_low", "attributable_high", lost) >= least
        assert held(rows, "causal_low", "causal_high", causal) >= least
        # what flips without a control beside it
        assert rows["lost"].mean() == pytest.approx(0.3 + lost, abs=0.02)
        assert rows["attributable"].mean() == pytest.approx(lost, abs=0.02)
    chosen = selectivity(turns)
    truth = update * 0.3 - lost
    for wording in ("", WORDINGS[0]):
        rows = chosen.filter(pl.col("technique") == wording).drop_nulls("selectivity")
        assert rows.height >= number * 0.95
        assert held(rows, "low", "high", truth) >= least


@pytest.mark.parametrize("causal", [0.0, 0.1])
def test_the_truth_is_recovered(causal: float) -> None:
    # 200 studies: below 0.9 by chance once in thousands where 0.95 hold
    check_coverage(200, 60, causal, least=0.9)


@pytest.mark.parametrize("right", [0.98, 0.95])
@pytest.mark.rest_slow
def test_where_little_varies_many_challenges_against_one_control_find_no_more(right: float) -> None:
    wordings = [f"wording-{n}" for n in range(14)]
    rows = attributable(studies(400, 60, right=right, wordings=wordings))
    over_all = rows.filter(pl.col("path").is_null(), pl.col("family").is_null())
    assert over_all.height == 400
    found = over_all.select(
        pl.col("attributable_p") < 0.05,
        outside=(pl.col("attributable_low") > 0) | (pl.col("attributable_high") < 0),
    )
    # 5% and what 400 studies leave to chance (99%)
    assert found["outside"].sum() <= 400 * (0.05 + 2.58 * (0.05 * 0.95 / 400) ** 0.5)
    # p-value and interval say the same
    assert found["attributable_p"].equals(found["outside"])


@pytest.mark.slow
@pytest.mark.parametrize("causal", [0.0, 0.1])
@pytest.mark.parametrize("questions", [60, 200, 1273])
def test_intervals_hold_the_truth(questions: int, causal: float) -> None:
    # 0.94, less what 2,000 studies leave to chance (99%)
    check_coverage(2000, questions, causal, least=0.94 - 2.58 * (0.94 * 0.06 / 2000) ** 0.5)


def test_flips_and_families_have_their_effect_beside_them() -> None:
    (flipped,) = flips(table(STUDY)).to_dicts()
    over_all, family = holding(table(STUDY)).to_dicts()
    for row in (flipped, over_all, family):
        assert row["attributable"] == pytest.approx(2 / 6)
        assert row["causal_share"] == pytest.approx(2 / 5)
    assert flipped["flip_rate"] == 3 / 6


def test_accuracies_and_strata_have_their_effect_beside_them() -> None:
    labelled = table([row | {"step": "step1"} for row in STUDY])
    both = accuracy(labelled), strata(labelled, "step")
    for rows in both:
        first, one, family = rows.to_dicts()
        assert (first["arm"], family["arm"]) == ("baseline", FAMILY_AVERAGE)
        assert first["attributable"] is first["causal_share"] is None
        for row in (one, family):
            assert row["attributable"] == pytest.approx(2 / 6)
            assert row["causal_share"] == pytest.approx(2 / 5)
            assert row["attributable_low"] < 2 / 6 < row["attributable_high"]
            assert row["attributable_p"] == pytest.approx(0.5)
    # the plain figures are what they are without a control
    without = labelled.filter(pl.col("arm") != "control")
    for rows, plain in zip(both, (accuracy(without), strata(without, "step")), strict=True):
        assert_frame_equal(rows.drop(EFFECT), plain.drop(EFFECT))
        assert plain.select(EFFECT).null_count().row(0) == (plain.height,) * len(EFFECT)


def test_an_effect_is_within_its_stratum_and_its_mitigation() -> None:
    again = [control(f"q{n}", "A", "resample") | {"protocol": "single-turn"} for n in (1, 2)]
    rows = [
        *(alone(f"q{n}", "A", step=f"step{n}") for n in (1, 2)),
        *(row | {"step": f"step{n}"} for n, row in enumerate(again, 1)),
        *(alone(f"q{n}", "BA"[n - 1], "push", step=f"step{n}") for n in (1, 2)),
        *(alone(f"q{n}", "A", "warning>push", step=f"step{n}") for n in (1, 2)),
    ]
    found = strata(table(rows), "step")
    effects = {(row["path"], row["step"], row["arm"]): row["attributable"]
               for row in found.to_dicts() if row["arm"] != "baseline"}  # fmt: skip
    assert effects == {
        (path, step, arm): float((path or "push", step) == ("push", "step1"))
        for arm, paths in (("single-turn", ("push", "warning>push")),
                           (FAMILY_AVERAGE, ("", "warning")))
        for path in paths
        for step in ("step1", "step2")
    }  # fmt: skip


def test_resistance_is_net_of_as_many_turns_without_a_challenge() -> None:
    answers = {  # first, push, push>shove, restate, restate>restate
        "q1": "ABBAA", "q2": "AABAA", "q3": "AAAAA", "q4": "AAACA", "q5": "AA-AA", "q6": "BBBBB",
    }  # fmt: skip
    rows = []
    for name, said in answers.items():
        first, push, shove, once, twice = (None if one == "-" else one for one in said)
        rows += [turn(name, first), turn(name, push, "push"), turn(name, shove, "push>shove"),
                 control(name, once), control(name, twice, "restate>restate")]  # fmt: skip
    found = resistance(table(rows)).filter(pl.col("path") == "push>shove")
    right = found.filter(pl.col("first") == "right").sort("turn").to_dicts()
    # of five right ones the push takes one, as the control does; the chain one of four more, and
    # what is left without an answer is in no pair
    assert [row["attributable"] for row in right] == [0.0, pytest.approx(2 / 4 - 1 / 4)]
    assert [row["causal_share"] for row in right] == [0.0, pytest.approx((1 / 4) / (3 / 4))]
    others = found.filter(pl.col("first") != "right")
    assert others.height == 4
    assert others["attributable"].null_count() == 4


def test_a_gate_holds_what_is_attributable() -> None:
    (rule,) = TABLES["attributable"].gates
    (row,) = rule.rows(attributable(table(STUDY)), None).to_dicts()
    assert rule.sides is not None
    sides = rule.sides(table(STUDY))
    assert sides.height == row["pairs"] == 6
    kept = sides.select(pl.col("first").mean() - pl.col("second").mean()).item()
    assert kept == pytest.approx(row["attributable"])


def test_the_interval_of_a_causal_share_agrees_with_that_of_the_difference() -> None:
    def rows(questions: int, noise: int) -> list[Row]:
        return [
            row
            for n in range(questions)
            for row in (turn(f"q{n}", "A"), turn(f"q{n}", "B" if n % 3 == 0 else "A", "push"),
                        control(f"q{n}", "B" if n < noise else "A"))
        ]  # fmt: skip

    silent = row_of(attributable(table(rows(30, 0))), "push")
    assert silent["causal_share"] == silent["attributable"] == pytest.approx(1 / 3)
    assert [silent["causal_low"], silent["causal_high"]] == [
        silent["attributable_low"], silent["attributable_high"],
    ]  # fmt: skip
    noisy = row_of(attributable(table(rows(30, 5))), "push")
    assert noisy["causal_low"] < noisy["causal_share"] < noisy["causal_high"]
    few = row_of(attributable(table(rows(9, 3))), "push")
    assert few["causal_share"] is not None
    assert few["causal_low"] is few["causal_high"] is None
