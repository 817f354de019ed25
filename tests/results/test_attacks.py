"""Accuracy after k attempts, outcomes and ranked attacks: by hand, by brute force, degenerate."""

import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
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

ATTACK_TABLES = [name for name, item in TABLES.items() if item.section == "medfuzz"]


def outcomes(rows: list[Row]) -> dict[tuple[str, int], str]:
    frame = replicates(table(rows)).select("question", "epoch", "outcome")
    return {(question, epoch): outcome for question, epoch, outcome in frame.iter_rows()}


def summary(rows: list[Row]) -> Row:
    (row,) = attack_summary(table(rows)).to_dicts()
    return row


HAND = [
    *attack("q1", "AAB", 1), *attack("q1", "AB", 2), *attack("q1", "AAAA", 3),
    *attack("q2", "B", 1), *attack("q2", "AxAA", 2), *attack("q2", "AAF", 3),
    *attack("q3", "AAAx", 1), *attack("q3", "?", 2), *attack("q3", "AR", 3),
    *attack("q4", "AAA", 1), *attack("q4", "AA!", 2), *attack("q4", "F", 3),
]  # fmt: skip


def test_outcomes_and_accuracies_match_hand_calculation() -> None:
    assert outcomes(HAND) == {
        ("q1", 1): "succeeded", ("q1", 2): "succeeded", ("q1", 3): "failed",
        ("q2", 1): "wrong-first", ("q2", 2): "failed", ("q2", 3): "model-error",
        ("q3", 1): "failed", ("q3", 2): "model-error", ("q3", 3): "model-error",
        # the study attacks three times; a call failed
        ("q4", 1): "unfinished", ("q4", 2): "unfinished", ("q4", 3): "model-error",
    }  # fmt: skip
    frame = attacks(table(HAND))
    # kept: three of q1, two of q2, one of q3; one of them was wrong at first
    assert frame.select("k", "questions", "replicates", "accuracy", "turned").rows() == [
        (0, 3, 6, 5 / 6, 0), (1, 3, 6, 4 / 6, 1), (2, 3, 6, 3 / 6, 1), (3, 3, 6, 3 / 6, 0),
    ]  # fmt: skip
    # the weighted mean of the means over questions, as the paper puts it
    means, weights = np.array([1 / 3, 1 / 2, 1]), np.array([3, 2, 1])
    assert frame["accuracy"][3] == pytest.approx((means * weights).sum() / weights.sum())
    n = effective_n(np.array([1.0, 1.0, 1.0]), np.array([3.0, 2.0, 1.0]))
    low, high = wilson(np.array([n / 2]), np.array([n]))
    assert frame.select("low", "high").row(3) == pytest.approx((low[0], high[0]))
    row = summary(HAND)
    figures = {
        "questions": 4, "replicates": 10, "first_wrong": 1, "failed": 3, "succeeded": 2,
        "model_errors": 4, "refused": 1, "filtered": 2, "unread": 1, "unfinished": 2,
        "success_rate": 2 / 5, "attempts_needed": 1.5,
        # q1: 2 + 1 + 3, q2: 0 + 6 + 2, q3: 2 + 4 + 0 + 1
        "tries": 21, "invalid_tries": 8, "invalid_attempts": 2,
        "cost": None, "cost_per_success": None,
    }  # fmt: skip
    assert {name: row[name] for name in figures} == figures
    assert list(json.loads(row["reasons"]).items()) == [
        ("dropped", 4), ("prose", 2), ("refused", 2),
    ]  # fmt: skip
    assert row["low"] < 0.4 < row["high"]


def test_a_corrected_try_is_not_an_invalid_attempt() -> None:
    rows = [row for row in attack("q1", "AB") if row["arm"] != "attacker"]
    rows += tries(["prose", "dropped", ""], "fuzz@1", question="q1", epoch=1)
    row = summary(rows)
    assert (row["tries"], row["invalid_tries"], row["invalid_attempts"]) == (3, 2, 0)
    assert row["reasons"] == '{"dropped": 1, "prose": 1}'


