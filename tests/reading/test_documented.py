"""The page that explains the reading, held against the reading."""

import re
from pathlib import Path

import pytest

from holdfast.reading.answers import RANKS, extract_answer
from holdfast.reading.decisions import read_decision

PAGE = (Path(__file__).parents[2] / "docs/concepts/reading.md").read_text(encoding="utf-8")
OPTIONS = {"A": "Warfarin", "B": "Clopidogrel", "C": "Aspirin", "D": "Heparin"}
RULES = re.findall(r"(?m)^\| `([\w-]+)` \| (\w+) \| `(.*?)` \| (\w+) \|$", PAGE)
DECISIONS = re.findall(r"(?m)^\| `([\w-]+)` \| `([^|]*)` \| (\w+) \|$", PAGE)
NONE_SAID = re.findall(r"(?m)^\| `([^|]*)` \| [^|`]+ \| (B|nothing) \|$", PAGE)


def answer(said: str) -> str | None:
    return said if said in OPTIONS else None


@pytest.mark.parametrize(("rule", "rank", "example", "said"), RULES)
def test_each_rule_reads_its_example(rule: str, rank: str, example: str, said: str) -> None:
    extraction = extract_answer(example.replace("⏎", "\n"), OPTIONS)
    assert (extraction.rule, extraction.answer) == (rule, answer(said))


def test_the_page_has_every_rule_at_its_rank() -> None:
    names = {3: "marked", 2: "stated", 1: "form"}
    documented = {rule: rank for rule, rank, _, _ in RULES}
    assert {rule: names[rank] for rule, rank in RANKS.items()}.items() <= documented.items()
    assert len(RULES) == len(documented) == 31


@pytest.mark.parametrize(("rule", "example", "said"), DECISIONS)
def test_each_decision_reads_its_example(rule: str, example: str, said: str) -> None:
    extraction = read_decision(example, OPTIONS, "B", "C")
    assert (extraction.rule, extraction.answer) == (rule, answer(said))


@pytest.mark.parametrize(("example", "said"), NONE_SAID)
def test_what_commits_to_nothing(example: str, said: str) -> None:
    assert extract_answer(example, OPTIONS).answer == answer(said)


def test_all_tables_were_found() -> None:
    assert (len(DECISIONS), len(NONE_SAID)) == (4, 7)
