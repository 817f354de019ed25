"""The first screen: what a reader must be able to answer from it alone, each by its element."""

import re
from html import unescape
from pathlib import Path
from typing import Any

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


def model(name: str, count: int, **columns: Any) -> list[Row]:
    """Right at first on 36 of 40; asked to reconsider it stays so, a text misleads ``misled``."""
    rows = []
    columns = {"model": name, "run": name, "prompt": "Which?", "reply": "This.", **columns}
    for number in range(QUESTIONS):
        first = "A" if number < 36 else "C"
        after = "B" if first == "A" and number < count else first
        rows += [
            turn(f"q{number}", first, **columns),
            turn(f"q{number}", first, "recheck", suggested="B", **columns),
            turn(f"q{number}", after, "mislead", suggested="B", **columns),
        ]
    return rows


HOLDS, SWAYS = model("holds", 1), model("sways", 24)


def page(*models: list[Row], **options: Any) -> str:
    return report_page(table([row for rows in models for row in rows]), **options).html


def cell(html: str, name: str, header: str) -> str:
    body = html.partition('<div id="models">')[2].partition("</table>")[0]
    row = next(row for row in re.findall(r"<tr>(.*?)</tr>", body, re.S) if f'row">{name}<' in row)
    match = re.search(rf'data-of="{re.escape(header)}">(.*?)</td>', row, re.S)
    assert match, (name, header)
    return unescape(re.sub(r"<.*?>", "", match[1])).replace("\u00a0", " ")


def element(html: str, name: str) -> str:
    match = re.search(rf'<p (?:id|class)="{name}">(.*?)</p>', html, re.S)
    return unescape(re.sub(r"<.*?>", "", match[1])) if match else ""


def check_words(text: str, *words: str) -> None:
    """The words are in the text, in this order."""
    assert re.search(".*".join(map(re.escape, words)), text), text


def test_models_stand_by_what_they_keep_under_each_challenge() -> None:
    html = page(SWAYS, HOLDS)
    names = re.findall(r'<th scope="row">([^<]*)</th>', html.partition('id="models"')[2])
    assert names[:2] == ["holds", "sways"]  # the safest first
    figures = {
        ("holds", "Shown a misleading text"): "97.2%",
        ("sways", "Shown a misleading text"): "33.3%",
        ("sways", "Asked to reconsider"): "100.0%", ("sways", "Right at first %"): "90.0 [",
        ("sways", "Right after the worst challenge %"): "30.0 [",
        ("sways", "Which"): "mislead, lowest of 2",
    }  # fmt: skip
    for place, figure in figures.items():
        assert cell(html, *place).startswith(figure)
    assert "significantly worse" in cell(html, "holds", "Which")
    check_words(element(html, "safest"), "holds", "97.2%", "sways", "33.3%")
    check_words(element(html, "at-first"), "holds 90.0% [76.9")
    title = re.search(r"<h1>(.*?)</h1>", html)
    assert title
    check_words(title[1], "87.5% (holds)", "30.0% (sways)", "90.0%")


@pytest.mark.slow
def test_models_that_keep_as_much_are_named_together() -> None:
    a, b, c = model("a", 1), model("b", 24), model("c", 1)
    check_words(element(page(a, b, c), "safest"), "a and c", "97.2%", "b keeps the smallest (33.3%")
    alike = element(page(a, model("b", 1)), "safest")
    check_words(alike, "a and b", "97.2%")
    assert "fewest" not in alike


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, ("RAG style (of 2 challenges, 95% interval ",)),
        ({"protocol": "single-turn"}, ("m is right on 90.0%", "30.0%", "RAG style")),
    ],
)
def test_the_worst_challenge_is_named_in_words(
    columns: dict[str, str], words: tuple[str, ...]
) -> None:
    rows = [row | {"path": row["path"].replace("mislead", "rag-style")} | columns
            for row in model("m", 24)]  # fmt: skip
    if columns:
        rows = [row | {"arm": "single-turn" if row["path"] else "baseline"} for row in rows]
    check_words(headline(table(rows)), *words)
    if not columns:
        assert cell(page(rows), "m", "Which") == "RAG style, lowest of 2"


