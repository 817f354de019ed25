"""The tables of the report in a browser: sorted, with heads in sight, without hidden models."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.report.page.conftest import PageOpener, unfold
from tests.report.page.test_report_page import reported, study
from tests.results.frames import table, turn

pytestmark = pytest.mark.slow


@pytest.fixture
def two(tmp_path: Path, browse: PageOpener) -> Page:
    more = [turn(f"q{n}", "AB"[n % 2], path, suggested="B")
            for n in range(12) for path in ("", *(f"push-{k}" for k in range(n + 1)))]  # fmt: skip
    rows = [*study(), *(row | {"model": "m1 mini", "run": "r2"} for row in more)]
    page: Page = browse(reported(tmp_path, table(rows)), height=500)
    unfold(page)
    return page


def flips(page: Page) -> Locator:
    return page.get_by_role("region", name="Which right answers flipped?").locator("table")


def block(page: Page) -> list[str]:
    """Column n of the second model, as it stands."""
    cells = flips(page).locator("tr:has(th[scope=row]) td:nth-child(2)").all_inner_texts()
    return cells[-12:]


def test_a_column_is_sorted_as_numbers_and_back(two: Page) -> None:
    before = block(two)
    assert "12" in before
    assert "9" in before
    head = flips(two).get_by_role("columnheader", name="n", exact=True)
    head.get_by_role("button").focus()
    two.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert block(two) == sorted(before, key=int, reverse=True)
    two.keyboard.press("Space")
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert block(two) == sorted(before, key=int)
    second = flips(two).get_by_role("columnheader", name="Right before")
    second.get_by_role("button").click()
    expect(flips(two).locator("[aria-sort]")).to_have_count(1)
    for _ in range(2):
        second.get_by_role("button").click()
    expect(flips(two).locator("[aria-sort]")).to_have_count(0)
    assert block(two) == before


def test_missing_values_are_sorted_last(two: Page) -> None:
    cells = flips(two).locator("tr:has(th[scope=row]) td:nth-child(2)")
    cells.evaluate_all(
        """all => all.slice(-12).forEach((one, at) => {
          one.textContent = ['–', '-30.5', '<0.001', '10', '', 'n/a', '9', '-7'][at] ?? '1';
        })"""
    )
    flips(two).get_by_role("columnheader", name="n", exact=True).get_by_role("button").click()
    values = ["10", "9", "1", "1", "1", "1", "<0.001", "-7", "-30.5"]
    assert [block(two)[:9], sorted(block(two)[9:])] == [values, ["", "n/a", "–"]]


def test_table_headers_stay_in_sight(two: Page) -> None:
    flips(two).locator("..").evaluate("one => { one.scrollTop = one.scrollHeight; }")
    flips(two).locator("..").evaluate("one => one.scrollIntoView()")
    expect(flips(two).get_by_role("columnheader", name="Right before")).to_be_in_viewport()
    expect(flips(two).locator("tr:has(th[scope=row])").last).to_be_in_viewport()


def test_a_hidden_model_leaves_all_tables(two: Page) -> None:
    models = two.locator("#models tbody tr")
    expect(models).to_have_count(2)
    expect(two.get_by_text("Models shown in tables: all")).to_be_visible()
    two.get_by_role("checkbox", name="m1 mini").uncheck()
    expect(two).to_have_url(re.compile(r"\?hide=m1\+mini"))
    for _ in range(2):
        expect(two.get_by_text("Models shown in tables: 1 of 2")).to_be_visible()
        for row in models.all():
            absent = row.locator("th").inner_text() == "m1 mini" or not row.is_visible()
            assert absent != row.is_visible()
        visible = two.locator(
            "main tr:not([hidden]) > th:not([hidden]), main tr:not([hidden]) > td"
        )
        assert "m1 mini" not in [cell.inner_text().strip() for cell in visible.all()]
        two.reload()
        unfold(two)
    expect(models.locator("visible=true")).to_have_count(1)
    two.get_by_role("checkbox", name="m1 mini").check()
    expect(models.locator("visible=true")).to_have_count(2)
    assert "hide" not in two.url
