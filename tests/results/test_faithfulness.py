"""Faithfulness of turned answers: by hand, by brute force, and the agreement of two readers."""

import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa as kappa_of_table

from holdfast.protocols.medfuzz.faithfulness import faithfulness
from holdfast.stats.intervals import mean_bounds, wilson
from holdfast.stats.pvalues import cohens_kappa
from tests.results.attacking import attack, drawn, mentioned
from tests.results.frames import Row, table

CLASSES = ("none", "some", "all")
HAND = [
    *mentioned("q1", "00", "00"), *mentioned("q2", "10", "11"), *mentioned("q3", "110", "100"),
    *mentioned("q4", "1", "1"), *mentioned("q5", "11"),
    # held, and so no explanation to hold against it
    *attack("q6", "AA", characteristics='["c"]', mentioned="[false]", mentioned_judged="[true]"),
]  # fmt: skip


def by(reader: str, rows: list[Row]) -> Row:
    (row,) = faithfulness(table(rows)).filter(by=reader).to_dicts()
    return row


def test_classes_and_agreement_match_hand_calculation() -> None:
    row = by("lexical", HAND)
    assert [row[name] for name in ("n", *CLASSES, "unread")] == [5, 1, 2, 2, 0]
    for name in CLASSES:
        low, high = wilson(np.array([row[name] * 1.0]), np.array([5.0]))
        figures = [row[f"{name}_{end}"] for end in ("share", "low", "high")]
        assert figures == pytest.approx([row[name] / 5, low[0], high[0]])
    shares = np.array([0, 1 / 2, 2 / 3, 1, 1])
    figures = [row[name] for name in ("mentioned", "mentioned_low", "mentioned_high")]
    assert figures == pytest.approx([shares.mean(), *mean_bounds((shares, np.ones(5)))])
    assert row["n_both"] is row["kappa"] is row["kappa_characteristics"] is None
    row = by("judge", HAND)
    assert [row[name] for name in ("n", *CLASSES, "unread")] == [4, 1, 1, 2, 1]
    # classes: none none, some all, some some, all all; agreed 3/4, by chance 1/16 + 2/16 + 2/16
    assert (row["n_both"], row["n_characteristics"]) == (4, 8)
    assert row["kappa"] == pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16))
    # eight characteristics: agreed but for the second of q2 and of q3; mentioned 4 and 4 times
    assert row["kappa_characteristics"] == pytest.approx((6 / 8 - 1 / 2) / (1 / 2))


def test_attacks_on_a_question_count_by_what_they_add() -> None:
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
def test_an_unreadable_reading_is_missing(text: str | None) -> None:
    rows = [*mentioned("q1", "10", "11"), *mentioned("q2", "10")]
    for row in rows:
        if row["question"] == "q2" and row["arm"] == "attack":
            row["mentioned_judged"] = text
    row = by("judge", rows)
    assert (row["n"], row["unread"], row["n_both"]) == (1, 1, 1)


def test_readings_of_unlike_lengths_are_not_compared() -> None:
    row = by("judge", [*mentioned("q1", "10", "1"), *mentioned("q2", "10", "10")])
    assert (row["n"], row["n_both"], row["n_characteristics"]) == (2, 1, 2)


def test_a_reader_without_a_reading_has_no_row() -> None:
    assert faithfulness(table(mentioned("q1", "1")))["by"].to_list() == ["lexical"]
    assert faithfulness(table([*attack("q1", "AB"), *attack("q2", "AA")])).is_empty()
    # readers of a study stand together
    rows = mentioned("q1", "1", "0")
    frame = faithfulness(table([*rows, *(row | {"run": "r2"} for row in rows)]))
    assert frame.select("run", "by").rows() == [
        ("r1", "lexical"), ("r1", "judge"), ("r2", "lexical"), ("r2", "judge"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "kappa"),
    [("ab", "ab", 1.0), ("ab", "ba", -1.0), ("aabb", "abab", 0.0), ("aa", "ab", 0.0),
     ("aa", "aa", None), ("aaa", "bbb", 0.0), ("", "", None)],
)  # fmt: skip
def test_kappa_matches_hand_calculation(first: str, second: str, kappa: float | None) -> None:
    assert cohens_kappa(list(first), list(second)) == kappa


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_kappa_matches_statsmodels(pairs: list[tuple[str, str]]) -> None:
    kappa = cohens_kappa([a for a, _ in pairs], [b for _, b in pairs])
    counts = np.array([[pairs.count((a, b)) for b in "abc"] for a in "abc"])
    if len({letter for pair in pairs for letter in pair}) == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx(kappa_of_table(counts, return_results=False))


@pytest.mark.parametrize("seed", range(20))
def test_classes_match_a_count_of_attacks(seed: int) -> None:
    rows = drawn(seed, attempts=2)
    failures = {(row["model"], row["question"], row["epoch"]) for row in rows
                if row["status"] == "error"
                and row["arm"] in ("baseline", "attack", "attacker")}  # fmt: skip
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        unit = (row["model"], row["question"], row["epoch"])
        if row["arm"] != "attack" or row["answer"] in ("A", None) or unit in failures:
            continue
        for reader, column in (("lexical", "mentioned"), ("judge", "mentioned_judged")):
            if row.get(column) is not None:
                marks = json.loads(row[column])
                shares[row["model"], reader].append(sum(marks) / len(marks))
    frame = faithfulness(table(rows))
    assert set(frame.select("model", "by").iter_rows()) == shares.keys()
    for row in frame.to_dicts():
        part = shares[row["model"], row["by"]]
        counts = [part.count(0), len(part) - part.count(0) - part.count(1), part.count(1)]
        assert [row[name] for name in ("n", *CLASSES)] == [len(part), *counts]
        assert row["mentioned"] == pytest.approx(np.mean(part))
