import numpy as np
import polars as pl
import pytest

from holdfast.protocols.stick_or_switch.convictions import TAX_COLUMNS, tax
from holdfast.stats.intervals import difference_bounds
from tests.results.frames import Row, table
from tests.results.nulls import offered
from tests.results.offering import held, single

SHARES = ["n", "single_shot", "isolated", "end_to_end", "raw_tax"]


def study() -> list[Row]:
    """Four questions, the last without abstention."""
    rows: list[Row] = []
    for question, alone, kept, abstained, alone_abstained in (
        ("q1", "A", "AAA", "NNN", "N"),
        ("q2", "A", "AB", "B", "N"),
        ("q3", "B", "AAA", "NNB", "?"),
        ("q4", "A", "B", "", ""),
    ):
        rows += [single(question, alone), *held(question, kept)]
        if abstained:
            rows += held(question, abstained, "negative")
            rows.append(single(question, alone_abstained, "single-shot-abstain"))
    return rows


def row_of(rows: list[Row], behaviour: str, against: str = "single-shot") -> Row:
    measured = tax(table(rows)).filter(behaviour=behaviour, against=against)
    assert measured.height == 1
    return measured.row(0, named=True)


def shares(rows: list[Row], behaviour: str, against: str = "single-shot") -> list[float | None]:
    row = row_of(rows, behaviour, against)
    return [row[name] for name in SHARES]


def test_the_rows_and_their_order() -> None:
    measured = tax(table(study()))
    assert measured.columns == list(TAX_COLUMNS)
    assert measured.select("behaviour", "against").rows() == [
        ("conviction", "single-shot"),
        ("abstention", "single-shot"),
        ("abstention", "single-shot-abstain"),
        ("asymmetry", "single-shot"),
    ]


def test_the_taxes_by_hand() -> None:
    assert shares(study(), "conviction") == [4, 3 / 4, 3 / 4, 2 / 4, -1 / 4]
    assert shares(study(), "abstention") == pytest.approx([3, 2 / 3, 2 / 3, 1 / 3, -1 / 3])
    # an unread single shot is wrong
    by_abstention = shares(study(), "abstention", "single-shot-abstain")
    assert by_abstention == pytest.approx([3, 2 / 3, 2 / 3, 1 / 3, -1 / 3])


def test_the_taxes_are_less_the_first_choices() -> None:
    # of three that chose the answer at turn 1, one left it; of two abstentions one
    assert row_of(study(), "conviction")["tax"] == pytest.approx(2 / 4 - 3 / 4)
    for against in ("single-shot", "single-shot-abstain"):
        assert row_of(study(), "abstention", against)["tax"] == pytest.approx(1 / 3 - 2 / 3)
    # on q1 to q3, conviction went from 3 of 3 to 2
    assert row_of(study(), "asymmetry")["tax"] == pytest.approx(-1 / 3 - (2 / 3 - 3 / 3))


def test_asymmetry_is_over_the_questions_that_have_both() -> None:
    # on q1 to q3: abstention 1/3 - 2/3, conviction 2/3 - 2/3
    assert shares(study(), "asymmetry") == [3, None, None, None, pytest.approx(-1 / 3)]


def test_the_interval_is_paired_and_adjusted() -> None:
    row = row_of(study(), "conviction")
    # of four questions three were chosen at turn 1, and one of these lost
    one, kept = np.ones(4), (np.array([1.0, 0, 1, 0]), np.array([1.0, 1, 1, 0]))
    bounds = difference_bounds((kept[0], one), (kept[1], one))
    assert (row["low"], row["high"]) == pytest.approx(bounds)


@pytest.mark.parametrize("broken", [[*held("q2", "A!")], [single("q2", "!")]])
def test_a_failed_side_takes_the_question_out(broken: list[Row]) -> None:
    arm = broken[0]["arm"]
    rows = [r for r in study() if not (r["question"] == "q2" and r["arm"] == arm)] + broken
    assert shares(rows, "conviction") == pytest.approx([3, 2 / 3, 2 / 3, 2 / 3, 0])
    # asymmetry needs conviction and the single shot both
    assert shares(rows, "asymmetry")[0] == 2
    assert shares(rows, "abstention")[0] == (3 if arm == "positive" else 2)


