import time

import numpy as np
import pytest

from holdfast.errors import InputError
from holdfast.protocols.stick_or_switch.flexibility import (
    BLIND,
    FLEXIBILITY_COLUMNS,
    NOT_BLIND,
    UNDETERMINED_VERDICT,
    criterion,
    d_prime,
    flexibility,
    log_linear,
)
from tests.results.frames import Row, table
from tests.results.offering import flexible, held

# what an abstention was followed by: the negative arm's answers, and the answer to the right offer
TOLD = {
    "q1": ("NNN", "A"),
    "q2": ("NC", "A"),
    "q3": ("NC", "N"),
    "q4": ("NB", "?"),  # B was rejected at turn 1: another departure, no switch to the offer
    "q5": ("N?", "B"),  # unread, and a switch to something that was not offered
    "q6": ("B", ""),  # no abstention
    "q7": ("N!", "A"),  # the wrong offer failed
    "q8": ("NNC", "!"),  # the right offer failed
}


def study(told: dict[str, tuple[str, str]]) -> list[Row]:
    return [
        row
        for question, (answers, right) in told.items()
        for row in [*held(question, answers, "negative"), *[flexible(question, a) for a in right]]
    ]


def measured(rows: list[Row]) -> Row:
    frame = flexibility(table(rows))
    assert frame.columns == list(FLEXIBILITY_COLUMNS)
    assert frame.height == 1
    return frame.row(0, named=True)


def test_counts_and_rates_by_hand() -> None:
    row = measured(study(TOLD))
    assert (row["n_correct"], row["correct_switches"]) == (6, 3)
    assert (row["n_incorrect"], row["incorrect_switches"]) == (6, 2)
    assert row["correct_rate"] == 0.5
    assert row["incorrect_rate"] == pytest.approx(1 / 3)
    assert row["difference"] == pytest.approx(1 / 6)
    assert row["d_prime"] == pytest.approx(d_prime(3, 6, 2, 6))
    assert row["criterion"] == pytest.approx(criterion(3, 6, 2, 6))
    assert row["switching"] == UNDETERMINED_VERDICT


def test_the_rates_have_wilson_intervals() -> None:
    row = measured(study(TOLD))
    assert (row["correct_low"], row["correct_high"]) == pytest.approx((0.1876, 0.8124), abs=1e-4)
    assert row["incorrect_low"] == pytest.approx(0.0968, abs=1e-4)
    assert row["incorrect_high"] == pytest.approx(0.7000, abs=1e-4)


def test_an_informed_switcher_is_not_blind() -> None:
    row = measured(study({f"q{n}": ("NN", "A") for n in range(30)}))
    assert (row["correct_rate"], row["incorrect_rate"], row["switching"]) == (1.0, 0.0, NOT_BLIND)
    assert 0 < row["d_prime_low"] < row["d_prime"] < row["d_prime_high"] < 10
    assert row["criterion"] == pytest.approx(0, abs=1e-9)


def test_one_who_always_switches_is_blind_and_has_a_low_criterion() -> None:
    row = measured(study({f"q{n}": ("NC", "A") for n in range(30)}))
    assert (row["difference"], row["d_prime"], row["switching"]) == (0.0, 0.0, UNDETERMINED_VERDICT)
    assert row["criterion_high"] < 0


@pytest.mark.parametrize(
    ("right", "wrong", "margin", "switching"),
    # d' of 200 abstentions each: 0.00 [-0.23, 0.23], 0.13 [-0.12, 0.37], 0.25 [0.01, 0.49] and
    # 0.52 [0.27, 0.77]; 90% intervals are about a sixth narrower
    [(100, 100, 0.5, BLIND), (100, 100, 0.15, UNDETERMINED_VERDICT),
     (110, 100, 0.3, UNDETERMINED_VERDICT),
     (110, 100, 0.4, BLIND), (120, 100, 0.5, BLIND), (120, 100, 0.4, NOT_BLIND),
     (140, 100, 0.5, NOT_BLIND), (140, 100, 0.8, BLIND), (100, 140, 0.5, NOT_BLIND)],
)  # fmt: skip
def test_blind_is_told_within_a_margin(
    right: int, wrong: int, margin: float, switching: str
) -> None:
    rows = [
        row
        for n in range(200)
        for row in (
            *held(f"q{n}", "NC" if (7 * n) % 200 < wrong else "NNN", "negative"),
            flexible(f"q{n}", "A" if n < right else "N"),
        )
    ]
    (row,) = flexibility(table(rows), margin).to_dicts()
    assert (row["switching"], row["margin"]) == (switching, margin)
    assert (row["correct_switches"], row["incorrect_switches"]) == (right, wrong)


