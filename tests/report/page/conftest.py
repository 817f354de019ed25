"""A browser for the tests of pages: nothing is fetched, nothing goes wrong unseen."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

PageOpener = Callable[..., Page]


def unfold(page: Page) -> None:
    """Opens every part of the page and waits for its markup."""
    page.locator("details").evaluate_all("parts => parts.forEach(part => { part.open = true; })")
    expect(page.locator(".folded > script")).to_have_count(0)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it; ``make test`` installs it where that is Debian.

    Until it is closed no other event loop can run, so that it does not outlive its module.
    """
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.skip("no Chromium here: make browser")
    with sync_playwright() as playwright:
        # no sandbox for root, as in containers
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def browse(browser: Browser) -> Iterator[PageOpener]:
    """Opens a file; the test fails where the page reports an error or asks for anything else."""
    contexts = []
    wrong: list[str] = []

    def open_page(
        path: Path,
        width: int = 1280,
        height: int = 900,
        *,
        dark: bool = False,
        fragment: str = "",
        browse: bool = True,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        address = path.resolve().as_uri()

        def check_request(request: Request) -> None:
            asked_for = request.url.split("#")[0].split("?")[0]
            if asked_for != address and not request.url.startswith("data:"):
                wrong.append(f"asked for {request.url[:200]}")

        def check_message(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                wrong.append(f"console: {message.text[:500]}")

        page.on("request", check_request)
        page.on("console", check_message)
        page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.goto(address + fragment)
        if browse:
            page.evaluate("document.getElementById('ex-tool')?.setAttribute('open', '')")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong, wrong
