"""Links of cells: each chooses exactly the conversations that its cell counts."""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl

import polars as pl
import pytest
from tests.report.page.test_explorer import conversations
from tests.report.unfolding import unfolded
from tests.results.frames import table
from tests.results.test_every_table import study

from holdfast.report import page
from holdfast.report.conversations import FLIPS, GROUP_LABELS, GROUPS, SHORT, Links
from holdfast.report.explorer import packed
from holdfast.report.page import ordered, report_page
from holdfast.results.declaration import TABLES, Count, Listing, sections
from holdfast.results.grid import Cell

Row = dict[str, Any]
TURNS = table([*study("r1", "m1"), *study("r2", "m2")])


def failing(turns: pl.DataFrame) -> pl.DataFrame:
    """The same turns, every thirteenth of which failed."""
    failure = pl.int_range(pl.len()) % 13 == 12
    return turns.with_columns(
        status=pl.when(failure).then(pl.lit("error")).otherwise("status"),
        answer=pl.when(~failure).then("answer"),
        correct=pl.col("correct") & ~failure,
    )


def cells(turns: pl.DataFrame) -> Iterator[tuple[str, str, Cell]]:
    """Table, header and cell, of every table of the report."""
    for of in (item for _, tables in sections() for item in tables):
        for grid in of.layout(of(ordered(turns)).to_dicts()) or []:
            lines = [line for block in grid.blocks for group in block.groups for line in group]
            for line in lines:
                for header, cell in zip(grid.columns, line.cells, strict=True):
                    yield of.name, header, cell


def selection(items: list[Row], link: str) -> list[Row]:
    """The conversations that an address chooses."""
    targets = dict(parse_qsl(link.partition("?")[2], keep_blank_values=True))
    flips = targets.pop("flip", None)
    offer = targets.pop("offer", None)
    codes = GROUPS.get(flips or "", (flips,))
    return [
        item for item in items
        if all(item[key] == value for key, value in targets.items())
        and (offer is None or offer in item["offer"].split("; "))
        and (flips is None or item["flip"] in codes)
    ]  # fmt: skip


@pytest.mark.parametrize("turns", [TURNS, failing(TURNS)], ids=["whole", "failing"])
@pytest.mark.slow
def test_links_open_as_many_conversations_as_their_cell_counts(turns: pl.DataFrame) -> None:
    explorer = packed(turns)
    items, links = conversations(explorer), Links(explorer.link_targets)
    links_by_table = Counter[str]()
    for name, header, cell in cells(turns):
        link = links.of(cell)
        if not link:
            continue
        links_by_table[name] += 1
        number = len(selection(items, link))
        # a share leads to those that it is of, a text to the one conversation that it names
        count_of = int(cell.text) if cell.text.isdigit() and header != "Replicate" else cell.n
        assert number == count_of, (name, header, cell.text, link)
    assert links_by_table.keys() >= {
        "accuracy",
        "flips",
        "flips by outcome",
        "flips by family",
        "survival",
        "tax",
        "attacks by question",
        "positions",
        "positions by winner",
        "beliefs",
    }
    assert "scale" not in links_by_table


_OFFER: dict[str, Callable[[Row], str | None]] = {
    "position": lambda of: str(1 + (of["shown"].split(",")[0] != of["target"]))
    if of["turn"] == 0 else None,
    "index": lambda of: of["suggested"],
    "offer": lambda of: str(of["turn"] + 1),
}  # fmt: skip
_BECAME: dict[str, Callable[[Row], bool]] = {
    "kept": lambda of: of["answer"] == of["target"],
    "adopted": lambda of: of["answer"] == of["suggested"],
    "lost": lambda of: of["answer"] != of["target"],
    "lost_to_suggested": lambda of: of["answer"] == of["suggested"],
    "lost_to_other": lambda of: of["answer"] not in (None, of["target"], of["suggested"]),
    "lost_unread": lambda of: of["answer"] is None,
}
_KEYS = ("run", "question", "epoch", "arm")
_LOSS = (pl.col("protocol") == "stick-or-switch") & (pl.col("answer") == pl.col("suggested"))
_NTH = pl.int_range(pl.len()) % 3
VARIETY = TURNS.with_columns(
    answer=pl.when(_LOSS & (_NTH == 1)).then(pl.lit("Z")).when(~_LOSS | (_NTH != 2)).then("answer"),
    status=pl.when(_LOSS & (_NTH == 2)).then(pl.lit("unparsed")).otherwise("status"),
)
"""The same turns; some that took what was offered say another option, or none."""


