"""Files of contexts: written by a generator, or made elsewhere."""

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast.challenges.catalogue import CONTEXTS
from holdfast.challenges.contexts import Context, Contexts, check_contexts, load_contexts
from holdfast.errors import InputError
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import Question

TEXTS = {
    "misleading_context": "It looks like croup. It does.",
    "alternative_context": "It could be more. Much more.",
    "edge_case_context": "The history is short. So is the exam.",
}
OPTIONS = {"A": "Asthma", "B": "Bronchitis", "C": "Croup"}


def question(id: str = "q1", stem: str = "A man coughs. Why?") -> Question:
    return Question(id=id, stem=stem, options=OPTIONS, gold="B")


Q1, Q2 = question(), question("q2", "A woman coughs.\n  Why?")
QUESTIONS = QuestionSet("mine", (Q1, Q2))
GENERATED_ROW: dict[str, Any] = {
    "question": "q1",
    "content_hash": Q1.content_hash,
    "length": None,
    "sentences": 2,
    "second_best": "C",
    **TEXTS,
    "alternative_answer": "Pertussis",
    "missing": {},
    "model": "simulated/generator",
    "settings": {"temperature": 0.0, "seed": 42},
    "template_version": 1,
}


def write(folder: Path, *rows: object, name: str = "contexts.jsonl") -> str:
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def load(source: str) -> Contexts:
    return load_contexts(source, QUESTIONS, 42)


def at(length: int, **changes: Any) -> dict[str, Any]:
    """A row of a length ablation."""
    texts = {kind: "A sentence. " * length for kind in CONTEXTS}
    return GENERATED_ROW | texts | {"length": length, "sentences": length} | changes


# --- what a generator writes ---


def test_a_generated_row_gives_its_texts_and_the_second_best(tmp_path: Path) -> None:
    contexts = load(write(tmp_path, GENERATED_ROW))
    assert contexts.of(Q1) == Context("C", TEXTS)
    assert contexts.unused_rows == 0


def test_a_supporting_text_is_read_where_there_is_one_and_may_name_no_letter(
    tmp_path: Path,
) -> None:
    sentence = "A sentence. " * GENERATED_ROW["sentences"]
    for text, obstacle in (
        (sentence, None),
        (f"Option C fits. {'A sentence. ' * (GENERATED_ROW['sentences'] - 1)}",
         "supporting_context cannot be used (an option letter)"),
        ("One.", "supporting_context cannot be used (wrong sentence count)"),
        (None, "no supporting_context"),
    ):  # fmt: skip
        contexts = load(write(tmp_path, GENERATED_ROW | {"supporting_context": text}))
        assert contexts.of(Q1).obstacle("supporting_context") == obstacle
        # the study's own texts are as they were: so is the run
        assert contexts.fingerprints == load(write(tmp_path, GENERATED_ROW)).fingerprints


def test_lengths_of_an_ablation_stand_beside_the_studys_own(tmp_path: Path) -> None:
    context = load(write(tmp_path, at(1), GENERATED_ROW, at(3))).of(Q1)
    assert context.at("") == TEXTS
    assert set(context.at("1").values()) == {"A sentence. "}
    assert set(context.at("3").values()) == {"A sentence. " * 3}
    assert list(context.at("3")) == list(CONTEXTS)
    assert context.at("10") == {}
    assert context.obstacle("misleading_context", "3") is None
    missing = "no misleading_context of 10 sentences"
    assert context.obstacle("misleading_context", "10") == missing


def test_what_is_missing_is_known_with_its_reason(tmp_path: Path) -> None:
    missing = {"misleading_context": "refused"}
    rows = [
        GENERATED_ROW | {"misleading_context": None, "second_best": None, "missing": missing},
        at(3, misleading_context=None, missing={"misleading_context": "wrong sentence count"}),
    ]
    context = load(write(tmp_path, *rows)).of(Q1)
    reason = "misleading_context could not be generated"
    assert context.obstacle("misleading_context") == f"{reason} (refused)"
    assert context.obstacle("misleading_context", "3") == f"{reason} (wrong sentence count)"
    assert context.obstacle("edge_case_context", "3") is None


def test_a_file_of_nothing_but_failures_can_be_used_and_says_why(tmp_path: Path) -> None:
    failures = dict.fromkeys(CONTEXTS) | {"missing": dict.fromkeys(CONTEXTS, "refused")}
    context = load(write(tmp_path, GENERATED_ROW | failures)).of(Q1)
    assert context.texts == {}
    assert [context.obstacle(kind) for kind in CONTEXTS] == [
        f"{kind} could not be generated (refused)" for kind in CONTEXTS
    ]


def test_lengths_added_later_leave_the_fingerprint_of_the_others(tmp_path: Path) -> None:
    before = load(write(tmp_path, GENERATED_ROW, at(1))).fingerprints
    after = load(write(tmp_path, GENERATED_ROW, at(1), at(10))).fingerprints
    assert list(before) == ["", "1"]
    assert list(after) == ["", "1", "10"]
    assert before.items() <= after.items()
    assert len(set(after.values())) == 3


