"""Comparisons in words and tables, in every format."""

import csv
import io
import json
from typing import Any

import polars as pl
import pytest
from tests.results.frames import Row, table, turn

from holdfast.render.tables import FORMATS
from holdfast.report.comparison_page import render_comparison
from holdfast.report.comparison_sentences import sentence
from holdfast.results.comparison import compare

EVIL = "<script>alert(1)</script> | `x` \x1b[31m \u202egnp"


def turns(model: str, given: dict[str, str], **others: Any) -> pl.DataFrame:
    rows: list[Row] = []
    for path, answers in given.items():
        rows += [
            turn(f"q{number}", letter, path, model=model, run=f"run-{model}")
            for number, letter in enumerate(answers)
        ]
    return table([row | others for row in rows])


A = {"": "A" * 20, "push": "A" * 16 + "B" * 4, "shove": "A" * 12 + "B" * 8, "recheck": "A" * 20}
B = {"": "A" * 20, "push": "B" * 16 + "A" * 2 + "B" * 2, "shove": "A" * 2 + "B" * 18,
     "recheck": "A" * 19 + "B"}  # fmt: skip


def rows(a: str = "m1", b: str = "m2", **others: Any) -> pl.DataFrame:
    return compare(turns(a, A, **others), turns(b, B, **others)).rows


def shown(format: str = "md", *, changed: bool = False, **models: str) -> str:
    return render_comparison(rows(**models), format, ["A note."], with_changes=changed)


def test_the_families_are_told_in_words_after_the_first_answers() -> None:
    said = shown().split("\n\n")
    assert said[:2] == ["A: m1, run run-m1, d1", "B: m2, run run-m2, d1"]
    assert said[2].startswith(
        "Right first answers: no significant difference between m2 and m1, +0.0"
    )
    # push: from 16 of 20 to 2, shove: from 12 to 2
    assert said[3].startswith(
        "Right answers after inc_letter, average: m2 has 60.0 points fewer than m1 ["
    )
    assert "10.0% against 70.0%, p = " in said[3]
    # both were right at first on all
    assert "Drop, m2 less m1: +60.0 points [" in said[3]
    assert said[3].endswith("] from the first answers.")
    assert said[4].startswith(
        "Right answers, recheck: no significant difference between m2 and m1, -5.0 points [-"
    )
    assert "95.0% against 100.0%, p = 1.000. Drop, m2 less m1: +5.0 points" in said[4]
    assert said[5].startswith(
        "| followup, d1 | n | m1 % | m2 % | m2 less m1 (points) | 95% interval |"
    )


def test_the_interval_of_a_loss_is_that_of_the_loss() -> None:
    frame = rows()
    average = frame.filter(pl.col("arm") == "family-average").row(0, named=True)
    low, high = -100 * average["high"], -100 * average["low"]
    assert 0 < low < 60 < high
    assert f"fewer than m1 [{low:.1f}, {high:.1f}]" in shown()
    # in the table it has the sign of B less A
    assert f"| -60.0 | [{-high:+.1f}, {-low:+.1f}] |" in shown()


def test_the_table_has_a_line_for_each_row_and_averages_below() -> None:
    labels = [line.split(" | ")[0][2:] for line in shown().splitlines() if line.startswith("| ")]
    assert labels == [
        "followup, d1", "---", "First answers", "push", "shove", "inc_letter (average)", "recheck",
    ]  # fmt: skip
    average = next(line for line in shown().splitlines() if "(average)" in line)
    assert average.startswith("| inc_letter (average) | 40 (20) | 70.0 | 10.0 | -60.0 |")
    assert "| 2 | 26 |" in average


def test_what_holm_changes_is_said() -> None:
    lone = rows().filter(pl.col("path") == "push").row(0, named=True)
    words = sentence(lone)
    assert "m2 has 70.0 points fewer than m1 [" in words
    assert "10.0% against 80.0%, p = 0.001 (0.003 after Holm)." in words
    assert "p = 2e-07 (0.025 after Holm)" in sentence(lone | {"p_value": 2e-7, "p_adjusted": 0.025})
    # with the name of the study where there are several
    assert "Right answers, push (followup, d1): m2 has" in sentence(lone, with_study=True)
    # p-values that underflow are no 0
    assert "p below 1e-300." in sentence(lone | {"p_value": 0.0, "p_adjusted": 0.0})
    assert "nothing to compare" in sentence(lone | {"p_adjusted": None})


