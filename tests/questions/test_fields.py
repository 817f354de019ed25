from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.questions.question_files import (
    KINDS,
    MEDQA_ROW,
    Row,
    jsonl,
    only,
    refusal,
    without,
    write,
)

from holdfast.errors import InputError
from holdfast.questions.fields import Fields
from holdfast.questions.loading import Problem, check_questions, load_questions
from holdfast.questions.question import Question

JAMA_ROW: Row = {
    "link": "https://example.org/1",
    "question": "A red, scaly ring grows on the arm.\nWhat is your diagnosis?",
    "opa": "Tinea corporis",
    "opb": "Granuloma annulare",
    "opc": "Psoriasis",
    "opd": "Nummular eczema",
    "diagnosis": "Ringworm",
    "answer_idx": "A",
    "answer": "Tinea corporis",
    "explanation": "Scale at the edge.",
    "field": "Dermatology",
}
OPTIONS = {
    "A": "Tinea corporis", "B": "Granuloma annulare", "C": "Psoriasis", "D": "Nummular eczema",
}  # fmt: skip

every_kind = pytest.mark.parametrize("kind", KINDS)

# --- JAMA Clinical Challenges ---


@every_kind
def test_jama_rows_are_recognised_in_any_kind_of_file(tmp_path: Path, kind: str) -> None:
    second = {**JAMA_ROW, "opa": "Tinea", "answer_idx": "d", "field": "Psychiatry"}
    constants = {"stem": JAMA_ROW["question"], "source": "set"}
    assert load_questions(write(tmp_path, kind, JAMA_ROW, second)).questions == (
        Question(id="0000", options=OPTIONS, gold="A", specialty="Dermatology", **constants),
        Question(
            id="0001",
            options=OPTIONS | {"A": "Tinea"},
            gold="D",
            specialty="Psychiatry",
            **constants,
        ),
    )


@pytest.mark.parametrize("absent", ["link", "diagnosis", "answer", "explanation", "field"])
def test_a_jama_row_may_lack_a_column(tmp_path: Path, absent: str) -> None:
    question = only(jsonl(tmp_path, {"id": 17, **without(JAMA_ROW, absent)}))
    assert (question.id, question.gold, question.options) == ("17", "A", OPTIONS)
    assert question.specialty == (None if absent == "field" else "Dermatology")


def test_the_specialty_of_a_jama_row_is_its_field_or_its_specialty(tmp_path: Path) -> None:
    without_field = without(JAMA_ROW, "field")
    source = jsonl(tmp_path, {**without_field, "specialty": "Ophthalmology"})
    assert only(source).specialty == "Ophthalmology"
    source = jsonl(tmp_path, without_field, JAMA_ROW)
    assert [q.specialty for q in load_questions(source).questions] == [None, "Dermatology"]


@pytest.mark.parametrize(
    ("row", "field", "fact"),
    [
        (without(JAMA_ROW, "answer_idx"), "answer_idx", "is missing"),
        (without(JAMA_ROW, "question"), "question", "is missing"),
        ({**JAMA_ROW, "answer_idx": "E"}, "answer_idx", "'E' is neither one of the options A, B"),
        ({**JAMA_ROW, "answer_idx": 2}, "answer_idx", "is a number"),
        ({**JAMA_ROW, "answer_idx": "2"}, "answer_idx", "is a number"),
        ({**JAMA_ROW, "answer_idx": None}, "answer_idx", "is missing"),
        ({**JAMA_ROW, "opc": "Tinea corporis "}, "options", "A and C have the same text"),
    ],
)
def test_a_bad_jama_row_is_refused(tmp_path: Path, row: Row, field: str, fact: str) -> None:
    source = jsonl(tmp_path, JAMA_ROW, row)
    error = refusal(source)
    assert (error.row, error.field) == (2, field)
    assert fact in error.fault
    assert check_questions(source)[0].left_out == ()


def test_a_fifth_option_may_come_in_a_later_row(tmp_path: Path) -> None:
    source = jsonl(tmp_path, JAMA_ROW, {**JAMA_ROW, "ope": "Erythrasma", "answer_idx": "E"})
    four, five = load_questions(source).questions
    assert four.options == OPTIONS
    assert (five.options, five.gold) == ({**OPTIONS, "E": "Erythrasma"}, "E")


