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
def plain_page() -> str:
    return comparison_page(rows(), ["A note."])


def pictures(page: Page) -> list[str]:
    start = "data:image/svg+xml;base64,"
    sources = [str(attributes["src"]) for tag, attributes in page.elements if tag == "img"]
    assert all(source.startswith(start) for source in sources)
    return [base64.b64decode(source.removeprefix(start)).decode() for source in sources]


def test_the_page_has_headline_figure_table_and_changes() -> None:
    page = Page(plain_page())
    assert page.open == []
    text = " ".join(page.text.split())
    words = ("60.0 points fewer than m1", "A: m1, run run-m1, d1", "inc_letter (average)",
             "A note.", "push (followup, d1)", "q16, q17")  # fmt: skip
    assert [word for word in words if word not in text] == []
    assert sum(tag == "tr" for tag, _ in page.elements) == 1 + 5
    light, dark = pictures(page)
    assert ('fill="white"' in light, 'fill="white"' in dark) == (True, False)
    for svg in (light, dark):
        labels = "".join(ElementTree.fromstring(svg).itertext())
        assert "push" in labels
        assert "inc_letter (average)" in labels


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = plain_page()
    page = Page(text)
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "link", "iframe", "object"})
    for _, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert not attributes.keys() & {"href", "action"}
    assert not re.search(r"https?://|@import|url\(", text)
    (policy,) = (row["content"] for _, row in page.elements if "http-equiv" in row)
    assert str(policy).startswith("default-src 'none'")
    assert "@media print" in text


def test_simulated_appears_in_title_text_and_figure() -> None:
    for text, is_simulated in ((comparison_page(rows(a="simulated/steadfast")), True),
                               (plain_page(), False)):  # fmt: skip
        page = Page(text)
        title = re.search("<title>(.*?)</title>", text)
        assert title
        for part in (title[1], page.text.replace(title[1], ""), pictures(page)[0]):
            assert ("SIMULATED" in part) == is_simulated


def test_hostile_names_are_shown_as_text() -> None:
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
    assert all("onerror" not in attributes for _, attributes in page.elements)
    assert "{{ 7 * 7 }}" in text
    for part in (text, *pictures(page)):
        assert not {"\x1b", "\u202e"} & {*part}
    for svg in pictures(page):
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
        assert "script" not in tags


def test_the_figure_has_a_mark_for_every_row() -> None:
    chain = ">".join(["authority-prior", "social-proof-prior", "misleading-context"])
    frame = rows().with_columns(path=pl.Series([chain, *rows()["path"][1:]]))
    spec = comparison(frame).to_dict()
    (forest,) = spec["vconcat"]
    marks = spec["datasets"][forest["layer"][2]["data"]["name"]]
    for name, column in (("y", "difference"), ("low", "low"), ("high", "high")):
        assert [mark[name] for mark in marks] == pytest.approx([100 * v for v in frame[column]])
    assert [mark["kind"] for mark in marks].count("average") == 1
    # the axis holds zero and every interval
    low, high = forest["layer"][2]["encoding"]["x"]["scale"]["domain"]
    assert low <= 100 * frame["low"].min() < 0 < 100 * frame["high"].max() <= high  # type: ignore[operator]
    # and no chain is cut
    places = comparison(frame.with_columns(arm=pl.lit("compound"))).to_dict()["datasets"]
    text = str(places).replace("\\n", " ")
    assert "authority-prior > social-proof-prior > misleading-context" in text
