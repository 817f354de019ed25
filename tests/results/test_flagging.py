"""Review flagging: curves by brute force, signals without information, recordings recounted."""

import csv
import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from holdfast.results.flagging import (
    FLAGGING_COLUMNS,
    SIGNALS,
    _area,
    _areas,
    _combine_signals,
    _curves,
    _folds,
    _shares_caught,
    _thresholds,
    conversations,
    flagging,
    flagging_curve,
)
from holdfast.stats.intervals import Floats
from tests.results.duet import duet_turns
from tests.results.frames import Row, table, turn


def of(rows: pl.DataFrame, signal: str, **keys: str) -> Row:
    (row,) = rows.filter(pl.col("signal") == signal, **keys).to_dicts()
    return row


# --- the curve ---


@pytest.mark.parametrize(
    ("scores", "harm"),
    [
        ([3.0, 1.0, 2.0, 0.0], [1, 0, 0, 1]),
        ([1.0, 1.0, 0.0, 0.0, 0.0], [1, 0, 1, 0, 0]),
        ([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 1]),
        ([2.0, 2.0, 2.0, 1.0, 0.0, 0.0], [1, 1, 0, 0, 1, 0]),
        # a perfect signal
        ([1.0, 1.0, 0.0, 0.0, 0.0], [1, 1, 0, 0, 0]),
    ],
)
def test_ties_are_broken_at_random(scores: list[float], harm: list[int]) -> None:
    n = len(scores)
    orders = [
        order for order in itertools.permutations(range(n))
        if [scores[i] for i in order] == sorted(scores, reverse=True)
    ]  # fmt: skip
    # share caught after each of the first conversations, over every order of those that are tied
    curves = np.array([np.cumsum([0] + [harm[i] for i in order]) for order in orders]) / sum(harm)
    curve, _ = _curves(np.array(scores), np.array(harm, float), np.arange(n))
    shares = np.arange(n + 1) / n
    assert _shares_caught(*curve, shares) == pytest.approx(curves.mean(axis=0))
    trapezes = (curves[:, 1:] + curves[:, :-1]).mean(axis=0).sum() / 2 / n
    assert _area(*curve) == pytest.approx(trapezes)


# --- conversations and signals ---


def test_signals_match_hand_calculation() -> None:
    rows = [
        *(turn(q, a) for q, a in zip("abcde", "AAABA", strict=True)),
        turn("a", "A", "push", stance="verify"),
        turn("b", "B", "push", stance="defer"),
        turn("c", None, "push"),
        turn("d", "A", "push"),
        turn("e", "C", "push", reader_status="parsed", answer_rules="C", answer_reader="A"),
    ]
    result = conversations(table(rows)).sort("question")
    # an unread reply is no conversation to rank: a person sees it anyway
    assert result["question"].to_list() == ["a", "b", "d", "e"]
    assert result["harmful"].to_list() == [False, True, False, True]
    assert result["flip"].to_list() == [0.0, 1.0, 1.0, 1.0]
    assert result["stance"].to_list() == [0.0, 1.0, 0.5, 0.5]
    assert result["readers"].to_list() == [0.0, 0.0, 0.0, 1.0]
    assert result["belief"].is_null().all()
    assert result["samples"].is_null().all()
    row = of(flagging(table(rows)), "flip")
    assert (row["conversations"], row["questions"], row["harmful"]) == (4, 4, 2)
    # three changed, two of them to harm: a tenth of four is 0.4 of these three
    assert row["caught"] == pytest.approx(0.4 / 3)
    assert (row["area_low"], row["threshold"]) == (None, None)


def test_samples_and_belief_match_hand_calculation() -> None:
    # how many of the other epochs disagree
    rows = [turn("a", "A", epoch=n) for n in (1, 2, 3)]
    rows += [turn("a", a, "push", epoch=n) for n, a in enumerate("AAB", 1)]
    result = conversations(table(rows)).sort("answer")
    assert result["samples"].to_list() == [0.5, 0.5, 1.0]
    # what is left of the belief in the first answer
    rows = [
        turn("a", "A", p_answer=0.9), turn("a", "A", "push", p_answer=0.6),
        turn("b", "A", p_answer=0.9), turn("b", "B", "push", p_answer=0.7),
    ]  # fmt: skip
    result = conversations(table(rows)).sort("question")
    assert result["belief"].to_list() == pytest.approx([0.3, 0.6])


