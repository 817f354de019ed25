"""Readings of replies: their reader, their version, and newer readings stored next to the logs."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from holdfast.errors import InputError
from holdfast.files import putting
from holdfast.parquet import DAMAGE_NOTE, is_whole, reading_table, write_parquet

from .arms import in_arms

_Content = TypeVar("_Content")


def put_table(
    frame: pl.LazyFrame, log_dir: str, name: str, metadata: dict[str, str] | None = None
) -> str:
    """Write a table into a log directory and return its path."""
    with putting(log_dir, name) as file:
        write_parquet(frame, file, metadata)
    return f"{log_dir.rstrip('/')}/{name}" if "://" in log_dir else str(Path(log_dir) / name)


def newest_readings(
    log_dir: str, name: str, parse: Callable[[bytes], _Content], noun: str, remedy: str
) -> _Content | None:
    """Return the parsed content of a file in a log directory, None if the file does not exist.

    Raises:
        InputError: the file cannot be read.
    """
    import fsspec  # slow to import, and an existing table does not need it

    path = f"{log_dir.rstrip('/')}/{name}"
    file = fsspec.open(path)
    if not file.fs.exists(file.path):
        return None
    with reading_table(path, noun, remedy), file as opened_file:
        content = opened_file.read()
        if is_whole(content) is False:
            raise InputError(DAMAGE_NOTE, path, remedy=remedy)
        return parse(content)


READINGS = pl.Schema({
    "reading_version": pl.Int64(),
    **dict.fromkeys(("answer_rules", "answer_reader", "reader_status", "reader"), pl.String()),
    "reader_all": pl.Boolean(),
    "reader_prompt": pl.Int64(),
    **dict.fromkeys(("answer_final", "final_status"), pl.String()),
    "final_counts": pl.Boolean(),
})  # fmt: skip
"""Columns of the turns table that describe each reading and its reader."""

READ_BY = ("reading_version", "reader", "reader_all", "reader_prompt", "final_counts")
"""Fields that must be equal in compared answers."""

READINGS_FILE = "readings.parquet"
"""Name of the file of newer readings in a log directory."""

GIVEN_RULE = "given"
"""``rule`` of an answer that an imported file states, so that no reader extracted it."""

HANDED_OVER = "handed-over"
"""``rule`` of a turn that a defence handed over to a person: neither an answer nor a failure."""

NON_RESPONSE = "non-response"
"""``rule`` of an imported turn that its file marks as a non-response."""

_COUNTS = ("answer", "status", "rule")
TURN_KEY = ("run", "question", "epoch", "arm", "path", "turn")
"""Columns that identify a turn."""

READ_AGAIN = pl.Schema({
    **dict.fromkeys(TURN_KEY, pl.String()),
    **dict.fromkeys(("epoch", "turn"), pl.Int64()),
    **dict.fromkeys(("_mark", *_COUNTS), pl.String()),
    **READINGS,
})  # fmt: skip
"""Columns of the file: the turn, the digest of the record, and its reading."""

LABEL_SCHEMA = pl.Schema({
    "label": pl.String(), "label_first": pl.String(), "label_weight": pl.Float64(),
})  # fmt: skip
"""Labels by people: letters as in ``answer``, or one of ``NO_LETTER``. Null without a label."""

NO_LETTER = ("none", "refused")
"""Labels of replies without an answer."""

AUDIT = pl.Schema(
    {
        **dict.fromkeys(TURN_KEY, pl.String()),
        "epoch": pl.Int64(),
        "turn": pl.Int64(),
        **LABEL_SCHEMA,
    }
)
"""Columns of a file of labels."""

AUDIT_FILE = "audit.parquet"
"""Name of the file of people's labels in a log directory."""

_MOST_SHOWN = 3


