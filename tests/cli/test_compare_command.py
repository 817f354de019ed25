"""``holdfast compare``: real recordings against statsmodels, and all that can be wrong."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from tests.cli.commands import Facts, facts_of, lacking, refusal
from tests.cli.test_biasmedqa import BIASES, MODELS, recordings
from tests.results.frames import table, turn
from tests.studies import holdfast

from holdfast.results.turns import SCHEMA


def turns_of(resources: Path, model: str) -> pl.DataFrame:
    """The turns table that a run by the first character leaves of a model's recordings."""
    records = recordings(resources, model)
    first = pl.col("response").fill_null("").str.slice(0, 1)
    answer = pl.when(first.is_in(list("ABCDE"))).then(first)
    bias = pl.col("bias") != ""
    columns = {
        "run": pl.lit(f"run of {model}"), "protocol": pl.lit("single-turn"),
        "protocol_version": pl.lit(1), "model": pl.lit(f"recorded/{model}.parquet"),
        "dataset": pl.lit("us_5_options_test"), "seed": pl.lit(42), "epoch": pl.lit(1),
        "arm": pl.when(bias).then(pl.lit("single-turn")).otherwise(pl.lit("baseline")),
        "turn": pl.lit(0), "technique": pl.col("bias"),
        "family": pl.when(bias).then(pl.lit("inc_letter")).otherwise(pl.lit("")),
        "answer": answer,
        "status": pl.when(answer.is_null()).then(pl.lit("none")).otherwise(pl.lit("parsed")),
        "correct": (answer == pl.col("gold")).fill_null(value=False),
    }  # fmt: skip
    table = records.with_columns(**columns)
    assert table["correct"].equals(table["first_char_correct"].rename("correct"))
    absent = [pl.lit(None, SCHEMA[name]).alias(name) for name in set(SCHEMA) - set(table.columns)]
    return table.with_columns(absent).select(*SCHEMA).cast(SCHEMA)


