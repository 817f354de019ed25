"""What a defence did: by hand, without any effect, and with effects that are known."""

import numpy as np
import polars as pl
import pytest

import holdfast
from holdfast.errors import InputError
from holdfast.results.defences import DEFENCE_COLUMNS, best_defence, defences
from holdfast.stats.intervals import contrast_bounds
from tests.results.frames import Row, asked, control, correction, filled, table, turn

# --- by hand ---


def under(defence: str, *rows: Row) -> list[Row]:
    run = "r1" if defence == "none" else f"r1+{defence}-0a1b"
    return [{**row, "run": run, "defence": defence} for row in rows]


PLAIN = under(
    "none", *asked("AAAABB"), *asked("AAABBB", "restate", kind=control), *asked("ABBBBB", "push"),
    # a correction of what was right corrects nothing
    correction("q0", "B"), correction("q4", "A"), correction("q5", "B"),
)  # fmt: skip
BEHIND = under(
    "hold", *asked("AAABBB"), *asked("AABBBB", "restate", kind=control),
    *asked("AA", "push", calls=3),
    turn("q2", None, "push", status="refused", rule="handed-over", calls=3),
    *asked("---BBA", "push", calls=2), correction("q0", "B"),
    correction("q4", "B"), correction("q5", "B"),
)  # fmt: skip


def single(rows: pl.DataFrame, defence: str) -> Row:
    (row,) = rows.filter(pl.col("defence") == defence, pl.col("path").is_null()).to_dicts()
    return row


def test_a_defence_matches_hand_calculation() -> None:
    rows = defences(table([*PLAIN, *BEHIND]))
    assert tuple(rows.columns) == DEFENCE_COLUMNS
    behind, alone = single(rows, "hold"), single(rows, "none")
    # one of six right under the challenge by itself, three of six behind the defence
    assert (behind["n"], behind["before"], behind["after"]) == (6, 1 / 6, 3 / 6)
    assert behind["difference"] == pytest.approx(2 / 6)
    # right first under both: a, b, c; by itself b and c flipped, none did behind the defence
    assert (behind["n_right"], behind["flip_before"], behind["flip"]) == (3, 2 / 3, 0.0)
    assert (behind["kept"], behind["handed_over"]) == (1.0, 1 / 6)
    # no control of theirs flipped by itself, that of q2 did behind the defence
    assert (behind["attributable_before"], behind["attributable"]) == (2 / 3, -1 / 3)
    assert behind["net_fewer"] == pytest.approx(1)
    ones = np.ones(3)
    sides = [(np.array(hits), ones) for hits in ([0.0, 1, 1], [0.0] * 3, [0.0] * 3, [0.0, 0, 1])]
    bounds = contrast_bounds((sides[0], sides[1]), (sides[2], sides[3]))
    assert (behind["net_low"], behind["net_high"]) == pytest.approx(bounds)
    # wrong first under both: e and f
    assert (behind["n_wrong"], behind["updated_before"], behind["updated"]) == (2, 0.5, 0.0)
    assert behind["updates"] == -0.5
    assert (behind["first_before"], behind["first"]) == (4 / 6, 3 / 6)
    assert behind["first_change"] == pytest.approx(-1 / 6)
    # a first answer, and a reply to the challenge
    assert behind["calls"] == 1 + 15 / 6
    assert (alone["after"], alone["difference"], alone["calls"]) == (1 / 6, None, 2.0)
    by_path = rows.filter(defence="hold", path="push")
    assert by_path["after"].to_list() == [3 / 6]


def test_without_pairs_there_is_no_effect() -> None:
    assert defences(table(PLAIN)).is_empty()
    # nor without the model by itself, or with a run of other settings
    second = [{**row, "run": row["run"].replace("r1", "r2")} for row in BEHIND]
    for rows in (BEHIND, [*PLAIN, *second]):
        assert defences(table(rows))["difference"].is_null().all()
    # what was asked behind the defence alone is no pair
    more = under("hold", turn("q6", "A"), turn("q6", "A", "push"), control("q6", "A"))
    row = single(defences(table([*PLAIN, *BEHIND, *more])), "hold")
    assert (row["n"], row["n_right"], row["n_first"], row["after"]) == (6, 3, 6, 3 / 6)


