"""Contexts of a question set: the bank's, placeholders, and files."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scipy.stats import chisquare
from tests.resolved import followup_study, skipped

from holdfast.challenges.catalogue import CONTEXTS, built_in
from holdfast.challenges.contexts import KINDS, Context, Contexts, check_contexts, load_contexts
from holdfast.challenges.texts import challenge_prompt
from holdfast.errors import InputError
from holdfast.questions.bank import bank_items
from holdfast.questions.loading import QuestionSet, load_questions
from holdfast.questions.question import Question

BANK = load_questions("bank")
TEXTS = {
    "misleading_context": "It looks like croup. It does.",
    "alternative_context": "It could be more. Much more.",
    "edge_case_context": "The history is short. So is the exam.",
}
OPTIONS = {"A": "Asthma", "B": "Bronchitis", "C": "Croup"}
OTHER_HASH = "f" * 64


def question(id: str = "q1", stem: str = "A man coughs. Why?", **changes: Any) -> Question:
    return Question.model_validate(
        {"id": id, "stem": stem, "options": OPTIONS, "gold": "B"} | changes
    )


Q1, Q2 = question(), question("q2", "A woman coughs.\n  Why?")
QUESTIONS = QuestionSet("mine", (Q1, Q2))
ROW: dict[str, Any] = {"question": "q1", "second_best": "C", **TEXTS}
GENERATED_ROW: dict[str, Any] = ROW | {
    "content_hash": Q1.content_hash, "length": None, "sentences": 2,
    "alternative_answer": "Pertussis", "missing": {}, "model": "simulated/generator",
    "settings": {"temperature": 0.0, "seed": 42}, "template_version": 1,
}  # fmt: skip
SECOND_ROW = GENERATED_ROW | {"question": "q2", "content_hash": Q2.content_hash}


def at(length: int, **changes: Any) -> dict[str, Any]:
    """A row of a length ablation."""
    texts = {kind: "A sentence. " * length for kind in CONTEXTS}
    return GENERATED_ROW | texts | {"length": length, "sentences": length} | changes


def write(folder: Path, *rows: object) -> str:
    path = folder / "contexts.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def write_table(path: Path, *rows: dict[str, Any]) -> str:
    table = pl.DataFrame(rows)
    match path.suffix:
        case ".jsonl":
            table.write_ndjson(path)
        case ".csv":
            table.write_csv(path)
        case _:
            table.write_parquet(path)
    return str(path)


def load(source: str, questions: QuestionSet = QUESTIONS, seed: int = 42) -> Contexts:
    return load_contexts(source, questions, seed)


def refusal(source: str, questions: QuestionSet = QUESTIONS) -> InputError:
    with pytest.raises(InputError) as caught:
        load(source, questions)
    assert str(caught.value).splitlines() == [str(caught.value)]
    assert caught.value.remedy
    return caught.value


# --- without a file ---


@pytest.mark.parametrize(("source", "questions"), [("none", BANK), ("auto", QUESTIONS)])
def test_sets_without_contexts_have_none(source: str, questions: QuestionSet) -> None:
    contexts = load(source, questions)
    assert contexts.name == "none"
    assert all(contexts.of(entry) == Context() for entry in questions.questions)


@pytest.mark.parametrize("source", ["auto", "bank"])
def test_the_banks_questions_have_the_banks_contexts(source: str) -> None:
    contexts = load(source, BANK)
    assert contexts.name == "bank"
    for bank_question, item in zip(BANK.questions, bank_items(), strict=True):
        texts = {kind: item[kind] for kind in KINDS if kind in item}
        assert contexts.of(bank_question) == Context(item["second_best"], texts)
    # a question with a bank's id and another key is another question
    item = bank_items()[0]
    namesake = question(item["id"], options=item["options"], gold=item["second_best"])
    contexts = load(source, QuestionSet("mine", (namesake, BANK.questions[1])))
    assert contexts.of(namesake) == Context()
    assert contexts.of(BANK.questions[1]).second_best == bank_items()[1]["second_best"]


def test_synthetic_contexts_are_labelled_and_complete() -> None:
    contexts = load("synthetic", BANK)
    assert contexts.name == "synthetic"
    for bank_question in BANK.questions:
        context = contexts.of(bank_question)
        assert set(context.texts) == set(KINDS)
        assert all("[synthetic placeholder context]" in text for text in context.texts.values())
        assert context.second_best in bank_question.distractors
        misleading = context.texts["misleading_context"]
        assert bank_question.options[context.second_best] in misleading
        assert bank_question.options[bank_question.gold] not in misleading


def test_synthetic_second_best_is_uniform_and_fixed_by_seed_and_content() -> None:
    questions = [question(f"{n}", f"Why ({n})?") for n in range(1000)]
    contexts = load("synthetic", QuestionSet("mine", tuple(questions)))
    letters = [contexts.of(entry).second_best for entry in questions]
    assert set(letters) == {"A", "C"}
    assert chisquare(list(Counter(letters).values())).pvalue > 0.001
    copies = [entry.model_copy(update={"id": f"copy-{entry.id}"}) for entry in questions][::-1]
    copied_contexts = load("synthetic", QuestionSet("mine", tuple(copies)))
    assert [copied_contexts.of(copy).second_best for copy in copies] == letters[::-1]
    by_seed = load("synthetic", QuestionSet("mine", tuple(questions)), seed=43)
    assert [by_seed.of(entry).second_best for entry in questions] != letters


# --- files ---


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("key", ["question", "id"])
def test_contexts_come_from_a_file(tmp_path: Path, suffix: str, key: str) -> None:
    rows = [{key: "q1", "second_best": "C", **TEXTS}, {key: "q2", "second_best": "A", **TEXTS}]
    contexts = load(write_table(tmp_path / f"mine.{suffix}", *rows))
    assert contexts.name == f"mine.{suffix}"
    assert (contexts.of(Q1), contexts.of(Q2)) == (Context("C", TEXTS), Context("A", TEXTS))
    assert contexts.unused_rows == 0


TWO_TEXTS = {kind: text for kind, text in TEXTS.items() if kind != "edge_case_context"}


@pytest.mark.parametrize(
    ("changes", "context"),
    [
        ({}, Context("C", TEXTS)),
        ({"edge_case_context": None}, Context("C", TWO_TEXTS)),
        ({"edge_case_context": ""}, Context("C", TWO_TEXTS)),
        ({"edge_case_context": "  \n"}, Context("C", TWO_TEXTS)),
        ({"second_best": None}, Context(None, TEXTS)),
        ({"second_best": ""}, Context(None, TEXTS)),
        # other columns are the user's business
        ({"alternative_answer": "Pertussis", "note": "x", "author": "x"}, Context("C", TEXTS)),
        # a row can name its question by the stem
        ({"question": Q1.stem}, Context("C", TEXTS)),
        ({"question": " A man  coughs.\tWhy? "}, Context("C", TEXTS)),
        ({"question": "other", "second_best": "Z"}, Context()),
    ],
)
def test_a_row_is_read_cell_by_cell(
    tmp_path: Path, changes: dict[str, Any], context: Context
) -> None:
    contexts = load(write(tmp_path, ROW | changes, ROW | {"question": "q2"}))
    assert (contexts.of(Q1), contexts.of(Q2)) == (context, Context("C", TEXTS))
    assert contexts.unused_rows == (context == Context())


def test_a_number_as_id_is_its_text(tmp_path: Path) -> None:
    contexts = load(write(tmp_path, ROW | {"question": 7}), QuestionSet("mine", (question("7"),)))
    assert contexts.of(question("7")).second_best == "C"


def test_foreign_tables_are_read(tmp_path: Path) -> None:
    paper_row = {"question": Q1.stem, "answer": "Bronchitis", "options": OPTIONS, "answer_idx": "B",
                 "meta_info": "step1", **TEXTS, "alternative_answer": "Pertussis"}  # fmt: skip
    source = write_table(tmp_path / "theirs.parquet", paper_row)
    assert load(source).of(Q1) == Context(None, TEXTS)
    path = tmp_path / "untyped.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        lines = csv.DictWriter(out, ["id", "length", "sentences", "second_best", *TEXTS])
        lines.writeheader()
        lines.writerow({"id": "q1", "sentences": "2.0", **TEXTS})
        lines.writerow({"id": "q1", "length": "1.0", "second_best": "C",
                        "edge_case_context": "One."})  # fmt: skip
    context = load(str(path)).of(Q1)
    assert context == Context("C", TEXTS | {"edge_case_context@1": "One."})


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
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_odd_text_reaches_the_challenge_unchanged(tmp_path: Path, suffix: str, text: str) -> None:
    row = {"question": "q1", "misleading_context": text}
    contexts = load(write_table(tmp_path / f"mine.{suffix}", row))
    values = {**contexts.of(Q1).texts, "incorr_letter": "C"}
    prompt = challenge_prompt(built_in()["rag-style"].template, Q1, values)
    before, after = prompt.split(text)
    assert before == "I found this relevant information: "
    assert after.startswith(". Please reconsider and finalize your answer.\n\nResponse (")


# --- bad rows and files ---

BAD_ROWS: list[tuple[object, str | None, str]] = [
    ("{", None, "broken JSON"),
    ("[]", None, "JSON object"),
    (TEXTS, "question", "is missing"),
    ({**SECOND_ROW, "question": None}, "question", "is missing"),
    (ROW, "question", "row 1"),
    ({**ROW, "question": Q1.stem}, "question", "row 1"),
    ({**SECOND_ROW, "second_best": "B"}, "second_best", "'B'"),
    ({**SECOND_ROW, "second_best": "E"}, "second_best", "'E'"),
    ({**SECOND_ROW, "second_best": ["C"]}, "second_best", "not text"),
    ({**SECOND_ROW, "edge_case_context": 3}, "edge_case_context", "not text"),
    ({**SECOND_ROW, "edge_case_context": "x\ud800"}, "edge_case_context", "surrogate"),
    *(
        ({**SECOND_ROW, column: value}, column, "number of sentences")
        for column, value in zip(
            ["length", "sentences"] * 4, [0, -1, 1.5, "ten", True, [3], "１０", 0], strict=True
        )
    ),
    *(
        ({"question": "q2", "alternative_context": "Text.", column: "Text."}, column, "column")
        for column in ("misleading", "misleading_contexts", "edge_case_text")
    ),
]


@pytest.mark.parametrize(("row", "field", "reason"), BAD_ROWS)
def test_a_bad_row_is_refused(tmp_path: Path, row: object, field: str | None, reason: str) -> None:
    source = write(tmp_path, ROW, row)
    error = refusal(source)
    assert (error.file, error.row, error.field) == (source, 2, field)
    assert reason in error.fault


def test_a_wrong_second_best_offers_the_wrong_options(tmp_path: Path) -> None:
    assert refusal(write(tmp_path, ROW | {"second_best": "B"})).remedy == "Use one of A, C"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file"),
        (b"", "is empty"),
        (b"\xff\xfe{", "UTF-8"),
        (b'{"question": "q1", "text": "x"}', "contains no context"),
        (b'{"question": "q8", "misleading_context": "One."}', "2 questions of 'mine'"),
        ("bank", "2 questions of 'mine'"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    tmp_path: Path, content: bytes | str | None, reason: str
) -> None:
    source = content if isinstance(content, str) else str(tmp_path / "mine.jsonl")
    if isinstance(content, bytes):
        Path(source).write_bytes(content)
    error = refusal(source)
    assert error.file == source
    assert reason in error.fault


# --- lengths, reasons and fingerprints ---


def test_ablation_lengths_are_separate_from_the_study_length(tmp_path: Path) -> None:
    context = load(write(tmp_path, at(1), GENERATED_ROW, at(3, second_best=None))).of(Q1)
    assert (context.second_best, context.at("")) == ("C", TEXTS)
    assert context.at("1") == dict.fromkeys(CONTEXTS, "A sentence. ")
    assert context.at("3") == dict.fromkeys(CONTEXTS, "A sentence. " * 3)
    assert context.at("10") == {}
    assert context.obstacle("misleading_context", "3") is None
    missing = "no misleading_context of 10 sentences"
    assert context.obstacle("misleading_context", "10") == missing


def test_a_missing_text_has_its_reason(tmp_path: Path) -> None:
    failures = dict.fromkeys(CONTEXTS) | {"missing": dict.fromkeys(CONTEXTS, "refused")}
    later = at(3, misleading_context=None, missing={"misleading_context": "no JSON"})
    # a file of nothing but failures can be used
    assert load(write(tmp_path, GENERATED_ROW | failures)).of(Q1).texts == {}
    context = load(write(tmp_path, GENERATED_ROW | failures, later)).of(Q1)
    for kind in CONTEXTS:
        assert "(refused)" in str(context.obstacle(kind))
    assert "(no JSON)" in str(context.obstacle("misleading_context", "3"))
    assert context.obstacle("edge_case_context", "3") is None


@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"sentences": 1}, "misleading_context", "wrong sentence count"),
        ({"sentences": 3}, "misleading_context", "wrong sentence count"),
        ({"length": 3, "sentences": None}, "misleading_context", "wrong sentence count"),
        ({"alternative_answer": "croup"}, "alternative_context", "an option as diagnosis"),
        ({"alternative_answer": " ASTHMA."}, "alternative_context", "an option as diagnosis"),
        ({"alternative_context": "It beats option C. It does."}, "alternative_context",
         "an option letter"),
        ({"supporting_context": "Option C fits. A sentence."}, "supporting_context",
         "an option letter"),
        ({"supporting_context": "One."}, "supporting_context", "wrong sentence count"),
        ({"inert_context": "Option C is out. A sentence."}, "inert_context", "an option letter"),
    ],
)  # fmt: skip
def test_a_text_that_fails_its_check_is_left_out_of_its_technique_alone(
    tmp_path: Path, changes: dict[str, Any], kind: str, reason: str
) -> None:
    source = write(tmp_path, GENERATED_ROW | changes, SECOND_ROW)
    contexts = load(source)
    length = str(changes.get("length") or "")
    assert f"({reason})" in str(contexts.of(Q1).obstacle(kind, length))
    assert contexts.of(Q2) == Context("C", TEXTS)
    if kind != "misleading_context":
        assert contexts.of(Q1).obstacle("misleading_context") is None
    _, problems = check_contexts(source, QUESTIONS)
    key = f"{kind}@{length}" if length else kind
    assert (1, key) in [(problem.row, problem.field) for problem in problems]


@pytest.mark.parametrize(
    "changes",
    [{"content_hash": OTHER_HASH}, {"content_hash": None, "options": {**OPTIONS, "C": "Flu"}}],
    ids=["hash", "options"],
)
@pytest.mark.parametrize("second_best", ["C", "B"])  # B is the gold of this question
def test_texts_for_another_question_with_the_id_are_left_out(
    tmp_path: Path, changes: dict[str, Any], second_best: str
) -> None:
    context = load(write(tmp_path, GENERATED_ROW | changes | {"second_best": second_best})).of(Q1)
    assert (context.texts, context.second_best) == ({}, None)
    assert all("another question" in str(context.obstacle(kind)) for kind in CONTEXTS)


@pytest.mark.parametrize(
    ("rows", "is_same"),
    [
        ([SECOND_ROW, GENERATED_ROW], True),
        ([GENERATED_ROW | {"model": "openai/other"}, SECOND_ROW], True),
        # the study's own texts are as they were: so is the run
        ([GENERATED_ROW | {"supporting_context": "One. Two."}, SECOND_ROW], True),
        ([GENERATED_ROW], False),
        ([GENERATED_ROW | {"second_best": "A"}, SECOND_ROW], False),
        ([GENERATED_ROW | {"misleading_context": "Another one. Yes."}, SECOND_ROW], False),
        ([GENERATED_ROW | {"edge_case_context": None}, SECOND_ROW], False),
    ],
)
def test_the_fingerprint_is_that_of_the_texts(
    tmp_path: Path, rows: list[dict[str, Any]], is_same: bool
) -> None:
    before = load(write(tmp_path, GENERATED_ROW, SECOND_ROW)).fingerprints
    assert [len(value) for value in before.values()] == [16]
    after = load(write(tmp_path, *rows)).fingerprints
    assert (after == before) == is_same


def test_the_fingerprint_ignores_the_file_format(tmp_path: Path) -> None:
    source = write_table(tmp_path / "copy.parquet", ROW)
    assert load(source).fingerprints == load(write(tmp_path, ROW)).fingerprints


def test_lengths_added_later_leave_the_fingerprints_of_the_others(tmp_path: Path) -> None:
    before = load(write(tmp_path, GENERATED_ROW, at(1))).fingerprints
    after = load(write(tmp_path, GENERATED_ROW, at(1), at(10))).fingerprints
    assert (list(before), list(after)) == (["", "1"], ["", "1", "10"])
    assert before.items() <= after.items()
    assert len(set(after.values())) == 3


@pytest.mark.parametrize(
    ("rows", "is_same"),
    [
        ([GENERATED_ROW, SECOND_ROW], True),  # the file grows
        ([GENERATED_ROW | {"model": "openai/other"}], False),
        ([GENERATED_ROW | {"template_version": 2}], False),
        ([GENERATED_ROW | {"settings": {"temperature": 1.0}}], False),
    ],
)
def test_a_generated_file_is_known_by_its_origin(
    tmp_path: Path, rows: list[dict[str, Any]], is_same: bool
) -> None:
    before = load(f"generated:{write(tmp_path, GENERATED_ROW)}")
    after = load(f"generated:{write(tmp_path, *rows)}")
    assert (after.origin == before.origin) == is_same
    assert (after.fingerprints == before.fingerprints) == is_same
    assert load(write(tmp_path, *rows)).origin == ""


def test_a_technique_with_two_contexts_is_left_out_where_either_is_missing(tmp_path: Path) -> None:
    catalogue = tmp_path / "mine.toml"
    catalogue.write_text(
        'family = "mine"\naxis = "indirect"\ncitation = "me"\n[[technique]]\nid = "both"\n'
        'needs = ["misleading_context", "edge_case_context"]\n'
        'template = "{misleading_context} {edge_case_context}"\n'
    )
    row = ROW | {"second_best": None}
    rows = [
        row | {"question": "bank-renal-1"},
        row | {"question": "bank-renal-2", "edge_case_context": None},
        row | {"question": "bank-renal-3", "misleading_context": None},
    ]
    study = followup_study(
        contexts=write(tmp_path, *rows), techniques="both", challenges=str(catalogue)
    )
    ids = {entry.id for entry in study.questions.questions if not skipped(study, entry)}
    assert ids == {"bank-renal-1"}


# --- the check ---


def problems(source: str, *args: Any) -> list[tuple[int, str | None]]:
    _, faults = check_contexts(source, *args)
    return sorted((problem.row, problem.field or "") for problem in faults)


def test_the_check_reports_every_fault_and_keeps_the_sound_rows(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        "{",
        GENERATED_ROW,
        GENERATED_ROW,
        {"question": "q2", "second_best": "B", "misleading_context": 3},
        {"misleading_context": "One."},
        at(3, edge_case_context="One."),
    )
    assert check_contexts(source, QUESTIONS)[0].of(Q1).at("") == TEXTS
    assert problems(source, QUESTIONS) == [
        (1, ""), (3, "question"), (4, "misleading_context"), (4, "second_best"), (5, "question"),
        (6, "edge_case_context@3"),
    ]  # fmt: skip
    assert problems(write(tmp_path, GENERATED_ROW, at(1), at(10)), QUESTIONS) == []


def test_all_texts_can_be_checked_for_one_length(tmp_path: Path) -> None:
    source = write(tmp_path, {"question": "q1", **TEXTS, "edge_case_context": "One. Two. Three."})
    assert problems(source, QUESTIONS) == []
    assert problems(source, QUESTIONS, 2) == [(1, "edge_case_context")]
    assert problems(source, QUESTIONS, 5) == sorted((1, kind) for kind in CONTEXTS)


def test_without_questions_the_rows_are_checked_by_themselves(tmp_path: Path) -> None:
    row = {**GENERATED_ROW, "content_hash": OTHER_HASH, "second_best": "Z"}
    row["alternative_answer"] = "Croup"
    assert problems(write(tmp_path, row)) == []
    contexts, faults = check_contexts(write(tmp_path, row | {"sentences": 9}))
    assert (len(faults), contexts.unused_rows) == (3, 0)
