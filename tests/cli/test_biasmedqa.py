"""The recordings of BiasMedQA through ``recorded/`` and the table of single turns."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.studies import holdfast_apart, of_table

EXAMPLE = Path(__file__).parents[2] / "examples" / "biasmedqa.py"
MODELS = ("gpt-4-0613", "llama-2-70b-chat")
BIASES = {
    "confirmation", "cultural", "false-consensus", "frequency", "recency", "self-diagnosis",
    "status-quo",
}  # fmt: skip
AGREEMENT = 0.9647  # as options in passing are unread: 0.9664 with rules for them
"""Least share of verdicts on which the extractor and the recordings' own judge must agree."""

Row = dict[str, Any]


def recordings(resources: Path, model: str) -> pl.DataFrame:
    path = resources / "data" / "biasmedqa_recordings" / f"{model}.jsonl"
    if not path.is_file():
        pytest.skip("the recordings are not here")
    return (
        pl.read_ndjson(path, infer_schema_length=None)
        .with_columns(
            pl.col("bias", "mitigation").fill_null("").str.replace_all("_", "-"),
            pl.col("index").cast(pl.String).str.zfill(4).alias("question"),
        )
        .with_columns(
            pl.concat_str("mitigation", "bias", separator=">")
            .str.strip_chars_start(">")
            .alias("path")
        )
    )


@dataclass(frozen=True)
class Replayed:
    """What ``holdfast run`` left of a model's recordings."""

    log_dir: Path
    outcome: Row

    def table(self, name: str) -> list[Row]:
        run = holdfast_apart(
            "table", self.log_dir / "turns.parquet", *of_table(name), "--format", "json"
        )
        assert run.returncode == 0, run.stderr
        rows: list[Row] = json.loads(run.stdout)
        return rows


def replay(resources: Path, model: str, folder: Path, *settings: str) -> Replayed:
    """Convert a model's recordings by the example and run the single-turn protocol on them."""
    source = resources / "data" / "biasmedqa_recordings" / f"{model}.jsonl"
    if not source.is_file():
        pytest.skip("the recordings are not here")
    replies = folder / f"{model}.parquet"
    conversion = subprocess.run(
        [sys.executable, str(EXAMPLE), str(source), str(replies)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert conversion.returncode == 0, conversion.stderr
    run = holdfast_apart(
        "run", "single-turn", "--model", f"recorded/{replies}",
        "--questions", resources / "data" / "medqa" / "us_5_options_test.jsonl",
        "-T", f"suggest={replies}", "-T", "mitigations=education", "-T", "distractors=none",
        "--log-dir", folder / "r", "--json", *settings,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return Replayed(folder / "r", json.loads(run.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_first_character_figures_match_the_recordings(
    model: str, resources: Path, tmp_path: Path
) -> None:
    naive = replay(resources, model, tmp_path, "-T", "answers=first-character")
    records = recordings(resources, model)
    recorded_counts = {
        (mitigation, bias): (n, right)
        for mitigation, bias, n, right in records.group_by("mitigation", "bias")
        .agg(pl.len(), pl.col("first_char_correct").sum())
        .rows()
    }
    rows = [row for row in naive.table("single-turn") if row["arm"] != "family-average"]
    counts = {
        (row["mitigation"] or "", row["technique"] or ""): (row["n"], row["correct"])
        for row in rows
    }
    assert len(rows) == len(counts) == 15
    assert {bias for _, bias in counts} == BIASES | {""}
    assert counts == recorded_counts
    assert [row["accuracy"] for row in rows] == [
        recorded_counts[row["mitigation"] or "", row["technique"] or ""][1] / 1273 for row in rows
    ]
    # reply by reply too, and the letter that was pushed is the recordings' own
    turns = pl.read_parquet(naive.outcome["turns"]).join(
        records, on=["question", "path"], validate="1:1", suffix=" recorded"
    )
    assert turns.height == records.height == 15 * 1273
    assert turns["correct"].equals(turns["first_char_correct"].rename("correct"))
    assert turns["gold"].equals(turns["gold recorded"].rename("gold"))
    biased_turns = turns.filter(pl.col("bias") != "")
    assert biased_turns["suggested"].equals(biased_turns["suggested recorded"].rename("suggested"))
    assert turns["reply"].fill_null("").equals(turns["response"].fill_null("").rename("reply"))
    assert naive.outcome["complete"] is True


@pytest.mark.slow
def test_the_extractor_agrees_with_the_recordings_judge(resources: Path, tmp_path: Path) -> None:
    study = replay(resources, "llama-2-70b-chat", tmp_path)
    records = recordings(resources, "llama-2-70b-chat")
    turns = pl.read_parquet(study.outcome["turns"]).join(
        records.select("question", "path", "judged", "first_char_correct"),
        on=["question", "path"], validate="1:1",
    )  # fmt: skip
    assert turns.height == 15 * 1273
    assert set(turns["judged"]) == {"correct", "incorrect", "no_answer", "unusable"}
    usable = turns.filter(pl.col("judged") != "unusable")
    right = pl.col("judged") == "correct"
    agreement = usable.select((pl.col("correct") == right).mean()).item()
    naive = usable.select((pl.col("first_char_correct") == right).mean()).item()
    assert agreement >= AGREEMENT
    assert naive < agreement  # which is why there is an extractor
    # condition by condition nothing is far off
    by_path = usable.group_by("path").agg((pl.col("correct") == right).mean().alias("share"))
    assert by_path.height == 15
    assert by_path["share"].min() > AGREEMENT - 0.05  # type: ignore[operator]
    rows = [row for row in study.table("single-turn") if row["arm"] != "family-average"]
    assert len(rows) == 15
    assert sum(row["correct"] for row in rows) == turns["correct"].sum()


def test_the_example_uses_the_names_of_a_turns_table(tmp_path: Path) -> None:
    plain = {"index": 0, "bias": None, "mitigation": None, "suggested": None, "response": "A"}
    source = tmp_path / "recordings.jsonl"
    rows = [
        plain,
        {**plain, "index": 12, "bias": "false_consensus", "suggested": "C", "response": None},
        {**plain, "bias": "recency", "mitigation": "one_shot", "suggested": "B",
         "response": "{braces} \n\n| B"},
    ]  # fmt: skip
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    conversion = subprocess.run(
        [sys.executable, str(EXAMPLE), str(source), str(tmp_path / "replies.parquet")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert conversion.returncode == 0, conversion.stderr
    assert pl.read_parquet(tmp_path / "replies.parquet").rows() == [
        ("0", "", None, "A"),
        ("12", "false-consensus", "C", None),
        ("0", "one-shot>recency", "B", "{braces} \n\n| B"),
    ]
