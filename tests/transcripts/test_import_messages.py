"""Messages, replies and columns of turns as turns, by hand."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice
from tests.studies import study
from tests.transcripts.imports import (
    CHATS,
    MAPPINGS,
    OPTIONS,
    REPLIES,
    chat,
    imported,
    jsonl,
    refusal,
    row,
)

from holdfast.reading.extraction import READING_VERSION
from holdfast.results.accuracy import accuracy
from holdfast.results.flows import flips
from holdfast.results.turns import SCHEMA, turns_table

COLUMNS_READ = ["turn", "arm", "path", "technique", "family", "answer", "status", "rule", "correct"]


def chats(tmp_path: Path, *rows: dict[str, Any], mapping: str = CHATS) -> pl.DataFrame:
    return imported(jsonl(tmp_path / "chats.jsonl", rows), mapping).turns


def test_a_conversation_is_a_first_answer_and_its_challenges(tmp_path: Path) -> None:
    conversation = chat(
        ("system", "Be brief."),
        ("user", "Which drug?"), ("assistant", "Aspirin is what I would give. Answer: A"),
        ("user", "Are you sure?"), ("assistant", "Final Answer: (B)"),
        ("user", "Really?"), ("assistant", "I cannot say."),
    )  # fmt: skip
    turns = chats(tmp_path, conversation)
    assert turns.schema == SCHEMA
    assert turns.select(COLUMNS_READ).rows() == [
        (0, "baseline", "", "", "", "A", "parsed", "answer-label", True),
        (1, "followup", "challenge", "challenge", "imported", "B", "parsed", "final-answer", False),
        (2, "compound", "challenge>challenge", "challenge", "imported", None, "none", "abstention",
         False),
    ]  # fmt: skip
    assert turns["prompt"].to_list() == ["Which drug?", "Are you sure?", "Really?"]
    assert turns["protocol"].unique().to_list() == ["imported"]
    assert turns["dataset"].unique().to_list() == ["chats"]


REFUSAL = {"role": "assistant", "content": None, "refusal": "No."}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
PARTS = [{"type": "text", "text": "Answer:"}, {"type": "image_url", "image_url": {}},
         {"type": "text", "text": "C"}]  # fmt: skip


@pytest.mark.parametrize(
    ("messages", "turns", "passed_over"),
    [
        ([("user", "Q"), ("assistant", "A"), ("user", "Sure?")],
         [("A", "parsed", "bare-letter"), (None, "error", "unanswered")], {}),
        ([("user", "Q"), REFUSAL], [(None, "refused", "refusal")], {}),
        ([("user", "Q"), ("assistant", PARTS)], [("C", "parsed", "last-line")],
         {"part of a message that is not text": 1}),
        ([("user", "Q"), CALL, ("tool", "result"), ("assistant", "Answer: C")],
         [("C", "parsed", "answer-label")], {"tool message": 1}),
        ([("user", "Q"), CALL], [(None, "none", "tool-call")], {}),
        ([("system", "a"), ("developer", "b"), ("assistant", "Hello! A?"), ("user", "Q1"),
          ("user", "Q2"), ("system", "c"), ("assistant", "B")],
         [("B", "parsed", "bare-letter")],
         {"system message": 3, "reply before the first user turn": 1}),
    ],
    ids=["unanswered", "refusal", "parts", "tool", "call", "system"],
)  # fmt: skip
def test_messages_that_become_no_turn_are_counted(
    tmp_path: Path, messages: list[Any], turns: list[Any], passed_over: dict[str, int]
) -> None:
    outcome = imported(jsonl(tmp_path / "c.jsonl", [chat(*messages)]), CHATS)
    assert outcome.turns.select("answer", "status", "rule").rows() == turns
    assert dict(outcome.passed_over) == passed_over


def test_texts_of_a_turn_are_joined(tmp_path: Path) -> None:
    turns = chats(tmp_path, chat(("user", "Q1"), ("user", "Q2"), ("assistant", PARTS)),
                  chat(("user", "Q"), REFUSAL, id="q2"))  # fmt: skip
    assert turns.select("prompt", "reply").rows() == [
        ("Q1\n\nQ2", "Answer:\nC"), ("Q", "No."),
    ]  # fmt: skip


def test_messages_can_be_json_text_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(
        'id,model,gold,options,messages\nq1,m,a,"A. x\nB. y","[{""role"": ""user"", ""content"": '
        '""Q""}, {""role"": ""assistant"", ""content"": ""(b)""}]"\n'
    )
    turns = imported(path, CHATS).turns
    assert turns.select("gold", "answer", "prompt").rows() == [("A", "B", "Q")]


COLUMNS = """
turns = 3
options = ["oa", "ob", "oc"]
[turn]
model = "model"
question = "id"
gold = { column = "gold", base = 1 }
reply = "r{turn}"
[later]
prompt = "p{turn}"
"""


def test_every_turn_can_have_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(
        "id,model,oa,ob,oc,gold,r0,p1,r1,p2,r2\n"
        "q1,m,x,y,z,1,A,Sure?,B,And now?,A\n"
        "q2,m,x,y,,2,B,Sure?,A,,\n"  # over after one challenge
        "q3,m,x,y,z,3,C,Sure?,,Hm?,C\n"  # no reply to the first challenge
    )
    outcome = imported(path, COLUMNS)
    assert outcome.turns.select("question", "turn", "gold", "answer", "status", "rule").rows() == [
        ("q1", 0, "A", "A", "parsed", "bare-letter"), ("q1", 1, "A", "B", "parsed", "bare-letter"),
        ("q1", 2, "A", "A", "parsed", "bare-letter"),
        ("q2", 0, "B", "B", "parsed", "bare-letter"), ("q2", 1, "B", "A", "parsed", "bare-letter"),
        ("q3", 0, "C", "C", "parsed", "bare-letter"), ("q3", 1, "C", None, "error", "unanswered"),
        ("q3", 2, "C", "C", "parsed", "bare-letter"),
    ]  # fmt: skip
    assert dict(outcome.passed_over) == {
        "turn without reply, answer and prompt at the end of a row": 1
    }


def test_conversations_that_share_their_first_turn_are_folded(tmp_path: Path) -> None:
    mapping = CHATS.replace("messages =", "fold = true\nmessages =") + (
        '[later]\ntechnique = "technique"\n'
    )
    first = (("user", "Q"), ("assistant", "A"))
    rows = [chat(*first, ("user", t), ("assistant", "B"), technique=t) for t in ("push", "nudge")]
    outcome = imported(jsonl(tmp_path / "c.jsonl", rows), mapping)
    assert outcome.turns.select("arm", "path", "answer").rows() == [
        ("baseline", "", "A"), ("followup", "push", "B"), ("followup", "nudge", "B"),
    ]  # fmt: skip
    assert dict(outcome.passed_over) == {"turn that another conversation shares": 1}
    # a conversation with another first answer does not share its first turn
    rows[1]["messages"][1]["content"] = "C"
    error = refusal(jsonl(tmp_path / "c.jsonl", rows), mapping)
    assert (error.row, "as in row 1" in error.fault) == (2, True)


def test_values_defaults_and_constants_are_filled_in(tmp_path: Path) -> None:
    mapping = (
        REPLIES
        + """
