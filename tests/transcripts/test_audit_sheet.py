"""The sheet of an audit: who is drawn how often, what it shows, and what of it is taken back."""

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


def test_units_are_pairs_and_first_answers_that_nothing_follows() -> None:
    found = units(spoken(ROWS))
    assert found.height == N
    assert found.filter(pl.col("first_row").is_null())["question"].to_list() == ["q90"]
    assert set(found["path"]) == {"", "push", "shove"}
    shares = dict(found.select("question", "share").iter_rows())
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
def test_each_unit_is_drawn_as_often_as_its_probability_says() -> None:
    turns, times = spoken(ROWS), 500
    seen: Counter[int] = Counter()
    for seed in range(times):
        sample = drawn(turns, 8, seed)
        assert sample.height == 8
        seen.update(sample["row"])
    chances = dict(zip(units(turns)["row"], [0.0] * N, strict=True))
    for seed in range(20):  # those of all units, from samples
        chances.update(drawn(turns, 8, seed).select("row", "probability").iter_rows())
    assert sum(chances.values()) == pytest.approx(8)
    for row, chance in chances.items():
        error = np.sqrt(chance * (1 - chance) / times)
        assert abs(seen[row] / times - chance) < 4.5 * error
    unread = [chance for row, chance in chances.items() if turns["status"][row] == "none"]
    assert len(unread) == 3
    read = [chance for row, chance in chances.items() if turns["status"][row] == "parsed"]
    assert min(unread) == pytest.approx(UNREAD_TIMES * max(read))


def test_every_arm_and_path_has_its_part_of_the_sample() -> None:
    rows = [turn(f"q{n}", "A") for n in range(40)]
    rows += [turn(f"q{n}", "A", path) for path in ("push", "shove", "mislead") for n in range(40)]
    rows += [alone(f"q{n}", "A", "push", run="r2") for n in range(40)]
    turns = spoken(rows)
    for seed in range(10):
        counts = Counter(drawn(turns, 42, seed).select("arm", "path").iter_rows())
        assert len(counts) == 4
        assert set(counts.values()) <= {10, 11}
    # the same seed draws the same, another one others, and a sample of all draws all
    assert drawn(turns, 42, 1).equals(drawn(turns, 42, 1))
    assert not drawn(turns, 42, 1)["row"].equals(drawn(turns, 42, 2)["row"])
    assert sorted(drawn(turns, 500, 1)["row"]) == sorted(units(turns)["row"])


def sheet(turns: pl.DataFrame, limit: int = 100, seed: int = 0) -> pl.DataFrame:
    content = export(turns, "audit", limit, seed).content
    assert isinstance(content, pl.DataFrame)
    return content


def test_the_sheet_shows_what_was_said_and_not_what_was_read() -> None:
    turns = spoken([*ROWS, turn("q90", "B", "push>shove", turn=2, reply="=HYPERLINK(1)")])
    found = sheet(turns)
    assert tuple(found.columns) == AUDIT_SHEET
    assert found.height == N  # q90 is one pair now
    pair = found.row(by_predicate=pl.col("question") == "q90", named=True)
    assert (pair["first_prompt"], pair["first_reply"]) == ("ask q90", "say q90 32")
    assert pair["reply"] == "'=HYPERLINK(1)"
    assert found["label"].null_count() == found["comment"].null_count() == N
    for told in ("answer", "gold", "correct", "status", "rule", "arm", "path", "model"):
        assert told not in found.columns
    # neither where a unit stands nor how it was read can be seen from its place
    assert found["question"].to_list() != sorted(found["question"].to_list())
    first = sheet(spoken(ROWS)).row(by_predicate=pl.col("question") == "q90", named=True)
    assert (first["label_first"], first["challenge"]) == (NOT_ASKED, "ask q90")


def filled(turns: pl.DataFrame, change: Callable[[int, dict[str, str]], object]) -> str:
    """A sheet on disk, as a spreadsheet would save it, after a change of each row."""
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


