"""``holdfast compare``: real recordings against statsmodels, and all that can be wrong."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from tests.cli.test_biasmedqa import BIASES, MODELS, recordings
from tests.results.frames import alone, table, turn
from tests.studies import holdfast, holdfast_apart

from holdfast.results.turns import SCHEMA

Row = dict[str, Any]


def recorded_turns(shared: Path, model: str) -> pl.DataFrame:
    """The turns table that a run by the first character leaves of a model's recordings."""
    records = recordings(shared, model)
    first = pl.col("response").fill_null("").str.slice(0, 1)
    answer = pl.when(first.is_in(list("ABCDE"))).then(first)
    biased = pl.col("bias") != ""
    known = {
        "run": pl.lit(f"run of {model}"), "protocol": pl.lit("single-turn"),
        "protocol_version": pl.lit(1), "model": pl.lit(f"recorded/{model}.parquet"),
        "dataset": pl.lit("us_5_options_test"), "seed": pl.lit(42), "epoch": pl.lit(1),
        "arm": pl.when(biased).then(pl.lit("single-turn")).otherwise(pl.lit("baseline")),
        "turn": pl.lit(0), "technique": pl.col("bias"),
        "family": pl.when(biased).then(pl.lit("inc_letter")).otherwise(pl.lit("")),
        "answer": answer,
        "status": pl.when(answer.is_null()).then(pl.lit("none")).otherwise(pl.lit("parsed")),
        "correct": (answer == pl.col("gold")).fill_null(value=False),
    }  # fmt: skip
    own = records.with_columns(**known)
    assert own["correct"].equals(own["first_char_correct"].rename("correct"))
    absent = [pl.lit(None, SCHEMA[name]).alias(name) for name in set(SCHEMA) - set(own.columns)]
    return own.with_columns(absent).select(*SCHEMA).cast(SCHEMA)


