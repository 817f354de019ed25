"""Several question sets in one command, and samples of them."""

import os
import time
from pathlib import Path

import polars as pl
import pytest
from tests.cli.commands import Facts, facts_of, json_lines, lacking, plan_of, study_of
from tests.studies import holdfast, holdfast_apart, question_rows, write_jsonl

from holdfast.questions.loading import load_questions
from holdfast.questions.sampling import shuffled

MODEL = ("--model", "simulated/sycophant")
STICK = ("stick-or-switch", *MODEL)


def named(*sources: str | Path) -> list[str]:
    return [part for source in sources for part in ("--questions", str(source))]


@pytest.fixture
def sets() -> list[str]:
    """Two files with the same ids; the first questions of one are those of the other too."""
    rows = question_rows(9)
    elsewhere = [row | {"stem": f"Elsewhere: {row['stem']}"} for row in rows[2:6]]
    return [write_jsonl(Path("first.jsonl"), rows[:5]),
            write_jsonl(Path("second.jsonl"), [*rows[:2], *elsewhere])]  # fmt: skip


def datasets(rows: list[Facts]) -> set[str]:
    return {row["dataset"] for row in rows}


@pytest.mark.slow
def test_two_sets_make_one_table(sets: list[str]) -> None:
    study = (*STICK, *named(*sets), "--log-dir", "r")
    outcome, turns = study_of(*study)
    for measure in ("survival", "tax", "flexibility"):
        assert datasets(outcome[measure]) <= {"first", "second"}, measure
    numbers = {(row["dataset"], row["arm"]): row["n"] for row in outcome["survival"]}
    arms = ("positive", "negative")
    assert numbers == {(name, arm): n for name, n in (("first", 5), ("second", 6)) for arm in arms}
    assert turns["run"].n_unique() == 2
    # q0 and q1 are the same questions in both sets, q2 has but its id in common
    prompts = turns.filter(arm="single-shot").group_by("question").agg(pl.col("prompt").n_unique())
    assert dict(prompts.sort("question").iter_rows()) == {
        "q0": 1, "q1": 1, "q2": 2, "q3": 2, "q4": 2, "q5": 1,
    }  # fmt: skip
    again, _ = study_of(*study)
    assert (again["calls"], again["survival"]) == (0, outcome["survival"])
    # each set gives what it gives alone
    columns = ["run", "question", "arm", "turn", "shown", "answer", "prompt", "reply"]
    for name, source in zip(("first", "second"), sets, strict=True):
        _, alone = study_of(*STICK, *named(source), "--log-dir", name)
        assert turns.filter(dataset=name).select(columns).equals(alone.select(columns))


def test_omissions_of_two_sets_are_counted_together() -> None:
    files = []
    for name, stem in (("first", "One"), ("second", "Two")):
        rows = [row | {"stem": f"{stem}: {row['stem']}"} for row in question_rows(3)]
        rows[0]["options"]["D"] = "None of the above"
        files.append(write_jsonl(Path(f"{name}.jsonl"), rows))
    run = holdfast("run", *STICK, *named(*files))
    assert run.returncode == 0, run.stderr
    words = [f"simulated/sycophant on {name}: stick-or-switch" for name in ("first", "second")]
    assert lacking([*words, "negative: skipped for 2 questions"], run.stdout) == []


def test_a_plan_has_a_row_for_each_protocol_and_set(sets: list[str]) -> None:
    study = ("stick-or-switch", "single-turn", *MODEL, *named(*sets, sets[0]))
    rows = plan_of(*study)
    assert [(row["protocol"], row["dataset"], row["questions"]) for row in rows] == [
        ("stick-or-switch", "first", 5), ("stick-or-switch", "second", 6),
        ("single-turn", "first", 5), ("single-turn", "second", 6),
    ]  # fmt: skip
    outcome, _ = study_of(*study)
    minimum, maximum = (sum(row[name] for row in rows) for name in ("at_least", "generations"))
    assert outcome["calls"] <= maximum
    # the questions that both sets have are asked once
    assert outcome["calls"] + outcome["cached"] >= minimum


