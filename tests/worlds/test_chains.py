"""What a chain of challenges is expected to keep, where the truth is known."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from holdfast.protocols.followup.compounding import compounding
from tests.worlds import LETTER, Answers, drawn, turns_at

Ease = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

SERVERS: dict[str, tuple[Callable[[Ease], Ease], float, float, bool]] = {
    # chance of a right answer by the ease of the question; share of the questions that follow any
    # letter; chance to follow a letter on any question; whether restating repeats the last answer
    "steadfast": (np.ones_like, 0.0, 0.0, False),
    "noise": (lambda ease: np.full_like(ease, 0.7), 0.0, 0.0, False),
    "redraw": (lambda ease: np.full_like(ease, 0.7), 0.0, 0.0, True),
    "hetero": (lambda ease: np.where(ease < 0.5, 0.98, 0.42), 0.0, 0.0, False),
    "diffnoise": (lambda ease: 0.4 + ease / 2, 0.0, 0.0, False),
    "sugg": (np.ones_like, 0.3, 0.0, False),
    "each": (np.ones_like, 0.0, 0.2, False),
    "noisy-each": (lambda ease: np.full_like(ease, 0.8), 0.0, 0.2, False),
}


def studies(name: str, number: int, questions: int, parts: int, seed: int = 1) -> pl.DataFrame:
    """Turns of studies with one chain, its parts and its controls."""
    chance, share, rate, repeats = SERVERS[name]
    rng = np.random.default_rng([seed, number, questions, parts, *name.encode()])
    shape = (number, questions)
    gold, ease = rng.integers(0, 4, shape), rng.random(shape)
    wrong = (gold + 1) % 4
    nothing, everywhere = np.full(shape, -1), np.ones(shape, bool)
    follows = rng.random(shape) < share

    def answers(challenges: int) -> Answers:
        # a letter that is followed once is followed to the end
        follows_letter = rng.random((challenges, *shape)) < rate
        return np.where(follows | follows_letter.any(axis=0), wrong, drawn(rng, gold, chance(ease)))

    first = drawn(rng, gold, chance(ease))
    frames = [turns_at("baseline", "", 1, first, gold, nothing, everywhere)]
    for steps in range(parts + 1):
        again = first if repeats and steps else drawn(rng, gold, chance(ease))
        path = ">".join(["restate"] * steps) or "resample"
        frames.append(turns_at("control", path, 1, again, gold, nothing, everywhere))
    for path in LETTER[:parts]:
        frames.append(turns_at("followup", path, 1, answers(1), gold, wrong, everywhere))
    chain = ">".join(LETTER[:parts])
    frames.append(turns_at("compound", chain, 1, answers(parts), gold, wrong, everywhere))
    return pl.concat(frames)


def truth(name: str, parts: int) -> float:
    """The share of right first answers that a chain truly keeps."""
    chance, share, rate, _ = SERVERS[name]
    right = chance((np.arange(100_000) + 0.5) / 100_000)
    return float((right**2).mean() / right.mean() * (1 - share) * (1 - rate) ** parts)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("name", SERVERS)
def test_the_expectation_of_a_chain_is_what_it_keeps(name: str, parts: int) -> None:
    rows = compounding(studies(name, 200, 300, parts))
    # what repeated replies share is estimated from two moments, the less well the more there are
    near = {2: 0.01, 3: 0.03}[parts]
    assert rows["expected_kept"].mean() == pytest.approx(truth(name, parts), abs=near)
    assert rows["kept"].mean() == pytest.approx(truth(name, parts), abs=0.01)
    # no more than 5%, and what 200 studies leave to chance (99%)
    assert rows["sub_additive"].mean() <= 0.09  # type: ignore[operator]
    covered_rows = rows.select(
        (pl.col("expected_kept_low") - 1e-9 <= truth(name, parts))
        & (truth(name, parts) <= pl.col("expected_kept_high") + 1e-9)
    )
    assert covered_rows.to_series().mean() >= 0.9  # type: ignore[operator]


@pytest.mark.rest_slow
@pytest.mark.parametrize("questions", [10, 20, 60])
@pytest.mark.parametrize("name", SERVERS)
def test_a_chain_is_never_expected_to_keep_more_than_all(name: str, questions: int) -> None:
    rows = compounding(studies(name, 300, questions, 3)).drop_nulls("expected_kept")
    assert rows.height > 250
    bounded_rows = rows.drop_nulls("expected_kept_low")
    assert rows["expected_kept"].max() <= 1  # type: ignore[operator]
    assert bounded_rows.filter(
        ~pl.col("expected_kept").is_between("expected_kept_low", "expected_kept_high")
    ).is_empty()
    assert bounded_rows["expected_kept_high"].max() <= 1  # type: ignore[operator]
