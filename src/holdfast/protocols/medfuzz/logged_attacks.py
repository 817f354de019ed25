"""Successful attacks as the logs of their runs hold them."""

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
    """A successful attack: texts, and where in its run it stands.

    Attributes:
        question: what was attacked.
        dataset: name of its question set.
        run: the run in which it succeeded.
        replicate: the replicate in which it succeeded.
        stem: the stem that turned the answer.
        characteristics: what was added.
        words: how many words that are.
    """

    question: Question
    dataset: str
    run: str
    replicate: int
    stem: str
    characteristics: tuple[str, ...]
    words: int


def attacks_in(log_dir: str) -> list[Attack]:
    """The successful attacks of a log dir, identical ones of a run once, in the order of its logs.

    Args:
        log_dir: a local folder or any fsspec URL.

    Raises:
        InputError: no run of MedFuzz is there, none of its attacks succeeded, or one of them is no
            modification of its question.
    """
    from inspect_ai.log import read_eval_log_samples

    # loaded here: a run that attacks a model has no use for what reads tables
    from holdfast.results.records import UNREAD
    from holdfast.results.runs import logs_in, run_id
    from holdfast.results.turns import turns_table

    from .replicates import PROTOCOL, successes

    # by the table, where newer readings count that stand beside the logs
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
        remedy = "Give the log dir of a run of medfuzz in which an answer flipped"
        raise InputError("has no successful attack", log_dir, field="-T attacks", remedy=remedy)
    return list(attacks.values())


def _attack(
    header: "EvalLog", sample: Any, run: str, k: int | None, log_dir: str
) -> "Attack | None":
    """The attack of that attempt, where this record has it."""
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
                remedy="Run medfuzz anew with this version of holdfast",
            )
        return Attack(
            question, dataset, run, sample.epoch, fuzz.stem, fuzz.characteristics, fuzz.words
        )
    return None
