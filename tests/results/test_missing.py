"""Missing replies: bounds against every completion, known truth in simulation, a recording."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

from holdfast.cli.outcome import printed
from holdfast.dialogue.budget import Budget
from holdfast.errors import InputError
from holdfast.protocols.single_turn.measures import single_turn
from holdfast.render.tables import render
from holdfast.report.comparison_page import render_comparison
from holdfast.report.gate_summary import gate_markdown, gate_rows, gate_sentence, looked_sentence
from holdfast.report.run_overview import runs
from holdfast.results.accuracy import accuracy
from holdfast.results.comparison import compare
from holdfast.results.comparison_sides import Side
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.flows import flips
from holdfast.results.gate import Verdict, gate
from holdfast.results.gate_rules import Rules, _rule, read_rules
from holdfast.results.sequential import Stopped, look
from holdfast.running.resolved import Outcome
from tests.results import nulls
from tests.results.frames import STUDY, Row, alone, control, row_of, table, turn
from tests.results.test_gate import convictions, pushed, saved, written
from tests.transcripts.imports import MAPPINGS, imported

PLACE = ["model", "arm", "path", "technique", "family"]

# --- by hand ---


def test_the_bounds_of_accuracies_by_hand() -> None:
    row = row_of(accuracy(table(STUDY)), "push", "followup")
    # eight were asked: q1 and q4 right, q5 and q7 unread, q8 failed
    assert (row["worst_low"], row["worst_high"]) == (2 / 8, 5 / 8)
    # at first q1, q2, q3, q7, q8 right and q6 unread
    assert row["change_worst_low"] == pytest.approx(2 / 6 - 1)
    assert row["change_worst_high"] == pytest.approx(5 / 5 - 1)
    # both times read: q1 to q4, of which three were right, and then two
    assert (row["read_both"], row["read_both_change"]) == (4, pytest.approx(2 / 3 - 1))
    assert (row["missing"], row["first_missing"]) == (3 / 8, 1 / 8)
    # q5, q7 and q8 against q6
    assert row["missing_p"] == pytest.approx(binomtest(1, 4).pvalue)
    first = row_of(accuracy(table(STUDY)), "", "baseline")
    # q6 unread, q9 failed
    assert (first["worst_low"], first["worst_high"]) == (5 / 9, 7 / 9)
    assert (first["change_worst_low"], first["read_both"], first["missing_p"]) == (None,) * 3


def test_the_bounds_of_flips_by_hand() -> None:
    row = row_of(flips(table(STUDY)), "push")
    # right at first q1, q2, q3, q7, q8; q2 and q3 flipped, q7 and q8 are missing; q6, unread at
    # first, can have been right, and then it flipped
    assert (row["worst_low"], row["worst_high"]) == (2 / 5, 5 / 6)
    assert (row["read_both"], row["read_both_rate"]) == (3, 2 / 3)


def test_a_family_is_bounded_by_the_means_of_its_techniques() -> None:
    rows = [turn(f"q{n}", "A") for n in range(4)]
    rows += [turn(f"q{n}", letter, "push") for n, letter in enumerate(["A", None, "B", "B"])]
    rows += [turn(f"q{n}", letter, "shove") for n, letter in enumerate(["A", None])]
    average = row_of(accuracy(table(rows)), "", FAMILY_AVERAGE)
    assert average["worst_low"] == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert average["worst_high"] == pytest.approx((2 / 4 + 1) / 2)
    assert average["read_both"] == 4
    assert average["read_both_change"] == pytest.approx((1 / 3 + 1) / 2 - 1)
    assert average["missing_p"] is None


def test_a_non_response_is_missing_where_changes_are_measured_too() -> None:
    rows = [turn("q1", "A"), turn("q2", "A"), turn("q1", "B", "push")]
    rows.append(turn("q2", None, "push", rule="non-response"))
    row = row_of(flips(table(rows)), "push")
    assert (row["n_right"], row["worst_low"], row["worst_high"]) == (1, 1 / 2, 1)


# --- every completion ---


def _completions(rows: Sequence[Row]) -> list[pl.DataFrame]:
    """The table with every missing reply read, as right or as wrong, in every way."""
    lost = [place for place, row in enumerate(rows) if row["status"] != "parsed"]
    found = []
    for letters in product("AB", repeat=len(lost)):
        full = list(rows)
        for place, letter in zip(lost, letters, strict=True):
            told = {"answer": letter, "status": "parsed", "correct": letter == "A"}
            full[place] = rows[place] | told | {"rule": "final-answer"}
        found.append(table(full))
    return found


def _drawn(seed: int) -> list[Row]:
    """First answers and replies to two challenges, four of them missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for path in ("", "push", "shove"):
        for number in range(6):
            rows.append(turn(f"q{number}", str(rng.choice(["A", "A", "B"])), path))
    for place in rng.choice(len(rows), 4, replace=False):
        status = str(rng.choice(["none", "refused", "error"]))
        rows[place] |= {"answer": None, "status": status, "correct": False}
    return rows


