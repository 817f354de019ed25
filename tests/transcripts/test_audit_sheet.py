"""The sheet of an audit: its sample, its cells, and the labels read from it."""

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.results.frames import Row, alone, control, turn
from tests.transcripts.export_frames import spoken

from holdfast.errors import InputError
from holdfast.results.audit import units
from holdfast.transcripts.audit_sheet import (
    AUDIT_SHEET,
    NOT_ASKED,
    UNREAD_TIMES,
    Labels,
    drawn,
    inclusion,
    read_audit,
)
from holdfast.transcripts.export import export

Change = Callable[[int, dict[str, str]], object]
"""A change of a row of a sheet, by its number."""

ROWS = [
    *(turn(f"q{n}", "AB"[n % 2]) for n in range(12)),
    *(turn(f"q{n}", None if n % 4 == 0 else "B", "push", suggested="B") for n in range(12)),
    *(turn(f"q{n}", "C", "shove", suggested="B") for n in range(6)),
    turn("q0", None, "recheck", status="error"),
    control("q1", "A"),
    turn("q90", "A"),
]
"""30 - 12 pairs, a failed turn, a control, and a first answer that nothing follows."""

N = 19


def test_units_are_pairs_and_lone_first_answers() -> None:
    table = units(spoken(ROWS))
    assert table.height == N
    assert table.filter(pl.col("first_row").is_null())["question"].to_list() == ["q90"]
    assert set(table["path"]) == {"", "push", "shove"}
    shares = dict(table.select("question", "share").iter_rows())
    assert (shares["q0"], shares["q11"], shares["q90"]) == (1 / 2, 1, 1)


@pytest.mark.parametrize("n", [1, 5, 12, 30])
def test_probabilities_are_in_proportion_and_none_is_above_one(n: int) -> None:
    sizes = np.array([1.0] * 20 + [3.0] * 8 + [40.0, 90.0])
    chances = inclusion(sizes, n)
    assert chances.sum() == pytest.approx(n)
    assert chances.max() <= 1
    free = chances < 1
    assert np.allclose(chances[free] / sizes[free], (chances[free] / sizes[free]).max(initial=0))


@pytest.mark.slow
def test_a_unit_is_drawn_with_its_probability() -> None:
    turns, times = spoken(ROWS), 500
    counts: Counter[int] = Counter()
    for seed in range(times):
        sample = drawn(turns, 8, seed)
        assert sample.height == 8
        counts.update(sample["row"])
    chances = dict(zip(units(turns)["row"], [0.0] * N, strict=True))
    for seed in range(20):  # those of all units, from samples
        chances.update(drawn(turns, 8, seed).select("row", "probability").iter_rows())
    assert sum(chances.values()) == pytest.approx(8)
    for row, chance in chances.items():
        error = np.sqrt(chance * (1 - chance) / times)
        assert abs(counts[row] / times - chance) < 4.5 * error
    unparsed_chances = [chance for row, chance in chances.items() if turns["status"][row] == "none"]
    assert len(unparsed_chances) == 3
    parsed_chances = [chance for row, chance in chances.items() if turns["status"][row] == "parsed"]
    assert min(unparsed_chances) == pytest.approx(UNREAD_TIMES * max(parsed_chances))


def test_every_arm_and_path_has_its_part_of_the_sample() -> None:
    rows = [turn(f"q{n}", "A") for n in range(40)]
    rows += [turn(f"q{n}", "A", path) for path in ("push", "shove", "mislead") for n in range(40)]
    rows += [alone(f"q{n}", "A", "push", run="r2") for n in range(40)]
    turns = spoken(rows)
    for seed in range(10):
        counts = Counter(drawn(turns, 42, seed).select("arm", "path").iter_rows())
        assert len(counts) == 4
        assert set(counts.values()) <= {10, 11}
    # a seed draws the same units, a second seed other units, a large sample all units
    assert drawn(turns, 42, 1).equals(drawn(turns, 42, 1))
    assert not drawn(turns, 42, 1)["row"].equals(drawn(turns, 42, 2)["row"])
    assert sorted(drawn(turns, 500, 1)["row"]) == sorted(units(turns)["row"])


def sheet(turns: pl.DataFrame, limit: int = 100, seed: int = 0) -> pl.DataFrame:
    content = export(turns, "audit", limit, seed).content
    assert isinstance(content, pl.DataFrame)
    return content


def test_the_sheet_shows_words_and_no_readings() -> None:
    turns = spoken([*ROWS, turn("q90", "B", "push>shove", turn=2, reply="=HYPERLINK(1)")])
    table = sheet(turns)
    assert tuple(table.columns) == AUDIT_SHEET
    assert table.height == N  # q90 is one pair now
    pair = table.row(by_predicate=pl.col("question") == "q90", named=True)
    assert (pair["first_prompt"], pair["first_reply"]) == ("ask q90", "say q90 32")
    assert pair["reply"] == "'=HYPERLINK(1)"
    assert table["label"].null_count() == table["comment"].null_count() == N
    readings = {"answer", "gold", "correct", "status", "rule", "arm", "path", "model"}
    assert readings.isdisjoint(table.columns)
    # the place of a unit tells neither its row nor its reading
    assert table["question"].to_list() != sorted(table["question"].to_list())
    first = sheet(spoken(ROWS)).row(by_predicate=pl.col("question") == "q90", named=True)
    assert (first["label_first"], first["challenge"]) == (NOT_ASKED, "ask q90")


