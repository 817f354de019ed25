import asyncio
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput
from tests.studies import question_rows, study, turns_of, write_jsonl

from holdfast.errors import InputError
from holdfast.models.offline import Recorded
from holdfast.questions.question import Question
from holdfast.questions.truth import Truth, under_test
from holdfast.results.turns import SCHEMA

ROWS = [
    {"question": "q1", "path": "", "reply": "First: A"},
    {"question": "q1", "path": "authority-prior", "reply": "Then: B"},
    {"question": "q1", "path": "authority-prior>rag-style", "reply": "Last: C"},
    {"question": "q2", "path": "", "reply": "Other: D"},
]


def question(id: str) -> Question:
    return Question(id=id, stem="Why?", options={"A": "x", "B": "y"}, gold="A")


def jsonl(folder: Path, *rows: object) -> str:
    path = folder / "replies.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def generate(model: Recorded, id: str, *path: str, arm: str = "") -> ModelOutput:
    token = under_test.set(Truth(question(id), path=path, given=(("arm", arm),)))
    try:
        asked = ChatMessageUser(content="Why is that? " * 4)
        return asyncio.run(model.generate([asked], [], "auto", GenerateConfig()))
    finally:
        under_test.reset(token)


def reply(model: Recorded, id: str, *path: str) -> str:
    return generate(model, id, *path).completion


@pytest.mark.parametrize("recorded", [("",), ("", "restate"), ("", "resample", "restate")])
def test_controls_are_put_as_far_as_they_were_recorded(
    tmp_path: Path, recorded: tuple[str, ...]
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(2))
    rows = [
        {"question": f"q{n}", "path": path, "reply": "Final Answer: (A)"}
        for n in range(2) for path in recorded
    ]  # fmt: skip
    model = f"recorded/{jsonl(tmp_path, *rows)}"
    turns = turns_of(study(model, questions=source, techniques="none", controls=True))
    assert turns.group_by("path").len().sort("path").rows() == [(path, 2) for path in recorded]


def test_replies_to_one_path_in_several_arms_are_kept_apart(tmp_path: Path) -> None:
    rows = [
        {"question": "q1", "path": "offer", "arm": arm, "reply": f"In {arm}"}
        for arm in ("positive", "negative")
    ]
    alone = {"question": "q1", "path": "", "arm": "baseline", "reply": "Alone"}
    model = Recorded(jsonl(tmp_path, *rows, alone))
    for arm in ("positive", "negative"):
        assert generate(model, "q1", "offer", arm=arm).completion == f"In {arm}"
    with pytest.raises(InputError, match="no recorded reply"):
        generate(model, "q1", "offer", arm="another")
    # where there is one reply only, the arm it was recorded in does not matter
    assert generate(model, "q1", arm="another").completion == "Alone"


