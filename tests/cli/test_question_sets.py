"""Several question sets in one command, and samples of them."""

import json
import os
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.studies import holdfast, holdfast_apart, question_rows, write_jsonl

from holdfast.questions.loading import load_questions
from holdfast.questions.sampling import shuffled

MODEL = ("--model", "simulated/sycophant")


def ran(*arguments: str | Path) -> dict[str, Any]:
    run = holdfast("run", *arguments, *MODEL, "--json")
    assert run.returncode == 0, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    return outcome


def planned(*arguments: str | Path) -> list[dict[str, Any]]:
    plan = holdfast("run", "--dry-run", *arguments, *MODEL, "--json")
    assert plan.returncode == 0, plan.stderr
    rows: list[dict[str, Any]] = json.loads(plan.stdout)
    return rows


def refused(command: str, *arguments: str | Path) -> str:
    """The one line that a refused command prints."""
    run = holdfast(command, *arguments, *MODEL)
    assert (run.returncode, run.stdout) == (2, ""), run.stdout + run.stderr
    (line,) = run.stderr.strip().splitlines()
    assert not Path("runs").exists()
    return line


def both(*sources: str | Path) -> list[str]:
    return [part for source in sources for part in ("--questions", str(source))]


@pytest.fixture
def sets(tmp_path: Path) -> list[str]:
    """Two files with the same ids; the first questions of one are those of the other too."""
    rows = question_rows(9)
    others = [row | {"stem": f"Elsewhere: {row['stem']}"} for row in rows[2:6]]
    return [write_jsonl(tmp_path / "first.jsonl", rows[:5]),
            write_jsonl(tmp_path / "second.jsonl", [*rows[:2], *others])]  # fmt: skip


def datasets(rows: list[dict[str, Any]]) -> set[str]:
    return {row["dataset"] for row in rows}


# --- several sets ---


def test_two_sets_make_one_table_with_both(sets: list[str], tmp_path: Path) -> None:
    outcome = ran("stick-or-switch", *both(*sets), "--log-dir", tmp_path / "r")
    for measure in ("survival", "tax", "flexibility"):
        assert datasets(outcome[measure]) <= {"first", "second"}, measure
    asked = {(row["dataset"], row["arm"]): row["n"] for row in outcome["survival"]}
    assert asked == {("first", "positive"): 5, ("first", "negative"): 5,
                     ("second", "positive"): 6, ("second", "negative"): 6}  # fmt: skip
    assert datasets(outcome["tax"]) == {"first", "second"}
    turns = pl.read_parquet(outcome["turns"])
    questions = turns.group_by("dataset").agg(pl.col("question").n_unique())
    assert dict(questions.iter_rows()) == {"first": 5, "second": 6}
    assert turns["run"].n_unique() == 2
    # q0 and q1 are the same questions in both sets, q2 has but its id in common
    prompts = turns.filter(pl.col("arm") == "single-shot").group_by("question", maintain_order=True)
    distinct = {str(name): own["prompt"].n_unique() for (name,), own in prompts}
    assert distinct == {"q0": 1, "q1": 1, "q2": 2, "q3": 2, "q4": 2, "q5": 1}
    again = ran("stick-or-switch", *both(*sets), "--log-dir", tmp_path / "r")
    assert (again["calls"], again["survival"]) == (0, outcome["survival"])


@pytest.mark.slow
def test_each_set_gives_what_it_gives_alone(sets: list[str], tmp_path: Path) -> None:
    together = pl.read_parquet(
        ran("stick-or-switch", *both(*sets), "--log-dir", tmp_path / "r")["turns"]
    )
    for name, source in zip(("first", "second"), sets, strict=True):
        outcome = ran("stick-or-switch", *both(source), "--log-dir", tmp_path / name)
        alone = pl.read_parquet(outcome["turns"])
        columns = ["run", "question", "arm", "turn", "shown", "answer", "prompt", "reply"]
        own = together.filter(pl.col("dataset") == name)
        assert own.select(columns).equals(alone.select(columns))


