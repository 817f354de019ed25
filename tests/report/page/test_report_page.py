"""The report in a browser: a whole study, and pages of what is odd, small or broken."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from tests.report.page.conftest import PageOpener, unfold
from tests.results.frames import alone, table, turn
from tests.studies import holdfast, holdfast_apart

from holdfast.render.drawing import FIGURES
from holdfast.results.declaration import TABLES, sections

MAPPINGS = Path(__file__).parents[3] / "examples" / "mappings"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page that ``holdfast demo`` leaves: all protocols on the bundled bank, two models."""
    folder = tmp_path_factory.mktemp("demo")
    run = holdfast_apart("demo", "--log-dir", folder / "runs")
    assert run.returncode == 0, run.stderr
    assert "Report: " in run.stdout.splitlines()[-1]
    return folder / "runs" / "report.html"


def reported(folder: Path, turns: pl.DataFrame, *more: str) -> Path:
    """The page of a turns table."""
    file, page = folder / "turns.parquet", folder / "report.html"
    turns.write_parquet(file)
    run = holdfast("report", file, "-o", page, *more)
    assert run.returncode == 0, run.stderr
    return page


FITS = "document.documentElement.scrollWidth <= innerWidth"
"""Whether the page does not scroll sideways."""


def sizes(page: Page) -> dict[str, tuple[float, float]]:
    """Width and height of every figure by its label."""
    figures: dict[str, tuple[float, float]] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.figure')].map(f => {
            const b = f.querySelector('svg').getBBox();
            return [f.getAttribute('aria-label'), [b.width, b.height]];
        }))"""
    )
    return figures


def serious(page: Page) -> list[str]:
    """What axe-core finds that is serious or worse."""
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"][:3]
    ]


def chosen(page: Page) -> tuple[int, int]:
    """How many conversations are listed, of how many."""
    text = page.locator("#ex-count").inner_text()
    number, total = (int(n.replace(",", "")) for n in re.findall(r"[\d,]+", text)[:2])
    return number, total


# --- a whole study ---


@pytest.mark.slow
def test_the_report_covers_all_protocols(demo: Path, browse: PageOpener) -> None:
    page = browse(demo)
    assert "keeps more of its right answers" in page.locator("h1").inner_text()
    assert "SIMULATED" in page.locator("header").inner_text()
    ids = "parts => parts.map(part => part.id)"
    sections_shown = page.locator("section").evaluate_all(ids)
    assert sections_shown == ["challenges", "conversations", "method"]
    assert serious(page) == []

    # a number leads to the conversations behind it
    page.locator("#flips > summary").focus()
    page.keyboard.press("Enter")
    cells = page.locator('#flips td a[href*="given-up-pushed"]')
    expect(cells.first).to_be_visible()
    numbers = cells.evaluate_all("links => links.map(link => +link.textContent)")
    place = numbers.index(max(numbers))
    cells.nth(place).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#ex-count")).to_contain_text(f"{max(numbers)} of ")
    assert 0 < chosen(page)[0] < chosen(page)[1]

    unfold(page)
    folds = set(page.locator(".folded[id]").evaluate_all(ids))
    assert folds >= {"models", "run", "accuracy", "flips", "medfuzz"}
    assert folds - {"models", "run"} <= {section.id for section, _ in sections()}
    figures = sizes(page)
    titles = {table.title for _, tables in sections() for table in tables}
    assert figures.keys() - {"Picture of the finding"} <= titles
    assert len(figures) >= 15
    assert all(width > 100 and height > 50 for width, height in figures.values()), figures
    assert len(set(page.locator("svg [id]").evaluate_all(ids))) == page.locator("svg [id]").count()
    assert serious(page) == []
    assert page.evaluate(FITS)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_at_all(demo: Path, browse: PageOpener, *, dark: bool) -> None:
    page = browse(demo, dark=dark)
    unfold(page)
    page.locator("[role=option]").nth(1).click()
    expect(page.locator(".ex-outcome")).to_be_visible()
    assert Axe().run(page).response["violations"] == []


@pytest.mark.slow
def test_every_number_opens_its_conversations(demo: Path, browse: PageOpener) -> None:
    page = browse(demo)
    expect(page.locator("#ex-count")).to_contain_text("conversations")
    unfold(page)
    cells = page.evaluate(
        """async () => {
            const said = [];
            const cells = Map.groupBy(document.querySelectorAll('td a[href^="#conversations"]'),
                (one) => one.getAttribute('href'));
            for (const [link, all] of cells) {
                history.replaceState(null, '', link);
                dispatchEvent(new HashChangeEvent('hashchange'));
                const listed = document.getElementById('ex-count').textContent.split(' of ')[0];
                for (const one of all) {
                    const heads = [...one.closest('table').tHead.rows].at(-1).cells;
                    const head = heads[one.closest('td').cellIndex].textContent;
                    said.push([head, one.textContent, listed]);
                }
            }
            return said;
        }"""
    )
    assert len(cells) > 1500
    counts = Counter[str]()
    for head, text, count in cells:
        number = int(count.replace(",", ""))
        if text.isdigit() and head != "Replicate":
            assert number == int(text), (head, text, number)
            counts[head] += 1
        else:
            assert number > 0, (head, text)
    # flips first: what they are of, how many, and to what
    assert {"Flips", "Right before", "To suggested", "To another", "Pairs", "n"} <= counts.keys()
    # every flip that is counted has its link
    bare = page.locator("td:not(:has(a))").evaluate_all(
        """all => all.map(one => {
            const heads = [...(one.closest('table').tHead?.rows ?? [])].at(-1)?.cells ?? [];
            return [heads[one.cellIndex]?.textContent ?? '', one.textContent];
        })"""
    )
    assert not [text for head, text in bare if head == "Flips" and text not in ("", "0")]


@pytest.mark.slow
def test_the_report_fits_phone_dark_mode_and_print(demo: Path, browse: PageOpener) -> None:
    page = browse(demo, 360, 740, dark=True)
    unfold(page)
    assert page.evaluate(FITS)
    cut = page.locator("figure:visible").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth && "
        "!one.querySelector('.sideways')?.offsetParent).map(one => one.ariaLabel)"
    )
    assert cut == [], "laid out for the phone, or scrolled with a hint"
    assert page.locator("figure.phone:visible").count() > 15
    assert serious(page) == []
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", back)[:3])) < 150
    page = browse(demo, 640, 400)  # 1280 at 200%
    assert page.evaluate(FITS)
    page.emulate_media(media="print")
    expect(page.locator("nav.contents")).to_be_hidden()
    expect(page.locator("#ex-list")).to_be_hidden()
    expect(page.locator("h1")).to_be_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


SIGHT = """() => {
    const visible = (kind) => [...document.querySelectorAll(kind)]
        .filter(part => part.checkVisibility()).length;
    return {
        words: document.body.innerText.split(/\\s+/).filter(Boolean).length,
        tables: visible('table'), svgs: visible('svg'),
        screens: document.documentElement.scrollHeight / innerHeight,
    };
}"""
HEADER_WORDS = """header => {
    header.querySelectorAll('svg').forEach(svg => svg.remove());
    return header.innerText.split(/\\s+/).filter(Boolean).length;
}"""


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height", "screens"), [(1280, 900, 6), (390, 844, 9)])
def test_a_page_is_short_on_opening(
    demo: Path, browse: PageOpener, width: int, height: int, screens: int
) -> None:
    page = browse(demo, width, height, browse=False)
    expect(page.locator("#ex-tool")).to_be_visible()
    sight = page.evaluate(SIGHT)
    assert sight["words"] <= 900
    assert sight["tables"] <= 6
    assert sight["svgs"] <= 8
    assert sight["screens"] <= screens
    assert page.evaluate(FITS)
    assert page.locator("header").evaluate(HEADER_WORDS) <= 120
    assert demo.stat().st_size <= 1_700_000


@pytest.mark.slow
def test_a_live_page_keeps_its_place(demo: Path, tmp_path: Path, browse: PageOpener) -> None:
    live = '<head>\n<meta name="refresh-seconds" content="2">'
    file = tmp_path / "live.html"
    file.write_text(demo.read_text("utf-8").replace("<head>", live, 1), "utf-8")
    page = browse(file, browse=False)
    page.locator("#flips > summary").click()
    expect(page.locator("#flips table").first).to_be_visible()
    with page.expect_event("load", timeout=20_000):
        page.evaluate("scrollTo(0, 3000)")
    expect(page.locator("#flips table").first).to_be_visible()
    page.wait_for_function("scrollY === 3000")
    assert page.locator(".folded[open]").count() == 1


@pytest.mark.slow
def test_figures_are_files_too(demo: Path, tmp_path: Path) -> None:
    turns = demo.with_name("turns.parquet")
    run = holdfast("report", turns, "-o", tmp_path / "r.html", "--figures", tmp_path / "f",
                    "--json")  # fmt: skip
    assert run.returncode == 0, run.stderr
    facts = json.loads(run.stdout)
    assert facts["bytes"] == (tmp_path / "r.html").stat().st_size
    files = sorted((tmp_path / "f").iterdir())
    assert sorted(facts["figures"]) == [str(file) for file in files]
    names = {re.sub(r"-\d+$", "", file.stem) for file in files}
    assert names <= {TABLES[name].id for name in FIGURES}
    assert {"flips-by-family", "accuracy", "survival", "chains"} <= names
    for file in files:
        start = file.read_bytes()[:8]
        assert start.startswith(b"<svg" if file.suffix == ".svg" else b"\x89PNG")


# --- real recordings ---


@pytest.mark.slow
def test_the_recordings_have_a_report(resources: Path, tmp_path: Path, browse: PageOpener) -> None:
    data = resources / "data"
    tables = []
    for model in ("gpt-4-0613", "llama-2-70b-chat"):
        file = data / "biasmedqa_recordings" / f"{model}.jsonl"
        if not file.is_file():
            pytest.skip("the recordings are not here")
        tables.append(tmp_path / f"{model}.parquet")
        run = holdfast(
            "import", file, "--mapping", MAPPINGS / "biasmedqa.toml",
            "--questions", data / "medqa" / "us_5_options_test.jsonl", "-o", tables[-1],
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
    html = tmp_path / "report.html"
    run = holdfast("report", *tables, "-o", html, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["bytes"] < 10_000_000
    page = browse(html)
    top = page.locator("header").inner_text()
    assert "IMPORTED" in top
    assert "gpt-4-0613" in top
    assert "llama-2-70b-chat" in top
    unfold(page)
    assert all(width > 100 and height > 50 for width, height in sizes(page).values())
    assert len(sizes(page)) >= 4
    assert page.locator("#challenges figure:not(.phone) svg").count() == 1
    assert chosen(page) == (20_000, 20_000)
    assert "38,190" in page.locator("#conversations").inner_text()
    page.locator("#ex-filters select[name=model]").select_option(label="llama-2-70b-chat")
    page.locator("#ex-filters select[name=path]").select_option(label="education>recency")
    page.locator("#ex-filters select[name=flip]").select_option(label="flip: suggested option")
    number, _ = chosen(page)
    turns = pl.read_parquet(tables[1])
    first = turns.filter(pl.col("path") == "", pl.col("correct")).select("question")
    flips = turns.filter(
        ~pl.col("correct"), path="education>recency", status="parsed", answer=pl.col("suggested")
    )
    # conversations in which a right answer was given up are all in the page
    assert number == flips.join(first, on="question").height > 20
    page.locator("#ex-list").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator("#ex-reading")).to_be_focused()
    expect(page.locator("#ex-reading")).to_contain_text("suggested option")
    assert serious(page) == []


# --- what is odd, small or broken ---


@pytest.mark.slow
def test_the_headline_chart_shows_its_marks_on_a_phone(tmp_path: Path, browse: PageOpener) -> None:
    turns = table([*study(), *study("m2", run="r2")])
    page = browse(reported(tmp_path, turns), 361, 740)
    expect(page.locator("header figure.page")).to_be_hidden()
    box = page.locator("header figure.phone svg").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 361
    marks = page.locator("header figure.phone .mark-symbol path").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(at => [at.left, at.right])"
    )
    assert len(marks) >= 4
    assert all(0 <= left < right <= 361 for left, right in marks)
    wide = browse(reported(tmp_path, turns))
    expect(wide.locator("header figure.page")).to_be_visible()
    expect(wide.locator("header figure.phone")).to_be_hidden()


@pytest.mark.slow
def test_a_phone_shows_the_answer_on_its_first_screen(tmp_path: Path, browse: PageOpener) -> None:
    rows = [
        row | {"family": "context"}
        for name in ("anthropic/claude-sonnet-4", "simulated/steadfast")
        for row in study(name, run=name)
    ]
    page = browse(reported(tmp_path, table(rows)), 361, 740)
    for element in ("#simulated p", "h1", "#next"):
        box = page.locator(element).first.bounding_box()
        assert box, element
        assert box["y"] + box["height"] <= 740, element
    page.locator(".skip").focus()
    expect(page.locator(".skip")).to_be_in_viewport()


@pytest.mark.slow
def test_print_leaves_out_empty_headings_and_wide_tables(
    tmp_path: Path, browse: PageOpener
) -> None:
    rows = [row for n in range(14) for row in study(f"m{n}", run=f"r{n}")]
    page = browse(reported(tmp_path, table(rows)))
    unfold(page)
    expect(page.locator("#models tbody tr")).to_have_count(14)
    wide = page.locator(".broad").first
    expect(wide.locator("table")).to_be_visible()
    page.emulate_media(media="print")
    expect(wide.locator("table")).to_be_hidden()
    expect(wide).to_be_visible()
    expect(page.locator("#models table")).to_be_visible()
    expect(page.locator("#method h2")).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = false; })")
    expect(page.locator("#challenges h2")).to_be_visible()
    expect(page.locator("#method h2")).to_be_hidden()
    page.evaluate("document.querySelectorAll('.figure').forEach(one => one.remove())")
    expect(page.locator("#challenges h2")).to_be_hidden()


def study(model: str = "m1", **columns: Any) -> list[dict[str, Any]]:
    """Four questions: held, flipped to the suggested option, corrected, stayed wrong."""
    texts = {"prompt": "Which one? And are you sure?", "reply": "Final Answer: (A)"}
    rows = [
        turn("q1", "A"), turn("q1", "A", "push", suggested="B"),
        turn("q2", "A"), turn("q2", "B", "push", suggested="B"),
        turn("q3", "C"), turn("q3", "A", "push", suggested="B"),
        turn("q4", "C"), turn("q4", "B", "push", suggested="B"),
    ]  # fmt: skip
    return [{**row, **texts, "model": model, **columns} for row in rows]


@pytest.mark.slow
def test_a_run_without_readable_replies_has_a_page(tmp_path: Path, browse: PageOpener) -> None:
    rows = [{**row, "answer": None, "status": "none", "correct": False} for row in study()]
    page = browse(reported(tmp_path, table(rows)))
    missing = page.locator("#not-run").inner_text()
    assert "none of the 8 replies could be parsed" in missing
    assert "No answer could be parsed," in page.locator("h1").inner_text()
    assert chosen(page) == (8, 8)


@pytest.mark.slow
def test_small_and_broken_studies_have_a_page(tmp_path: Path, browse: PageOpener) -> None:
    failing = study()
    failing[1] |= {"answer": None, "status": "error", "rule": "APITimeoutError", "correct": False}
    bare = [row | {"prompt": None, "reply": None} for row in study()]
    biases = [alone("q1", "A", "recency", suggested="B"), alone("q2", None, "recency")]
    pages: list[tuple[list[dict[str, Any]], str, tuple[str, ...]]] = [
        (study()[2:4], "h1", ("none of its right answers", "0.0%")),
        (study()[::2], "h1", ("No answer was challenged",)),
        (biases, "h1", ()),
        (failing, "#not-run", ("1 turn failed",)),
        (bare, "#not-run", ("texts were not stored",)),
    ]
    for rows, element, words in pages:
        page = browse(reported(tmp_path, table(rows)))
        text = page.locator(element).inner_text()
        assert [word for word in words if word not in text] == []
        # first answers by themselves among them
        assert chosen(page)[0] == chosen(page)[1] == len(rows)


@pytest.mark.slow
def test_the_plan_stands_next_to_the_run(tmp_path: Path, browse: PageOpener) -> None:
    rows = table(study()).to_dicts()
    for row in rows:
        row |= {"cost": 0.5, "input_tokens": 10, "output_tokens": 2}
    folder = tmp_path / "runs"
    folder.mkdir()
    table(rows).write_parquet(folder / "turns.parquet")
    plan = {"protocol": "followup", "model": "m1", "dataset": "d1", "generations": 9,
               "at_least": 8, "cost": 5.0}  # fmt: skip
    (folder / "plan.json").write_text(json.dumps([plan]), "utf-8")
    assert holdfast("report", folder, "-o", tmp_path / "r.html").returncode == 0
    page = browse(tmp_path / "r.html")
    page.locator("#run > summary").click()
    cells = page.locator("#run tbody tr").last.locator("td").all_inner_texts()
    assert [cells[2], cells[7], *cells[-2:]] == ["8", "$4.00", "8 to 9", "$5.00"]


# --- hostile texts ---

HOSTILE = (
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 2'>",
    "[link](javascript:window.ran=3) <a href='javascript:window.ran=3'>x</a>",
    "\x1b[31mred\x1b[0m \u202eevil\u202c \u2066isolated\u2069",
    '=HYPERLINK("http://example.com","x")',
    "{{ 7 * 7 }} {% raw %} ${window.ran = 4} <!-- ]]> -->",
    "x" * 1_000_000,
)


@pytest.mark.slow
def test_no_script_from_the_data_runs(tmp_path: Path, browse: PageOpener) -> None:
    rows = []
    for number, text in enumerate(HOSTILE):
        name = text[:80]
        for row in study():
            columns = {"prompt": text, "reply": text, "model": f"m {name}", "dataset": f"d {name}",
                   "system": name, "specialty": name, "question": f"{row['question']} {name}",
                   "run": f"r{number}"}  # fmt: skip
            rows.append(row | columns)
    turns = table(rows)
    path = reported(tmp_path, turns, "--title", HOSTILE[0])
    source = path.read_text("utf-8")
    assert source.count("<script") == source.count("</script>")
    assert "{{ 7 * 7 }}" in source
    assert "\x1b" not in source
    assert "\u202e" not in source
    page = browse(path)
    for number in range(len(HOSTILE)):
        page.goto(f"{path.as_uri()}#conversations?run=r{number}")
        expect(page.locator("#ex-count")).to_contain_text("8 of 56")
        page.locator("#ex-list").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#ex-reading")).to_be_focused()
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert page.locator("img, iframe, object, a[href^='javascript']").count() == 0
    terminal = holdfast("table", tmp_path / "turns.parquet")
    assert terminal.returncode == 0
    assert "\x1b" not in terminal.stdout


@pytest.mark.slow
def test_a_page_is_reproducible(tmp_path: Path) -> None:
    first = reported(tmp_path, table(study())).read_bytes()
    assert reported(tmp_path, table(study())).read_bytes() == first


@pytest.mark.slow
def test_the_page_runs_no_script_but_its_own(tmp_path: Path, browser: Browser) -> None:
    path = reported(tmp_path, table(study()))
    text = path.read_text("utf-8").replace("</main>", "<script>window.ran = 1</script></main>")
    path.write_text(text, "utf-8")
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(path.as_uri())
    assert page.evaluate("window.ran") is None
    assert ["Content Security Policy" in line for line in messages] == [True]
    page.close()
