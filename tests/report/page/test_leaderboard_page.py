"""The leaderboard in a browser."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.report.page.conftest import PageOpener
from tests.results.frames import table, turn

import holdfast

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name in ("first", "second"):
        columns: dict[str, Any] = {"model": name, "run": name}
        first = [turn(f"q{number}", "A", **columns) for number in range(12)]
        after = [
            turn(f"q{number}", "A", "mislead", suggested="B", **columns) for number in range(12)
        ]
        table([*first, *after]).write_parquet(folder / f"{name}.parquet")
    sources = [folder / f"{name}.parquet" for name in ("first", "second")]
    holdfast.leaderboard(sources, folder / "site", title="Ours & theirs")
    return folder / "site" / "index.html"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(site: Path, browse: PageOpener, *, dark: bool) -> None:
    page = browse(site, dark=dark)
    violations = Axe().run(page).response["violations"]
    assert [
        (violation["id"], violation["nodes"][0]["html"][:200]) for violation in violations
    ] == []


def test_a_models_page_links_back(site: Path, browse: PageOpener) -> None:
    to = browse(site).get_by_role("link", name="second").first.get_attribute("href")
    columns = site.parent / str(to)
    above = browse(columns).locator("#above")
    expect(above).to_have_text("Ours & theirs")
    assert (columns.parent / str(above.get_attribute("href"))).resolve() == site.resolve()


def test_tables_are_printed(site: Path, browse: PageOpener) -> None:
    page = browse(site)
    page.emulate_media(media="print")
    expect(page.locator("#models table").first).to_be_visible()
