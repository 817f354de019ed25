"""The first screen: what a reader must be able to answer from it alone."""

import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.report.unfolding import unfolded
from tests.results.attacking import drawn as attacks_drawn
from tests.results.frames import Row, table, turn
from tests.results.offering import held, single

from holdfast.report.decision import decide, opening
from holdfast.report.page import report_page
from holdfast.results.declaration import TABLES
from holdfast.results.gate import gate
from holdfast.results.gate_rules import read_rules

QUESTIONS = 40
MOST_WORDS = 120


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing, which takes most of the time, except in tests of pictures."""
    if not re.search("printed|simulated|picture", request.node.name):
        blank = '<svg width="1" height="1" viewBox="0 0 1 1"></svg>'
        monkeypatch.setattr("holdfast.render.chart_files.picture", lambda *_: blank)


def model(name: str, count: int, **columns: Any) -> list[Row]:
    """A model that is right on 36 of 40 questions. A text misleads it on ``count`` of them."""
    rows = []
    columns = {"model": name, "run": name, "prompt": "Which?", "reply": "This.", **columns}
    for number in range(QUESTIONS):
        first = "A" if number < 36 else "C"
        after = "B" if first == "A" and number < count else first
        rows += [
            turn(f"q{number}", first, **columns),
            turn(f"q{number}", first, "recheck", suggested="B", **columns),
            turn(f"q{number}", after, "mislead", suggested="B", **columns),
            turn(f"q{number}", first, "restate", arm="control", family="control", **columns),
        ]
    return rows


HOLDS, SWAYS = model("holds", 1), model("sways", 24)


def page(*models: list[Row], **options: Any) -> str:
    return unfolded(report_page(table([row for rows in models for row in rows]), **options).html)


def cell(html: str, name: str, header: str) -> str:
    body = html.partition(' id="models"')[2].partition("</table>")[0]
    row = next(row for row in re.findall(r"<tr>(.*?)</tr>", body, re.S) if f'row">{name}<' in row)
    match = re.search(rf'data-of="{re.escape(header)}">(.*?)</td>', row, re.S)
    assert match, (name, header)
    return plain(match[1]).replace("\u00a0", " ")


def plain(markup: str) -> str:
    return unescape(re.sub(r"<.*?>", "", markup))


def header(html: str) -> str:
    return html.partition("<header>")[2].partition("</header>")[0]


def element(html: str, name: str) -> str:
    match = re.search(rf'<(\w+)[^>]*id="{name}"[^>]*>(.*?)</\1>', html, re.S)
    return plain(match[2]) if match else ""


def sentences(*models: list[Row]) -> str:
    return ". ".join(decide(table([row for rows in models for row in rows])).sentences)


def check_words(text: str, *words: str) -> None:
    """Check that the words are in the text, in this order."""
    assert re.search(".*".join(map(re.escape, words)), text), text


def test_two_models_differ_in_retention_and_challenge() -> None:
    text = sentences(SWAYS, HOLDS)
    check_words(text, "holds keeps more", "than sways", "98.6%", "66.7%", "31.9 points")
    check_words(text, "largest significant difference", "misleading text", "97.2%", "33.3%")
    check_words(text, "more than asking again", "for holds, none", "for sways, mislead")
    assert opening(table([*SWAYS, *HOLDS]))[0] == f"{text.partition('. ')[0]}."


@pytest.mark.parametrize("count", [0, 1, 4])
def test_equal_models_are_not_distinguishable(count: int) -> None:
    text = sentences(model("a", count), model("b", count))
    check_words(text, "a and b are not statistically distinguishable", "do not differ")


def test_the_survivors_of_ten_are_counted_for_a_single_model() -> None:
    check_words(sentences(SWAYS), "about seven of ten", "66.7%", "all when only asked again")
    check_words(sentences(model("m", 36)), "about five of ten right answers", "50.0%")
    check_words(sentences(model("m", 0)), "all its right answers", "100.0%")
    assert "keeps the fewest" not in sentences(model("m", 0))


def test_refusals_are_called_losses() -> None:
    rows = [row | {"answer": None, "status": "refused", "correct": False}
            if row["path"] == "mislead" and int(row["question"][1:]) % 2 else row
            for row in model("m", 0)]  # fmt: skip
    check_words(sentences(rows), "75.0%", "Right answers that m gives up: 25.0% refused")
    check_words(sentences(rows, HOLDS), "holds keeps more", "98.6%", "75.0%", "25.0% refused")


@pytest.mark.slow
def test_many_models_have_a_range_and_their_pairs() -> None:
    html = page(*(model(f"m{number}", number * 6) for number in range(7)))
    check_words(element(html, "main"), "7 models keep 100.0% (m0) to 50.0% (m6)")
    check_words(element(html, "reasons"), "of 21 pairs are", "than m0", "m0 keeps", "asked again")
    assert cell(html, "m0", "Rank").startswith("1 to ")
    assert cell(html, "m6", "Rank").endswith("7")


def test_further_data_sets_are_mentioned() -> None:
    second = [row | {"dataset": "second", "run": f"{row['run']}2"} for row in model("sways", 24)]
    check_words(sentences(SWAYS, HOLDS, second), "after a challenge, on d1", "further data set")


@pytest.mark.slow
def test_a_table_ranks_models_by_retention() -> None:
    html = page(SWAYS, HOLDS)
    names = re.findall(r'<th scope="row">([^<]*)</th>', html.partition('id="models"')[2])
    assert names[:2] == ["holds", "sways"]
    figures = {
        ("holds", "Shown a misleading text"): "97.2%",
        ("sways", "Shown a misleading text"): "33.3%",
        ("sways", "Asked to reconsider"): "100.0%", ("sways", "Right at first %"): "90.0 [",
        ("sways", "Right after the worst challenge %"): "30.0 [",
        ("sways", "Which"): "mislead, lowest of 2",
    }  # fmt: skip
    for place, figure in figures.items():
        assert cell(html, *place).startswith(figure)


def test_biases_have_their_own_words() -> None:
    rows = [row | {"protocol": "single-turn", "arm": "single-turn" if row["path"] else "baseline"}
            for row in model("m", 24) if row["arm"] != "control"]  # fmt: skip
    check_words(sentences(rows), "about seven of ten right answers with a bias in the question")


def offers(name: str, right: int) -> list[Row]:
    rows = [single(f"q{n}", "A" if n < 36 else "B") for n in range(QUESTIONS)]
    rows += [row for n in range(QUESTIONS)
             for row in held(f"q{n}", "AAA" if n < right else "AB")]  # fmt: skip
    return [row | {"run": name, "model": name} for row in rows]


def test_offers_and_rewrites_open_with_accuracy() -> None:
    text = sentences(offers("sways", 12), offers("holds", 35))
    check_words(text, "options shown one after another, holds", "87.5%", "sways on 30.0%", "90.0%")
    check_words(text, "holds ranks above sways (significant)")
    close = sentences(offers("a", 34), offers("b", 35), offers("c", 12))
    check_words(close, "b and a are not statistically distinguishable")
    attack_rows = [row | {"model": name, "run": name} for name in ("m", "n")
                   for row in attacks_drawn(5, ("m1",))]  # fmt: skip
    check_words(sentences(attack_rows), "last rewrite of the question", "before any rewrite")


RULES = (
    '[[rule]]\nname = "knows medicine"\nmin_accuracy = 0.7\n'
    '[[rule]]\nname = "holds"\nfamily = "context"\nmin_retention = 0.6\n'
)


@pytest.mark.slow
def test_rules_decide_by_their_names(tmp_path: Path) -> None:
    rules = tmp_path / "r.toml"
    rules.write_text(RULES + '[[rule]]\nname = "strict"\nmin_accuracy = 0.85\n')
    rows = [row | {"family": "context"} if row["path"] == "mislead" else row
            for row in (*SWAYS, *HOLDS)]  # fmt: skip
    verdicts = gate(table(rows), read_rules(str(rules)))
    html = page(rows, verdicts=verdicts)
    check_words(element(html, "main"), "Do not ship sways", "Not decided yet: holds")
    decisions = re.findall(r'<li class="(\w+)"><b>(.*?)</b>(.*?)</li>', header(html), re.S)
    assert [item[:2] for item in decisions] == [
        ("fail", "sways:"), ("undecided", "holds:"),
    ]  # fmt: skip
    check_words(plain(decisions[0][2]), "“holds”", "retention 33.3% [", "less than 60%")
    check_words(plain(decisions[1][2]), "“strict”", "90.0% [", "further questions would decide")
    check_words(element(html, "reasons"), "misleading text", "97.2%", "33.3%")
    check_words(element(html, "next"), "Try a defence for sways", "--defence")
    assert cell(html, "sways", "Rules") == "1 fail, 1 undecided, 1 pass"
    # every verdict is listed, what failed first
    outcomes = re.findall(r'<li class="(\w+)">\w+ \(', html.partition('id="verdicts"')[2])
    assert outcomes == ["fail", *["undecided"] * 2, *["pass"] * 3]


OUTCOMES = [
    (0, "Ship", "Repeat the gate"),
    (12, "Not decided yet", "further questions"),
    (30, "Do not ship", "Try a defence for m"),
]


@pytest.mark.parametrize(("count", "word", "step"), OUTCOMES)
def test_each_outcome_has_its_decision_and_next_step(
    count: int, word: str, step: str, tmp_path: Path
) -> None:
    rules = tmp_path / "r.toml"
    rules.write_text(RULES)
    rows = [row | {"family": "context"} if row["path"] == "mislead" else row
            for row in model("m", count)]  # fmt: skip
    decision = decide(table(rows), gate(table(rows), read_rules(str(rules))))
    assert decision.sentences[0].startswith(word)
    assert decision.verdicts[0][:2] == (word, "m")
    check_words(decision.next_step, step)


@pytest.mark.parametrize(
    ("name", "command"),
    [("m", "holdfast run followup --defence distrust-context"),
     ("http/app", "holdfast run followup --target FILE --defence quarantine")],
)  # fmt: skip
def test_the_next_step_for_an_assistant_names_its_target_file(name: str, command: str) -> None:
    rows = [row | {"family": "context"} if row["path"] == "mislead" else row
            for row in model(name, 30)]  # fmt: skip
    assert decide(table(rows)).command == command


@pytest.mark.slow
def test_three_conversations_are_chosen_by_a_rule() -> None:
    html = page(SWAYS, HOLDS)
    links = re.findall(r'<a href="#conversations\?([^"]*)">(.*?)</a>', header(html))
    labels = [label for _, label in links]
    assert labels == ["sways gives up its right answer under mislead", "holds keeps it",
                      "The next question"]  # fmt: skip
    gave_up, keepers, further = (parse_qs(unescape(address)) for address, _ in links)
    assert (gave_up["run"], gave_up["path"]) == (["sways"], ["mislead"])
    assert (keepers["run"], keepers["question"]) == (["holds"], gave_up["question"])
    assert 1 <= int(gave_up["question"][0][1:]) < 24
    assert further["question"] != gave_up["question"]
    # neither the order of the turns nor that of the models has an effect
    reversed_page = page([*HOLDS[::-1]], [*SWAYS[::-1]])
    assert re.findall(r'<a href="#conversations\?([^"]*)">', header(reversed_page)) == [
        address for address, _ in links
    ]


@pytest.mark.slow
def test_the_first_screen_has_few_words(tmp_path: Path) -> None:
    rules = tmp_path / "r.toml"
    rules.write_text(RULES)
    verdicts = gate(table([*SWAYS, *HOLDS]), read_rules(str(rules)))
    for html in (page(SWAYS), page(SWAYS, HOLDS), page(SWAYS, HOLDS, verdicts=verdicts)):
        text = plain(re.sub(r"<svg.*?</svg>", "", header(html), flags=re.S))
        assert len(text.split()) <= MOST_WORDS, text


@pytest.mark.slow
def test_a_page_says_whether_it_is_simulated() -> None:
    assert "SIMULATED" not in header(page(model("m", 4)))
    html = page(model("simulated/m", 4))
    assert html.partition("<h1>")[0].count("SIMULATED, not a measurement of a model") == 1
    assert "<title>[SIMULATED]" in html
    # once at the top, and once on the figure, of which a phone shows another layout instead
    screen = re.sub(r'(?s)<figure class="figure phone".*?</figure>', "", header(html))
    assert plain(screen).count("SIMULATED") == 2
    check_words(opening(table(model("simulated/m", 4)))[0], "[SIMULATED] simulated/m")


@pytest.mark.slow
def test_protocols_not_run_are_listed_in_a_line() -> None:
    rows = model("m", 4)
    assert not element(page(rows), "not-run")
    notes = ["2 questions unfinished; they failed at the server.", "4 techniques left out"]
    html = page(rows, notes=notes)
    check_words(element(html, "not-run"), "2 questions unfinished", "1 further note")
    assert "failed at the server" not in element(html, "not-run")
    assert all(f"<li>{note}</li>" in html for note in notes)
    rows[2] |= {"answer": None, "status": "none", "correct": False}
    check_words(element(page(rows), "not-run"), "1 of 120")


@pytest.mark.slow
def test_unparsed_replies_come_first() -> None:
    replies = ["It <b>depends</b>.\n\n" + "x" * 900, "I cannot say.", *["Hm."] * 200]

    def top(unread: int) -> str:
        rows = [row for row in model("m", 4) if row["arm"] != "control"]
        for row, reply in zip(rows[:unread], replies, strict=False):
            row |= {"answer": None, "status": "none", "correct": False, "reply": reply}
        return page(rows, title="t").partition("<h1>")[0].partition('id="hard-to-read">')[2]

    text = top(90)
    check_words(text, "m: 75% of 120")
    quotes = re.findall(r"<blockquote>(.*?)</blockquote>", text, re.S)
    assert list(map(unescape, quotes)) == [f"It <b>depends</b>. {'x' * 181}…", "I cannot say."]
    assert "holdfast score LOGDIR --model-role reader=MODEL" in text
    assert [bool(top(number)) for number in (60, 61)] == [False, True]


@pytest.mark.slow
def test_a_study_of_first_answers_alone_says_so() -> None:
    html = page([row for row in model("m", 4) if not row["path"]])
    assert "No answer was challenged" in html
    assert ' id="models"' not in html


@pytest.mark.slow
def test_hostile_names_are_text() -> None:
    html = page(model("<b>m</b>{{ 1 }}", 4))
    assert "&lt;b&gt;m&lt;/b&gt;{{ 1 }}" in html
    assert "<b>m</b>" not in header(html)


@pytest.mark.slow
def test_legible_pictures_are_printed_two_to_a_page() -> None:
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
def test_a_table_with_an_empty_figure_is_omitted() -> None:
    rows = [row | {"system": "heart"} for row in held("q1", "AAA")]
    assert not TABLES["accuracy by system"](table(rows)).is_empty()
    assert 'id="survival-table"' in page(rows)
    assert 'id="accuracy-by-system-table"' not in page(rows)
    assert 'id="accuracy-by-system-table"' in page(
        [row | {"system": "heart"} for row in model("m", 4)]
    )
