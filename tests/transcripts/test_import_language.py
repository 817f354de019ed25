"""Mappings: lists, joined columns, filters, options in texts, joins, no right answers."""

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

LISTS = COLUMNS.replace("turns = 3", 'turns = "texts"').replace("turn_{turn}", "texts[{turn}]")


def rounds(*replies: str, **fields: Any) -> dict[str, Any]:
    """A first answer and later ones in a list."""
    first, *later = replies
    objects = [{"text": text, "trigger": "doubt", "tone": str(n)} for n, text in enumerate(later)]
    return row(first=first, rounds=objects, **fields)


# --- lists ---


def test_every_further_element_of_a_list_is_a_turn(tmp_path: Path) -> None:
    rows = [rounds("A", "B", "C"), rounds("B", "A", id="q2"), rounds("A", id="q3")]
    turns = imported(jsonl(tmp_path / "t.jsonl", rows), ROUNDS).turns
    assert turns.select("question", "turn", "answer", "path").rows() == [
        ("q1", 0, "A", ""), ("q1", 1, "B", "doubt-0"), ("q1", 2, "C", "doubt-0>doubt-1"),
        ("q2", 0, "B", ""), ("q2", 1, "A", "doubt-0"), ("q3", 0, "A", ""),
    ]  # fmt: skip
    rows = [row(texts=["A", "B", "A", "C"]), row(texts=["B"], id="q2")]
    turns = imported(jsonl(tmp_path / "t.jsonl", rows), LISTS).turns
    assert turns["answer"].to_list() == ["A", "B", "A", "C", "B"]


def test_a_bad_list_is_located(tmp_path: Path) -> None:
    misspelt = rounds("A", "B", "C")
    misspelt["rounds"][1]["texts"] = misspelt["rounds"][1].pop("text")
    error = refusal(jsonl(tmp_path / "t.jsonl", [misspelt]), ROUNDS)
    assert (error.row, error.field) == (1, "rounds[1].text")
    assert "'texts'" in str(error.remedy)
    error = refusal(jsonl(tmp_path / "t.jsonl", [row(first="A", rounds=3)]), ROUNDS)
    assert (error.row, error.field) == (1, "rounds")


def test_every_element_of_a_list_or_object_is_a_row(tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [
        {"id": f"q{n}", "gold": "A", "runs": {"x": {"text": "A"}, "y": {"text": "B"}}}
        for n in range(2)
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"model": "m", "items": items}))
    mapping = """
    each = ["items", "items.runs"]
    [turn]
    model = "model"
    question = "items.id"
    gold = "items.gold"
    answer = "items.runs.text"
    epoch = { column = "items.runs.text", numbered = true }
    """
    turns = imported(path, mapping).turns
    assert turns.select("question", "epoch", "answer").rows() == [
        ("q0", 1, "A"), ("q0", 2, "B"), ("q1", 1, "A"), ("q1", 2, "B")
    ]  # fmt: skip
    path.write_text(json.dumps({"model": "m", "items": [*items, {"id": "q2", "gold": "A"}]}))
    error = refusal(path, mapping)
    assert (error.row, error.field) == (1, "items.runs")
    outcome = imported(path, mapping, skip_bad=True)
    assert outcome.turns["question"].to_list() == ["q0", "q0", "q1", "q1"]
    assert outcome.passed_over == {"bad row (items.runs)": 1}
    error = refusal(path, mapping.replace('"items", "items.runs"', '"item"'))
    assert (error.field, "'items'" in str(error.remedy)) == ("item", True)


def test_a_second_list_with_more_elements_is_refused(tmp_path: Path) -> None:
    mapping = LISTS + 'answer = "letters[{turn}]"\n'
    path = jsonl(tmp_path / "t.jsonl", [row(texts=["A", "B"], letters=["A", "B"])])
    assert imported(path, mapping).turns["answer"].to_list() == ["A", "B"]
    jsonl(path, [row(texts=["A", "B"], letters=["A", "B", "C"]),
                 row(id="q2", texts=["A"], letters=["B"])])  # fmt: skip
    error = refusal(path, mapping)
    assert (error.row, error.field) == (1, "letters")
    assert "has 3 elements, more than 'texts'" in error.fault
    outcome = imported(path, mapping, skip_bad=True)
    assert outcome.turns["question"].to_list() == ["q2"]
    assert outcome.passed_over == {"bad row (letters)": 1}


# --- columns of turns ---


