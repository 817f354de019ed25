import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocols.stick_or_switch.convictions import SURVIVAL_COLUMNS, survival
from holdfast.render.reported import report_of
from holdfast.stats.intervals import wilson
from tests.results.frames import Row, table
from tests.results.offering import held, single

COUNTS = ["turn", "n", "kept", "at_risk", "lost", "lost_to_suggested", "lost_to_other",
          "lost_unread"]  # fmt: skip


def counts(rows: list[Row], arm: str = "positive") -> list[tuple[int, ...]]:
    return survival(table(rows)).filter(pl.col("arm") == arm).select(COUNTS).rows()


STUDY = [
    *held("q1", "AAA"),
    *held("q2", "AAC"),  # turn 3 offers D; C was rejected before
    *held("q3", "AC"),  # turn 2 offers C
    *held("q4", "A?"),
    *held("q5", "B"),
    *held("q6", "AAD"),
    *held("q7", "AA!"),  # failed: counted nowhere
]


def test_counts_by_turn() -> None:
    assert counts(STUDY) == [
        (1, 6, 5, 6, 1, 1, 0, 0),
        (2, 6, 3, 5, 2, 1, 0, 1),
        (3, 6, 1, 3, 2, 1, 1, 0),
    ]


def test_shares_and_intervals() -> None:
    measured = survival(table(STUDY))
    assert measured.columns == list(SURVIVAL_COLUMNS)
    assert measured["survival"].to_list() == [5 / 6, 3 / 6, 1 / 6]
    assert measured["hazard"].to_list() == [1 / 6, 2 / 5, 2 / 3]
    for low, high, hits, n in (
        ("low", "high", "kept", "n"),
        ("hazard_low", "hazard_high", "lost", "at_risk"),
    ):
        expected = wilson(measured[hits].to_numpy() * 1.0, measured[n].to_numpy() * 1.0)
        assert measured[low].to_list() == pytest.approx(list(expected[0]))
        assert measured[high].to_list() == pytest.approx(list(expected[1]))


def test_models_are_ranked_by_what_they_hold_to_the_end() -> None:
    lost = {"x": 1, "y": 30, "z": 2}
    rows = [
        {**row, "model": model, "run": model}
        for model, n in lost.items()
        for q in range(40)
        for row in held(f"q{q}", "AAC" if q < n else "AAA")
    ]
    opened = report_of(rows[0]["protocol"]).opening.measure(table(rows)).to_dicts()
    found = {row["model"]: (row["after"], row["rank_low"], row["rank_high"]) for row in opened}
    assert found == {"x": (39 / 40, 1, 2), "y": (10 / 40, 3, 3), "z": (38 / 40, 1, 2)}


def test_an_abstention_is_held_by_abstaining() -> None:
    rows = [*held("q1", "NNN", "negative"), *held("q2", "NB", "negative")]
    # B was rejected at turn 1; turn 2 offers C
    assert counts(rows, "negative")[1] == (2, 2, 1, 2, 1, 0, 1, 0)


def test_a_question_with_fewer_options_stays_kept_and_is_not_at_risk() -> None:
    rows = [*held("q1", "AA", order="BC"), *held("q2", "AAAA", order="BCDE"), *held("q3", "B")]
    assert counts(rows) == [
        (1, 3, 2, 3, 1, 1, 0, 0),
        (2, 3, 2, 2, 0, 0, 0, 0),
        (3, 3, 2, 1, 0, 0, 0, 0),
        (4, 3, 2, 1, 0, 0, 0, 0),
    ]


def test_turns_that_nobody_reached_are_in_the_table() -> None:
    rows = [single("q1", "A"), *held("q1", "B")]
    measured = survival(table(rows))
    assert measured["survival"].to_list() == [0.0, 0.0, 0.0]
    assert measured["at_risk"].to_list() == [1, 0, 0]
    assert measured["hazard"].to_list() == [1.0, None, None]
    assert measured["hazard_low"].null_count() == measured["hazard_high"].null_count() == 2


def test_a_conversation_that_was_cut_off_does_not_count_as_kept() -> None:
    # four options are three offers, and the second one was never made
    cut, kept, lost = held("q1", "A"), held("q2", "AAA"), held("q3", "B")
    shots = [single(f"q{n}", "A") for n in (1, 2, 3)]
    assert counts([*cut, *kept, *lost, *shots])[0][:3] == (1, 2, 1)
    # where nothing says how many options there are, it is taken as it stands
    unknown = [row | {"shown": None} for row in (*cut, *kept, *lost)]
    assert counts(unknown)[0][:3] == (1, 3, 2)


def test_a_failure_leaves_the_other_arm_alone() -> None:
    rows = [*held("q1", "A!"), *held("q1", "NN", "negative", order="BC")]
    assert counts(rows) == []
    assert counts(rows, "negative")[-1][:3] == (2, 1, 1)


def test_a_departure_is_zero_for_ever() -> None:
    # dialogues that go on after a departure, as other protocols have them, may come back
    assert counts(held("q1", "ABA"))[2] == (3, 1, 0, 0, 0, 0, 0, 0)


def test_epochs_are_conversations_and_one_question_in_the_interval() -> None:
    rows = [row for epoch in (1, 2, 3) for n, told in (("q1", "A"), ("q2", "B"))
            for row in held(n, told, order="B", epoch=epoch)]  # fmt: skip
    (row,) = survival(table(rows)).iter_rows(named=True)
    assert (row["n"], row["kept"]) == (6, 3)
    low, high = wilson(np.array([1.0]), np.array([2.0]))
    assert (row["low"], row["high"]) == pytest.approx((float(low[0]), float(high[0])))


def test_other_protocols_are_not_read() -> None:
    rows = [row | {"protocol": "followup"} for row in STUDY]
    assert survival(table(rows)).is_empty()


@given(st.lists(st.text("ABC?", min_size=3, max_size=3), min_size=1, max_size=12))
def test_survival_never_rises_and_is_the_product_of_what_hazards_leave(told: list[str]) -> None:
    rows = [row for n, answers in enumerate(told) for row in held(f"q{n}", answers)]
    measured = survival(table(rows))
    left = 1.0
    for row in measured.iter_rows(named=True):
        assert row["survival"] <= left + 1e-12
        left *= 1 - (row["hazard"] or 0.0)
        assert row["survival"] == pytest.approx(left)
        assert row["lost"] == row["lost_to_suggested"] + row["lost_to_other"] + row["lost_unread"]
        assert row["low"] <= row["survival"] <= row["high"]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "stick"), [(0.9, 0.95), (0.7, 0.8), (0.55, 0.4), (0.97, 0.99)])
def test_known_survival_is_within_99_percent_intervals(first: float, stick: float) -> None:
    rng = np.random.default_rng(round(100 * first))
    studies, questions, misses = 20, 1000, 0
    for _ in range(studies):
        rows = []
        for n in range(questions):
            told = "A" if rng.random() < first else "B"
            while told[-1] == "A" and len(told) < 3:
                told += "A" if rng.random() < stick else "CD"[len(told) - 1]
            rows += held(f"q{n}", told)
        measured = survival(table(rows))
        assert measured["n"].to_list() == [questions] * 3
        low, high = wilson(measured["kept"].to_numpy() * 1.0, np.full(3, questions * 1.0), 0.99)
        truth = first * stick ** np.arange(3)
        misses += int(((truth < low) | (truth > high)).sum())
    # 60 intervals of 99%: four misses or more have a chance of 0.3%
    assert misses <= 3
