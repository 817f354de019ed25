"""MedFuzz studies and permutation tests written down in a test, and whole ones drawn."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.results.frames import Row

STUDY: Row = {
    "run": "r1", "protocol": "medfuzz", "protocol_version": 1, "model": "m1", "dataset": "d1",
    "epoch": 1, "path": "", "turn": 0, "technique": "", "family": "", "axis": "", "depth": "",
    "target": "A", "gold": "A", "shared": False,
}  # fmt: skip

STATUS = {"?": "none", "R": "refused", "F": "refused", "!": "error"}
"""What is no answer: unread, refused, filtered, failed."""


def _row(arm: str, answer: str, **columns: Any) -> Row:
    reading = None if answer in STATUS else answer
    rule = {"F": "content-filter", "!": "RateLimitError"}.get(answer, "final-answer")
    return STUDY | {
        "arm": arm, "answer": reading, "status": STATUS.get(answer, "parsed"), "rule": rule,
        "correct": reading == "A", **columns,
    }  # fmt: skip


def tries(kinds: Sequence[str], path: str, arm: str = "attacker", **columns: Any) -> list[Row]:
    """Replies of the attacker; an empty kind is a valid one, ``!`` a call that failed."""
    rows = [_row(arm, "!" if kind == "!" else "?", path=path, **columns) for kind in kinds]
    for turn, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
        row["turn"] = turn
        if kind != "!":
            status = {"": "parsed", "refused": "refused"}.get(kind, "none")
            row |= {"status": status, "rule": kind or "valid"}
    return rows


def attack(question: str, answers: str, epoch: int = 1, **columns: Any) -> list[Row]:
    """One replicate: the first answer and a letter for each attempt. The right one is A.

    ``?`` could not be read, ``R`` is refused, ``F`` filtered, ``!`` failed; ``x`` is an attempt
    without a valid modification after four tries. ``others`` go to the answers.
    """
    at: Row = {"question": question, "epoch": epoch}
    rows = [_row("baseline", answers[0], **at)]
    for k, answer in enumerate(answers[1:], start=1):
        path = f"fuzz@{k}"
        if answer == "x":
            rows += tries(["dropped", "dropped", "prose", "refused"], path, **at)
        else:
            rows += tries([""], path, **at)
            rows.append(_row("attack", answer, path=path, **at, **columns))
    return rows


def control_rows(
    question: str, arm: str, answers: str, epoch: int = 1, **columns: Any
) -> list[Row]:
    """What was put beside the attacks: a letter for each attempt, ``.`` where none was."""
    at = {"question": question, "epoch": epoch, **columns}
    rows = enumerate(answers, start=1)
    return [_row(arm, letter, path=f"{arm}@{k}", **at) for k, letter in rows if letter != "."]


def confirmation_rows(
    question: str, letters: str, plain: str, epoch: int = 1, **columns: Any
) -> list[Row]:
    """A success asked again, and its original: a letter for each reply."""
    at = {"question": question, "epoch": epoch, **columns}
    rows = [_row("again", a, path=f"fuzz@1>again@{n}", **at) for n, a in enumerate(letters, 1)]
    return rows + [_row("again-plain", a, path=f"again@{n}", **at) for n, a in enumerate(plain, 1)]


def inert(question: str, *texts: str, epoch: int = 1, **columns: Any) -> list[Row]:
    """Inert rewrites in place of a success: a first reply, and those to asking it again."""
    at = {"question": question, "epoch": epoch, **columns}
    return [
        _row(
            "again-inert", letter,
            path=f"fuzz@1>inert@{n}" + (f">again@{place}" if place else ""), **at,
        )
        for n, text in enumerate(texts, 1)
        for place, letter in enumerate(text)
    ]  # fmt: skip


def mentioned(
    question: str, lexical: str, judgement: str | None = None, **columns: Any
) -> list[Row]:
    """A successful attack; ``1`` for a characteristic mentioned, ``0`` for one that is not."""

    def listed(reading: str | None) -> str | None:
        return None if reading is None else json.dumps([mark == "1" for mark in reading])

    names = json.dumps([f"characteristic {n}" for n in range(len(lexical))])
    return attack(
        question, "AB", characteristics=names, mentioned=listed(lexical),
        mentioned_judged=listed(judgement), **columns,
    )  # fmt: skip


def probed(
    question: str,
    original: Sequence[float | str],
    attack_probes: Sequence[float | str],
    *controls: Sequence[float | str],
    epoch: int = 1,
    **columns: Any,
) -> list[Row]:
    """A permutation test: for each text its probes, a probability or a letter answered.

    A control without probes is one that the attacker gave no valid text for.
    """
    at = {"question": question, "epoch": epoch, **columns}
    rows = []
    for arm, step, probes in (
        ("original", "original", original),
        ("attacked", "attacked", attack_probes),
        *(("control", f"control@{n}", probes) for n, probes in enumerate(controls, start=1)),
    ):
        if arm == "control":
            rows += tries([""] if len(probes) else ["words"] * 4, step, "control-writer", **at)
        for s, probe in enumerate(probes, start=1):
            path = f"{step}>order@{s}"
            if isinstance(probe, str):
                rows.append(_row(arm, probe, path=path, **at))
            else:
                rows.append(_row(arm, "A" if probe > 0.5 else "B", path=path, p_gold=probe, **at))
    return rows


def drawn(seed: int, models: Sequence[str] = ("m1", "m2"), attempts: int = 3) -> list[Row]:
    """Studies and tests of them with everything that can go wrong, shuffled."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for model in models:
        believes = bool(rng.integers(2))
        for n in range(int(rng.integers(2, 8))):
            for epoch in (1, 2, 3):
                at = {"model": model, "run": f"run of {model}"}
                rows_of_unit = _replicate(rng, f"q{n}", epoch, attempts)
                if rows_of_unit[0]["answer"] == "A":
                    rows_of_unit += _controls(rng, f"q{n}", epoch, attempts)
                rows += [row | at for row in rows_of_unit]
                if any(row["arm"] == "attack" and row["answer"] == "B" for row in rows_of_unit):
                    replay = _replayed(rng, f"q{n}", epoch, at["run"])
                    rows += [row | {"model": model, "run": f"replay on {model}"} for row in replay]
                    rows += [row | at for row in _test(rng, f"q{n}", epoch, believes)]
    return [rows[int(place)] for place in rng.permutation(len(rows))]


