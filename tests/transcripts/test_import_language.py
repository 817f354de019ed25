"""What a mapping can say: lists, joined columns, filters, options in texts, joins, no gold."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.studies import holdfast, write_jsonl
from tests.transcripts.imports import OPTIONS, REPLIES, imported, jsonl, refusal, row

from holdfast.errors import InputError
from holdfast.results.declaration import TABLES
from holdfast.results.turns import turns_table

ROUNDS = """
turns = "rounds"
options = "options"
[turn]
model = "model"
question = "id"
gold = "gold"
[first]
reply = "first"
[later]
reply = "rounds[{later}].text"
technique = { columns = ["rounds[{later}].trigger", "rounds[{later}].tone"], joined = "-" }
"""

COLUMNS = """
turns = 3
options = "options"
[turn]
model = "model"
question = "id"
gold = "gold"
reply = "turn_{turn}"
"""


def rounds(*said: str, **fields: Any) -> dict[str, Any]:
    """A first answer and later ones in a list."""
    first, *later = said
    listed = [{"text": text, "trigger": "doubt", "tone": str(n)} for n, text in enumerate(later)]
    return row(first=first, rounds=listed, **fields)


# --- lists ---


def test_a_list_has_a_turn_for_each_element_after_the_first(tmp_path: Path) -> None:
    rows = [rounds("A", "B", "C"), rounds("B", "A", id="q2"), rounds("A", id="q3")]
    turns = imported(jsonl(tmp_path / "t.jsonl", rows), ROUNDS).turns
    assert turns.select("question", "turn", "answer", "path").rows() == [
        ("q1", 0, "A", ""), ("q1", 1, "B", "doubt-0"), ("q1", 2, "C", "doubt-0>doubt-1"),
        ("q2", 0, "B", ""), ("q2", 1, "A", "doubt-0"), ("q3", 0, "A", ""),
    ]  # fmt: skip


def test_a_list_of_every_turn(tmp_path: Path) -> None:
    mapping = COLUMNS.replace("turns = 3", 'turns = "said"').replace("turn_{turn}", "said[{turn}]")
    rows = [row(said=["A", "B", "A", "C"]), row(said=["B"], id="q2")]
    turns = imported(jsonl(tmp_path / "t.jsonl", rows), mapping).turns
    assert turns["answer"].to_list() == ["A", "B", "A", "C", "B"]


def test_a_place_of_a_list_that_lacks_a_key_is_named_with_what_stands_there(tmp_path: Path) -> None:
    one = rounds("A", "B", "C")
    one["rounds"][1]["texts"] = one["rounds"][1].pop("text")
    assert refusal(jsonl(tmp_path / "t.jsonl", [one]), ROUNDS).endswith(
        "row 1, field 'rounds[1].text': is missing, but the mapping reads 'reply' from it. "
        "Did you mean 'texts'?"
    )


def test_what_is_no_list_of_turns_is_refused(tmp_path: Path) -> None:
    line = refusal(jsonl(tmp_path / "t.jsonl", [row(first="A", rounds=3)]), ROUNDS)
    assert "row 1, field 'rounds': is not a list of turns" in line


def test_each_element_of_a_list_or_object_is_a_row(tmp_path: Path) -> None:
    whole: dict[str, Any] = {
        "model": "m",
        "items": [
            {"id": f"q{n}", "gold": "A", "runs": {"x": {"said": "A"}, "y": {"said": "B"}}}
            for n in range(2)
        ],
    }
    path = tmp_path / "t.json"
    path.write_text(json.dumps(whole))
    mapping = """
    each = ["items", "items.runs"]
    [turn]
    model = "model"
    question = "items.id"
    gold = "items.gold"
    answer = "items.runs.said"
    epoch = { column = "items.runs.said", numbered = true }
    """
    turns = imported(path, mapping).turns
    assert turns.select("question", "epoch", "answer").rows() == [
        ("q0", 1, "A"), ("q0", 2, "B"), ("q1", 1, "A"), ("q1", 2, "B")
    ]  # fmt: skip
    whole["items"].append({"id": "q2", "gold": "A"})
    path.write_text(json.dumps(whole))
    assert "row 1, field 'items.runs': is missing" in refusal(path, mapping)
    found = imported(path, mapping, skip_bad=True)
    assert found.turns["question"].to_list() == ["q0", "q0", "q1", "q1"]
    assert found.passed_over == {"bad row (items.runs)": 1}
    line = refusal(path, mapping.replace('"items", "items.runs"', '"item"'))
    assert "field 'item': is missing. Did you mean 'items'?" in line


def test_a_list_beside_that_has_more_turns_is_refused(tmp_path: Path) -> None:
    mapping = COLUMNS.replace("turns = 3", 'turns = "said"').replace("turn_{turn}", "said[{turn}]")
    mapping += 'answer = "read[{turn}]"\n'
    path = jsonl(tmp_path / "t.jsonl", [row(said=["A", "B"], read=["A", "B"])])
    assert imported(path, mapping).turns["answer"].to_list() == ["A", "B"]
    path = jsonl(
        path, [row(said=["A", "B"], read=["A", "B", "C"]), row(id="q2", said=["A"], read=["B"])]
    )
    assert refusal(path, mapping) == (
        f"{path}, row 1, field 'read': has 3 elements, more than 'said', and the mapping reads "
        "'answer' from it. Correct the row, or name the longer list as 'turns'."
    )
    found = imported(path, mapping, skip_bad=True)
    assert (found.turns["question"].to_list(), found.passed_over) == (["q2"], {"bad row (read)": 1})


# --- columns of turns ---


def test_a_column_that_no_row_has_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [row(turn_0="A", turn_1="B"), row(id="q2", turn_0="A")])
    assert refusal(path, COLUMNS) == (
        f"{path}, field 'turn_2': is in no row, but the mapping reads 'reply' of turn 2 from it. "
        "Did you mean 'turn_1' or 'turn_0'?"
    )


def test_a_gap_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [row(turn_0="A", turn1="B", turn_2="C")])
    assert refusal(path, COLUMNS) == (
        f"{path}, row 1, field 'turn_1': is missing, but 'turn_2' exists and the mapping reads "
        "'reply' from both. Did you mean 'turn1' or 'turn_2' or 'turn_0'?"
    )


def test_a_conversation_that_was_over_has_fewer_turns_and_is_counted(tmp_path: Path) -> None:
    rows = [row(turn_0="A", turn_1="B", turn_2="C"), row(id="q2", turn_0="A")]
    found = imported(jsonl(tmp_path / "t.jsonl", rows), COLUMNS)
    assert found.turns["question"].to_list() == ["q1"] * 3 + ["q2"]
    assert found.passed_over == {"turn without reply, answer and prompt at the end of a row": 2}


def test_columns_of_more_turns_than_are_read_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    head = "model,id,gold,options,turn_0,turn_1,turn_2,turn_3\n"
    path.write_text(head + 'm,q1,A,"A. x\nB. y",A,B,A,B\n')
    assert imported(path, COLUMNS).passed_over == {"column of a later turn ('turn_3')": 1}


# --- which rows ---


def test_rows_are_kept_and_dropped_by_their_cells_and_counted(tmp_path: Path) -> None:
    rows = [row(id=f"q{n}", kind="ab"[n % 2], done=n > 1, error=None) for n in range(6)]
    rows[4]["error"] = "timeout"
    mapping = 'keep = { done = "true", error = "" }\ndrop = { kind = ["b", "c"] }\n' + REPLIES
    found = imported(jsonl(tmp_path / "t.jsonl", rows), mapping)
    assert found.turns["question"].to_list() == ["q2"]
    assert (found.conversations, found.passed_over["row that the mapping does not keep"]) == (1, 5)
    line = refusal(jsonl(tmp_path / "t.jsonl", rows), 'keep = { don = "true" }\n' + REPLIES)
    assert "field 'don': is missing, but the mapping selects rows by it. Did you mean" in line


def test_bad_rows_are_left_out_and_counted_where_that_is_said(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [row(id=f"q{n}") for n in range(4)]
    rows[1]["gold"] = "Z"
    rows[2]["options"] = "none"
    path = jsonl(tmp_path / "t.jsonl", rows)
    path.write_text(path.read_text() + "{broken\n")
    assert "row 2, field 'gold'" in refusal(path, REPLIES)
    found = imported(path, REPLIES, skip_bad=True)
    assert found.turns["question"].to_list() == ["q0", "q3"]
    assert found.passed_over == {
        "bad row (gold)": 1,
        "bad row (options)": 1,
        "bad row (the row)": 1,
    }
    mapping = tmp_path / "m.toml"
    mapping.write_text(REPLIES)
    run = holdfast("import", path, "--mapping", mapping, "--skip-bad", "-o", "t.parquet")
    assert run.returncode == 0, run.stderr
    assert "not in the table: 1 × bad row (gold)\n" in run.stderr
    with pytest.raises(InputError, match="contains no readable row"):
        imported(jsonl(tmp_path / "t.jsonl", rows[1:3]), REPLIES, skip_bad=True)


def test_an_id_with_line_breaks_is_one_line(tmp_path: Path) -> None:
    turns = imported(jsonl(tmp_path / "t.jsonl", [row(id="Which\ndrug?\r\n")]), REPLIES).turns
    assert turns["question"].to_list() == ["Which drug?"]


def test_options_that_read_alike_are_told_by_their_letters(tmp_path: Path) -> None:
    alike = {"A": "Aspirin", "B": "Aspirin", "C": "Codeine"}
    turns = imported(jsonl(tmp_path / "t.jsonl", [row(options=alike, reply="Answer: B")]), REPLIES)
    assert turns.turns["answer"].to_list() == ["B"]
    questions = [
        {"id": f"q{n}", "stem": f"Which? {n}", "options": alike if n else OPTIONS, "gold": "A"}
        for n in range(3)
    ]
    questions[2]["gold"] = "Z"
    asked = write_jsonl(tmp_path / "q.jsonl", questions)
    path = jsonl(tmp_path / "t.jsonl", [row(id="q1", reply="Answer: B"), row(id="q2")])
    mapping = tmp_path / "m.toml"
    mapping.write_text(REPLIES.replace('options = "options"\n', ""))
    arguments = ("import", path, "--mapping", mapping, "--questions", asked, "-o", "t.parquet")
    assert "row 3, field 'gold'" in holdfast(*arguments).stderr
    run = holdfast(*arguments, "--skip-bad")
    assert run.returncode == 0, run.stderr
    assert turns_table(["t.parquet"]).select("question", "answer").rows() == [("q1", "B")]
    assert "1 × question not in q" in run.stderr
    assert "1 × bad row (id)" in run.stderr


# --- options, joins, numbers, patterns ---


@pytest.mark.parametrize("mark", ["{}. ", "{}) ", "({}) ", "{}: "])
def test_letters_before_options_are_no_part_of_them(tmp_path: Path, mark: str) -> None:
    marked = [mark.format(letter) + text for letter, text in OPTIONS.items()]
    found = imported(jsonl(tmp_path / "t.jsonl", [row(options=marked, gold="Biotin")]), REPLIES)
    assert found.turns["gold"].to_list() == ["B"]


@pytest.mark.parametrize("prompt", [
    "Is it (A) or not?\n\nA. Aspirin\nB. Biotin\nC. Codeine\n\nAnswer with a letter.",
    "Which drug (see B)?\nAnswer Choices: (A) Aspirin (B) Biotin (C) Codeine",
])  # fmt: skip
def test_options_can_stand_in_a_prompt(tmp_path: Path, prompt: str) -> None:
    mapping = REPLIES.replace('options = "options"', 'options_inside = "prompt"')
    one = row(prompt=prompt, reply="The best drug is Biotin.")
    assert imported(jsonl(tmp_path / "t.jsonl", [one]), mapping).turns["answer"].to_list() == ["B"]
    line = refusal(jsonl(tmp_path / "t.jsonl", [row(prompt="Which?")]), mapping)
    assert "row 1, field 'prompt': contains no options" in line


def test_a_question_can_be_joined_by_its_stem(tmp_path: Path) -> None:
    questions = [
        {"id": f"q{n}", "stem": f"Which\n drug {n}?", "options": OPTIONS, "gold": "A"}
        for n in (1, 2)
    ]
    asked = write_jsonl(tmp_path / "q.jsonl", questions)
    mapping = """
    join = "stem"
    [turn]
    model = "model"
    question = "text"
    reply = "reply"
    """
    path = jsonl(tmp_path / "t.jsonl", [row(text="Which drug  2?\n")])
    assert imported(path, mapping, asked).turns.select("question", "gold").rows() == [("q2", "A")]
    path = jsonl(tmp_path / "t.jsonl", [row(text="Which drug 3?")])
    assert "'Which drug 3?' is not one of the 2 questions of q" in refusal(path, mapping, asked)


def test_the_place_of_the_highest_number_and_a_pattern(tmp_path: Path) -> None:
    mapping = REPLIES.replace(
        'reply = "reply"',
        """
    answer = { column = "scores", highest = true, base = 0 }
    suggested = { column = "said", match = "think it is \\\\(([A-Z])\\\\)" }
    """,
    )
    rows = [
        row(
            scores=[["-3.5", "False"], ["-0.25", "True"], ["-1", "False"]],
            said="I think it is (C).",
        ),
        row(id="q2", scores="[0.5, 0.1, 0.2]", said="Are you sure?"),
    ]
    turns = imported(jsonl(tmp_path / "t.jsonl", rows), mapping).turns
    assert turns.select("answer", "suggested").rows() == [("B", "C"), ("A", None)]
    line = refusal(jsonl(tmp_path / "t.jsonl", [row(scores=[], said="")]), mapping)
    assert "row 1, field 'scores': contains no list of numbers" in line


@pytest.mark.parametrize(("mapping", "said"), [
    ("[turn]\nmodel = { column = 'x', match = '(' }\n", "match: "),
    ("[turn]\nmodel = { column = 'x', match = 'x' }\n", "match: write exactly one group"),
    ("without_gold = true\n", "without_gold needs whole conversations"),
    ("options = 'a'\noptions_inside = 'b'\n", "give one of options and options_inside"),
    ("turns = 2\n[turn]\nreply = 'r{later}'\n", "reply has {later}: give it in [later]"),
    ("files = '/etc/*'\n", "name files inside the folder"),
    ("files = '../*'\n", "name files inside the folder"),
    ("[joined_files.first]\nfile = 'y'\n", "joined_files needs files"),
    ("[joined_files.first]\nfile = 'y'\nfil = 'x'\n", "unknown field 'fil'. Did you mean 'file'?"),
])  # fmt: skip
def test_what_a_mapping_cannot_say(tmp_path: Path, mapping: str, said: str) -> None:
    assert said in refusal(jsonl(tmp_path / "t.jsonl", [row()]), mapping)


# --- without right answers ---


def test_without_right_answers_flips_are_changes_of_the_first(tmp_path: Path) -> None:
    mapping = "without_gold = true\n" + ROUNDS.replace('gold = "gold"\n', "")
    rows = [rounds("A", "B"), rounds("B", "B", id="q2"), rounds("Hm.", "B", id="q3")]
    found = imported(jsonl(tmp_path / "t.jsonl", rows), mapping)
    assert found.passed_over == {"conversation with an unparsed first answer": 1}
    turns = found.turns
    assert turns["dataset"].unique().to_list() == ["t (no gold)"]
    (flips,) = TABLES["flips"](turns).iter_rows(named=True)
    assert (flips["n_right"], flips["right_to_wrong"], flips["flip_rate"]) == (2, 1, 0.5)
    line = refusal(jsonl(tmp_path / "t.jsonl", rows), ROUNDS.replace('gold = "gold"\n', ""))
    assert "give --questions, or set without_gold = true" in line


# --- pickles and folders ---


class _Runs:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return print, ("run",)


def test_a_pickle_is_read_as_plain_data_and_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.pkl"
    path.write_bytes(pickle.dumps([row(reply="B"), row(id="q2", reply="A")]))
    assert imported(path, REPLIES).turns["answer"].to_list() == ["B", "A"]
    path.write_bytes(pickle.dumps([row(reply=_Runs())]))
    line = refusal(path, REPLIES)
    assert "asks for builtins.print, which is not plain data" in line
    assert "Save the rows as JSONL" in line
    assert capsys.readouterr().out == ""


FOLDER = """
files = "sub/*.jsonl"
[joined_files]
key = { file = "key.jsonl", by = "id" }
config = { file = "config.yaml" }
[turn]
model = "config.model.id"
question = "id"
epoch = { column = "file", numbered = true }
gold = "key.gold"
answer = "said"
"""


def test_a_folder_is_read_with_the_files_beside(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "sub").mkdir(parents=True)
    (folder / "config.yaml").write_text("model:\n  id: m\n")
    jsonl(folder / "key.jsonl", [{"id": n, "gold": "AB"[n]} for n in range(2)])
    for name in ("x", "y"):
        jsonl(folder / "sub" / f"{name}.jsonl", [{"id": n, "said": "A"} for n in range(2)])
    mapping = tmp_path / "m.toml"
    mapping.write_text(FOLDER)
    turns = imported(folder, mapping).turns
    assert turns.select("model", "question", "epoch", "gold", "answer").rows() == [
        ("m", "0", 1, "A", "A"), ("m", "1", 1, "B", "A"), ("m", "0", 2, "A", "A"),
        ("m", "1", 2, "B", "A"),
    ]  # fmt: skip
    jsonl(folder / "sub" / "z.jsonl", [{"id": 7, "said": "A"}])
    line = refusal(folder, mapping)
    assert line.startswith(f"{folder}/sub/z.jsonl, row 1, field 'id': is '7', which key.jsonl does")
    key = folder / "key.jsonl"
    key.write_text(key.read_text() + "[1]\n")
    assert "row 3: is not a JSON object" in refusal(folder, mapping)
    found = imported(folder, mapping, skip_bad=True)
    assert (found.turns.height, found.passed_over) == (4, {"bad row (id)": 1})
    assert "is not a folder" in refusal(folder / "key.jsonl", mapping)
    mapping.write_text(FOLDER.replace("sub/*", "subs/*"))
    assert "contains no subs/*.jsonl, only config.yaml, key.jsonl, sub" in refusal(folder, mapping)