def refusal(file: str, **args: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        Recorded(file, **args)
    line = str(caught.value)
    assert line.splitlines() == [line]
    return caught.value


# --- lookup ---


def test_replies_are_found_by_question_and_path(tmp_path: Path) -> None:
    model = Recorded(jsonl(tmp_path, *ROWS))
    assert reply(model, "q1") == "First: A"
    assert reply(model, "q1", "authority-prior") == "Then: B"
    assert reply(model, "q1", "authority-prior", "rag-style") == "Last: C"
    assert reply(model, "q2") == "Other: D"


def test_a_csv_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "replies.csv"
    pl.DataFrame(ROWS).write_csv(path)
    assert reply(Recorded(str(path)), "q1", "authority-prior", "rag-style") == "Last: C"


def test_a_turns_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "turns.parquet"
    pl.DataFrame(ROWS, schema=SCHEMA).write_parquet(path)
    assert reply(Recorded(str(path)), "q1") == "First: A"
    assert reply(Recorded(str(path)), "q1", "authority-prior", "rag-style") == "Last: C"


def test_without_a_path_column_replies_are_first_ones(tmp_path: Path) -> None:
    model = Recorded(jsonl(tmp_path, {"question": 7, "reply": "A"}))
    assert reply(model, "7") == "A"
    with pytest.raises(InputError):
        generate(model, "7", "authority-prior")


def test_columns_can_be_named(tmp_path: Path) -> None:
    source = jsonl(tmp_path, {"id": "q1", "bias": "recency-prior", "response": "B", "reply": "x"})
    model = Recorded(source, question="id", path="bias", reply="response")
    assert reply(model, "q1", "recency-prior") == "B"


@pytest.mark.parametrize(
    "text",
    ["", "{x} {{y}}", "a\r\nb\u2028c\x1b[31m", "<think>hidden</think> (B)", "  B\n", "x" * 100_000],
    ids=["empty", "braces", "controls", "tags", "blanks", "100-kB"],
)
def test_a_reply_comes_back_as_it_was_recorded(tmp_path: Path, text: str) -> None:
    model = Recorded(jsonl(tmp_path, {"question": "q1", "reply": text}))
    assert reply(model, "q1") == text


def test_a_null_reply_is_an_empty_one(tmp_path: Path) -> None:
    assert reply(Recorded(jsonl(tmp_path, {"question": "q1", "reply": None})), "q1") == ""


def test_the_output_names_the_recording_and_estimates_tokens(tmp_path: Path) -> None:
    source = jsonl(tmp_path, *ROWS)
    output = generate(Recorded(source), "q1")
    assert output.model == f"recorded/{source}"
    assert output.stop_reason == "stop"
    assert output.usage is not None
    # four characters each: 52 read, 8 said
    assert (output.usage.input_tokens, output.usage.output_tokens) == (13, 2)


def test_a_turn_that_was_not_recorded_is_refused(tmp_path: Path) -> None:
    source = jsonl(tmp_path, *ROWS)
    with pytest.raises(InputError) as caught:
        generate(Recorded(source), "q2", "rag-style", "double-check")
    assert caught.value.file == source
    assert caught.value.fault == (
        "no recorded reply for question 'q2' and path 'rag-style>double-check'"
    )
    assert caught.value.remedy


def test_outside_a_protocol_nothing_is_replayed(tmp_path: Path) -> None:
    model = Recorded(jsonl(tmp_path, *ROWS))
    with pytest.raises(RuntimeError, match="inside a holdfast protocol"):
        asyncio.run(model.generate([], [], "auto", GenerateConfig()))


# --- where ---


def test_where_keeps_the_rows_of_one_condition(tmp_path: Path) -> None:
    source = jsonl(
        tmp_path,
        {"question": "q1", "reply": "of gpt", "model": "gpt", "epoch": 1},
        {"question": "q1", "reply": "of llama", "model": "llama", "epoch": 2},
    )
    assert reply(Recorded(source, where="model=llama"), "q1") == "of llama"
    assert reply(Recorded(source, where="model=gpt"), "q1") == "of gpt"
    assert reply(Recorded(source, where="epoch=2"), "q1") == "of llama"


def test_a_value_of_where_can_hold_an_equals_sign(tmp_path: Path) -> None:
    source = jsonl(
        tmp_path,
        {"question": "q1", "reply": "cold", "setting": "t=0"},
        {"question": "q1", "reply": "warm", "setting": "t=1"},
    )
    assert reply(Recorded(source, where="setting=t=1"), "q1") == "warm"


@pytest.mark.parametrize("where", ["model=other", "modle=gpt", "model"])
def test_where_that_keeps_no_row_is_refused(tmp_path: Path, where: str) -> None:
    source = jsonl(tmp_path, {"question": "q1", "reply": "A", "model": "gpt"})
    assert where.partition("=")[0] in str(refusal(source, where=where))


# --- bad files ---


def test_two_replies_to_one_turn_are_refused(tmp_path: Path) -> None:
    source = jsonl(tmp_path, *ROWS, {**ROWS[1], "reply": "Then: C"})
    error = refusal(source)
    assert (error.file, error.row) == (source, 5)
    assert error.fault == "a second reply for question 'q1' and path 'authority-prior'"
    assert error.remedy == "Select one condition with -M where=COLUMN=VALUE"


def test_the_same_reply_twice_is_one(tmp_path: Path) -> None:
    assert reply(Recorded(jsonl(tmp_path, *ROWS, *ROWS)), "q2") == "Other: D"


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"question": "index"}, "index"),
        ({"reply": "response"}, "response"),
        ({"path": "bias"}, "bias"),
    ],
    ids=["question", "reply", "path"],
)
def test_a_column_named_but_not_there_is_refused(
    tmp_path: Path, args: dict[str, str], field: str
) -> None:
    source = jsonl(tmp_path, ROWS[0], ROWS[3])
    error = refusal(source, **args)
    assert (error.file, error.row, error.field) == (source, 1, field)
    assert error.fault == "is missing"
    assert error.remedy == "Name the column with -M"


@pytest.mark.parametrize(
    ("content", "what"),
    [(None, "no such file"), (b"", "is empty"), (b"\xff", "is not UTF-8"), (b"{", "broken JSON")],
    ids=["missing", "empty", "not-utf-8", "broken-json"],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, content: bytes | None, what: str
) -> None:
    path = tmp_path / "replies.jsonl"
    if content is not None:
        path.write_bytes(content)
    error = refusal(str(path))
    assert error.file == str(path)
    assert what in error.fault
