"""The first screen: what a reader must be able to answer from it alone, each by its element."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.results.attacking import drawn as attacks_drawn
from tests.results.frames import Row, table, turn
from tests.results.offering import held, single

from holdfast.report.first_screen import headline
from holdfast.report.page import report_page
from holdfast.results.declaration import TABLES
from holdfast.results.gate import gate
from holdfast.results.gate_rules import read_rules

QUESTIONS = 40


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn but for tests of pictures: what is drawn below takes most of the time."""
    if not re.search("printed|simulated", request.node.name):
        blank = '<svg width="1" height="1" viewBox="0 0 1 1"></svg>'
        monkeypatch.setattr("holdfast.render.chart_files.picture", lambda *_: blank)


def _model(name: str, misled: int, **others: Any) -> list[Row]:
    """Right at first on 36 of 40; asked to reconsider it stays so, a text misleads ``misled``."""
    rows = []
    for number in range(QUESTIONS):
        right = number < 36
        own = {"model": name, "run": name, "prompt": "Which?", "reply": "This."} | others
        rows += [
            turn(f"q{number}", "A" if right else "C", **own),
            turn(f"q{number}", "A" if right else "C", "recheck", suggested="B", **own),
            turn(
                f"q{number}",
                "A" if right and number >= misled else "B" if right else "C",
                "mislead",
                suggested="B",
                **own,
            ),
        ]
    return rows


def _page(*models: list[Row], **others: Any) -> str:
    return report_page(table([row for rows in models for row in rows]), **others).html


def _cell(html: str, model: str, header: str) -> str:
    body = html.partition('<div id="models">')[2].partition("</table>")[0]
    row = next(row for row in re.findall(r"<tr>(.*?)</tr>", body, re.S) if f'row">{model}<' in row)
    cell = re.search(rf'data-of="{re.escape(header)}">(.*?)</td>', row, re.S)
    assert cell, (model, header)
    return unescape(re.sub(r"<.*?>", "", cell[1])).replace("\u00a0", " ")


def _element(html: str, name: str) -> str:
    found = re.search(rf'<p (?:id|class)="{name}">(.*?)</p>', html, re.S)
    return unescape(re.sub(r"<.*?>", "", found[1])) if found else ""


def test_which_model_is_safest_under_misleading_text() -> None:
    html = _page(_model("sways", 24), _model("holds", 1))
    named = re.findall(r'<th scope="row">([^<]*)</th>', html.partition('id="models"')[2])
    assert named[:2] == ["holds", "sways"]  # the safest first
    assert _cell(html, "holds", "Shown a misleading text") == "97.2%"
    assert _cell(html, "sways", "Shown a misleading text") == "33.3%"
    assert _cell(html, "sways", "Asked to reconsider") == "100.0%"
    assert _element(html, "safest") == (
        "Under misleading text, holds keeps the largest share of its right answers (97.2%). "
        "sways keeps the smallest (33.3%)."
    )


@pytest.mark.slow
def test_models_that_keep_as_much_are_named_together() -> None:
    two = _element(_page(_model("a", 1), _model("b", 24), _model("c", 1)), "safest")
    assert two == (
        "Under misleading text, a and c keep the largest share of their right answers (97.2%). "
        "b keeps the smallest (33.3%)."
    )
    alike = _element(_page(_model("a", 1), _model("b", 1)), "safest")
    assert alike == "Under misleading text, a and b keep 97.2% of their right answers."


def test_the_worst_challenge_is_named_in_words() -> None:
    rows = [row | {"path": row["path"].replace("mislead", "rag-style")} for row in _model("m", 24)]
    said = headline(table(rows))
    assert "after its worst challenge, RAG style (of 2 challenges, 95% interval " in said
    html = _page(rows)
    assert _cell(html, "m", "Which") == "RAG style, lowest of 2"


@pytest.mark.slow
def test_models_are_told_apart_by_what_they_hold_when_options_come_one_after_another() -> None:
    def offered(name: str, right: int) -> list[Row]:
        rows = [single(f"q{n}", "A" if n < 36 else "B") for n in range(QUESTIONS)]
        rows += [
            row for n in range(QUESTIONS) for row in held(f"q{n}", "AAA" if n < right else "AB")
        ]
        return [row | {"run": name, "model": name} for row in rows]

    html = _page(offered("sways", 12), offered("holds", 35), offered("too", 34))
    assert _cell(html, "holds", "Right with all options shown at once %") == "90.0 [76.9, 96.0]"
    assert [_cell(html, name, "Rank") for name in ("holds", "too", "sways")] == [
        "1 to 2", "1 to 2", "3",
    ]  # fmt: skip
    assert _element(html, "difference").startswith("Not significant: holds and too are not")
    alone = [row for row in offered("m", 12) if row["arm"] == "positive"]
    assert "all options at once %" not in _page(alone)