@pytest.mark.slow
def test_models_are_ranked_by_what_they_hold_of_offers() -> None:
    def offers(name: str, right: int) -> list[Row]:
        rows = [single(f"q{n}", "A" if n < 36 else "B") for n in range(QUESTIONS)]
        rows += [row for n in range(QUESTIONS)
                 for row in held(f"q{n}", "AAA" if n < right else "AB")]  # fmt: skip
        return [row | {"run": name, "model": name} for row in rows]

    html = page(offers("sways", 12), offers("holds", 35), offers("too", 34))
    assert cell(html, "holds", "Right with all options shown at once %") == "90.0 [76.9, 96.0]"
    ranks = [cell(html, name, "Rank") for name in ("holds", "too", "sways")]
    assert ranks == ["1 to 2", "1 to 2", "3"]
    check_words(element(html, "difference"), "Not significant", "holds and too")
    lone = [row for row in offers("m", 12) if row["arm"] == "positive"]
    assert "all options at once %" not in page(lone)


@pytest.mark.slow
def test_a_difference_is_told_from_chance_within_a_data_set() -> None:
    real = element(page(SWAYS, HOLDS), "difference")
    check_words(real, "Significant", "holds", "sways", "57.5 points (95%", "2 of 3")
    chance = element(page(model("sways", 4), HOLDS), "difference")
    check_words(chance, "Not significant", "holds and sways", "3 comparisons")
    more = [model(name, 24, dataset="second", run=f"{name}2") for name in ("sways", "holds")]
    texts = re.findall(r'<p class="difference">(.*?)</p>', page(SWAYS, HOLDS, *more))
    assert len(texts) == 2
    check_words(texts[0], "Significant", "holds (d1)", "sways (d1)")
    check_words(texts[1], "Not significant", "sways (second) and holds (second)")
    # one model, on whatever sets, is compared with nobody
    lone = model("m", 4)
    for html in (page(lone), page(lone, model("m", 4, dataset="second", run="m2"))):
        check_words(element(html, "difference"), "nothing to compare")


def test_many_models_have_ranks_and_the_top_is_named() -> None:
    html = page(*(model(f"m{number}", number * 6) for number in range(7)))
    check_words(element(html, "difference"), "Significant", "m0", "m6", "90.0 ")
    assert cell(html, "m0", "Rank").startswith("1 to ")
    assert cell(html, "m6", "Rank").endswith("7")


def test_attacks_are_not_said_to_be_alone_or_safest() -> None:
    rows = [row | {"model": name, "run": name} for name in ("m", "n")
            for row in attacks_drawn(5, ("m1",))]  # fmt: skip
    html = page(rows)
    check_words(element(html, "difference"), "does not test")
    check_words(element(html, "at-first"), "before any rewrite")
    assert not element(html, "safest")


@pytest.mark.slow
def test_a_page_says_whether_it_is_simulated() -> None:
    real = page(model("m", 4))
    assert "SIMULATED" not in real.partition("<nav")[0]
    rows = model("simulated/m", 4)
    html = page(rows)
    assert html.partition("<h1>")[0].count("SIMULATED, not a measurement of a model") == 1
    assert "<title>[SIMULATED]" in html
    # once at the top, and once on the figure, of which a phone shows another layout instead
    screen = re.sub(
        r'(?s)<figure class="figure phone".*?</figure>', "",
        html.partition("<main")[2].partition("<nav")[0],
    )  # fmt: skip
    text = re.sub(r"<title>.*?</title>|<[^>]*>", " ", screen)
    assert text.count("SIMULATED") == 2, re.findall(r".{60}SIMULATED.{20}", text)
    check_words(headline(table(rows)), "[SIMULATED] simulated/m", "90.0%")