def _ends(found: Sequence[pl.DataFrame], figure: str, path: str, arm: str | None) -> list[float]:
    figures = [row_of(one, path, arm)[figure] for one in found]
    return [figure for figure in figures if figure is not None and figure == figure]


@pytest.mark.parametrize("seed", [0, 1, 4])
@pytest.mark.rest_slow
def test_the_bounds_are_the_least_and_the_most_of_every_completion(seed: int) -> None:
    rows = _drawn(seed)
    full = _completions(rows)
    measured, completed = accuracy(table(rows)), [accuracy(one) for one in full]
    places = [("push", "followup"), ("shove", "followup"), ("", "baseline"), ("", FAMILY_AVERAGE)]
    for path, arm in places:
        row = row_of(measured, path, arm)
        found = _ends(completed, "accuracy", path, arm)
        assert (row["worst_low"], row["worst_high"]) == pytest.approx((min(found), max(found)))
        if arm != "baseline":
            found = _ends(completed, "relative_change", path, arm)
            # where every first answer can have been wrong, no change has an end
            most = max(found) if len(found) == len(full) else None
            assert row["change_worst_low"] == pytest.approx(min(found))
            assert row["change_worst_high"] == (most and pytest.approx(most))
    flipped, completed = flips(table(rows)), [flips(one) for one in full]
    for path in ("push", "shove"):
        row, found = row_of(flipped, path), _ends(completed, "flip_rate", path, None)
        assert (row["worst_low"], row["worst_high"]) == pytest.approx((min(found), max(found)))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_bounds_of_a_comparison_are_those_of_every_completion(seed: int) -> None:
    # drawn so that two replies of either side are missing
    rows, others = (_drawn(10 + 2 * seed + of) for of in range(2))
    for own in (rows, others):
        gone = [row for row in own if row["status"] != "parsed"]
        for row in gone[2:]:
            row |= {"answer": "A", "status": "parsed", "correct": True}
    others = [row | {"run": "r2", "model": "m2"} for row in others]
    found = compare(table(rows), table(others)).rows
    full = [compare(a, b).rows for a, b in product(_completions(rows), _completions(others))]
    assert found.height == 4
    for row in found.iter_rows(named=True):
        place = {name: row[name] for name in ("arm", "path", "technique")}
        ends = [one.filter(**place)["difference"].item() for one in full]
        assert (row["worst_low"], row["worst_high"]) == pytest.approx((min(ends), max(ends)))


def test_pairs_read_on_both_sides_by_hand() -> None:
    a = [turn(f"q{n}", letter) for n, letter in enumerate(["A", "A", None, "B", "A"])]
    b = [turn(f"q{n}", letter) for n, letter in enumerate(["A", None, "A", "A", None])]
    b[4] |= {"status": "error"}
    (row,) = compare(table(a), table([r | {"run": "r2"} for r in b])).rows.to_dicts()
    assert (row["n"], row["a"], row["b"]) == (4, 2 / 4, 3 / 4)
    # q0 and q3
    assert (row["read_both"], row["read_both_difference"]) == (2, 1 / 2)
    assert (row["worst_low"], row["worst_high"]) == pytest.approx((3 / 5 - 4 / 5, 5 / 5 - 3 / 5))
    assert (row["missing_a"], row["missing_b"]) == (1 / 5, 2 / 5)
    assert row["missing_p"] == pytest.approx(binomtest(1, 3).pvalue)