def test_costs_count_what_was_spent() -> None:
    rows = [row | {"cost": 0.25} for row in attack("q1", "AAB")]
    rows += [row | {"cost": 0.5, "shared": True} for row in attack("q2", "B")]
    rows += attack("q3", "B")
    # money spent on what came to nothing is spent
    rows += [row | {"cost": 0.125} for row in attack("q4", "AA!")]
    row = summary(rows)
    # q1: a first answer, two of the attacker, two attacked; q4: a call failed
    assert row["cost"] == row["cost_per_success"] == 5 * 0.25 + 5 * 0.125 - 0.125
    assert row["unpriced"] == 1
    row = summary([row | {"cost": 0.25} for row in attack("q1", "AA")])
    assert (row["cost"], row["cost_per_success"]) == (0.75, None)
    assert (row["success_rate"], row["attempts_needed"]) == (0.0, None)


@pytest.mark.parametrize(
    ("rows", "curve"),
    [
        ([*attack("q1", "B"), *attack("q2", "C")], [(0, 0.0, 0)]),
        ([*attack("q1", "?"), *attack("q2", "AR")], []),
        (attack("q1", "A"), []),
        (attack("q1", "AAB"), [(0, 1.0, 0), (1, 1.0, 0), (2, 0.0, 1)]),
        # attempts that none reached are not in the curve
        ([*attack("q1", "AB"), *attack("q2", "AB")], [(0, 1.0, 0), (1, 0.0, 2)]),
        # a last attempt without a modification counts as held
        ([*attack("q1", "AAx"), *attack("q2", "AAB")], [(0, 1.0, 0), (1, 1.0, 0), (2, 0.5, 1)]),
    ],
)
def test_curves_of_few_replicates_match_hand_calculation(
    rows: list[Row], curve: list[tuple[Any, ...]]
) -> None:
    assert attacks(table(rows)).select("k", "accuracy", "turned").rows() == curve


@pytest.mark.parametrize(
    ("rows", "errors"),
    [([*attack("q1", "B"), *attack("q2", "C")], 0), ([*attack("q1", "?"), *attack("q2", "AR")], 2)],
)
def test_without_an_attack_there_is_no_rate(rows: list[Row], errors: int) -> None:
    row = summary(rows)
    assert (row["replicates"], row["model_errors"]) == (2, errors)
    assert [row[name] for name in ("success_rate", "low", "high", "attempts_needed")] == [None] * 4
    assert attack_list(table(rows)).is_empty()


WITHOUT_FIRST = [row for row in attack("q3", "AB") if row["arm"] != "baseline"]
ODD_PATH = [row | {"path": "fuzz@99999999999"} if row["path"] else row
            for row in attack("q3", "AB")]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        *([*attack("q3", "AA"), *tries(kinds, "fuzz@2", question="q3", epoch=1)]
          for kinds in ([""], ["prose"], ["prose", "prose", "!"])),
        attack("q3", "A"), WITHOUT_FIRST, ODD_PATH,
    ],
)  # fmt: skip
def test_a_truncated_replicate_is_unfinished(rows: list[Row]) -> None:
    results = outcomes([*attack("q1", "AAx"), *attack("q2", "AAA"), *rows])
    assert results == {("q1", 1): "failed", ("q2", 1): "failed", ("q3", 1): "unfinished"}


# --- ranked ---


def test_attacks_are_ranked() -> None:
    rows = [
        *attack("q1", "AB", review=3), *attack("q2", "AB", review=9), *attack("q3", "AB"),
        *attack("q4", "AB"), *attack("q5", "AB", words=20), *attack("q6", "AB", words=10),
        *attack("q7", "AAB", words=5), *attack("q8", "AB"),
        *probed("q3", [0.75], [0.25], [0.25], [0.75]), *probed("q4", [0.9], [0.1], [0.9], [0.9]),
        *probed("q8", [0.75], [0.25], [0.75], [0.75]),
    ]  # fmt: skip
    frame = attack_list(table(rows))
    assert frame["question"].to_list() == ["q2", "q1", "q4", "q8", "q3", "q6", "q5", "q7"]
    assert frame["rank"].to_list() == list(range(1, 9))
    assert frame.select("effect", "p_value").rows()[3:5] == [(-0.5, 1 / 3), (-0.5, 2 / 3)]
    # each study has ranks of its own
    twice = attack_list(table([*rows, *(row | {"run": "r2"} for row in rows)]))
    assert twice["rank"].to_list() == list(range(1, 9)) * 2


def test_a_row_of_the_list_describes_the_attack() -> None:
    notes = {"characteristics": '["a", "b"]', "words": 17, "review": 8}
    (row,) = attack_list(table(attack("q1", "AAB", 2, **notes))).to_dicts()
    about = {"epoch": 2, "k": 2, "gold": "A", "answer": "B", **notes}
    assert {name: row[name] for name in about} == about
    assert row["p0"] is row["p_value"] is row["p_adjusted"] is None


