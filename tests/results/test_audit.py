"""Figures corrected by people: by hand, where the reading is perfect, and with known errors."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from holdfast.errors import InputError
from holdfast.results.accuracy import accuracy
from holdfast.results.audit import (
    AUDIT_COLUMNS,
    FIGURES,
    Corrected,
    audit,
    corrected,
    label_widths,
    units,
)
from holdfast.results.flows import flips
from holdfast.results.gate import Verdict, gate
from holdfast.results.gate_rules import read_rules
from holdfast.stats.intervals import exact_bounds
from tests.results.frames import Row, table, turn

ERRORS: dict[str, Any] = {"missed": 0.08, "invented": 0.15}
"""How often a right answer is read as wrong, and a wrong one as right."""


def drawn(
    seed: int,
    questions: int = 200,
    labels: int = 120,
    right: float = 0.7,
    missed: float = 0.0,
    invented: float = 0.0,
) -> pl.DataFrame:
    """A study of one challenge, read with known errors, some of its pairs labelled by the truth."""
    rng = np.random.default_rng([seed, questions, labels])
    truth = np.where(rng.random((2, questions)) < right, "A", "B")
    errs = rng.random((2, questions)) < np.where(truth == "A", missed, invented)
    read = np.where(errs, np.where(truth == "A", "B", "A"), truth)
    chosen = set(rng.permutation(questions)[:labels].tolist())
    rows = []
    for place in range(questions):
        said = [str(one) for one in truth[:, place]] if place in chosen else [None, None]
        name = f"q{place}"
        rows.append(turn(name, str(read[0, place])))
        rows.append(
            turn(name, str(read[1, place]), "push", label_first=said[0], label=said[1],
                 label_weight=questions / labels if place in chosen else None)
        )  # fmt: skip
    return table(rows)


def found(turns: pl.DataFrame, figure: str) -> Corrected:
    return corrected(units(turns), figure)


def width(of: Corrected) -> float:
    low, high = of.bounds()
    return high - low


@pytest.mark.parametrize("figure", ["accuracy", "flips"])
def test_labels_and_turns_of_one_question_say_what_one_says(figure: str) -> None:
    """Ten challenges that come out alike, all labelled alike, are no more than one of them."""
    one = drawn(4, **ERRORS)
    first = pl.col("arm") == "baseline"
    ten = pl.concat(
        [
            one.filter(first),
            *(one.filter(~first).with_columns(path=pl.lit(f"push-{n}")) for n in range(10)),
        ]
    )
    # independent ones would take the root of a tenth
    assert width(found(ten, figure)) > 0.9 * width(found(one, figure))


def uneven(seed: int) -> list[Row]:
    """Pairs with every way to be read and labelled, several to a question, with uneven weights."""
    rng = np.random.default_rng(seed)
    rows = []
    for place in range(30):
        name, first = f"q{place}", ("A", "A", "A", "B", None)[rng.integers(5)]
        rows.append(turn(name, first))
        for path in ("push", "shove")[: 1 + place % 2]:
            labelled = rng.random() < 0.7
            rows.append(
                turn(name, ("A", "B", None)[rng.integers(3)], path)
                | {
                    "label_first": rng.choice(["A", "B", "none"]) if labelled else None,
                    "label": rng.choice(["A", "C", "refused"]) if labelled else None,
                    "label_weight": float(rng.integers(1, 9)) if labelled else None,
                }
            )
    return rows


def by_loops(rows: list[Row], figure: str) -> tuple[float, float, int]:
    """As read, corrected, and disagreements: mean of the reading and of label less reading."""
    first = {row["question"]: row["answer"] for row in rows if not row["path"]}
    pairs = [row for row in rows if row["path"]]
    every = []
    for row in pairs:
        own = sum(other["question"] == row["question"] for other in pairs)

        def told(one: Any, other: Any) -> tuple[float, float]:
            """What counts, and what it is counted among."""
            if figure == "first":
                return float(one == "A"), 1.0
            if figure == "accuracy":
                return float(other == "A"), 1.0
            letter = other in ("B", "C")
            return float(one == "A" and letter), float(one == "A")

        read = told(first[row["question"]], row["answer"])
        label = told(row["label_first"], row["label"]) if row["label"] else None
        size = 1 / own if figure == "first" else 1.0
        every.append((read, label, size, size * (row["label_weight"] or 0.0)))
    sums, corrections = [0.0, 0.0], [0.0, 0.0]
    for read, _, size, _ in every:
        sums = [total + part * size for total, part in zip(sums, read, strict=True)]
    for kind in {read for read, *_ in every}:
        alike = [one for one in every if one[0] == kind]
        known = sum(weight for *_, weight in alike)
        share = sum(size for _, _, size, _ in alike)
        for read, label, _, weight in alike:
            for place in (0, 1):
                # weights of what was read alike add up to its share of all turns
                off = (label[place] - read[place]) if label else 0.0
                corrections[place] += share * weight / known * off if known else 0.0
    disagree = sum(label is not None and label != read for read, label, *_ in every)
    true = [total + more for total, more in zip(sums, corrections, strict=True)]
    return sums[0] / sums[1], true[0] / true[1], disagree


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("seed", range(6))
def test_the_reading_and_the_weighted_mean_of_label_less_reading(figure: str, seed: int) -> None:
    rows = uneven(seed)
    of = found(table(rows), figure)
    as_read, value, disagreements = by_loops(rows, figure)
    assert of.as_read == pytest.approx(as_read)
    assert of.corrected == pytest.approx(value)
    assert of.disagreements == disagreements
    low, high = of.bounds()
    assert 0 <= low <= of.corrected <= high <= 1
    assert low > 0 or high < 1


def test_as_read_is_the_figure_of_the_other_tables() -> None:
    rows = uneven(7)
    turns = table(rows)
    accuracies = accuracy(turns)
    first = accuracies.row(by_predicate=pl.col("arm") == "baseline", named=True)
    (whole,) = audit(turns).filter(pl.col("figure") == "first").iter_rows(named=True)
    assert whole["as_read"] == pytest.approx(first["accuracy"])
    assert whole["n"] == first["n"]
    for row in audit(turns).filter(pl.col("path").is_not_null()).iter_rows(named=True):
        if row["figure"] == "accuracy":
            own = accuracies.row(by_predicate=pl.col("path") == row["path"], named=True)
            assert (row["as_read"], row["n"]) == pytest.approx((own["accuracy"], own["n"]))
        else:
            own = flips(turns).row(by_predicate=pl.col("path") == row["path"], named=True)
            assert (row["as_read"], row["n"]) == pytest.approx((own["flip_rate"], own["n_right"]))


def test_rows_by_study_arm_and_path_where_there_are_enough_labels() -> None:
    turns = drawn(1, questions=40, labels=30)
    more = turns.filter(pl.col("path") != "").with_columns(
        path=pl.lit("shove"), technique=pl.lit("shove"),
        label=pl.when(pl.col("question").is_in(["q1", "q2"])).then("label"),
    )  # fmt: skip
    rows = audit(pl.concat([turns, more]))
    assert rows.columns == list(AUDIT_COLUMNS)
    places = rows.select("figure", "arm", "path").rows()
    assert places == [
        ("first", None, None), ("accuracy", None, None), ("flips", None, None),
        ("accuracy", "followup", None), ("flips", "followup", None),
        ("accuracy", "followup", "push"), ("flips", "followup", "push"),
    ]  # fmt: skip
    assert audit(turns.with_columns(label=pl.lit(None, pl.String))).height == 0


def test_where_the_reading_is_perfect_nothing_is_corrected_and_exact_limits_remain() -> None:
    for labels in (20, 60, 200):
        turns = drawn(2, labels=labels)
        pairs = turns.filter(pl.col("path") != "")
        known = pairs.filter(pl.col("label").is_not_null())
        for figure in FIGURES:
            of = found(turns, figure)
            assert (of.disagreements, of.agreement) == (0, 1)
            assert of.corrected == pytest.approx(of.as_read)
            if figure != "accuracy":
                continue
            low, high = of.bounds()
            right = int(known["correct"].sum())
            # as many errors as the labels of either kind cannot rule out, with 97.5%
            errors = exact_bounds(right, right)[0], exact_bounds(0, labels - right)[1]
            assert low <= of.as_read * errors[0] + 1e-12
            assert high >= of.as_read + (1 - of.as_read) * errors[1] - 1e-12


def test_labels_of_every_turn_are_the_figure_whatever_was_read() -> None:
    turns = drawn(3, labels=200, **ERRORS)
    pairs = turns.filter(pl.col("path") != "")
    assert found(turns, "accuracy").corrected == pytest.approx((pairs["label"] == "A").mean())
    assert found(turns, "first").corrected == pytest.approx((pairs["label_first"] == "A").mean())
    right = pairs.filter(pl.col("label_first") == "A")
    assert found(turns, "flips").corrected == pytest.approx((right["label"] == "B").mean())


def recovered(studies: int, labels: int, **errors: Any) -> dict[str, tuple[float, float, float]]:
    """Mean error of the figure, its standard error, and how often the interval holds the truth."""
    truth = {"first": 0.7, "accuracy": 0.7, "flips": 0.3}
    errs: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    held = dict.fromkeys(FIGURES, 0)
    for seed in range(studies):
        turns = drawn(seed, labels=labels, **errors)
        for figure, true in truth.items():
            of = found(turns, figure)
            low, high = of.bounds()
            errs[figure].append(of.corrected - true)
            held[figure] += low <= true <= high
    return {
        figure: (
            float(np.mean(own)),
            float(np.std(own)) / math.sqrt(studies),
            held[figure] / studies,
        )
        for figure, own in errs.items()
    }


def check_recovered(studies: int, labels: int, **errors: Any) -> None:
    for figure, (bias, error, coverage) in recovered(studies, labels, **errors).items():
        assert abs(bias) < 4 * error, figure
        assert coverage >= 0.93, figure


def test_known_errors_of_the_reading_are_taken_out() -> None:
    turns = drawn(5, questions=2000, labels=600, **ERRORS)
    # 0.7 x 0.92 + 0.3 x 0.15 are read as right
    assert found(turns, "accuracy").as_read == pytest.approx(0.689, abs=0.03)
    check_recovered(40, 120, **ERRORS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "missed", "invented"),
    [(120, 0.08, 0.15), (60, 0.08, 0.15), (120, 0.02, 0.02), (40, 0.01, 0.03), (150, 0.3, 0.02)],
)
def test_known_errors_are_taken_out_of_many_studies(
    labels: int, missed: float, invented: float
) -> None:
    check_recovered(600, labels, missed=missed, invented=invented)


def decided(turns: pl.DataFrame, tmp_path: Path, **rule: Any) -> Verdict:
    (only,) = gate(turns, read_rules(ruled(tmp_path, **rule)))
    return only


def ruled(tmp_path: Path, **rule: Any) -> str:
    path = tmp_path / "gate.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in rule.items()]
    path.write_text("\n".join(["[[rule]]", *lines]), "utf-8")
    return str(path)


def test_a_gate_decides_by_the_corrected_figure(tmp_path: Path) -> None:
    # nothing is right that is read as wrong, so that the reading flatters by 30 x 60%
    turns = drawn(6, questions=400, labels=300, invented=0.6)
    rule = {"technique": "push", "min_accuracy": 0.8}
    assert decided(turns, tmp_path, **rule).outcome == "pass"
    verdict = decided(turns, tmp_path, **rule, audited=True)
    of = found(turns, "accuracy")
    assert verdict.outcome == "fail"
    assert (verdict.value, verdict.low, verdict.high) == pytest.approx((of.corrected, *of.bounds()))
    assert verdict.of == "technique push, corrected by 300 labels"
    first = decided(turns, tmp_path, min_accuracy=0.8, audited=True)
    assert first.outcome == "fail"
    assert first.value == pytest.approx(found(turns, "first").corrected)
    assert first.n == 400
    lost = decided(turns, tmp_path, family="inc_letter", max_flip_rate=0.29, audited=True)
    assert lost.value == pytest.approx(found(turns, "flips").corrected)
    assert lost.outcome == "undecided"
    assert lost.further is not None
    assert lost.further > 0


def test_a_gate_refuses_what_labels_do_not_correct(tmp_path: Path) -> None:
    turns = drawn(6, labels=50).with_columns(label=pl.lit(None, pl.String))
    with pytest.raises(
        InputError, match="rule 1, field 'audited': no question has the label of technique push"
    ):
        decided(turns, tmp_path, technique="push", min_accuracy=0.8, audited=True)
    with pytest.raises(InputError, match="'audited': cannot be combined with max_drop_points"):
        read_rules(ruled(tmp_path, technique="push", max_drop_points=5, audited=True))
    with pytest.raises(InputError, match="'audited': cannot be combined with missing = 'worst'"):
        read_rules(ruled(tmp_path, min_accuracy=0.8, missing="worst", audited=True))
    # and a rule that does not ask for them decides as before
    assert decided(turns, tmp_path, technique="push", min_accuracy=0.1).outcome == "pass"


def test_widths_of_numbers_of_labels() -> None:
    ((perfect, alone),) = label_widths(0.7, 0.0, 0.0, [200])
    limits = exact_bounds(140, 140)[0], exact_bounds(0, 60)[1]
    assert perfect == pytest.approx(0.7 * (1 - limits[0]) + 0.3 * limits[1])
    assert alone == pytest.approx(np.diff(exact_bounds(140, 200)).item())
    widths = label_widths(0.7, 0.05, 0.1, [50, 100, 200, 400])
    assert [one for one, _ in widths] == sorted((one for one, _ in widths), reverse=True)
    assert all(one < other for one, other in widths)
    # of very many questions, what the labels leave open is all there is
    turns = drawn(8, questions=4000, labels=400, **ERRORS)
    low, high = found(turns, "accuracy").bounds()
    ((width, _),) = label_widths(0.689, 0.045 / 0.689, 0.056 / 0.311, [400])
    assert width < high - low < 1.2 * width