def _replicate(rng: np.random.Generator, question: str, epoch: int, attempts: int) -> list[Row]:
    answers = str(rng.choice(list("AAAAAB?!")))
    while answers[-1] in "Ax" and len(answers) <= attempts and rng.random() < 0.97:
        answers += str(rng.choice(list("AAAAABBxRF?!")))
    count = int(rng.integers(1, 4))
    reading = [json.dumps([bool(mark) for mark in rng.integers(2, size=count)]) for _ in range(2)]
    notes = {
        "characteristics": json.dumps(["c"] * count), "mentioned": reading[0],
        "mentioned_judged": reading[1] if rng.random() < 0.7 else None,
        "review": int(rng.integers(1, 11)) if rng.random() < 0.7 else None,
        "words": int(rng.integers(5, 121)), "cost": float(rng.random()),
    }  # fmt: skip
    return attack(question, answers, epoch, **notes)


def _controls(rng: np.random.Generator, question: str, epoch: int, attempts: int) -> list[Row]:
    def letters(n: int) -> str:
        return "".join(rng.choice(list("AAAB?"), size=n))

    rows = [row for arm in ("inert", "reask") for row in
            control_rows(question, arm, letters(attempts), epoch)]  # fmt: skip
    return rows + confirmation_rows(question, letters(3), letters(3), epoch)


def _replayed(rng: np.random.Generator, question: str, epoch: int, run: str) -> list[Row]:
    at = {"question": question, "epoch": epoch}
    attack_probes, plain = rng.choice(list("AB?"), size=2)
    return [
        _row("unattacked", "A", **at),
        _row("replayed", str(attack_probes), path=f"replay@{run}", attacked_run=run, **at),
        _row("reask", str(plain), path="reask@1", **at),
        _row("inert", str(plain), path=f"inert@{run}", attacked_run=run, **at),
    ]


def _test(rng: np.random.Generator, question: str, epoch: int, believes: bool) -> list[Row]:
    def probes() -> list[float | str]:
        if believes:
            return [float(mark) for mark in rng.random(2).round(1)]
        return [str(mark) for mark in rng.choice(list("AAB?"), size=2)]

    controls = [probes() if rng.random() < 0.9 else [] for _ in range(int(rng.integers(0, 8)))]
    rows = probed(question, probes(), probes(), *controls, epoch=epoch)
    for row in rows:
        if row["arm"] != "control-writer" and rng.random() < 0.02:
            row |= {"status": "error", "answer": None, "correct": False, "p_gold": None}
    return rows
