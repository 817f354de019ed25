"""Comparisons in words and tables, in every format."""

import csv
import io
import json
import re
from typing import Any

import polars as pl
import pytest
from tests.results.frames import Row, table, turn

from holdfast.render.tables import FORMATS
from holdfast.report.comparison_page import render_comparison
from holdfast.report.comparison_sentences import sentence, sentences
from holdfast.results.comparison import compare

EVIL = "<script>alert(1)</script> | `x` \x1b[31m \u202egnp"


def turns(model: str, answers: dict[str, str], **columns: Any) -> pl.DataFrame:
    rows: list[Row] = []
    for path, letters in answers.items():
        rows += [
            turn(f"q{number}", letter, path, model=model, run=f"run-{model}")
            for number, letter in enumerate(letters)
        ]
    return table([row | columns for row in rows])


A = {"": "A" * 20, "push": "A" * 16 + "B" * 4, "shove": "A" * 12 + "B" * 8, "recheck": "A" * 20}
B = {"": "A" * 20, "push": "B" * 16 + "A" * 2 + "B" * 2, "shove": "A" * 2 + "B" * 18,
     "recheck": "A" * 19 + "B"}  # fmt: skip


def rows(a: str = "m1", b: str = "m2", **columns: Any) -> pl.DataFrame:
    return compare(turns(a, A, **columns), turns(b, B, **columns)).rows


def comparison(format: str = "md", *, with_changes: bool = False, **models: str) -> str:
    return render_comparison(rows(**models), format, ["A note."], with_changes=with_changes)


def row_of(path: str) -> dict[str, Any]:
    return rows().filter(pl.col("path") == path).row(0, named=True)


def test_sentences_are_sorted_by_size_after_the_first_answers() -> None:
    first, family, recheck = sentences(rows().to_dicts())
    assert "+0.0" in first
    # push: from 16 of 20 to 2, shove: from 12 to 2; both were right at first on all
    for words in ("inc_letter", "60.0 points fewer", "10.0% compared with 70.0%", "+60.0 points ["):
        assert words in family
    for words in ("recheck", "-5.0 points [-", "95.0% compared with 100.0%", "p = 1.000",
                  "+5.0 points"):  # fmt: skip
        assert words in recheck
    # one whose difference shows stands before a larger one that does not
    frame = rows()
    wide = frame.with_columns(
        difference=pl.when(pl.col("path") == "recheck").then(-0.9).otherwise("difference")
    )
    assert [text.split(",")[0] for text in sentences(wide.to_dicts())] == [
        text.split(",")[0] for text in (first, family, recheck)
    ]
    pair = pl.concat([frame, frame.with_columns(
        family=pl.lit("context"), path=pl.lit("x") + pl.col("path"),
        difference=pl.col("difference") * 1.5,
    ).filter(arm="family-average")])  # fmt: skip
    order = [re.search(r"context|inc_letter|recheck", text) for text in sentences(pair.to_dicts())]
    assert [match[0] for match in order if match] == ["context", "inc_letter", "recheck"]


def test_a_loss_has_its_interval_in_words_and_table() -> None:
    average = rows().filter(pl.col("arm") == "family-average").row(0, named=True)
    low, high = -100 * average["high"], -100 * average["low"]
    assert 0 < low < 60 < high
    text = comparison()
    assert f"[{low:.1f}, {high:.1f}]" in text
    # in the table it has the sign of B minus A
    assert f"| -60.0 | [{-high:+.1f}, {-low:+.1f}] |" in text
    (line,) = [line for line in text.splitlines() if line.startswith("| inc_letter (average)")]
    assert line.startswith("| inc_letter (average) | 40 (20) | 70.0 | 10.0 | -60.0 |")
    assert "| 2 | 26 |" in line
    labels = [line.split(" | ")[0][2:] for line in text.splitlines() if line.startswith("| ")]
    assert labels[2:] == ["First answers", "push", "shove", "inc_letter (average)", "recheck"]