def test_the_summary_has_a_table_for_each_set_and_counts_what_is_left_out_of_both(
    tmp_path: Path,
) -> None:
    files = []
    for name, stem in (("first", "One"), ("second", "Two")):
        rows = [row | {"stem": f"{stem}: {row['stem']}"} for row in question_rows(3)]
        rows[0]["options"]["D"] = "None of the above"
        files.append(write_jsonl(tmp_path / f"{name}.jsonl", rows))
    run = holdfast("run", "stick-or-switch", *both(*files), *MODEL, "--log-dir", tmp_path / "r")
    assert run.returncode == 0, run.stderr
    for name in ("first", "second"):
        assert f"simulated/sycophant on {name}: stick-or-switch" in run.stdout
    assert "negative: skipped for 2 questions" in run.stdout


def test_a_plan_has_a_row_for_each_protocol_and_set(sets: list[str], tmp_path: Path) -> None:
    rows = planned("stick-or-switch", "single-turn", *both(*sets))
    assert [(row["protocol"], row["dataset"], row["questions"]) for row in rows] == [
        ("stick-or-switch", "first", 5), ("stick-or-switch", "second", 6),
        ("single-turn", "first", 5), ("single-turn", "second", 6),
    ]  # fmt: skip
    outcome = ran("stick-or-switch", "single-turn", *both(*sets), "--log-dir", tmp_path / "r")
    least, most = (sum(row[name] for row in rows) for name in ("at_least", "generations"))
    assert outcome["calls"] <= most
    # the questions that both sets have are asked once
    assert outcome["calls"] + outcome["cached"] >= least


def test_a_set_that_is_named_twice_is_asked_once(sets: list[str]) -> None:
    assert len(planned("stick-or-switch", *both(sets[0], sets[0]))) == 1


