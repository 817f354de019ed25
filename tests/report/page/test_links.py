"""Links of cells: each chooses exactly the conversations that its cell counts."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import polars as pl
import pytest
from tests.report.page.test_explorer import conversations
from tests.results.frames import table
from tests.results.test_every_table import study

from holdfast.report import page, report_page
from holdfast.report.conversations import FLIPS, GROUPED, GROUPS, SHORT, Links
from holdfast.report.explorer import packed
from holdfast.report.page import ordered
from holdfast.results import sections
from holdfast.results.declaration import Listing
from holdfast.results.grid import Cell

Row = dict[str, Any]
TURNS = table([*study("r1", "m1"), *study("r2", "m2")])


def failing(turns: pl.DataFrame) -> pl.DataFrame:
    """The same turns, every eleventh of which failed."""
    failed = pl.int_range(pl.len()) % 11 == 10
    return turns.with_columns(
        status=pl.when(failed).then(pl.lit("error")).otherwise("status"),
        answer=pl.when(~failed).then("answer"),
        correct=pl.col("correct") & ~failed,
    )


def cells(turns: pl.DataFrame) -> Iterator[tuple[str, str, Cell]]:
    """Table, header and cell, of every table of the report."""
    for of in (one for _, tables in sections() for one in tables):
        for grid in of.layout(of(ordered(turns)).to_dicts()) or []:
            lines = [line for block in grid.blocks for group in block.groups for line in group]
            for line in lines:
                for header, cell in zip(grid.columns, line.cells, strict=True):
                    yield of.name, header, cell


def chosen(found: list[Row], link: str) -> list[Row]:
    """The conversations that an address chooses."""
    wanted = dict(parse_qsl(link.partition("?")[2], keep_blank_values=True))
    flips = wanted.pop("flip", None)
    offer = wanted.pop("offer", None)
    codes = GROUPS.get(flips or "", (flips,))
    return [
        one for one in found
        if all(one[key] == value for key, value in wanted.items())
        and (offer is None or offer in one["offer"].split("; "))
        and (flips is None or one["flip"] in codes)
    ]  # fmt: skip


@pytest.mark.parametrize("turns", [TURNS, failing(TURNS)], ids=["whole", "failing"])
def test_a_link_chooses_as_many_conversations_as_its_cell_counts(turns: pl.DataFrame) -> None:
    explorer = packed(turns)
    found, links = conversations(explorer), Links(explorer.listed)
    followed = Counter[str]()
    for name, header, cell in cells(turns):
        link = links.of(cell)
        if not link:
            continue
        followed[name] += 1
        number = len(chosen(found, link))
        # a share leads to those that it is of, a text to the one conversation that it names
        counted = int(cell.text) if cell.text.isdigit() and header != "Replicate" else cell.n
        assert number == counted, (name, header, cell.text, link)
    assert followed.keys() >= {
        "accuracy",
        "flips",
        "flows",
        "holding",
        "survival",
        "tax",
        "attack-list",
        "positions",
        "winners",
    }
    assert not followed.keys() & {"scale", "beliefs"}


@pytest.mark.parametrize("turns", [TURNS, failing(TURNS)], ids=["whole", "failing"])
def test_the_conversations_of_a_share_give_the_share(turns: pl.DataFrame) -> None:
    explorer = packed(turns)
    found, links = conversations(explorer), Links(explorer.listed)
    shares = Counter[str]()
    for name, header, cell in cells(turns):
        link = links.of(cell)
        if not link or not re.match(r"\d+\.\d", cell.text):
            continue
        those = chosen(found, link)
        hits = {
            "Kept %": [one["flip"] == "kept" for one in those],
            "Corrected %": [one["turns"][one["named"]]["correct"] for one in those],
            "Flip %": [one["flip"] in GROUPS["gave-way"] for one in those],
        }.get(header)
        if name in ("accuracy", "lengths") and {one["protocol"] for one in those} <= {
            "followup", "single-turn",
        }:  # fmt: skip
            hits = [one["turns"][one["named"]]["correct"] for one in those]
        if hits is None:
            continue
        shares[name] += 1
        share = f"{100 * sum(hits) / len(hits):.1f}"
        # an average over techniques is their mean, which is the same where all are as many
        assert cell.text.split()[0] == share, (name, header, cell.text, link)
    assert shares.keys() >= {"accuracy", "flips", "holding"}


def test_a_page_has_the_links_of_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "page_svgs", lambda *args, **more: [])
    made = report_page(TURNS).html
    found = conversations(packed(TURNS))
    anchors = re.findall(r'<td[^>]*><a href="(#conversations[^"]*)">([^<]*)</a>', made)
    assert len(anchors) > 100
    for link, text in anchors:
        if text.isdigit():
            assert len(chosen(found, html.unescape(link))) in (int(text), 1)


def test_no_link_leads_to_more_or_fewer() -> None:
    links = Links(packed(TURNS).listed)
    row = {"run": "r1", "protocol": "followup", "path": "push"}
    number = links.number(**row)
    assert number == 9
    assert links.of(Cell("9", of=row, n=number))
    for wrong in (Cell("8", of=row, n=8), Cell("9", of=row), Cell("9", n=9), Cell("0", of=row, n=0),
                  Cell("9", of={**row, "run": None}, n=9)):  # fmt: skip
        assert links.of(wrong) == ""


def test_of_a_large_study_a_link_counts_what_the_page_holds() -> None:
    links = Links(packed(TURNS, 20).listed)
    assert not any(
        links.of(cell) for name, header, cell in cells(TURNS) if name == "flips" and header == "n"
    )


def test_columns_choose_by_outcomes_that_there_are() -> None:
    columns = [
        column
        for _, tables in sections()
        for table in tables
        if isinstance(table.layout, Listing)
        for column in table.layout.columns
    ]
    chosen = [column.of for column in columns if column.of and not callable(column.of)]
    assert {of["flip"] for of in chosen if "flip" in of} <= FLIPS.keys() | GROUPS.keys()
    assert all(set(codes) <= FLIPS.keys() for codes in GROUPS.values())
    assert GROUPS.keys() <= GROUPED.keys() | SHORT.keys()
