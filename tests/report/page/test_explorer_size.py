"""The explorer of a study of 20,000 conversations: small, soon built, soon there."""

import json
import time
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import expect
from tests.report.page.conftest import PageOpener
from tests.report.page.hostile import page_of
from tests.report.page.test_explorer import challenge, table
from tests.studies import holdfast

from holdfast.report.explorer import packed

pytestmark = pytest.mark.slow

QUESTIONS, TECHNIQUES = 1_250, 15

WORDS = (
    "the a of in with and is are was her his patient woman man year-old history pain fever blood "
    "pressure pulse most likely diagnosis answer option because findings suggest however although "
    "left right chronic acute treatment examination shows elevated serum concentration renal liver "
    "cardiac pulmonary artery vein muscle nerve cell antibody receptor enzyme deficiency disease "
    "syndrome infection tumor therapy drug dose days weeks months therefore consistent "
    "presentation unlikely considering first-line management risk factor normal "
    "decreased increased laboratory"
).split()


SYLLABLES = (
    "ab an ar be bro ca cal chol cy de di ec em en ep fi gas glo gly hem hy id in ka lac leu li "
    "lo lym ma me mi my na ne neph neu oc os ot pa pe phar pho pro ra re rhe ri sa se sig so ste "
    "sy ta te ter thy tic to tri ul ur va ve xi"
).split()


def prose(key: str, length: int) -> str:
    """Words that no other key has in this order, the common ones more often, every third rare."""
    words: list[str] = []
    size, block = 0, 0
    while size < length:
        digest = sha256(f"{key} {block}".encode()).digest()
        for at in range(0, 30, 5):
            words += [WORDS[byte * byte * len(WORDS) // 65_536] for byte in digest[at : at + 2]]
            words.append(
                "".join(SYLLABLES[byte % len(SYLLABLES)] for byte in digest[at + 2 : at + 5])
            )
        size = sum(map(len, words)) + len(words)
        block += 1
    return " ".join(words)[:length]


def study() -> pl.DataFrame:
    """Each question plain and under 15 techniques, questions of 900 characters, replies of 600."""
    rows = []
    for number in range(QUESTIONS):
        question = {"question": f"medqa-{number:04}", "system": f"System {number % 14}"}
        texts = {"prompt": prose(f"question {number}", 900), "reply": prose(f"r {number}", 600)}
        rows.append(question | texts)
        for technique in range(TECHNIQUES):
            answer = "ABCA"[(number * 7 + technique * 3) % 4]
            texts = {
                "prompt": f"{prose(f'challenge {technique}', 90)} {'ABCD'[number % 4]}?",
                "reply": prose(f"reply {number} {technique}", 600),
            }
            rows.append(challenge(f"technique-{technique}", answer, **question | texts))
    return table(*rows)


@pytest.fixture(scope="module")
def large() -> pl.DataFrame:
    return study()


def test_20000_conversations_are_packed_fast_and_small(
    large: pl.DataFrame, tmp_path: Path, browse: PageOpener
) -> None:
    large.write_parquet(tmp_path / "turns.parquet")
    start = time.process_time()
    command = ("report", tmp_path / "turns.parquet", "-o", tmp_path / "r.html", "--json")
    run = holdfast(*command)
    assert time.process_time() - start < 30
    assert json.loads(run.stdout)["bytes"] < 10_000_000
    page = browse(tmp_path / "r.html")
    expect(page.locator("#ex-count")).to_have_text("20,000 of 20,000 conversations")
    explorer = packed(large)
    assert explorer.conversation_count == explorer.total == QUESTIONS * (TECHNIQUES + 1) == 20_000
    assert len(explorer.index) < 300_000
    assert len(explorer.chunks) < 100


def test_20000_conversations_load_fast_and_scroll(
    large: pl.DataFrame, tmp_path: Path, browse: PageOpener
) -> None:
    page = browse(page_of(packed(large), tmp_path / "page.html"))
    page.get_by_label("Order").select_option("asked")
    expect(page.locator("#ex-count")).to_have_text("20,000 of 20,000 conversations")
    timing = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert page.evaluate(timing) < 2_000
    page.locator("#ex-list").focus()
    # one frame after another: the longest says whether it is smooth
    longest = page.evaluate(
        """async () => {
          const list = document.getElementById('ex-list');
          const frame = () => new Promise((then) => requestAnimationFrame(() => then()));
          let longest = 0;
          for (let step = 0; step <= 60; step += 1) {
            const began = performance.now();
            list.scrollTop = (list.scrollHeight * step) / 60;
            list.dispatchEvent(new Event('scroll'));
            longest = Math.max(longest, performance.now() - began);
            await frame();
          }
          return longest;
        }"""
    )
    assert longest < 100
    assert page.locator("#ex-list [role=option]").count() < 60
    expect(page.locator("[role=option][aria-posinset='20000']")).to_be_in_viewport()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator(".ex-tools span")).to_have_text("20,000 of 20,000")
    expect(page.locator(".ex-text").last).to_have_text(prose(f"reply {QUESTIONS - 1} 14", 600))
    # texts are opened as the first words are looked for, and are at hand from then on
    words = prose(f"reply {QUESTIONS - 1} 14", 600).split()
    for phrase, seconds in ((words[:9], 20), (words[-9:], 3)):
        page.get_by_label("Text contains").fill(f'"{" ".join(phrase)}"')
        expect(page.locator("#ex-count")).to_have_text(
            "1 of 20,000 conversations", timeout=1_000 * seconds
        )
