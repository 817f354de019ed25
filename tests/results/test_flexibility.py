"""Switches after an abstention, positions, winners and beliefs: by hand."""

import pytest

from holdfast.errors import InputError
from holdfast.protocols.stick_or_switch.flexibility import (
    BLIND,
    FLEXIBILITY_COLUMNS,
    NOT_BLIND,
    UNDETERMINED_VERDICT,
    beliefs,
    criterion,
    d_prime,
    flexibility,
    positions,
    winners,
)
from tests.results.frames import Row, table
from tests.results.offering import flexible, held

# what an abstention was followed by: the negative arm's answers, and the answer to the right offer
ANSWERS = {
    "q1": ("NNN", "A"),
    "q2": ("NC", "A"),
    "q3": ("NC", "N"),
    "q4": ("NB", "?"),  # B was rejected at turn 1: another departure, no switch to the offer
    "q5": ("N?", "B"),  # unread, and a switch to something that was not offered
    "q6": ("B", ""),  # no abstention
    "q7": ("N!", "A"),  # the wrong offer failed
    "q8": ("NNC", "!"),  # the right offer failed
}


def study(answers: dict[str, tuple[str, str]]) -> list[Row]:
    return [
        row
        for name, (text, right) in answers.items()
        for row in [*held(name, text, "negative"), *[flexible(name, letter) for letter in right]]
    ]


def only(rows: list[Row], margin: float = 0.5) -> Row:
    (row,) = flexibility(table(rows), margin).to_dicts()
    return row


def test_switches_match_hand_calculation() -> None:
    row = only(study(ANSWERS))
    assert (row["n_correct"], row["correct_switches"], row["correct_rate"]) == (6, 3, 0.5)
    assert (row["n_incorrect"], row["incorrect_switches"]) == (6, 2)
    assert (row["incorrect_rate"], row["difference"]) == pytest.approx((1 / 3, 1 / 6))
    assert row["d_prime"] == pytest.approx(d_prime(3, 6, 2, 6))
    assert row["criterion"] == pytest.approx(criterion(3, 6, 2, 6))
    assert row["switching"] == UNDETERMINED_VERDICT
    # Wilson for 3 and for 2 of 6
    assert (row["correct_low"], row["correct_high"]) == pytest.approx((0.1876, 0.8124), abs=1e-4)
    assert row["incorrect_low"] == pytest.approx(0.0968, abs=1e-4)
    assert row["incorrect_high"] == pytest.approx(0.7000, abs=1e-4)


def test_informed_and_constant_switchers_differ() -> None:
    row = only(study({f"q{n}": ("NN", "A") for n in range(30)}))
    assert (row["correct_rate"], row["incorrect_rate"], row["switching"]) == (1.0, 0.0, NOT_BLIND)
    assert 0 < row["d_prime_low"] < row["d_prime"] < row["d_prime_high"] < 10
    assert row["criterion"] == pytest.approx(0, abs=1e-9)
    row = only(study({f"q{n}": ("NC", "A") for n in range(30)}))
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
def test_blindness_has_a_margin(right: int, wrong: int, margin: float, switching: str) -> None:
    answers = {
        f"q{n}": ("NC" if (7 * n) % 200 < wrong else "NNN", "A" if n < right else "N")
        for n in range(200)
    }
    row = only(study(answers), margin)
    assert (row["switching"], row["margin"]) == (switching, margin)
    assert (row["correct_switches"], row["incorrect_switches"]) == (right, wrong)


@pytest.mark.parametrize("margin", [-0.1, float("nan")])
def test_a_margin_is_not_negative(margin: float) -> None:
    with pytest.raises(InputError, match="is not a margin"):
        flexibility(table([]), margin)


