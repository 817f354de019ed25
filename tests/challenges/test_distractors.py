"""More plausible wrong options: their sources, the requests for them and their checks."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.challenges.texts import Fault
from holdfast.errors import InputError
from holdfast.protocols.single_turn.distractors import (
    Distractors,
    check_distractors,
    distractor_prompt,
    distractor_version,
    load_distractors,
    read_distractors,
)
from holdfast.questions.bank import bank_items
from holdfast.questions.loading import QuestionSet, load_questions
from holdfast.questions.question import LETTERS, Question

OPTIONS = {"A": "Asthma", "B": "Bronchitis", "C": "Croup"}
Q1 = Question(id="q1", stem="A man coughs. Why?", options=OPTIONS, gold="B", step="step1")
Q2 = Question(id="q2", stem="A woman coughs. Why?", options=OPTIONS, gold="A")
QUESTIONS = QuestionSet("mine", (Q1, Q2))
ROW: dict[str, Any] = {"question": "q1", "distractors": {"A": "Emphysema", "C": "Pertussis"}}


def write(folder: Path, *rows: object) -> str:
    path = folder / "options.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def load(source: str) -> Distractors:
    return load_distractors(source, QUESTIONS)


# --- sources ---


@pytest.mark.parametrize("source", ["auto", "bank"])
def test_the_bank_has_wrong_options(source: str) -> None:
    bank = load_questions("bank")
    distractors = load_distractors(source, bank)
    assert distractors.name == "bank"
    for question, item in zip(bank.questions, bank_items(), strict=True):
        variant = distractors.replaced(question)
        assert [variant.options[x] for x in question.distractors] == item["replacement_distractors"]
        assert (variant.gold, variant.options[variant.gold]) == (
            item["gold"], item["options"][item["gold"]],
        )  # fmt: skip
        assert (variant.stem, list(variant.options)) == (question.stem, list(question.options))


def test_other_questions_get_none_from_the_bank() -> None:
    assert load("auto").name == "none"
    with pytest.raises(InputError, match="contains no wrong options for any of the 2 questions"):
        load("bank")
    values = load_questions("bank").questions[0].model_dump()
    namesake = Question.model_validate(values | {"gold": bank_items()[0]["second_best"]})
    assert load_distractors("auto", QuestionSet("mine", (namesake,))).name == "none"


def test_none_is_empty_and_generate_has_a_placeholder_for_every_wrong_option() -> None:
    assert load("none").obstacle(Q1) == "no replacement for a wrong option"
    plan = load("generate")
    assert plan.obstacle(Q1) is None
    assert plan.replaced(Q1).options["B"] == "Bronchitis"
    assert set(plan.by_question["q1"]) == {"A", "C"}


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown distractors 'generat'") as caught:
        load("generat")
    assert "'generate'" in str(caught.value.remedy)


def test_a_file_replaces_its_options_and_nothing_else(tmp_path: Path) -> None:
    distractors = load(write(tmp_path, ROW, {"id": "q2", "distractors": {"C": "Flu"}}))
    new_options = {"A": "Emphysema", "B": "Bronchitis", "C": "Pertussis"}
    assert distractors.replaced(Q1).model_dump() == Q1.model_dump() | {"options": new_options}
    assert distractors.replaced(Q2).options == {"A": "Asthma", "B": "Bronchitis", "C": "Flu"}
    assert distractors.replaced(Q1).content_hash != Q1.content_hash
    assert Q1.options == OPTIONS


def test_a_table_contains_the_object_as_text(tmp_path: Path) -> None:
    path = tmp_path / "options.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(["question", "distractors"])
        lines.writerow(["q1", json.dumps(ROW["distractors"])])
    assert load(str(path)).by_question == {"q1": ROW["distractors"]}


def test_a_question_without_new_options_has_a_reason(tmp_path: Path) -> None:
    missing = {"question": "q1", "missing": "refused"}
    distractors = load(write(tmp_path, missing))
    assert distractors.obstacle(Q1) == "no replacement for a wrong option (refused)"
    assert distractors.obstacle(Q2) == "no replacement for a wrong option"


def test_new_options_for_another_question_under_the_id_are_left_out(tmp_path: Path) -> None:
    distractors = load(write(tmp_path, ROW | {"content_hash": "f" * 64}, {"question": "q2",
                 "content_hash": Q2.content_hash, "distractors": {"B": "Flu"}}))  # fmt: skip
    assert distractors.obstacle(Q1) == "the new options are for another question under this id"
    assert distractors.obstacle(Q2) is None


def test_rows_for_other_questions_are_counted_and_a_file_of_them_is_refused(
    tmp_path: Path,
) -> None:
    foreign = {"question": "other", "distractors": {"Z": "Flu"}}
    assert load(write(tmp_path, foreign, ROW)).unused_rows == 1
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, foreign))
    assert "contains no wrong options for any of the 2 questions of 'mine'" in caught.value.fault
    assert caught.value.remedy


# --- bad rows ---


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ("{", None, "broken JSON"),
        (ROW, "question", "'q1' was given before"),
        ({"distractors": {"A": "x"}}, "question", "is missing"),
        ({"question": "", "distractors": {"A": "x"}}, "question", "is missing"),
        ({"question": None, "distractors": {"A": "x"}}, "question", "is missing"),
        ({"question": "q2"}, "distractors", "is not an object of letters and texts"),
        ({"question": "q2", "distractors": {}}, "distractors", "is not an object"),
        ({"question": "q2", "distractors": ["x"]}, "distractors", "is not an object"),
        ({"question": "q2", "distractors": "prose"}, "distractors", "is not an object"),
        ({"question": "q2", "distractors": {"A": "x"}}, "distractors", "which is no wrong option"),
        ({"question": "q2", "distractors": {"D": "x"}}, "distractors", "which is no wrong option"),
        ({"question": "q2", "distractors": {"B": " "}}, "distractors", "has no text for B"),
        ({"question": "q2", "distractors": {"B": 3}}, "distractors", "has no text for B"),
        ({"question": "q2", "distractors": {"B": "asthma."}}, "distractors", "repeats the option"),
        ({"question": "q2", "distractors": {"B": " CROUP"}}, "distractors", "repeats the option"),
        ({"question": "q2", "distractors": {"B": "x", "C": "X."}}, "distractors", "repeats"),
        ({"question": "q2", "distractors": {"B": "x\ud800"}}, "distractors", "no valid text"),
    ],
)  # fmt: skip
def test_a_bad_row_is_reported_by_the_check_and_refused_by_a_run(
    tmp_path: Path, row: object, field: str | None, message: str
) -> None:
    source = write(tmp_path, ROW, row)
    distractors, problems = check_distractors(source, QUESTIONS)
    assert distractors.by_question == {"q1": ROW["distractors"]}
    (problem,) = problems
    assert (problem.row, problem.field) == (2, field)
    assert message in problem.message
    with pytest.raises(InputError) as caught:
        load(source)
    assert (caught.value.file, caught.value.row, caught.value.field) == (source, 2, field)


SECOND_ROW = {"question": "q2", "distractors": {"B": "x"}}


def test_a_generated_file_may_have_faults_and_is_known_by_its_origin(tmp_path: Path) -> None:
    def generated(*rows: object) -> Distractors:
        return load(f"generated:{write(tmp_path, *rows)}")

    row, second_row = ROW | {"model": "m"}, SECOND_ROW | {"model": "m"}
    distractors = generated(row, {"question": "q2", "missing": "no JSON", "model": "m"})
    assert distractors.obstacle(Q1) is None
    assert "(no JSON)" in str(distractors.obstacle(Q2))
    before = generated(row).fingerprint
    assert generated(row, second_row).fingerprint == before
    assert generated(row | {"model": "n"}).fingerprint != before


def test_the_fingerprint_is_that_of_the_texts_in_any_order(tmp_path: Path) -> None:
    before = load(write(tmp_path, ROW, SECOND_ROW)).fingerprint
    assert load(write(tmp_path, SECOND_ROW, ROW | {"model": "m"})).fingerprint == before
    variant = ROW | {"distractors": {"A": "Emphysema"}}
    assert load(write(tmp_path, variant, SECOND_ROW)).fingerprint != before


# --- requests and replies ---


def test_the_prompt_names_the_letters_and_shows_the_form() -> None:
    prompt = distractor_prompt(Q1, ("A", "C"))
    assert "Its right answer is option B." in prompt
    assert "wrong options: A, C." in prompt
    assert "A man coughs. Why?\n\nA. Asthma\nB. Bronchitis\nC. Croup\n" in prompt
    assert prompt.endswith('{"A": "new text", "C": "new text"}')
    assert "knowledge graph" not in prompt
    assert distractor_version() >= 1


def test_candidates_of_a_graph_are_listed() -> None:
    prompt = distractor_prompt(Q1, ("A",), ["Emphysema (is a kind of)", "{letters} {gold}"])
    assert "knowledge graph" in prompt
    assert "\n- Emphysema (is a kind of)\n- {letters} {gold}\n" in prompt


@pytest.mark.parametrize(
    "reply",
    [
        '{"A": "Emphysema", "C": "Pertussis"}',
        '```json\n{"C": "Pertussis", "A": " Emphysema "}\n```',
        'Here: {"A": "Emphysema",\n "C": "Pertussis"} as asked for.',
        '{question} {"A": "x", "C": "y"} {"A": "Emphysema", "C": "Pertussis"} {"note": "-"}',
    ],
)
def test_new_options_are_read_from_json_in_any_surroundings(reply: str) -> None:
    assert read_distractors(reply, Q1, ("A", "C")) == {"A": "Emphysema", "C": "Pertussis"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("Emphysema and pertussis.", "no JSON"),
        ("{}", "no JSON"),
        ('["Emphysema"]', "no JSON"),
        ('{"A": "Emphysema"}', "other letters"),
        ('{"A": "Emphysema", "B": "Flu", "C": "Pertussis"}', "other letters"),
        ('{"a": "Emphysema", "c": "Pertussis"}', "other letters"),
        ('{"A": "Emphysema", "C": ""}', "empty"),
        ('{"A": "Emphysema", "C": null}', "empty"),
        ('{"A": {"text": "Emphysema"}, "C": "Pertussis"}', "empty"),
        ('{"A": "bronchitis", "C": "Pertussis"}', "an option again"),
        ('{"A": "Asthma", "C": "Pertussis"}', "an option again"),
        ('{"A": "Pertussis", "C": "pertussis."}', "an option again"),
        ('{"A": "x\\ud800", "C": "Pertussis"}', "no valid text"),
    ],
)
def test_a_reply_that_cannot_be_used_has_its_fault(reply: str, kind: str) -> None:
    outcome = read_distractors(reply, Q1, ("A", "C"))
    assert isinstance(outcome, Fault)
    assert outcome.kind == kind


@pytest.mark.parametrize("text", ["{question} {{x}}", "<b>x</b>", "السعال", "x" * 1_000_000])
def test_odd_texts_are_kept_unchanged(text: str) -> None:
    assert read_distractors(json.dumps({"A": text}), Q1, ("A",)) == {"A": text}
    distractors = Distractors("mine", {"q1": {"A": text}})
    assert distractors.replaced(Q1).options["A"] == text


def test_ten_and_two_options_are_read() -> None:
    ten = Question(id="q", stem="?", options={x: f"finding {x}{x}" for x in LETTERS[:10]}, gold="J")
    texts = {letter: f"new {letter}" for letter in ten.distractors}
    assert read_distractors(json.dumps(texts), ten, ten.distractors) == texts
    two = Question(id="q", stem="?", options={"A": "one", "B": "two"}, gold="A")
    assert read_distractors('{"B": "three"}', two, ("B",)) == {"B": "three"}
