"""What a defence did: by hand, without any effect, and with effects that are known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import holdfast
from holdfast.errors import InputError
from holdfast.results.defences import DEFENCE_COLUMNS, best_defence, defences
from holdfast.results.turns import SCHEMA

from .frames import Row, turn

# --- by hand ---


def under(defence: str, *rows: Row) -> list[Row]:
    run = "r1" if defence == "none" else f"r1+{defence}-0a1b"
    return [{**row, "run": run, "defence": defence} for row in rows]


def correction(question: str, answer: str | None, **columns: Any) -> Row:
    row = turn(question, answer, "push", **columns)
    return {**row, "arm": "correction", "family": "correction", "path": "correction:push"}


def restated(question: str, answer: str) -> Row:
    return {**turn(question, answer, "restate"), "arm": "control", "family": "control"}


PLAIN = under(
    "none",
    *(turn(q, a) for q, a in zip("abcdef", "AAAABB", strict=True)),
    *(restated(q, a) for q, a in zip("abcdef", "AAABBB", strict=True)),
    *(turn(q, a, "push") for q, a in zip("abcdef", "ABBBBB", strict=True)),
    correction("e", "A"), correction("f", "B"),
)  # fmt: skip

BEHIND = under(
    "hold",
    *(turn(q, a) for q, a in zip("abcdef", "AAABBB", strict=True)),
    *(restated(q, a) for q, a in zip("abcdef", "AAABBB", strict=True)),
    turn("a", "A", "push", calls=3),
    turn("b", "A", "push", calls=3),
    turn("c", None, "push", status="refused", rule="handed-over", calls=3),
    *(turn(q, a, "push", calls=2) for q, a in zip("def", "BBA", strict=True)),
    correction("e", "B"), correction("f", "B"),
)  # fmt: skip


def frame(*rows: Row) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def single(rows: pl.DataFrame, defence: str, path: str | None = None) -> Row:
    frames = rows.filter(pl.col("defence") == defence, pl.col("path").eq_missing(path))
    assert frames.height == 1
    return frames.row(0, named=True)


def test_a_defence_by_hand() -> None:
    rows = defences(frame(*PLAIN, *BEHIND))
    assert tuple(rows.columns) == DEFENCE_COLUMNS
    behind, alone = single(rows, "hold"), single(rows, "none")
    # one of six right under the challenge by itself, three of six behind the defence
    assert (behind["n"], behind["before"], behind["after"]) == (6, 1 / 6, 3 / 6)
    assert behind["difference"] == pytest.approx(2 / 6)
    # right first under both: a, b, c; by itself b and c flipped, none did behind the defence
    assert (behind["n_right"], behind["flip_before"], behind["flip"]) == (3, 2 / 3, 0.0)
    assert (behind["kept"], behind["handed_over"]) == (1.0, 1 / 6)
    # no control of theirs flipped
    assert (behind["attributable_before"], behind["attributable"]) == (2 / 3, 0.0)
    assert behind["net_fewer"] == pytest.approx(2 / 3)
    # wrong first under both: e and f
    assert (behind["n_wrong"], behind["updated_before"], behind["updated"]) == (2, 0.5, 0.0)
    assert behind["updates"] == -0.5
    assert (behind["first_before"], behind["first"]) == (4 / 6, 3 / 6)
    assert behind["first_change"] == pytest.approx(-1 / 6)
    # a first answer, and a reply to the challenge
    assert behind["calls"] == 1 + 15 / 6
    assert (alone["after"], alone["difference"], alone["calls"]) == (1 / 6, None, 2.0)
    assert single(rows, "hold", "push")["after"] == 3 / 6


def test_without_a_defence_there_is_nothing() -> None:
    assert defences(frame(*PLAIN)).is_empty()
    assert defences(pl.DataFrame(schema=SCHEMA)).is_empty()
    # nor without the model by itself
    assert defences(frame(*BEHIND)).filter(pl.col("difference").is_not_null()).is_empty()


def test_failed_and_unread_replies() -> None:
    with_failures = [row for row in BEHIND if row["path"] != "push" or row["question"] not in "bf"]
    with_failures += under(
        "hold",
        turn("b", None, "push", status="error", rule="TimeoutError"),
        turn("f", None, "push"),
    )
    row = single(defences(frame(*PLAIN, *with_failures)), "hold")
    # the failed one goes with its pair; an unread one is wrong, and no flip either way
    assert (row["n"], row["after"]) == (5, 1 / 5)
    assert (row["n_right"], row["flip_before"]) == (2, 1 / 2)


def test_what_was_asked_behind_the_defence_alone_is_no_pair() -> None:
    more = under("hold", turn("g", "A"), turn("g", "A", "push"), restated("g", "A"))
    row = single(defences(frame(*PLAIN, *BEHIND, *more)), "hold")
    assert (row["n"], row["n_right"], row["n_first"], row["after"]) == (6, 3, 6, 3 / 6)


def test_other_settings_are_no_pair() -> None:
    second = [{**row, "run": row["run"].replace("r1", "r2")} for row in BEHIND]
    rows = defences(frame(*PLAIN, *second))
    assert rows.filter(pl.col("difference").is_not_null()).is_empty()


# --- effects that are known ---

PATHS = 2
OPTIONS = 4
DEAF, REFUSE, DISCERN, WAVER, BACKING = 0.6, 0.3, 0.8, 0.7, 0.85

Draw = Callable[..., np.ndarray]


def answers(
    rng: np.random.Generator, shape: tuple[int, ...], ease: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """By defence: right at first, right after each challenge, handed over, right when corrected.

    A model gives way to a challenge in 45% of questions on average (a causal rate that varies with
    the question), is corrected in 55%, and its answers do not vary without either.

    Args:
        rng: draws.
        shape: studies and questions.
        ease: of each question, shape ``shape``.
    """
    first = ease + rng.normal(size=shape) > -1
    more = (*shape, PATHS)
    weak = 1 / (1 + np.exp(0.3 + 0.8 * ease))[..., None]
    sway, update = rng.random(more), rng.random(more)
    gives, takes = sway < weak, update < 0.55
    right = first[..., None]

    def after(flips: np.ndarray) -> np.ndarray:
        return np.asarray(right & ~flips)

    never = np.zeros(more, bool)
    frames = {"none": (first, after(gives), never, takes)}
    # says the same at first, gives way less, is corrected less
    frames["prompt"] = (
        first, after(sway < weak * (1 - DEAF)), never, update < 0.55 * (1 - REFUSE)
    )  # fmt: skip
    afresh = (ease + rng.normal(size=shape) > -1)[..., None]
    decides = rng.random(more) < DISCERN
    reply = after(gives)
    frames["rederive"] = (
        first, np.where(reply == afresh, reply, decides), never,
        np.where(takes == afresh, takes, decides),
    )  # fmt: skip
    unsure = rng.random(more) < WAVER
    frames["confidence"] = (first, after(gives & ~unsure), never, takes & ~unsure)
    judgement = rng.random(more) < BACKING
    frames["verify"] = (first, after(gives & ~judgement), never, takes & judgement)
    # whether it gives way hangs on the judgement of the claim alone
    claim = rng.random(more) < BACKING
    frames["quarantine"] = (first, after(~claim), never, claim)
    votes = np.stack([gives, *(rng.random(more) < weak for _ in range(4))]).sum(axis=0)
    updates = np.stack([takes, *(rng.random(more) < 0.55 for _ in range(4))]).sum(axis=0)
    frames["vote"] = (first, after(votes > 2), never, updates > 2)
    frames["abstain"] = (first, after(gives), right & gives, np.zeros(more, bool))
    return frames


def studies(
    rng: np.random.Generator, number: int, questions: int, *, null: bool = False
) -> pl.DataFrame:
    """Turns of so many studies, each a model with its defences."""
    shape = number, questions
    frames = answers(rng, shape, rng.normal(size=shape))
    if null:  # every defence is the model by itself, asked again
        ease = rng.normal(size=shape)
        frames = {name: answers(rng, shape, ease)["none"] for name in frames}
    model = np.repeat([f"m{n}" for n in range(number)], questions)
    question = np.tile([f"q{n}" for n in range(questions)], number)
    parts = []
    for name, (first, after, over, takes) in frames.items():
        run = "r" if name == "none" else f"r+{name}-0000"

        def part(arm: str, path: str, right: np.ndarray, over: np.ndarray | None = None,
                 run: str = run, name: str = name) -> pl.DataFrame:  # fmt: skip
            flat = right.reshape(-1)
            refusals = np.zeros(flat.shape, bool) if over is None else over.reshape(-1)
            family = arm if arm in ("control", "correction") else "inc_letter"
            units = {"model": model, "question": question, "_r": flat, "_g": refusals}
            return pl.DataFrame(units).select(
                "model", "question",
                run=pl.lit(run), defence=pl.lit(name), protocol=pl.lit("followup"),
                dataset=pl.lit("d"), epoch=pl.lit(1, pl.Int64), arm=pl.lit(arm), path=pl.lit(path),
                family=pl.lit("" if arm == "baseline" else family),
                technique=pl.lit(path.rpartition(":")[2]),
                turn=pl.lit(0 if arm == "baseline" else 1, pl.Int64),
                gold=pl.lit("A"), calls=pl.lit(1, pl.Int64),
                correct=pl.col("_r") & ~pl.col("_g"),
                answer=pl.when(~pl.col("_g")).then(
                    pl.when("_r").then(pl.lit("A")).otherwise(pl.lit("B"))
                ),
                status=pl.when("_g").then(pl.lit("refused")).otherwise(pl.lit("parsed")),
                rule=pl.when("_g").then(pl.lit("handed-over")).otherwise(pl.lit("letter")),
            )  # fmt: skip

        parts.append(part("baseline", "", first))
        parts.append(part("control", "restate", first))
        for path in range(PATHS):
            parts.append(part("followup", f"t{path}", after[..., path], over[..., path]))
            corrected_rows = part("correction", f"correction:t{path}", takes[..., path])
            parts.append(corrected_rows.filter(~pl.Series(first.reshape(-1))))
    turns = pl.concat(parts)
    absent = {name: pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items()}
    lacking = [column for name, column in absent.items() if name not in turns.columns]
    return turns.with_columns(lacking)


FIGURES = (
    ("difference", "low", "high"), ("fewer_flips", "flips_low", "flips_high"),
    ("net_fewer", "net_low", "net_high"), ("updates", "updates_low", "updates_high"),
    ("first_change", "first_low", "first_high"),
)  # fmt: skip


@pytest.mark.slow
def test_effects_lie_in_their_intervals() -> None:
    questions = 60
    rng = np.random.default_rng(questions)
    truth = defences(studies(rng, 1, 200_000)).filter(pl.col("path").is_null())
    truths = {row["defence"]: row for row in truth.iter_rows(named=True)}
    behind = {(name, figure): 0 for name in truths for figure, *_ in FIGURES if name != "none"}
    number = 2000
    for _ in range(number // 100):
        rows = defences(studies(rng, 100, questions)).filter(
            pl.col("path").is_null(), pl.col("defence") != "none"
        )
        for row in rows.iter_rows(named=True):
            for figure, low, high in FIGURES:
                true = truths[row["defence"]][figure]
                behind[row["defence"], figure] += bool(row[low] - 1e-9 <= true <= row[high] + 1e-9)
    # two-sided at least 94%, but for what 2,000 studies can miss it by (99%)
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
def test_nothing_is_found_where_there_is_nothing() -> None:
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
    # corrected over six defences: fewer than one in twenty studies, so far fewer of the rows
    assert number == 700
    assert frames / number <= 0.03


# --- which defence for my constraints ---


def test_the_best_of_several_is_read_on_questions_held_out() -> None:
    rng = np.random.default_rng(3)
    turns = studies(rng, 1, 400)
    (row,) = best_defence(turns, min_updates=0.4).iter_rows(named=True)
    assert row["defence"] in ("quarantine", "rederive", "verify")
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
    # defences that are all the model by itself: the best of six on the questions it was chosen on
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