def as_recorded(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Add the reading columns to a logged or exported turn without them, as read by version 1."""
    if "reading_version" in turn or turn.get("rule") == GIVEN_RULE:
        return dict(turn)
    return {**turn, "reading_version": 1, "answer_rules": turn.get("answer")}


def first_readings(turns: pl.DataFrame) -> pl.DataFrame:
    """Add the reading columns to a turns table without them, as read by version 1.

    Answers that an imported file states have no reading version.
    """
    if "reading_version" in turns.columns:
        return turns
    is_extracted = pl.col("rule") != GIVEN_RULE
    return turns.with_columns(
        pl.when(is_extracted).then(pl.lit(1, pl.Int64)).alias("reading_version"),
        pl.when(is_extracted).then("answer").alias("answer_rules"),
    )


def mark(turn: Mapping[str, Any]) -> str:
    """Return the digest of a reply and its reading, which identifies the record that was read."""
    mark_parts = [turn["reply"], *(turn.get(name) for name in (*_COUNTS, *READINGS))]
    return hashlib.sha256(json.dumps(mark_parts).encode()).hexdigest()[:16]


def with_readings(turns: pl.DataFrame, log_dir: str) -> pl.DataFrame:
    """Replace the readings in the logs by the log directory's newer readings.

    A newer reading applies only to the record that it was made from. A turn that was logged again
    later, with another reply or reading, keeps the reading in its log.
    """
    remedy = "Remove it and run 'holdfast score LOGDIR'"
    again = newest_readings(
        log_dir, READINGS_FILE, _load_readings, "is not a file of readings", remedy
    )
    if again is None:
        return turns
    again = again.unique([*TURN_KEY, "_mark"], keep="last").with_columns(_again=pl.lit(value=True))
    turns_with_readings = turns.join(
        again, on=[*TURN_KEY, "_mark"], how="left", suffix=" again", maintain_order="left",
        validate="m:1",
    )  # fmt: skip
    anew, answer = pl.col("_again").is_not_null(), pl.col("answer again")
    right = (answer == pl.col("gold")).fill_null(value=False)
    has_moved = anew & answer.ne_missing(pl.col("answer")) & pl.col("p_answer").is_not_null()
    belief = (
        pl.when(answer == pl.col("gold")).then("p_gold")
        .when(answer == pl.col("suggested")).then("p_suggested")
    )  # fmt: skip
    return turns_with_readings.with_columns(
        *(
            pl.when(anew).then(f"{name} again").otherwise(name).alias(name)
            for name in (*_COUNTS, *READINGS)
        ),
        correct=pl.when(anew).then(right).otherwise("correct"),
        # the log has no probability for any other option
        p_answer=pl.when(has_moved).then(belief).otherwise("p_answer"),
    ).select(turns.columns)


def _load_readings(content: bytes) -> pl.DataFrame:
    return pl.read_parquet(content).select(*READ_AGAIN).cast(READ_AGAIN)


def with_people_labels(turns: pl.DataFrame, log_dir: str) -> pl.DataFrame:
    """Add people's labels from the log directory to the turns."""
    remedy = "Remove it and run 'holdfast import FILE --audit LOGDIR'"
    labels = newest_readings(log_dir, AUDIT_FILE, _load_labels, "is not a file of labels", remedy)
    return turns if labels is None else labelled(turns, labels)


def _load_labels(content: bytes) -> pl.DataFrame:
    return pl.read_parquet(content).select(*AUDIT).cast(AUDIT)


def missing() -> pl.Expr:
    """Whether a turn lacks an expected answer."""
    return (pl.col("status") != "parsed") & pl.col("rule").ne_missing(HANDED_OVER)


def labelled(turns: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Replace the labels of the turns by others (``AUDIT``)."""
    turns_without_labels = turns.drop(LABEL_SCHEMA)
    on = list(TURN_KEY)
    labelled_turns = turns_without_labels.join(
        labels, on=on, how="left", validate="m:1", maintain_order="left"
    )
    return labelled_turns.select(turns.columns)


def write_readings(readings: pl.DataFrame, log_dir: str) -> None:
    """Write newer readings (``READ_AGAIN``) next to the logs; they replace the existing file."""
    put_table(readings.lazy().select(*READ_AGAIN), log_dir, READINGS_FILE)


def check_read_alike(
    sides: Mapping[str, pl.DataFrame], place: str | None = None, field: str | None = None
) -> None:
    """Raise an error if the turns of the sides, by name, were read by different rules or readers.

    Imported answers that their file states can be compared with any others. Open answers, which a
    judge reads, are compared with each other.

    Raises:
        InputError: turns of a side, or of different sides, were read differently. The error names
            ``place`` and ``field``.
    """
    for of_judge in (pl.col("answers").is_null(), pl.col("answers").is_not_null()):
        _check_kind({name: turns.filter(of_judge) for name, turns in sides.items()}, place, field)


def _check_kind(sides: Mapping[str, pl.DataFrame], place: str | None, field: str | None) -> None:
    readings_by_side = {
        name: turns.filter(
            pl.col("reading_version").is_not_null(),
            # nobody reads answers in the replies of helpers
            ~in_arms(lambda declaration: declaration.helpers),
        )
        .select(READ_BY)
        .unique(maintain_order=True)
        .rows()
        for name, turns in sides.items()
    }
    if len({reading for readings in readings_by_side.values() for reading in readings}) < 2:
        return
    description = "; ".join(
        f"{name} by {' and by '.join(map(_describe_reading, readings[:_MOST_SHOWN]))}"
        for name, readings in readings_by_side.items()
        if readings
    )
    raise InputError(
        f"the replies were not read in the same way: {description}",
        place,
        field=field,
        remedy="Run 'holdfast score LOGDIR' on each, with the same second reader or without one",
    )


def _describe_reading(reading: tuple[int, str | None, bool | None, int | None, bool | None]) -> str:
    version, reader, reads_all, prompt, is_final = reading
    rules = f"version {version} of the rules" + " and by final answers" * bool(is_final)
    if reader is None:
        return rules
    scope = "every reply" if reads_all else "replies that the rules cannot parse"
    return f"{rules} with {reader} for {scope} (prompt {prompt})"