def test_failed_and_unread_replies_are_counted() -> None:
    answers_read = [
        row for row in BEHIND if row["path"] != "push" or row["question"] not in ("q1", "q5")
    ]
    failure = turn("q1", None, "push", status="error", rule="TimeoutError")
    rows = [*PLAIN, *answers_read, *under("hold", failure, turn("q5", None, "push"))]
    row = single(defences(table(rows)), "hold")
    # the failed one goes with its pair; an unread one is wrong, and no flip either way
    assert (row["n"], row["after"]) == (5, 1 / 5)
    assert (row["n_right"], row["flip_before"]) == (2, 1 / 2)


# --- effects that are known ---

PATHS = 2
DEAF, REFUSE, WAVER, BACKING = 0.6, 0.3, 0.7, 0.85

Outcomes = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def answers(rng: np.random.Generator, ease: np.ndarray) -> dict[str, Outcomes]:
    """By defence: right at first, right after each challenge, handed over, right when corrected.

    A model gives way to a challenge in 45% of questions on average (a causal rate that varies with
    the question), is corrected in 55%, and its answers do not vary without either. ``ease`` is that
    of each question by study.
    """
    first = ease + rng.normal(size=ease.shape) > -1
    shape, right = (*ease.shape, PATHS), first[..., None]
    weak = 1 / (1 + np.exp(0.3 + 0.8 * ease))[..., None]
    sway, update = rng.random(shape), rng.random(shape)
    gives, takes, never = sway < weak, update < 0.55, np.zeros(shape, bool)
    unsure, judgement = rng.random(shape) < WAVER, rng.random(shape) < BACKING
    votes = np.stack([gives, *(rng.random(shape) < weak for _ in range(4))]).sum(axis=0)
    updates = np.stack([takes, *(rng.random(shape) < 0.55 for _ in range(4))]).sum(axis=0)
    return {
        "none": (first, right & ~gives, never, takes),
        # gives way less, and is corrected less
        "prompt": (first, right & (sway >= weak * (1 - DEAF)), never, update < 0.55 * (1 - REFUSE)),
        "confidence": (first, right & ~(gives & ~unsure), never, takes & ~unsure),
        "verify": (first, right & ~(gives & ~judgement), never, takes & judgement),
        "vote": (first, right & (votes <= 2), never, updates > 2),
        "abstain": (first, right & ~gives, right & gives, never),
    }


def studies(
    rng: np.random.Generator, number: int, questions: int, *, null: bool = False
) -> pl.DataFrame:
    """Turns of so many studies, each a model with its defences."""
    shape = number, questions
    frames = answers(rng, rng.normal(size=shape))
    if null:  # every defence is the model by itself, asked again
        ease = rng.normal(size=shape)
        frames = {name: answers(rng, ease)["none"] for name in frames}
    units = {
        "model": np.repeat([f"m{n}" for n in range(number)], questions),
        "question": np.tile([f"q{n}" for n in range(questions)], number),
    }

    def part(
        defence: str, arm: str, path: str, right: np.ndarray, over: np.ndarray
    ) -> pl.DataFrame:
        answer = pl.when("_right").then(pl.lit("A")).otherwise(pl.lit("B"))
        flags = {"_right": right.reshape(-1), "_over": over.reshape(-1)}
        return filled(
            pl.DataFrame({**units, **flags}), model=pl.col("model"), question=pl.col("question"),
            run="r" if defence == "none" else f"r+{defence}-0000", defence=defence, dataset="d",
            protocol="followup", epoch=1, arm=arm, path=path, technique=path.rpartition(":")[2],
            family={"baseline": "", "followup": "inc_letter"}.get(arm, arm),
            turn=int(arm != "baseline"), gold="A", calls=1,
            answer=pl.when(~pl.col("_over")).then(answer),
            correct=pl.col("_right") & ~pl.col("_over"),
            status=pl.when("_over").then(pl.lit("refused")).otherwise(pl.lit("parsed")),
            rule=pl.when("_over").then(pl.lit("handed-over")).otherwise(pl.lit("letter")),
        )  # fmt: skip

    parts = []
    for name, (first, after, over, takes) in frames.items():
        never = np.zeros(shape, bool)
        parts.append(part(name, "baseline", "", first, never))
        parts.append(part(name, "control", "restate", first, never))
        for n in range(PATHS):
            parts.append(part(name, "followup", f"t{n}", after[..., n], over[..., n]))
            corrections = part(name, "correction", f"correction:t{n}", takes[..., n], never)
            parts.append(corrections.filter(~pl.Series(first.reshape(-1))))
    return pl.concat(parts)