@pytest.mark.parametrize(
    ("p", "holm", "words"),
    [
        (0.0006, 0.0006, "p = 0.001."),
        (0.0004, 0.0004, "p = 4e-04."),
        (0.051, 0.051, "p = 0.051."),
        (1.0, 1.0, "p = 1.000."),
        (2e-7, 0.025, "p = 2e-07 (0.025 after Holm)"),
        (0.0, 0.0, "p below 1e-300."),
        (0.5, None, "no pair to compare"),
    ],
)
def test_p_values_keep_a_digit(p: float, holm: float | None, words: str) -> None:
    assert words in sentence(row_of("push") | {"p_value": p, "p_adjusted": holm})


def test_a_sentence_names_its_study_among_several() -> None:
    row = row_of("push")
    assert "0.001 (0.003 after Holm)" in sentence(row)
    assert "(followup, d1)" not in sentence(row)
    assert "(followup, d1)" in sentence(row, with_study=True)
    point = {"difference": 0.01, "low": 0.002, "high": 0.02, "p_adjusted": 0.01, "p_value": 0.01}
    assert "1.0 point more than m1 [0.2, 2.0]" in sentence(row | point)


def test_protocols_of_a_model_share_its_line() -> None:
    second = rows().with_columns(protocol=pl.lit("single-turn"), run_a=pl.lit("run-2"))
    text = render_comparison(pl.concat([rows(), second]), "md")
    assert text.startswith("A: m1, runs run-m1, run-2, d1\n")
    for study in ("followup, d1", "single-turn, d1"):
        assert f"({study}): m2 has 60.0" in text
    # of six figures
    assert "3 further results" in text
    assert text.count("| First answers |") == 2


def test_notes_and_changed_questions_stand_below() -> None:
    assert comparison().endswith("- A note.\n")
    *_, push, shove, recheck = comparison(with_changes=True).splitlines()
    numbers = [re.findall(r"q\d+", line) for line in (push, shove, recheck)]
    assert numbers == [
        [f"q{n}" for n in (16, 17, *range(16))], [f"q{n}" for n in range(2, 12)], ["q19"],
    ]  # fmt: skip


def test_simulated_models_are_marked() -> None:
    text = comparison(a="simulated/steadfast", b="recorded/x.parquet [simulated]")
    assert "A: simulated/steadfast [SIMULATED]" in text
    (note,) = [line for line in text.splitlines() if "SIMULATED, not a measurement" in line]
    assert "steadfast and x.parquet [simulated]" in note
    assert "SIMULATED" not in comparison()


def test_data_formats_have_every_row_and_changed_question() -> None:
    objects = json.loads(comparison("json"))
    assert [row["path"] for row in objects] == ["", "push", "shove", "", "recheck"]
    assert objects[1]["gained_questions"] == ["q16", "q17"]
    assert objects[3]["gained_questions"] is None
    assert objects[1]["difference"] == pytest.approx(2 / 20 - 16 / 20)
    plain, full = (
        list(csv.DictReader(io.StringIO(comparison("csv", with_changes=with_changes))))
        for with_changes in (False, True)
    )
    assert "gained_questions" not in plain[0]
    assert float(plain[1]["low"]) == rows()["low"][1]
    assert json.loads(full[1]["gained_questions"]) == ["q16", "q17"]
    assert full[3]["gained_questions"] == ""


def test_latex_holds_the_words_as_comments() -> None:
    text = comparison("latex")
    assert r"\begin{tabular}{lrrrrrrrrrr}" in text
    assert r"$-$60.0" in text
    comments = [line for line in text.splitlines() if line.startswith("%")]
    assert any("60.0 points fewer" in line for line in comments)
    assert "% A note." in comments


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_names_stay_text(format: str) -> None:
    first = turns(EVIL, {"": "AB", "push": "BB"}, dataset=EVIL, family=EVIL)
    a = first.with_columns(path=pl.lit(EVIL), question=pl.col("question") + EVIL)
    b = a.with_columns(run=pl.lit("m2"), answer=pl.lit("B"), correct=pl.lit(False))
    text = render_comparison(compare(a, b).rows, format, [EVIL], with_changes=True)
    assert text.endswith("\n")
    if format in ("md", "latex"):
        assert text.replace("\n", "").isprintable()
    if format == "md":
        assert "<script>" not in text.replace("\\<script>", "")
        lines = [line for line in text.splitlines() if line[:1] == "|"]
        assert {line.replace("\\|", "").count("|") for line in lines} == {12}
    if format == "json":
        assert json.loads(text)[0]["dataset"] == EVIL
