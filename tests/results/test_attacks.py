"""Accuracy after k attempts, outcomes and ranked attacks: by hand, by brute force, degenerate."""

import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from holdfast.protocols.medfuzz.attacks import attack_list, attack_summary, attacks
from holdfast.protocols.medfuzz.replicates import replicates
from holdfast.results.declaration import TABLES
from holdfast.results.turns import ATTACKS, OPTIONAL, turns_table
from holdfast.stats.intervals import effective_n, wilson
from tests.results.attacking import attack, drawn, mentioned, probed, tries
from tests.results.frames import STUDY as FOLLOWUP
from tests.results.frames import Row, table

ATTACK_TABLES = (
    "attacks",
    "attacks by control",
    "attack-summary",
    "attacks by question",
    "permutation",
    "faithfulness",
)


def outcomes(rows: list[Row]) -> dict[tuple[str, int], str]:
    found = replicates(table(rows)).select("question", "epoch", "outcome")
    return {(question, epoch): outcome for question, epoch, outcome in found.iter_rows()}


HAND = [
    *attack("q1", "AAB", 1), *attack("q1", "AB", 2), *attack("q1", "AAAA", 3),
    *attack("q2", "B", 1), *attack("q2", "AxAA", 2), *attack("q2", "AAF", 3),
    *attack("q3", "AAAx", 1), *attack("q3", "?", 2), *attack("q3", "AR", 3),
    *attack("q4", "AAA", 1), *attack("q4", "AA!", 2), *attack("q4", "F", 3),
]  # fmt: skip


def test_outcomes_by_hand() -> None:
    assert outcomes(HAND) == {
        ("q1", 1): "succeeded", ("q1", 2): "succeeded", ("q1", 3): "failed",
        ("q2", 1): "wrong-first", ("q2", 2): "failed", ("q2", 3): "model-error",
        ("q3", 1): "failed", ("q3", 2): "model-error", ("q3", 3): "model-error",
        # the study attacks three times; a call failed
        ("q4", 1): "unfinished", ("q4", 2): "unfinished", ("q4", 3): "model-error",
    }  # fmt: skip


def test_accuracy_by_hand() -> None:
    measured = attacks(table(HAND))
    counts = measured.select("k", "questions", "replicates", "accuracy", "turned").rows()
    # kept: three of q1, two of q2, one of q3; one of them was wrong at first
    assert counts == [(0, 3, 6, 5 / 6, 0), (1, 3, 6, 4 / 6, 1), (2, 3, 6, 3 / 6, 1),
                      (3, 3, 6, 3 / 6, 0)]  # fmt: skip
    # the weighted mean of the means over questions, as the paper puts it
    means, kept = np.array([1 / 3, 1 / 2, 1]), np.array([3, 2, 1])
    assert measured["accuracy"][3] == pytest.approx((means * kept).sum() / kept.sum())
    n = effective_n(np.array([1.0, 1.0, 1.0]), np.array([3.0, 2.0, 1.0]))
    low, high = wilson(np.array([n / 2]), np.array([n]))
    assert measured.select("low", "high").row(3) == pytest.approx((low[0], high[0]))