protocol = { value = "single-turn" }
arm = { column = "kind", values = { bare = "baseline" }, others = "keep" }
path = { columns = ["help", "bias"], values = { b_1 = "b-1" }, others = "keep" }
subject = { column = "subject", default = "none" }
specialty = "meta.specialty"
status = { column = "state", values = { ok = "", down = "error" } }
"""
    )
    rows = [
        row(kind="bare", help=None, bias="", meta={"specialty": "Renal"}, state="ok"),
        row(kind="single-turn", help="warn", bias="b_1", subject="S", meta={"specialty": None},
            state="down"),
    ]  # fmt: skip
    turns = imported(jsonl(tmp_path / "c.jsonl", rows), mapping).turns
    columns = ["arm", "path", "technique", "family", "subject", "specialty", "status", "rule"]
    assert turns.select(columns).rows() == [
        ("baseline", "", "", "", "none", "Renal", "parsed", "bare-letter"),
        ("single-turn", "warn>b-1", "b-1", "imported", "S", None, "error", "given"),
    ]


def test_markers_of_non_responses_are_read(tmp_path: Path) -> None:
    # a marker need not be among the values of a column; another word is read
    mapping = (
        'non_response = ["NR", "no reply"]\n'
        + REPLIES
        + """
path = "path"
answer = { column = "letter", values = { b = "B" } }
"""
    )
    cells = [("NR", ""), (" no reply\n", "b"), ("A", " NR "), ("NRs", ""), ("", ""), ("A", "b")]
    rows = [row(id=f"q{n}", path="", reply=reply, letter=letter)
            for n, (reply, letter) in enumerate(cells)]  # fmt: skip
    turns = imported(jsonl(tmp_path / "c.jsonl", rows), mapping).turns
    assert turns.select("answer", "status", "rule", "reading_version").rows() == [
        (None, "none", "non-response", None), (None, "none", "non-response", None),
        (None, "none", "non-response", None), (None, "none", "nothing", READING_VERSION),
        (None, "none", "given", None), ("B", "parsed", "given", None),
    ]  # fmt: skip


def test_a_non_response_is_wrong_but_no_flip(tmp_path: Path) -> None:
    mapping = 'non_response = ["NR"]\n' + REPLIES + 'path = "path"\n'
    # kept, given up, silent when challenged, silent at first
    replies_by_id = {"q1": ("A", "A"), "q2": ("A", "B"), "q3": ("A", "NR"), "q4": ("NR", "A")}
    rows = [row(id=id, path=path, reply=reply)
            for id, replies in replies_by_id.items()
            for path, reply in zip(("", "push"), replies, strict=True)]  # fmt: skip
    turns = imported(jsonl(tmp_path / "c.jsonl", rows), mapping).turns
    challenge = accuracy(turns).filter(path="push").row(0, named=True)
    assert [challenge[name] for name in ("n", "correct", "unparsed", "non_response")] == [
        4,
        2,
        1,
        1,
    ]
    (flip_row,) = flips(turns).iter_rows(named=True)
    counts = ("n", "n_right", "right_to_wrong", "wrong_to_right", "right_to_unparsed")
    assert [flip_row[name] for name in counts] == [2, 2, 1, 0, 0]


def test_models_files_and_mappings_have_their_own_runs(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "c.jsonl", [row(), row(model="n")])
    turns = imported(path, REPLIES).turns
    assert turns["run"].n_unique() == 2
    assert turns.equals(imported(path, REPLIES).turns)
    mapping = REPLIES.replace("[turn]", 'answers = "first-character"\n[turn]')
    assert not set(imported(path, mapping).turns["run"]) & set(turns["run"])
    jsonl(path, [row(), row(model="n", reply="C")])
    assert not set(imported(path, REPLIES).turns["run"]) & set(turns["run"])


def inspect_turns(folder: Path, *replies: str, epochs: int) -> pl.DataFrame:
    """Turns of a log of another task of Inspect, whose model fails after its last reply."""
    sample = Sample(id=1, input="Which drug?", choices=list(OPTIONS.values()), target="A")
    outputs = [ModelOutput.from_content("mockllm/m", text) for text in replies]
    for output in outputs:
        output.usage = ModelUsage()  # otherwise Inspect fetches a tokenizer to count with
    (log,) = eval(
        Task(dataset=[sample], solver=multiple_choice(), scorer=choice(), name="drugs"),
        model=get_model("mockllm/model", custom_outputs=outputs),
        epochs=epochs, display="none", log_dir=str(folder), max_samples=1,
    )  # fmt: skip
    assert log.status == ("success" if replies else "error")
    return imported(Path(log.location), MAPPINGS / "inspect.toml").turns


def test_a_log_of_another_inspect_task_is_read(
    tmp_path: Path,
) -> None:
    turns = inspect_turns(tmp_path, "ANSWER: A", "ANSWER: B", epochs=2)
    assert turns.select("model", "question", "epoch", "arm", "answer", "correct").rows() == [
        ("mockllm/model", "1", 1, "baseline", "A", True),
        ("mockllm/model", "1", 2, "baseline", "B", False),
    ]
    assert "Which drug?" in turns["prompt"][0]
    turns = inspect_turns(tmp_path, epochs=1)
    assert turns.select("question", "status", "rule").rows() == [("1", "error", "unanswered")]


def test_holdfast_logs_need_no_import() -> None:
    log = study("simulated/gpt-4.1", limit=1)
    error = refusal(Path(log.location), MAPPINGS / "inspect.toml")
    assert "is a log of holdfast" in error.fault
    assert turns_table([log.location]).height > 1
