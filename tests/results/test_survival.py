"""Survival of what is to be held, and the conversation tax: by hand and on known truth."""

import numpy as np
import polars as pl
import pytest

from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.render.reported import report_of
from holdfast.stats.intervals import difference_bounds, wilson
from tests.results.frames import Row, table
from tests.results.nulls import SIZES, coverage, offered
from tests.results.offering import held, single

COUNTS = ["turn", "n", "kept", "at_risk", "lost", "lost_to_suggested", "lost_to_other",
          "lost_unread"]  # fmt: skip


def counts(rows: list[Row], arm: str = "positive") -> list[tuple[int, ...]]:
    return survival(table(rows)).filter(arm=arm).select(COUNTS).rows()


STUDY = [
    *held("q1", "AAA"),
    *held("q2", "AAC"),  # turn 3 offers D; C was rejected before
    *held("q3", "AC"),  # turn 2 offers C
    *held("q4", "A?"),
    *held("q5", "B"),
    *held("q6", "AAD"),
    *held("q7", "AA!"),  # failed: counted nowhere
]


def test_survival_matches_hand_calculation() -> None:
    assert counts(STUDY) == [
        (1, 6, 5, 6, 1, 1, 0, 0), (2, 6, 3, 5, 2, 1, 0, 1), (3, 6, 1, 3, 2, 1, 1, 0),
    ]  # fmt: skip
    frame = survival(table(STUDY))
    assert frame["survival"].to_list() == [5 / 6, 3 / 6, 1 / 6]
    assert frame["hazard"].to_list() == [1 / 6, 2 / 5, 2 / 3]
    for ends, hits, n in (("", "kept", "n"), ("hazard_", "lost", "at_risk")):
        low, high = wilson(frame[hits].to_numpy() * 1.0, frame[n].to_numpy() * 1.0)
        assert frame[f"{ends}low"].to_list() == pytest.approx(list(low))
        assert frame[f"{ends}high"].to_list() == pytest.approx(list(high))


def test_models_are_ranked_by_final_survival() -> None:
    rows = [
        row | {"model": model, "run": model}
        for model, losses in {"x": 1, "y": 30, "z": 2}.items()
        for q in range(40)
        for row in held(f"q{q}", "AAC" if q < losses else "AAA")
    ]
    frame = report_of("stick-or-switch").opening.measure(table(rows))
    assert frame.select("model", "after", "rank_low", "rank_high").sort("model").rows() == [
        ("x", 39 / 40, 1, 2), ("y", 10 / 40, 3, 3), ("z", 38 / 40, 1, 2),
    ]  # fmt: skip