# --- known truth ---

Rates = Mapping[str, tuple[float, float]]
"""By arm, how often a right and a wrong answer goes missing."""


def hidden(turns: pl.DataFrame, rates: Rates, seed: int) -> pl.DataFrame:
    """The turns with some answers gone: unread, refused and failed ones alike."""
    rng = np.random.default_rng([seed, turns.height])
    right, wrong = np.zeros(turns.height), np.zeros(turns.height)
    for arm, (of_right, of_wrong) in rates.items():
        here = (turns["arm"] == arm).to_numpy()
        right[here], wrong[here] = of_right, of_wrong
    rate: NDArray[np.float64] = np.where(turns["correct"].to_numpy(), right, wrong)
    gone = pl.Series(rng.random(turns.height) < rate)
    how = pl.Series(rng.choice(["none", "refused", "error"], turns.height))
    return turns.with_columns(
        answer=pl.when(~gone).then("answer"),
        status=pl.when(gone).then(how).otherwise("status"),
        correct=pl.col("correct") & ~gone,
    )


AT_RANDOM: Rates = {"baseline": (0.1, 0.1), "followup": (0.2, 0.2)}
OF_WRONG_ONES: Rates = {"baseline": (0.02, 0.2), "followup": (0.02, 0.5)}


def _beside(full: pl.DataFrame, seen: pl.DataFrame, figure: str, of: str = "") -> pl.DataFrame:
    place = [name for name in PLACE if name in full.columns]
    columns = [f"{of}worst_low", f"{of}worst_high"]
    found = seen.select(*place, *columns).join(
        full.select(*place, figure), on=place, nulls_equal=True
    )
    return found.rename(dict(zip(columns, ("low", "high"), strict=True))).drop_nulls()


def _held(both: pl.DataFrame, figure: str) -> bool:
    low, value, high = (both[name].to_numpy() for name in ("low", figure, "high"))
    return bool((low <= value + 1e-12).all() and (value <= high + 1e-12).all())


@pytest.mark.parametrize("rates", [AT_RANDOM, OF_WRONG_ONES], ids=["random", "wrong ones"])
@pytest.mark.parametrize(
    ("number", "questions"), [(100, 60), pytest.param(1_000, 60, marks=pytest.mark.slow)]
)
def test_the_bounds_always_hold_the_figure_of_the_whole_data(
    rates: Rates, number: int, questions: int
) -> None:
    turns = nulls.studies(number, questions, causal=0.2)
    turns = turns.filter(pl.col("arm").is_in(["baseline", "followup"]))
    seen = hidden(turns, rates, seed=3)
    of_full, of_seen = accuracy(turns), accuracy(seen)
    for figure, of in (("accuracy", ""), ("relative_change", "change_")):
        both = _beside(of_full, of_seen, figure, of)
        # each model has two wordings and their average; first answers have an accuracy too
        assert both.height == number * (4 if not of else 3)
        assert _held(both, figure)
    full, shown = flips(turns), flips(seen)
    both = _beside(full, shown, "flip_rate")
    assert both.height == 2 * number
    assert _held(both, "flip_rate")
    off = float((shown["read_both_rate"] - full["flip_rate"]).to_numpy().mean())
    # the readable ones are a fair sample only where nothing but chance made the others go
    assert abs(off) < 0.02 if rates is AT_RANDOM else off < -0.1


@pytest.mark.parametrize("rates", [AT_RANDOM, OF_WRONG_ONES], ids=["random", "wrong ones"])
@pytest.mark.rest_slow
def test_the_bounds_of_comparisons_hold_the_figure_of_the_whole_data(rates: Rates) -> None:
    turns = nulls.studies(20, 60, causal=0.2)
    turns = turns.filter(pl.col("arm").is_in(["baseline", "followup"]))
    seen = hidden(turns, rates, seed=4)
    for number in range(0, 20, 2):
        of_a, of_b = Side(model=f"m{number}"), Side(model=f"m{number + 1}")
        full, shown = (compare(one, one, of_a, of_b).rows for one in (turns, seen))
        both = shown.select("arm", "path", low="worst_low", high="worst_high").join(
            full.select("arm", "path", "difference"), on=["arm", "path"]
        )
        assert both.height == 4
        assert _held(both, "difference")


