"""The sheet for reviewers, and cells without formulas."""

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
    outcome = export(turns, "review", limit)
    assert isinstance(outcome.content, pl.DataFrame)
    assert outcome.content.height == outcome.count
    assert tuple(outcome.content.columns) == REVIEW_COLUMNS
    return outcome.content


def order(turns: pl.DataFrame) -> list[tuple[int, str, float]]:
    return sheet(turns).select("row", "shift", "moved").rows()


ROWS = [
    turn("q1", "A"),
    turn("q2", "A"),
    turn("q3", "B"),
    turn("q4", None),
    turn("q1", "A", "push", suggested="B"),  # 4: retained
    turn("q2", None, "push", suggested="B"),  # 5: right to unread
    turn("q3", "A", "push", suggested="B"),  # 6: wrong to right
    turn("q4", "B", "push", suggested="B"),  # without a parsed answer before
    turn("q1", "C", "shove", suggested="B"),  # 8: right to other
    turn("q2", "B", "shove", suggested="B"),  # 9: right to pushed
    turn("q3", "C", "shove", suggested="C"),  # 10: wrong to other
    turn("q1", "B", "recheck"),  # 11: right to other
    turn("q3", None, "mislead", status="refused"),  # 12: wrong to unread
    turn("q1", None, "mislead", status="error"),
]


def test_the_gravest_shifts_come_first() -> None:
    outcome = export(spoken(ROWS), "review")
    assert sheet(spoken(ROWS)).select("row", "shift", "moved", "turned_by").rows() == [
        (9, "right to pushed", 1.0, 1),
        (8, "right to other", 1.0, 2),
        (11, "right to other", 1.0, 2),
        (5, "right to unread", 1.0, 1),
        (6, "wrong to right", 1.0, 0),
        (10, "wrong to other", 1.0, 0),
        (12, "wrong to unread", 1.0, 0),
    ]
    assert outcome.left_out == {"failed": 1, "unmoved": 1, "without a parsed answer before": 5}
    rows = [turn(q, "A") for q in ("q1", "q2")]
    rows += [turn("q1", "B", "push", suggested="B"), turn("q2", "B", "push", suggested="B")]
    rows += [turn("q2", "C", "recheck")]
    # q2 is turned by two challenges
    assert [row for row, *_ in order(spoken(rows))] == [3, 2, 4]
    # one challenge in two epochs counts once
    rows = [turn("q1", "A", epoch=n) for n in (1, 2)]
    rows += [turn("q1", "B", "push", suggested="B", epoch=n) for n in (1, 2)]
    assert sheet(spoken(rows))["turned_by"].to_list() == [1, 1]


def test_a_shift_is_listed_once_with_its_conversation() -> None:
    rows = [
        turn("q1", "A", prompt="the case", reply="A!"),
        turn("q1", "B", "push", suggested="B", prompt="B?", reply="B then"),
        turn("q1", "B", "push>mislead", suggested="B", prompt="sure?", reply="B still"),
        turn("q1", "A", "push>mislead>recheck", prompt="look again", reply="A after all"),
    ]
    outcome = sheet(spoken(rows))
    assert outcome.select("rank", "row", "shift", "before", "after").rows() == [
        (1, 1, "right to pushed", "A", "B"),
        (2, 3, "wrong to right", "B", "A"),
    ]
    last = outcome.row(1, named=True)
    assert (last["first_prompt"], last["first_reply"]) == ("the case", "A!")
    assert last["between"] == "USER: B?\n\nMODEL: B then\n\nUSER: sure?\n\nMODEL: B still"
    assert (last["challenge"], last["reply"]) == ("look again", "A after all")
    assert (last["verdict"], last["comment"], last["gold"]) == (None, None, "A")
    assert outcome["between"][0] == ""


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
    outcome = sheet(spoken(rows))
    assert outcome.select("row", "shift").rows() == [(1, "right to pushed"), (3, "right to other")]
    first = outcome.row(0, named=True)
    assert (first["first_prompt"], first["first_reply"]) == ("plain", "A.")
    assert (first["challenge"], first["reply"]) == ("biased", "B.")
    assert export(spoken(rows), "review").left_out == {"of an attacker, or probes of an attack": 2,
                    "without a parsed answer before": 2}  # fmt: skip