@pytest.fixture(scope="module")
def turns(resources: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Both models in one turns table."""
    path = tmp_path_factory.mktemp("recordings") / "turns.parquet"
    pl.concat([turns_of(resources, model) for model in MODELS]).write_parquet(path)
    return str(path)


def compare(*arguments: str) -> list[Facts]:
    run = holdfast("compare", *arguments, "--format", "json")
    assert run.returncode == 0, run.stderr
    rows: list[Facts] = json.loads(run.stdout)
    return rows


def by_statsmodels(a: pl.DataFrame, b: pl.DataFrame) -> tuple[list[tuple[int, int]], Any, Any]:
    """Counts, exact p-values and Holm's, bias by bias, from the recordings' own columns."""
    counts, p_values = [], []
    for bias in sorted(BIASES):
        x, y = (
            frame.filter(pl.col("bias") == bias).sort("index")["first_char_correct"].to_numpy()
            for frame in (a, b)
        )
        cells = [[int((x & y).sum()), int((x & ~y).sum())],
                 [int((~x & y).sum()), int((~x & ~y).sum())]]  # fmt: skip
        counts.append((cells[1][0], cells[0][1]))
        p_values.append(mcnemar(cells, exact=True).pvalue)
    return counts, np.array(p_values), multipletests(p_values, method="holm")[1]


def check(rows: list[Facts], a: pl.DataFrame, b: pl.DataFrame) -> None:
    biases = sorted((r for r in rows if r["arm"] == "single-turn"), key=lambda row: row["path"])
    assert [row["path"] for row in biases] == sorted(BIASES)
    counts, p, p_adjusted = by_statsmodels(a, b)
    assert [(row["gained"], row["lost"]) for row in biases] == counts
    assert [row["p_value"] for row in biases] == pytest.approx(p, rel=1e-9)
    assert [row["p_adjusted"] for row in biases] == pytest.approx(p_adjusted, rel=1e-9)
    assert all(row["n"] == 1273 for row in biases)
    for row, bias in zip(biases, sorted(BIASES), strict=True):
        shares = [f.filter(pl.col("bias") == bias)["first_char_correct"].mean() for f in (a, b)]
        assert [row["a"], row["b"]] == pytest.approx(shares)
        assert row["difference"] == pytest.approx(shares[1] - shares[0])  # type: ignore[operator]
        assert row["low"] < row["difference"] < row["high"]
        for name in ("gained", "lost"):
            assert len(row[f"{name}_questions"]) == row[name]
    (average,) = (row for row in rows if row["arm"] == "family-average")
    assert average["difference"] == pytest.approx(np.mean([row["difference"] for row in biases]))
    assert (average["n"], average["questions"]) == (7 * 1273, 1273)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_mitigation_is_compared_bias_by_bias(model: str, resources: Path, turns: str) -> None:
    name = f"recorded/{model}.parquet"
    rows = compare(
        turns, turns, "--model-a", name, "--model-b", name, "--mitigation-b", "education"
    )
    records = recordings(resources, model).filter(pl.col("bias") != "")
    assert len(rows) == 8
    check(rows, *(records.filter(mitigation=mitigation) for mitigation in ("", "education")))
    assert rows[0]["mitigation_b"] == "education"


@pytest.mark.slow
@pytest.mark.parametrize("mitigation", ["", "education"])
def test_two_models_are_compared_under_a_mitigation(
    mitigation: str, resources: Path, turns: str
) -> None:
    a, b = (f"recorded/{model}.parquet" for model in MODELS)
    under = ["--mitigation-a", mitigation, "--mitigation-b", mitigation] if mitigation else []
    rows = compare(turns, turns, "--model-a", a, "--model-b", b, *under)
    check(rows, *(
        recordings(resources, model).filter(pl.col("bias") != "", mitigation=mitigation)
        for model in MODELS
    ))  # fmt: skip
    # two models have first answers of their own
    assert (rows[0]["arm"], rows[0]["n"]) == ("baseline", 1273)


def test_a_path_is_compared_with_another(turns: str) -> None:
    name = f"recorded/{MODELS[0]}.parquet"
    paths = ("--model-a", name, "--model-b", name, "--paths", "recency", "cultural")
    (row,) = compare(turns, turns, *paths)
    assert (row["path_a"], row["path_b"], row["n"]) == ("recency", "cultural", 1273)


def study(name: str, answers: str, **columns: Any) -> str:
    rows = [
        turn(f"q{number}", letter, path, run=name, model=name)
        for path in ("", "push")
        for number, letter in enumerate(answers)
    ]
    table([row | columns for row in rows]).write_parquet(f"{name}.parquet")
    return f"{name}.parquet"


@pytest.fixture
def pair() -> tuple[str, str]:
    return study("m1", "AAAAAAAB"), study("m2", "BBBBBBBAA")


def test_a_comparison_reports_what_it_leaves_out(pair: tuple[str, str]) -> None:
    page, file = Path("c.html"), Path("c.md")
    run = holdfast("compare", *pair)
    assert run.returncode == 0
    assert "| push | 8 | 87.5 | 12.5 | -75.0 |" in run.stdout
    (note,) = run.stderr.splitlines()
    assert lacking(["8 questions in common", "0 that only A has", "1 that only B has"], note) == []
    assert note not in run.stdout
    # a file and a page hold it themselves
    assert holdfast("compare", *pair, "--page", page, "-o", file).stdout == ""
    assert note in file.read_text()
    assert note in page.read_text()


def test_changed_questions_are_listed_on_request(pair: tuple[str, str]) -> None:
    assert "q7" not in holdfast("compare", *pair).stdout
    lines = holdfast("compare", *pair, "--changed").stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("- push"))
    assert re.findall(r"q\d", line) == ["q7", *(f"q{n}" for n in range(7))]
    csv_text = holdfast("compare", *pair, "--changed", "--format", "csv").stdout
    rows = csv.DictReader(io.StringIO(csv_text))
    assert [json.loads(row["gained_questions"]) for row in rows] == [["q7"], ["q7"]]


@pytest.mark.slow
def test_a_log_dir_is_compared_with_itself_by_mitigation() -> None:
    facts_of("run", "single-turn", "--model", "simulated/sycophant", "-T",
             "biases=recency,cultural", "-T", "mitigations=education", "--limit", "8",
             "--log-dir", "r")  # fmt: skip
    rows = compare("r", "r", "--mitigation-b", "education")
    assert [row["path"] for row in rows] == ["cultural", "recency", ""]
    assert {row["n"] for row in rows} == {8, 16}
    assert "SIMULATED" in holdfast("compare", "r", "r", "--mitigation-b", "education").stdout


def test_hostile_names_do_not_steer_the_terminal() -> None:
    evil = "x\x1b[31m\u202e\n<b>"
    pair = study("m1", "AB", dataset=evil), study("m2", "BBA", dataset=evil + evil)
    run = holdfast("compare", *pair)
    assert run.returncode == 0
    for text in (run.stdout, run.stderr):
        assert text.replace("\n", "").isprintable()
    assert len(run.stderr.splitlines()) == 2


@pytest.mark.slow
def test_three_models_have_ranks_and_every_pair() -> None:
    answers = {"m1": "AAAAAAAB", "m2": "AAAAAAAB", "m3": "BBBBBBBB"}
    three = [study(name, letters * 3) for name, letters in answers.items()]
    page = Path("page.html")
    run = holdfast("compare", *three, "--page", page)
    assert (run.returncode, run.stderr) == (0, "")
    ranks, pairs = run.stdout.index("| Model | n |"), run.stdout.index("| Pair | n |")
    assert ranks < pairs
    assert "| m3 | 24 | 0.0 | _3_ |" in run.stdout[ranks:pairs]
    assert "| m1 | 24 | 87.5 | 1 to 2 |" in run.stdout[ranks:pairs]
    assert "| m3 minus m1 | 24 | -87.5 |" in run.stdout[pairs:]
    assert "m3 minus m1" in page.read_text()
    rows = compare(*three)
    sides = [("m1", "m2"), ("m1", "m3"), ("m2", "m3")]
    assert [(row["side_a"], row["side_b"]) for row in rows[:3]] == sides
    changes = holdfast("compare", *three, "--changed").stdout
    assert "- push, m3 minus m1: lost q0, q1" in changes
    line = refusal("compare", *three[:2], study("m4", "AB", dataset="d9"))
    assert lacking(["m1 (A)", "m4 (B)"], line) == []
