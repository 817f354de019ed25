"""The documentation shows what its commands print."""

import re
from pathlib import Path

import pytest
from tools.guides import PAGES, ROOT, written_anew

PROSE = sorted((ROOT / "docs").rglob("*.md"))
QUICK = ("inference", "transcripts")
"""Pages whose commands take a second or two."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=() if page.stem in QUICK else pytest.mark.slow)
     for page in PAGES],
)  # fmt: skip
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    assert written_anew(page) == page.read_text("utf-8"), "run python tools/guides.py"


def test_the_guides_are_short_and_show_commands() -> None:
    words = sum(len(re.findall(r"\b[^\W\d_][\w'-]*", _prose(page))) for page in PROSE)
    assert len(PROSE) <= 22
    assert words <= 13_000
    for guide in (ROOT / "docs" / "guides").glob("*.md"):
        text = guide.read_text("utf-8")
        assert len(re.findall(r"(?m)^```\w", text)) >= 4, guide.name


def _prose(page: Path) -> str:
    """The text of a page without its listings and its tables."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
    return re.sub(r"(?m)^\|.*$", "", text)