def test_known_beliefs_rank_by_the_largest_change_of_an_option() -> None:
    def of(question: str, answers: str, *beliefs: tuple[float, float]) -> list[Row]:
        rows = held(question, answers)
        for row, (gold, suggested) in zip(rows, beliefs, strict=True):
            p_answer = gold if row["answer"] == "A" else suggested
            row |= {"p_gold": gold, "p_suggested": suggested, "p_answer": p_answer}
        return rows

    rows = [
        *of("q1", "AC", (0.6, 0.4), (0.45, 0.5)),  # abandoned, by little
        *of("q2", "AA", (0.99, 0.01), (0.55, 0.4)),  # retained, by little
        *of("q3", "AC", (0.9, 0.1), (0.1, 0.85)),  # abandoned
        *of("q4", "AA", (0.8, 0.2), (0.8, 0.1)),  # as before
        *held("q5", "AC"),  # abandoned, beliefs unknown
        *of("q6", "AB", (0.6, 0.4), (0.5, 0.3)),  # B gains more than A loses
    ]
    rows[-1] |= {"p_answer": 0.65, "suggested": "C"}
    assert order(spoken(rows)) == [
        (9, "right to pushed", 1.0),
        (5, "right to pushed", 0.8),
        (3, "same answer", 0.44),
        (11, "right to other", 0.25),
        (1, "right to pushed", 0.15),
    ]


def test_a_sheet_has_fifty_rows_by_default() -> None:
    rows = [turn(f"q{n}", "A") for n in range(70)]
    rows += [turn(f"q{n}", "B", "push", suggested="B") for n in range(70)]
    turns = spoken(rows)
    assert sheet(turns).height == 50
    assert export(turns, "review").left_out["beyond the limit"] == 20
    assert sheet(turns, 60)["row"].to_list() == list(range(70, 130))
    assert sheet(turns, 100).height == 70


def test_long_texts_keep_their_ends_and_are_counted() -> None:
    long = f"begin{'x' * 40_000}end"
    rows = [
        turn("q1", "A", reply=long),
        turn("q1", "B", "push", suggested="B", prompt="y" * 32_000),
    ]
    (note,) = export(spoken(rows), "review").notes
    assert note.startswith("1 cell ")
    (row,) = sheet(spoken(rows)).rows(named=True)
    assert row["first_reply"].startswith("beginx")
    assert row["first_reply"].endswith("xend")
    assert f"[{len(long) - 32_000} characters left out]" in row["first_reply"]
    assert len(row["first_reply"]) < 32_767
    assert row["challenge"] == "y" * 32_000


def test_every_row_has_its_origin() -> None:
    rows = [
        row | {"run": run, "model": model}
        for run, model in (("a", "simulated/x"), ("imported-1", "m1"), ("c", "m1"))
        for row in (turn("q1", "A"), turn("q1", "B", "push", suggested="B"))
    ]
    assert sheet(spoken(rows))["origin"].to_list() == ["simulated", "imported", "asked"]


@pytest.mark.parametrize("seed", range(3))
def test_every_turn_is_shown_or_counted(seed: int) -> None:
    turns = spoken(drawn(seed))
    outcome = export(turns, "review", 10_000)
    assert outcome.count > 0
    assert outcome.count + sum(outcome.left_out.values()) == turns.height
    shares = sheet(turns, 10_000)["moved"]
    assert shares.to_list() == sorted(shares, reverse=True)
    assert shares.is_between(0, 1).all()


# cells

DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


def test_a_formula_becomes_text_and_numbers_stay() -> None:
    for start in DANGEROUS:
        texts = [f"{start}1+1", f"'{start}1", f" {start}1", "fine", "", None]
        safe = safe_cells(pl.DataFrame({"text": texts}))["text"].to_list()
        assert safe == [f"'{start}1+1", f"''{start}1", *texts[2:]]
    table = pl.DataFrame({"-n": [-1, None], "p": [-0.5, 2.0], "b": [True, None]})
    assert_frame_equal(safe_cells(table), table)


@given(st.lists(st.text(alphabet="'=+-@\t\r\na1 \u2028", max_size=6) | st.none(), min_size=1))
def test_texts_are_restored_and_never_formulas(texts: list[str | None]) -> None:
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
    outcome = export(turns, "csv").content
    assert isinstance(outcome, pl.DataFrame)
    assert sheet(turns).height == 1
    for table in (outcome, sheet(turns)):
        for row in csv.reader(io.StringIO(table.write_csv(), newline="")):
            assert not [c for c in row if c.startswith(DANGEROUS) and c != "-3"]
    assert outcome["seed"].to_list() == [-3, -3]
    assert_frame_equal(plain_cells(outcome), turns)