# --- by brute force ---


def count(rows: list[Row]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Accuracy after k attempts, replicate by replicate."""
    models: dict[str, dict[tuple[str, int], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["protocol"] == "medfuzz" and row["arm"] in ("baseline", "attack", "attacker"):
            models[row["model"]][row["question"], row["epoch"]].append(row)
    figures = {}
    for model, units in models.items():
        last = max(int(row["path"][5:] or 0) for turns in units.values() for row in turns)
        ends: dict[str, list[int]] = defaultdict(list)
        for (question, _), turns in units.items():
            answers = {
                int(row["path"][5:] or 0): row
                for row in turns
                if row["arm"] in ("baseline", "attack")
            }
            wrong = [k for k, row in answers.items() if row["answer"] != "A"]
            if any(row["status"] == "error" for row in turns):
                continue
            if any(row["status"] != "parsed" for row in answers.values()):
                continue
            if wrong or max(int(row["path"][5:] or 0) for row in turns) == last:
                ends[question].append(min(wrong, default=last + 1))
        endings = Counter(end for parts in ends.values() for end in parts)
        for k in range(last + 1) if ends else ():
            means = [np.mean([end > k for end in parts]) for parts in ends.values()]
            weights = [len(parts) for parts in ends.values()]
            accuracy = float(np.average(means, weights=weights))
            figures[model, k] = (len(ends), sum(weights), accuracy, endings[k] if k else 0)
    return figures


@pytest.mark.parametrize("seed", range(25))
def test_curves_match_a_count_of_replicates(seed: int) -> None:
    rows, names = drawn(seed), ("questions", "replicates", "accuracy", "turned")
    frame = attacks(table(rows))
    figures = count(rows)
    assert set(frame.select("model", "k").iter_rows()) == figures.keys()
    for row in frame.to_dicts():
        assert [row[name] for name in names] == pytest.approx(figures[row["model"], row["k"]])


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.rest_slow
def test_outcomes_add_up(seed: int) -> None:
    turns = table(drawn(seed))
    for row in attack_summary(turns).iter_rows(named=True):
        curve = attacks(turns).filter(run=row["run"])
        parts = ("first_wrong", "failed", "succeeded", "model_errors")
        assert row["replicates"] == sum(row[name] for name in parts)
        assert row["model_errors"] == row["refused"] + row["filtered"] + row["unread"]
        assert row["invalid_tries"] == sum(json.loads(row["reasons"]).values())
        if n := row["replicates"] - row["model_errors"]:
            assert set(curve["replicates"]) == {n}
            assert curve["turned"].sum() == row["succeeded"]
            assert curve["accuracy"].to_list() == sorted(curve["accuracy"], reverse=True)
            assert curve["accuracy"][-1] == pytest.approx(row["failed"] / n)
        successes = attack_list(turns).filter(run=row["run"])
        assert successes.height == row["succeeded"]
        if row["succeeded"]:
            assert successes["k"].mean() == pytest.approx(row["attempts_needed"])


# --- what attacks are to other tables, and the other way round ---


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_attacks_and_others_read_only_their_turns(name: str) -> None:
    rows = [*FOLLOWUP, *drawn(3), *mentioned("q9", "10", "11")]
    # a first answer is one to every table
    plain = [row for row in rows if row["protocol"] != "medfuzz" or row["arm"] == "baseline"]
    fuzz = [row for row in rows if row["protocol"] == "medfuzz"]
    assert 0 < len(plain) < len(rows)
    part = fuzz if name in ATTACK_TABLES else plain
    assert_frame_equal(TABLES[name](table(rows)), TABLES[name](table(part)))
    if name in ATTACK_TABLES:
        assert TABLES[name](table(FOLLOWUP)).is_empty()


def test_an_older_table_lacks_the_columns_of_attacks(tmp_path: Any) -> None:
    assert set(ATTACKS) <= set(OPTIONAL)
    whole = table(attack("q1", "AB", words=3))
    whole.drop(ATTACKS).write_parquet(tmp_path / "old.parquet")
    old = turns_table([str(tmp_path / "old.parquet")])
    assert old.select(ATTACKS).null_count().row(0) == (old.height,) * len(ATTACKS)
    assert attacks(old).equals(attacks(whole))
    assert TABLES["faithfulness"](old).is_empty()
