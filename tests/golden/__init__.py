"""Every table on turns that stay the same, held to the last digit while the code of tables changes.

``python -m tests.golden`` writes the tables anew; a commit that does says which change is wanted.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import polars as pl
from benchmarks.synthetic import synthetic_turns

from holdfast.results.declaration import TABLES
from holdfast.results.records import errors
from holdfast.results.turns import turns_table

FOLDER = Path(__file__).parent
SYNTHETIC = 150_000


def demo() -> pl.DataFrame:
    """The turns of the demo, with a code for each text."""
    return turns_table([str(FOLDER / "turns.parquet")])


def disturbed() -> pl.DataFrame:
    """The demo's turns of three models and two epochs, some of them unread, refused or failed.

    One model also stands behind a defence, and people have labelled a third of the turns.
    """
    turns = demo()
    third = turns.filter(pl.col("model") == pl.col("model").first()).with_columns(
        model=pl.lit("simulated/third"), run=pl.col("run").str.replace("^", "third-")
    )
    defence_turns = turns.filter(
        pl.col("model") == pl.col("model").first(), pl.col("protocol") == "followup"
    ).with_columns(defence=pl.lit("warn"), run=pl.col("run") + "+warn")
    models = pl.concat(
        [turns, _answered_otherwise(third, 3), _answered_otherwise(defence_turns, 4)]
    )
    plain = pl.col("protocol") != "medfuzz"
    second = _answered_otherwise(models.filter(plain), 5).with_columns(epoch=pl.col("epoch") + 1)
    epochs = pl.concat([models, second])
    draw = _draw(epochs, 7)
    under_pressure = pl.col("technique").is_in(["authority-prior", "rag-style"])
    unread = (draw < 0.05) & pl.col("answer").is_not_null()
    refusals = draw.is_between(0.05, 0.07) | (under_pressure & draw.is_between(0.07, 0.2))
    failures, silent = draw.is_between(0.9, 0.92), draw.is_between(0.92, 0.93)
    status = (
        pl.when(failures).then(pl.lit("error"))
        .when(refusals & pl.col("answer").is_not_null()).then(pl.lit("refused"))
        .when(unread).then(pl.lit("none"))
        .when(silent & pl.col("answer").is_not_null()).then(pl.lit("none"))
        .otherwise("status")
    )  # fmt: skip
    rule = pl.when(silent & (status == "none")).then(pl.lit("non-response")).otherwise("rule")
    without_answer = status.is_in(["error", "refused", "none"])
    with_label = ~failures & (_draw(epochs, 9) < 1 / 3)
    return epochs.with_columns(
        status=status,
        rule=rule,
        answer=pl.when(~without_answer).then("answer"),
        correct=pl.when(~without_answer).then("correct").otherwise(pl.lit(value=False)),
        # people read what the rules have not
        label=pl.when(with_label).then("answer"),
        label_first=pl.when(with_label & (pl.col("arm") != "baseline")).then("gold"),
        label_weight=pl.when(with_label).then(3.0),
    )


def _draw(turns: pl.DataFrame, seed: int) -> pl.Expr:
    """A number in 0 to 1 for each turn, which hangs on nothing but the turn."""
    names = ("model", "protocol", "question", "epoch", "arm", "path", "turn")
    text = turns.select(pl.concat_str(*names, separator="|", ignore_nulls=True)).to_series()
    numbers = [zlib.crc32(f"{seed}|{key}".encode()) / 2**32 for key in text]
    return pl.lit(pl.Series("_draw", numbers))


def _answered_otherwise(turns: pl.DataFrame, seed: int) -> pl.DataFrame:
    """A fifth of the answers that were read became the suggested, or another wrong one."""
    switches = (_draw(turns, seed) < 0.2) & (pl.col("status") == "parsed")
    wrong = pl.when(pl.col("gold") == "A").then(pl.lit("B")).otherwise(pl.lit("A"))
    answer = pl.when(switches).then(pl.coalesce("suggested", wrong)).otherwise("answer")
    return turns.with_columns(
        answer=answer,
        correct=pl.when(switches).then(answer == pl.col("gold")).otherwise("correct"),
    )


SETS: Mapping[str, Callable[[], pl.DataFrame]] = {
    "demo": demo,
    "disturbed": disturbed,
    "synthetic": partial(synthetic_turns, SYNTHETIC),
}
"""Makers of turns tables by name."""


def tables(turns: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Every table by name."""
    for name, table in TABLES.items():
        yield name, table(turns)
    yield "errors", errors(turns)


def written(name: str) -> dict[str, pl.DataFrame]:
    """The tables of a set as they are to be."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        return {
            member.removesuffix(".parquet"): pl.read_parquet(io.BytesIO(archive.read(member)))
            for member in archive.namelist()
        }


def write(name: str) -> None:
    """Write the tables of a set."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip", "w") as archive:
        for table, rows in tables(SETS[name]()):
            data = io.BytesIO()
            rows.write_parquet(data, compression="zstd", compression_level=19)
            archive.writestr(zipfile.ZipInfo(f"{table}.parquet"), data.getvalue())
