"""The verdicts of a gate for CI systems: JUnit XML that parsers read, and a Markdown summary."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from junitparser import Error, Failure, JUnitXml
from tests.results import frames

from holdfast.report.gate_summary import (
    gate_counts,
    gate_markdown,
    gate_rows,
    gate_sentence,
    junit_xml,
)
from holdfast.results.gate import Verdict, gate
from holdfast.results.gate_rules import read_rules

HOSTILE = "]]><script>alert(1)</script>&amp;\x00\x1b[31m\x0b\ufffe\u202e|`*_[x](y) \"'\n"
THREE = ({"min_accuracy": 0.5}, {"min_accuracy": 0.99}, {"min_accuracy": 0.85, "name": "close"})
"""One that passes, one that fails, one that is undecided."""


def decide(rows: list[frames.Row], *rules: dict[str, Any]) -> list[Verdict]:
    lines = [
        line
        for rule in rules
        for line in ("[[rule]]", *(f"{key} = {json.dumps(value)}" for key, value in rule.items()))
    ]
    Path("gate.toml").write_text("\n".join(lines), "utf-8")
    return gate(frames.table(rows), read_rules("gate.toml"))


def verdicts(*rules: dict[str, Any], model: str = "m1") -> list[Verdict]:
    """Of a model with 90 of 100 first answers right."""
    rows = [
        frames.turn(f"q{i}", "A" if i < 90 else "B", model=model, dataset=f"d of {model}")
        for i in range(100)
    ]
    return decide(rows, *rules)


def cases(text: str) -> list[Any]:
    """What a JUnit parser makes of the one suite of a file."""
    Path("gate.xml").write_text(text, "utf-8")
    (suite,) = list(JUnitXml.fromfile("gate.xml"))
    assert suite.tests == len(list(suite))
    return list(suite)


def test_a_junit_parser_reads_a_case_for_each_verdict() -> None:
    rows = verdicts(*THREE)
    text = junit_xml(rows)
    passing, failing, open_case = cases(text)
    assert [case.name for case in (passing, failing, open_case)] == [
        "min_accuracy = 0.5, first answers", "min_accuracy = 0.99, first answers",
        "close, first answers",
    ]  # fmt: skip
    assert {case.classname for case in (passing, failing)} == {"m1 on d of m1, followup"}
    assert (passing.result, passing.system_out) == ([], gate_sentence(rows[0]))
    ((failure,), (error,)) = failing.result, open_case.result
    assert isinstance(failure, Failure)
    assert isinstance(error, Error)
    assert (failure.message, failure.type) == (gate_sentence(rows[1]), "min_accuracy")
    assert (error.message, error.type) == (gate_sentence(rows[2]), "undecided")
    # elements and attributes of the schema
    root = ElementTree.fromstring(text.encode())
    assert [root.tag, root[0].tag] == ["testsuites", "testsuite"]
    counts = {"tests": "3", "failures": "1", "errors": "1", "skipped": "0", "time": "0"}
    for element in (root, root[0]):
        assert element.attrib.pop("name")
        assert element.attrib == counts
    for case in root[0]:
        assert (case.tag, set(case.attrib)) == ("testcase", {"classname", "name", "time"})
        assert [inner.tag for inner in case] in (["failure"], ["error"], ["system-out"])


def test_undecided_rules_are_counted_as_errors() -> None:
    suite = ElementTree.fromstring(junit_xml(verdicts(*THREE, THREE[2])).encode())[0]
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("1", "2")


def test_hostile_names_stay_text() -> None:
    rows = verdicts(*({**rule, "name": HOSTILE} for rule in THREE), model=HOSTILE)
    text = junit_xml(rows)
    # XML 1.0, section 2.2: characters that a document may hold
    assert not re.search(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    assert "<script>" not in text
    assert "]]><script>alert(1)</script>&amp;\\u0000\\u001b[31m" in cases(text)[0].classname
    assert all(case.name.endswith("\"' , first answers") for case in cases(text))
    table = [line for line in gate_markdown(rows, 0.95).splitlines() if line.startswith("|")]
    assert {re.sub(r"\\.", "", line).count("|") for line in table} == {9}
    assert all(line.isprintable() for line in table)
    assert not re.search(r"(?<!\\)<|(?<!\\)\]\(", "".join(table))
    # letters of every script are kept
    names = {case.classname for case in cases(junit_xml(verdicts(*THREE, model="模型")))}
    assert names == {"模型 on d of 模型, followup"}


def test_a_sentence_has_figure_interval_and_limit() -> None:
    facts = (["pass", "at least 50%"], ["fail", "less than 99%"],
             ["undecided (close)", "at least 85%", "102 further questions"])  # fmt: skip
    for verdict, words in zip(verdicts(*THREE), facts, strict=True):
        sentence = gate_sentence(verdict)
        words += ["m1 on d of m1, followup", "accuracy 90.0% [82.4, 95.1]", "n = 100"]
        assert [word for word in words if word not in sentence] == []


def test_rule_names_and_simulated_models_appear_everywhere() -> None:
    rules = ({**rule, "name": "knows medicine"} for rule in THREE)
    rows, real = verdicts(*rules, model="simulated/steadfast"), verdicts(*THREE)

    def forms(rows: list[Verdict]) -> list[list[str]]:
        return [
            [gate_sentence(verdict) for verdict in rows],
            gate_markdown(rows, 0.95).splitlines()[4:7],
            [json.dumps(row) for row in gate_rows(rows)],
            junit_xml(rows).split("<testcase")[1:],
        ]

    for form in forms(rows):
        assert len(form) == 3
        for text in form:
            assert "knows medicine" in text
            assert "followup" in text
            assert "simulated" in text
    assert "SIMULATED" in gate_markdown(rows, 0.95)
    assert {row["simulated"] for row in gate_rows(rows)} == {True}
    assert not any("simulated" in text.lower() for text in forms(real)[0])
    assert "SIMULATED" not in gate_markdown(real, 0.95)


@pytest.mark.parametrize(
    ("rule", "pattern"),
    [
        (
            {"technique": "push", "max_relative_drop": 0.1},
            r"fail: .*, technique push: relative drop 50.0% \[\d.*\], more than 10% .*",
        ),
        (
            {"technique": "push", "max_drop_points": 90},
            r"pass: .*: drop 50.0 points \[\d.*\], at most 90 points .*",
        ),
        (
            {"family": "inc_letter", "max_flip_rate": 0.5, "step": "step1"},
            r"undecided: .*, family inc_letter, step step1: flip rate 50.0% \[.*\].* at most 50% "
            r".*no number of questions .*",
        ),
        (
            {"technique": "push", "no_worse_than": "before.parquet", "margin_points": 2},
            r"fail: .*difference -50.0 points .*before.parquet \[-\d.*, -\d.*\], more than 2 "
            r"points worse .*",
        ),
        (
            {"no_worse_than": "before.parquet", "margin_points": 50},
            r"pass: .*difference \+0.0 points .*before.parquet \[-\d.*, \+\d.*\], at most 50 "
            r"points worse .*",
        ),
    ],
)
def test_each_condition_has_its_unit(rule: dict[str, Any], pattern: str) -> None:
    def study(right: int) -> list[frames.Row]:
        return [
            frames.turn(f"q{i}", "A" if not path or i % 4 < right else "B", path, step="step1")
            for i in range(40)
            for path in ("", "push")
        ]

    frames.table(study(4)).write_parquet("before.parquet")
    (verdict,) = decide(study(2), rule)
    assert re.fullmatch(pattern, gate_sentence(verdict)), gate_sentence(verdict)
    assert "n = 40" in gate_sentence(verdict)


def test_a_rule_without_a_figure_is_undecided() -> None:
    rows = [frames.turn("q1", "B", path) for path in ("", "push")]
    (verdict,) = decide(rows, {"technique": "push", "max_relative_drop": 0.1})
    sentence = gate_sentence(verdict)
    assert sentence.startswith("undecided: ")
    assert "no relative drop" in sentence
    assert json.loads(json.dumps(gate_rows([verdict])))[0]["value"] is None
    assert "n/a" in gate_markdown([verdict], 0.95)


def test_runs_of_a_model_are_named_by_their_ids() -> None:
    ids = ("first-run", "second-run")
    rows = [frames.turn(f"q{i}", "A", run=run) for run in ids for i in range(9)]
    pair = decide(rows, {"min_accuracy": 0.1})
    names = [case.name for case in cases(junit_xml(pair))]
    for verdict, name, run in zip(pair, names, ids, strict=True):
        assert run in gate_sentence(verdict)
        assert name.endswith(f", run {run}")


def test_the_summary_has_a_row_for_each_verdict() -> None:
    rows = verdicts(*THREE)
    lines = gate_markdown(rows, 0.9).splitlines()
    assert gate_counts(rows) in lines[0]
    assert gate_counts(rows) == "gate: fail (1 passed, 1 failed, 1 undecided)"
    table = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in table} == {9}
    assert [line.split(" | ")[0] for line in table[2:]] == [
        "| pass", "| **fail**", "| _undecided_",
    ]  # fmt: skip
    assert "102 questions" in table[4]
    assert any("90%" in line for line in lines)


def test_json_has_every_digit_and_the_sentence() -> None:
    decisions = verdicts(*THREE)
    rows = json.loads(json.dumps(gate_rows(decisions)))
    assert [row["outcome"] for row in rows] == ["pass", "fail", "undecided"]
    assert [row["further_questions"] for row in rows] == [None, None, 102]
    for row, verdict in zip(rows, decisions, strict=True):
        assert (row["low"], row["high"], row["n"]) == (verdict.low, verdict.high, 100)
        assert row["sentence"] == gate_sentence(verdict)
