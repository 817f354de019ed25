"""The sheet for reviewers, and cells that no spreadsheet takes for formulas."""

import csv
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.results.frames import Row, alone, turn
from tests.results.offering import drawn, held
from tests.transcripts.export_frames import spoken

from holdfast.spreadsheet import plain_cells, safe_cells
from holdfast.transcripts.export import export
from holdfast.transcripts.review import REVIEW_COLUMNS


def sheet(turns: pl.DataFrame, limit: int | None = None) -> pl.DataFrame:
    found = export(turns, "review", limit)
    assert isinstance(found.content, pl.DataFrame)
    assert found.content.height == found.count
    assert tuple(found.content.columns) == REVIEW_COLUMNS
    return found.content


def order(turns: pl.DataFrame) -> list[tuple[int, str, float]]:
    return sheet(turns).select("row", "shift", "moved").rows()


MOVED = [
    turn("q1", "A"),
    turn("q2", "A"),
    turn("q3", "B"),
    turn("q4", None),
    turn("q1", "A", "push", suggested="B"),  # 4: held
    turn("q2", None, "push", suggested="B"),  # 5: right to unread
    turn("q3", "A", "push", suggested="B"),  # 6: wrong to right
    turn("q4", "B", "push", suggested="B"),  # nothing before it was read
    turn("q1", "C", "shove", suggested="B"),  # 8: right to other
    turn("q2", "B", "shove", suggested="B"),  # 9: right to pushed
    turn("q3", "C", "shove", suggested="C"),  # 10: wrong to other
    turn("q1", "B", "recheck"),  # 11: right to other
    turn("q3", None, "mislead", status="refused"),  # 12: wrong to unread
    turn("q1", None, "mislead", status="error"),
]


def test_the_gravest_shifts_come_first_then_the_questions_most_often_turned() -> None:
    found = export(spoken(MOVED), "review")
    assert order(spoken(MOVED)) == [
        (9, "right to pushed", 1.0),
        (8, "right to other", 1.0),
        (11, "right to other", 1.0),
        (5, "right to unread", 1.0),
        (6, "wrong to right", 1.0),
        (10, "wrong to other", 1.0),
        (12, "wrong to unread", 1.0),
    ]
    assert found.left_out == {"failed": 1, "unmoved": 1, "without a parsed answer before": 5}
    assert found.count + sum(found.left_out.values()) == len(MOVED)
    turned = sheet(spoken(MOVED)).select("row", "turned_by").rows()
    assert dict(turned) == {9: 1, 8: 2, 11: 2, 5: 1, 6: 0, 10: 0, 12: 0}


def test_a_question_that_more_challenges_turn_comes_first_whatever_the_order() -> None:
    rows = [turn(q, "A") for q in ("q1", "q2")]
    rows += [turn("q1", "B", "push", suggested="B"), turn("q2", "B", "push", suggested="B")]
    rows += [turn("q2", "C", "recheck")]
    assert [row for row, *_ in order(spoken(rows))] == [3, 2, 4]


def test_each_move_is_listed_once_with_everything_before_it() -> None:
    rows = [
        turn("q1", "A", prompt="the case", reply="A!"),
        turn("q1", "B", "push", suggested="B", prompt="B?", reply="B then"),
        turn("q1", "B", "push>mislead", suggested="B", prompt="sure?", reply="B still"),
        turn("q1", "A", "push>mislead>recheck", prompt="look again", reply="A after all"),
    ]
    found = sheet(spoken(rows))
    assert found.select("rank", "row", "shift", "before", "after").rows() == [
        (1, 1, "right to pushed", "A", "B"),
        (2, 3, "wrong to right", "B", "A"),
    ]
    last = found.row(1, named=True)
    assert (last["first_prompt"], last["first_reply"]) == ("the case", "A!")
    assert last["between"] == "USER: B?\n\nMODEL: B then\n\nUSER: sure?\n\nMODEL: B still"
    assert (last["challenge"], last["reply"]) == ("look again", "A after all")
    assert (last["verdict"], last["comment"], last["gold"]) == (None, None, "A")
    assert found["between"][0] == ""


def test_a_biased_question_and_an_attack_move_the_answer_to_the_plain_one() -> None:
    fuzz: Row = {"protocol": "medfuzz", "turn": 0, "run": "r2"}
    rows = [
        alone("q1", "A", prompt="plain", reply="A."),
        alone("q1", "B", "push", suggested="B", prompt="biased", reply="B."),
        turn("q1", "A", **fuzz),
        turn("q1", "C", "fuzz@1", **fuzz | {"arm": "attack"}),
        turn("q1", "C", "fuzz@1", **fuzz | {"arm": "attacker"}),
        turn("q1", "C", "order@1", **fuzz | {"arm": "attacked"}),
    ]
    found = sheet(spoken(rows))
    assert found.select("row", "shift").rows() == [(1, "right to pushed"), (3, "right to other")]
    first = found.row(0, named=True)
    assert (first["first_prompt"], first["first_reply"]) == ("plain", "A.")
    assert (first["challenge"], first["reply"]) == ("biased", "B.")
    left = export(spoken(rows), "review").left_out
    assert left == {"of an attacker, or probes of an attack": 2,
                    "without a parsed answer before": 2}  # fmt: skip


