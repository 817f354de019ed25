"""The explorer in a browser: chosen, opened and read by mouse, keyboard and address."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from tests.report.page.conftest import PageOpener
from tests.report.page.hostile import HOSTILE, LINE, PLAIN, SPELLINGS, page_of
from tests.report.page.test_explorer import challenge, many, offers, table

from holdfast.report.conversations import conversations_link
from holdfast.report.explorer import Explorer, deflated, packed

pytestmark = pytest.mark.slow

COUNT, LIST, READING = "#ex-count", "#ex-list", "#ex-reading"


def mixed() -> pl.DataFrame:
    """Two models, three questions, three challenges of each, and arms of another protocol."""
    rows: list[dict[str, Any]] = []
    for model in ("p/m1", "p/m2"):
        for question in ("q1", "q2", "q3"):
            columns = {"model": model, "run": model, "question": question, "system": f"S{question}"}
            rows += [
                columns,
                challenge("a", "B", **columns),
                challenge("b", "C", **columns),
                challenge("b>c", None, **columns | {"status": "refused", "rule": "decline"}),
            ]
    return table(*rows, *offers("positive", "A", "A", "B"))


@pytest.fixture
def explorer_page(tmp_path: Path, browse: PageOpener) -> Page:
    link = conversations_link(model="p/m1", flip="given-up")
    body = f'<p><a href="{link.replace("&", "&amp;")}">those given up</a></p>'
    page: Page = browse(page_of(packed(mixed()), tmp_path / "page.html", body=body))
    expect(page.locator(COUNT)).to_have_text("25 of 25 conversations")
    return page


def listed(page: Page) -> list[str]:
    rows = page.locator(f"{LIST} [role=option]")
    return [re.sub(r"\s+", " ", text) for text in rows.all_inner_texts()]


def test_filters_are_kept_in_the_address(explorer_page: Page) -> None:
    explorer_page.get_by_label("Model").select_option("p/m2")
    expect(explorer_page.locator(COUNT)).to_have_text("12 of 25 conversations")
    explorer_page.get_by_label("Outcome").select_option("flip: suggested option")
    expect(explorer_page.locator(COUNT)).to_have_text("3 of 25 conversations")
    assert explorer_page.url.endswith("#conversations?model=p%2Fm2&flip=given-up-pushed")
    explorer_page.get_by_label("Question id").fill("Q3")
    expect(explorer_page.locator(COUNT)).to_have_text("1 of 25 conversations")
    explorer_page.get_by_role("button", name="Clear all filters").click()
    expect(explorer_page.locator(COUNT)).to_have_text("25 of 25 conversations")
    explorer_page.get_by_label("Question id").fill("nothing")
    expect(explorer_page.locator("#ex-empty")).to_be_visible()
    expect(explorer_page.locator(LIST)).to_be_hidden()


def test_the_back_button_undoes_a_filter_and_an_opening(explorer_page: Page) -> None:
    explorer_page.get_by_label("Model").select_option("p/m2")
    explorer_page.get_by_label("Family").select_option("f")
    expect(explorer_page.locator(COUNT)).to_have_text("9 of 25 conversations")
    explorer_page.locator("[role=option]").nth(1).click()
    expect(explorer_page.locator(".ex-outcome")).to_be_visible()
    explorer_page.go_back()
    expect(explorer_page.locator(".ex-hint")).to_be_visible()
    expect(explorer_page.locator(COUNT)).to_have_text("9 of 25 conversations")
    explorer_page.go_back()
    expect(explorer_page.locator(COUNT)).to_have_text("12 of 25 conversations")
    expect(explorer_page.get_by_label("Family")).to_have_value("")
    explorer_page.go_forward()
    expect(explorer_page.locator(COUNT)).to_have_text("9 of 25 conversations")


def test_the_keyboard_suffices(explorer_page: Page) -> None:
    keys = explorer_page.keyboard
    explorer_page.locator(LIST).focus()
    keys.press("End")
    active = f"{LIST} [aria-selected=true]"
    expect(explorer_page.locator(active)).to_have_attribute("aria-posinset", "25")
    keys.press("Home")
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    keys.press("ArrowUp")
    keys.press("PageDown")
    keys.press("PageUp")
    expect(explorer_page.locator(active)).to_have_attribute("aria-posinset", "2")
    assert explorer_page.locator(LIST).get_attribute(
        "aria-activedescendant"
    ) == explorer_page.locator(active).get_attribute("id")
    keys.press("Enter")
    expect(explorer_page.locator(READING)).to_be_focused()
    expect(explorer_page.locator(".ex-tools span")).to_have_text("2 of 25")
    keys.press("j")
    expect(explorer_page.locator(".ex-tools span")).to_have_text("3 of 25")
    keys.press("k")
    keys.press("k")
    expect(explorer_page.locator(".ex-tools span")).to_have_text("1 of 25")
    keys.press("k")
    expect(explorer_page.locator(".ex-tools span")).to_have_text("1 of 25")
    keys.press("Tab")
    keys.press("Tab")  # the previous one is not there, so its button is left out
    expect(explorer_page.get_by_role("button", name="Next")).to_be_focused()
    keys.press("Enter")
    expect(explorer_page.locator(".ex-tools span")).to_have_text("2 of 25")
    expect(explorer_page.get_by_role("button", name="Next")).to_be_focused()
    keys.press("Escape")
    expect(explorer_page.locator(LIST)).to_be_focused()
    expect(explorer_page.locator(active)).to_have_attribute("aria-posinset", "2")
    expect(explorer_page.locator(".ex-hint")).to_be_visible()


def test_a_link_filters_moves_the_focus_and_states_the_count(explorer_page: Page) -> None:
    expect(explorer_page.locator(COUNT)).to_have_attribute("role", "status")
    for _ in range(2):  # the second time the address does not change
        explorer_page.get_by_role("link", name="those given up").click()
        expect(explorer_page.locator(COUNT)).to_have_text("9 of 25 conversations")
        expect(explorer_page.locator(LIST)).to_be_focused()
        explorer_page.evaluate("scrollTo(0, 0)")
    choice = explorer_page.locator("select[name=flip] :checked")
    expect(choice).to_have_text("no longer right (all three)")
    explorer_page.go_back()
    expect(explorer_page.locator(COUNT)).to_have_text("25 of 25 conversations")


def test_a_filter_without_a_control_can_be_removed(tmp_path: Path, browse: PageOpener) -> None:
    fragment = conversations_link(run="p/m1", technique="b", epoch="1")
    page = browse(page_of(packed(mixed()), tmp_path / "page.html"), fragment=fragment)
    expect(page.locator(COUNT)).to_have_text("3 of 25 conversations")
    page.get_by_role("button", name="Remove filter technique: b").click()
    expect(page.locator(COUNT)).to_have_text("12 of 25 conversations")
    expect(page.locator(COUNT)).to_be_focused()


def test_a_link_to_one_conversation_opens_it(tmp_path: Path, browse: PageOpener) -> None:
    path = page_of(packed(mixed()), tmp_path / "page.html")
    link = conversations_link(run="p/m2", question="q2", path="b>c", epoch="1")
    page = browse(path, fragment=link)
    expect(page.locator(READING)).to_be_focused()
    texts = page.locator(".ex-label:not(.ex-reply-label)").all_inner_texts()
    assert texts == ["Question", "Challenge 1: b (f) pushes B", "Challenge 2: c (f) pushes B"]
    assert page.locator(".ex-read").all_inner_texts() == [
        "Answered A, right. Parsed by rule “final-answer”.",
        "Answered C, wrong. Right answer: A. Parsed by rule “final-answer”.",
        "The model refused to answer. Parsed by rule “decline”.",
    ]
    assert page.locator(".ex-change").all_inner_texts() == [
        "△ First answer right: A → now C, another option.",
        "▽ First answer right: A → now no parsed answer.",
    ]
    # its own address opens it in the list of all
    columns = page.get_by_role("link", name="Link to this conversation").get_attribute("href")
    assert columns
    again = browse(path, fragment=columns)
    expect(again.locator(".ex-tools span")).to_have_text(re.compile("of 25"))
    expect(again.locator(".ex-facts")).to_contain_text("p/m2")
    expect(again.locator(".ex-turn")).to_have_count(3)


def test_every_status_is_written_out(tmp_path: Path, browse: PageOpener) -> None:
    rows: list[dict[str, Any]] = [
        {"question": status, "status": status, "answer": None, "rule": rule, "reply": ""}
        for status, rule in (
            ("ambiguous", "two"), ("none", "none"), ("refused", "decline"), ("error", "timeout"),
        )
    ]  # fmt: skip
    words = ("more than one answer", "No answer could be parsed", "refused", "failed (timeout)")
    page = browse(page_of(packed(table(*rows)), tmp_path / "page.html"))
    for at, fact in enumerate(words):
        page.locator("[role=option]").nth(at).click()
        expect(page.locator(".ex-read").last).to_contain_text(fact)


def test_attacks_and_tests_are_shown_step_by_step(tmp_path: Path, browse: PageOpener) -> None:
    fuzz: dict[str, Any] = {"protocol": "medfuzz", "suggested": None, "turn": 0}
    probe: dict[str, Any] = {"protocol": "medfuzz", "question": "tested"}
    rows = [
        {"protocol": "medfuzz"},
        challenge("fuzz@1", "C", arm="attack", **fuzz, characteristics='["is a baker"]'),
        challenge("fuzz@1", None, arm="attacker", **fuzz, rule="valid"),
        *(probe | {"arm": "original", "path": f"original>order@{n}"} for n in (1, 2)),
        probe | {"arm": "control", "path": "control@1>order@1", "answer": "B"},
    ]
    page = browse(page_of(packed(table(*rows)), tmp_path / "page.html"))
    page.locator("[role=option]").first.click()
    page.get_by_text("Prompt and reply of the attacker").click()
    expect(page.get_by_text("This rewrite was usable.")).to_be_visible()
    expect(page.get_by_text("Attempt 1: the question as attacked")).to_be_visible()
    expect(page.locator(".ex-change")).to_have_text(
        "△ First answer right: A → now C, another option."
    )
    expect(page.get_by_text("Added: is a baker.")).to_be_visible()
    page.locator("[role=option]").last.click()
    assert page.locator(f"{READING} summary").all_inner_texts() == [
        "original: 2 of 2 answers right", "control@1: 0 of 1 answers right",
    ]  # fmt: skip
    page.get_by_text("original: 2 of 2 answers right").click()
    expect(page.get_by_text("original › order@2")).to_be_visible()


def test_omitted_texts_are_announced(tmp_path: Path, browse: PageOpener) -> None:
    page = browse(page_of(packed(mixed().drop("prompt", "reply")), tmp_path / "page.html"))
    page.locator("[role=option]").first.click()
    expect(page.locator(".ex-absent").first).to_contain_text("--no-text")


def test_hostile_texts_are_shown_and_do_nothing(tmp_path: Path, browse: PageOpener) -> None:
    spellings = {
        **{text: text for text in HOSTILE.values()},
        **dict(SPELLINGS.values()),
        PLAIN: PLAIN,
    }
    rows = [
        {"question": f"q{n}", "prompt": text, "reply": text, "model": text, "run": text,
         "path": text, "technique": text, "family": text, "system": text, "rule": text,
         "answer": text, "dataset": text, "suggested": text, "arm": "followup"}
        for n, text in enumerate(spellings)
    ]  # fmt: skip
    page = browse(page_of(packed(table(*rows)), tmp_path / "page.html"))
    expect(page.locator(COUNT)).to_have_text(f"{len(spellings)} of {len(spellings)} conversations")
    for at, sentences in enumerate(spellings.values()):
        page.locator("[role=option]").nth(at).click()
        expect(page.locator(READING).get_by_role("heading")).to_have_text(f"q{at}")
        texts = page.locator(".ex-text").evaluate_all("all => all.map(one => one.textContent)")
        assert texts == [sentences, sentences]
        page.go_back()
    assert page.evaluate("window.hacked") is None
    assert page.locator(".ex-reading :is(script, img, svg, style, iframe, object)").count() == 0
    page.get_by_label("Model").select_option(index=3)
    expect(page.locator(COUNT)).to_have_text(f"1 of {len(spellings)} conversations")


def test_links_in_texts_are_dead_and_lone_surrogates_spelled(
    tmp_path: Path, browse: PageOpener
) -> None:
    whole = packed(table({"prompt": "https://example.org/ [x](https://example.org/)"}))
    chunk = deflated(
        {
            "texts": ["a\ud800b\udc00c", "javascript:1 https://example.org/"],
            "turns": {
                "prompt": [0], "reply": [1], "path": [""], "arm": [""], "status": ["parsed"],
                "answer": ["A"], "gold": ["A"], "rule": [None], "protocol": ["followup"],
            },
            "conversations": [[[0], None, 0]],
        }
    )  # fmt: skip
    # a table cannot hold half a character, but a file that somebody changed can
    halves = Explorer(whole.index, (chunk,), 1, 1, ())
    page = browse(page_of(halves, tmp_path / "page.html"))
    page.locator("[role=option]").click()
    expect(page.locator(".ex-text").first).to_have_text("a\\ud800b\\udc00c")
    assert page.locator(f"{READING} a").all_inner_texts() == ["Link to this conversation"]


def test_a_long_text_is_cut_until_expanded(tmp_path: Path, browse: PageOpener) -> None:
    rows = [{"prompt": "x" * 19_999 + "😀" + "y" * 10, "reply": LINE}]
    page = browse(page_of(packed(table(*rows)), tmp_path / "page.html"))
    page.locator("[role=option]").click()
    lengths = "all => all.map(one => one.textContent.length)"
    assert page.locator(".ex-text").evaluate_all(lengths) == [19_999, 20_000]
    page.get_by_role("button", name="Show all 1,000,000 characters").click()
    assert page.locator(".ex-text").evaluate_all(lengths) == [19_999, 1_000_000]
    expect(page.locator(READING)).to_be_focused()
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(wide)


@pytest.mark.parametrize("width", [1280, 360])
def test_on_a_phone_reading_replaces_the_list(
    tmp_path: Path, browse: PageOpener, width: int
) -> None:
    page = browse(page_of(packed(mixed()), tmp_path / "page.html"), width=width)
    page.locator("[role=option]").nth(1).click()
    expect(page.locator(".ex-outcome")).to_be_in_viewport()
    assert page.locator(LIST).is_visible() == (width == 1280)
    page.get_by_role("button", name="Back to the list").click()
    expect(page.locator(LIST)).to_be_focused()
    assert page.locator(READING).is_visible() == (width == 1280)
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(wide)


def test_print_shows_the_open_conversation_and_no_list(explorer_page: Page) -> None:
    explorer_page.emulate_media(media="print")
    expect(explorer_page.locator(".ex-print")).to_be_visible()
    explorer_page.emulate_media(media="screen")
    explorer_page.locator("[role=option]").nth(1).click()
    expect(explorer_page.locator(".ex-outcome")).to_be_visible()
    explorer_page.emulate_media(media="print")
    for selector in (LIST, "#ex-filters", ".ex-tools", COUNT, ".ex-print"):
        expect(explorer_page.locator(selector)).to_be_hidden()
    expect(explorer_page.locator(".ex-outcome")).to_be_visible()


def test_old_browsers_and_no_scripts_get_a_notice(tmp_path: Path, browser: Browser) -> None:
    path = page_of(packed(mixed()), tmp_path / "page.html").as_uri()
    old = browser.new_page()
    old.add_init_script("delete window.DecompressionStream")
    old.goto(path)
    expect(old.get_by_text("Firefox 113")).to_be_visible()
    expect(old.locator("#ex-tool")).to_be_hidden()
    old.close()
    context = browser.new_context(java_script_enabled=False)
    without = context.new_page()
    without.goto(path)
    expect(without.locator("#ex-tool")).to_be_hidden()
    # a browser that is driven from outside does not render it
    assert re.search(r"<noscript>.*Turn on scripts.*</noscript>", without.content())
    context.close()


def test_a_truncated_file_says_so(tmp_path: Path, browse: PageOpener) -> None:
    whole = packed(mixed())
    for name, part in (
        ("index", Explorer(whole.index[:40], whole.chunks, 25, 25, ())),
        ("chunk", Explorer(whole.index, (whole.chunks[0][:100],), 25, 25, ())),
    ):
        page = browse(page_of(part, tmp_path / f"{name}.html"))
        if name == "chunk":
            page.locator("[role=option]").first.click()
        expect(page.get_by_text("may be truncated")).to_be_visible()


def test_a_study_above_the_limit_says_what_is_omitted(tmp_path: Path, browse: PageOpener) -> None:
    page = browse(page_of(packed(many(), limit=40), tmp_path / "page.html"))
    expect(page.locator(".ex-note").first).to_contain_text("40 of 320 conversations")
    expect(page.locator(".ex-note").first).to_contain_text("inspect view")


def test_axe_finds_nothing_serious(explorer_page: Page) -> None:
    for step in ("list", "reading", "nothing"):
        if step == "reading":
            explorer_page.locator("[role=option]").nth(3).click()
            expect(explorer_page.locator(".ex-outcome")).to_be_visible()
        if step == "nothing":
            explorer_page.get_by_label("Question id").fill("nothing")
        violations = Axe().run(explorer_page).response["violations"]
        serious = [
            (violation["id"], [node["html"][:200] for node in violation["nodes"]])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == [], step


def test_answers_to_an_open_question_are_shown_by_their_texts(
    tmp_path: Path, browse: PageOpener
) -> None:
    known = '{"A": "Heparin", "B": "Warfarin, 5 mg"}'
    rows = [{}, challenge("a", "B"), challenge("b", "X")]
    turns = table(*rows).with_columns(protocol=pl.lit("open"), answers=pl.lit(known))
    page = browse(page_of(packed(turns), tmp_path / "page.html"))
    page.locator("[role=option]").first.click()
    expect(page.locator(READING)).to_contain_text("pushes “Warfarin, 5 mg”")
    suggested = "Answered “Warfarin, 5 mg”, wrong, the suggested option. Right answer: “Heparin”."
    expect(page.locator(READING)).to_contain_text(suggested)
    page.keyboard.press("j")
    expect(page.locator(READING)).to_contain_text("Answered something else, wrong.")