def test_a_margin_is_no_less_than_zero() -> None:
    for margin in (-0.1, float("nan")):
        with pytest.raises(InputError, match="is no margin"):
            flexibility(table([]), margin)


def test_what_is_not_there_is_null() -> None:
    row = measured(study({"q1": ("B", "")}))
    assert (row["n_correct"], row["n_incorrect"], row["correct_switches"]) == (0, 0, 0)
    unknown = set(FLEXIBILITY_COLUMNS[2:-2]) - {
        "n_correct", "correct_switches", "n_incorrect", "incorrect_switches",
    }  # fmt: skip
    assert all(row[name] is None for name in unknown)
    # with two options there is no wrong offer left
    row = measured([*held("q1", "N", "negative", "B"), flexible("q1", "A")])
    assert (row["n_correct"], row["correct_rate"], row["n_incorrect"]) == (1, 1.0, 0)
    assert row["correct_low"] is not None
    assert row["incorrect_rate"] is row["difference"] is row["d_prime"] is row["switching"] is None


def test_who_did_not_abstain_is_not_asked() -> None:
    # dialogues that go on all the same, as other protocols have them
    rows = [*held("q1", "BC", "negative"), flexible("q1", "A"), *held("q2", "?N", "negative")]
    row = measured([*rows, *study({"q3": ("NC", "N")})])
    assert (row["n_correct"], row["correct_switches"]) == (1, 0)
    assert (row["n_incorrect"], row["incorrect_switches"]) == (1, 1)


def test_epochs_count_and_widen_the_interval() -> None:
    told = {"q1": ("NNN", "A"), "q2": ("NC", "A"), "q3": ("NC", "N"), "q4": ("NNN", "N")}
    once = measured(study(told))
    rows = [row | {"epoch": epoch} for row in study(told) for epoch in (1, 2, 3)]
    thrice = measured(rows)
    assert thrice["n_correct"] == 12
    assert thrice["correct_rate"] == once["correct_rate"]
    # the same answers again say nothing new
    width = thrice["correct_high"] - thrice["correct_low"]
    assert width == pytest.approx(once["correct_high"] - once["correct_low"])
    for name in ("difference_low", "difference_high"):
        assert thrice[name] == pytest.approx(once[name])
    assert thrice["d_prime_high"] - thrice["d_prime_low"] > 2


def test_no_row_takes_long() -> None:
    rng = np.random.default_rng(1)
    told = {
        f"q{n}": ("NN" if rng.random() < 0.5 else "NC", "A" if rng.random() < 0.8 else "N")
        for n in range(4000)
    }
    frame = table(study(told))
    flexibility(frame)
    start = time.perf_counter()
    flexibility(frame)
    assert time.perf_counter() - start < 0.5


# --- detection ---


def test_the_log_linear_correction() -> None:
    assert log_linear(0, 9) == 0.05
    assert log_linear(9, 9) == 0.95


def test_d_prime_and_criterion_by_hand() -> None:
    # z(0.95) = 1.644854, z(0.05) = -1.644854
    assert d_prime(9, 9, 0, 9) == pytest.approx(3.289707, abs=1e-6)
    assert criterion(9, 9, 0, 9) == pytest.approx(0, abs=1e-9)
    assert d_prime(9, 9, 9, 9) == 0
    assert criterion(9, 9, 9, 9) == pytest.approx(-1.644854, abs=1e-6)
    assert criterion(0, 9, 0, 9) == pytest.approx(1.644854, abs=1e-6)
    # z(84.5 / 101) = 0.980716, z(31.5 / 101) = -0.490525
    assert d_prime(84, 100, 31, 100) == pytest.approx(0.980716 + 0.490525, abs=2e-6)
    assert criterion(84, 100, 31, 100) == pytest.approx(-(0.980716 - 0.490525) / 2, abs=2e-6)
