from pathlib import Path

import polars as pl
import pytest
from benchmarks.measures import (
    CORES,
    MOST_MB,
    MOST_S,
    ROOT,
    BenchmarkError,
    differences,
    measure,
    most_seconds,
    timed,
)
from benchmarks.synthetic import MODELS, synthetic_turns

from holdfast.results.declaration import TABLES
from holdfast.results.turns import SCHEMA


@pytest.mark.slow
def test_the_synthetic_study_is_complete_and_reproducible() -> None:
    turns = synthetic_turns(8_000)
    assert turns.equals(synthetic_turns(8_000))
    assert not turns.equals(synthetic_turns(8_000, seed=43))
    assert turns.schema == SCHEMA
    # what belongs to a question is never cut
    assert 8_000 <= turns.height < 8_000 + 2_000
    assert turns["model"].n_unique() == MODELS
    assert set(turns["status"]) == {"parsed", "none", "refused", "error"}
    key = ("run", "epoch", "question", "arm", "path", "turn")
    assert not turns.select(key).is_duplicated().any()
    paths = turns.group_by("protocol", "arm").agg(pl.col("path").n_unique())
    number = {(protocol, arm): n for protocol, arm, n in paths.iter_rows()}
    assert number["followup", "followup"] == 14
    assert number["followup", "compound"] == 14
    assert number["followup", "length"] == 12
    assert number["single-turn", "single-turn"] == 7 * 4 + 1
    assert number["medfuzz", "attack"] == 5
    assert number["medfuzz", "control"] == 30 * 5
    assert {"positive", "negative", "flexible-correct", "single-shot", "single-shot-abstain"} == {
        arm for protocol, arm in number if protocol == "stick-or-switch"
    }


@pytest.mark.slow
def test_tables_of_a_small_study_stay_within_bounds() -> None:
    measurement = measure(50_000)
    costs = measurement["holdfast"]
    assert measurement["turns"] >= 50_000
    assert set(costs["tables"]) == {"read", *TABLES, "errors", "accuracy by step, overall"}
    # its attacks have no controls and were put to no other model; nobody has labelled a reply, and
    # nothing stands around its models; no reply was judged, nobody pushed, no turn was replayed
    empty = {name for name, table in costs["tables"].items() if not table["rows"]}
    assert empty == {"attacks by control", "transfer", "audit", "defences", "defences by model",
                     "pressure", "concessions", "recovery", "letters", "judges", "final-answers",
                     "replays"}  # fmt: skip
    # processor time: others may use the machine
    assert costs["cpu_s"] < CORES * most_seconds(50_000)
    # most of it the libraries: that of a million turns is bounded in the benchmark itself
    assert 50 < costs["peak_rss_mb"] < MOST_MB / 4
    assert sum(table["wall_s"] for table in costs["tables"].values()) < costs["wall_s"]


def test_bounds_scale_with_the_turns() -> None:
    assert most_seconds(1_000_000) == MOST_S == 20
    assert most_seconds(5_000_000) == 20
    assert most_seconds(100_000) == 5 + 2


def test_versions_differ_by_figure_or_column(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    old = pl.DataFrame({"model": ["a", "b"], "share": [0.1, None]})
    # a new column and a last digit are no difference
    unchanged_table = old.with_columns(pl.col("share") + 1e-13, pl.lit(1).alias("new"))
    new = {
        "same": unchanged_table,
        "figure": old.with_columns(share=0.2),
        "column": old.drop("share"),
    }
    for folder, frames in ((before, dict.fromkeys((*new, "table"), old)), (after, new)):
        folder.mkdir()
        for name, frame in frames.items():
            frame.write_parquet(folder / f"{name}.parquet")
    column, figure, table = differences(before, after)
    assert column == "column: without share"
    assert figure.startswith("figure: ")
    assert table == "table: gone"


@pytest.mark.slow
def test_the_wrong_package_is_not_timed(tmp_path: Path) -> None:
    synthetic_turns(1_000).write_parquet(tmp_path / "turns.parquet")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BenchmarkError, match="another package"):
        timed(tmp_path / "turns.parquet", empty, tmp_path)
    (tmp_path / "turns.parquet").write_bytes(b"no table")
    with pytest.raises(BenchmarkError, match="cannot be read as a turns table"):
        timed(tmp_path / "turns.parquet", ROOT / "src", tmp_path)
