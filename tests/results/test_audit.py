"""Figures corrected by people: by hand, where the reading is perfect, and with known errors."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from holdfast.errors import InputError
from holdfast.results.accuracy import accuracy
from holdfast.results.audit import FIGURES, Corrected, audit, corrected, label_widths, units
from holdfast.results.flows import flips
from holdfast.results.gate import Verdict, gate
from holdfast.results.gate_rules import read_rules
from holdfast.stats.intervals import exact_bounds
from tests.results.frames import Row, asked, table, turn
from tests.results.gating import rules_file

ERRORS: dict[str, Any] = {"miss": 0.08, "false_alarm": 0.15}
"""How often a right answer is read as wrong, and a wrong one as right."""


def drawn(
    seed: int,
    questions: int = 200,
    labels: int = 120,
    right: float = 0.7,
    miss: float = 0.0,
    false_alarm: float = 0.0,
) -> pl.DataFrame:
    """A study of one challenge, read with known errors, some of its pairs labelled by the truth."""
    rng = np.random.default_rng([seed, questions, labels])
    truth = np.where(rng.random((2, questions)) < right, "A", "B")
    errs = rng.random((2, questions)) < np.where(truth == "A", miss, false_alarm)
    first, after = np.where(errs, np.where(truth == "A", "B", "A"), truth).tolist()
    sample = set(rng.permutation(questions)[:labels].tolist())
    rows = asked("".join(first)) + asked("".join(after), "push")
    for place, row in enumerate(rows[questions:]):
        if place in sample:
            row["label_first"], row["label"] = (str(letter) for letter in truth[:, place])
            row["label_weight"] = questions / labels
    return table(rows)


def figure_of(turns: pl.DataFrame, figure: str) -> Corrected:
    return corrected(units(turns), figure)


def width(of: Corrected) -> float:
    low, high = of.bounds()
    return high - low


@pytest.mark.parametrize("figure", ["accuracy", "flips"])
def test_labels_of_a_question_are_one_observation(figure: str) -> None:
    """Ten challenges that come out alike, all labelled alike, are no more than one of them."""
    item = drawn(4, **ERRORS)
    first = pl.col("arm") == "baseline"
    ten = pl.concat(
        [
            item.filter(first),
            *(item.filter(~first).with_columns(path=pl.lit(f"push-{n}")) for n in range(10)),
        ]
    )
    # independent ones would take the root of a tenth
    assert width(figure_of(ten, figure)) > 0.9 * width(figure_of(item, figure))


def uneven(seed: int) -> list[Row]:
    """Pairs with every way to be read and labelled, several to a question, with uneven weights."""
    rng = np.random.default_rng(seed)
    rows = []
    for place in range(30):
        name, first = f"q{place}", ("A", "A", "A", "B", None)[rng.integers(5)]
        rows.append(turn(name, first))
        for path in ("push", "shove")[: 1 + place % 2]:
            is_labelled = rng.random() < 0.7
            rows.append(
                turn(name, ("A", "B", None)[rng.integers(3)], path)
                | {
                    "label_first": rng.choice(["A", "B", "none"]) if is_labelled else None,
                    "label": rng.choice(["A", "C", "refused"]) if is_labelled else None,
                    "label_weight": float(rng.integers(1, 9)) if is_labelled else None,
                }
            )
    return rows


def by_loops(rows: list[Row], figure: str) -> tuple[float, float, int]:
    """As read, corrected, and disagreements: mean of the reading and of label less reading."""
    first = {row["question"]: row["answer"] for row in rows if not row["path"]}
    pairs = [row for row in rows if row["path"]]
    numbers = Counter(row["question"] for row in pairs)

    def counts(before: Any, after: Any) -> tuple[float, float]:
        """What counts, and what it is counted among."""
        if figure != "flips":
            return float((before if figure == "first" else after) == "A"), 1.0
        return float(before == "A" and after in ("B", "C")), float(before == "A")

    units = []
    for row in pairs:
        reading = counts(first[row["question"]], row["answer"])
        label = counts(row["label_first"], row["label"]) if row["label"] else None
        size = 1 / numbers[row["question"]] if figure == "first" else 1.0
        units.append((reading, label, size, size * (row["label_weight"] or 0.0)))
    sums = [sum(reading[place] * size for reading, _, size, _ in units) for place in (0, 1)]
    total = list(sums)
    for kind in {reading for reading, *_ in units}:
        alike = [unit for unit in units if unit[0] == kind]
        # weights of what was read alike add up to its share of all turns
        weights, share = sum(unit[3] for unit in alike), sum(unit[2] for unit in alike)
        for reading, label, _, weight in alike:
            for place in (0, 1) if label else ():
                difference = (label or reading)[place] - reading[place]
                total[place] += share * weight / weights * difference
    disagreements = sum(label is not None and label != reading for reading, label, *_ in units)
    return sums[0] / sums[1], total[0] / total[1], disagreements


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("seed", range(6))
def test_figures_are_corrected_by_the_weighted_mean_of_differences(figure: str, seed: int) -> None:
    rows = uneven(seed)
    of = figure_of(table(rows), figure)
    as_read, value, disagreements = by_loops(rows, figure)
    assert of.as_read == pytest.approx(as_read)
    assert of.corrected == pytest.approx(value)
    assert of.disagreements == disagreements
    if figure != "flips":  # labels are worth as many as they are
        trials = sum(float(side[1].sum()) for side in of.interval_data[0][1:])
        assert trials == pytest.approx(of.labelled)
    low, high = of.bounds()
    assert 0 <= low <= of.corrected <= high <= 1
    assert low > 0 or high < 1


def test_uncorrected_figures_match_the_other_tables() -> None:
    rows = uneven(7)
    turns = table(rows)
    accuracies = accuracy(turns)
    first = accuracies.row(by_predicate=pl.col("arm") == "baseline", named=True)
    (whole,) = audit(turns).filter(pl.col("figure") == "first").iter_rows(named=True)
    assert whole["as_read"] == pytest.approx(first["accuracy"])
    assert whole["n"] == first["n"]
    for row in audit(turns).filter(pl.col("path").is_not_null()).iter_rows(named=True):
        if row["figure"] == "accuracy":
            part = accuracies.row(by_predicate=pl.col("path") == row["path"], named=True)
            assert (row["as_read"], row["n"]) == pytest.approx((part["accuracy"], part["n"]))
        else:
            part = flips(turns).row(by_predicate=pl.col("path") == row["path"], named=True)
            assert (row["as_read"], row["n"]) == pytest.approx((part["flip_rate"], part["n_right"]))


def test_rows_need_enough_labels() -> None:
    turns = drawn(1, questions=40, labels=30)
    more = turns.filter(pl.col("path") != "").with_columns(
        path=pl.lit("shove"), technique=pl.lit("shove"),
        label=pl.when(pl.col("question").is_in(["q1", "q2"])).then("label"),
    )  # fmt: skip
    rows = audit(pl.concat([turns, more]))
    places = rows.select("figure", "arm", "path").rows()
    assert places == [
        ("first", None, None), ("accuracy", None, None), ("flips", None, None),
        ("accuracy", "followup", None), ("flips", "followup", None),
        ("accuracy", "followup", "push"), ("flips", "followup", "push"),
    ]  # fmt: skip
    assert audit(turns.with_columns(label=pl.lit(None, pl.String))).height == 0


def test_a_perfect_reading_is_not_corrected() -> None:
    for labels in (20, 60, 200):
        turns = drawn(2, labels=labels)
        pairs = turns.filter(pl.col("path") != "")
        labels_of = pairs.filter(pl.col("label").is_not_null())
        for figure in FIGURES:
            of = figure_of(turns, figure)
            assert (of.disagreements, of.agreement) == (0, 1)
            assert of.corrected == pytest.approx(of.as_read)
            if figure != "accuracy":
                continue
            low, high = of.bounds()
            right = int(labels_of["correct"].sum())
            # as many errors as the labels of either kind cannot rule out, with 97.5%
            errors = exact_bounds(right, right)[0], exact_bounds(0, labels - right)[1]
            assert low <= of.as_read * errors[0] + 1e-12
            assert high >= of.as_read + (1 - of.as_read) * errors[1] - 1e-12


def test_complete_labels_are_the_figure() -> None:
    turns = drawn(3, labels=200, **ERRORS)
    pairs = turns.filter(pl.col("path") != "")
    assert figure_of(turns, "accuracy").corrected == pytest.approx((pairs["label"] == "A").mean())
    assert figure_of(turns, "first").corrected == pytest.approx(
        (pairs["label_first"] == "A").mean()
    )
    right = pairs.filter(pl.col("label_first") == "A")
    assert figure_of(turns, "flips").corrected == pytest.approx((right["label"] == "B").mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("studies", "labels", "miss", "false_alarm"),
    [
        (40, 120, 0.08, 0.15),
        *(pytest.param(600, *setting, marks=pytest.mark.slow)
          for setting in ((120, 0.08, 0.15), (60, 0.08, 0.15), (120, 0.02, 0.02), (40, 0.01, 0.03),
                          (150, 0.3, 0.02))),
    ],
)  # fmt: skip
def test_known_reading_errors_are_removed(
    studies: int, labels: int, miss: float, false_alarm: float
) -> None:
    truth = {"first": 0.7, "accuracy": 0.7, "flips": 0.3}
    errs: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    inside = dict.fromkeys(FIGURES, 0)
    for seed in range(studies):
        study = units(drawn(seed, labels=labels, miss=miss, false_alarm=false_alarm))
        for figure, true in truth.items():
            of = corrected(study, figure)
            low, high = of.bounds()
            errs[figure].append(of.corrected - true)
            inside[figure] += low <= true <= high
    for figure, part in errs.items():
        assert abs(np.mean(part)) < 4 * np.std(part) / math.sqrt(studies), figure
        assert inside[figure] / studies >= 0.93, figure


def decision(turns: pl.DataFrame, tmp_path: Path, **rule: Any) -> Verdict:
    (verdict,) = gate(turns, read_rules(rules_file(tmp_path, rule)))
    return verdict


def test_a_gate_decides_by_the_corrected_figure(tmp_path: Path) -> None:
    # nothing is right that is read as wrong, so that the reading flatters by 30 x 60%
    turns = drawn(6, questions=400, labels=300, false_alarm=0.6)
    rule = {"technique": "push", "min_accuracy": 0.8}
    assert decision(turns, tmp_path, **rule).outcome == "pass"
    verdict = decision(turns, tmp_path, **rule, audited=True)
    of = figure_of(turns, "accuracy")
    assert verdict.outcome == "fail"
    assert (verdict.value, verdict.low, verdict.high) == pytest.approx((of.corrected, *of.bounds()))
    assert verdict.of == "technique push, corrected by 300 labels"
    first = decision(turns, tmp_path, min_accuracy=0.8, audited=True)
    assert first.outcome == "fail"
    assert first.value == pytest.approx(figure_of(turns, "first").corrected)
    assert first.n == 400
    flip = decision(turns, tmp_path, family="inc_letter", max_flip_rate=0.29, audited=True)
    assert flip.value == pytest.approx(figure_of(turns, "flips").corrected)
    assert flip.outcome == "undecided"
    assert flip.further is not None
    assert flip.further > 0


def test_a_gate_refuses_what_labels_do_not_correct(tmp_path: Path) -> None:
    turns = drawn(6, labels=50).with_columns(label=pl.lit(None, pl.String))
    with pytest.raises(
        InputError, match="rule 1, field 'audited': no question has the label of technique push"
    ):
        decision(turns, tmp_path, technique="push", min_accuracy=0.8, audited=True)
    with pytest.raises(InputError, match="'audited': cannot be combined with max_drop_points"):
        decision(turns, tmp_path, technique="push", max_drop_points=5, audited=True)
    with pytest.raises(InputError, match="'audited': cannot be combined with missing = 'worst'"):
        decision(turns, tmp_path, min_accuracy=0.8, missing="worst", audited=True)
    # and a rule that does not ask for them decides as before
    assert decision(turns, tmp_path, technique="push", min_accuracy=0.1).outcome == "pass"


def test_interval_widths_follow_the_number_of_labels() -> None:
    ((perfect, alone),) = label_widths(0.7, 0.0, 0.0, [200])
    limits = exact_bounds(140, 140)[0], exact_bounds(0, 60)[1]
    assert perfect == pytest.approx(0.7 * (1 - limits[0]) + 0.3 * limits[1])
    assert alone == pytest.approx(np.diff(exact_bounds(140, 200)).item())
    widths = label_widths(0.7, 0.05, 0.1, [50, 100, 200, 400])
    assert [item for item, _ in widths] == sorted((item for item, _ in widths), reverse=True)
    assert all(item < second for item, second in widths)
    # of very many questions, what the labels leave open is all there is
    turns = drawn(8, questions=4000, labels=400, **ERRORS)
    low, high = figure_of(turns, "accuracy").bounds()
    ((width, _),) = label_widths(0.689, 0.045 / 0.689, 0.056 / 0.311, [400])
    assert width < high - low < 1.2 * width