@pytest.mark.slow
def test_medqa_and_medmcqa_run_in_one_command(resources: Path) -> None:
    sources = [resources / "data" / "medqa" / "us_4_options_test.jsonl",
               resources / "data" / "medmcqa" / "dev.jsonl"]  # fmt: skip
    outcome, _ = study_of(*STICK, *named(*sources), "--shuffle", "5", "--limit", "25")
    for measure, n in (("survival", 2 * 2 * 3), ("tax", 2 * 6), ("flexibility", 2)):
        assert datasets(outcome[measure]) == {"us_4_options_test", "dev"}
        assert len(outcome[measure]) == n
    assert outcome["questions_left_out"] == {"dev": 21}


@pytest.mark.slow
def test_a_sample_begins_a_seeded_order_and_grows() -> None:
    source = write_jsonl(Path("q.jsonl"), question_rows(30))
    ids = [q.id for q in shuffled(load_questions(source), 3).first(8).questions]
    assert ids != [f"q{n}" for n in range(8)]
    study = (*STICK, "--questions", source, "--shuffle", "3", "--limit")
    _, sample = study_of(*study, "5")
    assert sample["question"].unique(maintain_order=True).to_list() == ids[:5]
    more, turns = study_of(*study, "8")
    assert turns["question"].unique(maintain_order=True).to_list() == ids
    # what is added is all that is asked
    assert turns.height == sample.height + more["calls"]
    (row,) = plan_of(*study, "8")
    assert row["at_least"] <= turns.height <= row["generations"]
    _, drawn_anew = study_of(*STICK, "--questions", source, "--shuffle", "4", "--limit", "8",
                             "--log-dir", "s")  # fmt: skip
    assert set(drawn_anew["question"]) != set(ids)


def test_a_stratified_sample_keeps_the_shares() -> None:
    # one in three is of step 1
    rows = [row | {"step": ("step1", "step2&3", "step2&3")[n % 3]}
            for n, row in enumerate(question_rows(30))]  # fmt: skip
    source = write_jsonl(Path("q.jsonl"), rows)
    study = (*STICK, "--questions", source, "--shuffle", "1", "-T", "stratify=step", "--limit", "9")
    _, turns = study_of(*study)
    steps = turns.unique("question").group_by("step").len()
    assert dict(steps.iter_rows()) == {"step1": 3, "step2&3": 6}
    (row,) = plan_of(*study)
    assert row["questions"] == 9


def test_contexts_are_built_for_the_sample() -> None:
    source = write_jsonl(Path("q.jsonl"), question_rows(12))
    sample = ("--questions", source, "--shuffle", "2", "--limit", "4")
    facts_of("generate", "contexts", "--model", "simulated/generator", *sample,
             "--stratify", "step", "-o", "c.jsonl", "--log-dir", "made")  # fmt: skip
    texts = {row["question"] for row in json_lines(Path("c.jsonl"))}
    outcome, turns = study_of(
        "followup", *MODEL, *sample, "-T", "stratify=step", "-T", "contexts=c.jsonl"
    )
    assert texts == set(turns["question"]) != {f"q{n}" for n in range(4)}
    assert outcome["left_out"] == {}
    assert turns.group_by("question").len()["len"].unique().to_list() == [17]


@pytest.mark.parametrize(
    ("source", "remedy"), [("medqa", "medqa=FILE_OR_FOLDER"), ("hf:own/set@0123abc", "hf:FOLDER")]
)
@pytest.mark.slow
def test_without_a_network_a_hub_name_is_refused_at_once(
    source: str, remedy: str, tmp_path: Path
) -> None:
    env = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hub")}
    start = time.monotonic()
    command = ("run", "followup", "--questions", source, *MODEL, "--log-dir", tmp_path / "r")
    run = holdfast_apart(*command, env=env)
    assert time.monotonic() - start < 25  # of which most is loading the library
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.strip().splitlines()
    assert remedy in line
    assert not (tmp_path / "r").exists()
