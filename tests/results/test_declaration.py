"""Declarations of tables: what is read off them, and what another package can bring."""

import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.registry import MODULES
from holdfast.registry import TABLES as REGISTRY
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

PACKAGE = """
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
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of somebody else with a table and a section of its own."""
    (tmp_path / "longer").mkdir()
    (tmp_path / "longer" / "__init__.py").write_text("")
    (tmp_path / "longer" / "words.py").write_text(PACKAGE.format(section="longer"))
    (tmp_path / "lost.py").write_text(PACKAGE.format(section="nowhere"))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("longer", "longer.words", "lost"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "longer.words"


def test_every_table_is_registered_shown_and_named() -> None:
    assert list(TABLES) == list(REGISTRY)
    for name, place in REGISTRY.items():
        file, _, attribute = place.partition(":")
        assert getattr(sys.modules[file], attribute) is TABLES[name]
        title, _, by = name.partition(" by ")
        assert table_named(title, by or None) is TABLES[name]
    assert len({table.id for table in TABLES.values()}) == len(TABLES)
    assert sorted(table.name for _, tables in sections() for table in tables) == sorted(TABLES)
    assert {name for name, table in TABLES.items() if table.chart} == set(FIGURES)


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
def test_an_unknown_table_is_refused(name: str, by: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        table_named(name, by, ("--table", "--by"))
    assert error.value.remedy


def test_another_package_brings_tables_and_sections(module: str) -> None:
    assert list(tables_of([*MODULES, module])) == [*TABLES, "words"]
    parts = {section.id: tables for section, tables in sections_of([*MODULES, module])}
    assert [table.name for table in parts["longer"]] == ["words"]
    with pytest.raises(ValueError, match="two tables are named 'words'"):
        tables_of([module, "lost"])
    with pytest.raises(ValueError, match="no section of the report is named nowhere"):
        sections_of([module, "lost"])


ROW = {"n": 3, "none": None, "share": 0.25, "low": 0.1, "high": 0.5, "small": -0.001}


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (Count("", "n"), "3"),
        (Count("", "n", share="share", sign="%"), "3 (25.0%)"),
        (Count("", "none", share="none"), ""),
        (Share("", "share", ""), "25.0 [10.0, 50.0]"),
        (Share("", "share", "", signed=True), "+25.0 [+10.0, +50.0]"),
        (Share("", "none", ""), ""),
        (Number("", "share", ""), "0.25 [0.10, 0.50]"),
        (Number("", "small"), "0.00"),
        (Number("", "n", digits=None), "3"),
        (Number("", "none"), ""),
    ],
)
def test_columns_have_their_texts(column: Any, text: str) -> None:
    assert column.text(ROW) == text
