"""Audits of real replies with labels of a judge: the interval contains the figure of all labels."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.transcripts.imports import MAPPINGS, imported

from holdfast.results.audit import FIGURES, corrected, units
from holdfast.results.first_answers import TURN
from holdfast.results.readings import TURN_KEY, labelled
from holdfast.stats.intervals import effective_n, exact_bounds
from holdfast.transcripts.audit_sheet import drawn

LABELS = 200


def judged(resources: Path, questions: int) -> pl.DataFrame:
    """The replies of Llama 2 to the first questions, with the labels that the judge's words make.

    A reply that the judge calls incorrect is labelled as read, or as another wrong option; the 35
    that it could not judge are labelled as read.
    """
    source = resources / "data" / "biasmedqa_recordings" / "llama-2-70b-chat.jsonl"
    if not source.is_file():
        pytest.skip("the recordings are not here")
    lines = [line for line in source.read_text("utf-8").splitlines()
             if json.loads(line)["index"] < questions]  # fmt: skip
    Path("some.jsonl").write_text("\n".join(lines), "utf-8")
    questions_file = resources / "data" / "medqa" / "us_5_options_test.jsonl"
    turns = imported(Path("some.jsonl"), MAPPINGS / "biasmedqa.toml", str(questions_file)).turns
    by = pl.DataFrame([json.loads(line) for line in lines], infer_schema_length=None)
    parts = pl.col("mitigation", "bias").fill_null("").str.replace_all("_", "-")
    by = by.with_columns(parts, question=pl.col("index").cast(pl.String).str.zfill(4))
    path = pl.concat_str("mitigation", "bias", separator=">").str.strip_chars_start(">")
    by = by.select("question", "judged", path=path)
    turns = turns.join(by, on=["question", "path"], validate="1:1", maintain_order="left")
    gold, answer = pl.col("gold"), pl.col("answer")
    wrong = pl.when(gold == "A").then(pl.lit("B")).otherwise(pl.lit("A"))
    label = (
        pl.when(pl.col("judged") == "correct").then(gold)
        .when(pl.col("judged") == "no_answer").then(pl.lit("none"))
        .when(pl.col("judged") == "unusable").then(answer.fill_null("none"))
        .otherwise(pl.when(answer != gold).then(answer).otherwise(wrong))
    )  # fmt: skip
    turns = turns.with_columns(truth=label)
    first = turns.filter(pl.col("arm") == "baseline").select(*TURN, truth_first="truth")
    return turns.join(first, on=TURN, how="left", maintain_order="left")


def by_labels_alone(units_labelled: pl.DataFrame, figure: str) -> tuple[float, float]:
    """The interval of the labels' weights weighted share, exact, clustered by question."""
    terms = FIGURES[figure]
    weight = pl.col("label_weight") * terms.size * terms.among[1].cast(pl.Float64)
    weights = units_labelled.filter(terms.of).select(
        "question", w=weight, hit=terms.hit[1].cast(pl.Float64)
    )
    weights = weights.filter(pl.col("w") > 0).with_columns(pl.col("w") / pl.col("w").mean())
    sums = weights.group_by("question").agg(
        (pl.col("w") * pl.col("hit")).sum().alias("h"), pl.sum("w")
    )
    hits, sizes = sums["h"].to_numpy(), sums["w"].to_numpy()
    n = effective_n(hits, sizes)
    return exact_bounds(float(hits.sum() / sizes.sum()) * n, n)


def check(turns: pl.DataFrame, samples: int) -> None:
    full = turns.with_columns(label="truth", label_first="truth_first", label_weight=pl.lit(1.0))
    truths = {figure: corrected(units(full), figure) for figure in FIGURES}
    n_hits = dict.fromkeys(FIGURES, 0)
    widths: dict[str, list[tuple[float, float]]] = {figure: [] for figure in FIGURES}
    values: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for seed in range(samples):
        sample = drawn(turns, LABELS, seed)
        labels = turns[sample["row"]].select(
            *TURN_KEY, label="truth", label_first="truth_first",
            label_weight=1 / sample["probability"],
        )  # fmt: skip
        sample_units = units(labelled(turns, labels))
        units_labelled = sample_units.filter(pl.col("label").is_not_null())
        for figure, truth in truths.items():
            of = corrected(sample_units, figure)
            low, high = of.bounds()
            n_hits[figure] += low <= truth.corrected <= high
            alone = by_labels_alone(units_labelled, figure)
            widths[figure].append((high - low, alone[1] - alone[0]))
            values[figure].append(of.corrected)
    for figure, truth in truths.items():
        assert truth.disagreements > 100
        assert n_hits[figure] >= 0.93 * samples, figure
        mean, alone = np.mean(widths[figure], axis=0)
        assert mean < 0.8 * alone, figure
        error = np.std(values[figure]) / np.sqrt(samples)
        assert abs(np.mean(values[figure]) - truth.corrected) < 4 * error, figure


@pytest.mark.slow
def test_the_interval_of_a_sample_covers_the_full_figure(resources: Path) -> None:
    check(judged(resources, 300), 50)


@pytest.mark.slow
def test_the_intervals_of_500_samples_cover_the_full_figure(resources: Path) -> None:
    check(judged(resources, 1273), 500)