def test_no_signal_uses_the_truth() -> None:
    rng = np.random.default_rng(5)
    rows: list[Row] = []
    for n in range(40):
        letters = rng.choice(list("ABC"), 2)
        rows += [turn(f"q{n}", letters[0]), turn(f"q{n}", letters[1], "push", stance="defer")]
    turns = table(rows)
    opposite = turns.with_columns(gold=pl.lit("B"), correct=pl.col("answer") == "B")
    columns = ["question", *(name for name in SIGNALS if name not in ("combined", "chance"))]
    assert conversations(turns).select(columns).equals(conversations(opposite).select(columns))


# --- drawn studies ---


def drawn(rng: np.random.Generator, questions: int) -> pl.DataFrame:
    """A study whose confidence after a challenge falls more where the answer changes."""
    rows: list[Row] = []
    for n, hard in enumerate(rng.normal(size=questions)):
        right = hard + rng.normal() < 1
        rows.append(turn(f"q{n}", "A" if right else "B", p_answer=0.9))
        for path in ("t0", "t1", "t2"):
            stays = right and hard + rng.normal() < 0.8
            sure = 0.5 + 0.1 * rng.normal() + (0.1 if stays or not right else 0)
            rows.append(turn(f"q{n}", "A" if stays else "B", path, p_answer=sure))
    return table(rows)


def scores_of(
    rng: np.random.Generator, questions: int, strength: float
) -> tuple[Floats, Floats, np.ndarray]:
    """Scores, whether a conversation is harmful, and its question: three conversations of each."""
    hard = rng.normal(size=questions)[:, None]
    right = hard + rng.normal(size=(questions, 1)) < 1
    stays = right & (hard + rng.normal(size=(questions, 3)) < 0.8)
    harm = right & ~stays
    scores = strength * harm + rng.normal(size=harm.shape) + 0.5 * hard
    return scores.ravel(), harm.ravel().astype(float), np.repeat(np.arange(questions), 3)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("questions", [100, 300])
def test_intervals_contain_their_areas(questions: int, strength: float) -> None:
    rng = np.random.default_rng(questions + int(strength))
    true = _areas(*scores_of(rng, 400_000, strength), 0.1, intervals=False)
    inside = dict.fromkeys(("area", "caught"), 0)
    number = 2000
    for _ in range(number):
        result = _areas(*scores_of(rng, questions, strength), 0.1)
        for name in inside:
            low, high = result[f"{name}_low"], result[f"{name}_high"]
            assert low is not None
            assert high is not None
            inside[name] += low <= (true[name] or 0.0) <= high
    # two-sided at least 94%, but for what 2,000 studies can miss it by (99%)
    bound = 0.94 - 2.576 * (0.94 * 0.06 / number) ** 0.5
    assert {name: n / number for name, n in inside.items() if n / number < bound} == {}


def test_random_scores_catch_what_is_reviewed() -> None:
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(60):
        harm = (rng.random(300) < 0.2).astype(float)
        at = np.repeat(np.arange(100), 3)
        curve, resamples = _curves(rng.random(300), harm, at)
        low, high = np.quantile(_area(*resamples), [0.025, 0.975])
        inside += low <= 0.5 <= high
        assert abs(_area(*curve) - 0.5) < 0.15
    assert inside >= 52  # 95% of 60, less three standard errors


def test_thresholds_are_evaluated_on_other_questions() -> None:
    turns = drawn(np.random.default_rng(3), 400)
    row = of(flagging(turns, 0.2), "belief")
    assert row["held_reviewed"] == pytest.approx(0.2, abs=0.03)
    assert row["held_caught"] == pytest.approx(row["caught"], abs=0.1)
    assert row["threshold"] is not None
    small = of(flagging(drawn(np.random.default_rng(3), 60), 0.2), "belief")
    assert (small["threshold"], small["held_caught"]) == (None, None)


def test_a_cross_fitted_threshold_may_flag_more_or_less() -> None:
    part = pl.DataFrame({"question": [f"q{n}" for n in range(500)]})
    fifth = _folds(part)
    # the last fifth lies above all others: theirs is no threshold for it
    scores = fifth + np.random.default_rng(1).random(500) / 2
    result = _thresholds(scores, (fifth == 4).astype(float), part, 0.1)
    assert result["held_reviewed"] == pytest.approx((fifth == 4).mean())
    assert result["held_caught"] == 1.0


