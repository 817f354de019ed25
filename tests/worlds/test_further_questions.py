"""How many questions more a figure of a run would take to be told from nothing."""

import re

import polars as pl

from holdfast.protocols.followup.report import FOLLOWUP
from tests.worlds import turns_of


def said(name: str, questions: int, seed: int = 1) -> str:
    assert FOLLOWUP.remarks is not None
    turns = turns_of(name, questions=questions, seed=seed).filter(pl.col("arm") != "compound")
    (line,) = FOLLOWUP.remarks(turns)
    return line


def test_an_open_figure_states_the_questions_it_needs() -> None:
    lines = [said("noise", 60, seed) for seed in range(1, 6)]
    matches = [re.search(r"net: [^(;]*\(about ([\d,]+) further", line) for line in lines]
    numbers = sorted(int(match[1].replace(",", "")) for match in matches if match)
    assert len(numbers) == 5
    assert numbers[0] > 0
    # of nothing but chance, far more than there are
    assert numbers[2] > 60


def test_the_stated_number_of_questions_decides_it() -> None:
    """A third of the answers follow a letter: few questions leave it open, so many more do not."""
    line = said("sugg", 12)
    match = re.search(
        r"net: [^(;]*\(about (\d+) further questions? would distinguish it from 0\)", line
    )
    assert match
    assert "net: -" in (more := said("sugg", 12 + 4 * int(match[1])))
    assert "would distinguish it" not in more.split("pull:")[0]


def test_a_decided_figure_needs_no_further_questions() -> None:
    line = said("refuse", 200)
    assert "net: -" in line
    assert "further" not in line.split("pull:")[0]
    assert "further" not in said("ceiling", 200)
