import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast.errors import InputError
from holdfast.questions.fields import Fields
from holdfast.questions.loading import Problem, check_questions, load_questions
from holdfast.questions.question import Question

JAMA_ROW: dict[str, Any] = {
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
    "A": "Tinea corporis",
    "B": "Granuloma annulare",
    "C": "Psoriasis",
    "D": "Nummular eczema",
}


def jsonl(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def only(source: str, columns: Fields | None = None) -> Question:
    (question,) = load_questions(source, columns).questions
    return question


def refusal(source: str, columns: Fields | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        load_questions(source, columns)
    return caught.value


# --- JAMA Clinical Challenges ---


def as_jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_json(rows: Sequence[dict[str, Any]]) -> bytes:
    return json.dumps(rows, indent=4).encode()


def as_csv(rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    held = io.BytesIO()
    pl.DataFrame(list(rows)).write_parquet(held)
    return held.getvalue()


KINDS: dict[str, Callable[[Sequence[dict[str, Any]]], bytes]] = {
    "jsonl": as_jsonl,
    "json": as_json,
    "csv": as_csv,
    "parquet": as_parquet,
}


@pytest.mark.parametrize("kind", KINDS)
def test_jama_rows_are_recognised_in_any_kind_of_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"jama.{kind}"
    other = {**JAMA_ROW, "opa": "Tinea", "answer_idx": "d", "field": "Psychiatry"}
    path.write_bytes(KINDS[kind]([JAMA_ROW, other]))
    asked = {"stem": JAMA_ROW["question"], "source": "jama"}
    others = OPTIONS | {"A": "Tinea"}
    assert load_questions(str(path)).questions == (
        Question(id="0000", options=OPTIONS, gold="A", specialty="Dermatology", **asked),
        Question(id="0001", options=others, gold="D", specialty="Psychiatry", **asked),
    )


def test_a_jama_id_is_kept(tmp_path: Path) -> None:
    assert only(jsonl(tmp_path, {"id": 17, **JAMA_ROW})).id == "17"


@pytest.mark.parametrize("absent", ["link", "diagnosis", "answer", "explanation", "field"])
def test_what_jama_may_lack(tmp_path: Path, absent: str) -> None:
    asked = only(jsonl(tmp_path, without(JAMA_ROW, absent)))
    assert (asked.gold, asked.options) == ("A", OPTIONS)
    assert asked.specialty == (None if absent == "field" else "Dermatology")


@pytest.mark.parametrize(
    ("needed", "field", "what"),
    [("answer_idx", "answer_idx", "is missing"), ("question", "question", "is missing")],
)
def test_what_jama_needs(tmp_path: Path, needed: str, field: str, what: str) -> None:
    error = refusal(jsonl(tmp_path, JAMA_ROW, without(JAMA_ROW, needed)))
    assert (error.row, error.field, error.fault) == (2, field, what)


def test_a_specialty_column_stands_in_for_field(tmp_path: Path) -> None:
    row = {**without(JAMA_ROW, "field"), "specialty": "Ophthalmology"}
    assert only(jsonl(tmp_path, row)).specialty == "Ophthalmology"


def test_a_jama_field_that_the_first_row_lacks_is_read(tmp_path: Path) -> None:
    source = jsonl(tmp_path, without(JAMA_ROW, "field"), JAMA_ROW)
    assert [q.specialty for q in load_questions(source).questions] == [None, "Dermatology"]


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ("E", "'E' is neither one of the options A, B, C, D"),
        (2, "is a number"),
        ("2", "is a number"),
        (None, "is missing"),
    ],
)
def test_a_jama_answer_that_is_no_letter_is_refused(
    tmp_path: Path, answer: object, what: str
) -> None:
    error = refusal(jsonl(tmp_path, JAMA_ROW, {**JAMA_ROW, "answer_idx": answer}))
    assert (error.row, error.field) == (2, "answer_idx")
    assert what in error.fault


def test_identical_options_are_refused_in_jama_with_the_row(tmp_path: Path) -> None:
    source = jsonl(tmp_path, JAMA_ROW, {**JAMA_ROW, "opc": "Tinea corporis "})
    found, problems = check_questions(source)
    assert problems == [Problem(2, "options", "options A and C have the same text")]
    assert found.left_out == ()
    assert refusal(source).row == 2


def test_a_fifth_option_of_a_later_row_is_an_option(tmp_path: Path) -> None:
    source = jsonl(tmp_path, JAMA_ROW, {**JAMA_ROW, "ope": "Erythrasma", "answer_idx": "E"})
    four, five = load_questions(source).questions
    assert four.options == OPTIONS
    assert five.options == {**OPTIONS, "E": "Erythrasma"}
    assert five.gold == "E"


# --- the marks of two shapes ---


@pytest.mark.parametrize(
    ("more", "options", "gold", "specialty"),
    [
        pytest.param({}, list(OPTIONS.values()), "A", "Dermatology", id="jama"),
        pytest.param(
            {"cop": 2}, list(OPTIONS.values()), "A", "Dermatology", id="a-letter-before-a-number"
        ),
        pytest.param(
            {"options": {"A": "x", "B": "y"}}, ["x", "y"], "A", None, id="options-in-one-column"
        ),
        pytest.param(
            {"options": {"A": "x", "B": "y"}, "cop": 2}, ["x", "y"], "A", None, id="all-three"
        ),
    ],
)
def test_which_shape_a_row_with_the_marks_of_two_has(
    tmp_path: Path, more: dict[str, Any], options: list[str], gold: str, specialty: str | None
) -> None:
    asked = only(jsonl(tmp_path, {**JAMA_ROW, **more}))
    assert (list(asked.options.values()), asked.gold) == (options, gold)
    assert asked.specialty == specialty


def test_a_number_without_a_letter_is_medmcqa(tmp_path: Path) -> None:
    row = {**without(JAMA_ROW, "answer_idx", "answer"), "cop": 2, "subject_name": "Skin"}
    asked = only(jsonl(tmp_path, row))
    assert (asked.gold, asked.subject, asked.specialty) == ("B", "Skin", None)


# --- one column for each option ---


@pytest.mark.parametrize("family", ["{0}", "{1}", "option_{1}", "op{1}"])
@pytest.mark.parametrize("n", range(2, 27))
def test_2_to_26_columns_are_options(tmp_path: Path, n: int, family: str) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n]
    columns = {family.format(x, x.lower()): f"Finding {x}" for x in letters}
    asked = only(jsonl(tmp_path, {"stem": "Why?", **columns, "gold": letters[-1]}))
    assert asked.options == {x: f"Finding {x}" for x in letters}
    assert asked.gold == letters[-1]


