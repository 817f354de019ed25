import polars as pl

from holdfast.protocols.stick_or_switch.flexibility import (
    POSITIONS_COLUMNS,
    WINNERS_COLUMNS,
    positions,
    winners,
)
from tests.results.frames import Row, table
from tests.results.offering import held


def second(rows: list[Row]) -> list[Row]:
    """The same conversations with the target shown second at turn 1."""
    return [
        row | ({"shown": f"B,{row['target']}"} if row["turn"] == 0 else {}) for row in rows
    ]  # fmt: skip


STUDY = [
    *held("q1", "AAA"),  # B, C, D rejected
    *held("q2", "AC"),  # C adopted
    *second(held("q3", "B")),
    *second(held("q4", "AB")),  # B at last, when C was offered
    *held("q5", "A!"),
    *held("q6", "AA?", order="DCB"),
]


def shares(effect: str) -> list[tuple[str, int, int]]:
    rows = positions(table(STUDY)).filter(pl.col("effect") == effect)
    return rows.select("level", "n", "kept").rows()


def test_the_columns() -> None:
    assert positions(table(STUDY)).columns == list(POSITIONS_COLUMNS)
    assert winners(table(STUDY)).columns == list(WINNERS_COLUMNS)


def test_the_place_of_the_target_at_turn_1() -> None:
    assert shares("position") == [("1", 3, 3), ("2", 2, 1)]


def test_the_letter_offered() -> None:
    # B: q1, q2, q3 lost, q4, q6 (third offer) lost; C: q1, q2 lost, q4 lost, q6; D: q1, q6
    assert shares("index") == [("B", 5, 3), ("C", 4, 2), ("D", 2, 2)]


def test_the_order_of_offer() -> None:
    assert shares("offer") == [("1", 5, 4), ("2", 4, 2), ("3", 2, 1)]


def test_which_distractor_wins() -> None:
    rows = winners(table(STUDY)).select("index", "offered", "adopted").rows()
    # q4's B was adopted when C was offered
    assert rows == [("B", 5, 1), ("C", 4, 1), ("D", 2, 0)]


def test_without_what_was_shown_there_is_no_position() -> None:
    rows = positions(table([row | {"shown": None} for row in STUDY]))
    assert rows["effect"].unique().sort().to_list() == ["index", "offer"]


def test_levels_stand_in_their_order() -> None:
    letters = [chr(ord("B") + n) for n in range(12)]
    rows = held("q1", "A" * 12, order="".join(letters))
    measured = positions(table(rows))
    offers = measured.filter(effect="offer")["level"].to_list()
    assert offers == [str(n) for n in range(1, 13)]
    assert measured["effect"].unique(maintain_order=True).to_list() == [
        "position",
        "index",
        "offer",
    ]
    assert winners(table(rows))["index"].to_list() == letters