# --- rows with the marks of two shapes ---


@pytest.mark.parametrize(
    ("columns", "options", "specialty"),
    [
        ({}, list(OPTIONS.values()), "Dermatology"),
        ({"cop": 2}, list(OPTIONS.values()), "Dermatology"),
        ({"options": {"A": "x", "B": "y"}}, ["x", "y"], None),
        ({"options": {"A": "x", "B": "y"}, "cop": 2}, ["x", "y"], None),
    ],
)
def test_letters_precede_numbers_and_options_precede_columns(
    tmp_path: Path, columns: Row, options: list[str], specialty: str | None
) -> None:
    question = only(jsonl(tmp_path, {**JAMA_ROW, **columns}))
    assert (list(question.options.values()), question.gold) == (options, "A")
    assert question.specialty == specialty


def test_a_number_without_a_letter_is_medmcqa(tmp_path: Path) -> None:
    row = {**without(JAMA_ROW, "answer_idx", "answer"), "cop": 2, "subject_name": "Skin"}
    question = only(jsonl(tmp_path, row))
    assert (question.gold, question.subject, question.specialty) == ("B", "Skin", None)


# --- one column for each option ---


@pytest.mark.parametrize("family", ["{0}", "{1}", "option_{1}", "op{1}"])
def test_2_to_26_columns_are_options(tmp_path: Path, family: str) -> None:
    for n in range(2, 27):
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n]
        columns = {family.format(x, x.lower()): f"Finding {x}" for x in letters}
        question = only(jsonl(tmp_path, {"stem": "Why?", **columns, "gold": letters[-1]}))
        assert question.options == {x: f"Finding {x}" for x in letters}
        assert question.gold == letters[-1]


def test_27_columns_are_too_many(tmp_path: Path) -> None:
    names = tuple(f"o{n}" for n in range(27))
    row = {"stem": "Why?", **{name: name for name in names}, "gold": "A"}
    error = refusal(jsonl(tmp_path, row), Fields(options=names))
    assert (error.row, error.field) == (1, "options")
    assert "has 27 options" in error.fault


def test_an_option_column_may_be_empty_in_the_first_row(tmp_path: Path) -> None:
    first = {"stem": "Why?", "A": "x", "B": "y", "gold": "A"}
    questions = load_questions(jsonl(tmp_path, first, {**first, "C": "z", "gold": "C"})).questions
    assert [list(q.options.values()) for q in questions] == [["x", "y"], ["x", "y", "z"]]


@pytest.mark.parametrize("shape", ["jama", "plain"])
def test_option_columns_with_a_gap_are_refused_and_can_be_named(tmp_path: Path, shape: str) -> None:
    row, fields = {**JAMA_ROW, "opf": "Lichen planus"}, "options=opa|opb|opc|opd"
    if shape == "plain":
        row = {**without(row, "question", "answer_idx", "answer"), "stem": "Why?", "gold": "A"}
    else:
        fields += ",stem=question,gold=answer_idx"
    source = jsonl(tmp_path, row)
    error = refusal(source)
    assert error.field == "options"
    assert error.fault == "columns opa, opb, opc, opd, opf leave a gap after opd"
    assert "--fields" in str(error)
    assert only(source, Fields.parse(fields)).options == OPTIONS


def test_a_distant_single_letter_is_no_option(tmp_path: Path) -> None:
    row = {"stem": "Why?", "opa": "x", "opb": "y", "x": "no option", "gold": "A"}
    assert only(jsonl(tmp_path, row)).options == {"A": "x", "B": "y"}


def test_medmcqa_rows_with_other_columns_are_refused(tmp_path: Path) -> None:
    row = {"stem": "Why?", "w": "x", "y": "x", "cop": 1}
    columns = Fields(options=("w", "y"), gold="cop", gold_base=1)
    question_set, problems = check_questions(jsonl(tmp_path, row), columns)
    assert [problem.row for problem in problems] == [1]
    assert question_set.left_out == ()


# --- sets with a layout of their own ---

MY_FIELDS = Fields(stem="vignette", options=("w", "x"), gold="key", gold_base=1)
MY_ROW: Row = {"vignette": "Why?", "w": "a", "x": "b", "key": 2}