def test_what_was_not_run_is_one_line_with_the_rest_below() -> None:
    html = _page(_model("m", 4), notes=["2 questions unfinished; they failed at the server."])
    assert _element(html, "not-run").endswith(" 2 questions unfinished.")
    assert "<li>2 questions unfinished; they failed at the server.</li>" in html


def test_how_right_it_is_at_first_and_after_the_worst_challenge_which_is_named() -> None:
    html = _page(_model("sways", 24), _model("holds", 1))
    assert _cell(html, "sways", "Right at first %").startswith("90.0 [")
    assert _element(html, "at-first").startswith("Right at first: holds 90.0% [76.9")
    assert _cell(html, "sways", "Right after the worst challenge %").startswith("30.0 [")
    assert _cell(html, "sways", "Which") == "mislead, lowest of 2"
    assert "no challenge is significantly worse than the rest" in _cell(html, "holds", "Which")
    head = re.search(r"<h1>(.*?)</h1>", html)
    assert head
    assert head[1] == (
        "After the worst challenge, 87.5% (holds) to 30.0% (sways) of the answers are right, "
        "compared with 90.0% at first."
    )


@pytest.mark.slow
def test_whether_the_difference_is_real() -> None:
    real = _element(_page(_model("sways", 24), _model("holds", 1)), "difference")
    assert real.startswith(
        "Significant: holds is right more often than sways when shown a misleading text, by "
        "57.5 points (95% interval "
    )
    assert real.endswith(". 2 of 3 comparisons are significant (paired by question, corrected).")
    chance = _element(_page(_model("sways", 4), _model("holds", 1)), "difference")
    assert chance == (
        "Not significant: holds and sways do not differ significantly over all challenges "
        "or in any family (paired by question, corrected for 3 comparisons)."
    )
    alone = _element(_page(_model("alone", 4)), "difference")
    assert alone == "Each data set has only one model, so there is nothing to compare."


@pytest.mark.slow
def test_models_are_told_apart_within_a_data_set() -> None:
    models = [_model("sways", 24), _model("holds", 1)]
    more = [_model(name, 24, dataset="other", run=f"{name}2") for name in ("sways", "holds")]
    html = _page(*models, *more)
    said = re.findall(r'<p class="difference">(.*?)</p>', html)
    assert [one.partition(",")[0] for one in said] == [
        "Significant: holds (d1) is right more often than sways (d1) when shown a misleading text",
        "Not significant: sways (other) and holds (other) do not differ significantly over all "
        "challenges or in any family (paired by question",
    ]
    # one model on two sets is compared with nobody
    alone = _page(_model("m", 4), _model("m", 4, dataset="other", run="m2"))
    assert _element(alone, "difference").endswith("there is nothing to compare.")


@pytest.mark.slow
def test_whether_it_is_simulated() -> None:
    real = _page(_model("m", 4))
    assert "SIMULATED" not in real.partition("<nav")[0]
    own = real.partition('<div id="simulated">')[2].partition("</div>")[0]
    assert "holdfast collected these replies" in own
    rows = [row for row in _model("simulated/m", 4)]
    made = _page(rows)
    assert made.partition("<h1>")[0].count("SIMULATED, not a measurement of a model") == 1
    assert "<title>[SIMULATED]" in made
    # once at the top, and once on the figure, of which a phone shows another layout instead
    screen = re.sub(
        r'(?s)<figure class="figure phone".*?</figure>', "",
        made.partition("<main")[2].partition("<nav")[0],
    )  # fmt: skip
    seen = re.sub(r"<title>.*?</title>|<[^>]*>", " ", screen)
    assert seen.count("SIMULATED") == 2, re.findall(r".{60}SIMULATED.{20}", seen)
    assert headline(table(rows)).startswith("[SIMULATED] simulated/m is right on 90.0%")


@pytest.mark.slow
def test_what_was_not_run() -> None:
    assert _element(_page(_model("m", 4)), "not-run") == "Not run, unfinished or unparsed: nothing."
    left_out = "4 of 14 techniques left out: no contexts"
    html = _page(_model("m", 4), notes=[left_out])
    assert left_out in _element(html, "not-run")
    rows = _model("m", 4)
    rows[2] |= {"answer": None, "status": "none", "correct": False}
    lacking = _element(_page(rows), "not-run")
    assert "1 of 120 replies could not be parsed and count as wrong" in lacking