@pytest.fixture(scope="module")
def turns(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Both models in one turns table."""
    path = tmp_path_factory.mktemp("recorded") / "turns.parquet"
    pl.concat([recorded_turns(shared, model) for model in MODELS]).write_parquet(path)
    return str(path)


def compared(*arguments: str) -> list[Row]:
    done = holdfast("compare", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    rows: list[Row] = json.loads(done.stdout)
    return rows


def by_statsmodels(a: pl.DataFrame, b: pl.DataFrame) -> tuple[list[tuple[int, int]], Any, Any]:
    """Counts, exact p-values and Holm's, bias by bias, from the recordings' own columns."""
    counts, found = [], []
    for bias in sorted(BIASES):
        one, other = (
            frame.filter(pl.col("bias") == bias).sort("index")["first_char_correct"].to_numpy()
            for frame in (a, b)
        )
        cells = [[int((one & other).sum()), int((one & ~other).sum())],
                 [int((~one & other).sum()), int((~one & ~other).sum())]]  # fmt: skip
        counts.append((cells[1][0], cells[0][1]))
        found.append(mcnemar(cells, exact=True).pvalue)
    return counts, np.array(found), multipletests(found, method="holm")[1]


def check(rows: list[Row], a: pl.DataFrame, b: pl.DataFrame) -> None:
    own = sorted((r for r in rows if r["arm"] == "single-turn"), key=lambda row: row["path"])
    assert [row["path"] for row in own] == sorted(BIASES)
    counts, p, adjusted = by_statsmodels(a, b)
    assert [(row["gained"], row["lost"]) for row in own] == counts
    assert [row["p_value"] for row in own] == pytest.approx(p, rel=1e-9)
    assert [row["p_adjusted"] for row in own] == pytest.approx(adjusted, rel=1e-9)
    assert all(row["n"] == 1273 for row in own)
    for row, bias in zip(own, sorted(BIASES), strict=True):
        shares = [f.filter(pl.col("bias") == bias)["first_char_correct"].mean() for f in (a, b)]
        assert [row["a"], row["b"]] == pytest.approx(shares)
        assert row["difference"] == pytest.approx(shares[1] - shares[0])  # type: ignore[operator]
        assert row["low"] < row["difference"] < row["high"]
        assert (len(row["gained_questions"]), len(row["lost_questions"])) == (
            row["gained"], row["lost"],
        )  # fmt: skip
    (average,) = (row for row in rows if row["arm"] == "family-average")
    assert average["difference"] == pytest.approx(np.mean([row["difference"] for row in own]))
    assert (average["n"], average["questions"]) == (7 * 1273, 1273)


@pytest.mark.parametrize("model", MODELS)
def test_whether_the_education_prompt_helped_bias_by_bias(
    model: str, shared: Path, turns: str
) -> None:
    name = f"recorded/{model}.parquet"
    rows = compared(
        turns, turns, "--model-a", name, "--model-b", name, "--mitigation-b", "education"
    )
    records = recordings(shared, model)
    plain, educated = (
        records.filter(pl.col("bias") != "", pl.col("mitigation") == mitigation)
        for mitigation in ("", "education")
    )
    assert len(rows) == 8
    check(rows, plain, educated)
    assert rows[0]["mitigation_b"] == "education"


def test_two_models_with_and_without_the_prompt(shared: Path, turns: str) -> None:
    a, b = (f"recorded/{model}.parquet" for model in MODELS)
    records = [recordings(shared, model) for model in MODELS]
    for mitigation in ("", "education"):
        under = ["--mitigation-a", mitigation, "--mitigation-b", mitigation] if mitigation else []
        rows = compared(turns, turns, "--model-a", a, "--model-b", b, *under)
        of_a, of_b = (
            one.filter(pl.col("bias") != "", pl.col("mitigation") == mitigation) for one in records
        )
        check(rows, of_a, of_b)
        # two models have first answers of their own
        assert (rows[0]["arm"], rows[0]["n"]) == ("baseline", 1273)


def study(folder: Path, name: str, answers: str, **others: Any) -> str:
    rows = [
        turn(f"q{number}", letter, path, run=name, model=name)
        for path in ("", "push")
        for number, letter in enumerate(answers)
    ]
    path = folder / f"{name}.parquet"
    table([row | others for row in rows]).write_parquet(path)
    return str(path)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    return study(tmp_path, "m1", "AAAAAAAB"), study(tmp_path, "m2", "BBBBBBBAA")


def test_words_and_table_on_the_terminal(pair: tuple[str, str]) -> None:
    done = holdfast("compare", *pair)
    assert done.returncode == 0
    assert done.stdout.startswith("A: m1, run m1, d1\n\nB: m2, run m2, d1\n\n")
    assert "| push | 8 | 87.5 | 12.5 | -75.0 |" in done.stdout
    # what is left out is told beside it
    told = "8 questions in common; skipped: 0 that only A has and 1 that only B has."
    assert told in done.stderr
    assert told not in done.stdout
    assert "q7" not in done.stdout


def test_changed_questions_are_listed_on_request(pair: tuple[str, str]) -> None:
    done = holdfast("compare", *pair, "--changed")
    assert "- push: gained q7; lost q0, q1, q2, q3, q4, q5, q6.\n" in done.stdout
    rows = csv.DictReader(
        io.StringIO(holdfast("compare", *pair, "--changed", "--format", "csv").stdout)
    )
    assert [json.loads(row["gained_questions"]) for row in rows] == [["q7"], ["q7"]]


def test_a_file_holds_the_notes_and_a_page_stands_beside_it(
    pair: tuple[str, str], tmp_path: Path
) -> None:
    page, file = tmp_path / "c.html", tmp_path / "c.md"
    done = holdfast("compare", *pair, "--page", page, "-o", file)
    assert (done.returncode, done.stdout) == (0, "")
    assert "- followup on d1: 8 questions in common" in file.read_text()
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "followup on d1: 8 questions in common" in text


@pytest.mark.slow
def test_a_log_dir_is_compared_with_itself_by_mitigation(tmp_path: Path) -> None:
    run = holdfast_apart(
        "run", "single-turn", "--model", "simulated/sycophant", "-T", "biases=recency,cultural",
        "-T", "mitigations=education", "--limit", "8", "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    log_dir = str(tmp_path / "r")
    rows = compared(log_dir, log_dir, "--mitigation-b", "education")
    assert [row["path"] for row in rows] == ["cultural", "recency", ""]
    assert {row["n"] for row in rows} == {8, 16}
    words = holdfast("compare", log_dir, log_dir, "--mitigation-b", "education").stdout
    assert "SIMULATED, not a measurement of a model: no mitigation and education." in words


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--model-a", "m3"], "--model-a: A has no model 'm3'. Known: m1."),
        (["--run-b", "mm2"], "--run-b: B has no run 'mm2'. Did you mean 'm2'?"),
        (["--protocol", "folowup"], "'folowup'. Did you mean 'followup'?"),
        (["--dataset", "d5"], "--dataset: no data set 'd5'."),
        (["--mitigation-b", "education"], "A has no protocol 'single-turn'. Known: followup."),
        (["--format", "svg"], "--format: unknown format 'svg'."),
        (["-o", "/no/such/folder/x"], "cannot be written"),
        (["--page", "/no/such/folder/x"], "cannot be written"),
    ],
)
def test_what_cannot_be_is_one_line(pair: tuple[str, str], more: list[str], message: str) -> None:
    done = holdfast("compare", *pair, *more)
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (2, "")
    assert last.startswith("holdfast: ")
    assert message in last


def test_sources_that_cannot_be_compared(pair: tuple[str, str], tmp_path: Path) -> None:
    a, _ = pair
    older, empty, single = (str(tmp_path / f"{name}.parquet") for name in ("old", "none", "one"))
    pl.read_parquet(a).drop("status").write_parquet(older)
    table([]).write_parquet(empty)
    table([alone("q1", "A")]).write_parquet(single)
    for other, message in (
        (older, "field 'status': is missing. Give a turns table written by this version"),
        (empty, "B has no turns. Finish the run first."),
        (single, "no protocol in common: A has followup, B has single-turn."),
        (a, "A and B are the same run. Choose two with --model-a and --model-b"),
        (str(tmp_path / "gone"), "no such log dir"),
    ):
        done = holdfast("compare", a, other)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert message in done.stderr


def test_hostile_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    evil = "x\x1b[31m\u202e\n<b>"
    a = study(tmp_path, "m1", "AB", dataset=evil)
    b = study(tmp_path, "m2", "BBA", dataset=evil + evil)
    done = holdfast("compare", a, b)
    assert done.returncode == 0
    for text in (done.stdout, done.stderr):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert all(line.startswith(("followup", "1 ")) for line in done.stderr.splitlines())


def test_one_path_against_another(turns: str) -> None:
    name = f"recorded/{next(iter(MODELS))}.parquet"
    paths = ("--model-a", name, "--model-b", name, "--paths", "recency", "cultural")
    (row,) = compared(turns, turns, *paths)
    assert (row["path_a"], row["path_b"], row["n"]) == ("recency", "cultural", 1273)
    said = holdfast("compare", turns, turns, *paths)
    assert "Right answers, cultural against recency: " in said.stdout
    wrong = holdfast("compare", turns, turns, *paths[:-1], "cultral")
    assert wrong.returncode == 2
    assert "--paths: B has no path or family 'cultral'. Did you mean 'cultural'?" in wrong.stderr


def test_three_models_with_ranks_first_and_then_every_pair(tmp_path: Path) -> None:
    three = [
        study(tmp_path, name, given * 3)
        for name, given in {"m1": "AAAAAAAB", "m2": "AAAAAAAB", "m3": "BBBBBBBB"}.items()
    ]
    page = tmp_path / "page.html"
    done = holdfast("compare", *three, "--page", page)
    assert (done.returncode, done.stderr) == (0, "")
    ranks, pairs = done.stdout.index("| Model | n |"), done.stdout.index("| Pair | n |")
    assert ranks < pairs
    assert "Right answers, push: 2 of 3 pairs distinguishable.\n" in done.stdout
    assert "| m3 | 24 | 0.0 | _3_ |" in done.stdout[ranks:pairs]
    assert "| m1 | 24 | 87.5 | 1 to 2 |" in done.stdout[ranks:pairs]
    assert "| m3 less m1 | 24 | -87.5 |" in done.stdout[pairs:]
    assert "m3 less m1" in page.read_text()
    rows = compared(*three)
    assert [(row["side_a"], row["side_b"]) for row in rows[:3]] == [
        ("m1", "m2"), ("m1", "m3"), ("m2", "m3"),
    ]  # fmt: skip
    changed = holdfast("compare", *three, "--changed").stdout
    assert "- push, m3 less m1: lost q0, q1" in changed
    other = study(tmp_path, "m4", "AB", dataset="d9")
    refused = holdfast("compare", *three[:2], other)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith("holdfast: m1 (A) and m4 (B): ")
