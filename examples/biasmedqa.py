r"""Turn recorded replies to biased questions into a file that holdfast replays.

Usage: python examples/biasmedqa.py RECORDINGS.jsonl REPLIES.parquet

RECORDINGS has one reply a line with the fields index (of the question, from 0), bias (null for
the plain question), mitigation (or null), suggested (the letter that the bias pushed) and
response. Then::

    holdfast run single-turn --model recorded/REPLIES.parquet --questions QUESTIONS \\
        -T suggest=REPLIES.parquet -T mitigations=education -T distractors=none

No key and no network are needed.
"""

import sys

import polars as pl


def main(recordings: str, replies: str) -> None:
    """Write question, path, suggested and reply, as a turns table names them."""
    parts = [pl.col("mitigation"), pl.col("bias")]
    pl.read_ndjson(recordings, infer_schema_length=None).select(
        pl.col("index").cast(pl.String).alias("question"),
        pl.concat_str(parts, separator=">", ignore_nulls=True)
        .str.replace_all("_", "-")
        .alias("path"),
        "suggested",
        pl.col("response").alias("reply"),
    ).write_parquet(replies)


if __name__ == "__main__":
    main(*sys.argv[1:])