def test_27_columns_are_too_many(tmp_path: Path) -> None:
    names = tuple(f"o{n}" for n in range(27))
    row = {"stem": "Why?", **{name: name for name in names}, "gold": "A"}
    error = refusal(jsonl(tmp_path, row), Fields(options=names))
    assert (error.row, error.field) == (1, "options")
    assert error.fault == "has 27 options, but a question needs 2 to 26"


def test_an_option_column_that_the_first_row_lacks_is_an_option(tmp_path: Path) -> None:
    first = {"stem": "Why?", "A": "x", "B": "y", "gold": "A"}
    found = load_questions(jsonl(tmp_path, first, {**first, "C": "z", "gold": "C"})).questions
    assert [list(q.options.values()) for q in found] == [["x", "y"], ["x", "y", "z"]]


@pytest.mark.parametrize("shape", ["jama", "plain"])
def test_option_columns_with_a_gap_are_not_lettered_anew(tmp_path: Path, shape: str) -> None:
    row = {**JAMA_ROW, "opf": "Lichen planus"}
    if shape == "plain":
        row = {**without(row, "question", "answer_idx", "answer"), "stem": "Why?", "gold": "A"}
    error = refusal(jsonl(tmp_path, row))
    assert error.field == "options"
    assert error.fault == "columns opa, opb, opc, opd, opf leave a gap after opd"
    assert "--fields" in str(error)
    columns = Fields.parse(
        "stem=question,options=opa|opb|opc|opd,gold=answer_idx"
        if shape == "jama"
        else "options=opa|opb|opc|opd"
    )
    assert only(str(tmp_path / "set.jsonl"), columns).options == OPTIONS


def test_a_single_letter_away_from_the_options_makes_no_option(tmp_path: Path) -> None:
    row = {"stem": "Why?", "opa": "x", "opb": "y", "x": "no option", "gold": "A"}
    assert only(jsonl(tmp_path, row)).options == {"A": "x", "B": "y"}


def test_rows_of_medmcqa_read_with_other_columns_are_refused_not_left_out(tmp_path: Path) -> None:
    row = {"stem": "Why?", "w": "x", "y": "x", "cop": 1}
    columns = Fields(options=("w", "y"), gold="cop", gold_base=1)
    found, problems = check_questions(jsonl(tmp_path, row), columns)
    assert [problem.row for problem in problems] == [1]
    assert found.left_out == ()


# --- named sets keep their own columns ---

OWN = Fields(stem="vignette", options=("w", "x"), gold="key", gold_base=1)


def test_fields_are_not_for_the_bank() -> None:
    assert load_questions("bank", OWN) == load_questions("bank")