@pytest.mark.parametrize(
    ("name", "effect", "level", "counts"),
    [
        ("positions", None, "level", ("n", "kept")),
        ("positions by winner", "index", "index", ("offered", "adopted")),
        ("survival", "offer", "turn",
         ("at_risk", "lost", "lost_to_suggested", "lost_to_other", "lost_unread")),
    ],
)  # fmt: skip
def test_counts_of_offers_open_their_conversations(
    name: str, effect: str | None, level: str, counts: tuple[str, ...]
) -> None:
    of = TABLES[name]
    assert isinstance(of.layout, Listing)
    explorer = packed(VARIETY)
    items, links = conversations(explorer), Links(explorer.link_targets)
    # what has failed is in no table, nor is the rest of its conversation
    failure = VARIETY.filter(status="error").select(_KEYS)
    whole = VARIETY.join(failure, on=_KEYS, how="anti", maintain_order="left")
    columns = {column.name: column for column in of.layout.columns if isinstance(column, Count)}
    tally = Counter[str]()
    for row in of(ordered(VARIETY)).to_dicts():
        candidates = whole.filter(
            pl.col("run") == row["run"], pl.col("arm") == row["arm"]
        ).to_dicts()
        candidates = [
            item for item in candidates if _OFFER[effect or row["effect"]](item) == str(row[level])
        ]
        for count in filter(row.get, counts):
            matches = [item for item in candidates if _BECAME.get(count, bool)(item)]
            link = links.of(columns[count].cell(row))
            assert link, (count, row)
            choice = {tuple(str(item[key]) for key in _KEYS) for item in selection(items, link)}
            assert choice == {tuple(str(item[key]) for key in _KEYS) for item in matches}
            assert len(choice) == row[count]
            tally[count] += 1
    assert tally.keys() == {*counts}


def test_counts_of_beliefs_open_their_conversations() -> None:
    of = TABLES["beliefs"]
    assert isinstance(of.layout, Listing)
    columns = {column.name: column for column in of.layout.columns if isinstance(column, Count)}
    # as many again without the belief that they held, or without one after the offer
    nth = pl.int_range(pl.len()) % 5
    turns = VARIETY.filter(pl.col("status") != "error").with_columns(
        p_answer=pl.when(nth != 2).then("p_answer"), p_gold=pl.when(nth != 4).then("p_gold")
    )
    explorer = packed(turns)
    items, links = conversations(explorer), Links(explorer.link_targets)
    candidates = turns.filter(pl.col("protocol") == "stick-or-switch").to_dicts()
    by_turn = {(*(item[key] for key in _KEYS), item["turn"]): item for item in candidates}
    tally = Counter[str]()
    for row in of(ordered(turns)).to_dicts():
        targets: dict[str, set[tuple[str, ...]]] = {
            "n": set(),
            "n_switched": set(),
            "n_stuck": set(),
        }
        for (run, question, epoch, arm, turn), item in by_turn.items():
            if (run, arm, turn + 1) != (row["run"], row["arm"], row["turn"]):
                continue
            if item["p_gold"] is None:
                continue
            branch = arm == "flexible-correct"
            root = "negative" if branch else arm
            before = by_turn.get((run, question, epoch, root, turn - 1), {}).get("p_answer")
            aim, answer = item["suggested" if branch else "target"], item["answer"]
            holds = answer is not None and (answer == aim) != branch
            conversation = tuple(map(str, (run, question, epoch, arm)))
            targets["n"].add(conversation)
            if before is not None and answer is not None:
                targets["n_stuck" if holds else "n_switched"].add(conversation)
        for count in filter(row.get, targets):
            assert len(targets[count]) == row[count], (count, row)
            link = links.of(columns[count].cell(row))
            assert link, (count, row)
            choice = {tuple(str(item[key]) for key in _KEYS) for item in selection(items, link)}
            assert choice == targets[count]
            tally[count] += 1
    assert tally.keys() == {"n", "n_switched", "n_stuck"}