@pytest.mark.parametrize("way", [(), ("--dry-run",)])
def test_sets_that_the_tables_cannot_tell_apart_are_refused(
    way: tuple[str, ...], sets: list[str], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    same = write_jsonl(tmp_path / "other" / "first.jsonl", question_rows(2))
    line = refused("run", *way, "stick-or-switch", *both(sets[0], same))
    assert sets[0] in line
    assert same in line
    assert "both be called 'first'" in line
    assert "Rename a file" in line


def test_a_bad_file_among_several_is_refused_before_anything_is_asked(
    sets: list[str], tmp_path: Path
) -> None:
    bad = write_jsonl(tmp_path / "bad.jsonl", [question_rows(1)[0] | {"gold": "X"}])
    line = refused("run", "stick-or-switch", *both(sets[0], bad))
    assert line.startswith(f"holdfast: {bad}")
    assert "row 1" in line


@pytest.mark.slow
def test_medqa_and_medmcqa_in_one_command(shared: Path, tmp_path: Path) -> None:
    sources = [shared / "data" / "medqa" / "us_4_options_test.jsonl",
               shared / "data" / "medmcqa" / "dev.jsonl"]  # fmt: skip
    outcome = ran(
        "stick-or-switch", *both(*sources), "--shuffle", "5", "--limit", "25",
        "--log-dir", tmp_path / "r",
    )  # fmt: skip
    names = {"us_4_options_test", "dev"}
    for measure in ("survival", "tax", "flexibility"):
        assert datasets(outcome[measure]) == names
    assert outcome["questions_left_out"] == {"dev": 21}
    for format_of, n in (("survival", 2 * 2 * 3), ("tax", 2 * 6)):
        assert len(outcome[format_of]) == n


# --- samples ---


@pytest.mark.slow
def test_a_sample_is_the_beginning_of_a_seeded_order_and_grows(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(30))
    expected = [q.id for q in shuffled(load_questions(source), 3).first(8).questions]
    assert expected != [f"q{n}" for n in range(8)]
    command = ["stick-or-switch", "--questions", source, "--shuffle", "3", "--log-dir", "r"]
    first = ran(*command, "--limit", "5")
    few = pl.read_parquet(first["turns"])
    assert few["question"].unique(maintain_order=True).to_list() == expected[:5]
    more = ran(*command, "--limit", "8")
    turns = pl.read_parquet(more["turns"])
    assert turns["question"].unique(maintain_order=True).to_list() == expected
    # what is added is all that is asked
    assert turns.height == few.height + more["calls"]
    (row,) = planned("stick-or-switch", "--questions", source, "--shuffle", "3", "--limit", "8")
    assert row["at_least"] <= turns.height <= row["generations"]
    other = ran(*command[:-2], "--shuffle", "4", "--limit", "8", "--log-dir", "s")
    assert set(pl.read_parquet(other["turns"])["question"]) != set(expected)


def test_a_stratified_sample_keeps_the_shares(tmp_path: Path) -> None:
    # one in three is of step 1
    rows = [row | {"step": ("step1", "step2&3", "step2&3")[n % 3]}
            for n, row in enumerate(question_rows(30))]  # fmt: skip
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    sample = ("--shuffle", "1", "-T", "stratify=step", "--limit", "9")
    outcome = ran("stick-or-switch", "--questions", source, *sample)
    asked = pl.read_parquet(outcome["turns"]).unique("question")
    assert dict(asked.group_by("step").len().iter_rows()) == {"step1": 3, "step2&3": 6}
    (row,) = planned("stick-or-switch", "--questions", source, *sample)
    assert row["questions"] == 9


def test_contexts_are_built_for_the_sample_that_is_asked(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(12))
    sample = ("--questions", source, "--shuffle", "2", "--limit", "4")
    built = holdfast(
        "generate", "contexts", "--model", "simulated/generator", *sample,
        "--stratify", "step", "-o", "c.jsonl", "--log-dir", "made",
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    texts = {json.loads(line)["question"] for line in Path("c.jsonl").open()}
    outcome = ran("followup", *sample, "-T", "stratify=step", "-T", "contexts=c.jsonl")
    turns = pl.read_parquet(outcome["turns"])
    assert texts == set(turns["question"]) != {f"q{n}" for n in range(4)}
    assert outcome["left_out"] == {}
    assert turns.group_by("question").len()["len"].unique().to_list() == [17]


BAD = {
    "strata without a sample": (["-T", "stratify=step"], "Add --shuffle SEED"),
    "no such label": (["--shuffle", "1", "-T", "stratify=stp"], "Did you mean 'step'?"),
    "no question has it": (["--shuffle", "1", "-T", "stratify=system"], "has a system"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("way", [(), ("--dry-run",)])
def test_a_sample_that_cannot_be_drawn_is_refused(
    way: tuple[str, ...], case: str, sets: list[str]
) -> None:
    arguments, expected = BAD[case]
    assert expected in refused("run", *way, "stick-or-switch", "--questions", sets[0], *arguments)


def test_a_seed_that_is_no_number_is_refused(sets: list[str]) -> None:
    run = holdfast("run", "stick-or-switch", "--questions", sets[0], *MODEL, "--shuffle", "x")
    assert run.returncode == 2
    assert "--shuffle" in run.stderr


@pytest.mark.parametrize(
    ("source", "remedy"),
    [
        ("medqa", "give a copy: medqa=FILE_OR_FOLDER"),
        ("hf:own/set@0123abc", "give a copy: a file, or hf:FOLDER"),
    ],
)
@pytest.mark.rest_slow
def test_without_a_network_a_hub_name_is_refused_at_once_with_the_local_way(
    source: str, remedy: str, tmp_path: Path
) -> None:
    env = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hub")}
    began = time.monotonic()
    run = holdfast_apart(
        "run", "followup", "--questions", source, *MODEL, "--log-dir", tmp_path / "r", env=env
    )
    assert time.monotonic() - began < 25  # of which most is loading the library
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.strip().splitlines()
    assert "the Hugging Face Hub cannot be reached" in line
    assert remedy in line
    assert not (tmp_path / "r").exists()
