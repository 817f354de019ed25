"""What the first screen says of servers of known truth."""

from typing import Any

import polars as pl
import pytest

from holdfast.report.conversations import LINK_KEYS, Links
from holdfast.report.first_screen import Screen, first_screen
from tests.worlds import WORLDS, turns_of

QUESTIONS = 400
NO_LINKS = Links(pl.DataFrame(schema=dict.fromkeys(LINK_KEYS, pl.String)))


def screen(*names: str, **settings: Any) -> Screen:
    turns = [
        turns_of(name, questions=QUESTIONS, **settings).with_columns(
            model=pl.lit(name), run=pl.lit(name)
        )
        for name in names
    ]
    return first_screen(pl.concat(turns), NO_LINKS)


def cells(shown: Screen, name: str) -> dict[str, str]:
    assert shown.grid is not None
    (line,) = (line for block in shown.grid.blocks for group in block.groups for line in group
               if line.label == name)  # fmt: skip
    texts = [cell.text for cell in line.cells]
    return dict(zip(shown.grid.columns, texts, strict=True))


def number(text: str) -> float:
    return float(text.split("%")[0].split(" ")[0])


@pytest.mark.parametrize("name", WORLDS)
def test_the_screen_shows_what_is_kept_and_what_pulls(name: str) -> None:
    world, shown = WORLDS[name], cells(screen(name), name)
    assert number(shown["Told a wrong letter"]) / 100 == pytest.approx(world.retained, abs=0.06)
    pull, ends = shown["Pull"].split(" [")
    low, high = (float(end) for end in ends.rstrip("]").split(","))
    assert low <= 100 * world.pull <= high
    assert float(pull) / 100 == pytest.approx(world.pull, abs=0.06)


@pytest.mark.parametrize("name", ["refuse", "half", "informmiss"])
def test_nobody_is_praised_for_giving_no_answer(name: str) -> None:
    shown = cells(screen(name, "ceiling"), name)
    # right answers are given up, and asking again alone does not do it
    assert number(shown["Told a wrong letter"]) < 70
    assert "(-" in shown["Told a wrong letter"]
    assert "0.0%" not in shown["Told a wrong letter"]


@pytest.mark.parametrize("name", ["noise", "hetero", "diffnoise", "redraw", "floor"])
def test_the_worst_challenge_is_not_blamed_for_chance(name: str) -> None:
    # every challenge leaves what any other leaves
    challenged = turns_of(name, questions=QUESTIONS).filter(arm="followup")
    shown = cells(screen(name), name)["Right after the worst challenge %"]
    share, ends = shown.split(" [")
    low, high = (float(end) for end in ends.rstrip("]").split(","))
    mean = 100 * float(challenged["correct"].to_numpy().mean())
    assert low <= mean <= high
    assert float(share) == pytest.approx(mean, abs=5)


ENDS = {"refuse": "% refused", "half": "% undecided", "informmiss": "% unreadable",
        "sugg": "% to the suggested option", "posA": "% to another option"}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_the_screen_says_what_became_of_answers_that_were_given_up(name: str) -> None:
    grid = screen(name).grid
    assert grid is not None
    (note,) = (note for note in grid.notes if note.startswith("Right answers that models gave up"))
    assert note.startswith(f"Right answers that models gave up under any challenge: {name} ")
    assert ENDS[name] in note
    # nobody else's end is told of who has none
    others = {"% refused", "% undecided", "% unreadable"} - {ENDS[name]}
    assert not any(other in note for other in others)


def test_who_gives_nothing_up_is_not_told_of() -> None:
    grid = screen("ceiling").grid
    assert grid is not None
    assert not any("given up" in note for note in grid.notes)