def test_joint_signals_are_scored_out_of_sample() -> None:
    turns = drawn(np.random.default_rng(4), 400)
    rows = flagging(turns)
    assert tuple(rows.columns) == FLAGGING_COLUMNS
    together, alone = of(rows, "combined")["area"], of(rows, "flip")["area"]
    assert together >= alone - 0.01
    assert of(rows, "combined")["threshold"] is None


def test_uninformative_joint_signals_stay_uninformative() -> None:
    rng = np.random.default_rng(100)
    areas = []
    for _ in range(40):
        names = [f"q{n // 3}" for n in range(300)]
        part = pl.DataFrame({"question": names, "one": rng.random(len(names)),
                            "two": rng.random(len(names))})  # fmt: skip
        harm = (rng.random(len(names)) < 0.2).astype(float)
        scores = _combine_signals(part, ["one", "two"], harm)
        assert scores is not None
        curve, _ = _curves(scores, harm, np.arange(len(names)))
        areas.append(_area(*curve))
    assert abs(np.mean(areas) - 0.5) < 4 * np.std(areas) / len(areas) ** 0.5


def test_flips_of_one_question_have_no_interval() -> None:
    rows = [turn(f"q{n}", "A") for n in range(40)]
    rows += [turn(f"q{n}", "A", "push") for n in range(1, 40)]
    rows += [turn("q0", "A", epoch=epoch) for epoch in range(2, 20)]
    rows += [turn("q0", "B", "push", epoch=epoch) for epoch in range(1, 20)]
    row = of(flagging(table(rows)), "flip")
    assert (row["harmful"], row["area_low"], row["caught_high"]) == (19, None, None)
    assert flagging_curve(table(rows))["low"].is_null().all()


def test_the_curve_has_a_row_per_twentieth() -> None:
    turns = drawn(np.random.default_rng(6), 120)
    rows = flagging_curve(turns).filter(pl.col("signal") == "belief")
    assert rows["percent"].to_list() == list(range(0, 101, 5))
    assert (rows["caught"][0], rows["caught"][-1]) == (0.0, 1.0)
    assert rows["caught"].is_sorted()
    at_ten = of(flagging(turns), "belief")
    assert rows.filter(pl.col("percent") == 10)["caught"][0] == pytest.approx(at_ten["caught"])
    assert flagging_curve(table([])).schema == rows.schema
    assert flagging(table([])).schema == flagging(turns).schema


# --- recordings ---


def test_recordings_with_confidences_match_a_recount(resources: Path) -> None:
    path = resources / "data" / "duet_recordings" / "biology_two_models.csv"
    rows = flagging(duet_turns(path), 0.2)
    by_model: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    with path.open(newline="", encoding="utf-8") as file:
        for item in csv.DictReader(file):
            if item["setting"] not in ("NEG", "POS"):
                continue
            first, last = item["turn_0_selected_letter"], item["turn_3_selected_letter"]
            before, after = (float(item[f"turn_{n}_conf_selected"]) for n in (0, 3))
            left = after if last == first else 1 - after
            harmful = first == item["answer_letter"] != last
            by_model[item["model_name"]].append((before - left, harmful))
    assert len(by_model) == 2
    for model, scores in by_model.items():
        row = of(rows, "belief", model=model)
        harms = sum(harm for _, harm in scores)
        assert (row["conversations"], row["harmful"]) == (len(scores), harms)
        # the chance that a harmful flip stands before a conversation drawn at random
        area = sum(
            (score > rival) + (score == rival) / 2
            for score, harm in scores if harm for rival, _ in scores
        ) / harms / len(scores)  # fmt: skip
        assert row["area"] == pytest.approx(area, abs=1e-9)
        assert row["area_low"] < row["area"] < row["area_high"]
        ranking = sorted(scores, key=lambda item: -item[0])
        limit = ranking[int(0.2 * len(ranking)) - 1][0]
        surely = sum(harm for score, harm in scores if score > limit) / harms
        perhaps = sum(harm for score, harm in scores if score >= limit) / harms
        assert surely - 1e-9 <= row["caught"] <= perhaps + 1 / harms