@pytest.mark.parametrize(
    ("name", "row", "gold"),
    [
        (
            "medqa",
            {"question": "Why?", "options": {"A": "x", "B": "y"}, "answer_idx": "B"},
            "B",
        ),
        ("medmcqa", {**without(JAMA_ROW, "answer_idx"), "cop": 2}, "C"),
    ],
)
def test_fields_are_not_for_named_sets(
    monkeypatch: pytest.MonkeyPatch, name: str, row: dict[str, Any], gold: str
) -> None:
    def published(spec: str, config: str | None, _: str) -> Iterator[tuple[int, dict[str, Any]]]:
        yield 1, row

    monkeypatch.setattr("holdfast.questions.sets.read_hugging_face", published)
    assert only(name, OWN) == only(name)
    assert only(name, OWN).gold == gold


def test_fields_are_for_other_sets_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def published(spec: str) -> Iterator[tuple[int, dict[str, Any]]]:
        yield 1, {"vignette": "Why?", "w": "a", "x": "b", "key": 2}

    monkeypatch.setattr("holdfast.questions.loading.read_hugging_face", published)
    assert only("hf:owner/name@abc", OWN).gold == "B"


def test_fields_serve_a_file_that_stands_beside_a_named_set(tmp_path: Path) -> None:
    mine = jsonl(tmp_path, {"vignette": "Why?", "w": "a", "x": "b", "key": 2})
    sets = [load_questions(source, OWN) for source in ("bank", mine)]
    assert [(found.name, len(found.questions)) for found in sets] == [("bank", 60), ("set", 1)]


# --- --fields ---


def test_fields_not_named_keep_their_columns() -> None:
    assert Fields.parse("gold=key") == Fields(gold="key")


# --- columns named by the user are added to those recognised ---

