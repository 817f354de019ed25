"""The verdicts of a gate for CI systems: JUnit XML that parsers read, and a Markdown summary."""

import io
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


def verdicts(tmp_path: Path, *rules: dict[str, Any], model: str = "m1") -> list[Verdict]:
    """Of a model with 90 of 100 first answers right."""
    lines = [
        line
        for rule in rules
        for line in ("[[rule]]", *(f"{key} = {json.dumps(value)}" for key, value in rule.items()))
    ]
    path = tmp_path / "gate.toml"
    path.write_text("\n".join(lines), "utf-8")
    rows = [
        frames.turn(f"q{i}", "A" if i < 90 else "B", model=model, dataset=f"d of {model}")
        for i in range(100)
    ]
    return gate(frames.table(rows), read_rules(str(path)))


def read(text: str, tmp_path: Path) -> JUnitXml:
    """What a JUnit parser makes of a file of it."""
    file = tmp_path / "gate.xml"
    file.write_text(text, "utf-8")
    xml = JUnitXml.fromfile(str(file))
    assert isinstance(xml, JUnitXml)
    return xml


THREE = ({"min_accuracy": 0.5}, {"min_accuracy": 0.99}, {"min_accuracy": 0.85, "name": "close"})
"""One that passes, one that fails, one that is undecided."""


def test_a_junit_parser_reads_one_case_for_each_verdict(tmp_path: Path) -> None:
    found = verdicts(tmp_path, *THREE)
    xml = read(junit_xml(found), tmp_path)
    (suite,) = list(xml)
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (3, 1, 1, 0)
    passed, failed, undecided = list(suite)
    assert [case.name for case in suite] == [
        "min_accuracy = 0.5, first answers",
        "min_accuracy = 0.99, first answers",
        "close, first answers",
    ]
    assert {case.classname for case in suite} == {"m1 on d of m1, followup"}
    assert passed.result == []
    assert passed.system_out == gate_sentence(found[0])
    ((failure,), (error,)) = failed.result, undecided.result
    assert isinstance(failure, Failure)
    assert isinstance(error, Error)
    assert (failure.message, failure.type) == (gate_sentence(found[1]), "min_accuracy")
    assert (error.message, error.type) == (gate_sentence(found[2]), "undecided")


