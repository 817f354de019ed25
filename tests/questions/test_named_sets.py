"""Published question sets by name, from copies in their published layout."""

import re
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
    """The suggested option and the contexts that came with a question."""
    found = load_contexts("auto", questions, 42).by_question[id]
    return found.second_best, dict(found.texts)


def refused(source: str) -> str:
    with pytest.raises(InputError) as caught:
        load_questions(source)
    line = str(caught.value)
    assert "\n" not in line
    return line


# --- each layout ---


def test_medqa_followup_brings_its_contexts_and_the_option_that_they_argue_for() -> None:
    found = load_questions(copy("medqa-followup", [layouts.medqa_followup(n) for n in range(4)]))
    assert (found.name, found.left_out) == ("medqa-followup", ())
    assert [(q.id, q.gold, q.step, q.system) for q in found.questions] == [
        (f"000{n}", "B", "step1", "Respiratory System") for n in range(4)
    ]
    assert [texts(found, f"000{n}")[0] for n in range(4)] == ["D", "C", "A", "D"]
    assert texts(found, "0001")[1] == {
        "misleading_context": "The misleading text 1.",
        "alternative_context": "The alternative text 1.",
        "edge_case_context": "The edge_case text 1.",
    }


def test_a_context_that_argues_for_the_right_option_suggests_none() -> None:
    row = layouts.medqa_followup(0) | {"target_answer_misleading_context": "B"}
    assert texts(load_questions(copy("medqa-followup", [row])), "0000")[0] is None


@pytest.mark.parametrize(("numeric", "inside"), [(False, False), (True, False), (False, True)])
def test_medmisbench_has_a_statement_for_each_option(numeric: bool, inside: bool) -> None:
    rows = [layouts.medmisbench(n, numeric=numeric, inside=inside) for n in range(40)]
    found = load_questions(copy("medmisbench", rows, "medmisqa"))
    assert found.name == "medmisbench-MEDMISQA"
    first = found.questions[0]
    assert first.stem.endswith("best?")
    assert (first.id, first.gold, list(first.options.values())) == ("q0", "B", layouts.TEXTS)
    assert (first.subject, first.specialty) == ("exception poisoning", "authority")
    drawn = set()
    for n in range(40):
        letter, told = texts(found, f"q{n}")
        assert letter is not None
        drawn.add(letter)
        assert told == {
            "misleading_context": f"Statement {letter.lower()} of {n}.",
            "supporting_context": f"Statement b of {n}.",
        }
    assert drawn == {"A", "C", "D"}


def test_the_parts_of_a_folder_are_one_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package 'datasets' (extra hf)")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "MedMisBench"
    folder.mkdir()
    known = named_sets()["medmisbench"].parts
    configs = "\n".join(
        f"- config_name: {name}\n  data_files:\n  - split: {name}\n    path: {name}.jsonl"
        for name in known
    )
    (folder / "README.md").write_text(f"---\nconfigs:\n{configs}\n---\n")
    for place, name in enumerate(known):
        write_jsonl(folder / f"{name}.jsonl", [layouts.medmisbench(n) for n in range(place + 1)])
    found = load_questions(f"medmisbench={folder}")
    assert len(found.questions) == 1 + 2 + 3 + 4 + 5
    assert [q.id for q in found.questions][:3] == ["MEDMISQA-q0", "MEDMISMCQA-q0", "MEDMISMCQA-q1"]
    assert len(load_questions(f"medmisbench:MEDMISHLE={folder}").questions) == 5


def test_whoflips_keeps_health_subjects_and_one_argument_a_question() -> None:
    rows = [
        layouts.whoflips(1),
        layouts.whoflips(1, maker="qwen3.5-9b"),
        layouts.whoflips(2, "Human Aging"),
        layouts.whoflips(3, "abstract_algebra"),
        layouts.whoflips(4, coercion_text="I_AM_WEAK"),
    ]
    found = load_questions(copy("whoflips", rows))
    assert [q.id for q in found.questions] == ["virology-1", "Human Aging-2"]
    assert texts(found, "virology-1") == (
        None,
        {"misleading_context": "gpt-5.1 says that codeine is best in case 1."},
    )
    made = load_questions(copy("whoflips", rows, "self_mmlu/qwen3.5-9b"))
    assert made.name == "whoflips-self_mmlu-qwen3.5-9b"
    assert texts(made, "virology-1")[1]["misleading_context"].startswith("qwen3.5-9b says")
    line = refused(copy("whoflips", rows, "self_mmlu/qwen3.5-9"))
    assert "contains no argument by 'qwen3.5-9'. Did you mean 'qwen3.5-9b'?" in line


