"""Logs of Inspect tasks that are not holdfast's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalSample, read_eval_log, read_eval_log_samples

from holdfast.errors import InputError
from holdfast.results import is_ours

_UNREAD = {"events", "attachments", "timelines", "events_data", "store"}


def read_log(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The samples of an Inspect log in their order."""
    try:
        header = read_eval_log(str(path), header_only=True)
    except Exception as error:  # the library raises many kinds for one meaning: no log
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(
            f"cannot be read as an Inspect log ({reason})", str(path), remedy="Check the file"
        ) from error
    if is_ours(header):
        raise InputError(
            "is a log of holdfast's own",
            str(path),
            remedy="Give it to 'holdfast table' as it is; nothing is to be imported",
        )
    spec = header.eval
    shared = {
        "model": spec.model,
        "task": spec.task,
        "dataset": spec.dataset.name or spec.task,
    }
    samples = read_eval_log_samples(str(path), all_samples_required=False, exclude_fields=_UNREAD)
    for number, sample in enumerate(samples, start=1):
        yield number, {**shared, **_fields(sample)}


def _fields(sample: EvalSample) -> dict[str, Any]:
    target = sample.target
    return {
        "id": str(sample.id),
        "epoch": sample.epoch,
        "input": sample.input if isinstance(sample.input, str) else None,
        "choices": sample.choices,
        "target": target if isinstance(target, str) else ">".join(target),
        "messages": [message.model_dump(exclude_none=True) for message in sample.messages],
        "scores": {
            name: {"value": score.value, "answer": score.answer}
            for name, score in (sample.scores or {}).items()
        },
        "metadata": sample.metadata,
    }