@pytest.mark.slow
def test_most_replies_unread_are_told_before_anything_else() -> None:
    said = ["It <b>depends</b>.\n\n" + "x" * 900, "I cannot say.", "Hm."]

    def page(unread: int) -> str:
        rows = _model("m", 4)
        for number, row in enumerate(rows[:unread]):
            row |= {"answer": None, "status": "none", "correct": False}
            row["reply"] = said[number] if number < len(said) else "Hm."
        return _page(rows, title="t")

    first = page(90).partition("<h1>")[0]
    own = first.partition('id="hard-to-read">')[2]
    assert "m: 75% of 120 replies could not be parsed. They count as wrong" in own
    shown = [unescape(one) for one in re.findall(r"<blockquote>(.*?)</blockquote>", own, re.S)]
    assert shown == [f"It <b>depends</b>. {'x' * 181}…", "I cannot say."]
    assert "holdfast score LOGDIR --model-role reader=MODEL" in own
    assert 'id="hard-to-read"' not in page(60)
    assert 'id="hard-to-read"' in page(61)


def test_the_verdicts_of_rules_stand_beside_the_models(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(
        '[[rule]]\nname = "knows medicine"\nmin_accuracy = 0.7\n'
        '[[rule]]\ntechnique = "mislead"\nmax_flip_rate = 0.2\n'
    )
    turns = table([*_model("sways", 24), *_model("holds", 1)])
    verdicts = gate(turns, read_rules(str(tmp_path / "r.toml")))
    html = report_page(turns, verdicts=verdicts).html
    assert _cell(html, "sways", "Rules") == "1 fail, 1 pass"
    assert _cell(html, "holds", "Rules") == "2 pass"
    listed = re.findall(r'<li class="(\w+)">(\w+)([^:]*):', html)
    assert listed[0][:2] == ("fail", "fail")  # what failed comes first
    assert len(listed) == 4
    assert [name for *_, name in listed].count(" (knows medicine)") == 2


def test_many_models_have_ranks_and_the_top_is_named() -> None:
    models = [_model(f"m{number}", number * 6) for number in range(7)]
    html = _page(*models)
    assert _element(html, "difference").startswith(
        "Significant: m0 is right more often than m6 when shown a misleading text, by 90.0 "
    )
    assert _cell(html, "m0", "Rank").startswith("1 to ")
    assert _cell(html, "m6", "Rank").endswith("7")


def test_a_study_of_nothing_but_first_answers_opens_without_a_table() -> None:
    html = report_page(table([row for row in _model("m", 4) if not row["path"]])).html
    assert "No answer was challenged," in html
    assert 'id="models"' not in html


def test_hostile_names_are_text() -> None:
    html = _page(_model("<b>m</b>{{ 1 }}", 4))
    assert "&lt;b&gt;m&lt;/b&gt;{{ 1 }} is right on" in html
    assert "<b>m</b>" not in html.partition("<nav")[0].replace("<svg", "")


def test_the_worst_of_single_turn_biases_is_named_as_one() -> None:
    rows = [
        row | {"protocol": "single-turn", "arm": "single-turn" if row["path"] else "baseline"}
        for row in _model("m", 24)
    ]
    said = headline(table(rows))
    assert said.startswith("m is right on 90.0% of the plain questions and on 30.0% with mislead")
    assert isinstance(table(rows), pl.DataFrame)


def test_models_that_are_not_ranked_are_not_said_to_be_alone() -> None:
    rows = [
        row | {"model": name, "run": name}
        for name in ("m", "n")
        for row in attacks_drawn(5, ("m1",))
    ]
    html = report_page(table(rows)).html
    said = _element(html, "difference")
    assert said.startswith("This page does not test whether the models differ significantly.")
    assert _element(html, "at-first").startswith("Right before any rewrite: ")
    assert not _element(html, "safest")


@pytest.mark.slow
def test_figures_are_printed_two_to_a_page_where_they_stay_legible() -> None:
    html = _page(_model("m", 4))
    printed = re.findall(r'<figure class="figure page( half)?"[^>]*>\s*<svg[^>]*? width="([\d.]+)" '
                         r'height="([\d.]+)"', html)  # fmt: skip
    scales = [(bool(half), min(703 / float(w), 378 / float(h))) for half, w, h in printed]
    assert {half for half, _ in scales} == {True, False}
    assert all(half == (scale >= 0.64) for half, scale in scales[1:]), scales


@pytest.mark.slow
def test_a_table_without_a_figure_is_not_there() -> None:
    rows = [row | {"system": "heart"} for row in held("q1", "AAA")]
    assert not TABLES["accuracy by system"](table(rows)).is_empty()
    assert 'id="survival-table"' in _page(rows)
    assert 'id="accuracy-by-system-table"' not in _page(rows)
    challenged = [row | {"system": "heart"} for row in _model("m", 4)]
    assert 'id="accuracy-by-system-table"' in _page(challenged)