@pytest.mark.parametrize(
    ("name", "row", "gold"),
    [
        ("medqa", {"question": "Why?", "options": {"A": "x", "B": "y"}, "answer_idx": "B"}, "B"),
        ("medmcqa", {**without(JAMA_ROW, "answer_idx"), "cop": 2}, "C"),
    ],
)
def test_fields_are_not_for_named_sets(
    monkeypatch: pytest.MonkeyPatch, name: str, row: Row, gold: str
) -> None:
    def published_rows(spec: str, config: str | None, _: str) -> Iterator[tuple[int, Row]]:
        yield 1, row

    monkeypatch.setattr("holdfast.questions.sets.read_hugging_face", published_rows)
    assert only(name, MY_FIELDS) == only(name)
    assert only(name, MY_FIELDS).gold == gold


def test_fields_are_for_files_and_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hub_rows(spec: str) -> Iterator[tuple[int, Row]]:
        yield 1, MY_ROW

    assert load_questions("bank", MY_FIELDS) == load_questions("bank")
    assert only(jsonl(tmp_path, MY_ROW), MY_FIELDS).gold == "B"
    monkeypatch.setattr("holdfast.questions.loading.read_hugging_face", hub_rows)
    assert only("hf:owner/name@abc", MY_FIELDS).gold == "B"


# --- columns that the user names, beside those that are recognised ---


@every_kind
@pytest.mark.parametrize(
    ("row", "fields", "labels"),
    [
        ({"question": "Why?", "choices": ["x", "y"], "answer": 1, "subject": "Skin"},
         "gold_base=0", {"subject": "Skin"}),
        ({"question": "Why?", "opa": "x", "opb": "y", "key": "b", "step": "step1"},
         "gold=key", {"step": "step1"}),
        ({"vignette text": "Why?", "A": "x", "B": "y", "Correct answer": "B", "level": "step1"},
         "stem=vignette text,step=level", {"step": "step1"}),
        ({"question": "Why?", "opa": "x", "opb": "y", "cop": 2, "area": "Skin"},
         "specialty=area", {"specialty": "Skin"}),
    ],
    ids=["base", "gold", "stem-and-step", "medmcqa"],
)  # fmt: skip
def test_fields_add_to_the_recognised_columns(
    tmp_path: Path, kind: str, row: Row, fields: str, labels: dict[str, str]
) -> None:
    question = only(write(tmp_path, kind, row), Fields.parse(fields))
    assert (question.stem, question.gold) == ("Why?", "B")
    assert list(question.options.values()) == ["x", "y"]
    assert {label: getattr(question, label) for label in labels} == labels


@pytest.mark.parametrize("field", ["step=stp", "id=number", "options=opa|opx", "gold=key"])
def test_a_named_column_that_no_row_has_is_refused(tmp_path: Path, field: str) -> None:
    name, _, column = field.partition("=")
    error = refusal(jsonl(tmp_path, JAMA_ROW, JAMA_ROW), Fields.parse(field))
    assert (error.field, error.row) == (name, None)
    assert f"'{column.rpartition('|')[2]}'" in error.fault


@pytest.mark.parametrize("row", [MEDQA_ROW, JAMA_ROW, {**JAMA_ROW, "cop": 1}])
def test_a_known_layout_finds_labels_and_ids_by_name(tmp_path: Path, row: Row) -> None:
    labels = ("step", "system", "specialty", "subject")
    for column, field in {**dict(zip(labels, labels, strict=True)), "question_id": "id",
                          "qid": "id"}.items():  # fmt: skip
        assert getattr(only(jsonl(tmp_path, {**row, column: "value"})), field) == "value"


def test_the_set_lists_read_and_ignored_columns(tmp_path: Path) -> None:
    row = {**MEDQA_ROW, "step": "step1", "context": "Long ago."}
    question_set = load_questions(jsonl(tmp_path, row))
    assert question_set.shape is not None
    assert question_set.shape.columns == {
        "stem": ("question",), "options": ("options",), "gold": ("answer_idx",), "step": ("step",),
    }  # fmt: skip
    assert question_set.ignored_columns == ("answer", "meta_info", "context")
    assert question_set.contexts == ()


# --- the number of the first option ---


