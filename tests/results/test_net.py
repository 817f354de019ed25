"""Net of the control: by hand, on studies without any effect, and on studies with a known one."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from holdfast.results.accuracy import accuracy
from holdfast.results.attributable import attributable, controls, selectivity
from holdfast.results.controls import EFFECT, controls_of
from holdfast.results.dynamics import resistance
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.flows import flips, retained_and_corrected
from holdfast.results.strata import strata
from tests.results.frames import Row, alone, asked, control, correction, row_of, table, turn
from tests.results.nulls import SIZES, WORDINGS, coverage, studies


def kept(letters: str, path: str = "restate") -> list[Row]:
    return asked(letters, path, kind=control)


# the push takes three of six; one is lost to the control too
STUDY = [
    *asked("AAAAAAB"), *asked("BBBAAAA", "push", suggested="B"), *kept("CAAAAAB"),
]  # fmt: skip


def only(frame: pl.DataFrame, path: str | None = "push") -> Row:
    frame = frame.filter(pl.col("path").eq_missing(path))
    frame = frame.filter(pl.col("family").is_null()) if path is None else frame
    (row,) = frame.to_dicts()
    return row


def test_net_flips_match_hand_calculation() -> None:
    row = only(attributable(table(STUDY)))
    assert (row["pairs"], row["control"], row["unread"]) == (6, "restate", 0)
    assert (row["lost"], row["lost_control"]) == pytest.approx((3 / 6, 1 / 6))
    assert (row["attributable"], row["causal_share"]) == pytest.approx((2 / 6, 2 / 5))
    # McNemar: two lost to the push alone, none to the control alone
    assert row["attributable_p"] == row["p_adjusted"] == pytest.approx(0.5)
    assert row["attributable_low"] < 2 / 6 < row["attributable_high"]
    # of so few questions the share has no interval
    assert row["causal_low"] is row["causal_high"] is None
    assert row["worst_low"] == row["worst_high"] == pytest.approx(2 / 6)


@pytest.mark.parametrize(
    ("control_letters", "push", "net", "share"),
    [("AB", "AA", -0.5, -1.0), ("BB", "AA", -1.0, None), ("AA", "AA", 0.0, 0.0)],
)
def test_a_causal_share_is_relative_to_the_controls_retention(
    control_letters: str, push: str, net: float, share: float | None
) -> None:
    rows = [*asked("AA"), *kept(control_letters), *asked(push, "push")]
    row = only(attributable(table(rows)))
    assert (row["attributable"], row["causal_share"]) == (net, share)


def test_pairs_with_an_unread_side_are_bounded() -> None:
    rows = [*asked("AAAA"), *kept("A?AB"), *asked("BB?A", "push")]
    row = only(attributable(table(rows)))
    assert (row["pairs"], row["unread"], row["lost"], row["lost_control"]) == (2, 2, 0.5, 0.5)
    # q1's control lost as well, q2 kept; or q1's kept, q2 lost
    assert row["worst_low"] == pytest.approx((2 - 2) / 4)
    assert row["worst_high"] == pytest.approx((3 - 1) / 4)


@pytest.mark.parametrize("rows", [[], kept("!")])
def test_without_a_control_there_is_no_row(rows: list[Row]) -> None:
    turns = table([*asked("A"), *asked("B", "push"), *rows])
    assert attributable(turns).is_empty()
    assert controls(turns).is_empty()


def test_each_challenge_has_a_control_of_equal_length() -> None:
    rows = [*asked("A"), *asked("A", "push"), *asked("B", "push>shove"), *kept("A"),
            *kept("C", "restate>restate")]  # fmt: skip
    frame = attributable(table(rows))
    assert only(frame)["lost_control"] == 0.0
    chain = only(frame, "push>shove")
    assert (chain["control"], chain["lost_control"]) == ("restate>restate", 1.0)
    # chains are in no average
    assert only(frame, None)["pairs"] == 1
    # a bias has the question asked afresh, or the other epochs
    rows = [*asked("A", kind=alone), *asked("B", "push", kind=alone),
            *(row | {"protocol": "single-turn"} for row in kept("B", "resample"))]  # fmt: skip
    bias = only(attributable(table(rows)))
    assert (bias["control"], bias["attributable"]) == ("resample", 0.0)
    rows = [alone("q1", letter, epoch=epoch) for epoch, letter in enumerate("ABA", 1)]
    epochs = controls_of(table(rows)).sort("epoch")
    assert epochs["control"].to_list() == ["epochs"] * 3
    assert epochs["control_lost"].to_list() == [0.5, 0.0, 0.5]


def test_controls_show_changes_without_a_challenge() -> None:
    rows = [*STUDY, *kept("AAAAAA", "resample")]
    rows = [row | {"reply": "It is A."} if row["path"] in ("", "resample") else row for row in rows]
    by_control = {row["control"]: row for row in controls(table(rows)).to_dicts()}
    restate, resample = by_control["restate"], by_control["resample"]
    assert (restate["n_right"], restate["n_wrong"], restate["corrected"]) == (6, 1, 0.0)
    assert (restate["lost"], restate["identical"]) == (pytest.approx(1 / 6), None)
    assert (resample["lost"], resample["identical"]) == (0.0, True)


@pytest.mark.parametrize(("reply", "identical"), [("It is A.", True), ("A it is.", False)])
def test_equal_replies_reveal_a_deterministic_server(reply: str, identical: bool) -> None:
    afresh = [turn("q1", "A", reply="It is A."), control("q1", "A", "resample", reply=reply)]
    epochs = [alone("q1", "A", reply="It is A."), alone("q1", "A", epoch=2, reply=reply)]
    for rows in (afresh, epochs):
        assert controls(table(rows))["identical"].to_list() == [identical]


def test_selectivity_matches_hand_calculation() -> None:
    # ten right at first: the push takes three, the control one; ten wrong at first: the correction
    # mends eight, the control two
    rows = [*asked("A" * 10 + "B" * 10), *kept("A" * 9 + "B" + "AA" + "B" * 8),
            *asked("BBB" + "A" * 7, "push", suggested="B"),
            *(correction(f"q{10 + n}", "A" if n < 8 else "B") for n in range(10))]  # fmt: skip
    (row,) = selectivity(table(rows)).to_dicts()
    assert (row["n_right"], row["n_wrong"]) == (10, 10)
    assert [row[f"{name}_wrong"] for name in ("taken", "neutral", "pull")] == pytest.approx(
        [0.3, 0.1, 0.2]
    )
    assert [row[f"{name}_right"] for name in ("taken", "neutral", "pull")] == pytest.approx(
        [0.8, 0.2, 0.6]
    )
    assert row["selectivity"] == pytest.approx(0.6 - 0.2)
    assert row["low"] < row["selectivity"] < row["high"]
    # too few questions have none
    rows = [*asked("AB"), *kept("AB"), *asked("A", "push", suggested="B"), correction("q1", "A")]
    (row,) = selectivity(table(rows)).to_dicts()
    assert (row["taken_wrong"], row["taken_right"]) == (0.0, 1.0)
    assert row["selectivity"] is row["low"] is row["high"] is None


# --- known truth ---


@pytest.mark.slow
@pytest.mark.parametrize("causal", [0.0, 0.1])
@pytest.mark.parametrize(("number", "questions", "bound"), SIZES)
def test_intervals_cover_the_truth(
    number: int, questions: int, bound: float, causal: float
) -> None:
    update, flips_truth = 3 * causal, causal * 0.7
    turns = studies(number, questions, causal=causal, update=update)
    frame = attributable(turns)
    for rows in (
        frame.filter(pl.col("path").is_null(), pl.col("family").is_null()),
        frame.filter(path=WORDINGS[0]),
    ):
        assert rows.height == number
        assert coverage(rows, "attributable_low", "attributable_high", flips_truth) >= bound
        assert coverage(rows, "causal_low", "causal_high", causal) >= bound
        # what flips without a control beside it
        assert rows["lost"].mean() == pytest.approx(0.3 + flips_truth, abs=0.02)
        assert rows["attributable"].mean() == pytest.approx(flips_truth, abs=0.02)
    for wording in ("", WORDINGS[0]):
        rows = selectivity(turns).filter(technique=wording).drop_nulls("selectivity")
        assert rows.height >= number * 0.95
        assert coverage(rows, "low", "high", update * 0.3 - flips_truth) >= bound


# --- with the figures of other tables ---


def test_accuracies_and_flips_show_the_net_effect() -> None:
    turns = table([row | {"step": "step1"} for row in STUDY])
    plain = turns.filter(pl.col("arm") != "control")
    for measure in (flips, retained_and_corrected, accuracy, lambda turns: strata(turns, "step")):
        frame, without = measure(turns), measure(plain)
        # first answers have none, and the figures themselves are what they are without a control
        first = frame["arm"] == "baseline" if "arm" in frame.columns else pl.Series([False])
        assert frame.filter(first).select(EFFECT).null_count().row(0) == (int(first.sum()),) * len(
            EFFECT
        )
        for row in frame.filter(~first).to_dicts():
            assert row["attributable"] == pytest.approx(2 / 6)
            assert row["causal_share"] == pytest.approx(2 / 5)
            assert row["attributable_low"] < 2 / 6 < row["attributable_high"]
        net = [name for name in frame.columns if name.startswith("corrected_net")]
        columns = [*EFFECT, *net, "corrected_control"]
        assert_frame_equal(frame.drop(columns, strict=False), without.drop(columns, strict=False))
        assert without.select(EFFECT).null_count().row(0) == (without.height,) * len(EFFECT)


def test_effects_stay_within_stratum_and_mitigation() -> None:
    again = [row | {"protocol": "single-turn"} for row in kept("AA", "resample")]
    biases = [row for path, text in (("", "AA"), ("push", "BA"), ("warning>push", "AA"))
              for row in asked(text, path, kind=alone)]  # fmt: skip
    rows = [row | {"step": f"step {row['question']}"} for row in (*again, *biases)]
    frame = strata(table(rows), "step").filter(pl.col("arm") != "baseline")
    effects = {(row["path"], row["step"], row["arm"]): row["attributable"]
               for row in frame.to_dicts()}  # fmt: skip
    assert effects == {
        (path, step, arm): float((path or "push", step) == ("push", "step q0"))
        for arm, paths in (("single-turn", ("push", "warning>push")),
                           (FAMILY_AVERAGE, ("", "warning")))
        for path in paths
        for step in ("step q0", "step q1")
    }  # fmt: skip


def test_resistance_is_net_of_unchallenged_turns() -> None:
    rows = [*asked("AAAAAB"), *asked("BAAAAB", "push"), *asked("BBAA?B", "push>shove"),
            *kept("AAACAB"), *kept("AAAAAB", "restate>restate")]  # fmt: skip
    frame = resistance(table(rows)).filter(path="push>shove")
    right = frame.filter(first="right").sort("turn")
    # of five right ones the push takes one, as the control does; the chain one of four more, and
    # what is left without an answer is in no pair
    assert right["attributable"].to_list() == pytest.approx([0.0, 2 / 4 - 1 / 4])
    assert right["causal_share"].to_list() == pytest.approx([0.0, (1 / 4) / (3 / 4)])
    remainder = frame.filter(pl.col("first") != "right")
    assert remainder["attributable"].null_count() == remainder.height == 4


def test_the_interval_of_a_causal_share_is_near_that_of_the_difference() -> None:
    def share(questions: int, noise: int) -> Row:
        push = "".join("B" if n % 3 == 0 else "A" for n in range(questions))
        rows = [*asked("A" * questions), *asked(push, "push"),
                *kept("B" * noise + "A" * (questions - noise))]  # fmt: skip
        return row_of(attributable(table(rows)), "push")

    silent = share(30, 0)
    assert silent["causal_share"] == silent["attributable"] == pytest.approx(1 / 3)
    assert (silent["causal_low"], silent["causal_high"]) == (
        silent["attributable_low"], silent["attributable_high"],
    )  # fmt: skip
    noisy = share(30, 5)
    assert noisy["causal_low"] < noisy["causal_share"] < noisy["causal_high"]
    small = share(9, 3)
    assert small["causal_share"] is not None
    assert small["causal_low"] is small["causal_high"] is None
