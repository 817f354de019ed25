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

from holdfast.protocols.single_turn.measures import single_turn
from holdfast.render.tables import render
from holdfast.report.gate_summary import gate_rows
from holdfast.report.run_overview import runs
from holdfast.results.accuracy import accuracy
from holdfast.results.comparison import compare
from holdfast.results.comparison_sides import Side
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.flows import flips
from holdfast.results.gate_rules import read_rules
from holdfast.results.retention import retention
from holdfast.results.sequential import Stopped, look
from tests.results.frames import STUDY, Row, alone, asked, control, row_of, table, turn
from tests.results.gating import Rule, baseline_file, convictions, pushed, rules_file, verdict
from tests.results.nulls import challenged
from tests.transcripts.imports import MAPPINGS, imported

# --- by hand ---


def test_bounds_of_accuracies_match_hand_calculation() -> None:
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
    row = row_of(flips(table(STUDY)), "push")
    # right at first q1, q2, q3, q7, q8; q2 and q3 flipped, q7 and q8 are missing; q6, unread at
    # first, can have been right, and then it flipped
    assert (row["worst_low"], row["worst_high"]) == (2 / 5, 5 / 6)
    assert (row["read_both"], row["read_both_rate"]) == (3, 2 / 3)
    # those of a family are means of its techniques
    rows = [*asked("AAAA"), *asked("A?BB", "push"), *asked("A?", "shove")]
    average = row_of(accuracy(table(rows)), "", FAMILY_AVERAGE)
    assert average["worst_low"] == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert average["worst_high"] == pytest.approx((2 / 4 + 1) / 2)
    assert (average["read_both"], average["missing_p"]) == (4, None)
    assert average["read_both_change"] == pytest.approx((1 / 3 + 1) / 2 - 1)


def test_pairs_of_a_comparison_match_hand_calculation() -> None:
    a, b = asked("AA?BA"), asked("A?AA!", run="r2")
    (row,) = compare(table(a), table(b)).rows.to_dicts()
    assert (row["n"], row["a"], row["b"]) == (4, 2 / 4, 3 / 4)
    # q0 and q3
    assert (row["read_both"], row["read_both_difference"]) == (2, 1 / 2)
    assert (row["worst_low"], row["worst_high"]) == pytest.approx((3 / 5 - 4 / 5, 5 / 5 - 3 / 5))
    assert (row["missing_a"], row["missing_b"]) == (1 / 5, 2 / 5)
    assert row["missing_p"] == pytest.approx(binomtest(1, 3).pvalue)


# --- every completion ---


def _completions(rows: Sequence[Row]) -> list[pl.DataFrame]:
    """The table with every missing reply read, as right or as wrong, in every way."""
    gaps = [place for place, row in enumerate(rows) if row["status"] != "parsed"]
    tables = []
    for letters in product("AB", repeat=len(gaps)):
        full = list(rows)
        for place, letter in zip(gaps, letters, strict=True):
            full[place] = rows[place] | {
                "answer": letter, "status": "parsed", "correct": letter == "A",
                "rule": "final-answer",
            }  # fmt: skip
        tables.append(table(full))
    return tables