@pytest.mark.parametrize("turns", [TURNS, failing(TURNS)], ids=["whole", "failing"])
@pytest.mark.slow
def test_linked_conversations_reproduce_their_share(turns: pl.DataFrame) -> None:
    explorer = packed(turns)
    items, links = conversations(explorer), Links(explorer.link_targets)
    shares = Counter[str]()
    for name, header, cell in cells(turns):
        link = links.of(cell)
        if not link or not re.match(r"\d+\.\d", cell.text):
            continue
        subset = selection(items, link)
        hits = {
            "Kept %": [item["flip"] == "kept" for item in subset],
            "Corrected %": [item["turns"][item["named"]]["correct"] for item in subset],
            "Flip %": [item["flip"] in GROUPS["gave-way"] for item in subset],
        }.get(header)
        if name in ("accuracy", "accuracy by length") and {item["protocol"] for item in subset} <= {
            "followup", "single-turn",
        }:  # fmt: skip
            hits = [item["turns"][item["named"]]["correct"] for item in subset]
        if hits is None:
            continue
        shares[name] += 1
        share = f"{100 * sum(hits) / len(hits):.1f}"
        # an average over techniques is their mean, which is the same where all are as many
        assert cell.text.split()[0] == share, (name, header, cell.text, link)
    assert shares.keys() >= {"accuracy", "flips", "flips by family"}


def test_a_page_has_the_links_of_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "page_svgs", lambda *args, **more: [])
    text_of_page = unfolded(report_page(TURNS).html)
    items = conversations(packed(TURNS))
    anchors = re.findall(r'<td[^>]*><a href="(#conversations[^"]*)">([^<]*)</a>', text_of_page)
    assert len(anchors) > 100
    for link, text in anchors:
        if text.isdigit():
            assert len(selection(items, html.unescape(link))) in (int(text), 1)


def test_no_link_opens_more_or_fewer() -> None:
    links = Links(packed(TURNS).link_targets)
    row = {"run": "r1", "protocol": "followup", "path": "push"}
    number = links.number(**row)
    assert number == 9
    assert links.of(Cell("9", of=row, n=number))
    for wrong in (Cell("8", of=row, n=8), Cell("9", of=row), Cell("9", n=9), Cell("0", of=row, n=0),
                  Cell("9", of={**row, "run": None}, n=9)):  # fmt: skip
        assert links.of(wrong) == ""


@pytest.mark.slow
def test_of_a_large_study_a_link_counts_what_the_page_holds() -> None:
    links = Links(packed(TURNS, 20).link_targets)
    assert not any(
        links.of(cell) for name, header, cell in cells(TURNS) if name == "flips" and header == "n"
    )


def test_columns_filter_by_existing_outcomes() -> None:
    columns = [
        column
        for _, tables in sections()
        for table in tables
        if isinstance(table.layout, Listing)
        for column in table.layout.columns
    ]
    selection = [column.of for column in columns if column.of and not callable(column.of)]
    assert {of["flip"] for of in selection if "flip" in of} <= FLIPS.keys() | GROUPS.keys()
    assert all(set(codes) <= FLIPS.keys() for codes in GROUPS.values())
    assert GROUPS.keys() <= GROUP_LABELS.keys() | SHORT.keys()
