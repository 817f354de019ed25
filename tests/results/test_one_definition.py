"""A figure is the same wherever it is shown: in its table, in a rule, question by question."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from holdfast.results.declaration import TABLES
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE, STUDY
from holdfast.results.gate import Verdict, gate
from holdfast.results.gate_figures import wilson_n
from holdfast.results.gate_rules import GATES, Rules, rules_of
from holdfast.results.sequential import look
from holdfast.stats.intervals import exact_bounds
from tests.golden import demo, disturbed

SETS = {"demo": demo, "disturbed": disturbed}
Rule = Mapping[str, Any]


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.fixture(scope="module", params=SETS)
def turns(request: pytest.FixtureRequest) -> pl.DataFrame:
    return SETS[request.param]()


def rules(rule: Rule) -> Rules:
    return rules_of({"rule": [dict(rule)]}, "rules.toml")


def verdicts(turns: pl.DataFrame, rule: Rule) -> list[Verdict]:
    results = gate(turns, rules(rule))
    assert results
    return results


def row_of(rows: pl.DataFrame, verdict: Verdict, *filters: pl.Expr) -> Mapping[str, Any]:
    """The row of the verdict's study."""
    study = [name for name in STUDY if name in rows.columns]
    of_study = rows.filter(pl.col(name) == getattr(verdict, name) for name in study)
    (row,) = of_study.filter(*filters).iter_rows(named=True)
    return row


def check_bounds(verdict: Verdict, low: float, high: float) -> None:
    # ends are searched for, those of several figures together
    assert [verdict.low, verdict.high] == pytest.approx([low, high], abs=1e-8)


def accuracy_row(rows: pl.DataFrame, verdict: Verdict) -> Mapping[str, Any]:
    """The row of accuracies that a verdict is about."""
    arm, _, name = verdict.of.partition(" ")
    path = pl.col("path")
    condition = {
        "first": pl.col("arm") == BASELINE,
        "single-shot": pl.col("arm") == "single-shot",
        "family": (pl.col("arm") == FAMILY_AVERAGE) & (pl.col("family") == name) & (path == ""),
        "technique": pl.col("arm").is_in(("followup", "single-turn")) & (path == name),
    }[arm]
    return row_of(rows, verdict, condition)


ABOUT = [{}, {"family": "*"}, {"technique": "*-prior"}]


@pytest.mark.rest_slow
@pytest.mark.parametrize("about", ABOUT)
def test_accuracies_and_drops_of_rules_match_the_table(turns: pl.DataFrame, about: Rule) -> None:
    rows = TABLES["accuracy"](turns)
    results = verdicts(turns, {"min_accuracy": 0.5, **about})
    assert len({(result.run, result.of) for result in results}) == len(results) > 1
    for result in results:
        assert result.value == accuracy_row(rows, result)["accuracy"]
    for result in verdicts(turns, {"max_relative_drop": 0.1, **about}) if about else ():
        row = accuracy_row(rows, result)
        assert result.value == close(-row["relative_change"])
        check_bounds(result, -row["change_high"], -row["change_low"])
    for result in () if about else verdicts(turns, {"max_unparsed": 0.1}):
        row = accuracy_row(rows, result)
        assert result.value == close(row["unparsed"] / row["n"])


@pytest.mark.rest_slow
def test_flips_of_rules_match_the_tables(turns: pl.DataFrame) -> None:
    flips, families = TABLES["flips"](turns), TABLES["flips by family"](turns)
    for result in verdicts(turns, {"max_flip_rate": 0.1, "technique": "*-prior"}):
        row = row_of(flips, result, pl.col("path") == result.of.split()[1])
        assert (result.value, result.n) == (close(row["flip_rate"]), row["n_right"])
    rule = {"max_flip_rate": 0.1, "protocol": "followup", "family": "*"}
    for result in verdicts(turns, rule):
        row = row_of(families, result, pl.col("family") == result.of.removeprefix("family "))
        assert result.value == close((row["to_suggested"] + row["to_other"]) / row["n_right"])


@pytest.mark.rest_slow
@pytest.mark.parametrize("key", GATES)
def test_rules_on_a_column_use_that_column(turns: pl.DataFrame, key: str) -> None:
    table, column = GATES[key]
    rows = column.rows(table(turns), None)
    if not set(column.protocols) & set(turns["protocol"]):
        pytest.skip(f"no study of {' or '.join(column.protocols)}")
    for result in verdicts(turns, {key: 10 if key.endswith("points") else 0.5}):
        row = row_of(rows, result)
        value, name = row[column.value], f"{column.value}_"
        low, high = (
            row[f"{name if f'{name}low' in row else column.bounds}{end}"] for end in ("low", "high")
        )
        assert result.n == row[column.n]
        if value is None:
            assert result.value is None
            continue
        # a table has a loss as negative, as the paper prints it
        sign = -1 if "tax" in key else 1
        assert result.value == close(sign * value)
        if column.sides is not None:
            check_bounds(result, *((low, high) if sign == 1 else (-high, -low)))
        elif column.interval_data is None:
            # a share is decided by exact limits, as if each question succeeded or failed alone
            n, questions = wilson_n(value, low, high), result.questions
            low, high = exact_bounds(value * n, n)
            top, bottom = exact_bounds(questions, questions)[0], exact_bounds(0, questions)[1]
            check_bounds(result, min(low, top), max(high, bottom))


@pytest.mark.parametrize("about", ABOUT[1:])
def test_flips_by_question_match_the_gate(about: Rule) -> None:
    turns = disturbed().filter(pl.col("protocol") == "followup", pl.col("status") == "parsed")
    rule = {"max_flip_rate": 0.1, "protocol": "followup", **about}
    orders = {
        run: tuple(part["question"].unique().sort())
        for (run,), part in turns.group_by("run", maintain_order=True)
    }
    # epochs and techniques of the same questions, so that all count alike
    whole = pl.len().over("run", "question")
    turns = turns.filter(whole == whole.max().over("run"))
    pairs = zip(verdicts(turns, rule), look(turns, rules(rule), orders), strict=True)
    for result, sequential in pairs:
        assert (result.run, result.of) == (sequential.run, sequential.of)
        if sequential.value is not None:
            assert result.value == close(sequential.value)
            assert sequential.low <= sequential.value <= sequential.high
