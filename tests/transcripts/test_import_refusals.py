"""Input that an import refuses, in one line with file and row."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.transcripts.imports import CHATS, REPLIES, chat, imported, jsonl, refusal, row

TABLE = """
options = ["oa", "ob"]
[turn]
model = "model"
question = "id"
gold = "gold"
answer = "answer"
reply = "reply"
"""
HEADER = "id,model,oa,ob,gold,answer,reply\n"


def table(path: Path, *lines: str, encoding: str = "utf-8") -> Path:
    path.write_bytes((HEADER + "".join(f"{line}\n" for line in lines)).encode(encoding))
    return path


@pytest.mark.parametrize(
    ("mapping", "fact"),
    [
        ("[turn]\nmodle = 'x'\n", "Did you mean 'model'?"),
        ("message = 'x'\n", "Did you mean 'messages'?"),
        ("[turn]\nmodel = { colum = 'x' }\n", "Did you mean 'column'"),
        ("[joined_files.first]\nfile = 'y'\nfil = 'x'\n", "Did you mean 'file'?"),
        ("turns = 0\n", "field 'turns'"),
        ("turns = 2\nmessages = 'm'\n", "one of messages and turns"),
        ("options = 'a'\noptions_inside = 'b'\n", "one of options and options_inside"),
        ("[turn]\nmodel = { column = 'x', value = 'y' }\n", "exactly one of column, columns, by"),
        ("[turn]\nmodel = { column = 'x', match = '(' }\n", "match: "),
        ("[turn]\nmodel = { column = 'x', match = 'x' }\n", "exactly one group"),
        ("[later]\nquestion = 'x'\n", "question is the same for a whole"),
        ("[turn]\nreply = 'r{turn}'\n", "reply has {turn}"),
        ("turns = 2\n[turn]\nreply = 'r{later}'\n", "reply has {later}"),
        ("[turn]\ngold = { column = 'x', numbered = true }\n", "gold cannot be numbered"),
        ("encoding = 'utf-99'\n", "utf-99"),
        ("non_response = ['NR', ' ']\n", "non_response"),
        ("without_gold = true\n", "without_gold"),
        ("files = '/etc/*'\n", "inside the folder"),
        ("files = '../*'\n", "inside the folder"),
        ("[joined_files.first]\nfile = 'y'\n", "joined_files needs files"),
        ("[turn\n", "TOML"),
    ],
)
def test_a_meaningless_mapping_is_refused_by_name(mapping: str, fact: str) -> None:
    error = refusal(jsonl(Path("t.jsonl"), [row()]), mapping)
    assert error.file == "mapping.toml"
    assert fact in str(error)


@pytest.mark.parametrize(
    ("change", "line", "field", "fact"),
    [
        ({"options": "none"}, "", "options", "no options"),
        ({"options": {"A": "x", "C": "y"}}, "", "options", "no options"),
        ({"gold": None}, "", "gold", "no right option"),
        ({"gold": "D"}, "", "gold", "'D' is not one of the options A, B, C"),
        ({"model": ""}, "", "model", "no model"),
        ({"id": None}, "", "id", "no question"),
        ({"reply": ["A"]}, "", "reply", "neither text nor a number"),
        ({"n": "x"}, 'cost = "n"', "n", "'x' is not a number"),
        ({"n": "x"}, 'epoch = "n"', "n", "'x'"),
        ({"n": "0"}, 'epoch = "n"', "n", "'0'"),
        ({"n": "y"}, 'arm = { column = "n", values = { x = "baseline" } }', "n", "'values'"),
        ({"n": "a>b"}, 'technique = "n"', "n", "'>'"),
        ({"n": "a@b"}, 'technique = "n"', "n", "'@'"),
        ({"n": "odd"}, 'status = "n"', "n", "'odd'"),
        ({"n": "Z"}, 'answer = "n"', "n", "'Z' is not one of the options A, B, C"),
        ({"n": "odd"}, 'suggested = { by = "n", choose = { x = "gold" } }', "n", "'odd'"),
        ({"n": []}, 'answer = { column = "n", highest = true, base = 0 }', "n", "no list"),
    ],
)
def test_a_row_with_a_bad_value_is_refused_with_row_and_column(
    tmp_path: Path, change: dict[str, Any], line: str, field: str, fact: str
) -> None:
    path = jsonl(tmp_path / "t.jsonl", [row(**change)])
    error = refusal(path, REPLIES + line + "\n")
    assert (error.file, error.row, error.field) == (str(path), 1, field)
    assert fact in error.fault


@pytest.mark.parametrize(
    ("messages", "fact"),
    [
        ([{"content": "x"}], "message 1 has no role"),
        (
            [{"role": "user"}, {"role": "usr", "content": "x"}],
            "message 2 has an unknown role 'usr'",
        ),
        ([{"role": "user", "content": 3}], "message 1"),
        (["x"], "message 1 has no role"),
        ([{"role": "assistant", "content": "A"}], "no user turn"),
        ("x", "is not a list of messages"),
    ],
)
def test_meaningless_messages_are_refused(tmp_path: Path, messages: Any, fact: str) -> None:
    path = jsonl(tmp_path / "c.jsonl", [{**chat(), "messages": messages}])
    error = refusal(path, CHATS)
    assert (error.row, error.field) == (1, "messages")
    assert fact in error.fault


def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    error = refusal(table(tmp_path / "t.csv", "q1,m,x,y,A,A,"), TABLE.replace('"gold"', '"golds"'))
    assert (error.row, error.field) == (None, "golds")
    assert "'gold'" in str(error.remedy)
    second = row(id="q2")
    del second["gold"]
    error = refusal(jsonl(tmp_path / "t.jsonl", [row(), second]), REPLIES)
    assert (error.row, error.field) == (2, "gold")


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("q2,m,x,y,A,A", "6 cells, but the header has 7"),
        ('q2,m,x,y,A,A,"open', "broken CSV"),
        ("q2,m,x,y,A,D,", "'D' is not one of the options A, B"),
    ],
)
def test_a_broken_row_of_a_table_is_named(tmp_path: Path, line: str, fact: str) -> None:
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,A,", line)
    error = refusal(path, TABLE)
    assert (error.file, error.row) == (str(path), 2)
    assert fact in error.fault


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        ("t.jsonl", b"", "is empty"),
        ("t.jsonl", b"\n\n", "no row"),
        ("t.jsonl", b"{\n", "broken JSON"),
        ("t.jsonl", b"[1]\n", "not a JSON object"),
        ("t.jsonl", b"[" * 100_000 + b"\n", "broken JSON"),
        ("t.csv", None, "no such file"),
        (".", None, "is a folder"),
        ("t.txt", b"x", "'.txt'"),
        ("t.eval", b"x", "Inspect log"),
        ("t.parquet", b"x", "Parquet"),
    ],
)
def test_a_file_without_rows_is_refused(
    tmp_path: Path, name: str, content: bytes | None, fact: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    error = refusal(path, REPLIES)
    assert str(path) in str(error)
    assert fact in error.fault


def test_repeated_turns_need_numbered_epochs(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [row(), row(id="q2"), row(reply="C")])
    error = refusal(path, REPLIES)
    assert error.row == 3
    assert "as in row 1" in error.fault
    mapping = REPLIES + 'epoch = { column = "reply", numbered = true }\n'
    assert imported(path, mapping).turns["epoch"].to_list() == [1, 1, 2]


def test_a_question_must_be_in_the_set(tmp_path: Path) -> None:
    questions = str(jsonl(tmp_path / "q.jsonl", [
        {"id": "q1", "stem": "Which\n drug 1?", "options": {"A": "x", "B": "y"}, "gold": "B"},
    ]))  # fmt: skip
    mapping = '[turn]\nmodel = "model"\nquestion = "id"\nreply = "reply"\n'
    by_place = 'join = "index"\n' + mapping.replace('"id"', '{ column = "id", base = 1 }')
    by_stem = 'join = "stem"\n' + mapping
    for rules, id in ((mapping, "q1"), (by_place, "1"), (by_stem, "Which drug  1?\n")):
        turns = imported(jsonl(tmp_path / "t.jsonl", [row(id=id)]), rules, questions).turns
        assert turns.select("question", "gold", "answer", "dataset").rows() == [
            ("q1", "B", "B", "q")
        ]
    for rules, id in ((mapping, "q9"), (by_place, "0"), (by_place, "2"), (by_stem, "Which?")):
        error = refusal(jsonl(tmp_path / "t.jsonl", [row(id=id)]), rules, questions)
        assert (error.row, error.field) == (1, "id")
        assert f"'{id}' is not one of the 1 questions of q" in error.fault
    # a file that disagrees with its questions belongs to other questions
    path = jsonl(tmp_path / "t.jsonl", [row()])
    error = refusal(path, mapping + 'gold = "gold"\n', questions)
    assert "is 'A', but question 'q1' of q has 'B'" in error.fault


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_line_in_another_encoding_is_named(tmp_path: Path, suffix: str) -> None:
    path, mapping = tmp_path / f"t.{suffix}", TABLE if suffix == "csv" else REPLIES
    if suffix == "csv":
        table(path, "q1,m,café,y,A,A,", "q2,m,x,y,A,A,né", "q3,m,x,y,A,A,")
    else:
        rows = [row(), row(id="q2", reply="né B"), row(id="q3")]
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
    path.write_bytes(path.read_bytes().replace("né".encode(), "né".encode("latin-1")))
    error = refusal(path, mapping)
    assert error.row == 2
    assert f"line {3 if suffix == 'csv' else 2} of the file" in error.fault
    if suffix == "jsonl":
        turns = imported(path, 'encoding = "latin-1"\n' + mapping).turns
        assert turns["reply"].to_list() == ["B", "né B", "B"]


# --- odd content that is no fault ---


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_stripped(tmp_path: Path, encoding: str) -> None:
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,B,é", encoding=encoding)
    mapping = TABLE if encoding == "utf-8-sig" else f'encoding = "{encoding}"\n' + TABLE
    assert imported(path, mapping).turns.select("answer", "reply").rows() == [("B", "é")]


def test_formulas_are_text(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "=1+1,@m,+x,-y,A,B,=cmd|' /C calc'!A0")
    turns = imported(path, TABLE).turns
    assert turns.select("question", "model", "reply").rows() == [
        ("=1+1", "@m", "=cmd|' /C calc'!A0")
    ]


def test_an_answer_can_be_listed_as_none(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,unsure,", "q2,m,x,y,A,,", "q3,m,x,y,A,y,")
    values = '{ column = "answer", values = { unsure = "" }, others = "keep" }'
    turns = imported(path, TABLE.replace('answer = "answer"', f"answer = {values}")).turns
    assert turns.select("answer", "status", "rule").rows() == [
        (None, "none", "given"), (None, "none", "given"), ("B", "parsed", "given"),
    ]  # fmt: skip


def test_very_long_lines_and_lone_surrogates_are_read(tmp_path: Path) -> None:
    long = "word " * 250_000 + "Answer: C"
    rows = [row(reply=long), row(id="q2", reply="\ud83d then \u2028 Answer: B")]
    outcome = imported(jsonl(tmp_path / "t.jsonl", rows), REPLIES)
    assert outcome.turns["answer"].to_list() == ["C", "B"]
    assert outcome.turns["reply"].to_list() == [long, "\ufffd then \u2028 Answer: B"]
    assert list(outcome.passed_over.values()) == [1]


def test_braces_and_placeholders_in_texts_are_data(tmp_path: Path) -> None:
    text = "{turn} {0} %s ${x} Answer: B"
    path = jsonl(tmp_path / "c.jsonl", [chat(("user", "{turn}"), ("assistant", text))])
    turns = imported(path, CHATS).turns
    assert turns.select("prompt", "reply", "answer").rows() == [("{turn}", text, "B")]


def test_numbers_and_gaps_of_parquet_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({
        "id": [7, 8], "model": ["m", "m"], "oa": ["x", "x"], "ob": ["y", "y"],
        "gold": [1.0, 2.0], "answer": [2, None], "reply": [None, "B"],
    }).write_parquet(path)  # fmt: skip
    mapping = TABLE
    for field in ("gold", "answer"):
        mapping = mapping.replace(f'"{field}"', f'{{ column = "{field}", base = 1 }}')
    columns = ["question", "gold", "answer", "rule", "reply"]
    assert imported(path, mapping).turns.select(columns).rows() == [
        ("7", "A", "B", "given", ""), ("8", "B", "B", "bare-letter", "B"),
    ]  # fmt: skip
