"""Net of inert rewrites, and confirmed: by hand, and on studies whose truth is known."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import fisher_exact

from holdfast.protocols.medfuzz.attacks import attack_list, attack_summary, attacks
from holdfast.protocols.medfuzz.net_attacks import NET_NAMES, attack_net, with_controls
from holdfast.protocols.medfuzz.replicates import LEVEL, MEDFUZZ_ROW, confirmed, replicates
from holdfast.results.comparison import compare
from holdfast.results.controls import with_net
from tests.results.attack_nulls import attack_studies, net_turned
from tests.results.attacking import attack, confirmation_rows, control_rows, inert, tries
from tests.results.frames import Row, table
from tests.results.nulls import BOUND, coverage


def with_reask(question: str, answers: str, inert_answers: str = "AAA") -> list[Row]:
    parts = (control_rows(question, "inert", inert_answers), control_rows(question, "reask", "AAA"))
    return [*attack(question, answers), *parts[0], *parts[1]]


# the attacks turn three of four, an inert rewrite one, a re-ask none
STUDY = [
    *with_reask("q1", "AB"), *with_reask("q2", "AAB", "AB"), *with_reask("q3", "AAAB"),
    *with_reask("q4", "AAAA"), *attack("q5", "B"),
]  # fmt: skip


def net(rows: list[Row], *names: str) -> list[tuple[object, ...]]:
    return attack_net(table(rows)).select(names).rows()


def test_net_turned_answers_match_hand_calculation() -> None:
    assert net(STUDY, "k", "turned", "turned_inert", "net", "turned_reask") == [
        (1, 1 / 4, 0, 1 / 4, 0), (2, 2 / 4, 1 / 4, 1 / 4, 0), (3, 3 / 4, 1 / 4, 2 / 4, 0),
    ]  # fmt: skip
    row = attack_net(table(STUDY)).row(-1, named=True)
    assert (row["net_reask"], row["causal_share"]) == pytest.approx((3 / 4, (2 / 4) / (3 / 4)))
    # exact: two turned by the attack alone, none by the control alone
    assert row["net_p"] == pytest.approx(0.5)
    assert row["net_low"] < 0.5 < row["net_high"]
    assert row["worst_low"] == row["worst_high"] == 0.5
    assert (row["pairs"], row["unread"], row["not_attacked"]) == (4, 0, 0)


def test_missing_and_unread_controls_are_handled() -> None:
    # an attempt without a valid attack needs none
    rows = [*attack("q1", "AxAB"), *control_rows("q1", "inert", ".AA")]
    assert net(rows, "pairs", "turned", "turned_inert") == [(1, 0, 0), (1, 0, 0), (1, 1, 0)]
    # with no control where there was an attack, nothing is known from there on
    rows = [*attack("q1", "AAAB"), *control_rows("q1", "inert", "A.A")]
    assert [pairs or 0 for (pairs,) in net(rows, "pairs")] == [1, 0, 0]
    # an unread one is left out and bounded, but not behind a turn
    rows = [*attack("q1", "AAB"), *attack("q2", "AAB"), *attack("q3", "AAA"),
            *control_rows("q1", "inert", "A?"), *control_rows("q2", "inert", "B"),
            *control_rows("q3", "inert", "AA")]  # fmt: skip
    names = ("pairs", "unread", "turned", "turned_inert", "net", "worst_low", "worst_high")
    assert net(rows, *names)[1] == pytest.approx((2, 1, 0.5, 0.5, 0.0, 1 / 3 - 0.5, 2 / 3 - 0.5))


def never(question: str, *kinds: str) -> list[Row]:
    """A right first answer that none of two attempts could attack."""
    attempts = (tries(kinds, f"fuzz@{k}", question=question, epoch=1) for k in (1, 2))
    return [*attack(question, "A"), *(row for rows in attempts for row in rows)]


NOT_ATTACKED = [
    *never("q1", "refused", "refused"),
    *never("q2", "dropped", "prose", "refused", "an instruction"),
    *attack("q3", "AAB"), *control_rows("q3", "inert", "AA"),
    *attack("q4", "AAA"), *control_rows("q4", "inert", "AA"), *attack("q5", "B"),
]  # fmt: skip


def test_replicates_without_an_attack_are_an_outcome_and_a_bound() -> None:
    turns = table(NOT_ATTACKED)
    # two refusals end an attempt as four tries do
    assert replicates(turns)["outcome"].to_list() == [
        "not-attacked", "not-attacked", "succeeded", "failed", "wrong-first",
    ]  # fmt: skip
    # all of them turned, or all held; nothing turns a first answer
    names = ("accuracy", "not_attacked", "worst_low", "worst_high")
    rows = attacks(turns).select(names).rows()
    bounds = [(2 / 3, 2, 4 / 5, 4 / 5), (2 / 3, 2, 2 / 5, 4 / 5), (1 / 3, 2, 1 / 5, 3 / 5)]
    assert np.array(rows) == pytest.approx(np.array(bounds))
    (row,) = attack_summary(turns).to_dicts()
    assert (row["not_attacked"], row["failed"], row["succeeded"]) == (2, 1, 1)
    assert row["success_rate"] == 0.5
    assert row["not_attacked_reasons"] == (
        '{"refused": 6, "an instruction": 2, "dropped": 2, "prose": 2}'
    )
    columns = ("pairs", "not_attacked", "net", "worst_low", "worst_high")
    assert net(NOT_ATTACKED, *columns)[1] == (2, 2, 0.5, 0.25, 0.75)
    turns = table([*never("q1", "refused", "refused"), *never("q2", "refused", "refused")])
    row = attacks(turns).row(2, named=True)
    assert (row["replicates"], row["accuracy"], row["not_attacked"]) == (0, None, 2)
    assert (row["worst_low"], row["worst_high"]) == (0, 1)
    assert attack_summary(turns)["success_rate"].to_list() == [None]


def test_questions_attacked_on_both_sides_are_compared() -> None:
    rows = [*attack("q1", "AAB"), *attack("q2", "AAA"), *attack("q3", "AAA"), *attack("q4", "AB"),
            *never("q5", "refused", "refused")]  # fmt: skip
    second = [row | {"model": "m2", "run": "r2"} for row in rows]
    frame = compare(table(NOT_ATTACKED), table(second)).rows
    frame = frame.filter(measure="accuracy-after-attacks")
    # q1 and q2 were not attacked on one side, q5 not on the other
    assert frame.select("path", "n", "a", "b").rows() == [
        ("fuzz@0", 2, 1.0, 1.0), ("fuzz@1", 2, 1.0, 0.5), ("fuzz@2", 2, 0.5, 0.5),
    ]  # fmt: skip


def test_a_curve_has_the_length_of_the_study() -> None:
    rows = attack("q1", "AB")
    rows[0]["attempts"] = 4
    accuracies = [(0, 4, 1.0), *((k, 4, 0.0) for k in range(1, 5))]
    assert attacks(table(rows)).select("k", "attempts", "accuracy").rows() == accuracies
    # three attempts of four: it was cut off
    rows = attack("q1", "AAAA")
    rows[0]["attempts"] = 4
    assert replicates(table(rows))["outcome"].to_list() == ["unfinished"]


def test_the_curve_over_valid_attacks_leaves_out_invalid_ones() -> None:
    rows = [*attack("q1", "AB"), *attack("q2", "AB"), *attack("q3", "AAA"), *attack("q4", "AAB")]
    assert attacks(table(rows))["accuracy_valid"].to_list() == [None] * 3
    for row in rows:
        if row["arm"] == "attack" and row["answer"] == "B":
            row["valid_judged"] = {"q1": True, "q2": False, "q4": None}[row["question"]]
    frame = attacks(table(rows))
    assert frame["accuracy"].to_list() == [1.0, 0.5, 0.25]
    assert frame["accuracy_valid"].to_list() == pytest.approx([1.0, 2 / 3, 1 / 3])
    assert frame["held_valid"][2] == 3
    assert frame["valid_low"][2] < 1 / 3 < frame["valid_high"][2]


CONFIRMING = [
    *attack("q1", "AB", rewrite="one"), *confirmation_rows("q1", "BBBBBBBBBB", "AAAAAAAAAA"),
    # one turned the answer, and did so no more
    *inert("q1", *"A" * 19, "BA"),
    *attack("q2", "AB", rewrite="two"), *confirmation_rows("q2", "BBBBAAAAAA", "BBBBAAAAAA"),
    # the same attack in two replicates
    *attack("q3", "AB", rewrite="three"), *confirmation_rows("q3", "BBBBB", "AAAAA"),
    *attack("q3", "AAB", 2, rewrite="three"), *confirmation_rows("q3", "BBB?!", "AAABA", 2),
    *inert("q3", *"A" * 10), *inert("q3", *"A" * 9, "?", "BBAB", epoch=2),
    # one inert rewrite of twenty is always wrong too
    *attack("q5", "AB", rewrite="five"), *confirmation_rows("q5", "BBBBBBBBBB", "AAAAAAAAAA"),
    *inert("q5", *"A" * 19, "BBBB"),
    # most inert rewrites turn the answer too, though none for long
    *attack("q6", "AB", rewrite="six"), *confirmation_rows("q6", "BBBBBBBBBB", "AAAAAAAAAA"),
    *inert("q6", "A", "A", *["BA"] * 18),
    *attack("q4", "AAA"),
]  # fmt: skip


def test_a_lasting_attack_is_confirmed() -> None:
    turns = table(CONFIRMING)
    rows = confirmed(turns).sort("question").to_dict(as_series=False)
    counts = {
        "again": [10, 10, 8, 10, 10], "again_wrong": [10, 4, 8, 10, 10],
        "plain": [10] * 5, "plain_wrong": [0, 4, 1, 0, 0],
        "inert": [20, 0, 20, 20, 20], "inert_wrong": [1, 0, 1, 1, 18],
        "inert_lasting": [0, 0, 0, 1, 0],
        "inert_p": [1 / 21, 1, 1 / 21, 2 / 21, 1 / 21],
        "confirmed": [True, False, True, False, False],
    }  # fmt: skip
    assert {name: rows[name] for name in counts} == counts
    p = rows["confirm_p"]
    assert p[0] == pytest.approx(1 / math.comb(20, 10))
    exact = fisher_exact(np.array([[8, 0], [1, 9]]), alternative="greater").pvalue
    assert p[2] == pytest.approx(exact)
    # against the inert ones: 20 over 18, of 30 over 28
    assert p[4] == pytest.approx(190 / 435)
    # of five hypotheses, not six
    p_values = [5 / 2 * p[0], p[1], 5 / 3 * p[2], 5 / 2 * p[0], 5 / 4 * p[4]]
    assert rows["confirm_adjusted"] == pytest.approx(p_values)
    (row,) = attack_summary(turns).to_dicts()
    assert (row["succeeded"], row["different"], row["confirmed"]) == (6, 5, 2)
    assert attacks(turns).select("turned", "confirmed").rows() == [(0, 0), (5, 2), (1, 1)]
    assert attack_list(turns)["confirmed"].to_list() == [True] * 3 + [False] * 3
    # without repetitions nothing is confirmed or refuted
    turns = table([*attack("q1", "AB", rewrite="one"), *attack("q2", "AB", rewrite="two")])
    assert confirmed(turns).is_empty()
    assert attacks(turns)["confirmed"].to_list() == [None, None]
    (row,) = attack_summary(turns).to_dicts()
    assert (row["different"], row["confirmed"]) == (2, None)


# --- known truth ---


@pytest.mark.parametrize("causal", [0.0, 0.1])
@pytest.mark.parametrize(
    ("number", "questions", "replicates", "batch", "bound"),
    [
        (200, 60, 1, 200, 0.9),  # below it once in thousands
        *(pytest.param(2000, *size, BOUND, marks=pytest.mark.slow)
          for size in ((60, 5, 400), (200, 2, 200), (1273, 1, 50))),
    ],
)  # fmt: skip
def test_intervals_cover_the_truth(
    number: int, questions: int, replicates: int, batch: int, bound: float, causal: float
) -> None:
    parts = []
    for seed in range(number // batch):
        turns = attack_studies(batch, questions, causal=causal, seed=seed, replicates=replicates)
        pairs = with_controls(turns).filter(pl.col("k").is_in([1, 5]))
        keys = pairs.select(MEDFUZZ_ROW).unique(maintain_order=True)
        parts.append(with_net(keys, pairs, MEDFUZZ_ROW).rename(NET_NAMES))
    for k in (1, 5):
        frame = pl.concat(parts).filter(k=k)
        assert frame.height == number
        truth = net_turned(k, right=0.7, causal=causal)
        assert coverage(frame, "net_low", "net_high", truth) >= bound
        assert coverage(frame, "causal_low", "causal_high", 1 - (1 - causal) ** k) >= bound
        assert frame["net"].mean() == pytest.approx(truth, abs=0.02)
        # what the plain figure says is nearly all noise
        assert frame["turned"].mean() == pytest.approx(1 - (0.7 * (1 - causal)) ** k, abs=0.03)


@pytest.mark.parametrize("causal", [0.0, 0.1])
@pytest.mark.parametrize(
    ("number", "questions", "batch"),
    [(100, 60, 100), *(pytest.param(2000, *size, marks=pytest.mark.slow)
                       for size in ((60, 400), (200, 200), (1273, 50)))],
)  # fmt: skip
def test_confirmed_attacks_are_rarely_noise(
    number: int, questions: int, batch: int, causal: float
) -> None:
    """Of what is confirmed, no more than the level is false; without an effect, of studies."""
    total, with_false, shares = 0, 0, []
    for seed in range(number // batch):
        turns = attack_studies(batch, questions, causal=causal, confirm=10, seed=seed)
        acts = pl.col("rewrite").str.ends_with("true")
        rows = confirmed(turns).group_by("model").agg(
            hits=pl.col("confirmed").sum(), false=(pl.col("confirmed") & ~acts).sum()
        )  # fmt: skip
        total += int(rows["hits"].sum())
        with_false += int((rows["false"] > 0).sum())
        shares += (rows["false"] / rows["hits"].clip(1)).to_list()
    # 5%, and what chance leaves (99%)
    assert sum(shares) / number <= LEVEL + 2.58 * float(np.std(shares)) / math.sqrt(number)
    assert (total > 0) == (causal > 0 or with_false > 0)
    if not causal:
        assert with_false <= number * LEVEL + 2.58 * math.sqrt(number * LEVEL * (1 - LEVEL))