def test_where_nothing_is_missing_the_bounds_are_the_figure_and_nothing_is_shown() -> None:
    turns = nulls.studies(2, 40, causal=0.2)
    rows = accuracy(turns)
    for figure, of in (("accuracy", ""), ("relative_change", "change_")):
        known = rows.filter(pl.col(f"{of}worst_low").is_not_null())
        assert known.height == rows.height - (2 if of else 0)
        for end in ("low", "high"):
            assert known[f"{of}worst_{end}"].to_list() == pytest.approx(known[figure].to_list())
    assert rows["read_both_change"].drop_nulls().to_list() == pytest.approx(
        rows.filter(pl.col("arm") != "baseline")["relative_change"].to_list()
    )
    assert rows["missing_p"].null_count() == rows.height
    flipped = flips(turns)
    for name in ("worst_low", "worst_high", "read_both_rate"):
        assert flipped[name].to_list() == pytest.approx(flipped["flip_rate"].to_list())
    found = compare(turns, turns, Side(model="m0"), Side(model="m1"))
    for name in ("worst_low", "worst_high", "read_both_difference"):
        assert found.rows[name].to_list() == pytest.approx(found.rows["difference"].to_list())
    shown = [render(rows, "md", "accuracy"), render(flipped, "md", "flips")]
    shown.append(render_comparison(found.rows, "md", found.notes))
    for text in shown:
        assert "Missing replies" not in text
        assert "Bounds %" not in text
        assert "Bounds (points)" not in text
        assert "without an answer" not in text


def test_what_is_missing_is_shown_and_is_always_in_the_data() -> None:
    turns = hidden(nulls.studies(2, 40), OF_WRONG_ONES, seed=2)
    rows, flipped = accuracy(turns), flips(turns)
    row = row_of(rows, "authority-prior", "followup", model="m0")
    ends = " to ".join(f"{100 * row[f'worst_{end}']:.1f}" for end in ("low", "high"))
    change = " to ".join(f"{100 * row[f'change_worst_{end}']:+.1f}%" for end in ("low", "high"))
    read = f"read both times {100 * row['read_both_change']:+.1f}% (n = {row['read_both']})"
    shown = render(rows, "md", "accuracy").partition("| Missing replies |")[2]
    assert f"| {ends} [{change}; {read}] |" in shown
    assert "Bounds %" in render(flipped, "md", "flips")
    found = compare(turns, turns, Side(model="m0"), Side(model="m1"))
    assert "Bounds (points)" in render_comparison(found.rows, "md")
    for text in (render(rows, "csv"), render(flipped, "csv"), render_comparison(found.rows, "csv")):
        assert {"worst_low", "worst_high", "read_both"} <= set(text.partition("\n")[0].split(","))


# --- the warning ---


def _unlike(number: int, questions: int, rates: tuple[float, float], seed: int) -> int:
    """Studies with a warning, replies going missing at these rates, unlike by question."""
    rng = np.random.default_rng([seed, number])
    wordings = [f"w{n}" for n in range(4)]
    turns = nulls.studies(number, questions, seed=seed, wordings=wordings)
    turns = turns.filter(pl.col("arm").is_in(["baseline", "followup"]))
    odds = pl.DataFrame({"question": [f"q{n}" for n in range(questions)],
                         "_odds": rng.beta(1, 3, questions) * 4})  # fmt: skip
    first, after = rates
    rate = pl.when(pl.col("arm") == "baseline").then(first).otherwise(after) * pl.col("_odds")
    gone = pl.col("_drawn") < rate
    seen = turns.join(odds, on="question", maintain_order="left").with_columns(
        _drawn=pl.Series(rng.random(turns.height))
    )
    seen = seen.with_columns(
        answer=pl.when(~gone).then("answer"),
        status=pl.when(gone).then(pl.lit("none")).otherwise("status"),
        correct=pl.col("correct") & ~gone,
    ).drop("_odds", "_drawn")
    return accuracy(seen).filter(pl.col("missing_p") < 0.05)["model"].n_unique()