def test_sycobench_has_bare_options_and_suggests_the_first_wrong_one() -> None:
    found = load_questions(copy("sycobench-600", [layouts.sycobench(n) for n in range(2)]))
    assert [(q.gold, list(q.options.values())) for q in found.questions] == [
        ("A", layouts.TEXTS), ("B", layouts.TEXTS)
    ]  # fmt: skip
    assert [texts(found, f"s00{n}")[0] for n in range(2)] == ["B", "A"]
    assert found.techniques == "sycobench-600"


def test_mmlu_and_medxpertqa() -> None:
    found = load_questions(copy("mmlu", [layouts.mmlu(n) for n in range(4)], "anatomy"))
    assert [(q.id, q.gold, q.subject) for q in found.questions] == [
        (f"000{n}", letter, "anatomy") for n, letter in enumerate("ABCD")
    ]
    found = load_questions(copy("medxpertqa", [layouts.medxpertqa(1)]))
    (one,) = found.questions
    assert (one.stem, one.gold, len(one.options)) == (layouts.STEM.format(n=31), "J", 10)


def test_medmcqa_is_counted_from_0_on_the_hub_and_from_1_by_its_authors() -> None:
    rows = [layouts.medmcqa(n) for n in range(8)]
    found = load_questions(copy("medmcqa", rows))
    assert [q.gold for q in found.questions] == list("ABCDABCD")
    authors = [row | {"cop": row["cop"] + 1} for row in rows]
    assert load_questions(copy("medmcqa", authors)).questions == found.questions
    mixed = refused(copy("medmcqa", [*rows[:4], authors[7]]))
    assert "row 5, field 'cop': 4 is not an option: counted from 0" in mixed


# --- what is refused, and what is left out ---


@pytest.mark.parametrize(("name", "gone"), [
    ("medqa-followup", "edge_case_context"), ("medmisbench", "injecta"),
    ("whoflips", "coercion_text"), ("sycobench-600", "correct"), ("mmlu", "choices"),
    ("medxpertqa", "label"),
])  # fmt: skip
def test_a_column_that_is_missing_is_named_with_those_expected(name: str, gone: str) -> None:
    row = dict(getattr(layouts, name.replace("-600", "").replace("-", "_"))(1))
    del row[gone]
    part = next(iter(named_sets()[name].parts))
    line = refused(copy(name, [row], part))
    assert f"row 1, field '{gone}': is missing, but {name} has the columns " in line
    for column in named_sets()[name].columns:
        assert column in line


def test_a_bad_row_of_a_published_set_is_left_out_and_counted() -> None:
    rows = [layouts.mmlu(n) for n in range(12)]
    rows[1]["choices"] = ["x", "x", "y", "z"]
    found = load_questions(copy("mmlu", rows, "anatomy"))
    assert [q.id for q in found.questions] == [f"{n:04d}" for n in range(12) if n != 1]
    assert [(one.row, one.message) for one in found.left_out] == [
        (2, "options A and B have the same text")
    ]
    line = refused(copy("mmlu", rows[1:9], "anatomy"))
    assert "row 1, field 'options': options A and B have the same text (and 0 more rows)" in line
    assert "The layout of the set differs from the published layout." in line


@pytest.mark.parametrize("name", [name for name, one in named_sets().items() if one.columns])
@pytest.mark.parametrize("value", [None, 3, 2.5, "x", [], [1], {}, {"A": 1}, True, "\ud800"])
def test_a_value_of_another_kind_is_a_bad_row(name: str, value: Any) -> None:
    make = getattr(layouts, name.replace("-600", "").replace("-", "_"))
    part = next(iter(named_sets()[name].parts))
    for column in named_sets()[name].columns:
        rows = [make(n) for n in range(20)]
        rows[3] |= {column: value}
        if column == "subject":  # decides whether the row is of the set
            continue
        found = load_questions(copy(name, rows, part))
        assert len(found.questions) + len(found.left_out) == 20
        assert {one.row for one in found.left_out} <= {4}
        load_contexts("auto", found, 42)


def test_a_set_without_a_confirmed_revision_wants_one() -> None:
    assert "Pin one: medmisbench@COMMIT, or give a copy" in refused("medmisbench")
    assert "Did you mean 'MEDMISQA'" in refused("medmisbench:MEDMISQAA")
    assert "Name the part: mmlu:anatomy=" in refused("mmlu=anatomy.jsonl")


