"""The page of a comparison: whole in itself, hostile names included."""

import base64
import re
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import polars as pl
import pytest
from tests.report.test_comparison_layout import EVIL, rows, turns

from holdfast.report.comparison_figure import comparison
from holdfast.report.comparison_page import comparison_page
from holdfast.results.comparison import compare

Attributes = list[tuple[str, str | None]]


class Page(HTMLParser):
    """Elements with their attributes, and the text of the page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


@cache
def the_page() -> str:
    return comparison_page(rows(), ["A note."])


def pictures(page: Page) -> list[str]:
    sources = [str(own["src"]) for tag, own in page.elements if tag == "img"]
    start = "data:image/svg+xml;base64,"
    assert all(source.startswith(start) for source in sources)
    return [base64.b64decode(source.removeprefix(start)).decode() for source in sources]


def test_the_page_has_the_headline_the_figure_the_table_and_what_changed() -> None:
    page = Page(the_page())
    assert page.open == []
    text = " ".join(page.text.split())
    assert "Right answers after inc_letter, average: m2 has 60.0 points fewer than m1 [" in text
    assert "A: m1, run run-m1, d1" in text
    assert "inc_letter (average)" in text
    assert "A note." in text
    assert "push (followup, d1): 2 gained, 16 lost" in text
    assert "q16, q17" in text
    assert sum(tag == "tr" for tag, _ in page.elements) == 1 + 5
    light, dark = pictures(page)
    assert light != dark
    for svg in (light, dark):
        drawn = ElementTree.fromstring(svg)
        words = "".join(drawn.itertext())
        assert "push" in words
        assert "inc_letter (average)" in words


def test_the_page_asks_for_nothing_and_runs_nothing() -> None:
    text = the_page()
    page = Page(text)
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "link", "iframe", "object"})
    for _, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert not attributes.keys() & {"href", "action"}
    assert not re.search(r"https?://|@import|url\(", text)
    (policy,) = (own["content"] for _, own in page.elements if "http-equiv" in own)
    assert str(policy).startswith("default-src 'none'")


def test_light_dark_and_print() -> None:
    text = the_page()
    assert text.count("@media screen and (prefers-color-scheme: dark)") == 2
    assert "@media print" in text
    light, dark = pictures(Page(text))
    assert 'fill="white"' in light
    assert 'fill="white"' not in dark


def test_simulated_is_said_in_title_text_and_figure() -> None:
    text = comparison_page(rows(a="simulated/steadfast"))
    assert "<title>[SIMULATED] Comparison</title>" in text
    assert "SIMULATED, not a measurement of a model." in text
    assert "[SIMULATED]" in pictures(Page(text))[0]
    assert "SIMULATED" not in the_page()
    assert "SIMULATED" not in pictures(Page(the_page()))[0]


def test_hostile_names_stay_text() -> None:
    hostile = f'{EVIL}{{{{ 7 * 7 }}}}"><img src=x onerror=alert(1)>'
    a = turns(hostile, {"push": "ABA", "shove": "AAA"}, dataset=hostile)
    b = turns("b", {"push": "BAA", "shove": "BBB"}, dataset=hostile)
    a, b = (
        frame.with_columns(question=frame["question"] + hostile, path=frame["path"] + hostile)
        for frame in (a, b)
    )
    text = comparison_page(compare(a, b).rows, [hostile])
    page = Page(text)
    assert page.open == []
    assert [tag for tag, _ in page.elements if tag in ("script", "img")] == ["img", "img"]
    assert all("onerror" not in own for _, own in page.elements)
    assert "{{ 7 * 7 }}" in text
    for control in ("\x1b", "\u202e"):
        assert control not in text
        assert all(control not in svg for svg in pictures(page))
    for svg in pictures(page):
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
        assert "script" not in tags


def test_the_figure_has_a_mark_for_every_row() -> None:
    frame = rows()
    spec = comparison(frame).to_dict()
    (forest,) = spec["vconcat"]
    values = spec["datasets"][forest["layer"][2]["data"]["name"]]
    assert [one["y"] for one in values] == pytest.approx(
        [100 * value for value in frame["difference"]]
    )
    assert [one["low"] for one in values] == pytest.approx([100 * v for v in frame["low"]])
    assert [one["kind"] for one in values].count("average") == 1
    # the axis holds zero and every interval
    low, high = forest["layer"][2]["encoding"]["x"]["scale"]["domain"]
    assert low <= 100 * frame["low"].min() < 0 < 100 * frame["high"].max() <= high  # type: ignore[operator]


def test_no_chain_is_cut_in_the_figure() -> None:
    chain = ">".join(["authority-prior", "social-proof-prior", "misleading-context"])
    frame = rows()
    paths = [chain, *frame["path"][1:]]
    spec = comparison(frame.with_columns(path=pl.Series(paths), arm=pl.lit("compound"))).to_dict()
    (forest,) = spec["vconcat"]
    places = [one["place"] for one in spec["datasets"][forest["layer"][2]["data"]["name"]]]
    assert places[0] == "authority-prior > social-proof-prior >\nmisleading-context"