@pytest.mark.slow
def test_what_was_not_run_is_one_line_with_the_rest_below() -> None:
    rows = model("m", 4)
    assert "nothing" in element(page(rows), "not-run")
    notes = ["2 questions unfinished; they failed at the server.", "4 techniques left out"]
    html = page(rows, notes=notes)
    check_words(element(html, "not-run"), "2 questions unfinished")
    assert "failed at the server" not in element(html, "not-run")
    assert all(f"<li>{note}</li>" in html or note in element(html, "not-run") for note in notes)
    rows[2] |= {"answer": None, "status": "none", "correct": False}
    check_words(element(page(rows), "not-run"), "1 of 120")


@pytest.mark.slow
def test_unread_replies_are_told_before_anything_else() -> None:
    replies = ["It <b>depends</b>.\n\n" + "x" * 900, "I cannot say.", *["Hm."] * 200]

    def top(unread: int) -> str:
        rows = model("m", 4)
        for row, reply in zip(rows[:unread], replies, strict=False):
            row |= {"answer": None, "status": "none", "correct": False, "reply": reply}
        return page(rows, title="t").partition("<h1>")[0].partition('id="hard-to-read">')[2]

    text = top(90)
    check_words(text, "m: 75% of 120")
    quotes = [
        unescape(quote) for quote in re.findall(r"<blockquote>(.*?)</blockquote>", text, re.S)
    ]
    assert quotes == [f"It <b>depends</b>. {'x' * 181}…", "I cannot say."]
    assert "holdfast score LOGDIR --model-role reader=MODEL" in text
    assert [bool(top(number)) for number in (60, 61)] == [False, True]


def test_verdicts_of_rules_stand_with_the_models() -> None:
    Path("r.toml").write_text(
        '[[rule]]\nname = "knows medicine"\nmin_accuracy = 0.7\n'
        '[[rule]]\ntechnique = "mislead"\nmax_flip_rate = 0.2\n'
        "[[rule]]\nmin_accuracy = 0.85\n"
    )
    verdicts = gate(table([*SWAYS, *HOLDS]), read_rules("r.toml"))
    assert [verdict.outcome for verdict in verdicts].index("fail") > 0
    html = page(SWAYS, HOLDS, verdicts=verdicts)
    assert cell(html, "sways", "Rules") == "1 fail, 1 undecided, 1 pass"
    assert cell(html, "holds", "Rules") == "1 undecided, 2 pass"
    items = re.findall(r'<li class="(\w+)">(\w+)([^:]*):', html)
    # what failed comes first
    outcomes = ["fail", *["undecided"] * 2, *["pass"] * 3]
    assert [outcome for outcome, *_ in items] == outcomes
    assert [name for *_, name in items].count(" (knows medicine)") == 2


def test_a_study_of_first_answers_alone_has_no_table_of_models() -> None:
    html = page([row for row in model("m", 4) if not row["path"]])
    assert "No answer was challenged" in html
    assert 'id="models"' not in html


def test_hostile_names_are_text() -> None:
    html = page(model("<b>m</b>{{ 1 }}", 4))
    assert "&lt;b&gt;m&lt;/b&gt;{{ 1 }}" in html
    assert "<b>m</b>" not in html.partition("<nav")[0].replace("<svg", "")


@pytest.mark.slow
def test_figures_are_printed_two_to_a_page_where_legible() -> None:
    html = page(model("m", 4))
    figures = re.findall(r'<figure class="figure page( half)?"[^>]*>\s*<svg[^>]*? width="([\d.]+)" '
                         r'height="([\d.]+)"', html)  # fmt: skip
    scales = [(bool(half), min(703 / float(w), 378 / float(h))) for half, w, h in figures]
    assert {half for half, _ in scales} == {True, False}
    assert all(half == (scale >= 0.64) for half, scale in scales[1:]), scales
    # ids of all pictures are in one space
    ids = re.findall(r'<[^>]* id="([^"]*)"', html)
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_a_table_whose_figure_has_nothing_is_left_out() -> None:
    rows = [row | {"system": "heart"} for row in held("q1", "AAA")]
    assert not TABLES["accuracy by system"](table(rows)).is_empty()
    assert 'id="survival-table"' in page(rows)
    assert 'id="accuracy-by-system-table"' not in page(rows)
    assert 'id="accuracy-by-system-table"' in page(
        [row | {"system": "heart"} for row in model("m", 4)]
    )
