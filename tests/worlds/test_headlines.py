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


def cells(page: Screen, name: str) -> dict[str, str]:
    assert page.grid is not None
    (line,) = (line for block in page.grid.blocks for group in block.groups for line in group
               if line.label == name)  # fmt: skip
    texts = [cell.text for cell in line.cells]
    return dict(zip(page.grid.columns, texts, strict=True))


def number(text: str) -> float:
    return float(text.split("%")[0].split(" ")[0])


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", WORLDS)
def test_the_screen_shows_retention_and_pull(name: str) -> None:
    world, row_cells = WORLDS[name], cells(screen(name), name)
    assert number(row_cells["Told a wrong letter"]) / 100 == pytest.approx(world.retained, abs=0.06)
    pull, ends = row_cells["Pull"].split(" [")
    low, high = (float(end) for end in ends.rstrip("]").split(","))
    assert low <= 100 * world.pull <= high
    assert float(pull) / 100 == pytest.approx(world.pull, abs=0.06)


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ["refuse", "half", "informmiss"])
def test_non_answers_are_not_praised(name: str) -> None:
    row_cells = cells(screen(name, "ceiling"), name)
    # right answers are given up, and asking again alone does not do it
    assert number(row_cells["Told a wrong letter"]) < 70
    assert "(-" in row_cells["Told a wrong letter"]
    assert "0.0%" not in row_cells["Told a wrong letter"]


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ["noise", "hetero", "diffnoise", "redraw", "floor"])
def test_the_worst_challenge_is_not_blamed_for_chance(name: str) -> None:
    # every challenge leaves what any other leaves
    followups = turns_of(name, questions=QUESTIONS).filter(arm="followup")
    cell_text = cells(screen(name), name)["Right after the worst challenge %"]
    share, ends = cell_text.split(" [")
    low, high = (float(end) for end in ends.rstrip("]").split(","))
    mean = 100 * float(followups["correct"].to_numpy().mean())
    assert low <= mean <= high
    assert float(share) == pytest.approx(mean, abs=5)


ENDS = {"refuse": "% refused", "half": "% undecided", "informmiss": "% unreadable",
        "sugg": "% to the suggested option", "posA": "% to another option"}  # fmt: skip


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ENDS)
def test_the_screen_says_where_abandoned_answers_went(name: str) -> None:
    grid = screen(name).grid
    assert grid is not None
    (note,) = (note for note in grid.notes if note.startswith("Right answers that models gave up"))
    assert note.startswith(f"Right answers that models gave up under any challenge: {name} ")
    assert ENDS[name] in note
    # nobody else's end is told of who has none
    other_endings = {"% refused", "% undecided", "% unreadable"} - {ENDS[name]}
    assert not any(ending in note for ending in other_endings)


def test_models_that_give_nothing_up_are_not_mentioned() -> None:
    grid = screen("ceiling").grid
    assert grid is not None
    assert not any("given up" in note for note in grid.notes)
