"""Permutation tests of attacks: by hand, by brute force, ties, and what is missing."""

import math
from collections import defaultdict
from typing import Any

import polars as pl
import pytest

from holdfast.protocols.medfuzz.significance import permutation
from tests.results.attacking import attack, drawn, probed, tries
from tests.results.frames import Row, table


def only(*rows: Row) -> Row:
    (row,) = permutation(table(rows)).iter_rows(named=True)
    return row


def test_by_hand() -> None:
    row = only(
        *attack("q1", "AAB", 2),
        *probed("q1", [0.75, 1.0], [0.25, 0.5], [0.75, 0.75], [0.25, 0.25], [1.0, 1.0], epoch=2),
    )
    # p0 0.875, pa 0.375, d 0.5; controls change by 0.125, 0.625, 0.125
    expected = {
        "question": "q1", "epoch": 2, "k": 2, "p0": 0.875, "pa": 0.375, "effect": -0.5, "m": 3,
        "b": 1, "p_value": 0.5, "p_adjusted": 0.5, "samples": 2,
        "by": "logprobs", "controls": 3, "invalid": 0, "failed": 0, "unread": 0,
        "run": "r1",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_a_change_in_either_direction_counts() -> None:
    row = only(*probed("q1", [0.5], [0.25], [0.75], [0.125], [0.5]))
    assert (row["b"], row["p_value"]) == (2, 3 / 4)
    # an attack that made the right answer likelier is tested as well
    assert only(*probed("q1", [0.5], [0.75], [0.25], [0.5]))["b"] == 1


@pytest.mark.parametrize(
    ("p0", "pa", "control"), [(0.5, 0.3, 0.7), (0.1, 0.3, 0.3), (0.7, 0.1, 0.1), (0.3, 0.1, 0.5)]
)
def test_ties_count_whatever_the_last_bit_says(p0: float, pa: float, control: float) -> None:
    assert only(*probed("q1", [p0], [pa], [control]))["b"] == 1


def test_a_tie_of_means_over_the_orders_counts() -> None:
    # the same probabilities met in another order
    attacked, control = [0.1, 0.2, 0.3, 0.7], [0.7, 0.3, 0.2, 0.1]
    assert math.fsum(attacked) == math.fsum(control)
    assert only(*probed("q1", [0.9] * 4, attacked, control))["b"] == 1


def test_a_change_that_is_smaller_by_any_step_does_not_count() -> None:
    assert only(*probed("q1", [0.9], [0.1], [0.1 + 1e-9]))["b"] == 0


def test_no_change_by_the_attack_is_reached_by_every_control() -> None:
    row = only(*probed("q1", [0.5], [0.5], [0.5], [0.9]))
    assert (row["p_value"], row["effect"]) == (1.0, 0.0)


def test_no_control_reached_it() -> None:
    row = only(*probed("q1", [0.9], [0.1], *([0.9],) * 30))
    assert (row["b"], row["m"], row["p_value"]) == (0, 30, 1 / 31)
    # the paper prints < 1/30; a valid p-value is not 0


def test_without_log_probabilities_answers_are_counted() -> None:
    row = only(*probed("q1", "AAAA", "ABB?", "AAAB", "BBBB"))
    assert (row["by"], row["p0"], row["pa"]) == ("sampling", 1.0, 0.25)
    assert (row["b"], row["m"], row["unread"]) == (1, 2, 1)


def test_a_probe_without_a_belief_is_left_out_where_others_have_one() -> None:
    row = only(*probed("q1", [0.5, "A"], [0.25, 0.75], ["A", "A"], [0.5, 0.5]))
    assert (row["p0"], row["pa"], row["by"], row["unread"]) == (0.5, 0.5, "logprobs", 3)
    # the control without any has no estimate, and does not pass for an answer counted
    assert (row["controls"], row["m"], row["failed"]) == (2, 1, 1)


def test_a_belief_that_is_no_number_is_none() -> None:
    row = only(*probed("q1", [0.5], [0.25], [math.nan], [0.75]))
    assert (row["m"], row["failed"], row["unread"]) == (1, 1, 1)
    row = only(*probed("q1", [math.nan], [0.25], [0.5]))
    assert row["p0"] is row["effect"] is row["b"] is row["p_value"] is row["p_adjusted"] is None


def test_a_control_that_the_attacker_gave_no_text_for_is_invalid() -> None:
    row = only(*probed("q1", [0.9], [0.1], [0.1], [], [0.9]))
    assert (row["controls"], row["invalid"], row["m"], row["failed"]) == (3, 1, 2, 0)
    assert row["p_value"] == 2 / 3


def test_no_control_no_p_value() -> None:
    none: list[list[list[float]]] = [[], [[]]]
    for controls in none:
        row = only(*probed("q1", [0.9], [0.1], *controls))
        assert (row["m"], row["controls"]) == (0, len(controls))
        assert row["b"] is row["p_value"] is row["p_adjusted"] is None
        assert row["effect"] == pytest.approx(-0.8)


def test_a_text_with_a_failed_probe_or_too_few_has_no_estimate() -> None:
    row = only(*probed("q1", "AA", "AB", "A!", "B", "BB"))
    assert (row["samples"], row["controls"], row["m"], row["failed"]) == (2, 3, 1, 2)
    assert (row["b"], row["p_value"]) == (1, 1.0)
    row = only(*probed("q1", "A!", "AB", "BB"))
    assert row["p0"] is row["effect"] is row["p_value"] is None
    assert (row["pa"], row["m"]) == (0.5, 1)
    row = only(*probed("q1", "AA", "A", "BB"))
    assert row["pa"] is row["p_value"] is None


def test_a_control_cut_off_at_the_attacker_has_failed_and_is_not_invalid() -> None:
    for kinds in (["words", "!"], ["words", "words"]):
        cut = tries(kinds, "control@3", "control-writer", question="q1")
        row = only(*probed("q1", "A", "B", "B", []), *cut)
        assert (row["controls"], row["m"], row["invalid"], row["failed"]) == (3, 1, 1, 1)


def test_an_attack_of_which_nothing_was_answered_was_not_tested() -> None:
    assert permutation(table(probed("q1", "!", "!", "!"))).is_empty()
    written = tries([""], "control@1", "control-writer", question="q1")
    assert permutation(table(written)).is_empty()


# --- which attack was tested ---


def test_a_test_is_of_the_attack_of_its_run() -> None:
    rows = [*attack("q1", "AB"), *({**row, "run": "r2"} for row in attack("q1", "AAAB"))]
    assert only(*rows, *probed("q1", [0.5], [0.1], [0.5], run="r2"))["k"] == 3


def test_an_attack_that_is_not_in_the_table_has_no_attempt() -> None:
    row = only(*attack("q1", "AAA"), *probed("q1", [0.5], [0.1], [0.5]))
    assert row["k"] is None
    assert row["p_value"] == 0.5


def test_identical_attacks_are_one_hypothesis() -> None:
    rows = [row for epoch in (1, 2, 3) for row in probed("q1", [0.9], [0.1], [0.9], epoch=epoch)]
    texts = {1: "same", 2: "same", 3: "other"}
    for epoch, rewrite in texts.items():
        rows += attack("q1", "AB", epoch, rewrite=rewrite)
    measured = permutation(table(rows))
    assert measured["epoch"].to_list() == [1, 3]
    # adjusted over the two of them
    assert measured["p_adjusted"].to_list() == [0.5, 0.5]


def test_replicates_are_tested_apart() -> None:
    rows = [*attack("q1", "AB", 1), *attack("q1", "AAB", 2)]
    rows += [*probed("q1", [0.9], [0.1], [0.1]), *probed("q1", [0.9], [0.1], [0.9], epoch=2)]
    measured = permutation(table(rows)).select("epoch", "k", "p_value")
    assert measured.rows() == [(1, 1, 1.0), (2, 2, 0.5)]


# --- adjusted ---


def test_adjusted_over_the_attacks_of_a_run_by_hand() -> None:
    rows = [
        # (b + 1) / (m + 1): 1/4, 2/4, 4/4
        *probed("q1", [0.9], [0.1], [0.9], [0.9], [0.9]),
        *probed("q2", [0.9], [0.1], [0.1], [0.9], [0.9]),
        *probed("q3", [0.9], [0.1], [0.1], [0.1], [0.1]),
        *probed("q4", [0.9], [0.1]),
    ]  # fmt: skip
    measured = permutation(table([*rows, *({**row, "run": "r2"} for row in rows[:8])]))
    own = measured.filter(run="r1")
    # untested attacks are none of the three
    assert own["p_adjusted"].to_list() == [0.75, 0.75, 1.0, None]
    assert measured.filter(run="r2")["p_adjusted"].to_list() == [0.25]


# --- by brute force ---


def brute(rows: list[Row]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    own: dict[tuple[Any, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["arm"] in ("original", "attacked", "control", "control-writer"):
            written = row["arm"] == "control-writer"
            text = "asked " + row["path"] if written else row["path"].split(">")[0]
            own[row["model"], row["question"], row["epoch"]][text].append(row)
    most: dict[str, int] = defaultdict(int)
    for (model, *_), texts in own.items():
        if any(row["status"] != "error" and row["arm"] != "control-writer"
               for probes in texts.values() for row in probes):  # fmt: skip
            probed_texts = (probes for name, probes in texts.items() if "asked" not in name)
            most[model] = max([most[model], *map(len, probed_texts)])
    found = {}
    for key, texts in own.items():
        probes = [row for name, rows in texts.items() if "asked" not in name for row in rows]
        if all(row["status"] == "error" for row in probes):
            continue
        believed = any(row.get("p_gold") is not None for row in probes)
        estimates = {}
        for name, of in texts.items():
            if len(of) < most[key[0]] or any(row["status"] == "error" for row in of):
                continue
            values = [row.get("p_gold") if believed else float(row["correct"]) for row in of]
            known = [value for value in values if value is not None]
            if known and "asked" not in name:
                estimates[name] = sum(known) / len(known)
        p0, pa = estimates.get("original"), estimates.get("attacked")
        names = {name.removeprefix("asked ") for name in texts} - {"original", "attacked"}
        controls = [estimates[name] for name in names if name in estimates]
        b = p = None
        if p0 is not None and pa is not None and controls:
            d = round(abs(pa - p0), 9)
            b = sum(round(abs(one - p0), 9) >= d for one in controls)
            p = (b + 1) / (len(controls) + 1)
        found[key] = (p0, pa, len(names), len(controls), b, p)
    return found


@pytest.mark.parametrize("seed", range(25))
def test_against_a_count_of_one_text_after_another(seed: int) -> None:
    rows = drawn(seed)
    measured = permutation(table(rows))
    found = {
        (model, question, epoch): tuple(values)
        for model, question, epoch, *values in measured.select(
            "model", "question", "epoch", "p0", "pa", "controls", "m", "b", "p_value"
        ).iter_rows()
    }
    expected = brute(rows)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values)
    assert (measured["controls"] - measured["m"] == measured["invalid"] + measured["failed"]).all()
    assert measured["failed"].min() is None or (measured["failed"] >= 0).all()
    assert isinstance(measured.schema["p_value"], pl.Float64)