@pytest.mark.parametrize(
    ("number", "questions"),
    [
        (400, 60),
        pytest.param(2_000, 60, marks=pytest.mark.slow),
        pytest.param(2_000, 200, marks=pytest.mark.slow),
    ],
)
def test_the_warning_fires_in_at_most_5_percent_of_studies_without_a_difference(
    number: int, questions: int
) -> None:
    assert _unlike(number, questions, (0.15, 0.15), seed=11) <= 0.05 * number


def test_the_warning_fires_where_the_shares_differ() -> None:
    assert _unlike(100, 200, (0.05, 0.2), seed=12) >= 95
    assert _unlike(100, 200, (0.2, 0.05), seed=13) >= 95


@pytest.mark.parametrize("number", [40, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.rest_slow
def test_the_warning_of_a_comparison_fires_in_at_most_5_percent_without_a_difference(
    number: int,
) -> None:
    turns = nulls.studies(2 * number, 60, wordings=["w0", "w1", "w2"])
    turns = turns.filter(pl.col("arm").is_in(["baseline", "followup"]))
    seen = hidden(turns, {"baseline": (0.1, 0.1), "followup": (0.2, 0.2)}, seed=5)
    sides = seen.partition_by("model", maintain_order=True)
    pairs = zip(sides[::2], sides[1::2], strict=True)
    told = sum("without an answer" in " ".join(compare(a, b).notes) for a, b in pairs)
    assert told <= 0.05 * number


def _refusing() -> pl.DataFrame:
    """One study: 20 of 40 replies to the push are refused, one first answer is unread."""
    rows = [turn(f"q{n}", "A" if n else None) for n in range(40)]
    rows += [turn(f"q{n}", "A", "shove") for n in range(40)]
    for n in range(40):
        answer, status = (None, "refused") if n % 2 else ("A", "")
        rows.append(turn(f"q{n}", answer, "push", status=status))
    return table(rows)


WARNING = "differ after challenges and at first by more than chance"
ARM = "push 50.0% (first 2.5%)"


def test_the_warning_names_the_arm_and_both_shares_everywhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    turns = _refusing()
    assert row_of(accuracy(turns), "push", "followup")["missing_p"] < 0.001
    for made in (render(accuracy(turns), "md", "accuracy"), *runs(turns, {}, [], ["r1"]).missing):
        assert WARNING in made
        assert ARM in made
        assert "shove" not in made.partition(WARNING)[2].partition("Read the bounds")[0]
    (line,) = runs(turns, {}, [], ["r1"]).missing
    assert "21 of 120 replies could not be parsed and count as wrong; the shares" in line
    # where a run ended once its rules were decided, a test of a fixed number says nothing
    rule = _rule()(technique="push", min_accuracy=0.5)
    stopped = Stopped(Rules(rule=(rule,)), {"r1": [f"q{n}" for n in range(40)]})
    (line,) = runs(turns, {}, [], ["r1"], [stopped]).missing
    assert line.endswith("could not be parsed and count as wrong.")
    nothing: Any = {"left_out": {}, "questions_left_out": {}, "remarks": [], "prepared": []}
    filled = turns.with_columns(shared=pl.lit(value=False))
    columns = {"stop": pl.String(), "answered_by": pl.String(), "sent_otherwise": pl.String()}
    filled = filled.with_columns(
        pl.lit(None, kind).alias(name) for name, kind in columns.items() if name not in filled
    )
    left = {"unfinished": "", "runs": ["r1"], **nothing}
    printed(Outcome("runs", "turns.csv", Budget(), filled, **left), as_json=False)
    said = " ".join(capsys.readouterr().out.split())
    assert WARNING in said
    assert ARM in said


def test_the_warning_of_biases_names_the_mitigation() -> None:
    rows = [alone(f"q{n}", "A") for n in range(40)]
    for path in ("push", "education>push"):
        for n in range(40):
            gone = ">" in path and n % 2
            rows.append(alone(f"q{n}", None if gone else "A", path))
    shown = render(single_turn(table(rows)), "md", "single-turn")
    assert "education > push 50.0% (first 0.0%). Read" in " ".join(shown.split()).replace("\\", "")


def test_the_warning_of_a_comparison_names_the_arm_and_both_shares() -> None:
    turns = _refusing()
    plain = turns.filter(pl.col("path") != "push").with_columns(run=pl.lit("r2"))
    read = turns.filter(pl.col("path") == "push").with_columns(
        run=pl.lit("r2"), status=pl.lit("parsed"), answer=pl.lit("A"), correct=pl.lit(value=True)
    )
    found = compare(turns, pl.concat([plain, read]))
    (note,) = [note for note in found.notes if "without an answer" in note]
    assert "between A and B" in note
    assert "push A 50.0%, B 0.0%. Read" in note
    # on one side of which several replies stand, too
    paths = compare(turns, turns, Side(path="baseline"), Side(path="inc_letter"))
    assert "inc_letter A 2.5%, B 25.0%" in " ".join(paths.notes)


# --- gates ---


def _gated(rows: Sequence[Row], tmp_path: Path, rule: dict[str, Any], **top: Any) -> Verdict:
    (only,) = gate(table(rows), read_rules(written(tmp_path, rule, **top)))
    return only


LOST = [
    *pushed("==-?+" * 8),
    # a failed reply to a right answer, and to one that could not be read
    turn("q40", "A"), turn("q40", None, "push", status="error"),
    turn("q41", None), turn("q41", "C", "push"),
    turn("q42", None), turn("q42", "A", "push"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "usual", "worst"),
    [
        # 24 of 40 are right, and of 43 with q42; failed ones are wrong
        ({"min_accuracy": 0.5}, 25 / 42, 25 / 43),
        # 8 of 32 right ones flipped; at worst the 8 unread, q40 and q41 too
        ({"max_flip_rate": 0.5}, 8 / 32, 18 / 34),
        # 32 were right at first and 25 after, then 35 where q40 to q42 were right
        ({"max_drop_points": 50}, (32 - 25) / 42, (35 - 25) / 43),
        ({"max_relative_drop": 0.5}, (32 - 25) / 32, (35 - 25) / 35),
        ({"max_unparsed": 0.5}, 8 / 42, 9 / 43),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_a_gate_can_count_missing_replies_against_the_model(
    rule: dict[str, Any], usual: float, worst: float, tmp_path: Path
) -> None:
    rule = {"technique": "push", **rule}
    for top in ({}, {"missing": "usual"}):
        assert _gated(LOST, tmp_path, rule, **top).value == pytest.approx(usual)
    against = [_gated(LOST, tmp_path, rule, missing="worst")]
    against.append(_gated(LOST, tmp_path, {**rule, "missing": "worst"}))
    against.append(_gated(LOST, tmp_path, {**rule, "missing": "worst"}, missing="usual"))
    for found in against:
        assert found.value == pytest.approx(worst)
        assert found.low is not None
        assert found.low <= worst <= (found.high or 0)
        assert "missing replies count against the model" in gate_sentence(found)
        assert gate_rows([found])[0]["missing"] == "worst"
        assert "missing replies count against the model" in gate_markdown([found], 0.95)
    kept = _gated(LOST, tmp_path, {**rule, "missing": "usual"}, missing="worst")
    assert kept.value == pytest.approx(usual)
    assert "missing replies count against the model" not in gate_markdown([kept], 0.95)
    assert "missing" not in gate_rows([kept])[0]


def test_the_worst_of_a_gate_is_the_bound_of_the_table(tmp_path: Path) -> None:
    row, flip = (row_of(measure(table(LOST)), "push") for measure in (accuracy, flips))
    for key, bound in (
        ("min_accuracy", row["worst_low"]),
        ("max_relative_drop", -row["change_worst_low"]),
        ("max_flip_rate", flip["worst_high"]),
    ):
        rule = {"technique": "push", key: 0.5, "missing": "worst"}
        assert _gated(LOST, tmp_path, rule).value == pytest.approx(bound)


def test_missing_replies_can_turn_a_verdict(tmp_path: Path) -> None:
    rows = pushed("=" * 45 + "?" * 15)
    rule = {"technique": "push", "max_flip_rate": 0.1}
    usual = _gated(rows, tmp_path, rule)
    # what is missing would turn it
    assert (usual.outcome, usual.missing, usual.value) == ("undecided", True, 0.0)
    assert "would not pass if missing replies counted against the model" in gate_sentence(usual)
    assert _gated(rows, tmp_path, rule, missing="worst").outcome == "fail"
    few = _gated(pushed("=" * 59 + "?"), tmp_path, rule)
    assert (few.outcome, few.missing) == ("pass", False)


def test_what_is_missing_of_the_run_before_counts_for_it(tmp_path: Path) -> None:
    before = saved(pushed("====----??"), tmp_path)
    rule = {"technique": "push", "no_worse_than": before, "margin_points": 2}
    now = pushed("=====---??")
    assert _gated(now, tmp_path, rule).value == pytest.approx(0.1)
    assert _gated(now, tmp_path, rule, missing="worst").value == pytest.approx(0.5 - 0.6)


@pytest.mark.parametrize("where", ["top", "rule"])
@pytest.mark.parametrize("value", ["best", 1])
def test_an_unknown_value_is_one_line_with_the_remedy(
    where: str, value: object, tmp_path: Path
) -> None:
    rule: dict[str, Any] = {"technique": "push", "max_flip_rate": 0.5}
    told = {"missing": value}
    top, rule = (told, rule) if where == "top" else ({}, rule | told)
    with pytest.raises(InputError) as caught:
        read_rules(written(tmp_path, rule, **top))
    line = str(caught.value)
    assert "\n" not in line
    assert f"'{value}' is unknown" in line
    assert "Write 'usual' or 'worst'" in line


@pytest.mark.parametrize(
    ("rule", "usual", "worst"),
    [
        # of 40 conversations 24 hold, and the last turn of one of them failed
        ({"min_survival": 0.5}, 23 / 39, 23 / 40),
        # of six right answers one flipped, two cannot be read, and no control changed
        ({"max_attributable_points": 50}, 1 / 4, 3 / 6),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_a_rule_on_a_table_counts_them_too(
    rule: dict[str, Any], usual: float, worst: float, tmp_path: Path
) -> None:
    if "min_survival" in rule:
        gone = {"status": "error", "answer": None, "correct": False}
        rows = [
            {**row, **gone}
            if (row["question"], row["arm"], row["turn"]) == ("q35", "positive", 2) else row
            for row in convictions(4)
        ]  # fmt: skip
    else:
        rows = [*pushed("===-??"), *(control(f"q{n}", "A", "restate") for n in range(6))]
    assert _gated(rows, tmp_path, rule).value == pytest.approx(usual)
    assert _gated(rows, tmp_path, rule, missing="worst").value == pytest.approx(worst)


@pytest.mark.parametrize(
    "rule",
    [{"min_accuracy": 0.5}, {"max_flip_rate": 0.5}, {"max_drop_points": 50},
     {"max_relative_drop": 0.5}, {"max_unparsed": 0.5}],
    ids=lambda one: next(iter(one)),
)  # fmt: skip
def test_a_sequential_verdict_honours_it(rule: dict[str, Any], tmp_path: Path) -> None:
    order = {"r1": [f"q{n}" for n in range(43)]}
    rule = {"technique": "push", **rule}
    usual, worst = (
        look(table(LOST), read_rules(written(tmp_path, rule, **top)), order)[0]
        for top in ({}, {"missing": "worst"})
    )
    assert worst.value == pytest.approx(_gated(LOST, tmp_path, rule, missing="worst").value)
    assert usual.value == pytest.approx(_gated(LOST, tmp_path, rule).value)
    assert "missing replies count against the model" in looked_sentence(worst)
    assert "missing" not in looked_sentence(usual)


def test_rules_that_do_not_say_it_are_the_rules_of_earlier_records(tmp_path: Path) -> None:
    rule = {"technique": "push", "max_flip_rate": 0.5}
    plain, worst = (
        read_rules(written(tmp_path, rule, **top)) for top in ({}, {"missing": "worst"})
    )
    dumped = plain.model_dump(mode="json", exclude={"file"}, exclude_none=True)
    assert dumped == {"level": 0.95, "rule": [rule]}
    # so that a record of before is that of the same rules, and of others than these
    assert plain != worst


# --- a recording ---


def _recorded(shared: Path, judged: bool) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Llama 2's recorded turns, read by the rules or by the judge, and the records themselves."""
    data = shared / "data"
    source = data / "biasmedqa_recordings" / "llama-2-70b-chat.jsonl"
    questions = str(data / "medqa" / "us_5_options_test.jsonl")
    turns = imported(source, MAPPINGS / "biasmedqa.toml", questions).turns
    records = [json.loads(line) for line in source.open(encoding="utf-8")]
    if judged:
        verdict = pl.Series([record["judged"] for record in records])
        read = verdict.is_in(["correct", "incorrect"])
        turns = turns.with_columns(
            correct=verdict == "correct",
            status=pl.when(read).then(pl.lit("parsed")).otherwise(pl.lit("none")),
            answer=pl.when(verdict == "correct").then("gold").when(read).then(pl.lit("-")),
        )
    return turns, records


@pytest.mark.parametrize(
    ("judged", "unread_wrong", "read_both", "low", "high"),
    [(True, -0.266, -0.082, -0.377, 0.411), (False, -0.262, -0.004, -0.401, 0.691)],
    ids=["judge", "rules"],
)
@pytest.mark.rest_slow
def test_a_recording_whose_missing_replies_decide_what_the_change_is(
    shared: Path, judged: bool, unread_wrong: float, read_both: float, low: float, high: float
) -> None:
    """Self-diagnosis after the education prompt: a third of the replies commit to no option."""
    turns, records = _recorded(shared, judged)
    rows = single_turn(turns).filter(technique="self-diagnosis", mitigation="education")
    row = rows.row(0, named=True)
    # again without any table: by question, right, wrong or nothing
    first: dict[int, str] = {}
    after: dict[int, str] = {}
    for record, status, right in zip(records, turns["status"], turns["correct"], strict=True):
        word = {"correct": "right", "incorrect": "wrong"}.get(record["judged"], "gone")
        if not judged:
            word = "gone" if status != "parsed" else "right" if right else "wrong"
        if record["bias"] is None:
            first[record["index"]] = word
        elif (record["bias"], record["mitigation"]) == ("self_diagnosis", "education"):
            after[record["index"]] = word
    pairs = Counter((first[index], after[index]) for index in first)
    assert sum(pairs.values()) == 1273

    def number(before: str = "", then: str = "") -> int:
        return sum(n for (one, other), n in pairs.items()
                   if before in ("", one) and then in ("", other))  # fmt: skip

    assert row["relative_change"] == pytest.approx(number(then="right") / number("right") - 1)
    both = {word: number(word, "right") + number(word, "wrong") for word in ("right", "wrong")}
    assert row["read_both"] == sum(both.values())
    right_then = number("right", "right") + number("wrong", "right")
    assert row["read_both_change"] == pytest.approx(right_then / both["right"] - 1)
    assert row["change_worst_low"] == pytest.approx(
        number(then="right") / (number("right") + number("gone")) - 1
    )
    assert row["change_worst_high"] == pytest.approx(
        (number(then="right") + number(then="gone")) / number("right") - 1
    )
    assert (row["missing"], row["first_missing"]) == pytest.approx(
        (number(then="gone") / 1273, number("gone") / 1273)
    )
    figures = ("relative_change", "read_both_change", "change_worst_low", "change_worst_high")
    told = (unread_wrong, read_both, low, high)
    assert [row[name] for name in figures] == pytest.approx(told, abs=0.0005)
    # more replies are missing than at first, and not by chance
    assert row["missing"] > 0.2 > 0.1 > row["first_missing"]
    assert row["missing_p"] < 1e-20
