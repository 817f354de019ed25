"""Parquet files in a log dir, whole or not at all."""

from pathlib import Path

import polars as pl

_ROWS_AT_ONCE = 4096


def write_parquet(
    frame: pl.DataFrame, log_dir: str, name: str, metadata: dict[str, str] | None = None
) -> str:
    """Write a table into a log dir and return its path.

    Args:
        frame: the table.
        log_dir: a local folder or any fsspec URL.
        name: of the file.
        metadata: kept in a local file beside the table.
    """
    if "://" in log_dir:
        import fsspec

        url = f"{log_dir.rstrip('/')}/{name}"
        with fsspec.open(url, "wb") as file:
            frame.write_parquet(file, compression="zstd", row_group_size=_ROWS_AT_ONCE)
        return url
    path = Path(log_dir) / name
    partial = path.with_name(f".{name}.partial")
    frame.write_parquet(
        partial, compression="zstd", row_group_size=_ROWS_AT_ONCE, metadata=metadata
    )
    partial.replace(path)
    return str(path)
