"""Net of inert rewrites, and confirmed: by hand, and on studies whose truth is known."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import fisher_exact

from holdfast.protocols.medfuzz.attacks import attack_list, attack_summary, attacks
from holdfast.protocols.medfuzz.net_attacks import (
    ATTACK_NET_COLUMNS,
    NET_NAMES,
    attack_net,
    with_controls,
)
from holdfast.protocols.medfuzz.replicates import LEVEL, MEDFUZZ_ROW, confirmed, fisher, replicates
from holdfast.results.comparison import compare
from holdfast.results.controls import with_net
from holdfast.results.declaration import TABLES
from tests.results.attack_nulls import attack_studies, net_turned
from tests.results.attacking import again, attack, beside, inert, tries
from tests.results.frames import Row, table

STUDY = [
    # the attacks turn three of four, an inert rewrite one, a re-ask none
    *attack("q1", "AB"), *beside("q1", "inert", "AAA"), *beside("q1", "reask", "AAA"),
    *attack("q2", "AAB"), *beside("q2", "inert", "AB"), *beside("q2", "reask", "AAA"),
    *attack("q3", "AAAB"), *beside("q3", "inert", "AAA"), *beside("q3", "reask", "AAA"),
    *attack("q4", "AAAA"), *beside("q4", "inert", "AAA"), *beside("q4", "reask", "AAA"),
    *attack("q5", "B"),
]  # fmt: skip


def by_k(rows: pl.DataFrame) -> dict[int, Row]:
    return {row["k"]: row for row in rows.iter_rows(named=True)}


def test_net_turned_by_hand() -> None:
    rows = by_k(attack_net(table(STUDY)))
    assert list(rows) == [1, 2, 3]
    assert list(rows[1]) == list(ATTACK_NET_COLUMNS)
    assert [rows[k]["turned"] for k in rows] == [1 / 4, 2 / 4, 3 / 4]
    assert [rows[k]["turned_inert"] for k in rows] == [0, 1 / 4, 1 / 4]
    assert [rows[k]["net"] for k in rows] == [1 / 4, 1 / 4, 2 / 4]
    assert [rows[k]["turned_reask"] for k in rows] == [0, 0, 0]
    assert rows[3]["net_reask"] == 3 / 4
    assert rows[3]["causal_share"] == pytest.approx((2 / 4) / (3 / 4))
    # exact: two turned by the attack alone, none by the control alone
    assert rows[3]["net_p"] == pytest.approx(0.5)
    assert rows[3]["net_low"] < 0.5 < rows[3]["net_high"]
    assert rows[3]["worst_low"] == rows[3]["worst_high"] == 0.5
    assert (rows[3]["pairs"], rows[3]["unread"], rows[3]["not_attacked"]) == (4, 0, 0)


def test_an_attempt_without_a_valid_attack_needs_no_control() -> None:
    rows = by_k(attack_net(table([*attack("q1", "AxAB"), *beside("q1", "inert", ".AA")])))
    assert [(row["pairs"], row["turned"], row["turned_inert"]) for row in rows.values()] == [
        (1, 0, 0), (1, 0, 0), (1, 1, 0),
    ]  # fmt: skip
    # with no control where there was an attack, nothing is known from there on
    rows = by_k(attack_net(table([*attack("q1", "AAAB"), *beside("q1", "inert", "A.A")])))
    assert [row["pairs"] or 0 for row in rows.values()] == [1, 0, 0]


def test_an_unread_control_is_left_out_and_bounded_but_not_behind_a_turn() -> None:
    rows = [
        *attack("q1", "AAB"), *beside("q1", "inert", "A?"),
        *attack("q2", "AAB"), *beside("q2", "inert", "B"),
        *attack("q3", "AAA"), *beside("q3", "inert", "AA"),
    ]  # fmt: skip
    last = by_k(attack_net(table(rows)))[2]
    assert (last["pairs"], last["unread"]) == (2, 1)
    assert (last["turned"], last["turned_inert"], last["net"]) == (0.5, 0.5, 0.0)
    assert last["worst_low"] == pytest.approx(1 / 3 - 0.5)
    assert last["worst_high"] == pytest.approx(2 / 3 - 0.5)


def never(question: str, *kinds: str, attempts: int = 2) -> list[Row]:
    """A right first answer that no attempt could attack."""
    rows = attack(question, "A")
    for k in range(1, attempts + 1):
        rows += tries(kinds, f"fuzz@{k}", question=question, epoch=1)
    return rows


NOT_ATTACKED = [
    *never("q1", "refused", "refused"),
    *never("q2", "dropped", "prose", "refused", "an instruction"),
    *attack("q3", "AAB"), *beside("q3", "inert", "AA"),
    *attack("q4", "AAA"), *beside("q4", "inert", "AA"),
    *attack("q5", "B"),
]  # fmt: skip


def test_what_was_never_attacked_is_an_outcome_of_its_own_and_a_bound() -> None:
    turns = table(NOT_ATTACKED)
    outcomes = dict(replicates(turns).select("question", "outcome").iter_rows())
    # two refusals end an attempt as four tries do
    assert outcomes == {
        "q1": "not-attacked", "q2": "not-attacked", "q3": "succeeded", "q4": "failed",
        "q5": "wrong-first",
    }  # fmt: skip
    rows = by_k(attacks(turns))
    assert [row["accuracy"] for row in rows.values()] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert [row["not_attacked"] for row in rows.values()] == [2, 2, 2]
    # all of them turned, or all held; nothing turns a first answer
    assert [row["worst_low"] for row in rows.values()] == pytest.approx([4 / 5, 2 / 5, 1 / 5])
    assert [row["worst_high"] for row in rows.values()] == pytest.approx([4 / 5, 4 / 5, 3 / 5])
    (summary,) = attack_summary(turns).iter_rows(named=True)
    assert (summary["not_attacked"], summary["failed"], summary["succeeded"]) == (2, 1, 1)
    assert summary["success_rate"] == 0.5
    assert summary["not_attacked_reasons"] == (
        '{"refused": 6, "an instruction": 2, "dropped": 2, "prose": 2}'
    )
    net = by_k(attack_net(turns))[2]
    assert (net["pairs"], net["not_attacked"], net["net"]) == (2, 2, 0.5)
    assert (net["worst_low"], net["worst_high"]) == (0.25, 0.75)


def test_a_study_in_which_nothing_could_be_attacked_is_told_of() -> None:
    turns = table([*never("q1", "refused", "refused"), *never("q2", "refused", "refused")])
    row = by_k(attacks(turns))[2]
    assert (row["replicates"], row["accuracy"], row["not_attacked"]) == (0, None, 2)
    assert (row["worst_low"], row["worst_high"]) == (0, 1)
    assert attack_summary(turns)["success_rate"].to_list() == [None]


def test_questions_attacked_on_both_sides_are_compared() -> None:
    other = [row | {"model": "m2", "run": "r2"} for row in [
        *attack("q1", "AAB"), *attack("q2", "AAA"), *attack("q3", "AAA"), *attack("q4", "AB"),
        *attack("q5", "A"), *never("q5", "refused", "refused")[1:],
    ]]  # fmt: skip
    found = compare(table(NOT_ATTACKED), table(other)).rows
    rows = found.filter(pl.col("measure") == "accuracy-after-attacks").to_dicts()
    # q1 and q2 were not attacked on one side, q5 not on the other
    assert {row["path"]: row["n"] for row in rows} == {"fuzz@0": 2, "fuzz@1": 2, "fuzz@2": 2}
    assert [(row["a"], row["b"]) for row in rows] == [(1.0, 1.0), (1.0, 0.5), (0.5, 0.5)]


def test_a_curve_is_as_long_as_the_study_asks_for() -> None:
    rows = attack("q1", "AB")
    rows[0]["attempts"] = 4
    curve = attacks(table(rows))
    assert curve["k"].to_list() == [0, 1, 2, 3, 4]
    assert curve["attempts"].to_list() == [4] * 5
    assert curve["accuracy"].to_list() == [1.0, 0.0, 0.0, 0.0, 0.0]
    # three attempts of four: it was cut off
    cut = attack("q1", "AAAA")
    cut[0]["attempts"] = 4
    assert replicates(table(cut))["outcome"].to_list() == ["unfinished"]


def test_the_curve_over_valid_attacks_leaves_out_what_others_turned() -> None:
    rows = [*attack("q1", "AB"), *attack("q2", "AB"), *attack("q3", "AAA"), *attack("q4", "AAB")]
    assert attacks(table(rows))["accuracy_valid"].to_list() == [None] * 3
    judged = {"q1": True, "q2": False, "q4": None}
    for row in rows:
        if row["arm"] == "attack" and row["answer"] == "B":
            row["valid_judged"] = judged[row["question"]]
    last = by_k(attacks(table(rows)))
    assert [row["accuracy"] for row in last.values()] == [1.0, 0.5, 0.25]
    assert [row["accuracy_valid"] for row in last.values()] == pytest.approx([1.0, 2 / 3, 1 / 3])
    assert last[2]["held_valid"] == 3
    assert last[2]["valid_low"] < 1 / 3 < last[2]["valid_high"]


CONFIRMING = [
    *attack("q1", "AB", rewrite="one"), *again("q1", "BBBBBBBBBB", "AAAAAAAAAA"),
    # one turned the answer, and did so no more
    *inert("q1", *"A" * 19, "BA"),
    *attack("q2", "AB", rewrite="two"), *again("q2", "BBBBAAAAAA", "BBBBAAAAAA"),
    # the same attack in two replicates
    *attack("q3", "AB", rewrite="three"), *again("q3", "BBBBB", "AAAAA"),
    *attack("q3", "AAB", 2, rewrite="three"), *again("q3", "BBB?!", "AAABA", 2),
    *inert("q3", *"A" * 10), *inert("q3", *"A" * 9, "?", "BBAB", epoch=2),
    # one inert rewrite of twenty is always wrong too
    *attack("q5", "AB", rewrite="five"), *again("q5", "BBBBBBBBBB", "AAAAAAAAAA"),
    *inert("q5", *"A" * 19, "BBBB"),
    *attack("q4", "AAA"),
]  # fmt: skip


def test_confirmed_is_what_turns_the_answer_again() -> None:
    turns = table(CONFIRMING)
    rows = {row["question"]: row for row in confirmed(turns).iter_rows(named=True)}
    counts = {name: [rows[q][name] for q in ("q1", "q2", "q3", "q5")] for name in rows["q1"]}
    assert counts["again"] == [10, 10, 8, 10]
    assert counts["again_wrong"] == [10, 4, 8, 10]
    assert counts["plain"] == [10, 10, 10, 10]
    assert counts["plain_wrong"] == [0, 4, 1, 0]
    assert counts["inert"] == [20, 0, 20, 20]
    assert counts["inert_wrong"] == [1, 0, 1, 1]
    assert counts["inert_lasting"] == [0, 0, 0, 1]
    assert counts["inert_p"] == [1 / 21, 1, 1 / 21, 2 / 21]
    p = [rows[q]["confirm_p"] for q in ("q1", "q2", "q3")]
    assert p[0] == pytest.approx(1 / math.comb(20, 10))
    assert p[2] == pytest.approx(
        fisher_exact(np.array([[8, 0], [1, 9]]), alternative="greater").pvalue
    )
    # of four hypotheses, not five
    adjusted = [4 / 2 * p[0], p[1], 4 / 3 * p[2], 4 / 2 * p[0]]
    assert counts["confirm_adjusted"] == pytest.approx(adjusted)
    assert counts["confirmed"] == [True, False, True, False]
    (summary,) = attack_summary(turns).iter_rows(named=True)
    assert (summary["succeeded"], summary["different"], summary["confirmed"]) == (5, 4, 2)
    assert attacks(turns).select("turned", "confirmed").rows() == [(0, 0), (4, 2), (1, 1)]
    assert attack_list(turns)["confirmed"].to_list() == [True, True, True, False, False]


def test_without_repetitions_nothing_is_confirmed_or_refuted() -> None:
    turns = table([*attack("q1", "AB", rewrite="one"), *attack("q2", "AB", rewrite="two")])
    assert confirmed(turns).is_empty()
    assert attacks(turns)["confirmed"].to_list() == [None, None]
    (summary,) = attack_summary(turns).iter_rows(named=True)
    assert (summary["different"], summary["confirmed"]) == (2, None)


def test_fishers_test_is_that_of_the_library() -> None:
    cases = [(10, 7, 10, 3), (10, 0, 10, 0), (5, 5, 9, 1), (3, 1, 8, 7)]
    for n, hits, other_n, other_hits in cases:
        counts = np.array([[hits, n - hits], [other_hits, other_n - other_hits]])
        expected = fisher_exact(counts, alternative="greater").pvalue
        assert fisher(n, hits, other_n, other_hits) == pytest.approx(expected)


def test_a_gate_holds_what_is_net() -> None:
    (rule,) = TABLES["attacks by control"].gates
    (row,) = rule.rows(attack_net(table(STUDY)), None).to_dicts()
    assert rule.sides is not None
    sides = rule.sides(table(STUDY))
    assert sides.height == row["pairs"] == 4
    found = sides.select(pl.col("first").mean() - pl.col("second").mean()).item()
    assert found == pytest.approx(row["net"]) == 0.5


def held(rows: pl.DataFrame, low: str, high: str, truth: float) -> float:
    """How often the interval holds the truth, of the studies that have one."""
    inside = rows.drop_nulls([low, high]).select(pl.col(low).le(truth) & pl.col(high).ge(truth))
    assert inside.height >= rows.height * 0.9
    return float(inside.mean().item())


LAST = 5


def check_net(
    number: int, questions: int, causal: float, least: float, together: int = 200, **more: int
) -> None:
    """Intervals of net turned and the causal share hold the truth; the plain figure does not."""
    parts = []
    for seed in range(number // together):
        turns = attack_studies(together, questions, causal=causal, seed=seed, **more)
        each = with_controls(turns).filter(pl.col("k").is_in([1, LAST]))
        keys = each.select(MEDFUZZ_ROW).unique(maintain_order=True)
        found = with_net(keys, each, MEDFUZZ_ROW).rename(NET_NAMES)
        parts.append(found.with_columns(pl.format("{} {}", "model", pl.lit(seed)).alias("model")))
    rows = pl.concat(parts)
    for k in (1, LAST):
        own = rows.filter(pl.col("k") == k)
        assert own.height == number
        truth = net_turned(k, right=0.7, causal=causal)
        share = held(own, "net_low", "net_high", truth)
        of_share = held(own, "causal_low", "causal_high", 1 - (1 - causal) ** k)
        net, plain = (float(own[name].to_numpy().mean()) for name in ("net", "turned"))
        print(
            f"{questions} questions, causal {causal}, k {k}: net {net:.4f} of {truth:.4f}, "
            f"held {share:.4f}, causal share held {of_share:.4f}, plain {plain:.4f}"
        )
        assert min(share, of_share) >= least
        assert net == pytest.approx(truth, abs=0.02)
        # what the plain figure says is nearly all noise
        assert plain == pytest.approx(1 - (0.7 * (1 - causal)) ** k, abs=0.03)


@pytest.mark.parametrize("causal", [0.0, 0.1])
def test_the_truth_is_recovered(causal: float) -> None:
    # 200 studies: below 0.9 by chance once in thousands where 0.95 hold
    check_net(200, 60, causal, least=0.9)


def check_confirmed(number: int, questions: int, causal: float, together: int) -> None:
    """Of what is confirmed, no more than the level is false; without an effect, of studies."""
    found, false, any_false = 0, [], 0
    for seed in range(number // together):
        turns = attack_studies(together, questions, causal=causal, confirm=10, seed=seed)
        acts = pl.col("rewrite").str.ends_with("true")
        rows = confirmed(turns).group_by("model").agg(
            found=pl.col("confirmed").sum(), false=(pl.col("confirmed") & ~acts).sum()
        )  # fmt: skip
        found += int(rows["found"].sum())
        any_false += int((rows["false"] > 0).sum())
        false += (rows["false"] / rows["found"].clip(1)).to_list()
    rate, spread = sum(false) / number, float(np.std(false))
    print(f"{questions} questions, causal {causal}: {found} confirmed, share of false ones "
          f"{rate:.4f}, studies with any {any_false}")  # fmt: skip
    # 5%, and what chance leaves (99%)
    assert rate <= LEVEL + 2.58 * spread / math.sqrt(number)
    assert (found > 0) == (causal > 0 or any_false > 0)
    if not causal:
        assert any_false <= number * LEVEL + 2.58 * math.sqrt(number * LEVEL * (1 - LEVEL))


@pytest.mark.parametrize("causal", [0.0, 0.1])
def test_few_of_the_confirmed_are_noise(causal: float) -> None:
    check_confirmed(100, 60, causal, 100)


# 2,000 studies each; 0.94, less what they leave to chance (99%)
LEAST = 0.94 - 2.58 * (0.94 * 0.06 / 2000) ** 0.5
SIZES = [(60, 5, 400), (200, 2, 200), (1273, 1, 50)]


@pytest.mark.slow
@pytest.mark.parametrize("causal", [0.0, 0.1])
@pytest.mark.parametrize(("questions", "replicates", "together"), SIZES)
def test_intervals_hold_the_truth(
    questions: int, replicates: int, together: int, causal: float
) -> None:
    check_net(2000, questions, causal, LEAST, together, replicates=replicates)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [0.0, 0.1])
@pytest.mark.parametrize(("questions", "together"), [(60, 400), (200, 200), (1273, 50)])
def test_confirmed_attacks_are_seldom_noise(questions: int, together: int, causal: float) -> None:
    check_confirmed(2000, questions, causal, together)
