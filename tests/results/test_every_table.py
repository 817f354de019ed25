"""What holds of every table: no rows from no turns, and studies and orders that do not matter."""

import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal

from holdfast.results.declaration import TABLES
from tests.results.attacking import drawn as attacks_drawn
from tests.results.frames import (
    Row,
    alone,
    behind,
    control,
    correction,
    of_further_protocols,
    table,
    turn,
)
from tests.results.offering import drawn
from tests.results.pressing import in_words, under_pressure

STRATA = {"step": "step1", "system": "heart", "specialty": "surgery", "subject": "anatomy"}


def study(run: str, model: str) -> list[Row]:
    """A little of everything, with a rhythm of answers that no two paths share."""
    paths = ["", "push", "shove", "mislead", "push>shove", "push>shove>mislead", "mislead@1",
             "mislead@20"]  # fmt: skip
    biases = ["", "push", "shove", "warning>push", "warning>shove", "wrong-option"]
    rows = [
        kind(f"q{n}", "ABC"[(n * (3 + place) // 7 + len(model)) % 3], path, suggested="B")
        for kind, among in ((turn, paths), (alone, biases))
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
    cues = {"cue": True, "stance": "defer", "cue_judged": False}
    by_reader = {"reader": "m0", "reader_all": True, "reader_status": "parsed"}
    rows += sorted(drawn(3, ("m1",)), key=lambda row: (row["question"], row["turn"], row["arm"]))
    attacks = attacks_drawn(5, ("m1",))
    # a replay, a run apart there, asks again what the attacked run has asked again too
    rows += [row for row in attacks if (row["run"], row["arm"]) != ("replay on m1", "reask")]
    rows = [row | {"dataset": "d1"} for row in rows if row["dataset"] == "d1"]
    rows += [*under_pressure(len(model)), *in_words(len(model)), *of_further_protocols()]
    again = {"replays": 1, "replays_differ": 1, "replays_moved": 0}
    return [
        {**row, **STRATA, **by_reader, **(again if row["turn"] else {}),
         "run": run, "model": model, **(cues if row["path"] else {}),
         "answer_rules": row["answer"], "answer_reader": row["gold"],
         "answer_final": row["gold"], "final_status": "parsed", "label": row["gold"],
         "label_first": "B", "label_weight": 1 + len(row["path"]) / 7}
        for row in rows
    ]  # fmt: skip


FULL = study("r1", "m1")


def turns_of(name: str, rows: list[Row] = FULL) -> pl.DataFrame:
    """The rows, behind a defence too where a table is of such, and enough for a test of pairs."""
    if name.endswith("by pair"):
        rows = [
            row | {"question": f"{row['question']}-{n}", "run": row["run"] + run}
            for n in range(10) for run in "ab" for row in rows if row["protocol"] == "followup"
        ]  # fmt: skip
    return table(behind(rows) if name.startswith("defences") else rows)


@pytest.mark.parametrize("name", TABLES)
def test_empty_and_failed_turns_give_no_rows(name: str) -> None:
    empty, full = TABLES[name](table([])), TABLES[name](turns_of(name))
    assert empty.is_empty()
    assert full.height > 0
    # the same columns and types, so that tables can be put one below the other
    assert empty.schema == full.schema
    failed = {"status": "error", "answer": None, "correct": False, "output_tokens": None}
    failures = [row | failed for row in FULL]
    assert TABLES[name](table(failures)).is_empty()


def with_some(**columns: object) -> pl.DataFrame:
    """The study with every seventh turn another one, without an answer."""
    silent = {"answer": None, "correct": False, "answer_rules": None, **columns}
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
def test_non_responses_are_missing_from_changes(name: str) -> None:
    non_responses = TABLES[name](with_some(status="none", rule="non-response"))
    assert_frame_equal(non_responses, TABLES[name](with_some(status="error", rule="TimeoutError")))
    # and no other reply without an answer is
    assert not non_responses.equals(TABLES[name](with_some(status="none", rule="nothing")))


@pytest.mark.parametrize("name", ACCURACIES)
def test_non_responses_are_wrong_in_accuracies(name: str) -> None:
    non_responses = TABLES[name](with_some(status="none", rule="non-response"))
    unread = TABLES[name](with_some(status="none", rule="nothing"))
    assert_frame_equal(non_responses.drop("non_response"), unread.drop("non_response"))
    assert unread["non_response"].sum() == 0
    assert 0 < non_responses["non_response"].sum() <= non_responses["unparsed"].sum()


OF_PLAIN_RUNS = [name for name in TABLES if not name.startswith("defences")]
"""Tables that do not compare a run with a second run, as those of defences do."""


@pytest.mark.parametrize("name", OF_PLAIN_RUNS)
@pytest.mark.rest_slow
def test_order_and_texts_of_turns_change_no_figure(name: str) -> None:
    rows = [*FULL, *study("r2", "model2")]
    # the order of rows may follow that of the turns; their figures may not, to the last digit
    turns = turns_of(name, rows)
    forward, backward = (TABLES[name](frame) for frame in (turns, turns.reverse()))
    assert sorted(map(str, forward.rows())) == sorted(map(str, backward.rows()))
    assert TABLES[name](turns.drop("prompt", "reply")).equals(forward)


@pytest.mark.parametrize("name", OF_PLAIN_RUNS)
@pytest.mark.rest_slow
def test_a_second_study_changes_no_row_of_the_first(name: str) -> None:
    pair = TABLES[name](turns_of(name, [*study("r0", "model0"), *FULL]))
    plain = TABLES[name](turns_of(name))
    # but for its place among them
    places = cs.starts_with("rank") | cs.starts_with("mean_rank")
    first = pair.filter(pl.col("run").is_in(plain["run"].implode()))
    assert_frame_equal(first.drop(places), plain.drop(places))
