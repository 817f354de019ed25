"""A figure is the same wherever it is shown: in its table, in a rule, question by question."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from holdfast.results.declaration import TABLES
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE, STUDY
from holdfast.results.gate import Verdict, gate
from holdfast.results.gate_rules import GATES, Rules, rules_of
from holdfast.results.sequential import look
from tests.golden import demo, disturbed

SETS = {"demo": demo, "disturbed": disturbed}

Rule = Mapping[str, Any]


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.fixture(scope="module", params=SETS)
def turns(request: pytest.FixtureRequest) -> pl.DataFrame:
    return SETS[request.param]()


def rules(*of: Rule) -> Rules:
    return rules_of({"rule": [dict(one) for one in of]}, "rules.toml")


def verdicts(turns: pl.DataFrame, rule: Rule) -> list[Verdict]:
    return gate(turns, rules(rule))


def cells(rows: pl.DataFrame, of: Verdict) -> pl.DataFrame:
    study = [name for name in STUDY if name in rows.columns]
    return rows.filter(pl.col(name) == getattr(of, name) for name in study)


def interval(of: Verdict, row: Mapping[str, Any], ends: str, sign: int = 1) -> None:
    low, high = (row[f"{ends}{end}"] for end in ("low", "high"))
    low, high = (low, high) if sign == 1 else (-high, -low)
    # ends are searched for, those of several figures together
    assert [of.low, of.high] == pytest.approx([low, high], abs=1e-8)


OF_FAMILY = {"family": "*"}
OF_TECHNIQUE = {"technique": "*"}


def cell(rows: pl.DataFrame, of: Verdict) -> Mapping[str, Any]:
    """The row of accuracies that a verdict is about."""
    arm, _, name = of.of.partition(" ")
    chosen = {
        "first": pl.col("arm") == BASELINE,
        "single-shot": pl.col("arm") == "single-shot",
        "family": (pl.col("arm") == FAMILY_AVERAGE) & (pl.col("family") == name) & (path == ""),
        "technique": pl.col("arm").is_in(("followup", "single-turn")) & (path == name),
    }[arm]
    (row,) = cells(rows, of).filter(chosen).iter_rows(named=True)
    return row


path = pl.col("path")


@pytest.mark.parametrize("about", [{}, OF_FAMILY, OF_TECHNIQUE], ids=["first", "family", "each"])
def test_accuracy_of_a_rule_is_that_of_the_table(turns: pl.DataFrame, about: Rule) -> None:
    rows = TABLES["accuracy"](turns)
    found = verdicts(turns, {"min_accuracy": 0.5, **about})
    assert len({(one.run, one.of) for one in found}) == len(found) > 1
    for one in found:
        assert one.value == cell(rows, one)["accuracy"]


@pytest.mark.parametrize("about", [OF_FAMILY, OF_TECHNIQUE], ids=["family", "each"])
def test_drop_of_a_rule_is_that_of_the_table(turns: pl.DataFrame, about: Rule) -> None:
    rows = TABLES["accuracy"](turns)
    for one in verdicts(turns, {"max_relative_drop": 0.1, **about}):
        row = cell(rows, one)
        assert one.value == close(-row["relative_change"])
        interval(one, row, "change_", -1)


def test_flips_and_unread_replies_of_a_rule_are_those_of_the_table(turns: pl.DataFrame) -> None:
    flips, accuracy = TABLES["flips"](turns), TABLES["accuracy"](turns)
    for one in verdicts(turns, {"max_flip_rate": 0.1, **OF_TECHNIQUE}):
        (row,) = cells(flips, one).filter(pl.col("path") == one.of.split()[1]).iter_rows(named=True)
        assert (one.value, one.n) == (close(row["flip_rate"]), row["n_right"])
    for one in verdicts(turns, {"max_unparsed": 0.1}):
        arm = BASELINE if one.of == "first answers" else one.of
        (row,) = cells(accuracy, one).filter(pl.col("arm") == arm).iter_rows(named=True)
        assert one.value == close(row["unparsed"] / row["n"])


def test_flips_of_a_family_are_those_of_all_its_techniques(turns: pl.DataFrame) -> None:
    rows = TABLES["flips by family"](turns)
    for one in verdicts(turns, {"max_flip_rate": 0.1, "protocol": "followup", **OF_FAMILY}):
        name = one.of.removeprefix("family ")
        (row,) = cells(rows, one).filter(pl.col("family") == name).iter_rows(named=True)
        flips = row["to_suggested"] + row["to_other"]
        assert one.value == close(flips / row["n_right"])


@pytest.mark.parametrize("key", ["max_attributable_points", "max_net_turned_points"])
def test_what_is_net_of_a_control_is_that_of_the_table(turns: pl.DataFrame, key: str) -> None:
    table, asked = GATES[key]
    rows = asked.rows(table(turns), None)
    found = verdicts(turns, {key: 10})
    assert found
    for one in found:
        (row,) = cells(rows, one).iter_rows(named=True)
        assert (one.value, one.n) == (close(row[asked.value]), row[asked.n])
        interval(one, row, f"{asked.value}_")


TAXES = ("max_tax_points", "max_abstention_tax_points", "max_net_tax_points")


@pytest.mark.parametrize("key", TAXES)
def test_a_tax_is_that_of_the_table(turns: pl.DataFrame, key: str) -> None:
    table, asked = GATES[key]
    rows = asked.rows(table(turns), None)
    found = verdicts(turns, {key: 10})
    assert found
    for one in found:
        (row,) = cells(rows, one).iter_rows(named=True)
        # the table has a loss as negative, as the paper prints it
        assert one.value == close(-row["tax"])
        interval(one, row, "", -1)


SHARES = ("min_survival", "min_abstention", "max_incorrect_switch", "min_correct_switch",
          "min_accuracy_after_attacks", "min_selectivity")  # fmt: skip


@pytest.mark.parametrize("key", SHARES)
def test_a_column_of_a_table_is_what_its_rule_is_about(turns: pl.DataFrame, key: str) -> None:
    table, asked = GATES[key]
    rows = asked.rows(table(turns), None)
    found = verdicts(turns, {key: 0.5})
    assert found
    for one in found:
        (row,) = cells(rows, one).iter_rows(named=True)
        assert (one.value, one.n) == (row[asked.value], row[asked.n])


@pytest.mark.parametrize("about", [OF_FAMILY, OF_TECHNIQUE], ids=["family", "each"])
def test_flips_question_by_question_are_those_of_the_gate(about: Rule) -> None:
    turns = disturbed().filter(pl.col("protocol") == "followup", pl.col("status") == "parsed")
    asked = {"max_flip_rate": 0.1, "protocol": "followup", **about}
    orders = {
        run: tuple(own["question"].unique().sort())
        for (run,), own in turns.group_by("run", maintain_order=True)
    }
    # epochs and techniques of the same questions, so that all count alike
    whole = pl.len().over("run", "question")
    turns = turns.filter(whole == whole.max().over("run"))
    found, looked = verdicts(turns, asked), look(turns, rules(asked), orders)
    assert len(found) == len(looked) > 0
    for one, other in zip(found, looked, strict=True):
        assert (one.run, one.of) == (other.run, other.of)
        if other.value is not None:
            assert one.value == close(other.value)
            assert other.low <= other.value <= other.high
