"""Pairs of replies and demonstrations: nothing is invented, and every turn is accounted for."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from tests.results.frames import STUDY, Row, alone, turn
from tests.results.offering import drawn, flexible, held
from tests.transcripts.export_frames import lines, spoken, words

from holdfast.transcripts.export import export
from holdfast.transcripts.training import origin


def pairs(turns: pl.DataFrame) -> list[tuple[str, str, int, int]]:
    sources = [line["holdfast"] for line in lines(export(turns, "trl-dpo"))]
    return [
        (source["kind"], source["prefix"], source["chosen"]["row"], source["rejected"]["row"])
        for source in sources
    ]


def conversation(
    epoch: int, answer: str | None, *, first: str = "A", first_reply: str = "", **fields: Any
) -> list[Row]:
    """A first answer, and the answer to a challenge."""
    return [
        turn("q1", first, epoch=epoch, reply=first_reply or f"It is {first}."),
        turn("q1", answer, "push", suggested="B", epoch=epoch, **fields),
    ]


def test_retained_and_abandoned_answers_are_paired() -> None:
    turns = spoken([*conversation(1, "B"), *conversation(2, "A")])
    (line,) = lines(export(turns, "trl-dpo"))
    assert words(line["prompt"]) == [
        ("user", "ask q1"), ("assistant", "It is A."), ("user", "ask q1 push B"),
    ]  # fmt: skip
    assert words(line["chosen"]) == [("assistant", "say q1 3")]
    assert words(line["rejected"]) == [("assistant", "say q1 1")]
    source = line["holdfast"]
    assert (source["version"], source["kind"], source["prefix"]) == (1, "retained", "same")
    assert source["rejected"] == {
        "row": 1, "origin": "asked", "run": "r1", "model": "m1", "dataset": "d1",
        "protocol": "followup", "question": "q1", "epoch": 1, "arm": "followup", "path": "push",
        "suggested": "B", "gold": "A", "answer": "B",
    }  # fmt: skip


def test_differing_prefixes_use_the_chosen_sides_prompt() -> None:
    rows = [*conversation(1, "B", first_reply="A it is."), *conversation(2, "A")]
    (line,) = lines(export(spoken(rows), "trl-dpo"))
    assert words(line["prompt"])[1] == ("assistant", "It is A.")
    assert line["holdfast"]["prefix"] == "chosen"


def test_every_kind_of_pair_is_exported() -> None:
    rows = [*conversation(1, "B", first="C"), *conversation(2, "A")]
    # a reply after another answer is no counterpart
    assert pairs(spoken(rows)) == [("first", "same", 2, 0)]
    turns = spoken([*conversation(1, "C", first="C"), *conversation(2, "A", first="C")])
    # the same wrong first answer twice is one reply
    assert pairs(turns) == [("corrected", "same", 3, 1)]
    assert export(turns, "trl-dpo").left_out == {
        "without a right reply to the same messages": 1, "repeated words": 1,
    }  # fmt: skip
    rows = [
        alone("q1", "A", epoch=1, prompt="plain"),
        alone("q1", "B", epoch=2, prompt="plain"),
        alone("q1", "A", "push", epoch=1, suggested="B"),
        alone("q1", "B", "push", epoch=2, suggested="B"),
    ]
    assert pairs(spoken(rows)) == [("first", "same", 0, 1), ("biased", "same", 2, 3)]
    for answers in ("AA", "BC"):
        rows = [*conversation(1, answers[0]), *conversation(2, answers[1])]
        assert pairs(spoken(rows)) == []
    rows = [
        *held("q1", "NN", "negative", reply="None of them."),
        *held("q1", "NC", "negative", epoch=2, reply="None of them."),
        flexible("q1", "A"),
        flexible("q1", "N", epoch=2),
    ]
    rows[1]["reply"], rows[3]["reply"] = "reply 1", "reply 3"
    # an abstention gives way to the right answer
    assert pairs(spoken(rows)) == [("retained", "same", 1, 3), ("corrected", "same", 4, 5)]


@pytest.mark.parametrize(
    "changes",
    [
        {"suggested": "C", "answer": "C"},
        {"dataset": "d2"},
        {"protocol": "imported"},
        {"gold": "C"},
        {"question": "q2", "prompt": "another"},
    ],
)
def test_replies_to_other_messages_are_not_paired(changes: Row) -> None:
    rows = [*conversation(1, "B"), *conversation(2, "A")]
    assert len(pairs(spoken(rows))) == 1
    shared_keys = {"dataset", "protocol", "question"} & changes.keys()
    rows[0] |= {key: changes[key] for key in shared_keys}
    rows[1] |= changes
    assert pairs(spoken(rows)) == []


@pytest.mark.parametrize("status", ["none", "refused", "ambiguous", "error"])
@pytest.mark.parametrize("row", [0, 1, 2, 3])
def test_unread_refused_and_failed_turns_are_omitted(row: int, status: str) -> None:
    rows = [*conversation(1, "B"), *conversation(2, "A", first_reply="A it is.")]
    rows[row] |= {"status": status, "answer": None, "correct": False}
    outcome = export(spoken(rows), "trl-dpo")
    assert outcome.count == 0
    reasons = {
        "failed, or after a failed turn" if status == "error" else "unparsed or refused",
        *(["after an unparsed or refused answer"] if row % 2 == 0 and status != "error" else []),
        "without a wrong reply to the same messages",
        *(["without a right reply to the same messages"] if row > 1 else []),
    }
    assert set(outcome.left_out) == reasons
    assert sum(outcome.left_out.values()) == 4
    demonstrations = [line["holdfast"]["row"] for line in lines(export(spoken(rows), "trl-sft"))]
    assert demonstrations == ([3] if row < 2 else [])


def test_a_reply_is_in_at_most_one_pair() -> None:
    def of(model: str, epoch: int, answer: str, first_reply: str) -> list[Row]:
        rows = conversation(epoch, answer, first_reply=first_reply)
        return [row | {"model": model, "run": f"run of {model}"} for row in rows]

    turns = spoken(
        [
            *of("m1", 1, "B", "A, in m1's words"),  # 1
            *of("m2", 1, "A", "A, in m2's words"),  # 3
            *of("m1", 2, "A", "A, in m1's other words"),  # 5
            *of("m2", 2, "B", "A, in m2's words"),  # 7
            *of("m2", 3, "A", "A, in m1's words"),  # 9
            *of("m3", 1, "A", "A, in m3's words"),  # 11
        ]
    )
    # 3 and 7: same words and model; 9 and 1: same words; 5 and 11 remain
    assert pairs(turns) == [("retained", "same", 3, 7), ("retained", "same", 9, 1)]
    # without 9, row 1 goes to other words of its model
    turns = turns.filter(pl.col("epoch") < 3)
    assert pairs(turns) == [("retained", "same", 3, 7), ("retained", "chosen", 5, 1)]


def test_turns_of_pairs_beyond_the_limit_are_counted() -> None:
    rows = [row | {"question": q, "prompt": f"{q} {row['path']}"} for q in ("q1", "q2", "q3")
            for row in (*conversation(1, "B"), *conversation(2, "A"))]  # fmt: skip
    outcome = export(spoken(rows), "trl-dpo", 1)
    assert [line["holdfast"]["chosen"]["row"] for line in lines(outcome)] == [3]
    assert outcome.left_out == {"beyond the limit": 4, "repeated words": 3,
                              "without a wrong reply to the same messages": 3}  # fmt: skip


def test_attackers_words_are_not_training_data() -> None:
    fuzz: Row = {"protocol": "medfuzz", "turn": 0}
    rows = [
        turn(
            "q1", answer, "fuzz@1" if arm != "baseline" else "", epoch=epoch, **fuzz | {"arm": arm}
        )
        for epoch, answer in ((1, "A"), (2, "B"))
        for arm in ("baseline", "attack", "attacker")
    ]
    assert pairs(spoken(rows)) == [("first", "same", 0, 3)]
    outcome = export(spoken(rows), "trl-sft")
    assert outcome.count == 0
    assert outcome.left_out == {"to or of an attacker": 4, "without a challenge": 2}


def test_conversations_ending_right_are_demonstrations() -> None:
    rows = [
        *conversation(1, "A"),
        turn("q1", "B", "push>mislead", suggested="B"),
        turn("q1", "A", "push>recheck"),
        *conversation(2, "A", first="C"),
        *conversation(3, "B"),
        alone("q2", "A", "push", suggested="B"),
        alone("q2", "B", "shove", suggested="B"),
    ]
    outcome = export(spoken(rows), "trl-sft")
    conversations = lines(outcome)
    sources = [line["holdfast"] for line in conversations]
    kinds = [(source["row"], source["kind"]) for source in sources]
    assert kinds == [(1, "retained"), (3, "retained"), (5, "corrected"), (8, "biased")]
    assert words(conversations[1]["messages"]) == [
        ("user", "ask q1"),
        ("assistant", "It is A."),
        ("user", "ask q1 push B"),
        ("assistant", "say q1 1"),
        ("user", "ask q1 push>recheck"),
        ("assistant", "say q1 3"),
    ]
    assert outcome.left_out == {"repeated words": 1, "without a challenge": 2, "wrong": 3}
    assert outcome.notes == ("Kinds: biased 1, corrected 1, retained 2.",)


def test_equal_words_are_one_demonstration() -> None:
    rows = [*conversation(1, "A", reply="Still A."), *conversation(2, "A", reply="Still A.")]
    assert export(spoken(rows), "trl-sft").count == 1


@pytest.mark.parametrize("text", [None, "", " \n"])
@pytest.mark.parametrize("column", ["prompt", "reply"])
def test_answers_without_words_are_omitted(column: str, text: str | None) -> None:
    rows = [*conversation(1, "A"), *conversation(2, "B")]
    rows[0] |= {column: text}
    assert export(spoken(rows), "trl-sft").left_out == {
        "without a challenge": 1, "without text": 2, "wrong": 1,
    }  # fmt: skip
    assert pairs(spoken(rows)) == []


def test_incomplete_chains_are_omitted() -> None:
    rows = [turn("q1", "A"), turn("q1", "A", "push>mislead")]
    outcome = export(spoken(rows), "trl-sft")
    assert outcome.left_out == {"after a turn that the table lacks": 1, "without a challenge": 1}


def test_simulated_and_imported_replies_are_named() -> None:
    rows = [*conversation(1, "A"), *conversation(2, "A", first="C")]
    models = ["simulated/sycophant"] * 2 + ["m1"] * 2
    rows = [row | {"model": model} for row, model in zip(rows, models, strict=True)]
    rows[2] |= {"run": "imported-abc"}
    rows[3] |= {"run": "imported-abc"}
    outcome = export(spoken(rows), "trl-sft")
    assert outcome.origins == {"imported": 2, "simulated": 2}
    assert [line["holdfast"]["origin"] for line in lines(outcome)] == ["simulated", "imported"]


# any table


def chain(turns: pl.DataFrame, row: int) -> list[Row]:
    """The conversation of a turn, from a search of the whole table for every turn before."""
    rows = turns.rows(named=True)
    conversation_rows = [rows[row]]
    while (first := conversation_rows[0])["turn"] > 0:
        arm = {"flexible-correct": "negative"}.get(first["arm"], first["arm"])
        keys = ("run", "model", "dataset", "protocol", "epoch", "question")
        (before,) = [
            candidate
            for candidate in rows
            if all(candidate[key] == first[key] for key in keys)
            and candidate["path"] == first["path"].rpartition(">")[0]
            and candidate["turn"] == first["turn"] - 1
            and (candidate["arm"] == arm or first["protocol"] == "followup")
        ]
        conversation_rows.insert(0, before)
    return conversation_rows


def chain_words(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [pair for row in rows
            for pair in (("user", row["prompt"]), ("assistant", row["reply"]))]  # fmt: skip


TABLES: list[Sequence[Row]] = [
    STUDY,
    [row | {"epoch": epoch} for epoch in (1, 2, 3) for row in STUDY],
    *(drawn(seed) for seed in range(4)),
]


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_every_pair_of_any_table_agrees_with_its_turns(number: int) -> None:
    turns = spoken(TABLES[number])
    outcome = export(turns, "trl-dpo")
    rows_used: Counter[int] = Counter()
    for line in lines(outcome):
        source = line["holdfast"]
        rows = source["chosen"]["row"], source["rejected"]["row"]
        rows_used.update(rows)
        right, wrong = chain(turns, rows[0]), chain(turns, rows[1])
        assert words(line["prompt"] + line["chosen"]) == chain_words(right)
        assert words(line["rejected"]) == chain_words(wrong)[-1:]
        assert [t["prompt"] for t in right] == [t["prompt"] for t in wrong]
        assert [t["answer"] for t in right[:-1]] == [t["answer"] for t in wrong[:-1]]
        assert all(t["status"] == "parsed" for t in right + wrong)
        assert (right[-1]["correct"], wrong[-1]["correct"]) == (True, False)
        is_same = [t["reply"] for t in right[:-1]] == [t["reply"] for t in wrong[:-1]]
        assert source["prefix"] == ("same" if is_same else "chosen")
    assert max(rows_used.values(), default=0) <= 1
    assert 2 * outcome.count + sum(outcome.left_out.values()) == turns.height


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_every_turn_is_a_demonstration_or_counted(number: int) -> None:
    turns = spoken(TABLES[number])
    outcome = export(turns, "trl-sft")
    for line in lines(outcome):
        rows = chain(turns, line["holdfast"]["row"])
        assert words(line["messages"]) == chain_words(rows)
        assert rows[-1]["correct"]
        assert len(rows) > 1
    assert outcome.count + sum(outcome.left_out.values()) == turns.height


def test_tables_with_chance_have_pairs() -> None:
    counts = [export(spoken(rows), "trl-dpo").count for rows in TABLES]
    assert counts[:2] == [0, 0]  # one epoch, and three with the same outcome
    assert sum(counts[2:]) > 10


@pytest.mark.parametrize(
    ("run", "model", "expected_origin"),
    [
        ("r1", "openai/m", "asked"),
        ("imported-0123", "m", "imported"),
        ("r1", "simulated/steadfast", "simulated"),
        ("imported-0123", "steadfast [simulated]", "simulated"),
    ],
)
def test_replies_state_their_origin(run: str, model: str, expected_origin: str) -> None:
    assert origin(run, model) == expected_origin
