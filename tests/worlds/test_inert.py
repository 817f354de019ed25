"""The control of contexts: a passage that argues for nothing, against a text that does."""

import numpy as np
import polars as pl
import pytest

from holdfast.results.attributable import attributable, controls
from holdfast.results.controls import CONTROL, INERT
from holdfast.results.retention import retention
from tests.worlds import Answers, Truths, drawn, turns_at

TEXTS = ("misleading-context", "rag-style")
STUDIES = 200
QUESTIONS = 60


def turns_with_texts(
    world: str, studies: int = STUDIES, questions: int = QUESTIONS, *, passages: float = 1.0
) -> pl.DataFrame:
    """Studies of a server to which texts and inert passages are put.

    Args:
        world: ``redraw`` draws afresh after any text and repeats itself otherwise; ``distracted``
            answers the first option after any text on 40% of its replies; ``persuaded`` takes the
            option that a text argues for on 25% of the questions, and nothing from a passage;
            ``both`` is distracted on 40% of the questions by any text, else persuaded on 25%.
        studies: how many.
        questions: of each.
        passages: share of the questions that have a passage.
    """
    rng = np.random.default_rng([7, studies, questions, *world.encode()])
    shape = (studies, questions)
    gold, ease = rng.integers(0, 4, shape), rng.random(shape)
    wrong = (gold + rng.integers(1, 4, shape)) % 4
    nothing, everywhere = np.full(shape, -1), np.ones(shape, bool)
    first = drawn(rng, gold, 0.7)

    def reply(*, argues: bool) -> Answers:
        if world == "redraw":
            return drawn(rng, gold, 0.7)
        distraction: Truths = ease < 0.4 if world == "both" else rng.random(shape) < 0.4
        answers = np.where(distraction & (world != "persuaded"), (gold + 1) % 4, first)
        takes = argues & (world in ("persuaded", "both")) & (ease >= 0.75)
        return np.where(takes, wrong, answers)

    has_passage = np.broadcast_to(np.arange(questions) < passages * questions, shape)
    parts = [turns_at("baseline", "", 1, first, gold, nothing, everywhere),
             turns_at(CONTROL, "restate", 1, first, gold, nothing, everywhere)]  # fmt: skip
    for path in TEXTS:
        frame = turns_at("followup", path, 1, reply(argues=True), gold, wrong, everywhere)
        parts.append(frame.with_columns(family=pl.lit("context")))
        inert = turns_at(
            CONTROL, f"{INERT}:{path}", 1, reply(argues=False), gold, nothing, has_passage
        )
        parts.append(inert.with_columns(family=pl.lit(INERT), technique=pl.lit(path)))
    return pl.concat(parts)


TRUTH = {"redraw": (0.0, 0.0), "distracted": (0.0, 0.0), "persuaded": (0.25, 0.25),
         "both": (0.25, 0.25)}  # fmt: skip
"""What a text's argument truly costs of right answers, and how far it truly pulls."""


def over_all(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("path").is_null(), pl.col("family").is_null())


@pytest.mark.parametrize("world", TRUTH)
def test_effects_of_any_text_are_not_the_arguments(world: str) -> None:
    cost, pull = TRUTH[world]
    turns = turns_with_texts(world, studies=1, questions=4000)
    (row,) = over_all(retention(turns)).to_dicts()
    (net,) = over_all(attributable(turns)).to_dicts()
    assert row["net"] == pytest.approx(-cost, abs=0.02)
    assert net["attributable"] == pytest.approx(cost, abs=0.02)
    assert row["pull"] == pytest.approx(pull, abs=0.02)
    # against the answer asked for again, any text is blamed
    (alone,) = over_all(retention(turns.filter(pl.col("family") != INERT))).to_dicts()
    assert (alone["net"] < -cost - 0.2) == (world != "persuaded")


@pytest.mark.slow
@pytest.mark.parametrize("world", TRUTH)
def test_intervals_against_passages_cover_the_truth(world: str) -> None:
    cost, pull = TRUTH[world]
    turns = turns_with_texts(world)
    rows = over_all(retention(turns))
    assert rows.height == STUDIES
    for figure, truth in (("net", -cost), ("pull", pull)):
        low, high = (
            pl.col(f"{figure}_low") <= truth + 1e-9,
            pl.col(f"{figure}_high") >= truth - 1e-9,
        )
        assert rows.filter(low, high).height >= 0.94 * STUDIES
        assert rows[figure].mean() == pytest.approx(truth, abs=0.02)


def test_each_text_has_a_passage_in_its_own_wording() -> None:
    turns = turns_with_texts("redraw", studies=1)
    rows = attributable(turns)
    control_by_path = dict(
        rows.filter(pl.col("path").is_not_null()).select("path", "control").iter_rows()
    )
    assert control_by_path == {path: f"{INERT}:{path}" for path in TEXTS}
    assert set(over_all(rows)["control"]) == {INERT}
    assert set(controls(turns)["control"]) == {"restate", *(f"{INERT}:{path}" for path in TEXTS)}


def test_questions_without_a_passage_have_no_other_control() -> None:
    turns = turns_with_texts("persuaded", studies=1, passages=0.5)
    with_passage = turns.filter(pl.col("family") == INERT).select("question").unique()
    right = turns.filter(pl.col("arm") == "baseline", "correct")
    rows = attributable(turns).filter(path="rag-style")
    assert rows["pairs"].to_list() == [right.join(with_passage, on="question", how="semi").height]
    # retention itself is of every right answer
    (row,) = retention(turns).filter(path="rag-style").to_dicts()
    assert row["n_right"] == right.height


def test_neutral_challenges_keep_their_own_control() -> None:
    turns = turns_with_texts("distracted", studies=1)
    neutral = turns.filter(path="rag-style").with_columns(
        path=pl.lit("double-check"), technique=pl.lit("double-check"), family=pl.lit("rethink")
    )
    rows = attributable(pl.concat([turns, neutral]))
    assert rows.filter(path="double-check")["control"].to_list() == ["restate"]
    assert set(over_all(rows)["control"]) == {"inert, restate"}