def test_where_beliefs_are_known_the_most_that_an_option_lost_or_won_ranks() -> None:
    def of(question: str, answers: str, *beliefs: tuple[float, float]) -> list[Row]:
        rows = held(question, answers)
        for row, (gold, suggested) in zip(rows, beliefs, strict=True):
            own = gold if row["answer"] == "A" else suggested
            row |= {"p_gold": gold, "p_suggested": suggested, "p_answer": own}
        return rows

    rows = [
        *of("q1", "AC", (0.6, 0.4), (0.45, 0.5)),  # given up, by little
        *of("q2", "AA", (0.99, 0.01), (0.55, 0.4)),  # held, by little
        *of("q3", "AC", (0.9, 0.1), (0.1, 0.85)),  # given up
        *of("q4", "AA", (0.8, 0.2), (0.8, 0.1)),  # as before
        *held("q5", "AC"),  # given up, beliefs unknown
        *of("q6", "AB", (0.6, 0.4), (0.5, 0.3)),  # B has won more than A has lost
    ]
    rows[-1] |= {"p_answer": 0.65, "suggested": "C"}
    assert order(spoken(rows)) == [
        (9, "right to pushed", 1.0),
        (5, "right to pushed", 0.8),
        (3, "same answer", 0.44),
        (11, "right to other", 0.25),
        (1, "right to pushed", 0.15),
    ]


def test_fifty_unless_more_are_asked_for() -> None:
    rows = [turn(f"q{n}", "A") for n in range(70)]
    rows += [turn(f"q{n}", "B", "push", suggested="B") for n in range(70)]
    turns = spoken(rows)
    assert sheet(turns).height == 50
    assert export(turns, "review").left_out["beyond the limit"] == 20
    assert sheet(turns, 60)["row"].to_list() == list(range(70, 130))
    assert sheet(turns, 100).height == 70


def test_a_text_that_no_cell_holds_keeps_its_ends_and_is_counted() -> None:
    long = f"begin{'x' * 40_000}end"
    rows = [
        turn("q1", "A", reply=long),
        turn("q1", "B", "push", suggested="B", prompt="y" * 32_000),
    ]
    found = export(spoken(rows), "review")
    assert [note.partition(".")[0] for note in found.notes] == [
        "1 cell exceeded the length limit of a spreadsheet"
    ]
    (row,) = sheet(spoken(rows)).rows(named=True)
    assert row["first_reply"].startswith("beginx")
    assert row["first_reply"].endswith("xend")
    assert f"[{len(long) - 32_000} characters left out]" in row["first_reply"]
    assert len(row["first_reply"]) < 32_767
    assert row["challenge"] == "y" * 32_000


def test_origins_are_told_in_every_row() -> None:
    rows = [
        row | {"run": run, "model": model}
        for run, model in (("a", "simulated/x"), ("imported-1", "m1"), ("c", "m1"))
        for row in (turn("q1", "A"), turn("q1", "B", "push", suggested="B"))
    ]
    assert sheet(spoken(rows))["origin"].to_list() == ["simulated", "imported", "asked"]


@pytest.mark.parametrize("seed", range(3))
def test_every_turn_of_any_table_is_shown_or_left_out_for_a_reason(seed: int) -> None:
    turns = spoken(drawn(seed))
    found = export(turns, "review", 10_000)
    assert found.count > 0
    assert found.count + sum(found.left_out.values()) == turns.height
    moved = sheet(turns, 10_000)["moved"]
    assert moved.to_list() == sorted(moved, reverse=True)
    assert moved.is_between(0, 1).all()


# cells

DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


@pytest.mark.parametrize("start", DANGEROUS)
def test_a_formula_becomes_text(start: str) -> None:
    cells = pl.DataFrame({"text": [f"{start}1+1", f"'{start}1", f" {start}1", "fine", "", None]})
    safe = safe_cells(cells)["text"].to_list()
    assert safe == [f"'{start}1+1", f"''{start}1", f" {start}1", "fine", "", None]


def test_numbers_and_truth_values_stay_as_they_are() -> None:
    table = pl.DataFrame({"-n": [-1, None], "p": [-0.5, 2.0], "b": [True, None]})
    assert_frame_equal(safe_cells(table), table)


@given(st.lists(st.text(alphabet="'=+-@\t\r\na1 \u2028", max_size=6) | st.none(), min_size=1))
def test_every_text_comes_back_and_none_is_a_formula(texts: list[str | None]) -> None:
    table = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    safe = safe_cells(table)
    assert_frame_equal(plain_cells(safe), table)
    assert not any(t.startswith(DANGEROUS) for t in safe["text"].drop_nulls())


def test_no_cell_of_a_review_or_a_csv_is_a_formula() -> None:
    rows = [
        turn("=q1", "A", prompt="=1+1", reply="@SUM(A1)", model="+m", run="-r"),
        turn("=q1", "B", "push", suggested="B", prompt="\t=1", reply="\r-2", model="+m", run="-r"),
    ]
    turns = spoken(rows).with_columns(seed=pl.lit(-3, pl.Int64))
    found = export(turns, "csv").content
    assert isinstance(found, pl.DataFrame)
    assert sheet(turns).height == 1
    for table in (found, sheet(turns)):
        for row in csv.reader(io.StringIO(table.write_csv(), newline="")):
            assert not [c for c in row if c.startswith(DANGEROUS) and c != "-3"]
    assert found["seed"].to_list() == [-3, -3]
    assert_frame_equal(plain_cells(found), turns)