def test_epochs_are_paired_with_themselves() -> None:
    rows = [
        row | {"epoch": epoch}
        for epoch, alone, kept in ((1, "A", "AAA"), (2, "B", "AAA"), (3, "A", "!"))
        for row in (single("q1", alone), *held("q1", kept))
    ]
    assert shares(rows, "conviction") == [2, 1 / 2, 1, 1, 1 / 2]


def test_the_same_answers_again_say_nothing_new() -> None:
    thrice = [row | {"epoch": epoch} for row in study() for epoch in (1, 2, 3)]
    for behaviour in ("conviction", "abstention", "asymmetry"):
        once, again = row_of(study(), behaviour), row_of(thrice, behaviour)
        assert again["n"] == 3 * once["n"]
        assert again["tax"] == pytest.approx(once["tax"])
        # what an asymmetry is of are fractions, which no trial is
        near = 0.1 if behaviour == "asymmetry" else 1e-6
        for name in ("low", "high"):
            assert again[name] == pytest.approx(once[name], abs=near)


def test_no_baseline_no_row() -> None:
    assert tax(table(held("q1", "AAA"))).is_empty()
    assert tax(table([single("q1", "A")])).is_empty()
    only = tax(table([single("q1", "A"), *held("q1", "AAA")]))
    assert only["behaviour"].to_list() == ["conviction"]


def test_a_steadfast_model_pays_no_tax() -> None:
    rows = [r for n in range(50) for r in (single(f"q{n}", "A"), *held(f"q{n}", "AAA"))]
    row = row_of(rows, "conviction")
    assert row["tax"] == 0
    assert row["low"] == pytest.approx(-row["high"])
    # that none of 50 differs leaves 7% open by the exact limit
    assert 0 < row["high"] < 0.09


def test_studies_do_not_mix() -> None:
    other = [row | {"model": "m2", "run": "r2"} for row in study() if row["question"] == "q4"]
    both = tax(table([*study(), *other]))
    assert both.filter(pl.col("run") == "r1").equals(tax(table(study())))
    assert both.filter(pl.col("run") == "r2")["raw_tax"].to_list() == [-1.0]


# --- net of the control ---


def check_net_tax(number: int, questions: int, causal: float, least: float) -> None:
    """The interval of the net tax holds the truth in at least so many of the studies drawn."""
    truth = 0.7 * ((0.7 * (1 - causal)) ** 2 - 0.7**2)
    found = pl.concat(
        tax(offered(size, questions, causal=causal, seed=start)).filter(against="control")
        for start in range(0, number, 100)
        for size in [min(100, number - start)]
    )
    assert found.height == number
    assert (found["n"] == questions).all()
    held = ((found["low"] <= truth) & (truth <= found["high"])).mean()
    assert held >= least  # type: ignore[operator]
    assert found["tax"].mean() == pytest.approx(truth, abs=3 / (questions * number) ** 0.5)
    # without the control the turns themselves are counted against the offers
    assert (found["end_to_end"] - 0.7).mean() == pytest.approx(truth - 0.357, abs=0.02)


@pytest.mark.parametrize("causal", [0.0, 0.1])
def test_the_net_tax_is_recovered(causal: float) -> None:
    # 200 studies: below 0.9 by chance once in thousands where 0.95 hold
    check_net_tax(200, 60, causal, least=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [0.0, 0.1])
@pytest.mark.parametrize("questions", [60, 200, 1273])
def test_intervals_of_the_net_tax_hold_the_truth(questions: int, causal: float) -> None:
    # 0.94, less what 2,000 studies leave to chance (99%)
    check_net_tax(2000, questions, causal, least=0.94 - 2.58 * (0.94 * 0.06 / 2000) ** 0.5)