def test_the_document_has_the_elements_and_attributes_of_the_schema(tmp_path: Path) -> None:
    root = ElementTree.fromstring(junit_xml(verdicts(tmp_path, *THREE)).encode())
    assert root.tag == "testsuites"
    counts = {"name", "tests", "failures", "errors", "skipped", "time"}
    for element in (root, *root):
        assert set(element.attrib) == counts
        assert all(element.attrib[name].isdigit() for name in counts - {"name"})
    (suite,) = root
    assert suite.tag == "testsuite"
    for case in suite:
        assert case.tag == "testcase"
        assert set(case.attrib) == {"classname", "name", "time"}
        (inner,) = case
        assert inner.tag in ("failure", "error", "system-out")
        assert inner.text


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    found = verdicts(tmp_path, *({**rule, "name": HOSTILE} for rule in THREE), model=HOSTILE)
    text = junit_xml(found)
    # XML 1.0, section 2.2: characters that a document may hold
    assert not re.search(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    assert "<script>" not in text
    (suite,) = list(read(text, tmp_path))
    cases = list(suite)
    assert len(cases) == 3
    assert "]]><script>alert(1)</script>&amp;\\u0000\\u001b[31m" in cases[0].classname
    for case in cases:
        assert case.name is not None
        assert case.name.endswith("\"' , first answers")


def test_letters_of_every_script_are_kept(tmp_path: Path) -> None:
    xml = read(junit_xml(verdicts(tmp_path, *THREE, model="模型")), tmp_path)
    assert {case.classname for suite in xml for case in suite} == {"模型 on d of 模型, followup"}


# sentences


def test_a_sentence_has_the_figure_its_interval_and_what_it_is_held_against(
    tmp_path: Path,
) -> None:
    passed, failed, undecided = map(gate_sentence, verdicts(tmp_path, *THREE))
    about = "m1 on d of m1, followup, first answers: accuracy 90.0% [82.4, 95.1]"
    assert passed == f"pass: {about}, at least 50% (n = 100)"
    assert failed == f"fail: {about}, less than 99% (n = 100)"
    assert undecided == (
        f"undecided (close): {about}, required: at least 85% (n = 100); "
        "about 102 further questions would decide at the same figure"
    )


def test_the_name_of_a_rule_stands_wherever_its_verdict_does(tmp_path: Path) -> None:
    named = verdicts(tmp_path, *({**rule, "name": "knows medicine"} for rule in THREE))
    ways = (
        [gate_sentence(verdict) for verdict in named],
        gate_markdown(named, 0.95).splitlines()[4:7],
        [json.dumps(row) for row in gate_rows(named)],
        junit_xml(named).split("<testcase")[1:],
    )
    for written in ways:
        assert len(written) == 3
        assert all("knows medicine" in text and "followup" in text for text in written)


def test_a_simulated_model_says_so(tmp_path: Path) -> None:
    found = verdicts(tmp_path, *THREE, model="simulated/steadfast")
    for verdict in found:
        assert gate_sentence(verdict).endswith("; simulated, not a measurement of a model")
    assert "SIMULATED" in gate_markdown(found, 0.95)
    assert {row["simulated"] for row in gate_rows(found)} == {True}
    real = verdicts(tmp_path, *THREE)
    assert "simulated" not in "".join(map(gate_sentence, real)).lower()
    assert "SIMULATED" not in gate_markdown(real, 0.95)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            {"technique": "push", "max_relative_drop": 0.1},
            r"fail: .*, technique push: relative drop 50.0% \[\d.*\], more than 10% \(n = 40\)",
        ),
        (
            {"technique": "push", "max_drop_points": 90},
            r"pass: .*: drop 50.0 points \[\d.*\], at most 90 points \(n = 40\)",
        ),
        (
            {"family": "inc_letter", "max_flip_rate": 0.5, "step": "step1"},
            r"undecided: .*, family inc_letter, step step1: flip rate 50.0% \[.*\], required: "
            r"at most 50% \(n = 40\); no number of questions would decide at the same figure",
        ),
        (
            {"technique": "push", "no_worse_than": "before.parquet", "margin_points": 2},
            r"fail: .*: difference -50.0 points from before.parquet \[-\d.*, -\d.*\], "
            r"more than 2 points worse than before.parquet \(n = 40\)",
        ),
        (
            {"no_worse_than": "before.parquet", "margin_points": 50},
            r"pass: .*: difference \+0.0 points from before.parquet \[-\d.*, \+\d.*\], "
            r"at most 50 points worse than before.parquet \(n = 40\)",
        ),
    ],
)
def test_each_condition_has_its_unit(rule: dict[str, Any], told: str, tmp_path: Path) -> None:
    def study(kept: int) -> list[frames.Row]:
        return [
            frames.turn(f"q{i}", "A" if not path or i % 4 < kept else "B", path, step="step1")
            for i in range(40)
            for path in ("", "push")
        ]

    frames.table(study(4)).write_parquet("before.parquet")
    path = tmp_path / "gate.toml"
    path.write_text("[[rule]]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in rule.items()))
    (found,) = gate(frames.table(study(2)), read_rules(str(path)))
    assert re.fullmatch(told, gate_sentence(found)), gate_sentence(found)


def test_what_has_no_figure_says_that_there_is_nothing_to_decide_on(tmp_path: Path) -> None:
    rows = [frames.turn("q1", "B", path) for path in ("", "push")]
    path = tmp_path / "gate.toml"
    path.write_text('[[rule]]\ntechnique = "push"\nmax_relative_drop = 0.1')
    (found,) = gate(frames.table(rows), read_rules(str(path)))
    assert gate_sentence(found) == (
        "undecided: m1 on d1, followup, technique push: no relative drop, required: at most 10% "
        "(n = 1); there is no figure to decide on"
    )
    assert json.loads(json.dumps(gate_rows([found])))[0]["value"] is None
    assert "n/a" in gate_markdown([found], 0.95)


def test_runs_that_only_their_id_tells_apart_are_named_by_it(tmp_path: Path) -> None:
    rows = [
        frames.turn(f"q{i}", "A", run=run) for run in ("first-run", "other-run") for i in range(9)
    ]
    path = tmp_path / "gate.toml"
    path.write_text("[[rule]]\nmin_accuracy = 0.1")
    found = gate(frames.table(rows), read_rules(str(path)))
    assert [", run " in gate_sentence(verdict) for verdict in found] == [True, True]
    names = re.findall(r'testcase classname="[^"]*" name="([^"]*)"', junit_xml(found))
    assert names == [
        "min_accuracy = 0.1, first answers, run first-run",
        "min_accuracy = 0.1, first answers, run other-run",
    ]


# the summary


def test_the_summary_is_a_table_with_a_row_for_each_verdict(tmp_path: Path) -> None:
    found = verdicts(tmp_path, *THREE)
    text = gate_markdown(found, 0.9)
    lines = text.splitlines()
    assert lines[0] == f"## holdfast {gate_counts(found)}"
    assert gate_counts(found) == "gate: fail (1 passed, 1 failed, 1 undecided)"
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 3
    assert {line.count("|") for line in table} == {9}
    assert table[2].startswith("| pass |")
    assert table[3].startswith("| **fail** |")
    assert table[4].startswith("| _undecided_ | close |")
    assert table[4].endswith("| about 102 questions |")
    assert "Intervals of 90%." in text


def test_hostile_names_do_not_leave_their_cell(tmp_path: Path) -> None:
    found = verdicts(tmp_path, *({**rule, "name": HOSTILE} for rule in THREE), model=HOSTILE)
    table = [line for line in gate_markdown(found, 0.95).splitlines() if line.startswith("|")]
    assert len(table) == 5
    assert {re.sub(r"\\.", "", line).count("|") for line in table} == {9}
    assert all(line.isprintable() for line in table)
    assert "\\<script>" in table[2]
    assert not re.search(r"(?<!\\)<", "".join(table))
    assert not re.search(r"(?<!\\)\]\(", "".join(table))


def test_json_has_every_digit_and_the_sentence(tmp_path: Path) -> None:
    found = verdicts(tmp_path, *THREE)
    rows = json.loads(json.dumps(gate_rows(found)))
    assert [row["outcome"] for row in rows] == ["pass", "fail", "undecided"]
    assert [row["further_questions"] for row in rows] == [None, None, 102]
    for row, verdict in zip(rows, found, strict=True):
        assert (row["low"], row["high"], row["n"]) == (verdict.low, verdict.high, 100)
        assert row["sentence"] == gate_sentence(verdict)
    assert io.StringIO(json.dumps(rows)).read().isprintable()