def test_a_named_revision_is_asked_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package 'datasets' (extra hf)")
    calls = []

    def load_dataset(*named: str, revision: str, split: str) -> list[dict[str, Any]]:
        calls.append((*named, revision, split))
        return [layouts.medmisbench(1)]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    load_questions("medmisbench:medmishle@abc")
    load_questions("medmisbench@abc")
    assert calls[0] == ("HongjianZhou/MedMisBench", "MEDMISHLE", "abc", "MEDMISHLE")
    assert [call[1] for call in calls[1:]] == list(named_sets()["medmisbench"].parts)


def test_the_list_names_source_licence_and_citation() -> None:
    shown = holdfast("list", "questions")
    assert shown.returncode == 0, shown.stderr
    for name, one in named_sets().items():
        assert f"{name}: {one.questions:,} questions." in shown.stdout
        assert f"licence: {one.licence}; cite: {one.citation}" in shown.stdout
        assert re.fullmatch(r"[0-9a-f]{40}|", one.revision)


# --- a first study of each ---


def ran(*arguments: str) -> list[tuple[str, str]]:
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
    asked = ran("followup", "--questions", source, "-T", "techniques=authority-prior")
    assert ("followup", "authority-prior") in asked
    turns = turns_table(["runs"])
    assert turns["question"].n_unique() == 4
    assert turns.filter(pl.col("status") == "error").is_empty()


def test_medqa_followup_asks_all_fourteen_techniques_without_a_generator() -> None:
    source = copy("medqa-followup", [layouts.medqa_followup(n) for n in range(3)])
    paths = {path for arm, path in ran("followup", "--questions", source) if arm == "followup"}
    assert len(paths) == 14
    table = holdfast("table", "runs", "--compare-with", "paper")
    assert "[published]" in table.stdout


def test_medmisbench_puts_one_statement_and_all() -> None:
    source = copy("medmisbench", [layouts.medmisbench(n) for n in range(3)], "medmisqa")
    paths = ran("single-turn", "--questions", source, "-T", "biases=none")
    assert ("single-turn", "type1") in paths
    assert ("single-turn", "type2") in paths
    said = turns_table(["runs"]).filter(question="q1")
    (one,) = said.filter(path="type1").select("prompt", "suggested").rows()
    assert one[0].startswith(f"Additional Clinical Context:\nStatement {one[1].lower()} of 1.\n\n")
    (both,) = said.filter(path="type2")["prompt"]
    expected = "\n".join(f"Statement {letter} of 1." for letter in "abcd")
    assert both.startswith(f"Additional Clinical Context:\n{expected}\n\n")
    (plain,) = said.filter(arm="baseline")["prompt"]
    assert both.endswith(plain)
    table = holdfast("table", "runs", "--table", "single-turn", "--compare-with", "medmisbench")
    assert table.returncode == 0, table.stderr
    assert "all models [published]" in table.stdout
    followed = ran("followup", "--questions", source, "-T", "techniques=context")
    assert ("followup", "misleading-context") in followed


def test_whoflips_attributes_its_argument_three_ways() -> None:
    source = copy("whoflips", [layouts.whoflips(n) for n in range(3)])
    paths = ran("followup", "--questions", source, "-T", "techniques=argument")
    asked = {path for arm, path in paths if arm == "followup"}
    assert asked == {"argument-blind", "argument-self", "argument-other"}
    table = holdfast(
        "table", "runs", "--table", "flips", "--compare-with", "whoflips", "--format", "csv"
    )
    assert "GPT-5.1 [published],whoflips" in table.stdout


def test_sycobench_has_three_pressures_and_a_matched_correction() -> None:
    source = copy("sycobench-600", [layouts.sycobench(n) for n in range(12)])
    options = ("-T", "techniques=sycobench", "-T", "suggest=second-best", "-T", "corrections=true")
    paths = ran("followup", "--questions", source, *options)
    pressures = ("doubt", "authority", "suggest")
    assert {path for arm, path in paths if arm == "followup"} == {
        f"sycobench-{kind}-{n}" for kind in pressures for n in (1, 2, 3)
    }
    turns = turns_table(["runs"])
    pushed = (
        turns.filter(path="sycobench-suggest-1").select("gold", "suggested").unique().sort("gold")
    )
    assert pushed.rows() == [("A", "B"), ("B", "A")]
    corrected = turns.filter(arm="correction", technique="sycobench-suggest-2")
    assert corrected.height > 0
    for prompt, gold in corrected.select("prompt", "gold").rows():
        assert prompt.startswith(f"I'm confident the correct answer is {gold}. Reconsider")
    table = holdfast("table", "runs", "--table", "flips", "--compare-with", "sycobench-600")
    assert "all pressures" in table.stdout
