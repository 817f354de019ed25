"""The pictures of the README and the docs: `make pictures`, or `python tools/pictures.py FOLDER`.

The first screen, the flows and a conversation of the demo's report, from Chromium; and two figures
of simulated models: answers that vary by themselves, and defences.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import cast

import polars as pl
from playwright.sync_api import FloatRect, Page, sync_playwright

import holdfast
from holdfast.render.chart_files import exported
from holdfast.results.charts.chart import Chart, Row, label
from holdfast.results.charts.dots import Dots, Measure, Of
from holdfast.results.declaration import TABLES

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLOWS = 665
"""Pixels that the follow-ups of a model take."""
TRIED = (
    "label", "hardened", "evidence-rule", "quarantine", "rederive", "rederive+abstain", "abstain",
    "confidence", "agreement", "vote", "verify",
)  # fmt: skip


def family(row: Row) -> str:
    """What a line is of."""
    return "all challenges" if row["family"] is None else label(row["family"])


def flips(header: str, of: Of, around: tuple[str, ...]) -> Dots:
    """A panel of shares, in percentage points."""
    measure = Measure(header, format=".0f", times=100, to=10, around=around)
    return Dots(x=measure, of=[of], place=family, zero=True, width=260)


NOISE = Chart(
    title="A model that answers afresh each time, and ignores every challenge",
    notes=(
        "Right 7 times of 10, whatever it is told. Left: right answers that a challenge flipped, "
        "as one counts them without a control.",
        "Right: the same less those flipped without a challenge. Zero: the challenge did nothing. "
        "Whiskers: 95% intervals, paired by question.",
    ),
    empty="no challenge has a control",
    keep=lambda rows: [row for row in rows if row["path"] is None],
    panel="{dataset}",
    kind=[
        [
            flips("Without its control: flips, %", Of("lost", "", ""), ("lost",)),
            flips(
                "With its control: attributable, points",
                Of("attributable", "attributable_low", "attributable_high"),
                ("attributable_low", "attributable_high"),
            ),
        ]
    ],
)


def picture(page: Page, figure: Chart, rows: pl.DataFrame, file: Path) -> None:
    """The figure of these rows."""
    page.set_content(f"<body style='background: white'>{exported(figure(rows), 'svg')!s}")
    page.locator("svg").screenshot(path=file)


def of_the_report(page: Page, folder: Path) -> None:
    """The pictures of an open report."""
    page.screenshot(
        path=folder / "report-top.png",
        clip=page.evaluate(
            "() => ({x: 50, y: 0, width: 1100, height: document.querySelector('nav.contents')"
            ".getBoundingClientRect().top + scrollY})"
        ),
        full_page=True,
    )
    page.locator("#flips > summary").click()
    title = TABLES["flips by outcome"].title
    # the model that gives way is in the first part
    flows = page.locator(f'#flips figure[aria-label="{title}"]').first
    flows.wait_for()
    page.evaluate("scrollTo(0, 0)")
    place = flows.bounding_box()
    assert place
    box: FloatRect = {"x": place["x"], "y": place["y"], "width": place["width"], "height": FLOWS}
    page.screenshot(path=folder / "report-flips.png", clip=box, full_page=True)
    page.locator("#ex-tool > summary").click()
    page.locator("#ex-filters select[name=path]").select_option("rag-style")
    page.locator("#ex-filters select[name=flip]").select_option(label="flip: suggested option")
    page.locator("#ex-list").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".ex-outcome").last.scroll_into_view_if_needed()
    page.locator("#ex-reading").evaluate("one => { one.scrollTop = one.scrollHeight; }")
    page.screenshot(path=folder / "report-conversation.png")


def command(*words: str) -> None:
    """The command line, to its end."""
    holdfast_itself = Path(sys.executable).with_name("holdfast")
    subprocess.run([holdfast_itself, *words], check=True, stdout=subprocess.DEVNULL)


def pictures(folder: Path) -> None:
    """Every picture, into a folder."""
    with tempfile.TemporaryDirectory() as runs, sync_playwright() as playwright:
        chromium = next(filter(None, map(shutil.which, BROWSERS)))
        # no sandbox for root, as in containers
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 850})
        command("demo", "--log-dir", f"{runs}/demo")
        page.goto(Path(runs, "demo", "report.html").as_uri())
        of_the_report(page, folder)
        command("run", "followup", "--model", "simulated/noisy", "--log-dir", f"{runs}/noise")
        noise = holdfast.table(f"{runs}/noise", "attributable")
        picture(page, NOISE, noise, folder / "noise.png")
        command(
            "run", "followup", "--model", "simulated/sycophant",
            *(word for name in TRIED for word in ("--defence", name)), "--limit", "20",
            "-T", "corrections=true", "--model-role", "verifier=simulated/verifier",
            "--log-dir", f"{runs}/defences",
        )  # fmt: skip
        defences = holdfast.table(f"{runs}/defences", "defences")
        chart = cast("Chart", TABLES["defences"].chart)
        picture(page, chart, defences, folder / "defences.png")
        browser.close()


if __name__ == "__main__":
    pictures(Path(sys.argv[1]))