@pytest.mark.parametrize(
    ("rows", "row_number", "field", "near"),
    [
        ([row(turn_0="A", turn_1="B"), row(id="q2", turn_0="A")], None, "turn_2", "'turn_1'"),
        ([row(turn_0="A", turn1="B", turn_2="C")], 1, "turn_1", "'turn1'"),
    ],
)
def test_a_column_without_turns_and_a_gap_are_refused_with_the_nearest(
    tmp_path: Path, rows: list[Any], row_number: int | None, field: str, near: str
) -> None:
    error = refusal(jsonl(tmp_path / "t.jsonl", rows), COLUMNS)
    assert (error.row, error.field) == (row_number, field)
    assert near in str(error.remedy)


def test_absent_and_unread_turns_are_counted(tmp_path: Path) -> None:
    rows = [row(turn_0="A", turn_1="B", turn_2="C"), row(id="q2", turn_0="A")]
    outcome = imported(jsonl(tmp_path / "t.jsonl", rows), COLUMNS)
    assert outcome.turns["question"].to_list() == ["q1"] * 3 + ["q2"]
    assert list(outcome.passed_over.values()) == [2]
    path = tmp_path / "t.csv"
    header = "model,id,gold,options,turn_0,turn_1,turn_2,turn_3\n"
    path.write_text(header + 'm,q1,A,"A. x\nB. y",A,B,A,B\n')
    assert imported(path, COLUMNS).passed_over == {"column of a later turn ('turn_3')": 1}


# --- rows that are read ---


def test_rows_are_filtered_by_their_cells_and_counted(tmp_path: Path) -> None:
    rows = [row(id=f"q{n}", kind="ab"[n % 2], done=n > 1, error=None) for n in range(6)]
    rows[4]["error"] = "timeout"
    path = jsonl(tmp_path / "t.jsonl", rows)
    mapping = 'keep = { done = "true", error = "" }\ndrop = { kind = ["b", "c"] }\n' + REPLIES
    outcome = imported(path, mapping)
    assert outcome.turns["question"].to_list() == ["q2"]
    assert (outcome.conversations, list(outcome.passed_over.values())) == (1, [5])
    error = refusal(path, 'keep = { don = "true" }\n' + REPLIES)
    assert (error.field, "'done'" in str(error.remedy)) == ("don", True)