def read(rows: list[Row], change: Callable[[int, dict[str, str]], object]) -> Labels:
    turns = spoken(rows)
    return read_audit(filled(turns, change), turns)


def test_labels_come_back_to_their_turns_with_their_weights() -> None:
    turns = spoken(ROWS)
    file = filled(
        turns, lambda place, row: row.update(label="", label_first="") if place > 15 else 0
    )
    back = read_audit(file, turns)
    assert (back.labels.height, back.blank) == (15, N - 15)
    assert set(back.labels["label"]) == {"none"}
    assert set(back.labels["label_first"].drop_nulls()) == {"A"}
    assert set(back.labels["label_weight"]) == {1.0}
    # rows in another order, and columns that are not read, change nothing
    again = read(ROWS, lambda place, row: row.update(question="12", reply="", comment=str(place)))
    assert again.labels.height == N
    half = read_audit(_written(sheet(turns, 9)), turns)
    assert half.labels["label_weight"].max() > 1  # type: ignore[operator]


def _written(found: pl.DataFrame) -> str:
    first = pl.col("label_first").fill_null("B")
    found.with_columns(label=pl.lit("refused"), label_first=first).write_csv("half.csv")
    return "half.csv"


def test_a_label_is_the_letter_displayed() -> None:
    rows = [
        turn("q1", "NA", "offer", shown="C,NA,A", protocol="stick-or-switch", arm="negative"),
        turn("q2", "D", shown=None),
    ]
    back = read(rows, lambda _, row: row.update(label="b"))
    answers = dict(back.labels.select("question", "label").iter_rows())
    assert answers == {"q1": "NA", "q2": "B"}
    with pytest.raises(
        InputError, match=r"'D' is not a label\. Write one of A, B, C, none, refused"
    ):
        read(rows[:1], lambda _, row: row.update(label="D"))


def _of(place: int, **cells: Any) -> Callable[[int, dict[str, str]], object]:
    return lambda number, row: row.update(cells) if number == place else None


@pytest.mark.parametrize(
    ("change", "row", "field", "said"),
    [
        (_of(3, label="E"), 3, "label", "'E' is not a label. Write one of A, B, C, none, refused"),
        (_of(2, label_first="yes"), 2, "label_first", "'yes' is not a label"),
        (_of(4, label=""), 4, "label", "is empty, but the other label"),
        (_of(5, label_first=""), 5, "label_first", "is empty, but the other label"),
        (_of(6, unit="u0123:0.5:abcdef"), 6, "unit", "is not in these turns"),
        (_of(6, unit=""), 6, "unit", "'' is not in these turns"),
        (lambda n, r: n == 7 and r.update(unit=r["unit"].replace(":1:", ":0.01:")), 7, "unit",
         "was not drawn. Undo the change of the cell"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_back_is_one_line(
    change: Callable[[int, dict[str, str]], object], row: int, field: str, said: str
) -> None:
    rows = [one for one in ROWS if one["question"] != "q90"]
    with pytest.raises(InputError) as error:
        read(rows, change)
    assert (error.value.file, error.value.row, error.value.field) == ("audit.csv", row, field)
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_sheet_of_other_turns_and_a_row_that_is_there_twice_are_refused() -> None:
    turns = spoken(ROWS)
    file = filled(turns, lambda *_: None)
    changed = turns.with_columns(reply=pl.col("reply") + ".")
    with pytest.raises(InputError, match="or one of its replies has changed"):
        read_audit(file, changed)
    lines = Path(file).read_text("utf-8-sig").splitlines(keepends=True)
    Path(file).write_text("".join([*lines, lines[1]]), "utf-8")
    with pytest.raises(InputError, match=f"row {N + 1}, field 'unit': is also the unit of row 1"):
        read_audit(file, turns)
    Path(file).write_text("question,label\nq1,A\n", "utf-8")
    with pytest.raises(InputError, match="row 1, field 'label_first': is missing"):
        read_audit(file, turns)
    with pytest.raises(InputError, match="contains no label"):
        read(ROWS, lambda _, row: row.update(label="", label_first=""))
