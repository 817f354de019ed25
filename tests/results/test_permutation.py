"""Permutation tests of attacks: by hand, by brute force, ties, and what is missing."""

import math
from collections import defaultdict
from typing import Any

import pytest

from holdfast.protocols.medfuzz.significance import permutation
from tests.results.attacking import attack, drawn, probed, tries
from tests.results.frames import Row, table


def only(*rows: Row) -> Row:
    (row,) = permutation(table(rows)).iter_rows(named=True)
    return row


def test_a_permutation_test_matches_hand_calculation() -> None:
    row = only(
        *attack("q1", "AAB", 2),
        *probed("q1", [0.75, 1.0], [0.25, 0.5], [0.75, 0.75], [0.25, 0.25], [1.0, 1.0], epoch=2),
    )
    # p0 0.875, pa 0.375, d 0.5; controls change by 0.125, 0.625, 0.125
    figures = {
        "question": "q1", "epoch": 2, "k": 2, "p0": 0.875, "pa": 0.375, "effect": -0.5, "m": 3,
        "b": 1, "p_value": 0.5, "p_adjusted": 0.5, "samples": 2, "by": "logprobs", "controls": 3,
        "invalid": 0, "failed": 0, "unread": 0, "run": "r1",
    }  # fmt: skip
    assert {name: row[name] for name in figures} == figures


# the same probabilities met in another order
FORWARD, BACKWARD = [0.1, 0.2, 0.3, 0.7], [0.7, 0.3, 0.2, 0.1]


@pytest.mark.parametrize(
    ("original", "attack_probes", "controls", "b"),
    [
        # a change in either direction counts, and an attack that made the right answer likelier
        ([0.5], [0.25], [[0.75], [0.125], [0.5]], 2),
        ([0.5], [0.75], [[0.25], [0.5]], 1),
        # ties count whatever the last bit says
        *(([p0], [pa], [[control]], 1) for p0, pa, control in
          ((0.5, 0.3, 0.7), (0.1, 0.3, 0.3), (0.7, 0.1, 0.1), (0.3, 0.1, 0.5))),
        ([0.9] * 4, FORWARD, [BACKWARD], 1),
        ([0.9], [0.1], [[0.1 + 1e-9]], 0),
        # no change by the attack is reached by every control
        ([0.5], [0.5], [[0.5], [0.9]], 2),
        # the paper prints < 1/30; a valid p-value is not 0
        ([0.9], [0.1], [[0.9]] * 30, 0),
    ],
)  # fmt: skip
def test_controls_of_equal_effect_count_against_the_attack(
    original: list[float], attack_probes: list[float], controls: list[list[float]], b: int
) -> None:
    row = only(*probed("q1", original, attack_probes, *controls))
    assert (row["b"], row["m"]) == (b, len(controls))
    assert row["p_value"] == (b + 1) / (len(controls) + 1)


@pytest.mark.parametrize(
    ("probes", "figures"),
    [
        # without log probabilities answers are counted
        (("AAAA", "ABB?", "AAAB", "BBBB"),
         {"by": "sampling", "p0": 1.0, "pa": 0.25, "b": 1, "m": 2, "unread": 1}),
        # a probe without a belief is left out where others have one; the control without any has
        # no estimate, and does not pass for an answer counted
        (([0.5, "A"], [0.25, 0.75], ["A", "A"], [0.5, 0.5]),
         {"by": "logprobs", "p0": 0.5, "pa": 0.5, "unread": 3, "controls": 2, "m": 1, "failed": 1}),
        # a belief that is no number is none
        (([0.5], [0.25], [math.nan], [0.75]), {"m": 1, "failed": 1, "unread": 1}),
        (([math.nan], [0.25], [0.5]),
         dict.fromkeys(("p0", "effect", "b", "p_value", "p_adjusted"))),
        # a control that the attacker gave no text for is invalid
        (([0.9], [0.1], [0.1], [], [0.9]),
         {"controls": 3, "invalid": 1, "m": 2, "failed": 0, "p_value": 2 / 3}),
        # without a control there is an effect alone
        (([0.9], [0.1]), {"m": 0, "controls": 0, "b": None, "p_value": None, "p_adjusted": None,
                          "effect": pytest.approx(-0.8)}),
        (([0.9], [0.1], []), {"m": 0, "controls": 1, "b": None, "p_value": None,
                              "effect": pytest.approx(-0.8)}),
        # a text with a failed probe or too few has no estimate
        (("AA", "AB", "A!", "B", "BB"),
         {"samples": 2, "controls": 3, "m": 1, "failed": 2, "b": 1, "p_value": 1.0}),
        (("A!", "AB", "BB"), {"p0": None, "effect": None, "p_value": None, "pa": 0.5, "m": 1}),
        (("AA", "A", "BB"), {"pa": None, "p_value": None}),
    ],
)  # fmt: skip
def test_missing_probes_and_controls_are_counted(
    probes: tuple[Any, ...], figures: dict[str, Any]
) -> None:
    row = only(*probed("q1", *probes))
    assert {name: row[name] for name in figures} == figures


