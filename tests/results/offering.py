"""Stick-or-Switch turns written down in a test, and whole studies drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.results.frames import Row

LETTERS = "ABCDE"

STUDY: Row = {
    "run": "r1", "protocol": "stick-or-switch", "protocol_version": 1, "model": "m1",
    "dataset": "d1", "epoch": 1, "technique": "offer", "family": "stick-or-switch",
    "axis": "indirect", "depth": "deep", "rule": "final-answer", "shared": False,
}  # fmt: skip


def _row(question: str, arm: str, turn: int, answer: str, right: str, **columns: Any) -> Row:
    """One row; ``N`` abstains, ``?`` could not be read, ``!`` failed."""
    reading = {"N": "NA", "?": None, "!": None}.get(answer, answer)
    return STUDY | {
        "question": question,
        "arm": arm,
        "turn": turn,
        "target": right,
        "gold": right,
        "answer": reading,
        "status": {"?": "none", "!": "error"}.get(answer, "parsed"),
        "correct": reading == right,
        **columns,
    }


def single(question: str, answer: str, arm: str = "single-shot", options: str = "ABCD") -> Row:
    """A single shot; the right answer is A."""
    right = "A" if arm == "single-shot" else "NA"
    options_shown = ",".join(options if arm == "single-shot" else [*options[1:], "NA"])
    return _row(question, arm, 0, answer, right, path="", shown=options_shown)


def held(
    question: str, answers: str, arm: str = "positive", order: str = "BCD", **columns: Any
) -> list[Row]:
    """One conversation that is to hold A, or an abstention; a letter of ``answers`` for a turn."""
    target = "A" if arm == "positive" else "NA"
    return [
        _row(
            question, arm, turn, answer, target, path=">".join(["offer"] * (turn + 1)),
            suggested=order[turn], shown=",".join([target, *order[: turn + 1]]), **columns,
        )
        for turn, answer in enumerate(answers)
    ]  # fmt: skip


def flexible(question: str, answer: str, order: str = "BCD", **columns: Any) -> Row:
    """The right answer A offered to an abstention."""
    row = _row(
        question, "flexible-correct", 1, answer, "A", path="offer>offer", suggested="A",
        shown=f"NA,{order[0]},A", **columns,
    )  # fmt: skip
    return row | {"target": "NA"}


def drawn(seed: int, models: Sequence[str] = ("m1", "m2"), epochs: int = 2) -> list[Row]:
    """Studies as the protocol would leave them, with everything that can go wrong, shuffled."""
    rng = np.random.default_rng(seed)
    rows = [
        row | {"model": model, "run": f"run of {model} on {dataset}", "dataset": dataset}
        for model in models
        for dataset in ("d1", "d2")
        for n in range(int(rng.integers(2, 9)))
        for row in _question(rng, f"q{n}", int(rng.integers(2, 6)), epochs)
    ]
    return [rows[int(place)] for place in rng.permutation(len(rows))]


def _question(rng: np.random.Generator, question: str, options: int, epochs: int) -> list[Row]:
    abstains, rows = rng.random() < 0.8, []
    columns = list(LETTERS[1:options])
    for epoch in range(1, epochs + 1):
        order = "".join(rng.permutation(columns))
        arms = ["positive", "negative"] if abstains else ["positive"]
        parts = [single(question, _answer(rng, "A", columns), options=LETTERS[:options])]
        if abstains:
            alone = _answer(rng, "N", columns)
            parts.append(single(question, alone, "single-shot-abstain", LETTERS[:options]))
        for arm in arms:
            target, answers = "A" if arm == "positive" else "N", ""
            for turn in range(len(order)):
                answers += _answer(rng, target, list(order[: turn + 1]))
                if answers[-1] != target:
                    break
            parts += held(question, answers, arm, order)
            if arm == "negative" and answers[0] == "N":
                parts.append(flexible(question, _answer(rng, "N", ["A", order[0]]), order))
        rows += [row | {"epoch": epoch, **_believed(rng)} for row in parts]
    return rows


def _answer(rng: np.random.Generator, target: str, columns: list[str]) -> str:
    return str(rng.choice([*[target] * 6, *columns, *columns, "?", "!"]))


def _believed(rng: np.random.Generator) -> Row:
    if rng.random() < 0.2:
        return {}
    gold, p_offer = rng.dirichlet([2, 2, 1])[:2]
    return {"p_gold": gold, "p_suggested": p_offer, "p_answer": float(max(gold, p_offer))}
