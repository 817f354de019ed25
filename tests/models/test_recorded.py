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


def jsonl(folder: Path, *rows: object) -> str:
    path = folder / "replies.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def generate(model: Recorded, id: str, *path: str, arm: str = "") -> ModelOutput:
    question = Question(id=id, stem="Why?", options={"A": "x", "B": "y"}, gold="A")
    token = under_test.set(Truth(question, path=path, given=(("arm", arm),)))
    try:
        message = ChatMessageUser(content="Why is that? " * 4)
        return asyncio.run(model.generate([message], [], "auto", GenerateConfig()))
    finally:
        under_test.reset(token)


def reply(model: Recorded, id: str, *path: str) -> str:
    return generate(model, id, *path).completion


def refusal(file: str, **args: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        Recorded(file, **args)
    assert str(caught.value).splitlines() == [str(caught.value)]
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize("paths", [("",), ("", "resample", "restate")])
def test_recorded_controls_are_put(tmp_path: Path, paths: tuple[str, ...]) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(2))
    rows = [
        {"question": f"q{n}", "path": path, "reply": "Final Answer: (A)"}
        for n in range(2) for path in paths
    ]  # fmt: skip
    model = f"recorded/{jsonl(tmp_path, *rows)}"
    turns = turns_of(study(model, questions=source, techniques="none", controls=True))
    assert turns.group_by("path").len().sort("path").rows() == [(path, 2) for path in paths]


# --- lookup ---


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_replies_are_read_by_question_and_path(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"replies.{suffix}"
    match suffix:
        case "jsonl":
            jsonl(tmp_path, *ROWS, *ROWS)  # the same reply twice is one
        case "csv":
            pl.DataFrame(ROWS).write_csv(path)
        case "parquet":  # a turns table
            pl.DataFrame(ROWS, schema=SCHEMA).write_parquet(path)
    model = Recorded(str(path))
    assert reply(model, "q1") == "First: A"
    assert reply(model, "q1", "authority-prior") == "Then: B"
    assert reply(model, "q1", "authority-prior", "rag-style") == "Last: C"
    assert reply(model, "q2") == "Other: D"
    with pytest.raises(InputError) as caught:
        reply(model, "q2", "rag-style", "double-check")
    assert caught.value.file == str(path)
    assert "'q2' and path 'rag-style>double-check'" in caught.value.fault
    assert caught.value.remedy


def test_arms_with_equal_paths_stay_apart(tmp_path: Path) -> None:
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
    # the arm of an only reply does not matter
    assert generate(model, "q1", arm="another").completion == "Alone"


def test_columns_can_be_named_and_a_path_may_be_absent(tmp_path: Path) -> None:
    source = jsonl(tmp_path, {"id": "q1", "bias": "recency-prior", "response": "B", "reply": "x"})
    model = Recorded(source, question="id", path="bias", reply="response")
    assert reply(model, "q1", "recency-prior") == "B"
    model = Recorded(jsonl(tmp_path, {"question": 7, "reply": "A"}))
    assert reply(model, "7") == "A"
    with pytest.raises(InputError):
        reply(model, "7", "authority-prior")


@pytest.mark.parametrize(
    "text",
    [None, "", "{x} {{y}}", "a\r\nb\u2028c\x1b[31m", "<think>hidden</think> (B)", "  B\n",
     "x" * 100_000],
    ids=["null", "empty", "braces", "controls", "tags", "blanks", "100-kB"],
)  # fmt: skip
def test_replies_are_replayed_unchanged(tmp_path: Path, text: str | None) -> None:
    assert reply(Recorded(jsonl(tmp_path, {"question": "q1", "reply": text})), "q1") == (text or "")


def test_the_output_names_the_recording_and_estimates_tokens(tmp_path: Path) -> None:
    source = jsonl(tmp_path, *ROWS)
    output = generate(Recorded(source), "q1")
    assert (output.model, output.stop_reason) == (f"recorded/{source}", "stop")
    assert output.usage is not None
    # four characters a token: 52 of the message, 8 of the reply
    assert (output.usage.input_tokens, output.usage.output_tokens) == (13, 2)
    with pytest.raises(RuntimeError, match="inside a holdfast protocol"):
        asyncio.run(Recorded(source).generate([], [], "auto", GenerateConfig()))


# --- where ---


@pytest.mark.parametrize(
    ("where", "text"),
    [("model=llama", "of llama"), ("model=gpt", "of gpt"), ("epoch=2", "of llama"),
     ("setting=t=1", "of llama")],
)  # fmt: skip
def test_where_selects_a_condition(tmp_path: Path, where: str, text: str) -> None:
    rows = [
        {
            "question": "q1",
            "reply": f"of {name}",
            "model": name,
            "epoch": n,
            "setting": f"t={n - 1}",
        }
        for n, name in enumerate(("gpt", "llama"), start=1)
    ]
    assert reply(Recorded(jsonl(tmp_path, *rows), where=where), "q1") == text


@pytest.mark.parametrize("where", ["model=other", "modle=gpt", "model"])
def test_where_without_a_match_is_refused(tmp_path: Path, where: str) -> None:
    source = jsonl(tmp_path, {"question": "q1", "reply": "A", "model": "gpt"})
    assert where.partition("=")[0] in str(refusal(source, where=where))


# --- bad files ---


def test_two_replies_to_one_turn_are_refused(tmp_path: Path) -> None:
    source = jsonl(tmp_path, *ROWS, {**ROWS[1], "reply": "Then: C"})
    error = refusal(source)
    assert (error.file, error.row) == (source, 5)
    assert "'q1' and path 'authority-prior'" in error.fault
    assert "-M where=" in str(error.remedy)


@pytest.mark.parametrize("column", ["question", "reply", "path"])
def test_a_named_column_that_is_absent_is_refused(tmp_path: Path, column: str) -> None:
    source = jsonl(tmp_path, ROWS[0], ROWS[3])
    error = refusal(source, **{column: "mine"})
    assert (error.file, error.row, error.field) == (source, 1, "mine")
    assert "-M" in str(error.remedy)


@pytest.mark.parametrize(
    ("content", "fact"),
    [(None, "no such file"), (b"", "is empty"), (b"\xff", "is not UTF-8"), (b"{", "broken JSON")],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, content: bytes | None, fact: str
) -> None:
    path = tmp_path / "replies.jsonl"
    if content is not None:
        path.write_bytes(content)
    error = refusal(str(path))
    assert error.file == str(path)
    assert fact in error.fault
