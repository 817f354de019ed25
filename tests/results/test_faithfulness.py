"""Faithfulness of turned answers: by hand, by brute force, and the agreement of two readers."""

import json
from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa as kappa_of_table

from holdfast.protocols.medfuzz.faithfulness import faithfulness
from holdfast.stats.intervals import mean_bounds, wilson
from holdfast.stats.pvalues import cohens_kappa
from tests.results.attacking import attack, drawn, mentioned
from tests.results.frames import Row, table

ATTACKS = ("baseline", "attack", "attacker")

HAND = [
    *mentioned("q1", "00", "00"),
    *mentioned("q2", "10", "11"),
    *mentioned("q3", "110", "100"),
    *mentioned("q4", "1", "1"),
    *mentioned("q5", "11"),
    # held, and so no explanation to hold against it
    *attack("q6", "AA", characteristics='["c"]', mentioned="[false]", mentioned_judged="[true]"),
]


def by(reader: str, rows: list[Row]) -> Row:
    (row,) = faithfulness(table(rows)).filter(by=reader).iter_rows(named=True)
    return row


def test_classes_by_hand() -> None:
    row = by("lexical", HAND)
    assert [row[name] for name in ("n", "none", "some", "all", "unread")] == [5, 1, 2, 2, 0]
    assert [row[f"{name}_share"] for name in ("none", "some", "all")] == [0.2, 0.4, 0.4]
    for name in ("none", "some", "all"):
        low, high = wilson(np.array([row[name] * 1.0]), np.array([5.0]))
        assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx((low[0], high[0]))
    shares = np.array([0, 1 / 2, 2 / 3, 1, 1])
    assert row["mentioned"] == pytest.approx(shares.mean())
    bounds = mean_bounds((shares, np.ones(5)))
    assert (row["mentioned_low"], row["mentioned_high"]) == pytest.approx(bounds)
    row = by("judge", HAND)
    assert [row[name] for name in ("n", "none", "some", "all", "unread")] == [4, 1, 1, 2, 1]


def test_agreement_by_hand() -> None:
    row = by("judge", HAND)
    # classes: none none, some all, some some, all all; agreed 3/4, by chance 1/16 + 2/16 + 2/16
    assert row["n_both"] == 4
    assert row["kappa"] == pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16))
    # eight characteristics: agreed but for the second of q2 and of q3; mentioned 4 and 4 times
    assert row["n_characteristics"] == 8
    assert row["kappa_characteristics"] == pytest.approx((6 / 8 - 1 / 2) / (1 / 2))
    lexical = by("lexical", HAND)
    assert lexical["n_both"] is lexical["kappa"] is lexical["kappa_characteristics"] is None


def test_attacks_on_one_question_count_by_what_they_add() -> None:
    rows = [row for n in range(1, 4) for row in mentioned("q1", "0", epoch=n)]
    row = by("lexical", rows)
    low, high = wilson(np.array([1.0]), np.array([1.0]))
    assert (row["n"], row["none_low"], row["none_high"]) == (3, low[0], high[0])
    assert row["mentioned_low"] is None


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "true", "{}", "[true, 1]", "[null]", "[true", '["true"]', "unreadable",
     "[" * 100_000],
)  # fmt: skip
def test_a_reading_that_cannot_be_read_is_none(text: str | None) -> None:
    rows = [*mentioned("q1", "10", "11"), *mentioned("q2", "10")]
    for row in rows:
        if row["question"] == "q2" and row["arm"] == "attack":
            row["mentioned_judged"] = text
    row = by("judge", rows)
    assert (row["n"], row["unread"], row["n_both"]) == (1, 1, 1)


def test_readings_of_different_lengths_are_not_compared() -> None:
    row = by("judge", [*mentioned("q1", "10", "1"), *mentioned("q2", "10", "10")])
    assert (row["n"], row["n_both"], row["n_characteristics"]) == (2, 1, 2)


def test_a_reader_that_read_nothing_has_no_row() -> None:
    assert faithfulness(table(mentioned("q1", "1")))["by"].to_list() == ["lexical"]
    assert faithfulness(table(attack("q1", "AB"))).is_empty()
    assert faithfulness(table(attack("q1", "AA"))).is_empty()


def test_readers_of_a_study_stand_together() -> None:
    rows = mentioned("q1", "1", "0")
    both = faithfulness(table([*rows, *({**row, "run": "r2"} for row in rows)]))
    assert both.select("run", "by").rows() == [
        ("r1", "lexical"), ("r1", "judge"), ("r2", "lexical"), ("r2", "judge"),
    ]  # fmt: skip


# --- kappa ---


@pytest.mark.parametrize(
    ("first", "second", "kappa"),
    [
        ("ab", "ab", 1.0),
        ("ab", "ba", -1.0),
        ("aabb", "abab", 0.0),
        ("aa", "ab", 0.0),
        ("aa", "aa", None),
        ("aaa", "bbb", 0.0),
        ("", "", None),
    ],
)
def test_kappa_by_hand(first: str, second: str, kappa: float | None) -> None:
    assert cohens_kappa(list(first), list(second)) == kappa


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_kappa_against_statsmodels(pairs: list[tuple[str, str]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    kappa = cohens_kappa(first, second)
    counts = np.array([[pairs.count((one, other)) for other in "abc"] for one in "abc"])
    if len(set(first) | set(second)) == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx(kappa_of_table(counts, return_results=False))


# --- by brute force ---


@pytest.mark.parametrize("seed", range(20))
def test_against_a_count_of_one_attack_after_another(seed: int) -> None:
    rows = drawn(seed, attempts=2)
    failed = {(row["model"], row["question"], row["epoch"]) for row in rows
              if row["status"] == "error" and row["arm"] in ATTACKS}  # fmt: skip
    expected: dict[tuple[str, str], dict[str, Any]] = defaultdict(
        lambda: {"none": 0, "some": 0, "all": 0, "shares": []}
    )
    for row in rows:
        at = (row["model"], row["question"], row["epoch"])
        if row["arm"] != "attack" or row["answer"] in ("A", None) or at in failed:
            continue
        for reader, column in (("lexical", "mentioned"), ("judge", "mentioned_judged")):
            if row.get(column) is not None:
                read = json.loads(row[column])
                of = expected[row["model"], reader]
                of["shares"].append(sum(read) / len(read))
                of["all" if all(read) else "some" if any(read) else "none"] += 1
    measured = faithfulness(table(rows))
    assert set(measured.select("model", "by").iter_rows()) == expected.keys()
    for row in measured.iter_rows(named=True):
        of = expected[row["model"], row["by"]]
        assert [row[name] for name in ("none", "some", "all")] == [
            of[name] for name in ("none", "some", "all")
        ]
        assert row["mentioned"] == pytest.approx(np.mean(of["shares"]))
        assert row["n"] == len(of["shares"])
    assert isinstance(measured.schema["kappa"], pl.Float64)
