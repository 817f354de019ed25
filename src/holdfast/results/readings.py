"""Readings of replies: by whom, by which version of the rules, and newer ones beside the logs."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from holdfast.errors import InputError
from holdfast.files import replacing

_ROWS_AT_ONCE = 4096


def write_parquet(
    frame: pl.DataFrame, log_dir: str, name: str, metadata: dict[str, str] | None = None
) -> str:
    """Write a table into a log dir and return its path."""
    if "://" in log_dir:
        import fsspec

        url = f"{log_dir.rstrip('/')}/{name}"
        with fsspec.open(url, "wb") as file:
            frame.write_parquet(file, compression="zstd", row_group_size=_ROWS_AT_ONCE)
        return url
    path = Path(log_dir) / name
    with replacing(path) as file:
        frame.write_parquet(
            file, compression="zstd", row_group_size=_ROWS_AT_ONCE, metadata=metadata
        )
    return str(path)


READINGS = pl.Schema(
    {
        "reading_version": pl.Int64(),
        "answer_rules": pl.String(),
        "answer_reader": pl.String(),
        "reader_status": pl.String(),
        "reader": pl.String(),
        "reader_all": pl.Boolean(),
        "reader_prompt": pl.Int64(),
    }
)
"""Columns of the turns table that say who has read what."""

READ_BY = ("reading_version", "reader", "reader_all", "reader_prompt")
"""Those that must be alike where answers are held against each other."""

READINGS_FILE = "readings.parquet"
"""Name of the file of newer readings in a log dir."""

GIVEN = "given"
"""``rule`` of an answer that an imported file had: nobody has read it."""

NON_RESPONSE = "non-response"
"""``rule`` of an imported turn that its file marks as one without a response."""

_COUNTS = ("answer", "status", "rule")
TURN_KEY = ("run", "question", "epoch", "arm", "path", "turn")
"""What tells turns apart."""

READ_AGAIN = pl.Schema(
    {
        **dict.fromkeys(TURN_KEY, pl.String()),
        "epoch": pl.Int64(),
        "turn": pl.Int64(),
        "_mark": pl.String(),
        **dict.fromkeys(_COUNTS, pl.String()),
        **READINGS,
    }
)
"""Columns of the file: the turn, the record that was read, and its reading."""

_SHOWN = 3


def as_recorded(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A logged or exported turn; without a word of its reading, it is read by version 1."""
    if "reading_version" in turn or turn.get("rule") == GIVEN:
        return dict(turn)
    return {**turn, "reading_version": 1, "answer_rules": turn.get("answer")}


def first_readings(turns: pl.DataFrame) -> pl.DataFrame:
    """A turns table; one without these columns was read by version 1, or was given its answers."""
    if "reading_version" in turns.columns:
        return turns
    read = pl.col("rule") != GIVEN
    return turns.with_columns(
        pl.when(read).then(pl.lit(1, pl.Int64)).alias("reading_version"),
        pl.when(read).then("answer").alias("answer_rules"),
    )


def mark(turn: Mapping[str, Any]) -> str:
    """Digest of a reply as it was read, by which a newer reading knows the record that it is of.

    Args:
        turn: as ``as_recorded`` gives it.
    """
    said = [turn["reply"], *(turn.get(name) for name in (*_COUNTS, *READINGS))]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def with_readings(turns: pl.DataFrame, log_dir: str) -> pl.DataFrame:
    """The turns with the newer readings of the log dir in place of those in its logs.

    A reading holds for the record that it was made of. A turn that a run has logged anew since,
    with another reply or read otherwise, keeps what its log says.
    """
    import fsspec  # slow to import, and a table that is there does without

    path = f"{log_dir.rstrip('/')}/{READINGS_FILE}"
    file = fsspec.open(path)
    if not file.fs.exists(file.path):
        return turns
    try:
        with file as content:
            again = pl.read_parquet(content.read()).select(*READ_AGAIN).cast(READ_AGAIN)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"is not a file of readings ({' '.join(str(error).split())[:200]})",
            path,
            remedy="Remove it and run 'holdfast reread LOGDIR'",
        ) from error
    again = again.unique([*TURN_KEY, "_mark"], keep="last").with_columns(_again=pl.lit(value=True))
    joined = turns.join(
        again, on=[*TURN_KEY, "_mark"], how="left", suffix=" again", maintain_order="left",
        validate="m:1",
    )  # fmt: skip
    anew, answer = pl.col("_again").is_not_null(), pl.col("answer again")
    moved = anew & answer.ne_missing(pl.col("answer")) & pl.col("p_answer").is_not_null()
    belief = (
        pl.when(answer == pl.col("gold")).then("p_gold")
        .when(answer == pl.col("suggested")).then("p_suggested")
    )  # fmt: skip
    return joined.with_columns(
        *(
            pl.when(anew).then(f"{name} again").otherwise(name).alias(name)
            for name in (*_COUNTS, *READINGS)
        ),
        pl.when(anew)
        .then((answer == pl.col("gold")).fill_null(value=False))
        .otherwise("correct")
        .alias("correct"),
        # the log has no belief in any other option
        pl.when(moved).then(belief).otherwise("p_answer").alias("p_answer"),
    ).select(turns.columns)


def write_readings(readings: pl.DataFrame, log_dir: str) -> None:
    """Leave newer readings beside the logs, in place of those that are there.

    Args:
        readings: with the columns of ``READ_AGAIN``.
        log_dir: a local folder or any fsspec URL.
    """
    write_parquet(readings.select(*READ_AGAIN), log_dir, READINGS_FILE)


def check_read_alike(
    sides: Mapping[str, pl.DataFrame], place: str | None = None, field: str | None = None
) -> None:
    """Refuse turns that different rules or different readers have read.

    Imported answers that were given, not read, are held against any.

    Args:
        sides: turns by the name of their side, with the columns of ``READ_BY``.
        place: where the comparison is asked for, for the error.
        field: the same.

    Raises:
        InputError: the turns of one side, or of both, were read differently.
    """
    found = {
        name: turns.filter(pl.col("reading_version").is_not_null())
        .select(READ_BY)
        .unique(maintain_order=True)
        .rows()
        for name, turns in sides.items()
    }
    if len({reading for readings in found.values() for reading in readings}) < 2:
        return
    told = "; ".join(
        f"{name} by {' and by '.join(map(_told, readings[:_SHOWN]))}"
        for name, readings in found.items()
        if readings
    )
    raise InputError(
        f"the replies were not read in the same way: {told}",
        place,
        field=field,
        remedy="Run 'holdfast reread LOGDIR' on each, with the same --reader or with none",
    )


def _told(reading: tuple[int, str | None, bool | None, int | None]) -> str:
    version, reader, every, prompt = reading
    rules = f"version {version} of the rules"
    if reader is None:
        return rules
    what = "every reply" if every else "what they leave"
    return f"{rules} with {reader} for {what} (prompt {prompt})"