def test_the_order_of_the_rows_is_no_matter(tmp_path: Path) -> None:
    second_row = GENERATED_ROW | {"question": "q2", "content_hash": Q2.content_hash}
    first = load(write(tmp_path, GENERATED_ROW, second_row)).fingerprints
    assert load(write(tmp_path, second_row, GENERATED_ROW)).fingerprints == first


def test_a_generated_file_that_grows_is_the_same_contexts(tmp_path: Path) -> None:
    second_row = GENERATED_ROW | {"question": "q2", "content_hash": Q2.content_hash}
    first = load(f"generated:{write(tmp_path, GENERATED_ROW)}").fingerprints
    fingerprints = load(f"generated:{write(tmp_path, GENERATED_ROW, second_row)}").fingerprints
    assert fingerprints == first


@pytest.mark.parametrize(
    "change",
    [{"model": "openai/other"}, {"template_version": 2}, {"settings": {"temperature": 1.0}}],
    ids=lambda change: next(iter(change)),
)
def test_a_generated_file_knows_how_it_was_made(tmp_path: Path, change: dict[str, Any]) -> None:
    first = load(f"generated:{write(tmp_path, GENERATED_ROW)}")
    again = load(f"generated:{write(tmp_path, GENERATED_ROW)}")
    variant = load(f"generated:{write(tmp_path, GENERATED_ROW | change)}")
    assert first.origin == again.origin != variant.origin
    assert load(write(tmp_path, GENERATED_ROW)).origin == ""


# --- what is left out, with its reason ---


@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"sentences": 3}, "misleading_context", "wrong sentence count"),
        ({"length": 3, "sentences": None}, "misleading_context", "wrong sentence count"),
        ({"alternative_answer": "croup"}, "alternative_context", "an option as diagnosis"),
        ({"alternative_answer": " ASTHMA."}, "alternative_context", "an option as diagnosis"),
        (
            {"alternative_context": "It beats option C. It does."},
            "alternative_context",
            "an option letter",
        ),
    ],
)
def test_a_text_that_fails_its_check_is_left_out_of_its_technique_alone(
    tmp_path: Path, changes: dict[str, Any], kind: str, reason: str
) -> None:
    source = write(tmp_path, GENERATED_ROW | changes, GENERATED_ROW | {"question": "q2",
        "content_hash": Q2.content_hash})  # fmt: skip
    contexts = load(source)
    length = str(changes.get("length") or "")
    assert contexts.of(Q1).obstacle(kind, length) == f"{kind} cannot be used ({reason})"
    assert contexts.of(Q2) == Context("C", TEXTS)
    if kind == "alternative_context":
        assert contexts.of(Q1).obstacle("misleading_context") is None


@pytest.mark.parametrize(
    "changes",
    [{"content_hash": "f" * 64}, {"content_hash": None, "options": {**OPTIONS, "C": "Flu"}}],
    ids=["hash", "options"],
)
def test_texts_for_another_question_under_the_same_id_are_left_out(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    context = load(write(tmp_path, GENERATED_ROW | changes)).of(Q1)
    assert context.texts == {}
    assert {context.obstacle(kind) for kind in CONTEXTS} == {
        "belongs to another question with this id"
    }


def test_the_second_best_of_another_question_is_left_out_too(tmp_path: Path) -> None:
    assert (
        load(write(tmp_path, GENERATED_ROW | {"content_hash": "f" * 64})).of(Q1).second_best is None
    )


def test_the_second_best_of_another_question_stops_nothing(tmp_path: Path) -> None:
    load(write(tmp_path, GENERATED_ROW | {"content_hash": "f" * 64, "second_best": "B"}))


# --- made elsewhere ---


@pytest.mark.parametrize("stem", [Q2.stem, "A woman coughs. Why?", " A woman  coughs.\tWhy? "])
def test_a_row_can_name_its_question_by_the_stem(tmp_path: Path, stem: str) -> None:
    contexts = load(write(tmp_path, {"question": stem, **TEXTS}))
    assert contexts.of(Q2) == Context(None, TEXTS)
    assert contexts.of(Q1) == Context()


def test_a_table_without_types_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "theirs.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        lines = csv.DictWriter(out, ["id", "length", "sentences", "second_best", *TEXTS])
        lines.writeheader()
        lines.writerow({"id": "q1", "length": "", "sentences": "2.0", "second_best": "", **TEXTS})
        lines.writerow({"id": "q1", "length": "1.0", "sentences": "", "second_best": "C",
                        "edge_case_context": "One."})  # fmt: skip
    context = load(str(path)).of(Q1)
    assert context.at("") == TEXTS
    assert context.at("1") == {"edge_case_context": "One."}
    assert context.second_best == "C"


def test_a_table_as_the_authors_published_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    row = {
        "question": Q1.stem, "answer": "Bronchitis", "options": OPTIONS, "answer_idx": "B",
        "meta_info": "step1", **TEXTS, "alternative_answer": "Pertussis",
    }  # fmt: skip
    pl.DataFrame([row]).write_parquet(path)
    assert load(str(path)).of(Q1) == Context(None, TEXTS)


@pytest.mark.parametrize("column", ["misleading", "misleading_contexts", "edge_case_text"])
def test_a_column_that_almost_is_a_context_is_a_mistake(tmp_path: Path, column: str) -> None:
    row = {"question": "q1", "alternative_context": "Text.", column: "Text."}
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, row))
    assert (caught.value.row, caught.value.field) == (1, column)
    assert "Did you mean" in str(caught.value)