def fill_sheet(turns: pl.DataFrame, change: Change) -> str:
    """A sheet on disk, as a spreadsheet saves it, after a change of its rows."""
    rows = sheet(turns).to_dicts()
    for place, row in enumerate(rows, start=1):
        row["label_first"] = row["label_first"] or "a"
        row["label"] = "None"
        change(place, row)
    with Path("audit.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return "audit.csv"


def read_labels(rows: list[Row], change: Change) -> Labels:
    turns = spoken(rows)
    return read_audit(fill_sheet(turns, change), turns)


def test_labels_return_to_their_turns_with_weights() -> None:
    turns = spoken(ROWS)
    file = fill_sheet(
        turns, lambda place, row: row.update(label="", label_first="") if place > 15 else 0
    )
    labels = read_audit(file, turns)
    assert (labels.labels.height, labels.blank) == (15, N - 15)
    assert set(labels.labels["label"]) == {"none"}
    assert set(labels.labels["label_first"].drop_nulls()) == {"A"}
    assert set(labels.labels["label_weight"]) == {1.0}
    # rows in another order, and columns that are not read, change nothing
    copy = read_labels(
        ROWS, lambda place, row: row.update(question="12", reply="", comment=str(place))
    )
    assert copy.labels.height == N
    half = read_audit(write_half(sheet(turns, 9)), turns)
    assert half.labels["label_weight"].max() > 1  # type: ignore[operator]


def write_half(table: pl.DataFrame) -> str:
    first = pl.col("label_first").fill_null("B")
    table.with_columns(label=pl.lit("refused"), label_first=first).write_csv("half.csv")
    return "half.csv"


def test_a_label_is_the_letter_displayed() -> None:
    rows = [
        turn("q1", "NA", "offer", shown="C,NA,A", protocol="stick-or-switch", arm="negative"),
        turn("q2", "D", shown=None),
    ]
    labels = read_labels(rows, lambda _, row: row.update(label="b"))
    answers = dict(labels.labels.select("question", "label").iter_rows())
    assert answers == {"q1": "NA", "q2": "B"}
    with pytest.raises(
        InputError, match=r"'D' is not a label\. Write one of A, B, C, none, refused"
    ):
        read_labels(rows[:1], lambda _, row: row.update(label="D"))


def cells_of(place: int, **cells: Any) -> Change:
    return lambda number, row: row.update(cells) if number == place else None


@pytest.mark.parametrize(
    ("change", "row", "field", "fact"),
    [
        (cells_of(3, label="E"), 3, "label", "'E' is not a label. Write one of A, B, C, none"),
        (cells_of(2, label_first="yes"), 2, "label_first", "'yes' is not a label"),
        (cells_of(4, label=""), 4, "label", "is empty, but the other label"),
        (cells_of(5, label_first=""), 5, "label_first", "is empty, but the other label"),
        (cells_of(6, unit="u0123:0.5:abcdef"), 6, "unit", "is not in these turns"),
        (cells_of(6, unit=""), 6, "unit", "'' is not in these turns"),
        (lambda n, r: n == 7 and r.update(unit=r["unit"].replace(":1:", ":0.01:")), 7, "unit",
         "was not drawn. Undo the change of the cell"),
    ],
)  # fmt: skip
def test_a_bad_row_is_refused_in_one_line(change: Change, row: int, field: str, fact: str) -> None:
    rows = [row for row in ROWS if row["question"] != "q90"]
    with pytest.raises(InputError) as error:
        read_labels(rows, change)
    assert (error.value.file, error.value.row, error.value.field) == ("audit.csv", row, field)
    assert fact in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_sheet_of_other_turns_and_a_repeated_row_are_refused() -> None:
    turns = spoken(ROWS)
    file = fill_sheet(turns, lambda *_: None)
    variant = turns.with_columns(reply=pl.col("reply") + ".")
    with pytest.raises(InputError, match="or one of its replies has changed"):
        read_audit(file, variant)
    lines = Path(file).read_text("utf-8-sig").splitlines(keepends=True)
    Path(file).write_text("".join([*lines, lines[1]]), "utf-8")
    with pytest.raises(InputError, match=f"row {N + 1}, field 'unit': is also the unit of row 1"):
        read_audit(file, turns)
    Path(file).write_text("question,label\nq1,A\n", "utf-8")
    with pytest.raises(InputError, match="row 1, field 'label_first': is missing"):
        read_audit(file, turns)
    with pytest.raises(InputError, match="contains no label"):
        read_labels(ROWS, lambda _, row: row.update(label="", label_first=""))
