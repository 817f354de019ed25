"""Successful attacks of MedFuzz, as the logs have them: what the permutation test starts from."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.results.records import UNREAD
from holdfast.results.runs import logs_in, run_id
from holdfast.results.turns import STRATA, turns_in, turns_table

from .arms import ATTACK
from .replicates import PROTOCOL as MEDFUZZ
from .replicates import successes

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog


@dataclass(frozen=True)
class Attacked:
    """One run of MedFuzz with its successful attacks.

    Attributes:
        header: of the run's newest log: the models, and how they were asked.
        rows: for each attack the question, the replicate and attempt, and what was modified.
    """

    header: EvalLog
    rows: list[dict[str, Any]] = field(default_factory=list)


def successful_attacks(log_dir: str, ids: Collection[str] = ()) -> list[Attacked]:
    """The successful attacks of every MedFuzz run in a log dir.

    Args:
        log_dir: a local folder or any fsspec URL.
        ids: question ids to keep; all of them, unless given.

    Returns:
        The runs that have some, questions and replicates in the order of the log.

    Raises:
        InputError: no run of MedFuzz is there, or none of its attacks succeeded.
    """
    from inspect_ai.log import read_eval_log_samples

    logs = logs_in(log_dir, whole=True)
    headers = [log for log in logs if (log.eval.metadata or {})["protocol"] == MEDFUZZ]
    if not headers:
        raise InputError(
            "has no medfuzz run", log_dir, remedy=f"Run it first, with --log-dir {log_dir}"
        )
    # by the table, where newer readings count that stand beside the logs
    won = successes(turns_table([log_dir], text=False)).select("run", "question", "epoch", "k")
    left = {row[:3]: row[3] for row in won.iter_rows() if not ids or row[1] in ids}
    runs: dict[str, Attacked] = {}
    for header in headers:
        run = run_id(header)
        for sample in read_eval_log_samples(
            header.location, all_samples_required=False, exclude_fields=set(UNREAD)
        ):
            key = (run, str(sample.id), sample.epoch)
            row = _attack(header, sample, left.get(key))
            if row is not None:
                del left[key]
                runs.setdefault(run, Attacked(header)).rows.append(row)
    if not runs:
        raise InputError(
            "has no successful attack" + (" on these questions" if ids else ""),
            log_dir,
            field="--id" if ids else None,
            remedy="There is nothing to test",
        )
    return list(runs.values())


def _attack(header: EvalLog, sample: Any, k: int | None) -> dict[str, Any] | None:
    """The attack of that attempt, where this record has it."""
    for turn in turns_in(sample):
        if turn["arm"] != ATTACK or turn["path"] != f"fuzz@{k}":
            continue
        return {
            "question": {
                "id": str(sample.id),
                "stem": sample.input,
                "options": dict(zip(ascii_uppercase, sample.choices, strict=False)),
                "gold": sample.target,
                "source": header.eval.dataset.name,
                **{label: sample.metadata.get(label) for label in STRATA},
            },
            "dataset": header.eval.dataset.name,
            "run": run_id(header),
            "replicate": sample.epoch,
            "attempt": k,
            "modified": turn["modified"],
            "characteristics": json.loads(turn["characteristics"]),
            "assumption": header.eval.task_args.get("assumption", "patient-characteristics"),
        }
    return None