@every_kind
def test_numbers_count_from_0_if_any_is_0(tmp_path: Path, kind: str) -> None:
    row = {"A": "x", "B": "y", "C": "z"}
    source = write(tmp_path, kind, *({"stem": f"Why {n}?", **row, "gold": n} for n in (2, 0, 1)))
    assert [question.gold for question in load_questions(source).questions] == ["C", "A", "B"]


def test_medmcqa_files_count_from_0_if_any_is_0(tmp_path: Path) -> None:
    row = without(JAMA_ROW, "answer_idx", "answer", "field")
    rows = [{**row, "question": f"Why {n}?", "cop": n} for n in range(4)]
    assert [q.gold for q in load_questions(jsonl(tmp_path, *rows)).questions] == list("ABCD")


@pytest.mark.parametrize(
    ("golds", "fact"),
    [
        ([1, 2], "gold_base=0 or 1"),
        (["A", 0], "gold_base=0 or 1"),
        ([0, 3], "3 is not an option: counted from 0"),
    ],
)
def test_numbers_of_an_unknown_start_are_refused(
    tmp_path: Path, golds: list[object], fact: str
) -> None:
    rows = [{"stem": f"{n}?", "options": ["x", "y"], "gold": gold} for n, gold in enumerate(golds)]
    assert fact in refusal(jsonl(tmp_path, *rows)).fault


def test_an_option_text_of_0_is_no_option_number(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"stem": "How many?", "options": ["2", "0"], "gold": 0},
        {"stem": "And then?", "options": ["1", "2"], "gold": "2"},
    ]
    questions = load_questions(jsonl(tmp_path, *rows)).questions
    assert [question.gold for question in questions] == ["B", "B"]


# --- the same question twice ---


@every_kind
@pytest.mark.parametrize("order", ["xyz", "zyx"])
def test_contradictory_keys_name_both_rows(tmp_path: Path, kind: str, order: str) -> None:
    def row(stem: str, options: Sequence[str], key: str) -> Row:
        return {"stem": stem, **dict(zip("ABC", options, strict=True)), "gold": key}

    rows = [row("Why?", "xyz", "x"), row("What?", "xyz", "x"), row("Why? ", order, "z")]
    question_set, problems = check_questions(write(tmp_path, kind, *rows))
    assert [(problem.row, problem.field) for problem in problems] == [(1, "gold"), (3, "gold")]
    for problem, (key, row_number, second_key) in zip(
        problems, [("x", 3, "z"), ("z", 1, "x")], strict=True
    ):
        assert f"'{key}', but row {row_number} " in problem.message
        assert problem.message.endswith(f"'{second_key}'")
    assert [question.stem for question in question_set.questions] == ["What?"]


def test_a_published_set_omits_contradictory_rows(tmp_path: Path) -> None:
    rows = [{**MEDQA_ROW, "question": f"Why {n}?"} for n in range(30)]
    source = jsonl(tmp_path, *rows, {**rows[0], "answer_idx": "C"})
    question_set = load_questions(f"medqa={source}")
    assert len(question_set.questions) == 29
    assert [problem.row for problem in question_set.left_out] == [1, 31]


def test_a_repeated_question_names_both_rows(tmp_path: Path) -> None:
    row = {"stem": "Why?", "options": ["x", "y"], "gold": "A"}
    question_set, problems = check_questions(jsonl(tmp_path, row, {**row, "stem": "What?"}, row))
    assert problems == []
    assert question_set.repeated_rows == (
        Problem(3, "id", "'0002' asks the same question as '0000' in row 1"),
    )


# --- the text of --fields ---


def test_fields_are_parsed() -> None:
    assert Fields.parse("gold=key") == Fields(gold="key")
    assert Fields.parse("options=a|b|c").options == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "fault", "remedy"),
    [
        ("stm=x", "unknown field 'stm'", "'stem'"),
        ("stem", "'stem' is not name=column", "Write"),
        ("stem=", "'stem=' is not name=column", "Write"),
        ("", "'' is not name=column", "Write"),
        ("gold_base=2", "gold_base is '2', which is neither 0 nor 1", "number"),
        ("gold_base=one", "gold_base is 'one', which is neither 0 nor 1", "number"),
    ],
)
def test_bad_fields_are_refused(text: str, fault: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        Fields.parse(text)
    assert (caught.value.field, caught.value.fault) == ("fields", fault)
    assert remedy in str(caught.value.remedy)