def test_summary_by_hand() -> None:
    (row,) = attack_summary(table(HAND)).iter_rows(named=True)
    expected = {
        "questions": 4, "replicates": 10, "first_wrong": 1, "failed": 3, "succeeded": 2,
        "model_errors": 4, "refused": 1, "filtered": 2, "unread": 1, "unfinished": 2,
        "success_rate": 2 / 5, "attempts_needed": 1.5,
        # q1: 2 + 1 + 3, q2: 0 + 6 + 2, q3: 2 + 4 + 0 + 1
        "tries": 21, "invalid_tries": 8, "invalid_attempts": 2,
        "cost": None, "cost_per_success": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert list(json.loads(row["reasons"]).items()) == [
        ("dropped", 4), ("prose", 2), ("refused", 2),
    ]  # fmt: skip
    assert row["low"] < 0.4 < row["high"]


def test_a_try_that_was_corrected_is_no_invalid_attempt() -> None:
    rows = [row for row in attack("q1", "AB") if row["arm"] != "attacker"]
    rows += tries(["prose", "dropped", ""], "fuzz@1", question="q1", epoch=1)
    (row,) = attack_summary(table(rows)).iter_rows(named=True)
    assert (row["tries"], row["invalid_tries"], row["invalid_attempts"]) == (3, 2, 0)
    assert row["reasons"] == '{"dropped": 1, "prose": 1}'


def test_cost_of_attacker_and_model_and_what_has_no_price() -> None:
    rows = [{**row, "cost": 0.25} for row in attack("q1", "AAB")]
    rows += [{**row, "cost": 0.5, "shared": True} for row in attack("q2", "B")]
    rows += attack("q3", "B")
    # money spent on what came to nothing is spent
    rows += [{**row, "cost": 0.125} for row in attack("q4", "AA!")]
    (row,) = attack_summary(table(rows)).iter_rows(named=True)
    # q1: a first answer, two of the attacker, two attacked; q4: a call failed
    assert row["cost"] == 5 * 0.25 + 5 * 0.125 - 0.125
    assert row["cost_per_success"] == row["cost"]
    assert row["unpriced"] == 1


def test_no_cost_a_success_without_a_success() -> None:
    rows = [{**row, "cost": 0.25} for row in attack("q1", "AA")]
    (row,) = attack_summary(table(rows)).iter_rows(named=True)
    assert (row["cost"], row["cost_per_success"]) == (0.75, None)
    assert (row["success_rate"], row["attempts_needed"]) == (0.0, None)


def test_every_first_answer_wrong_leaves_nothing_to_attack() -> None:
    rows = table([*attack("q1", "B"), *attack("q2", "C")])
    assert attacks(rows).select("k", "accuracy", "low", "turned").rows() == [(0, 0.0, 0.0, 0)]
    (row,) = attack_summary(rows).iter_rows(named=True)
    assert [row[name] for name in ("success_rate", "low", "high", "attempts_needed")] == [None] * 4
    assert (row["tries"], row["reasons"]) == (0, "{}")
    assert attack_list(rows).is_empty()


def test_only_model_errors_have_no_accuracy_but_are_counted() -> None:
    rows = table([*attack("q1", "?"), *attack("q2", "AR")])
    assert attacks(rows).is_empty()
    (row,) = attack_summary(rows).iter_rows(named=True)
    assert (row["model_errors"], row["replicates"], row["success_rate"]) == (2, 2, None)


def test_one_question() -> None:
    measured = attacks(table(attack("q1", "AAB")))
    assert measured.select("k", "questions", "replicates", "accuracy", "turned").rows() == [
        (0, 1, 1, 1.0, 0), (1, 1, 1, 1.0, 0), (2, 1, 1, 0.0, 1),
    ]  # fmt: skip


def test_attempts_that_none_reached_are_not_in_the_curve() -> None:
    assert attacks(table([*attack("q1", "AB"), *attack("q2", "AB")]))["k"].to_list() == [0, 1]


def test_a_last_attempt_without_a_modification_counts_as_held() -> None:
    measured = attacks(table([*attack("q1", "AAx"), *attack("q2", "AAB")]))
    assert measured["accuracy"].to_list() == [1.0, 1.0, 0.5]


@pytest.mark.parametrize("kinds", [[""], ["prose"], ["prose", "prose", "!"]])
def test_an_attack_cut_off_at_the_last_attempt_is_unfinished(kinds: list[str]) -> None:
    whole = [*attack("q1", "AAx"), *attack("q2", "AAA")]
    cut = [*attack("q3", "AA"), *tries(kinds, "fuzz@2", question="q3", epoch=1)]
    found = outcomes([*whole, *cut])
    assert found["q3", 1] == "unfinished"
    assert found["q1", 1] == "failed"


def test_a_replicate_that_was_cut_off_before_its_first_attempt_is_unfinished() -> None:
    assert outcomes([*attack("q1", "A"), *attack("q2", "AB")])["q1", 1] == "unfinished"
    assert attacks(table(attack("q1", "A"))).is_empty()


def test_a_replicate_without_its_first_answer_is_unfinished() -> None:
    rows = [row for row in attack("q1", "AB") if row["arm"] != "baseline"]
    assert set(outcomes(rows).values()) == {"unfinished"}


def test_a_path_that_is_no_attempt_is_not_counted() -> None:
    odd = [{**row, "path": "fuzz@99999999999"} if row["path"] else row for row in attack("q", "AB")]
    assert set(outcomes(odd).values()) == {"unfinished"}


# --- ranked ---


def ranked(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return attack_list(table(rows)).select("rank", "question", *names).rows()


def test_ranked_by_review_then_effect_then_p_value_then_attempts_then_words() -> None:
    rows = [
        *attack("q1", "AB", review=3), *attack("q2", "AB", review=9), *attack("q3", "AB"),
        *attack("q4", "AB"), *attack("q5", "AB", words=20), *attack("q6", "AB", words=10),
        *attack("q7", "AAB", words=5),
        *probed("q3", [0.9], [0.5], [0.9], [0.9]), *probed("q4", [0.9], [0.1], [0.9], [0.9]),
    ]  # fmt: skip
    assert [question for _, question in ranked(rows)] == ["q2", "q1", "q4", "q3", "q6", "q5", "q7"]
    assert [rank for rank, _ in ranked(rows)] == [1, 2, 3, 4, 5, 6, 7]


def test_equal_effects_are_ranked_by_p_value() -> None:
    rows = [
        *attack("q1", "AB"), *attack("q2", "AB"),
        *probed("q1", [0.75], [0.25], [0.25], [0.75]),
        *probed("q2", [0.75], [0.25], [0.75], [0.75]),
    ]  # fmt: skip
    assert ranked(rows, "effect", "p_value") == [(1, "q2", -0.5, 1 / 3), (2, "q1", -0.5, 2 / 3)]


def test_what_an_attack_was() -> None:
    rows = attack("q1", "AAB", 2, characteristics='["a", "b"]', words=17, review=8)
    (row,) = attack_list(table(rows)).iter_rows(named=True)
    assert {name: row[name] for name in ("epoch", "k", "gold", "answer", "words", "review")} == {
        "epoch": 2, "k": 2, "gold": "A", "answer": "B", "words": 17, "review": 8,
    }  # fmt: skip
    assert row["characteristics"] == '["a", "b"]'
    assert row["p0"] is row["p_value"] is row["p_adjusted"] is None


def test_each_study_has_its_own_ranks() -> None:
    rows = [*attack("q1", "AB"), *attack("q2", "AB")]
    both = attack_list(table([*rows, *({**row, "run": "r2"} for row in rows)]))
    assert both["rank"].to_list() == [1, 2, 1, 2]


# --- by brute force ---


def brute(rows: list[Row]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Accuracy after k attempts, replicate by replicate."""
    own: dict[str, dict[tuple[str, int], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["protocol"] == "medfuzz" and row["arm"] in ("baseline", "attack", "attacker"):
            own[row["model"]][row["question"], row["epoch"]].append(row)
    found = {}
    for model, of_model in own.items():
        most = max(
            (int(row["path"][5:]) for turns in of_model.values() for row in turns if row["path"]),
            default=0,
        )
        kept: dict[str, list[int]] = defaultdict(list)
        turned: Counter[int] = Counter()
        for (question, _), turns in of_model.items():
            answers = {
                int(row["path"][5:] or 0): row
                for row in turns
                if row["arm"] in ("baseline", "attack")
            }
            asked = {int(row["path"][5:] or 0) for row in turns}
            if any(row["status"] == "error" for row in turns):
                continue
            if any(row["status"] != "parsed" for row in answers.values()):
                continue
            wrong = [k for k, row in answers.items() if row["answer"] != "A"]
            if not wrong and max(asked) < most:
                continue
            kept[question].append(min(wrong, default=most + 1))
            turned[min(wrong, default=most + 1)] += 1
        for k in range(most + 1) if kept else ():
            means = [np.mean([at > k for at in ats]) for ats in kept.values()]
            weights = [len(ats) for ats in kept.values()]
            accuracy = float(np.average(means, weights=weights))
            found[model, k] = (len(kept), sum(weights), accuracy, turned[k] if k else 0)
    return found


@pytest.mark.parametrize("seed", range(25))
def test_against_a_count_of_one_replicate_after_another(seed: int) -> None:
    rows = drawn(seed)
    measured = {
        (model, k): values
        for model, k, *values in attacks(table(rows))
        .select("model", "k", "questions", "replicates", "accuracy", "turned")
        .iter_rows()
    }
    expected = brute(rows)
    assert measured.keys() == expected.keys()
    for key, values in expected.items():
        assert measured[key] == pytest.approx(values)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.rest_slow
def test_the_outcomes_add_up(seed: int) -> None:
    turns = table(drawn(seed))
    for row in attack_summary(turns).iter_rows(named=True):
        own = attacks(turns).filter(run=row["run"])
        parts = ("first_wrong", "failed", "succeeded", "model_errors")
        assert row["replicates"] == sum(row[name] for name in parts)
        assert row["model_errors"] == row["refused"] + row["filtered"] + row["unread"]
        assert row["invalid_tries"] == sum(json.loads(row["reasons"]).values())
        kept = row["replicates"] - row["model_errors"]
        if kept:
            assert set(own["replicates"]) == {kept}
            assert own["turned"].sum() == row["succeeded"]
            assert own["accuracy"].to_list() == sorted(own["accuracy"], reverse=True)
            assert own["accuracy"][-1] == pytest.approx(row["failed"] / kept)
            last = own.row(-1, named=True)
            assert last["low"] <= last["accuracy"] <= last["high"]
        listed = attack_list(turns).filter(run=row["run"])
        assert listed.height == row["succeeded"]
        if row["succeeded"]:
            assert listed["k"].mean() == pytest.approx(row["attempts_needed"])


# --- what attacks are to other tables, and the other way round ---


@pytest.mark.parametrize(
    "name", [name for name in TABLES if name not in (*ATTACK_TABLES, "transfer")]
)
def test_no_other_table_reads_an_attack(name: str) -> None:
    rows = [*FOLLOWUP, *drawn(3), *mentioned("q9", "10", "11")]
    of_attacks = ("attack", "attacker", "original", "attacked", "control", "inert", "again",
                  "again-plain", "unattacked", "replayed", "reask")  # fmt: skip
    first = [row for row in rows if row["arm"] not in of_attacks]
    assert len(first) < len(rows)
    # a first answer is one, and that is all
    assert_frame_equal(TABLES[name](table(rows)), TABLES[name](table(first)))


@pytest.mark.parametrize("name", ATTACK_TABLES)
def test_the_tables_of_attacks_read_nothing_else(name: str) -> None:
    rows = drawn(3)
    assert_frame_equal(TABLES[name](table([*FOLLOWUP, *rows])), TABLES[name](table(rows)))
    assert TABLES[name](table(FOLLOWUP)).is_empty()


def test_an_older_table_has_none_of_the_columns(tmp_path: Any) -> None:
    assert set(ATTACKS) <= set(OPTIONAL)
    whole = table(attack("q1", "AB", words=3))
    whole.drop(ATTACKS).write_parquet(tmp_path / "old.parquet")
    old = turns_table([str(tmp_path / "old.parquet")])
    assert old.select(ATTACKS).null_count().row(0) == (old.height,) * len(ATTACKS)
    assert attacks(old).equals(attacks(whole))
    assert attack_list(old)["words"].to_list() == [None]
    assert TABLES["faithfulness"](old).is_empty()
    assert isinstance(old.schema["review"], pl.Int64)
