import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scipy.stats import chisquare
from tests.resolved import followup_study, skipped

from holdfast.challenges.catalogue import built_in
from holdfast.challenges.contexts import KINDS, Context, Contexts, load_contexts
from holdfast.challenges.texts import challenge_prompt
from holdfast.errors import InputError
from holdfast.questions.bank import bank_items
from holdfast.questions.loading import QuestionSet, load_questions
from holdfast.questions.question import Question

BANK = load_questions("bank")

TEXTS = {
    "misleading_context": "It looks like croup.",
    "alternative_context": "It could be pertussis.",
    "edge_case_context": "The history is short.",
}
ROW: dict[str, Any] = {"question": "q1", "second_best": "C", **TEXTS}


def question(id: str = "q1", **changes: Any) -> Question:
    values = {
        "id": id,
        "stem": f"A man coughs ({id}). Why?",
        "options": {"A": "Asthma", "B": "Bronchitis", "C": "Croup"},
        "gold": "B",
    }
    return Question.model_validate(values | changes)


def question_set(*questions: Question) -> QuestionSet:
    return QuestionSet("mine", questions or (question(),))


def jsonl(folder: Path, *rows: object) -> str:
    path = folder / "contexts.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def write_table(table: pl.DataFrame, path: Path) -> None:
    match path.suffix:
        case ".jsonl":
            table.write_ndjson(path)
        case ".csv":
            table.write_csv(path)
        case ".parquet":
            table.write_parquet(path)


def load(source: str, questions: QuestionSet | None = None, seed: int = 42) -> Contexts:
    return load_contexts(source, questions or question_set(), seed)


