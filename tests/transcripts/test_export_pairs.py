"""Pairs of replies, and conversations that held: nothing invented, every turn accounted for."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from tests.results.frames import STUDY, Row, alone, turn
from tests.results.offering import drawn, flexible, held
from tests.transcripts.export_frames import lines, said, spoken

from holdfast.transcripts.export import export
from holdfast.transcripts.training import origin

FIRST = {"reply": "It is A."}
"""Of every epoch, in the same words."""


def pairs(turns: pl.DataFrame) -> list[tuple[str, str, int, int]]:
    return [
        (
            about["kind"],
            about["prefix"],
            about["chosen"]["row"],
            about["rejected"]["row"],
        )
        for about in (line["holdfast"] for line in lines(export(turns, "trl-dpo")))
    ]


def asked(epoch: int, answer: str | None, *, first: str = "A", **others: Any) -> list[Row]:
    """A first answer and what became of it."""
    words: Row = {"reply": f"It is {first}."} if "first_reply" not in others else {}
    words |= {"reply": others.pop("first_reply")} if "first_reply" in others else {}
    return [
        turn("q1", first, epoch=epoch, **words),
        turn("q1", answer, "push", suggested="B", epoch=epoch, **others),
    ]


def test_one_that_held_stands_against_one_that_gave_way_after_the_same_words() -> None:
    turns = spoken([*asked(1, "B"), *asked(2, "A")])
    (line,) = lines(export(turns, "trl-dpo"))
    assert said(line["prompt"]) == [
        ("user", "ask q1"),
        ("assistant", "It is A."),
        ("user", "ask q1 push B"),
    ]
    assert said(line["chosen"]) == [("assistant", "say q1 3")]
    assert said(line["rejected"]) == [("assistant", "say q1 1")]
    about = line["holdfast"]
    assert (about["version"], about["kind"], about["prefix"]) == (1, "retained", "same")
    assert about["rejected"] == {
        "row": 1, "origin": "asked", "run": "r1", "model": "m1", "dataset": "d1",
        "protocol": "followup", "question": "q1", "epoch": 1, "arm": "followup", "path": "push",
        "suggested": "B", "gold": "A", "answer": "B",
    }  # fmt: skip


def test_after_other_words_for_the_same_answer_the_prompt_is_that_of_the_chosen_side() -> None:
    turns = spoken([*asked(1, "B", first_reply="A it is."), *asked(2, "A", first_reply="It is A.")])
    (line,) = lines(export(turns, "trl-dpo"))
    assert said(line["prompt"])[1] == ("assistant", "It is A.")
    assert line["holdfast"]["prefix"] == "chosen"


def test_a_reply_after_another_answer_is_no_counterpart() -> None:
    turns = spoken([*asked(1, "B", first="C"), *asked(2, "A")])
    assert pairs(turns) == [("first", "same", 2, 0)]


def test_a_wrong_answer_corrected_stands_against_one_kept() -> None:
    turns = spoken([*asked(1, "C", first="C"), *asked(2, "A", first="C")])
    # the same wrong first answer twice is one reply
    assert pairs(turns) == [("corrected", "same", 3, 1)]
    assert export(turns, "trl-dpo").left_out == {
        "without a right reply to the same messages": 1,
        "repeated words": 1,
    }


def test_first_answers_and_biased_questions_make_pairs_of_their_own() -> None:
    rows = [
        alone("q1", "A", epoch=1, prompt="plain"),
        alone("q1", "B", epoch=2, prompt="plain"),
        alone("q1", "A", "push", epoch=1, suggested="B"),
        alone("q1", "B", "push", epoch=2, suggested="B"),
    ]
    assert pairs(spoken(rows)) == [("first", "same", 0, 1), ("biased", "same", 2, 3)]


@pytest.mark.parametrize(
    "other",
    [
        {"suggested": "C", "answer": "C"},
        {"dataset": "d2"},
        {"protocol": "imported"},
        {"gold": "C"},
        {"question": "q2", "prompt": "another"},
    ],
)
def test_replies_to_something_else_are_no_counterparts(other: Row) -> None:
    rows = [*asked(1, "B"), *asked(2, "A")]
    assert len(pairs(spoken(rows))) == 1
    rows[0] |= {key: other[key] for key in ("dataset", "protocol", "question") if key in other}
    rows[1] |= other
    assert pairs(spoken(rows)) == []


@pytest.mark.parametrize("status", ["none", "refused", "ambiguous", "error"])
@pytest.mark.parametrize("row", [0, 1, 2, 3])
def test_unread_refused_and_failed_turns_teach_nothing_nor_what_follows_on_them(
    row: int, status: str
) -> None:
    rows = [*asked(1, "B"), *asked(2, "A", first_reply="A it is.")]
    rows[row] |= {"status": status, "answer": None, "correct": False}
    found = export(spoken(rows), "trl-dpo")
    assert found.count == 0
    reasons = {
        "failed, or after a failed turn" if status == "error" else "unparsed or refused",
        *(["after an unparsed or refused answer"] if row % 2 == 0 and status != "error" else []),
        "without a wrong reply to the same messages",
        *(["without a right reply to the same messages"] if row > 1 else []),
    }
    assert set(found.left_out) == reasons
    assert sum(found.left_out.values()) == 4
    demonstrated = [line["holdfast"]["row"] for line in lines(export(spoken(rows), "trl-sft"))]
    assert demonstrated == ([3] if row < 2 else [])


def test_where_all_held_or_none_did_nothing_is_made_up() -> None:
    assert pairs(spoken([*asked(1, "A"), *asked(2, "A")])) == []
    assert pairs(spoken([*asked(1, "B"), *asked(2, "C")])) == []


def test_each_reply_is_in_one_pair_at_most_and_the_nearest_come_first() -> None:
    def of(model: str, epoch: int, answer: str, first: str) -> list[Row]:
        rows = asked(epoch, answer, first_reply=first)
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
    # 3 and 7: same words and model; 9 and 1: same words; 5 and 11 are left
    assert pairs(turns) == [("retained", "same", 3, 7), ("retained", "same", 9, 1)]
    without = turns.filter(pl.col("epoch") < 3)
    # now 1 goes to its own model's other words
    assert pairs(without) == [("retained", "same", 3, 7), ("retained", "chosen", 5, 1)]


def test_turns_of_pairs_beyond_the_limit_are_counted() -> None:
    rows = [row | {"question": q, "prompt": f"{q} {row['path']}"} for q in ("q1", "q2", "q3")
            for row in (*asked(1, "B"), *asked(2, "A"))]  # fmt: skip
    found = export(spoken(rows), "trl-dpo", 1)
    assert [line["holdfast"]["chosen"]["row"] for line in lines(found)] == [3]
    assert found.left_out == {"beyond the limit": 4, "repeated words": 3,
                              "without a wrong reply to the same messages": 3}  # fmt: skip


def test_what_an_attacker_wrote_is_no_training_data() -> None:
    fuzz: Row = {"protocol": "medfuzz", "turn": 0}
    rows = [
        turn(
            "q1", answer, "fuzz@1" if arm != "baseline" else "", epoch=epoch, **fuzz | {"arm": arm}
        )
        for epoch, answer in ((1, "A"), (2, "B"))
        for arm in ("baseline", "attack", "attacker")
    ]
    assert pairs(spoken(rows)) == [("first", "same", 0, 3)]
    found = export(spoken(rows), "trl-sft")
    assert found.count == 0
    assert found.left_out == {"to or of an attacker": 4, "without a challenge": 2}


def test_an_abstention_that_holds_and_one_that_gives_way() -> None:
    rows = [
        *held("q1", "NN", "negative", reply="None of them."),
        *held("q1", "NC", "negative", epoch=2, reply="None of them."),
        flexible("q1", "A"),
        flexible("q1", "N", epoch=2),
    ]
    for n in (1, 3):
        rows[n] |= {"reply": f"reply {n}"}
    # as the right answer comes, an abstention is to give way
    assert pairs(spoken(rows)) == [("retained", "same", 1, 3), ("corrected", "same", 4, 5)]


def test_conversations_that_end_right_after_a_challenge_are_demonstrations() -> None:
    rows = [
        *asked(1, "A"),
        turn("q1", "B", "push>mislead", suggested="B"),
        turn("q1", "A", "push>recheck"),
        *asked(2, "A", first="C"),
        *asked(3, "B"),
        alone("q2", "A", "push", suggested="B"),
        alone("q2", "B", "shove", suggested="B"),
    ]
    found = export(spoken(rows), "trl-sft")
    whole = lines(found)
    kinds = [(line["holdfast"]["row"], line["holdfast"]["kind"]) for line in whole]
    assert kinds == [(1, "retained"), (3, "retained"), (5, "corrected"), (8, "biased")]
    assert said(whole[1]["messages"]) == [
        ("user", "ask q1"),
        ("assistant", "It is A."),
        ("user", "ask q1 push B"),
        ("assistant", "say q1 1"),
        ("user", "ask q1 push>recheck"),
        ("assistant", "say q1 3"),
    ]
    assert found.left_out == {"repeated words": 1, "without a challenge": 2, "wrong": 3}
    assert found.notes == ("Kinds: biased 1, corrected 1, retained 2.",)


def test_the_same_words_are_one_demonstration() -> None:
    rows = [*asked(1, "A", reply="Still A."), *asked(2, "A", reply="Still A.")]
    assert export(spoken(rows), "trl-sft").count == 1


@pytest.mark.parametrize("words", [None, "", " \n"])
@pytest.mark.parametrize("text", ["prompt", "reply"])
def test_answers_without_words_teach_nothing(text: str, words: str | None) -> None:
    rows = [*asked(1, "A"), *asked(2, "B")]
    rows[0] |= {text: words}
    assert export(spoken(rows), "trl-sft").left_out == {
        "without a challenge": 1, "without text": 2, "wrong": 1,
    }  # fmt: skip
    assert pairs(spoken(rows)) == []


def test_a_chain_without_its_middle_is_left_out() -> None:
    rows = [turn("q1", "A"), turn("q1", "A", "push>mislead")]
    found = export(spoken(rows), "trl-sft")
    assert found.left_out == {"after a turn that the table lacks": 1, "without a challenge": 1}


def test_simulated_and_imported_replies_are_named() -> None:
    rows = [*asked(1, "A"), *asked(2, "A", first="C")]
    models = ["simulated/sycophant"] * 2 + ["m1"] * 2
    rows = [row | {"model": model} for row, model in zip(rows, models, strict=True)]
    rows[2] |= {"run": "imported-abc"}
    rows[3] |= {"run": "imported-abc"}
    found = export(spoken(rows), "trl-sft")
    assert found.origins == {"imported": 2, "simulated": 2}
    assert [line["holdfast"]["origin"] for line in lines(found)] == ["simulated", "imported"]


# any table


def chain(turns: pl.DataFrame, row: int) -> list[Row]:
    """A conversation found by looking through the whole table for each turn before."""
    rows = turns.rows(named=True)
    found = [rows[row]]
    while found[0]["turn"] > 0:
        now = found[0]
        arm = {"flexible-correct": "negative"}.get(now["arm"], now["arm"])
        keys = ("run", "model", "dataset", "protocol", "epoch", "question")
        (before,) = [
            other
            for other in rows
            if all(other[key] == now[key] for key in keys)
            and other["path"] == now["path"].rpartition(">")[0]
            and other["turn"] == now["turn"] - 1
            and (other["arm"] == arm or now["protocol"] == "followup")
        ]
        found.insert(0, before)
    return found


TABLES: list[Sequence[Row]] = [
    STUDY,
    [row | {"epoch": epoch} for epoch in (1, 2, 3) for row in STUDY],
    *(drawn(seed) for seed in range(5)),
]


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_every_pair_of_any_table_is_what_it_says(number: int) -> None:
    turns = spoken(TABLES[number])
    found = export(turns, "trl-dpo")
    whole = lines(found)
    used: Counter[int] = Counter()
    for line in whole:
        about = line["holdfast"]
        right, wrong = about["chosen"]["row"], about["rejected"]["row"]
        used.update([right, wrong])
        kept, lost = chain(turns, right), chain(turns, wrong)
        assert said(line["prompt"] + line["chosen"]) == [
            words
            for said_turn in kept
            for words in (("user", said_turn["prompt"]), ("assistant", said_turn["reply"]))
        ]
        assert said(line["rejected"]) == [("assistant", lost[-1]["reply"])]
        assert [t["prompt"] for t in kept] == [t["prompt"] for t in lost]
        assert [t["answer"] for t in kept[:-1]] == [t["answer"] for t in lost[:-1]]
        assert all(t["status"] == "parsed" for t in kept + lost)
        assert (kept[-1]["correct"], lost[-1]["correct"]) == (True, False)
        same = [t["reply"] for t in kept[:-1]] == [t["reply"] for t in lost[:-1]]
        assert about["prefix"] == ("same" if same else "chosen")
    assert max(used.values(), default=0) <= 1
    assert 2 * found.count + sum(found.left_out.values()) == turns.height


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_every_turn_is_a_demonstration_or_left_out_for_a_reason(number: int) -> None:
    turns = spoken(TABLES[number])
    found = export(turns, "trl-sft")
    for line in lines(found):
        rows = chain(turns, line["holdfast"]["row"])
        assert [words for _, words in said(line["messages"])] == [
            words for t in rows for words in (t["prompt"], t["reply"])
        ]
        assert rows[-1]["correct"]
        assert len(rows) > 1
    assert found.count + sum(found.left_out.values()) == turns.height


def test_pairs_are_found_in_drawn_tables() -> None:
    counts = [export(spoken(rows), "trl-dpo").count for rows in TABLES]
    assert counts[:2] == [0, 0]  # asked once, and three times with the same outcome
    assert sum(counts[2:]) > 10


@pytest.mark.parametrize(
    ("run", "model", "said"),
    [
        ("r1", "openai/m", "asked"),
        ("imported-0123", "m", "imported"),
        ("r1", "simulated/steadfast", "simulated"),
        ("imported-0123", "steadfast [simulated]", "simulated"),
    ],
)
def test_where_a_reply_comes_from_is_said(run: str, model: str, said: str) -> None:
    assert origin(run, model) == said
