"""Labels of questions that are kept beside the logs, such as the USMLE system."""

import polars as pl

from holdfast.errors import InputError

LABELS_FILE = "labels.jsonl"
"""Name of the label file in a log dir; what stands in it holds for every table made there."""


_QUESTION = ("dataset", "question")


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
    import fsspec

    file = fsspec.open(path)
    if not file.fs.exists(file.path):
        return turns
    # every column named, or one that begins late would be taken for empty
    schema = {name: pl.String() for name in (*_QUESTION, *strata)}
    try:
        with file as content:
            labels = pl.read_ndjson(content.read(), schema=schema)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"cannot be read as labels ({' '.join(str(error).split())[:200]})",
            path,
            remedy="Mend or remove the file",
        ) from error
    labels = labels.unique(_QUESTION, keep="last")
    joined = turns.join(
        labels, on=_QUESTION, how="left", suffix=" label", maintain_order="left", validate="m:1"
    )
    return joined.with_columns(
        pl.coalesce(pl.col(f"{name} label"), pl.col(name)).alias(name) for name in strata
    ).select(turns.columns)