def _study(seed: int, gaps: int = 4) -> list[Row]:
    """First answers and replies to two challenges, some of them missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for path in ("", "push", "shove"):
        for number in range(6):
            rows.append(turn(f"q{number}", str(rng.choice(["A", "A", "B"])), path))
    for place in rng.choice(len(rows), 4, replace=False)[:gaps]:
        status = str(rng.choice(["none", "refused", "error"]))
        rows[place] |= {"answer": None, "status": status, "correct": False}
    return rows


def _ends(tables: Sequence[pl.DataFrame], figure: str, path: str, arm: str | None) -> list[float]:
    figures = [row_of(rows, path, arm)[figure] for rows in tables]
    return [figure for figure in figures if figure is not None and figure == figure]


@pytest.mark.parametrize("seed", [6, 0, 1, 4])
@pytest.mark.slow
def test_bounds_are_the_extremes_of_all_completions(seed: int) -> None:
    rows = _study(seed)
    full = _completions(rows)
    accuracies, complete = accuracy(table(rows)), [accuracy(turns) for turns in full]
    places = [("push", "followup"), ("shove", "followup"), ("", "baseline"), ("", FAMILY_AVERAGE)]
    for path, arm in places:
        row = row_of(accuracies, path, arm)
        ends = _ends(complete, "accuracy", path, arm)
        assert (row["worst_low"], row["worst_high"]) == pytest.approx((min(ends), max(ends)))
        if arm != "baseline":
            ends = _ends(complete, "relative_change", path, arm)
            # where every first answer can have been wrong, no change has an end
            top = max(ends) if len(ends) == len(full) else None
            assert row["change_worst_low"] == pytest.approx(min(ends))
            assert row["change_worst_high"] == (top and pytest.approx(top))
    flip_rates, complete = flips(table(rows)), [flips(turns) for turns in full]
    for path in ("push", "shove"):
        row, ends = row_of(flip_rates, path), _ends(complete, "flip_rate", path, None)
        assert (row["worst_low"], row["worst_high"]) == pytest.approx((min(ends), max(ends)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_of_a_comparison_are_the_extremes_of_all_completions(seed: int) -> None:
    a = _study(10 + 2 * seed, gaps=2)
    b = [row | {"run": "r2", "model": "m2"} for row in _study(11 + 2 * seed, gaps=2)]
    rows = compare(table(a), table(b)).rows
    full = [compare(*sides).rows for sides in product(_completions(a), _completions(b))]
    assert rows.height == 4
    for row in rows.iter_rows(named=True):
        place = {name: row[name] for name in ("arm", "path", "technique")}
        ends = [complete.filter(**place)["difference"].item() for complete in full]
        assert (row["worst_low"], row["worst_high"]) == pytest.approx((min(ends), max(ends)))


# --- known truth ---

Rates = Mapping[str, tuple[float, float]]
"""By arm, how often a right and a wrong answer goes missing."""

AT_RANDOM: Rates = {"baseline": (0.1, 0.1), "followup": (0.2, 0.2)}


def without_some(turns: pl.DataFrame, mask: NDArray[np.bool_], rng: Any) -> pl.DataFrame:
    """The turns with some answers gone: unread, refused and failed ones alike."""
    lacking = pl.Series(mask)
    status = pl.Series(rng.choice(["none", "refused", "error"], turns.height))
    return turns.with_columns(
        answer=pl.when(~lacking).then("answer"),
        status=pl.when(lacking).then(status).otherwise("status"),
        correct=pl.col("correct") & ~lacking,
    )


def lossy(turns: pl.DataFrame, rates: Rates, seed: int) -> pl.DataFrame:
    """The turns with answers gone at these rates."""
    rng = np.random.default_rng([seed, turns.height])
    rate = np.array([
        rates[arm][not right] for arm, right in turns.select("arm", "correct").iter_rows()
    ])  # fmt: skip
    return without_some(turns, rng.random(turns.height) < rate, rng)


def test_bounds_are_the_figure_where_nothing_is_missing() -> None:
    turns = challenged(2, 40, causal=0.2)
    rows, flip_rates = accuracy(turns), flips(turns)
    comparison = compare(turns, turns, Side(model="m0"), Side(model="m1"))
    for frame, figure, names in (
        (rows, "accuracy", ("worst_low", "worst_high")),
        (rows.filter(pl.col("arm") != "baseline"), "relative_change",
         ("change_worst_low", "change_worst_high", "read_both_change")),
        (flip_rates, "flip_rate", ("worst_low", "worst_high", "read_both_rate")),
        (comparison.rows, "difference", ("worst_low", "worst_high", "read_both_difference")),
    ):  # fmt: skip
        for name in names:
            assert frame[name].to_list() == pytest.approx(frame[figure].to_list())
    assert rows["missing_p"].null_count() == rows.height
    assert "Bounds %" not in render(flip_rates, "md", "flips")
    assert "Missing replies" not in render(rows, "md", "accuracy")


# --- the warning ---


def _warnings(number: int, questions: int, rates: tuple[float, float], seed: int) -> int:
    """Studies with a warning, replies going missing at these rates, unlike by question."""
    rng = np.random.default_rng([seed, number])
    turns = challenged(number, questions, seed=seed, wordings=[f"w{n}" for n in range(4)])
    odds = dict(
        zip((f"q{n}" for n in range(questions)), rng.beta(1, 3, questions) * 4, strict=True)
    )
    first, after = rates
    rate = np.where(turns["arm"].to_numpy() == "baseline", first, after)
    rate = rate * turns["question"].replace_strict(odds).to_numpy()
    sample = without_some(turns, rng.random(turns.height) < rate, rng)
    return accuracy(sample).filter(pl.col("missing_p") < 0.05)["model"].n_unique()


SLOW_SIZES = [pytest.param(2_000, size, marks=pytest.mark.slow) for size in (60, 200)]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "questions"), [(400, 60), *SLOW_SIZES])
def test_the_warning_rarely_fires_without_a_difference(number: int, questions: int) -> None:
    assert _warnings(number, questions, (0.15, 0.15), seed=11) <= 0.05 * number


@pytest.mark.slow
def test_the_warning_fires_where_the_shares_differ() -> None:
    assert _warnings(100, 200, (0.05, 0.2), seed=12) >= 95
    assert _warnings(100, 200, (0.2, 0.05), seed=13) >= 95


@pytest.mark.slow
@pytest.mark.parametrize("number", [40, pytest.param(1_000, marks=pytest.mark.slow)])
def test_the_warning_of_a_comparison_keeps_its_level(number: int) -> None:
    turns = challenged(2 * number, 60, wordings=["w0", "w1", "w2"])
    sides = lossy(turns, AT_RANDOM, seed=5).partition_by("model", maintain_order=True)
    pairs = zip(sides[::2], sides[1::2], strict=True)
    warnings = sum("without an answer" in " ".join(compare(a, b).notes) for a, b in pairs)
    assert warnings <= 0.05 * number


REFUSING = table([*asked("?" + "A" * 39), *asked("A" * 40, "shove"), *asked("AR" * 20, "push")])
"""20 of 40 replies to the push are refused, one first answer is unread."""


def test_the_warning_names_the_arm_and_its_shares(tmp_path: Path) -> None:
    rows = accuracy(REFUSING)
    assert row_of(rows, "push", "followup")["missing_p"] < 0.001
    (line,) = runs(REFUSING, {}, [], ["r1"]).missing
    for text in (render(rows, "md", "accuracy"), line):
        warning = text.partition("by more than chance")[2].partition("Read the bounds")[0]
        assert "push 50.0% (first 2.5%)" in warning
        assert "shove" not in warning
    assert "21 of 120 replies" in line
    # where a run ended once its rules were decided, a test of a fixed number says nothing
    rules = read_rules(rules_file(tmp_path, {"technique": "push", "min_accuracy": 0.5}))
    stop = Stopped(rules, {"r1": [f"q{n}" for n in range(40)]})
    (line,) = runs(REFUSING, {}, [], ["r1"], [stop]).missing
    assert "by more than chance" not in line


def test_the_warning_of_biases_names_the_mitigation() -> None:
    rows = asked("A" * 40, kind=alone) + asked("A" * 40, "push", kind=alone)
    rows += asked("A?" * 20, "education>push", kind=alone)
    text = " ".join(render(single_turn(table(rows)), "md", "single-turn").split())
    assert "education > push 50.0% (first 0.0%)" in text.replace("\\", "")


def test_the_warning_of_a_comparison_names_the_shares_of_its_sides() -> None:
    answers = asked("?" + "A" * 39) + asked("A" * 40, "shove") + asked("A" * 40, "push")
    comparison = compare(REFUSING, table([row | {"run": "r2"} for row in answers]))
    assert "push A 50.0%, B 0.0%" in " ".join(comparison.notes)
    # on one side of which several replies stand, too
    paths = compare(REFUSING, REFUSING, Side(path="baseline"), Side(path="inc_letter"))
    assert "inc_letter A 2.5%, B 25.0%" in " ".join(paths.notes)


# --- gates ---

GAPS = [
    *pushed("==-?+" * 8),
    # a failed reply to a right answer, and to one that could not be read
    turn("q40", "A"), turn("q40", None, "push", status="error"),
    turn("q41", None), turn("q41", "C", "push"),
    turn("q42", None), turn("q42", "A", "push"),
]  # fmt: skip
OF_STUDY = [
    # 24 of 40 are right, and of 43 with q42; failed ones are wrong
    ({"min_accuracy": 0.5}, 25 / 42, 25 / 43),
    # 8 of 32 right ones flipped; at worst the 8 unread, q40 and q41 too
    ({"max_flip_rate": 0.5}, 8 / 32, 18 / 34),
    # 32 were right at first and 25 after, then 35 where q40 to q42 were right
    ({"max_drop_points": 50}, (32 - 25) / 42, (35 - 25) / 43),
    ({"max_relative_drop": 0.5}, (32 - 25) / 32, (35 - 25) / 35),
    ({"max_unparsed": 0.5}, 8 / 42, 9 / 43),
]
ORDER = {"r1": [f"q{n}" for n in range(43)]}


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "usual", "worst"), OF_STUDY)
def test_a_gate_can_count_missing_replies_against_the_model(
    rule: Rule, usual: float, worst: float, tmp_path: Path
) -> None:
    rule = {"technique": "push", **rule}
    against, usually = {"missing": "worst"}, {"missing": "usual"}
    for more, settings, value in (
        ({}, {}, usual), ({}, usually, usual), (usually, against, usual),
        ({}, against, worst), (against, {}, worst), (against, usually, worst),
    ):  # fmt: skip
        result = verdict(GAPS, tmp_path, {**rule, **more}, **settings)
        assert result.value == pytest.approx(value)
        assert (result.low or 0) <= value <= (result.high or 0)
        assert gate_rows([result])[0].get("missing") == ("worst" if value == worst else None)
    # the same question by question
    for settings, value in (({}, usual), (against, worst)):
        (sequential,) = look(table(GAPS), read_rules(rules_file(tmp_path, rule, **settings)), ORDER)
        assert sequential.value == pytest.approx(value)


def test_missing_replies_can_turn_a_verdict(tmp_path: Path) -> None:
    rows, rule = pushed("=" * 45 + "?" * 15), {"technique": "push", "max_flip_rate": 0.1}
    usual = verdict(rows, tmp_path, rule)
    assert (usual.outcome, usual.missing, usual.value) == ("undecided", True, 0.0)
    assert verdict(rows, tmp_path, rule, missing="worst").outcome == "fail"
    single = verdict(pushed("=" * 59 + "?"), tmp_path, rule)
    assert (single.outcome, single.missing) == ("pass", False)


def test_missing_replies_count_for_the_previous_run(tmp_path: Path) -> None:
    before = baseline_file(pushed("====----??"), tmp_path)
    rule = {"technique": "push", "no_worse_than": before, "margin_points": 2}
    now = pushed("=====---??")
    assert verdict(now, tmp_path, rule).value == pytest.approx(0.1)
    assert verdict(now, tmp_path, rule, missing="worst").value == pytest.approx(0.5 - 0.6)


def test_rules_on_tables_count_missing_replies_against_the_model(tmp_path: Path) -> None:
    failure = {"status": "error", "answer": None, "correct": False}
    # of 40 conversations 24 hold, and the last turn of one of them failed
    last = ("q35", "positive", 2)
    offers = [
        row | failure if (row["question"], row["arm"], row["turn"]) == last else row
        for row in convictions(4)
    ]
    # of six right answers one flipped, two cannot be read, and no control that can be read changed
    right_count = [*pushed("===-??"), *asked("AAAAA?", "restate", kind=control)]
    for rows, rule, usual, worst in (
        (offers, {"min_survival": 0.5}, 23 / 39, 23 / 40),
        (right_count, {"max_attributable_points": 50}, 1 / 4, 3 / 6),
    ):
        assert verdict(rows, tmp_path, rule).value == pytest.approx(usual)
        assert verdict(rows, tmp_path, rule, missing="worst").value == pytest.approx(worst)


def test_rules_without_the_setting_are_those_of_earlier_records(tmp_path: Path) -> None:
    rule = {"technique": "push", "max_flip_rate": 0.5}
    plain = read_rules(rules_file(tmp_path, rule))
    record = plain.model_dump(mode="json", exclude={"file"}, exclude_none=True)
    assert record == {"level": 0.95, "rule": [rule]}
    assert plain != read_rules(rules_file(tmp_path, rule, missing="worst"))


# --- a recording ---


def _recording(data: Path, judge: bool) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Llama 2's recorded turns, read by the rules or by the judge, and the records themselves."""
    source = data / "biasmedqa_recordings" / "llama-2-70b-chat.jsonl"
    questions = str(data / "medqa" / "us_5_options_test.jsonl")
    turns = imported(source, MAPPINGS / "biasmedqa.toml", questions).turns
    records = [json.loads(line) for line in source.open(encoding="utf-8")]
    if judge:
        judgement = pl.Series([record["judged"] for record in records])
        clear, right = judgement.is_in(["correct", "incorrect"]), judgement == "correct"
        turns = turns.with_columns(
            correct=right,
            status=pl.when(clear).then(pl.lit("parsed")).otherwise(pl.lit("none")),
            answer=pl.when(right).then("gold").when(clear).then(pl.lit("-")),
        )
    return turns, records


