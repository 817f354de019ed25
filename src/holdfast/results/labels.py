"""Labels of questions that are kept beside the logs, such as the USMLE system."""

from pathlib import Path

import fsspec
import polars as pl

from holdfast.errors import InputError

LABELS_FILE = "labels.jsonl"
"""Name of the label file in a log dir; what stands in it holds for every table made there."""


def with_labels(turns: pl.DataFrame, log_dir: str, strata: tuple[str, ...]) -> pl.DataFrame:
    """The turns with the strata of the log dir's label file in place of their own.

    Args:
        turns: the turns of the log dir.
        log_dir: a local folder or any fsspec URL.
        strata: columns that a label file can hold.

    Raises:
        InputError: there is a label file, but it cannot be read.
    """
    path = f"{log_dir.rstrip('/')}/{LABELS_FILE}"
    exists = Path(path).is_file() if "://" not in path else fsspec.open(path).fs.exists(path)
    if not exists:
        return turns
    try:
        with fsspec.open(path) as file:
            labels = pl.read_ndjson(file.read(), schema_overrides={"question": pl.String()})
        given = [name for name in strata if name in labels.columns]
        labels = labels.select("question", *given).unique("question", keep="last")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"cannot be read as labels ({' '.join(str(error).split())[:200]})",
            path,
            remedy="Mend or remove the file",
        ) from error
    joined = turns.join(
        labels, on="question", how="left", suffix=" label", maintain_order="left", validate="m:1"
    )
    return joined.with_columns(
        pl.coalesce(pl.col(f"{name} label").cast(pl.String()), pl.col(name)).alias(name)
        for name in given
    ).select(turns.columns)
