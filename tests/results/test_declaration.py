"""Declarations of tables: what is read off them, and what another package can bring."""

import sys
from pathlib import Path

import pytest

from holdfast.errors import InputError
from holdfast.registry import MODULES
from holdfast.registry import TABLES as REGISTERED
from holdfast.render.drawing import FIGURES
from holdfast.results.declaration import (
    TABLES,
    Count,
    Number,
    Share,
    sections,
    sections_of,
    table_named,
    tables_of,
)

OUTSIDE = """
from holdfast.results.declaration import Count, Listing, Path, Section, Table

LONGER = Section("longer", "Longer", "Longer answers", "How long answers are.", 12)

WORDS = Table(
    "words",
    lambda turns: turns,
    layout=Listing(Path("Challenge", "path"), (Count("n", "n"),), ()),
    title="How long?",
    lead="In words.",
    section="{section}",
)
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of somebody else with a table and a section of its own."""
    (tmp_path / "longer").mkdir()
    (tmp_path / "longer" / "__init__.py").write_text("")
    (tmp_path / "longer" / "words.py").write_text(OUTSIDE.format(section="longer"))
    (tmp_path / "lost.py").write_text(OUTSIDE.format(section="nowhere"))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("longer", "longer.words", "lost"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "longer.words"


def test_every_table_is_where_it_is_registered() -> None:
    assert list(TABLES) == list(REGISTERED)
    for name, place in REGISTERED.items():
        module, _, attribute = place.partition(":")
        assert getattr(sys.modules[module], attribute) is TABLES[name]
    assert len({table.id for table in TABLES.values()}) == len(TABLES)


def test_a_table_is_named_with_what_its_rows_are_by() -> None:
    for name, table in TABLES.items():
        of, _, by = name.partition(" by ")
        assert table_named(of, by or None) is table


@pytest.mark.parametrize(
    ("name", "by", "message"),
    [
        ("acuracy", None, "unknown table 'acuracy'"),
        ("accuracy by step", None, "unknown table 'accuracy by step'"),
        ("accuracy", "steps", "no table 'accuracy' by 'steps'"),
        ("tax", "step", "table 'tax' has no --by"),
        ("variance", None, "table 'variance' needs --by"),
    ],
)
def test_a_table_that_is_not_there_is_refused(name: str, by: str | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        table_named(name, by, ("--table", "--by"))
    assert message in str(caught.value)
    assert caught.value.remedy


def test_another_package_brings_its_own_tables(outside: str) -> None:
    tables = tables_of([*MODULES, outside])
    assert list(tables) == [*TABLES, "words"]
    section, parts = sections_of([*MODULES, outside])[-1]
    assert (section.id, [table.name for table in parts]) == ("longer", ["words"])


def test_two_tables_of_one_name_are_refused(outside: str) -> None:
    with pytest.raises(ValueError, match="two tables are named 'words'"):
        tables_of([outside, "lost"])


def test_a_section_that_nobody_declares_is_refused(outside: str) -> None:
    with pytest.raises(ValueError, match="no section of the report is named nowhere"):
        sections_of([outside, "lost"])


def test_every_table_stands_in_the_report_once() -> None:
    shown = [table.name for _, tables in sections() for table in tables]
    assert sorted(shown) == sorted(TABLES)


def test_every_figure_is_the_figure_of_a_table() -> None:
    assert {name for name, table in TABLES.items() if table.chart} == set(FIGURES)


def test_what_columns_show() -> None:
    row = {"n": 3, "none": None, "share": 0.25, "low": 0.1, "high": 0.5, "small": -0.001}
    assert Count("", "n").text(row) == "3"
    assert Count("", "n", share="share", sign="%").text(row) == "3 (25.0%)"
    assert Count("", "none", share="none").text(row) == ""
    assert Share("", "share", "").text(row) == "25.0 [10.0, 50.0]"
    assert Share("", "share", "", signed=True).text(row) == "+25.0 [+10.0, +50.0]"
    assert Share("", "none", "").text(row) == ""
    assert Number("", "share", "").text(row) == "0.25 [0.10, 0.50]"
    assert Number("", "small").text(row) == "0.00"
    assert Number("", "n", digits=None).text(row) == "3"
    assert Number("", "none").text(row) == ""