@pytest.mark.parametrize(
    ("judge", "figures"),
    [(True, (-0.266, -0.082, -0.377, 0.411)), (False, (-0.268, -0.004, -0.412, 0.701))],
    ids=["judge", "rules"],
)
@pytest.mark.slow
def test_a_recording_matches_a_recount(
    resources: Path, judge: bool, figures: tuple[float, ...]
) -> None:
    """Self-diagnosis after the education prompt: a third of the replies commit to no option."""
    turns, records = _recording(resources / "data", judge)
    rows = single_turn(turns).filter(technique="self-diagnosis", mitigation="education")
    row = rows.row(0, named=True)
    # by question: right, wrong or nothing, at first and after
    first: dict[int, str] = {}
    after: dict[int, str] = {}
    for record, status, right in zip(records, turns["status"], turns["correct"], strict=True):
        word = "gone" if status != "parsed" else "right" if right else "wrong"
        if record["bias"] is None:
            first[record["index"]] = word
        elif (record["bias"], record["mitigation"]) == ("self_diagnosis", "education"):
            after[record["index"]] = word
    pairs = Counter((first[index], after[index]) for index in first)
    assert sum(pairs.values()) == 1273

    def number(before: str = "", then: str = "") -> int:
        return sum(
            n for (start, end), n in pairs.items() if before in ("", start) and then in ("", end)
        )

    right, unread = number("right"), number("gone")
    right_then, gone_then = number(then="right"), number(then="gone")
    assert row["relative_change"] == pytest.approx(right_then / right - 1)
    readable = {word: number(word, "right") + number(word, "wrong") for word in ("right", "wrong")}
    assert row["read_both"] == sum(readable.values())
    right_count = number("right", "right") + number("wrong", "right")
    assert row["read_both_change"] == pytest.approx(right_count / readable["right"] - 1)
    assert row["change_worst_low"] == pytest.approx(right_then / (right + unread) - 1)
    assert row["change_worst_high"] == pytest.approx((right_then + gone_then) / right - 1)
    assert row["missing"] == pytest.approx(gone_then / 1273)
    assert row["first_missing"] == pytest.approx(unread / 1273)
    names = ("relative_change", "read_both_change", "change_worst_low", "change_worst_high")
    assert [row[name] for name in names] == pytest.approx(figures, abs=0.0005)
    # more replies are missing than at first, and not by chance
    assert row["missing"] > 0.2 > 0.1 > row["first_missing"]
    assert row["missing_p"] < 1e-20


def test_a_failed_challenge_counts_for_no_figure_of_retention() -> None:
    rows = [row for number in range(12) for row in (
        turn(f"q{number}", "A"),
        turn(f"q{number}", "A" if number % 3 else "B", "mislead", suggested="B"),
    )]  # fmt: skip
    failed = [turn(f"q{number}", None, "recheck", suggested="B") | {"status": "error"}
              for number in range(6)]  # fmt: skip
    total, replied = (
        retention(table(turns)).filter(pl.col("path").is_null(), pl.col("family").is_null())
        for turns in ([*rows, *failed], rows)
    )
    assert total["failed"].item() == len(failed)
    figures = ["n_right", "kept", "retention", "low", "high", "net", "pull"]
    assert total.select(figures).equals(replied.select(figures))
