"""Bad input: a clear line with file and row, or a defined status."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.transcripts.imports import CHATS, REPLIES, chat, imported, jsonl, refusal, row

from holdfast.errors import InputError
from holdfast.transcripts.mapping import read_mapping

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


def test_a_missing_column_of_a_table(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,A,")
    line = refusal(path, TABLE.replace('"gold"', '"golds"'))
    assert line == (
        f"{path}, field 'golds': is missing, but the mapping reads 'gold' from it. "
        "Did you mean 'gold'?"
    )


def test_a_missing_key_of_a_line(tmp_path: Path) -> None:
    second = row(id="q2")
    del second["gold"]
    path = jsonl(tmp_path / "t.jsonl", [row(), second])
    assert refusal(path, REPLIES).startswith(
        f"{path}, row 2, field 'gold': is missing, but the mapping reads 'gold' from it."
    )


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ("[turn]\nmodle = 'x'\n", "unknown field 'modle'. Did you mean 'model'?"),
        ("message = 'x'\n", "field 'message': unknown field 'message'. Did you mean 'messages'?"),
        ("[turn]\nmodel = { colum = 'x' }\n", "unknown field 'colum'. Did you mean 'column'"),
        ("turns = 0\n", "field 'turns': input should be greater than or equal to 1"),
        ("turns = 2\nmessages = 'm'\n", "give one of messages and turns"),
        ("[turn]\nmodel = { column = 'x', value = 'y' }\n", "exactly one of column, columns, by"),
        ("[later]\nquestion = 'x'\n", "question is the same for a whole"),
        ("[turn]\nreply = 'r{turn}'\n", "reply has {turn}: give the number of turns"),
        ("[turn]\ngold = { column = 'x', numbered = true }\n", "gold cannot be numbered"),
        ("encoding = 'utf-99'\n", "encoding: unknown encoding: utf-99"),
        ("non_response = ['NR', ' ']\n", "non_response contains an empty text"),
        ("[turn\n", "is not valid TOML"),
    ],
)  # fmt: skip
def test_a_mapping_that_is_none(tmp_path: Path, mapping: str, said: str) -> None:
    path = tmp_path / "m.toml"
    path.write_text(mapping)
    with pytest.raises(InputError) as caught:
        read_mapping(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_a_ragged_table(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,A,", "q2,m,x,y,A,A")
    assert refusal(path, TABLE) == (
        f"{path}, row 2: has 6 cells, but the header has 7. "
        "Correct the row, or name the delimiter in the mapping."
    )


def test_an_open_quote(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,A,", 'q2,m,x,y,A,A,"open')
    assert refusal(path, TABLE).startswith(f"{path}, row 2: broken CSV")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_mixed_encodings(tmp_path: Path, suffix: str) -> None:
    path, mapping = tmp_path / f"t.{suffix}", TABLE if suffix == "csv" else REPLIES
    if suffix == "csv":
        table(path, "q1,m,café,y,A,A,", "q2,m,x,y,A,A,né", "q3,m,x,y,A,A,")
    else:
        lines = [row(), row(id="q2", reply="né B"), row(id="q3")]
        path.write_text("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines))
    mixed = path.read_bytes().replace("né".encode(), "né".encode("latin-1"))
    path.write_bytes(mixed)
    line = refusal(path, mapping)
    assert line.startswith(f"{path}, row 2: line {3 if suffix == 'csv' else 2} of the file is not ")
    assert "UTF-8, or name its encoding in the mapping" in line
    if suffix == "jsonl":
        found = imported(path, 'encoding = "latin-1"\n' + mapping)
        assert found.turns["reply"].to_list() == ["B", "né B", "B"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,B,é", encoding=encoding)
    mapping = TABLE if encoding == "utf-8-sig" else f'encoding = "{encoding}"\n' + TABLE
    assert imported(path, mapping).turns.select("answer", "reply").rows() == [("B", "é")]


def test_a_formula_is_text(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "=1+1,@m,+x,-y,A,B,=cmd|' /C calc'!A0")
    turns = imported(path, TABLE).turns
    assert turns.select("question", "model", "reply").rows() == [
        ("=1+1", "@m", "=cmd|' /C calc'!A0")
    ]


@pytest.mark.parametrize("field", ["answer", "gold"])
def test_an_option_out_of_range(tmp_path: Path, field: str) -> None:
    cells = {"answer": "A", "gold": "A", field: "D"}
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,A,",
                 f"q2,m,x,y,{cells['gold']},{cells['answer']},")  # fmt: skip
    assert refusal(path, TABLE) == (
        f"{path}, row 2, field '{field}': 'D' is not one of the options A, B. "
        "Correct it, or list it in 'values' as \"\"."
    )


def test_an_answer_listed_as_none(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "q1,m,x,y,A,unsure,", "q2,m,x,y,A,,", "q3,m,x,y,A,y,")
    mapping = TABLE.replace(
        'answer = "answer"', 'answer = { column = "answer", values = { unsure = "" }, '
        'others = "keep" }',
    )  # fmt: skip
    turns = imported(path, mapping).turns
    assert turns.select("answer", "status", "rule").rows() == [
        (None, "none", "given"), (None, "none", "given"), ("B", "parsed", "given"),
    ]  # fmt: skip


def test_the_same_turn_twice(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [row(), row(id="q2"), row(reply="C")])
    line = refusal(path, REPLIES)
    assert line.startswith(f"{path}, row 3: repeats turn 0, arm 'baseline'")
    assert "of question 'q1', as in row 1. Map epoch, arm or technique" in line
    told = REPLIES + 'epoch = { column = "reply", numbered = true }\n'
    assert imported(path, told).turns["epoch"].to_list() == [1, 1, 2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ": is empty"),
        (b"\n\n", ": contains no row"),
        (b"{\n", "row 1: broken JSON"),
        (b"[1]\n", "row 1: is not a JSON object"),
        (b"[" * 100_000 + b"\n", "row 1: broken JSON"),
    ],
)
def test_files_without_rows(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    assert said in refusal(path, REPLIES)


def test_files_that_are_none(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.csv", TABLE).endswith("no such file exists. Check the path.")
    assert "is a folder" in refusal(tmp_path, TABLE)
    (tmp_path / "t.txt").write_text("x")
    assert "unknown file type '.txt'" in refusal(tmp_path / "t.txt", TABLE)
    (tmp_path / "t.eval").write_text("x")
    assert "cannot be read as an Inspect log" in refusal(tmp_path / "t.eval", TABLE)
    (tmp_path / "t.parquet").write_text("x")
    assert "cannot be read as Parquet" in refusal(tmp_path / "t.parquet", TABLE)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"options": "none"}, "field 'options': contains no options"),
        ({"options": {"A": "x", "C": "y"}}, "field 'options': contains no options"),
        ({"gold": None}, "field 'gold': no right option is named"),
        ({"model": ""}, "field 'model': no model is named"),
        ({"id": None}, "field 'id': no question is named"),
        ({"reply": ["A"]}, "field 'reply': is neither text nor a number"),
    ],
)
def test_rows_that_lack_something(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = jsonl(tmp_path / "t.jsonl", [row(), row(**{"id": "q2", **change})])
    assert refusal(path, REPLIES).startswith(f"{path}, row 2, {said}")


def test_values_that_no_field_takes(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [row(n="x", arm="treated", t="a>b", state="odd")])
    for line, said in (
        ('cost = "n"', "'x' is not a number"),
        ('epoch = "n"', "'x' is not an integer from 1"),
        ('arm = { column = "arm", values = { plain = "baseline" } }', "not among the 'values'"),
        ('technique = "t"', "'a>b' contains '>' or '@'"),
        ('status = "state"', "unknown status 'odd'"),
        ('suggested = { by = "arm", choose = { x = "gold" } }', "'treated' in 'arm' selects no"),
    ):
        assert said in refusal(path, REPLIES + line + "\n")


def test_a_question_that_is_not_in_the_set(tmp_path: Path) -> None:
    questions = jsonl(tmp_path / "q.jsonl", [
        {"id": "q1", "stem": "Which?", "options": {"A": "x", "B": "y"}, "gold": "B"},
    ])  # fmt: skip
    mapping = '[turn]\nmodel = "model"\nquestion = "id"\nreply = "reply"\n'
    path = jsonl(tmp_path / "t.jsonl", [row(), row(id="q9")])
    line = refusal(path, mapping, str(questions))
    assert line.startswith(f"{path}, row 2, field 'id': 'q9' is not one of the 1 questions of q.")
    jsonl(path, [row()])
    turns = imported(path, mapping, str(questions)).turns
    assert turns.select("gold", "answer", "dataset").rows() == [("B", "B", "q")]
    # a file and its questions that disagree are not of one another
    line = refusal(path, mapping + 'gold = "gold"\n', str(questions))
    assert "is 'A', but question 'q1' of q has 'B'" in line
    for place, said in (("1", None), ("0", "'0' is not one of"), ("2", "'2' is not one of")):
        jsonl(path, [row(id=place)])
        by_place = mapping.replace('"id"', '{ column = "id", base = 1 }')
        by_place = 'join = "index"\n' + by_place
        if said:
            assert said in refusal(path, by_place, str(questions))
        else:
            assert imported(path, by_place, str(questions)).turns["question"].to_list() == ["q1"]


def test_a_line_of_a_megabyte_and_a_lone_surrogate(tmp_path: Path) -> None:
    long = "word " * 250_000 + "Answer: C"
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(row(reply=long)) + "\n" + json.dumps(
        row(id="q2", reply="\ud83d then \u2028 Answer: B")) + "\n")  # fmt: skip
    found = imported(path, REPLIES)
    assert found.turns["answer"].to_list() == ["C", "B"]
    assert found.turns["reply"].to_list() == [long, "\ufffd then \u2028 Answer: B"]
    assert dict(found.passed_over) == {"lone surrogate, written as U+FFFD, in a text": 1}


def test_braces_and_placeholders_in_texts_are_data(tmp_path: Path) -> None:
    text = "{turn} {0} %s ${x} Answer: B"
    turns = imported(
        jsonl(tmp_path / "c.jsonl", [chat(("user", "{turn}"), ("assistant", text))]), CHATS
    ).turns
    assert turns.select("prompt", "reply", "answer").rows() == [("{turn}", text, "B")]


def test_numbers_and_gaps_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({
        "id": [7, 8], "model": ["m", "m"], "oa": ["x", "x"], "ob": ["y", "y"],
        "gold": [1.0, 2.0], "answer": [2, None], "reply": [None, "B"],
    }).write_parquet(path)  # fmt: skip
    mapping = TABLE.replace('gold = "gold"', 'gold = { column = "gold", base = 1 }').replace(
        'answer = "answer"', 'answer = { column = "answer", base = 1 }'
    )
    turns = imported(path, mapping).turns
    columns = ["question", "gold", "answer", "rule", "reply"]
    assert turns.select(columns).rows() == [
        ("7", "A", "B", "given", ""), ("8", "B", "B", "bare-letter", "B"),
    ]  # fmt: skip