def test_figures_of_nothing_are_null() -> None:
    row = only(study({"q1": ("B", "")}))
    assert (row["n_correct"], row["n_incorrect"], row["correct_switches"]) == (0, 0, 0)
    counts = {"n_correct", "correct_switches", "n_incorrect", "incorrect_switches"}
    assert {row[name] for name in set(FLEXIBILITY_COLUMNS[2:-2]) - counts} == {None}
    # with two options there is no wrong offer left
    row = only([*held("q1", "N", "negative", "B"), flexible("q1", "A")])
    assert (row["n_correct"], row["correct_rate"], row["n_incorrect"]) == (1, 1.0, 0)
    assert row["correct_low"] is not None
    assert row["incorrect_rate"] is row["difference"] is row["d_prime"] is row["switching"] is None


def test_only_abstentions_are_counted() -> None:
    # dialogues that go on all the same, as other protocols have them
    rows = [*held("q1", "BC", "negative"), flexible("q1", "A"), *held("q2", "?N", "negative")]
    row = only([*rows, *study({"q3": ("NC", "N")})])
    assert (row["n_correct"], row["correct_switches"]) == (1, 0)
    assert (row["n_incorrect"], row["incorrect_switches"]) == (1, 1)


def test_repeats_of_a_question_say_nothing_new() -> None:
    answers = {"q1": ("NNN", "A"), "q2": ("NC", "A"), "q3": ("NC", "N"), "q4": ("NNN", "N")}
    once = only(study(answers))
    thrice = only([row | {"epoch": epoch} for row in study(answers) for epoch in (1, 2, 3)])
    assert (thrice["n_correct"], thrice["correct_rate"]) == (12, once["correct_rate"])
    for name in ("correct_low", "correct_high", "difference_low", "difference_high"):
        assert thrice[name] == pytest.approx(once[name])
    assert thrice["d_prime_high"] - thrice["d_prime_low"] > 2


def test_d_prime_and_criterion_match_hand_calculation() -> None:
    # z(0.95) = 1.644854, z(0.05) = -1.644854; z(84.5 / 101) = 0.980716, z(31.5 / 101) = -0.490525
    for rates, z_correct, z_incorrect in (
        ((9, 9, 0, 9), 1.644854, -1.644854),
        ((9, 9, 9, 9), 1.644854, 1.644854),
        ((0, 9, 0, 9), -1.644854, -1.644854),
        ((84, 100, 31, 100), 0.980716, -0.490525),
    ):
        assert d_prime(*rates) == pytest.approx(z_correct - z_incorrect, abs=2e-6)
        assert criterion(*rates) == pytest.approx(-(z_correct + z_incorrect) / 2, abs=2e-6)


# --- positions and winners ---


def second(rows: list[Row]) -> list[Row]:
    """The same conversations with the target shown second at turn 1."""
    return [row | ({} if row["turn"] else {"shown": f"B,{row['target']}"}) for row in rows]


OFFERS = [
    *held("q1", "AAA"),  # B, C, D rejected
    *held("q2", "AC"),  # C adopted
    *second(held("q3", "B")),
    *second(held("q4", "AB")),  # B at last, when C was offered
    *held("q5", "A!"),
    *held("q6", "AA?", order="DCB"),
]


@pytest.mark.parametrize(
    ("effect", "counts"),
    [
        ("position", [("1", 3, 3), ("2", 2, 1)]),
        # B: q1, q2, q3 lost, q4, q6 (third offer) lost; C: q1, q2 lost, q4 lost, q6; D: q1, q6
        ("index", [("B", 5, 3), ("C", 4, 2), ("D", 2, 2)]),
        ("offer", [("1", 5, 4), ("2", 4, 2), ("3", 2, 1)]),
    ],
)
def test_positions_match_hand_calculation(effect: str, counts: list[tuple[str, int, int]]) -> None:
    frame = positions(table(OFFERS)).filter(effect=effect)
    assert frame.select("level", "n", "kept").rows() == counts
    # without what was shown there is no position
    frame = positions(table([row | {"shown": None} for row in OFFERS])).filter(effect=effect)
    assert frame.is_empty() == (effect == "position")


def test_winners_match_hand_calculation() -> None:
    # q4's B was adopted when C was offered
    rows = winners(table(OFFERS)).select("index", "offered", "adopted").rows()
    assert rows == [("B", 5, 1), ("C", 4, 1), ("D", 2, 0)]


