"""The page that explains the reading agrees with the reading."""

import re
from pathlib import Path

import pytest

from holdfast.reading.answers import ASIDE, FORM, MARKED, NAMED, RANKS, STATED, extract_answer
from holdfast.reading.decisions import read_decision

PAGE = (Path(__file__).parents[2] / "docs/concepts/reading.md").read_text(encoding="utf-8")
OPTIONS = {"A": "Warfarin", "B": "Clopidogrel", "C": "Aspirin", "D": "Heparin"}
RULES = re.findall(r"(?m)^\| `([\w-]+)` \| (\w+) \| `(.*?)` \| (\w+) \|$", PAGE)
DECISIONS = re.findall(r"(?m)^\| `([\w-]+)` \| `([^|]*)` \| (\w+) \|$", PAGE)
COMMITMENTS = re.findall(r"(?m)^\| `([^|]*)` \| [^|`]+ \| (B|nothing) \|$", PAGE)


def answer(cell: str) -> str | None:
    return cell if cell in OPTIONS else None


@pytest.mark.parametrize(("rule", "rank", "example", "cell"), RULES)
def test_each_rule_reads_its_example(rule: str, rank: str, example: str, cell: str) -> None:
    extraction = extract_answer(example.replace("⏎", "\n"), OPTIONS)
    assert (extraction.rule, extraction.answer) == (rule, answer(cell))


def test_the_page_has_every_rule_at_its_rank() -> None:
    names = {MARKED: "marked", NAMED: "named", STATED: "stated", FORM: "form"}
    documented = {rule: rank for rule, rank, _, _ in RULES}
    ranks = {rule: names[rank] for rule, rank in RANKS.items() if rank != ASIDE}
    assert ranks.items() <= documented.items()
    assert len(RULES) == len(documented) == 30


@pytest.mark.parametrize(("rule", "example", "cell"), DECISIONS)
def test_each_decision_reads_its_example(rule: str, example: str, cell: str) -> None:
    extraction = read_decision(example, OPTIONS, "B", "C")
    assert (extraction.rule, extraction.answer) == (rule, answer(cell))


@pytest.mark.parametrize(("example", "cell"), COMMITMENTS)
def test_each_commitment_reads_its_example(example: str, cell: str) -> None:
    assert extract_answer(example, OPTIONS).answer == answer(cell)


def test_all_tables_were_found() -> None:
    assert (len(DECISIONS), len(COMMITMENTS)) == (4, 7)