@pytest.mark.parametrize("column", ["alternative_answer", "note", "author"])
def test_other_columns_are_the_users_business(tmp_path: Path, column: str) -> None:
    row = {"question": "q1", "misleading_context": "Text.", column: "x"}
    assert load(write(tmp_path, row)).of(Q1).texts == {"misleading_context": "Text."}


@pytest.mark.parametrize("column", ["length", "sentences"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "ten", True, [3], "１０"])
def test_a_number_of_sentences_is_a_positive_whole_one(
    tmp_path: Path, column: str, value: object
) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, GENERATED_ROW | {column: value}))
    assert (caught.value.row, caught.value.field) == (1, column)
    assert "not a number of sentences" in caught.value.fault


def test_the_same_question_and_length_twice_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, GENERATED_ROW, at(3), at(3)))
    assert caught.value.row == 3
    assert "'q1' is already in row 2" in caught.value.fault


def test_a_question_named_by_id_and_by_stem_is_the_same(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'q1' is already in row 1"):
        load(write(tmp_path, GENERATED_ROW, {"question": Q1.stem, **TEXTS}))


def test_a_file_without_a_context_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, {"question": "q1", "text": "x"}, {"question": "q2"}))
    assert caught.value.fault == "contains no context"
    assert "misleading_context" in str(caught.value.remedy)


def test_rows_for_other_questions_are_counted(tmp_path: Path) -> None:
    rows = [GENERATED_ROW | {"question": f"other{n}", "content_hash": None} for n in range(3)]
    assert load(write(tmp_path, *rows, GENERATED_ROW)).unused_rows == 3


# --- the check ---


def problems(source: str, *args: Any) -> list[tuple[int, str | None, str]]:
    _, faults = check_contexts(source, *args)
    return [(problem.row, problem.field, problem.message) for problem in faults]


def test_the_check_reports_every_fault_and_keeps_what_is_sound(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        "{",
        GENERATED_ROW,
        GENERATED_ROW,
        {"question": "q2", "second_best": "B", "misleading_context": 3},
        {"misleading_context": "One."},
        at(3, edge_case_context="One."),
    )
    contexts, faults = check_contexts(source, QUESTIONS)
    assert contexts.of(Q1).at("") == TEXTS
    assert {(p.row, p.field) for p in faults} == {
        (1, None),
        (3, "question"),
        (4, "misleading_context"),
        (4, "second_best"),
        (5, "question"),
        (6, "edge_case_context@3"),
    }
    by_row = {p.row: p.message for p in faults}
    assert "broken JSON" in by_row[1]
    assert "is already in row 2" in by_row[3]
    assert by_row[6] == "edge_case_context cannot be used (wrong sentence count)"


def test_a_sound_file_has_no_problem(tmp_path: Path) -> None:
    assert problems(write(tmp_path, GENERATED_ROW, at(1), at(10)), QUESTIONS) == []


def test_every_text_can_be_held_to_one_number_of_sentences(tmp_path: Path) -> None:
    row = {"question": "q1", **TEXTS, "edge_case_context": "One. Two. Three."}
    assert problems(write(tmp_path, row), QUESTIONS) == []
    assert problems(write(tmp_path, row), QUESTIONS, 2) == [
        (1, "edge_case_context", "edge_case_context cannot be used (wrong sentence count)")
    ]
    assert len(problems(write(tmp_path, row), QUESTIONS, 5)) == 3


def test_without_questions_the_rows_are_checked_by_themselves(tmp_path: Path) -> None:
    row = {
        **GENERATED_ROW,
        "content_hash": "f" * 64,
        "second_best": "Z",
        "alternative_answer": "Croup",
    }
    assert problems(write(tmp_path, row)) == []
    contexts, faults = check_contexts(write(tmp_path, row | {"sentences": 9}))
    assert len(faults) == 3
    assert contexts.unused_rows == 0


@pytest.mark.parametrize(
    "text",
    ["{question} {{x}} %s \\1.", "<script>x</script>.", "a\u2028b\x85c\x00.", "x" * 1_000_000],
    ids=["braces", "markup", "controls", "megabyte"],
)
def test_odd_texts_are_read_as_they_are(tmp_path: Path, text: str) -> None:
    row = {"question": "q1", "misleading_context": text, "sentences": 1}
    assert load(write(tmp_path, row)).of(Q1).texts == {"misleading_context": text}
    assert problems(write(tmp_path, row), QUESTIONS) == []