def refusal(source: str, questions: QuestionSet | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        load(source, questions)
    line = str(caught.value)
    assert line.splitlines() == [line]
    return caught.value


# --- none, auto, bank ---


def test_none_has_no_context() -> None:
    contexts = load("none", BANK)
    assert contexts.name == "none"
    assert [contexts.of(bank_question) for bank_question in BANK.questions] == [Context()] * 60


@pytest.mark.parametrize("source", ["auto", "bank"])
def test_the_banks_questions_have_the_banks_contexts(source: str) -> None:
    contexts = load(source, BANK)
    assert contexts.name == "bank"
    for bank_question, item in zip(BANK.questions, bank_items(), strict=True):
        assert contexts.of(bank_question).second_best == item["second_best"]
        assert contexts.of(bank_question).texts == {
            kind: item[kind] for kind in KINDS if kind in item
        }


def test_auto_has_none_for_other_questions() -> None:
    contexts = load("auto")
    assert contexts.name == "none"
    assert contexts.of(question()) == Context()


def test_the_banks_contexts_are_for_the_bank_only() -> None:
    error = refusal("bank")
    assert "contains no context for any of the 1 questions of 'mine'" in error.fault
    assert error.remedy


@pytest.mark.parametrize("source", ["auto", "bank"])
def test_another_question_under_a_banks_id_never_has_its_gold_as_second_best(source: str) -> None:
    item = bank_items()[0]
    namesake = question(item["id"], options=item["options"], gold=item["second_best"])
    contexts = load(source, question_set(namesake, BANK.questions[1]))
    assert contexts.of(namesake).second_best in (None, *namesake.distractors)
    assert contexts.of(BANK.questions[1]).second_best == bank_items()[1]["second_best"]


# --- synthetic ---


def test_synthetic_contexts_are_labelled_and_complete() -> None:
    contexts = load("synthetic", BANK)
    assert contexts.name == "synthetic"
    for bank_question in BANK.questions:
        context = contexts.of(bank_question)
        assert set(context.texts) == set(KINDS)
        assert all("[synthetic placeholder context]" in text for text in context.texts.values())
        assert context.second_best in bank_question.distractors
        assert (
            bank_question.options[context.second_best or ""] in context.texts["misleading_context"]
        )
        assert bank_question.options[bank_question.gold] not in context.texts["misleading_context"]


def test_synthetic_second_best_is_uniform_and_fixed_by_seed_and_content() -> None:
    questions = [question(f"{n}") for n in range(3000)]
    original_set = question_set(*questions)
    contexts = load("synthetic", original_set)
    counts = Counter(contexts.of(q).second_best for q in questions)
    assert set(counts) == {"A", "C"}
    assert chisquare(list(counts.values())).pvalue > 0.001
    copies = [q.model_copy(update={"id": f"other-{q.id}"}) for q in reversed(questions)]
    again = load("synthetic", question_set(*copies))
    assert [again.of(q).second_best for q in reversed(copies)] == [
        contexts.of(q).second_best for q in questions
    ]
    assert load("synthetic", original_set, seed=43).by_question != contexts.by_question


# --- files ---


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("key", ["question", "id"])
def test_contexts_come_from_a_file(tmp_path: Path, kind: str, key: str) -> None:
    rows = [{key: "q1", "second_best": "C", **TEXTS}, {key: "q2", "second_best": "A", **TEXTS}]
    path = tmp_path / f"mine.{kind}"
    write_table(pl.DataFrame(rows), path)
    contexts = load(str(path), question_set(question("q1"), question("q2")))
    assert contexts.name == path.name
    assert contexts.of(question("q1")) == Context("C", TEXTS)
    assert contexts.of(question("q2")) == Context("A", TEXTS)


def test_a_number_as_id_is_its_text(tmp_path: Path) -> None:
    contexts = load(jsonl(tmp_path, {**ROW, "question": 7}), question_set(question("7")))
    assert contexts.of(question("7")).second_best == "C"


def test_a_question_without_a_row_has_no_context(tmp_path: Path) -> None:
    contexts = load(jsonl(tmp_path, ROW), question_set(question("q1"), question("q2")))
    assert contexts.of(question("q2")) == Context()


@pytest.mark.parametrize("absent", [None, "", "  \n"], ids=["null", "empty", "blank"])
def test_a_text_that_says_nothing_is_a_missing_one(tmp_path: Path, absent: str | None) -> None:
    contexts = load(jsonl(tmp_path, {**ROW, "edge_case_context": absent}))
    assert set(contexts.of(question()).texts) == {"misleading_context", "alternative_context"}


@pytest.mark.parametrize("absent", [None, ""], ids=["null", "empty"])
def test_the_second_best_can_be_left_out(tmp_path: Path, absent: str | None) -> None:
    assert load(jsonl(tmp_path, {**ROW, "second_best": absent})).of(question()).second_best is None


def test_rows_of_other_questions_do_no_harm(tmp_path: Path) -> None:
    foreign = {"question": "other", "second_best": "Z", **TEXTS}
    contexts = load(jsonl(tmp_path, foreign, ROW))
    assert contexts.of(question()) == Context("C", TEXTS)


@pytest.mark.parametrize(
    "text",
    [
        "{incorr_letter} {edge_case_context} {} {{x}}",
        "a\r\nb\u2028c\x85d\x1b[31m\x07",
        "\u202eright to left\u202c السعال",
        "\ufeff  <b>markup</b> | **x**  ",
        "pain, " * 17_000,
    ],
    ids=["braces", "controls", "right-to-left", "markup", "100-kB"],
)
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_odd_text_goes_from_the_file_into_the_challenge_as_it_is(
    tmp_path: Path, kind: str, text: str
) -> None:
    path = tmp_path / f"mine.{kind}"
    write_table(pl.DataFrame([{"question": "q1", "misleading_context": text}]), path)
    values = {**load(str(path)).of(question()).texts, "incorr_letter": "C"}
    prompt = challenge_prompt(built_in()["rag-style"].template, question(), values)
    before, after = prompt.split(text)
    assert before == "I found this relevant information: "
    assert after.startswith(". Please reconsider and finalize your answer.\n\nResponse (")


# --- bad files ---


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        pytest.param("{", None, "broken JSON", id="broken-json"),
        pytest.param("[]", None, "is not a JSON object", id="no-object"),
        pytest.param(TEXTS, "question", "is missing", id="no-id"),
        pytest.param({**ROW, "question": None}, "question", "is missing", id="null-id"),
        pytest.param(ROW, "question", "'q1' is already in row 1", id="same-question"),
        pytest.param(
            {**ROW, "question": "q2", "second_best": "B"},
            "second_best",
            "'B' is not a wrong option of question 'q2'",
            id="gold-as-second-best",
        ),
        pytest.param(
            {**ROW, "question": "q2", "second_best": "E"},
            "second_best",
            "'E' is not a wrong option",
            id="second-best-no-option",
        ),
        pytest.param(
            {**ROW, "question": "q2", "second_best": ["C"]},
            "second_best",
            "is not text",
            id="second-best-list",
        ),
        pytest.param(
            {**ROW, "question": "q2", "edge_case_context": 3},
            "edge_case_context",
            "is not text",
            id="number-as-text",
        ),
        pytest.param(
            {**ROW, "question": "q2", "edge_case_context": "x\ud800"},
            "edge_case_context",
            "lone surrogate",
            id="lone-surrogate",
        ),
    ],
)
def test_a_bad_row_is_refused(tmp_path: Path, row: object, field: str | None, reason: str) -> None:
    source = jsonl(tmp_path, ROW, row)
    error = refusal(source, question_set(question("q1"), question("q2")))
    assert (error.file, error.row, error.field) == (source, 2, field)
    assert reason in error.fault
    assert error.remedy


