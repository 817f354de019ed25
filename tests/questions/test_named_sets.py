"""Published question sets by name, from copies in their published layout."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.questions import layouts
from tests.studies import holdfast, write_jsonl

from holdfast.challenges.contexts import load_contexts
from holdfast.errors import InputError
from holdfast.questions.loading import QuestionSet, load_questions
from holdfast.questions.sets import named_sets
from holdfast.results.turns import turns_table


def copy(name: str, rows: list[dict[str, Any]], part: str = "") -> str:
    """A source that reads rows instead of the Hub."""
    file = write_jsonl(Path(f"{name}.jsonl").resolve(), rows)
    return f"{name}{':' if part else ''}{part}={file}"


def texts(questions: QuestionSet, id: str) -> tuple[str | None, dict[str, str]]:
    """The suggested option and the contexts of a question."""
    context = load_contexts("auto", questions, 42).by_question[id]
    return context.second_best, dict(context.texts)


def refusal(source: str) -> str:
    with pytest.raises(InputError) as caught:
        load_questions(source)
    line = str(caught.value)
    assert "\n" not in line
    return line


# --- layouts ---


def test_medqa_followup_has_contexts_and_their_option() -> None:
    question_set = load_questions(
        copy("medqa-followup", [layouts.medqa_followup(n) for n in range(4)])
    )
    assert (question_set.name, question_set.left_out) == ("medqa-followup", ())
    assert [(q.id, q.gold, q.step, q.system) for q in question_set.questions] == [
        (f"000{n}", "B", "step1", "Respiratory System") for n in range(4)
    ]
    assert [texts(question_set, f"000{n}")[0] for n in range(4)] == ["D", "C", "A", "D"]
    assert texts(question_set, "0001")[1] == {
        "misleading_context": "The misleading text 1.",
        "alternative_context": "The alternative text 1.",
        "edge_case_context": "The edge_case text 1.",
    }
    # a context for the right option suggests none
    row = layouts.medqa_followup(0) | {"target_answer_misleading_context": "B"}
    assert texts(load_questions(copy("medqa-followup", [row])), "0000")[0] is None


@pytest.mark.parametrize(("numeric", "inside"), [(False, False), (True, False), (False, True)])
def test_medmisbench_has_a_statement_for_every_option(numeric: bool, inside: bool) -> None:
    rows = [layouts.medmisbench(n, numeric=numeric, inside=inside) for n in range(40)]
    question_set = load_questions(copy("medmisbench", rows, "medmisqa"))
    assert question_set.name == "medmisbench-MEDMISQA"
    first = question_set.questions[0]
    assert first.stem.endswith("best?")
    assert (first.id, first.gold, list(first.options.values())) == ("q0", "B", layouts.TEXTS)
    assert (first.subject, first.specialty) == ("exception poisoning", "authority")
    letters = set()
    for n in range(40):
        letter, context = texts(question_set, f"q{n}")
        assert letter is not None
        letters.add(letter)
        assert context == {
            "misleading_context": f"Statement {letter.lower()} of {n}.",
            "supporting_context": f"Statement b of {n}.",
        }
    assert letters == {"A", "C", "D"}


def test_the_parts_of_a_folder_are_one_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package 'datasets' (extra hf)")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "MedMisBench"
    folder.mkdir()
    parts = named_sets()["medmisbench"].parts
    configs = "\n".join(
        f"- config_name: {name}\n  data_files:\n  - split: {name}\n    path: {name}.jsonl"
        for name in parts
    )
    (folder / "README.md").write_text(f"---\nconfigs:\n{configs}\n---\n")
    for place, name in enumerate(parts):
        write_jsonl(folder / f"{name}.jsonl", [layouts.medmisbench(n) for n in range(place + 1)])
    question_set = load_questions(f"medmisbench={folder}")
    assert len(question_set.questions) == 1 + 2 + 3 + 4 + 5
    assert [q.id for q in question_set.questions][:3] == [
        "MEDMISQA-q0",
        "MEDMISMCQA-q0",
        "MEDMISMCQA-q1",
    ]
    assert len(load_questions(f"medmisbench:MEDMISHLE={folder}").questions) == 5


def test_whoflips_keeps_health_subjects_and_one_argument_a_question() -> None:
    rows = [
        layouts.whoflips(1),
        layouts.whoflips(1, maker="qwen3.5-9b"),
        layouts.whoflips(2, "Human Aging"),
        layouts.whoflips(3, "abstract_algebra"),
        layouts.whoflips(4, coercion_text="I_AM_WEAK"),
    ]
    question_set = load_questions(copy("whoflips", rows))
    assert [q.id for q in question_set.questions] == ["virology-1", "Human Aging-2"]
    assert texts(question_set, "virology-1") == (
        None,
        {"misleading_context": "gpt-5.1 says that codeine is best in case 1."},
    )
    by_maker = load_questions(copy("whoflips", rows, "self_mmlu/qwen3.5-9b"))
    assert by_maker.name == "whoflips-self_mmlu-qwen3.5-9b"
    assert texts(by_maker, "virology-1")[1]["misleading_context"].startswith("qwen3.5-9b says")
    line = refusal(copy("whoflips", rows, "self_mmlu/qwen3.5-9"))
    assert "contains no argument by 'qwen3.5-9'. Did you mean 'qwen3.5-9b'?" in line


def test_sycobench_has_bare_options_and_suggests_the_first_wrong_one() -> None:
    question_set = load_questions(copy("sycobench-600", [layouts.sycobench(n) for n in range(2)]))
    assert [(q.gold, list(q.options.values())) for q in question_set.questions] == [
        ("A", layouts.TEXTS), ("B", layouts.TEXTS)
    ]  # fmt: skip
    assert [texts(question_set, f"s00{n}")[0] for n in range(2)] == ["B", "A"]
    assert question_set.techniques == "sycobench-600"


def test_mmlu_and_medxpertqa_are_loaded() -> None:
    question_set = load_questions(copy("mmlu", [layouts.mmlu(n) for n in range(4)], "anatomy"))
    assert [(q.id, q.gold, q.subject) for q in question_set.questions] == [
        (f"000{n}", letter, "anatomy") for n, letter in enumerate("ABCD")
    ]
    question_set = load_questions(copy("medxpertqa", [layouts.medxpertqa(1)]))
    (question,) = question_set.questions
    assert (question.stem, question.gold, len(question.options)) == (
        layouts.STEM.format(n=31),
        "J",
        10,
    )


def test_medmcqa_is_counted_from_0_on_the_hub_and_from_1_by_its_authors() -> None:
    rows = [layouts.medmcqa(n) for n in range(8)]
    question_set = load_questions(copy("medmcqa", rows))
    assert [q.gold for q in question_set.questions] == list("ABCDABCD")
    authors = [row | {"cop": row["cop"] + 1} for row in rows]
    assert load_questions(copy("medmcqa", authors)).questions == question_set.questions
    line = refusal(copy("medmcqa", [*rows[:4], authors[7]]))
    assert "row 5, field 'cop': 4 is not an option: counted from 0" in line


# --- refusals ---


@pytest.mark.parametrize(("name", "column"), [
    ("medqa-followup", "edge_case_context"), ("medmisbench", "injecta"),
    ("whoflips", "coercion_text"), ("sycobench-600", "correct"), ("mmlu", "choices"),
    ("medxpertqa", "label"),
])  # fmt: skip
def test_a_missing_column_is_named_with_the_columns_of_the_set(name: str, column: str) -> None:
    row = dict(getattr(layouts, name.replace("-600", "").replace("-", "_"))(1))
    del row[column]
    part = next(iter(named_sets()[name].parts))
    line = refusal(copy(name, [row], part))
    assert f"row 1, field '{column}': is missing, but {name} has the columns " in line
    assert all(expected_column in line for expected_column in named_sets()[name].columns)


def test_a_bad_row_of_a_published_set_is_left_out_and_counted() -> None:
    rows = [layouts.mmlu(n) for n in range(12)]
    rows[1]["choices"] = ["x", "x", "y", "z"]
    question_set = load_questions(copy("mmlu", rows, "anatomy"))
    assert [q.id for q in question_set.questions] == [f"{n:04d}" for n in range(12) if n != 1]
    assert [(problem.row, problem.message) for problem in question_set.left_out] == [
        (2, "options A and B have the same text")
    ]
    line = refusal(copy("mmlu", rows[1:9], "anatomy"))
    assert "row 1, field 'options': options A and B have the same text (and 0 more rows)" in line
    assert "The layout of the set differs from the published layout." in line


@pytest.mark.parametrize("name", [name for name, entry in named_sets().items() if entry.columns])
def test_a_value_of_another_type_is_a_bad_row(name: str) -> None:
    make = getattr(layouts, name.replace("-600", "").replace("-", "_"))
    part = next(iter(named_sets()[name].parts))
    # a subject decides whether a row is of the set
    columns = [column for column in named_sets()[name].columns if column != "subject"]
    values: list[Any] = [None, 3, 2.5, "x", [], [1], {}, {"A": 1}, True, "\ud800"]
    for column, value in product(columns, values):
        rows = [make(n) for n in range(20)]
        rows[3] |= {column: value}
        question_set = load_questions(copy(name, rows, part))
        assert len(question_set.questions) + len(question_set.left_out) == 20
        assert {problem.row for problem in question_set.left_out} <= {4}
        load_contexts("auto", question_set, 42)


def test_a_set_without_a_confirmed_revision_is_refused() -> None:
    assert "Pin one: medmisbench@COMMIT, or give a copy" in refusal("medmisbench")
    assert "Did you mean 'MEDMISQA'" in refusal("medmisbench:MEDMISQAA")
    assert "Name the part: mmlu:anatomy=" in refusal("mmlu=anatomy.jsonl")


def test_the_hub_is_asked_for_a_named_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package 'datasets' (extra hf)")
    calls = []

    def load_dataset(*names: str, revision: str, split: str) -> list[dict[str, Any]]:
        calls.append((*names, revision, split))
        return [layouts.medmisbench(1)]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    load_questions("medmisbench:medmishle@abc")
    load_questions("medmisbench@abc")
    assert calls[0] == ("HongjianZhou/MedMisBench", "MEDMISHLE", "abc", "MEDMISHLE")
    assert [call[1] for call in calls[1:]] == list(named_sets()["medmisbench"].parts)


def test_the_list_names_source_licence_and_citation() -> None:
    output = holdfast("list", "questions")
    assert output.returncode == 0, output.stderr
    for name, entry in named_sets().items():
        assert f"{name}: {entry.questions:,} questions." in output.stdout
        assert f"licence: {entry.licence}; cite: {entry.citation}" in output.stdout
        assert re.fullmatch(r"[0-9a-f]{40}|", entry.revision)


# --- studies ---


def run_study(*arguments: str) -> list[tuple[str, str]]:
    """Arms and paths of a study of a simulated model."""
    run = holdfast("run", *arguments, "--model", "simulated/sycophant", "--log-dir", "runs")
    assert run.returncode == 0, run.stderr
    turns = turns_table(["runs"])
    return turns.select("arm", "path").unique().sort("arm", "path").rows()


@pytest.mark.parametrize("name", list(named_sets()))
@pytest.mark.rest_slow
def test_a_study_runs_on_a_copy_of_every_set(name: str) -> None:
    make = getattr(layouts, name.replace("-600", "").replace("-", "_"))
    parts = list(named_sets()[name].parts)
    source = copy(name, [make(n) for n in range(4)], parts[0] if len(parts) > 1 else "")
    paths = run_study("followup", "--questions", source, "-T", "techniques=authority-prior")
    assert ("followup", "authority-prior") in paths
    turns = turns_table(["runs"])
    assert turns["question"].n_unique() == 4
    assert turns.filter(pl.col("status") == "error").is_empty()


def test_medqa_followup_asks_all_fourteen_techniques_without_a_generator() -> None:
    source = copy("medqa-followup", [layouts.medqa_followup(n) for n in range(3)])
    paths = {
        path for arm, path in run_study("followup", "--questions", source) if arm == "followup"
    }
    assert len(paths) == 14
    table = holdfast("table", "runs", "--compare-with", "paper")
    assert "[published]" in table.stdout


def test_medmisbench_puts_one_statement_and_all() -> None:
    source = copy("medmisbench", [layouts.medmisbench(n) for n in range(2)], "medmisqa")
    paths = run_study("single-turn", "--questions", source, "-T", "biases=none")
    assert ("single-turn", "type1") in paths
    assert ("single-turn", "type2") in paths
    turns = turns_table(["runs"]).filter(question="q1")
    ((prompt, letter),) = turns.filter(path="type1").select("prompt", "suggested").rows()
    assert prompt.startswith(f"Additional Clinical Context:\nStatement {letter.lower()} of 1.\n\n")
    (prompt,) = turns.filter(path="type2")["prompt"]
    statements = "\n".join(f"Statement {letter} of 1." for letter in "abcd")
    assert prompt.startswith(f"Additional Clinical Context:\n{statements}\n\n")
    (plain,) = turns.filter(arm="baseline")["prompt"]
    assert prompt.endswith(plain)
    table = holdfast("table", "runs", "--table", "single-turn", "--compare-with", "medmisbench")
    assert table.returncode == 0, table.stderr
    assert "all models [published]" in table.stdout
    paths = run_study("followup", "--questions", source, "-T", "techniques=context")
    assert ("followup", "misleading-context") in paths


def test_whoflips_attributes_its_argument_three_ways() -> None:
    source = copy("whoflips", [layouts.whoflips(n) for n in range(3)])
    paths = run_study("followup", "--questions", source, "-T", "techniques=argument")
    assert {path for arm, path in paths if arm == "followup"} == {
        "argument-blind",
        "argument-self",
        "argument-other",
    }
    table = holdfast(
        "table", "runs", "--table", "flips", "--compare-with", "whoflips", "--format", "csv"
    )
    assert "GPT-5.1 [published],whoflips" in table.stdout


def test_sycobench_has_three_pressures_and_a_matched_correction() -> None:
    source = copy("sycobench-600", [layouts.sycobench(n) for n in range(8)])
    options = ("-T", "techniques=sycobench", "-T", "suggest=second-best", "-T", "corrections=true")
    paths = run_study("followup", "--questions", source, *options)
    pressures = ("doubt", "authority", "suggest")
    assert {path for arm, path in paths if arm == "followup"} == {
        f"sycobench-{kind}-{n}" for kind in pressures for n in (1, 2, 3)
    }
    turns = turns_table(["runs"])
    suggestions = turns.filter(path="sycobench-suggest-1").select("gold", "suggested").unique()
    assert suggestions.sort("gold").rows() == [("A", "B"), ("B", "A")]
    corrections = turns.filter(arm="correction", technique="sycobench-suggest-2")
    assert corrections.height > 0
    for prompt, gold in corrections.select("prompt", "gold").rows():
        assert prompt.startswith(f"I'm confident the correct answer is {gold}. Reconsider")
    table = holdfast("table", "runs", "--table", "flips", "--compare-with", "sycobench-600")
    assert "all pressures" in table.stdout