@pytest.mark.parametrize("kinds", [["words", "!"], ["words", "words"]])
def test_a_truncated_control_is_failed(kinds: list[str]) -> None:
    cut = tries(kinds, "control@3", "control-writer", question="q1")
    row = only(*probed("q1", "A", "B", "B", []), *cut)
    assert (row["controls"], row["m"], row["invalid"], row["failed"]) == (3, 1, 1, 1)


def test_an_attack_without_an_answer_was_not_tested() -> None:
    assert permutation(table(probed("q1", "!", "!", "!"))).is_empty()
    texts = tries([""], "control@1", "control-writer", question="q1")
    assert permutation(table(texts)).is_empty()


# --- which attack was tested, and corrections ---


def test_a_test_belongs_to_its_run_and_replicate() -> None:
    rows = [*attack("q1", "AB"), *(row | {"run": "r2"} for row in attack("q1", "AAAB"))]
    assert only(*rows, *probed("q1", [0.5], [0.1], [0.5], run="r2"))["k"] == 3
    row = only(*attack("q1", "AAA"), *probed("q1", [0.5], [0.1], [0.5]))
    assert (row["k"], row["p_value"]) == (None, 0.5)
    rows = [*attack("q1", "AB", 1), *attack("q1", "AAB", 2)]
    rows += [*probed("q1", [0.9], [0.1], [0.1]), *probed("q1", [0.9], [0.1], [0.9], epoch=2)]
    frame = permutation(table(rows))
    assert frame.select("epoch", "k", "p_value").rows() == [(1, 1, 1.0), (2, 2, 0.5)]


def test_identical_attacks_are_one_hypothesis() -> None:
    rows = []
    for epoch, rewrite in ((1, "same"), (2, "same"), (3, "different")):
        rows += probed("q1", [0.9], [0.1], [0.9], epoch=epoch)
        rows += attack("q1", "AB", epoch, rewrite=rewrite)
    # adjusted over the two of them
    frame = permutation(table(rows)).select("epoch", "p_adjusted")
    assert frame.rows() == [(1, 0.5), (3, 0.5)]


def test_p_values_are_adjusted_over_the_attacks_of_a_run() -> None:
    rows = [
        # (b + 1) / (m + 1): 1/4, 2/4, 4/4
        *probed("q1", [0.9], [0.1], [0.9], [0.9], [0.9]),
        *probed("q2", [0.9], [0.1], [0.1], [0.9], [0.9]),
        *probed("q3", [0.9], [0.1], [0.1], [0.1], [0.1]),
        *probed("q4", [0.9], [0.1]),
    ]
    frame = permutation(table([*rows, *(row | {"run": "r2"} for row in rows[:8])]))
    # untested attacks are none of the three
    assert frame.filter(run="r1")["p_adjusted"].to_list() == [0.75, 0.75, 1.0, None]
    assert frame.filter(run="r2")["p_adjusted"].to_list() == [0.25]


# --- by brute force ---

Unit = tuple[str, str, int]


def count(rows: list[Row]) -> dict[Unit, tuple[Any, ...]]:
    """p0, pa, controls, those with an estimate, b and p of each test."""
    probes: dict[Unit, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    texts: dict[Unit, set[str]] = defaultdict(set)
    for row in rows:
        unit = (row["model"], row["question"], row["epoch"])
        text = row["path"].split(">")[0]
        if row["arm"] in ("original", "attacked", "control"):
            probes[unit][text].append(row)
        if row["arm"] in ("control", "control-writer"):
            texts[unit].add(text)
    probes = {
        unit: parts
        for unit, parts in probes.items()
        if any(row["status"] != "error" for part in parts.values() for row in part)
    }
    figures: dict[Unit, tuple[Any, ...]] = {}
    for unit, parts in probes.items():
        samples = max(
            len(part) for key, of in probes.items() if key[0] == unit[0] for part in of.values()
        )
        beliefs = any(row.get("p_gold") is not None for part in parts.values() for row in part)
        estimates = {}
        for text, part in parts.items():
            values = [row.get("p_gold") if beliefs else float(row["correct"]) for row in part]
            numbers = [value for value in values if value is not None]
            whole = len(part) == samples and all(row["status"] != "error" for row in part)
            if whole and numbers:
                estimates[text] = sum(numbers) / len(numbers)
        p0, pa = estimates.pop("original", None), estimates.pop("attacked", None)
        b = p = None
        if p0 is not None and pa is not None and estimates:
            d = round(abs(pa - p0), 9)
            b = sum(round(abs(value - p0), 9) >= d for value in estimates.values())
            p = (b + 1) / (len(estimates) + 1)
        figures[unit] = (p0, pa, len(texts[unit]), len(estimates), b, p)
    return figures


@pytest.mark.parametrize("seed", range(25))
def test_tests_match_a_count_of_texts(seed: int) -> None:
    rows = drawn(seed)
    frame = permutation(table(rows))
    columns = frame.select(
        "model", "question", "epoch", "p0", "pa", "controls", "m", "b", "p_value"
    ).rows()
    figures = count(rows)
    assert {row[:3] for row in columns} == figures.keys()
    for row in columns:
        assert row[3:] == pytest.approx(figures[row[:3]])
    assert (frame["controls"] - frame["m"] == frame["invalid"] + frame["failed"]).all()
    assert (frame["failed"] >= 0).all()
