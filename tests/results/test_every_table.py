"""What holds of every table: no rows from no turns, and studies and orders that do not matter."""

import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal

from holdfast.results.declaration import TABLES
from tests.results.attacking import drawn as attacks_drawn
from tests.results.frames import Row, alone, control, correction, table, turn
from tests.results.offering import drawn

STRATA = {"step": "step1", "system": "heart", "specialty": "surgery", "subject": "anatomy"}


def study(run: str, model: str) -> list[Row]:
    """A little of everything, with a rhythm of answers that no two paths share."""
    paths = ["", "push", "shove", "mislead", "push>shove", "push>shove>mislead", "mislead@1",
             "mislead@20"]  # fmt: skip
    biased = ["", "push", "shove", "warning>push", "warning>shove", "wrong-option"]
    rows = [
        put(f"q{n}", "ABC"[(n * (3 + place) // 7 + len(model)) % 3], path, suggested="B")
        for put, among in ((turn, paths), (alone, biased))
        for place, path in enumerate(among)
        for n in range(9)
    ]
    first = {row["question"]: row["answer"] for row in rows if row["arm"] == "baseline"}
    rows += [
        control(f"q{n}", "ACB"[n % 3], path)
        for path in ("resample", "restate", "restate>restate")
        for n in range(9)
    ]
    rows += [
        correction(f"q{n}", "AB"[n % 2], path)
        for path in ("push", "shove")
        for n in range(9)
        if first[f"q{n}"] != "A"
    ]
    read = {"cue": True, "stance": "defer", "cue_judged": False}
    by_reader = {"reader": "m0", "reader_all": True, "reader_status": "parsed"}
    rows += sorted(drawn(3, ("m1",)), key=lambda row: (row["question"], row["turn"], row["arm"]))
    attacks = attacks_drawn(5, ("m1",))
    # a replay, a run apart there, asks again what the attacked run has asked again too
    rows += [row for row in attacks if (row["run"], row["arm"]) != ("replay on m1", "reask")]
    rows = [row | {"dataset": "d1"} for row in rows if row["dataset"] == "d1"]
    return [
        {**row, **STRATA, **by_reader, "run": run, "model": model, **(read if row["path"] else {}),
         "answer_rules": row["answer"], "answer_reader": row["gold"], "label": row["gold"],
         "label_first": "B", "label_weight": 1 + len(row["path"]) / 7}
        for row in rows
    ]  # fmt: skip


FULL = study("r1", "m1")


OF_ONE_RUN = [name for name in TABLES if name not in ("defences", "defences by model")]
"""Tables that say something of a run by itself; the others have tests of their own."""


@pytest.mark.parametrize("name", OF_ONE_RUN)
def test_no_turns_make_a_table_without_rows(name: str) -> None:
    nothing, full = TABLES[name](table([])), TABLES[name](table(FULL))
    assert nothing.height == 0
    assert full.height > 0
    # the same columns and types, so that tables can be put one below the other
    assert nothing.schema == full.schema


@pytest.mark.parametrize("name", TABLES)
def test_failed_turns_make_a_table_without_rows(name: str) -> None:
    failed = [{**row, "status": "error", "answer": None, "correct": False} for row in FULL]
    assert TABLES[name](table(failed)).height == 0


def with_some(**others: object) -> pl.DataFrame:
    """The study with every seventh turn another one, without an answer."""
    silent = {"answer": None, "correct": False, "answer_rules": None, **others}
    return table([{**row, **(silent if n % 7 == 3 else {})} for n, row in enumerate(FULL)])


ACCURACIES = (
    "accuracy", "accuracy by step", "accuracy by system", "accuracy by specialty",
    "accuracy by subject", "accuracy by length", "single-turn",
)  # fmt: skip
CHANGES = (
    "flips", "flips by family", "flips by outcome", "chains", "chains by part", "chains by model",
    "survival", "survival by path", "tax", "flexibility", "positions", "positions by winner",
    "beliefs", "scale", "turn-of-flip",
)  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_non_response_is_missing_where_changes_are_measured(name: str) -> None:
    marked = TABLES[name](with_some(status="none", rule="non-response"))
    assert_frame_equal(marked, TABLES[name](with_some(status="error", rule="TimeoutError")))
    # and no other reply without an answer is
    assert not marked.equals(TABLES[name](with_some(status="none", rule="nothing")))


@pytest.mark.parametrize("name", ACCURACIES)
def test_a_non_response_is_wrong_where_accuracies_are_and_counted_apart(name: str) -> None:
    marked = TABLES[name](with_some(status="none", rule="non-response"))
    unread = TABLES[name](with_some(status="none", rule="nothing"))
    assert_frame_equal(marked.drop("non_response"), unread.drop("non_response"))
    assert unread["non_response"].sum() == 0
    assert 0 < marked["non_response"].sum() <= marked["unparsed"].sum()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.rest_slow
def test_the_order_of_turns_changes_no_figure(name: str) -> None:
    rows = [*FULL, *study("r2", "model2")]
    # the order of rows may follow that of the turns; their figures may not, to the last digit
    forward, backward = (TABLES[name](table(turns)) for turns in (rows, rows[::-1]))
    assert sorted(map(str, forward.rows())) == sorted(map(str, backward.rows()))


@pytest.mark.parametrize("name", OF_ONE_RUN)
@pytest.mark.rest_slow
def test_a_study_has_the_same_rows_beside_another(name: str) -> None:
    both = TABLES[name](table([*study("r0", "model0"), *FULL]))
    alone = TABLES[name](table(FULL))
    # but for its place among them
    placed = cs.starts_with("rank")
    assert_frame_equal(both.filter(pl.col("run") == "r1").drop(placed), alone.drop(placed))
    assert both["run"].drop_nulls().unique(maintain_order=True).to_list() == ["r0", "r1"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.rest_slow
def test_texts_do_not_matter(name: str) -> None:
    frame = table(FULL)
    assert TABLES[name](frame.drop("prompt", "reply")).equals(TABLES[name](frame))