MEDQA_ROW: dict[str, Any] = {
    "question": "Why?", "options": {"A": "x", "B": "y", "C": "z"}, "answer_idx": "B",
    "meta_info": "step1",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("row", "named", "labels"),
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
def test_fields_add_to_what_is_recognised(
    tmp_path: Path, kind: str, row: dict[str, Any], named: str, labels: dict[str, str]
) -> None:
    path = tmp_path / f"set.{kind}"
    as_text = kind == "csv" and "choices" in row
    path.write_bytes(
        KINDS[kind]([row | {"choices": json.dumps(row["choices"])} if as_text else row])
    )
    asked = only(str(path), Fields.parse(named))
    assert (asked.stem, list(asked.options.values()), asked.gold) == ("Why?", ["x", "y"], "B")
    assert {label: getattr(asked, label) for label in labels} == labels


@pytest.mark.parametrize("named", ["step=stp", "id=number", "options=opa|opx", "gold=key"])
def test_a_named_column_that_no_row_has_is_refused(tmp_path: Path, named: str) -> None:
    field, _, column = named.partition("=")
    error = refusal(jsonl(tmp_path, JAMA_ROW, JAMA_ROW), Fields.parse(named))
    assert (error.field, error.row) == (field, None)
    assert f"names the column '{column.rpartition('|')[2]}'" in error.fault


@pytest.mark.parametrize("row", [MEDQA_ROW, JAMA_ROW, {**JAMA_ROW, "cop": 1}])
@pytest.mark.parametrize(
    ("column", "field"),
    [("step", "step"), ("system", "system"), ("specialty", "specialty"), ("subject", "subject"),
     ("question_id", "id"), ("qid", "id")],
)  # fmt: skip
def test_a_known_layout_takes_labels_and_ids_by_their_own_names(
    tmp_path: Path, row: dict[str, Any], column: str, field: str
) -> None:
    source = jsonl(tmp_path, {**row, column: "value"})
    assert getattr(only(source), field) == "value"


def test_columns_that_are_read_and_ignored_are_in_the_set(tmp_path: Path) -> None:
    asked = load_questions(jsonl(tmp_path, {**MEDQA_ROW, "step": "step2&3", "answer": "y"}))
    assert asked.shape is not None
    assert asked.shape.columns == {
        "stem": ("question",), "options": ("options",), "gold": ("answer_idx",), "step": ("step",),
    }  # fmt: skip
    assert asked.ignored_columns == ("meta_info", "answer")


def test_a_context_column_of_a_file_is_ignored(tmp_path: Path) -> None:
    asked = load_questions(jsonl(tmp_path, {**MEDQA_ROW, "context": "Long ago."}))
    assert (asked.contexts, asked.ignored_columns) == ((), ("context",))


# --- the number of the first option ---


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_count_from_0_where_one_is_0(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"set.{kind}"
    row = {"stem": "Why?", "A": "x", "B": "y", "C": "z"}
    path.write_bytes(KINDS[kind]([{**row, "stem": f"Why {n}?", "gold": n} for n in (2, 0, 1)]))
    assert [question.gold for question in load_questions(str(path)).questions] == ["C", "A", "B"]


def test_medmcqa_in_a_file_counts_from_0_where_one_is_0(tmp_path: Path) -> None:
    row = without(JAMA_ROW, "answer_idx", "answer", "field")
    rows = [{**row, "question": f"Why {n}?", "cop": n} for n in range(4)]
    assert [q.gold for q in load_questions(jsonl(tmp_path, *rows)).questions] == list("ABCD")


@pytest.mark.parametrize(
    ("golds", "what"),
    [
        pytest.param(
            [1, 2],
            "is a number. Say whether numbers start at 0 or 1: -T fields=gold_base=0",
            id="no-0",
        ),
        pytest.param(
            ["A", 0],
            "is a number. Say whether numbers start at 0 or 1: -T fields=gold_base=0",
            id="a-letter",
        ),
        pytest.param([0, 3], "3 is not an option: counted from 0", id="past-the-end"),
    ],
)
def test_numbers_that_tell_no_base_are_refused(
    tmp_path: Path, golds: list[object], what: str
) -> None:
    rows: list[dict[str, Any]] = [
        {"stem": f"{n}?", "options": ["x", "y"], "gold": gold} for n, gold in enumerate(golds)
    ]
    assert what in refusal(jsonl(tmp_path, *rows)).fault


def test_an_option_that_reads_0_is_no_number_of_an_option(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"stem": "How many?", "options": ["2", "0"], "gold": 0},
        {"stem": "And then?", "options": ["1", "2"], "gold": "2"},
    ]
    found = load_questions(jsonl(tmp_path, *rows)).questions
    assert [question.gold for question in found] == ["B", "B"]


# --- the same question with two keys ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [("x", "y", "z"), ("z", "y", "x")], ids=["same", "another"])
def test_the_same_stem_and_options_with_another_key_name_both_rows(
    tmp_path: Path, kind: str, order: tuple[str, str, str]
) -> None:
    def row(stem: str, options: Sequence[str], key: str) -> dict[str, Any]:
        return {"stem": stem, **dict(zip("ABC", options, strict=True)), "gold": key}

    path = tmp_path / f"set.{kind}"
    rows = [row("Why?", "xyz", "x"), row("What?", "xyz", "x"), row("Why? ", order, "z")]
    path.write_bytes(KINDS[kind](rows))
    found, problems = check_questions(str(path))
    what = "the key is '{}', but row {} has the same stem and options with the key '{}'"
    assert problems == [
        Problem(1, "gold", what.format("x", 3, "z")),
        Problem(3, "gold", what.format("z", 1, "x")),
    ]
    assert [question.stem for question in found.questions] == ["What?"]
    assert refusal(str(path)).row == 1


def test_a_published_set_leaves_out_both_rows_of_a_contradiction(tmp_path: Path) -> None:
    rows = [{**MEDQA_ROW, "question": f"Why {n}?"} for n in range(30)]
    copy = jsonl(tmp_path, *rows, {**rows[0], "answer_idx": "C"})
    found = load_questions(f"medqa={copy}")
    assert len(found.questions) == 29
    assert [problem.row for problem in found.left_out] == [1, 31]


def test_a_repeated_question_names_both_rows(tmp_path: Path) -> None:
    row = {"stem": "Why?", "options": ["x", "y"], "gold": "A"}
    found, problems = check_questions(jsonl(tmp_path, row, {**row, "stem": "What?"}, row))
    assert problems == []
    assert found.repeated_rows == (
        Problem(3, "id", "'0002' asks the same question as '0000' in row 1"),
    )


def test_options_joined_by_bars_are_columns() -> None:
    assert Fields.parse("options=a|b|c").options == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("stm=x", "unknown field 'stm'", "Did you mean 'stem'"),
        ("stem", "'stem' is not name=column", "Write for example"),
        ("stem=", "'stem=' is not name=column", "Write for example"),
        ("", "'' is not name=column", "Write for example"),
        (
            "gold_base=2",
            "gold_base is '2', which is neither 0 nor 1",
            "Give the number of the first option",
        ),
        (
            "gold_base=one",
            "gold_base is 'one', which is neither 0 nor 1",
            "Give the number of the first option",
        ),
    ],
)
def test_bad_fields_are_refused(text: str, what: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        Fields.parse(text)
    assert caught.value.field == "fields"
    assert caught.value.fault == what
    assert remedy in str(caught.value)