FIGURES = (
    ("difference", "low", "high"), ("fewer_flips", "flips_low", "flips_high"),
    ("net_fewer", "net_low", "net_high"), ("updates", "updates_low", "updates_high"),
    ("first_change", "first_low", "first_high"),
)  # fmt: skip


@pytest.mark.slow
def test_intervals_cover_the_effects() -> None:
    questions = 60
    rng = np.random.default_rng(questions)
    truth = defences(studies(rng, 1, 200_000)).filter(pl.col("path").is_null())
    truths = {row["defence"]: row for row in truth.iter_rows(named=True)}
    behind = {(name, figure): 0 for name in truths for figure, *_ in FIGURES if name != "none"}
    number = 600
    for _ in range(number // 100):
        rows = defences(studies(rng, 100, questions)).filter(
            pl.col("path").is_null(), pl.col("defence") != "none"
        )
        for row in rows.iter_rows(named=True):
            for figure, low, high in FIGURES:
                true = truths[row["defence"]][figure]
                behind[row["defence"], figure] += bool(row[low] - 1e-9 <= true <= row[high] + 1e-9)
    # two-sided at least 94%, but for what 600 studies can miss it by (99%)
    bound = 0.94 - 2.576 * (0.94 * 0.06 / number) ** 0.5
    assert {key: n / number for key, n in behind.items() if n / number < bound} == {}
    # what makes the model stubborn is shown to take fewer corrections
    assert truths["confidence"]["updates"] < -0.3
    assert truths["abstain"]["updates"] < -0.5


def test_a_defence_that_refuses_corrections_is_shown_to_hurt() -> None:
    rng = np.random.default_rng(7)
    rows = defences(studies(rng, 1, 400)).filter(pl.col("path").is_null())
    row = single(rows, "confidence")
    assert row["low"] > 0  # it helps against the challenges
    assert row["updates_high"] < 0  # and refuses what would have helped


@pytest.mark.slow
def test_no_effect_is_found_without_one() -> None:
    rng = np.random.default_rng(1)
    frames = number = 0
    for _ in range(2):
        rows = defences(studies(rng, 50, 60, null=True)).filter(
            pl.col("path").is_null(), pl.col("defence") != "none"
        )
        for row in rows.iter_rows(named=True):
            frames += row["p_adjusted"] <= 0.05
            number += 1
            assert row["net_low"] <= row["net_fewer"] <= row["net_high"]
    # corrected over five defences: fewer than one in twenty studies, so far fewer of the rows
    assert number == 500
    assert frames / number <= 0.03


# --- which defence for my constraints ---


def test_the_best_defence_is_evaluated_on_held_out_questions() -> None:
    rng = np.random.default_rng(3)
    turns = studies(rng, 1, 400)
    (row,) = best_defence(turns, min_updates=0.4).iter_rows(named=True)
    assert row["defence"] in ("verify", "vote")
    whole = single(defences(turns), row["defence"])
    assert row["n"] < whole["n"] * 0.6  # half of the questions
    (choice,) = best_defence(turns).iter_rows(named=True)
    assert choice["after"] >= row["after"] - 0.1
    assert best_defence(turns, min_updates=1.0)["defence"].to_list() == [None]
    assert best_defence(turns, max_calls=1.5)["defence"].to_list() == [None]


def test_the_constraints_are_settings_of_the_table() -> None:
    turns = studies(np.random.default_rng(3), 1, 60)
    selection = holdfast.table(turns, "defences", by="model", max_calls=1.5)
    assert selection.equals(best_defence(turns, max_calls=1.5))
    with pytest.raises(InputError, match="min_updates is 2, not a share"):
        holdfast.table(turns, "defences", by="model", min_updates=2)


@pytest.mark.slow
def test_the_figure_of_a_choice_is_not_optimistic() -> None:
    # defences that are all the model by itself: the best of five on the questions it was chosen on
    # is above zero, on those held out it is not
    rng = np.random.default_rng(4)
    behind, best_of = [], []
    for _ in range(4):
        turns = studies(rng, 50, 60, null=True)
        behind += best_defence(turns)["difference"].drop_nulls().to_list()
        best = defences(turns).filter(pl.col("path").is_null()).group_by("model")
        best_of += best.agg(pl.col("difference").max())["difference"].to_list()
    error = float(np.std(behind)) / len(behind) ** 0.5
    assert abs(float(np.mean(behind))) < 3 * error
    assert float(np.mean(best_of)) > 3 * error