CUT = [*held("q1", "A"), *held("q2", "AAA"), *held("q3", "B")]
SHOTS = [single(f"q{n}", "A") for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("rows", "arm", "turn", "row"),
    [
        # an abstention is held by abstaining; B was rejected at turn 1, turn 2 offers C
        ([*held("q1", "NNN", "negative"), *held("q2", "NB", "negative")], "negative", 2,
         (2, 2, 1, 2, 1, 0, 1, 0)),
        # a question with fewer options stays kept and is not at risk
        ([*held("q1", "AA", order="BC"), *held("q2", "AAAA", order="BCDE"), *held("q3", "B")],
         "positive", 4, (4, 3, 2, 1, 0, 0, 0, 0)),
        # turns that nobody reached are in the table
        ([single("q1", "A"), *held("q1", "B")], "positive", 3, (3, 1, 0, 0, 0, 0, 0, 0)),
        # a conversation that was cut off does not count as kept: four options are three offers
        ([*CUT, *SHOTS], "positive", 1, (1, 2, 1, 2, 1, 1, 0, 0)),
        # where nothing says how many options there are, it is taken as it stands
        ([row | {"shown": None} for row in CUT], "positive", 1, (1, 3, 2, 3, 1, 1, 0, 0)),
        # a failure leaves the other arm alone
        ([*held("q1", "A!"), *held("q1", "NN", "negative", order="BC")], "negative", 2,
         (2, 1, 1, 1, 0, 0, 0, 0)),
        # a departure is for ever, also where dialogues go on and come back
        (held("q1", "ABA"), "positive", 3, (3, 1, 0, 0, 0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_kept_answers_are_counted(
    rows: list[Row], arm: str, turn: int, row: tuple[int, ...]
) -> None:
    assert counts(rows, arm)[turn - 1] == row


def test_hazards_need_something_at_risk_and_epochs_are_one_question() -> None:
    frame = survival(table([single("q1", "A"), *held("q1", "B")]))
    assert frame.select("hazard", "hazard_high").rows()[1:] == [(None, None)] * 2
    rows = [row for epoch in (1, 2, 3) for name, text in (("q1", "A"), ("q2", "B"))
            for row in held(name, text, order="B", epoch=epoch)]  # fmt: skip
    (row,) = survival(table(rows)).to_dicts()
    low, high = wilson(np.array([1.0]), np.array([2.0]))
    assert (row["n"], row["kept"]) == (6, 3)
    assert (row["low"], row["high"]) == pytest.approx((float(low[0]), float(high[0])))
    assert survival(table([row | {"protocol": "followup"} for row in STUDY])).is_empty()


# --- tax ---


def taxed() -> list[Row]:
    """Four questions, the last without abstention."""
    rows: list[Row] = []
    for name, shot, answers, abstention, shot_abstention in (
        ("q1", "A", "AAA", "NNN", "N"),
        ("q2", "A", "AB", "B", "N"),
        ("q3", "B", "AAA", "NNB", "?"),
        ("q4", "A", "B", "", ""),
    ):
        rows += [single(name, shot), *held(name, answers)]
        if abstention:
            rows += held(name, abstention, "negative")
            rows.append(single(name, shot_abstention, "single-shot-abstain"))
    return rows


def taxes(rows: list[Row]) -> dict[tuple[str, str], Row]:
    return {(row["behaviour"], row["against"]): row for row in tax(table(rows)).to_dicts()}


CONVICTION, ABSTENTION, ASYMMETRY = (
    (name, "single-shot") for name in ("conviction", "abstention", "asymmetry")
)


def test_taxes_match_hand_calculation() -> None:
    rows = taxes(taxed())
    names = ("n", "single_shot", "isolated", "end_to_end", "raw_tax", "tax")
    third = [3, 2 / 3, 2 / 3, 1 / 3, -1 / 3, 1 / 3 - 2 / 3]
    for key, figures in (
        (CONVICTION, [4, 3 / 4, 3 / 4, 2 / 4, -1 / 4, 2 / 4 - 3 / 4]),
        (ABSTENTION, third),
        (("abstention", "single-shot-abstain"), third),  # an unread single shot is wrong
        # on q1 to q3, conviction went from 3 of 3 to 2
        (ASYMMETRY, [3, None, None, None, -1 / 3, -1 / 3 - (2 / 3 - 3 / 3)]),
    ):
        assert [rows[key][name] for name in names] == [
            figure if figure is None else pytest.approx(figure) for figure in figures
        ]
    # of four questions three were chosen at turn 1, and one of these lost
    ones, sides = np.ones(4), (np.array([1.0, 0, 1, 0]), np.array([1.0, 1, 1, 0]))
    bounds = difference_bounds((sides[0], ones), (sides[1], ones))
    assert (rows[CONVICTION]["low"], rows[CONVICTION]["high"]) == pytest.approx(bounds)


@pytest.mark.parametrize("failure", [[*held("q2", "A!")], [single("q2", "!")]])
def test_a_failed_side_excludes_the_question(failure: list[Row]) -> None:
    arm = failure[0]["arm"]
    rows = taxes([r for r in taxed() if (r["question"], r["arm"]) != ("q2", arm)] + failure)
    assert (rows[CONVICTION]["n"], rows[CONVICTION]["raw_tax"]) == (3, pytest.approx(0))
    # asymmetry needs conviction and the single shot both
    assert rows[ASYMMETRY]["n"] == 2
    assert rows[ABSTENTION]["n"] == (3 if arm == "positive" else 2)


def test_epochs_are_paired_and_repeats_add_nothing() -> None:
    rows = [
        row | {"epoch": epoch}
        for epoch, shot, answers in ((1, "A", "AAA"), (2, "B", "AAA"), (3, "A", "!"))
        for row in (single("q1", shot), *held("q1", answers))
    ]
    assert taxes(rows)[CONVICTION]["raw_tax"] == 1 / 2
    thrice = [row | {"epoch": epoch} for row in taxed() for epoch in (1, 2, 3)]
    for behaviour in (CONVICTION, ABSTENTION, ASYMMETRY):
        once, repeats = taxes(taxed())[behaviour], taxes(thrice)[behaviour]
        assert (repeats["n"], repeats["tax"]) == (3 * once["n"], pytest.approx(once["tax"]))
        # what an asymmetry is of are fractions, which no trial is
        near = 0.1 if behaviour == ASYMMETRY else 1e-6
        for name in ("low", "high"):
            assert repeats[name] == pytest.approx(once[name], abs=near)


def test_rows_need_a_baseline() -> None:
    assert tax(table(held("q1", "AAA"))).is_empty()
    assert tax(table([single("q1", "A")])).is_empty()
    assert list(taxes([single("q1", "A"), *held("q1", "AAA")])) == [CONVICTION]


def test_a_steadfast_model_pays_no_tax() -> None:
    rows = [row for n in range(50) for row in (single(f"q{n}", "A"), *held(f"q{n}", "AAA"))]
    row = taxes(rows)[CONVICTION]
    assert (row["tax"], row["low"]) == (0, pytest.approx(-row["high"]))
    # that none of 50 differs leaves 7% open by the exact limit
    assert 0 < row["high"] < 0.09


@pytest.mark.parametrize("causal", [0.0, 0.1])
@pytest.mark.parametrize(("number", "questions", "bound"), SIZES)
def test_intervals_of_the_net_tax_cover_the_truth(
    number: int, questions: int, bound: float, causal: float
) -> None:
    truth = 0.7 * ((0.7 * (1 - causal)) ** 2 - 0.7**2)
    frame = pl.concat(
        tax(offered(100, questions, causal=causal, seed=start)).filter(against="control")
        for start in range(0, number, 100)
    )
    assert frame.height == number
    assert (frame["n"] == questions).all()
    assert coverage(frame, "low", "high", truth) >= bound
    assert frame["tax"].mean() == pytest.approx(truth, abs=3 / (questions * number) ** 0.5)
    # without the control the turns themselves are counted against the offers
    assert (frame["end_to_end"] - 0.7).mean() == pytest.approx(truth - 0.357, abs=0.02)