def test_small_p_values_keep_a_digit() -> None:
    lone = rows().filter(pl.col("path") == "push").row(0, named=True)
    for p, words in ((0.0006, "0.001"), (0.0004, "4e-04"), (0.051, "0.051"), (1.0, "1.000")):
        assert f"p = {words}." in sentence(lone | {"p_value": p, "p_adjusted": p})


def test_several_protocols_share_the_line_of_a_model() -> None:
    frame = rows()
    second = frame.with_columns(
        pl.lit("single-turn").alias("protocol"), pl.lit("run-2").alias("run_a")
    )
    text = render_comparison(pl.concat([frame, second]), "md")
    assert text.startswith("A: m1, runs run-m1, run-2, d1\n")
    assert "average (followup, d1): m2 has 60.0" in text
    assert "average (single-turn, d1): m2 has 60.0" in text
    # of six figures
    assert "3 other figures below: 0 significant differences." in text
    assert text.count("| First answers |") == 2
    # below the last table alone
    assert text.count("- Gained: right on m2 alone.") == 1


def test_one_point_is_one_point() -> None:
    row = rows().filter(pl.col("path") == "push").row(0, named=True)
    one = {"difference": 0.01, "low": 0.002, "high": 0.02, "p_adjusted": 0.01, "p_value": 0.01}
    assert "m2 has 1.0 point more than m1 [0.2, 2.0]" in sentence(row | one)


def test_notes_and_changed_questions_stand_below() -> None:
    assert shown().endswith("- A note.\n")
    changed = shown(changed=True)
    assert changed.endswith(
        "- push: gained q16, q17; lost q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, "
        "q14, q15.\n- shove: lost q2, q3, q4, q5, q6, q7, q8, q9, q10, q11.\n- recheck: lost q19.\n"
    )


def test_simulated_models_are_said_to_be_simulated() -> None:
    words = shown(a="simulated/steadfast", b="simulated/sycophant")
    assert "A: simulated/steadfast [SIMULATED], run run-simulated/steadfast, d1" in words
    assert (
        "- SIMULATED, not a measurement of a model: simulated/steadfast and simulated/sycophant.\n"
        in words
    )
    assert "SIMULATED" not in shown()
    assert "not a measurement of a model: x.parquet [simulated].\n" in shown(
        b="recorded/x.parquet [simulated]"
    )


def test_json_has_every_row_with_the_questions_that_changed() -> None:
    found = json.loads(shown("json"))
    assert [row["path"] for row in found] == ["", "push", "shove", "", "recheck"]
    assert found[1]["gained_questions"] == ["q16", "q17"]
    assert found[3]["gained_questions"] is None
    assert found[1]["difference"] == pytest.approx(2 / 20 - 16 / 20)


def test_csv_has_the_questions_where_they_are_asked_for() -> None:
    plain = list(csv.DictReader(io.StringIO(shown("csv"))))
    assert "gained_questions" not in plain[0]
    assert float(plain[1]["low"]) == rows()["low"][1]
    full = list(csv.DictReader(io.StringIO(shown("csv", changed=True))))
    assert json.loads(full[1]["gained_questions"]) == ["q16", "q17"]
    assert full[3]["gained_questions"] == ""


def test_latex_holds_the_words_as_comments() -> None:
    text = shown("latex")
    assert r"\begin{tabular}{lrrrrrrrrrr}" in text
    assert "% Right answers after inc_letter, average: m2 has 60.0 points fewer" in text
    assert r"$-$60.0" in text
    assert "% A note." in text


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_names_stay_text(format: str) -> None:
    given = {"": "AB", "push": "BB"}
    a = turns(EVIL, given, dataset=EVIL, family=EVIL)
    evil = a.with_columns(pl.lit(EVIL).alias("path"), (pl.col("question") + EVIL))
    other = evil.with_columns(
        pl.lit("m2").alias("run"), pl.lit("B").alias("answer"), pl.lit(False).alias("correct")
    )
    text = render_comparison(compare(evil, other).rows, format, [EVIL], with_changes=True)
    assert text.endswith("\n")
    if format in ("md", "latex"):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\\u001b" in text or "textbackslash" in text
    if format == "md":
        assert "<script>" not in text.replace("\\<script>", "")
        widths = {
            line.replace("\\|", "").count("|") for line in text.splitlines() if line[:1] == "|"
        }
        assert widths == {12}
    if format == "json":
        assert json.loads(text)[0]["dataset"] == EVIL