def test_bad_rows_can_be_omitted_and_counted(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [row(id=f"q{n}") for n in range(4)]
    rows[1]["gold"] = "Z"
    rows[2]["options"] = "none"
    path = jsonl(tmp_path / "t.jsonl", rows)
    path.write_text(path.read_text() + "{broken\n")
    assert refusal(path, REPLIES).row == 2
    outcome = imported(path, REPLIES, skip_bad=True)
    assert outcome.turns["question"].to_list() == ["q0", "q3"]
    bad_rows = ("gold", "options", "the row")
    assert outcome.passed_over == {f"bad row ({field})": 1 for field in bad_rows}
    run = holdfast("import", path, "--mapping", "mapping.toml", "--skip-bad", "-o", "t.parquet")
    assert run.returncode == 0, run.stderr
    assert "1 × bad row (gold)\n" in run.stderr
    with pytest.raises(InputError, match="contains no readable row"):
        imported(jsonl(tmp_path / "t.jsonl", rows[1:3]), REPLIES, skip_bad=True)


def test_an_id_with_line_breaks_stays_on_one_line(tmp_path: Path) -> None:
    turns = imported(jsonl(tmp_path / "t.jsonl", [row(id="Which\ndrug?\r\n")]), REPLIES).turns
    assert turns["question"].to_list() == ["Which drug?"]


def test_options_with_equal_texts_keep_their_letters(tmp_path: Path) -> None:
    alike = {"A": "Aspirin", "B": "Aspirin", "C": "Codeine"}
    path = jsonl(tmp_path / "t.jsonl", [row(options=alike, reply="Answer: B")])
    assert imported(path, REPLIES).turns["answer"].to_list() == ["B"]
    questions = [
        {"id": f"q{n}", "stem": f"Which? {n}", "options": alike if n else OPTIONS, "gold": "A"}
        for n in range(3)
    ]
    questions[2]["gold"] = "Z"
    source = write_jsonl(tmp_path / "q.jsonl", questions)
    jsonl(path, [row(id="q1", reply="Answer: B"), row(id="q2")])
    Path("m.toml").write_text(REPLIES.replace('options = "options"\n', ""))
    arguments = ("import", path, "--mapping", "m.toml", "--questions", source, "-o", "t.parquet")
    assert "row 3, field 'gold'" in holdfast(*arguments).stderr
    run = holdfast(*arguments, "--skip-bad")
    assert run.returncode == 0, run.stderr
    assert turns_table(["t.parquet"]).select("question", "answer").rows() == [("q1", "B")]
    assert "1 × question not in q" in run.stderr
    assert "1 × bad row (id)" in run.stderr


# --- options, numbers, patterns ---


@pytest.mark.parametrize("mark", ["{}. ", "{}) ", "({}) ", "{}: "])
def test_letters_before_options_are_stripped(tmp_path: Path, mark: str) -> None:
    options = [mark.format(letter) + text for letter, text in OPTIONS.items()]
    path = jsonl(tmp_path / "t.jsonl", [row(options=options, gold="Biotin")])
    assert imported(path, REPLIES).turns["gold"].to_list() == ["B"]


@pytest.mark.parametrize("prompt", [
    "Is it (A) or not?\n\nA. Aspirin\nB. Biotin\nC. Codeine\n\nAnswer with a letter.",
    "Which drug (see B)?\nAnswer Choices: (A) Aspirin (B) Biotin (C) Codeine",
])  # fmt: skip
def test_options_can_be_part_of_a_prompt(tmp_path: Path, prompt: str) -> None:
    mapping = REPLIES.replace('options = "options"', 'options_inside = "prompt"')
    path = jsonl(tmp_path / "t.jsonl", [row(prompt=prompt, reply="The best drug is Biotin.")])
    assert imported(path, mapping).turns["answer"].to_list() == ["B"]
    error = refusal(jsonl(tmp_path / "t.jsonl", [row(prompt="Which?")]), mapping)
    assert (error.row, error.field) == (1, "prompt")


def test_answers_come_from_the_highest_number_or_a_pattern(tmp_path: Path) -> None:
    fields = """
    answer = { column = "scores", highest = true, base = 0 }
    suggested = { column = "text", match = "think it is \\\\(([A-Z])\\\\)" }
    """
    scores = [["-3.5", "False"], ["-0.25", "True"], ["-1", "False"]]
    rows = [row(scores=scores, text="I think it is (C)."),
            row(id="q2", scores="[0.5, 0.1, 0.2]", text="Are you sure?")]  # fmt: skip
    path = jsonl(tmp_path / "t.jsonl", rows)
    turns = imported(path, REPLIES.replace('reply = "reply"', fields)).turns
    assert turns.select("answer", "suggested").rows() == [("B", "C"), ("A", None)]


# --- without right answers ---


def test_without_gold_flips_are_changes_of_the_first_answer(tmp_path: Path) -> None:
    mapping = ROUNDS.replace('gold = "gold"\n', "")
    rows = [rounds("A", "B"), rounds("B", "B", id="q2"), rounds("Hm.", "B", id="q3")]
    path = jsonl(tmp_path / "t.jsonl", rows)
    outcome = imported(path, "without_gold = true\n" + mapping)
    assert outcome.passed_over == {"conversation with an unparsed first answer": 1}
    assert outcome.turns["dataset"].unique().to_list() == ["t (no gold)"]
    (flips,) = TABLES["flips"](outcome.turns).iter_rows(named=True)
    assert (flips["n_right"], flips["right_to_wrong"], flips["flip_rate"]) == (2, 1, 0.5)
    assert "without_gold = true" in str(refusal(path, mapping))


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
    error = refusal(path, REPLIES)
    assert "builtins.print" in error.fault
    assert "JSONL" in str(error.remedy)
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
answer = "letter"
"""


def test_a_folder_is_read_with_joined_files(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "sub").mkdir(parents=True)
    (folder / "config.yaml").write_text("model:\n  id: m\n")
    key = jsonl(folder / "key.jsonl", [{"id": n, "gold": "AB"[n]} for n in range(2)])
    for name in ("x", "y"):
        jsonl(folder / "sub" / f"{name}.jsonl", [{"id": n, "letter": "A"} for n in range(2)])
    turns = imported(folder, FOLDER).turns
    assert turns.select("model", "question", "epoch", "gold", "answer").rows() == [
        ("m", "0", 1, "A", "A"), ("m", "1", 1, "B", "A"), ("m", "0", 2, "A", "A"),
        ("m", "1", 2, "B", "A"),
    ]  # fmt: skip
    last = jsonl(folder / "sub" / "z.jsonl", [{"id": 7, "letter": "A"}])
    error = refusal(folder, FOLDER)
    assert (error.file, error.row, error.field) == (str(last), 1, "id")
    key.write_text(key.read_text() + "[1]\n")
    error = refusal(folder, FOLDER)
    assert (error.row, "not a JSON object" in error.fault) == (3, True)
    outcome = imported(folder, FOLDER, skip_bad=True)
    assert (outcome.turns.height, outcome.passed_over) == (4, {"bad row (id)": 1})
    assert "is not a folder" in refusal(key, FOLDER).fault
    fault = refusal(folder, FOLDER.replace("sub/*", "subs/*")).fault
    assert "only config.yaml, key.jsonl, sub" in fault