def test_a_wrong_second_best_offers_the_wrong_options(tmp_path: Path) -> None:
    assert refusal(jsonl(tmp_path, {**ROW, "second_best": "B"})).remedy == "Use one of A, C"


def test_a_file_for_another_question_set_is_refused(tmp_path: Path) -> None:
    error = refusal(jsonl(tmp_path, ROW), question_set(question("q8"), question("q9")))
    assert error.fault == "contains no context for any of the 2 questions of 'mine'"
    assert error.field == "question"
    assert error.file is not None
    assert error.file.endswith("contexts.jsonl")
    assert error.remedy


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "no such file"), (b"", "is empty"), (b"\xff\xfe{", "is not UTF-8")],
    ids=["missing", "empty", "not-utf-8"],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "mine.jsonl"
    if content is not None:
        path.write_bytes(content)
    error = refusal(str(path))
    assert error.file == str(path)
    assert reason in error.fault


# --- techniques that ask for more than one ---


def test_a_technique_with_two_contexts_is_left_out_where_either_is_missing(tmp_path: Path) -> None:
    catalogue = tmp_path / "mine.toml"
    catalogue.write_text(
        'family = "mine"\naxis = "indirect"\ncitation = "me"\n[[technique]]\nid = "both"\n'
        'needs = ["misleading_context", "edge_case_context"]\n'
        'template = "{misleading_context} {edge_case_context}"\n'
    )
    rows = [
        {**ROW, "question": "bank-renal-1", "second_best": None},
        {**ROW, "question": "bank-renal-2", "second_best": None, "edge_case_context": None},
        {**ROW, "question": "bank-renal-3", "second_best": None, "misleading_context": None},
    ]
    study = followup_study(
        contexts=jsonl(tmp_path, *rows), techniques="both", challenges=str(catalogue)
    )
    question_ids = {q.id for q in study.questions.questions if not skipped(study, q)}
    assert question_ids == {"bank-renal-1"}


# --- fingerprint ---


def test_the_fingerprint_is_that_of_the_texts_not_of_the_file(tmp_path: Path) -> None:
    first = load(jsonl(tmp_path, ROW))
    copy = tmp_path / "copy.parquet"
    pl.DataFrame([ROW]).write_parquet(copy)
    assert load(str(copy)).fingerprints == first.fingerprints
    assert [len(value) for value in first.fingerprints.values()] == [16]


@pytest.mark.parametrize(
    "change",
    [{"second_best": "A"}, {"misleading_context": "Another."}, {"edge_case_context": None}],
    ids=lambda change: next(iter(change)),
)
def test_the_fingerprint_changes_with_the_texts(tmp_path: Path, change: dict[str, Any]) -> None:
    before = load(jsonl(tmp_path, ROW)).fingerprints
    assert load(jsonl(tmp_path, {**ROW, **change})).fingerprints != before