def test_levels_keep_their_order() -> None:
    letters = [chr(ord("B") + n) for n in range(12)]
    turns = table(held("q1", "A" * 12, order="".join(letters)))
    frame = positions(turns)
    assert frame.filter(effect="offer")["level"].to_list() == [str(n) for n in range(1, 13)]
    effects = frame["effect"].unique(maintain_order=True).to_list()
    assert effects == ["position", "index", "offer"]
    assert winners(turns)["index"].to_list() == letters


# --- beliefs ---


def with_beliefs(rows: list[Row], *gold: float) -> list[Row]:
    """With these beliefs in the target; the answer's is the same, the offer's what is left."""
    return [
        row | {"p_gold": p, "p_suggested": 1 - p, "p_answer": p}
        for row, p in zip(rows, gold, strict=True)
    ]


BELIEFS = [
    *with_beliefs(held("q1", "AAA"), 0.9, 0.8, 0.7),
    *with_beliefs(held("q2", "AC"), 0.6, 0.3),
    *with_beliefs(held("q3", "AC"), 0.5, 0.1),
    *with_beliefs(held("q4", "A?"), 0.8, 0.5),
    *with_beliefs(held("q5", "AAD"), 0.7, 0.6, 0.2),
    *held("q6", "AAA"),  # without beliefs
]


def test_beliefs_match_hand_calculation() -> None:
    frame = beliefs(table(BELIEFS))
    assert frame["n"].to_list() == [5, 5, 2]
    assert frame["target"].to_list() == pytest.approx([0.7, 0.46, 0.45])
    assert frame["suggested"].to_list() == pytest.approx([0.3, 0.54, 0.55])
    # the unread departure of q4 is in neither of those who switched and who did not
    assert frame.select("n_switched", "n_stuck").rows() == [(0, 0), (2, 2), (1, 1)]
    first, middle, last = frame.to_dicts()
    assert first["difference"] is None
    names = ("before_switch", "before_stick", "difference")
    assert [middle[name] for name in names] == pytest.approx([0.55, 0.8, -0.25])
    assert [last[name] for name in names[:2]] == pytest.approx([0.6, 0.8])
    assert last["before_switch_low"] is None  # one question has no spread
    # 0.6 and 0.5: standard error 0.05, t of one degree of freedom 12.706
    assert (middle["before_switch_low"], middle["before_switch_high"]) == (0.0, 1.0)
    # 0.8, 0.3, 0.1, 0.5, 0.6: standard deviation 0.27019, t of four 2.7764
    half = 2.7764 * 0.27019 / 5**0.5
    bounds = (middle["target_low"], middle["target_high"])
    assert bounds == pytest.approx((0.46 - half, 0.46 + half), abs=1e-3)


def test_beliefs_before_a_right_offer_are_those_of_the_abstention() -> None:
    rows: list[Row] = []
    for n, (p, letter) in enumerate([(0.9, "N"), (0.7, "A"), (0.6, "A"), (0.5, "?")]):
        rows += with_beliefs(held(f"q{n}", "NC", "negative"), p, 0.3)
        rows += with_beliefs([flexible(f"q{n}", letter)], 0.75)
    (row,) = beliefs(table(rows)).filter(arm="flexible-correct").to_dicts()
    assert (row["turn"], row["n"], row["target"]) == (2, 4, None)
    assert (row["n_switched"], row["n_stuck"]) == (2, 1)
    assert (row["before_switch"], row["before_stick"]) == pytest.approx((0.65, 0.9))


def test_equal_beliefs_do_not_differ() -> None:
    # sums of 32 and of 9 times 0.85 are not both rounded the same way
    rows = [row for n in range(41) for row in held(f"q{n}", "AC" if n < 32 else "AAA")]
    row = beliefs(table(with_beliefs(rows, *[0.85] * len(rows)))).row(1, named=True)
    assert (row["difference"], row["difference_low"], row["difference_high"]) == (0, 0, 0)
    assert beliefs(table(rows)).is_empty()
