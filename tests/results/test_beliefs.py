import pytest

from holdfast.protocols.stick_or_switch.flexibility import BELIEFS_COLUMNS, beliefs
from tests.results.frames import Row, table
from tests.results.offering import flexible, held


def believed(rows: list[Row], *gold: float) -> list[Row]:
    """With these beliefs in the target; the answer's is the same, the offer's what is left."""
    return [
        row | {"p_gold": p, "p_suggested": 1 - p, "p_answer": p}
        for row, p in zip(rows, gold, strict=True)
    ]


STUDY = [
    *believed(held("q1", "AAA"), 0.9, 0.8, 0.7),
    *believed(held("q2", "AC"), 0.6, 0.3),
    *believed(held("q3", "AC"), 0.5, 0.1),
    *believed(held("q4", "A?"), 0.8, 0.5),
    *believed(held("q5", "AAD"), 0.7, 0.6, 0.2),
    *held("q6", "AAA"),  # without beliefs
]


def rows() -> list[Row]:
    frame = beliefs(table(STUDY))
    assert frame.columns == list(BELIEFS_COLUMNS)
    return frame.to_dicts()


def test_the_trajectory() -> None:
    found = [(row["turn"], row["n"], row["target"], row["suggested"]) for row in rows()]
    assert found == [
        (1, 5, pytest.approx(0.7), pytest.approx(0.3)),
        (2, 5, pytest.approx(0.46), pytest.approx(0.54)),
        (3, 2, pytest.approx(0.45), pytest.approx(0.55)),
    ]


def test_confidence_before_a_switch_and_before_none() -> None:
    first, second, third = rows()
    assert (first["n_switched"], first["n_stuck"], first["difference"]) == (0, 0, None)
    # the unread departure of q4 is in neither
    assert (second["n_switched"], second["n_stuck"]) == (2, 2)
    assert second["before_switch"] == pytest.approx(0.55)
    assert second["before_stick"] == pytest.approx(0.8)
    assert second["difference"] == pytest.approx(-0.25)
    assert (third["before_switch"], third["before_stick"]) == pytest.approx((0.6, 0.8))
    assert third["before_switch_low"] is None  # one question has no spread


def test_the_intervals_are_students() -> None:
    second = rows()[1]
    # 0.6 and 0.5: standard error 0.05, t of one degree of freedom 12.706
    assert second["before_switch_low"] == 0.0
    assert second["before_switch_high"] == 1.0
    # 0.8, 0.3, 0.1, 0.5, 0.6: standard deviation 0.27019, t of four 2.7764
    half = 2.7764 * 0.27019 / 5**0.5
    assert second["target_low"] == pytest.approx(0.46 - half, abs=1e-3)
    assert second["target_high"] == pytest.approx(0.46 + half, abs=1e-3)


def test_a_right_offer_to_an_abstention() -> None:
    study: list[Row] = []
    for n, (p, told) in enumerate([(0.9, "N"), (0.7, "A"), (0.6, "A"), (0.5, "?")]):
        study += believed(held(f"q{n}", "NC", "negative"), p, 0.3)
        study += believed([flexible(f"q{n}", told)], 0.75)
    row = beliefs(table(study)).filter(arm="flexible-correct").row(0, named=True)
    assert (row["turn"], row["n"], row["target"]) == (2, 4, None)
    assert (row["n_switched"], row["n_stuck"]) == (2, 1)
    assert row["before_switch"] == pytest.approx(0.65)
    assert row["before_stick"] == pytest.approx(0.9)


def test_equal_beliefs_do_not_differ() -> None:
    # sums of 32 and of 9 times 0.85 are not both rounded the same way
    study = [row for n in range(41) for row in held(f"q{n}", "AC" if n < 32 else "AAA")]
    row = beliefs(table(believed(study, *[0.85] * len(study)))).row(1, named=True)
    assert (row["difference"], row["difference_low"], row["difference_high"]) == (0, 0, 0)


def test_without_log_probabilities_there_is_nothing() -> None:
    assert beliefs(table(held("q1", "AAA"))).is_empty()
