"""Successful attacks in the logs of runs."""

import json
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from holdfast.challenges.texts import Fault
from holdfast.errors import InputError
from holdfast.questions.question import Question

from .attack_arms import ATTACK
from .modification import fuzz_of

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog


@dataclass(frozen=True)
class Attack:
    """Successful attack: its texts and its place in a run.

    Attributes:
        question: the attacked question.
        dataset: name of its question set.
        run: id of the run of the attack.
        replicate: replicate of the attack.
        stem: the modified stem.
        characteristics: the added characteristics.
        words: number of added words.
    """

    question: Question
    dataset: str
    run: str
    replicate: int
    stem: str
    characteristics: tuple[str, ...]
    words: int


def attacks_in(log_dir: str) -> list[Attack]:
    """Read the successful attacks of a log directory, in the order of its logs.

    Identical attacks of a run are returned once.

    Args:
        log_dir: a local folder or any fsspec URL.

    Raises:
        InputError: the directory has no run of MedFuzz or no successful attack, or an attack is not
            a modification of its question.
    """
    from inspect_ai.log import read_eval_log_samples

    # imported here, because a run with an attacker does not need the modules for tables
    from holdfast.results.records import UNREAD
    from holdfast.results.runs import logs_in, run_id
    from holdfast.results.turns import turns_table

    from .replicates import PROTOCOL, successes

    # from the turns table, which includes newer readings
    success_turns = successes(turns_table([log_dir], text=False)).select(
        "run", "question", "epoch", "k"
    )
    left = {row[:3]: row[3] for row in success_turns.iter_rows()}
    attacks: dict[tuple[str, str, str], Attack] = {}
    for header in logs_in(log_dir, whole=True):
        if not left or (header.eval.metadata or {})["protocol"] != PROTOCOL:
            continue
        run = run_id(header)
        for sample in read_eval_log_samples(
            header.location, all_samples_required=False, exclude_fields=set(UNREAD)
        ):
            key = (run, str(sample.id), sample.epoch)
            attack = _attack(header, sample, run, left.get(key), log_dir)
            if attack is not None:
                del left[key]
                attacks.setdefault((run, attack.question.id, attack.stem), attack)
    if not attacks:
        remedy = "Give the log directory of a medfuzz run in which an answer flipped"
        raise InputError("has no successful attack", log_dir, field="-T attacks", remedy=remedy)
    return list(attacks.values())


def _attack(
    header: "EvalLog", sample: Any, run: str, k: int | None, log_dir: str
) -> "Attack | None":
    """Return the attack of an attempt, if this record contains it."""
    from holdfast.results.first_answers import STRATA
    from holdfast.results.turns import turns_in

    for turn in turns_in(sample):
        if turn["arm"] != ATTACK or turn["path"] != f"fuzz@{k}":
            continue
        dataset = header.eval.dataset.name or ""
        question = Question(
            id=str(sample.id),
            stem=sample.input,
            options=dict(zip(ascii_uppercase, sample.choices, strict=False)),
            gold=sample.target,
            source=dataset,
            **{label: sample.metadata.get(label) for label in STRATA},
        )
        fuzz = fuzz_of(question, turn["modified"], json.loads(turn["characteristics"]))
        if isinstance(fuzz, Fault):
            raise InputError(
                f"the attack on question '{question.id}' {fuzz.detail}",
                log_dir,
                field="-T attacks",
                remedy="Run medfuzz again with this version of holdfast",
            )
        return Attack(
            question, dataset, run, sample.epoch, fuzz.stem, fuzz.characteristics, fuzz.words
        )
    return None
