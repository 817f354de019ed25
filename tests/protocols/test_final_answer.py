"""Final answers asked for outside the conversation: who sees them, and what they take."""

from pathlib import Path

import polars as pl
import pytest
from inspect_ai.model import ChatMessage
from tests.resolved import followup_study
from tests.results.frames import table, turn
from tests.scripted import Scripted, put
from tests.studies import question_rows, turns_of, write_jsonl
from tests.tasks import followup, stick_or_switch

from holdfast.errors import InputError
from holdfast.files import packaged
from holdfast.protocols.installed import PROTOCOLS
from holdfast.results.final_answers import final_answers

WORDING = packaged("holdfast.protocols", "final_answer.toml")
LETTER, DECISION = WORDING["letter"], WORDING["decision"]
CHAINS = {"techniques": "double-check", "chains": "double-check>authority-prior"}


@pytest.fixture
def two(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(2))


def replies(messages: list[ChatMessage]) -> str:
    """A in every reply, but B as the final answer."""
    return "B" if messages[-1].text == LETTER else "The answer is A."


def test_the_final_answer_is_asked_outside_the_conversation_and_counted(two: str) -> None:
    plain, asked = Scripted(replies), Scripted(replies)
    before = turns_of(put(followup(questions=two, **CHAINS), plain.model))
    after = turns_of(put(followup(questions=two, **CHAINS, final_answer=True), asked.model))
    later = after.filter(pl.col("path") != "")
    assert set(later["answer_final"]) == {"B"}
    assert set(later["final_status"]) == {"parsed"}
    assert after.filter(path="")["answer_final"].null_count() == 2
    # the replies are read and measured as without it, and cost what both requests cost
    same = ["question", "path", "answer", "status", "rule", "prompt", "reply", "correct"]
    assert after.select(same).equals(before.select(same))
    assert set(later["calls"]) == {2}
    assert set(later["output_tokens"]) == {10}
    # no later turn sees it
    conversations = [[message.text for message in messages] for messages in asked.asked]
    assert all(LETTER not in texts[:-1] for texts in conversations)
    n_final = sum(texts[-1] == LETTER for texts in conversations)
    assert n_final == later.height
    assert len(asked.asked) == len(plain.asked) + n_final


def test_what_is_measured_is_a_setting(two: str) -> None:
    settings = {**CHAINS, "final_answer": True, "measured": "final-answer"}
    turns = turns_of(put(followup(questions=two, **settings), Scripted(replies).model))
    later = turns.filter(pl.col("path") != "")
    assert set(later.select("answer", "rule", "answer_rules").rows()) == {
        ("B", "final-answer-turn", "A")
    }
    assert turns.filter(path="")["answer"].to_list() == ["A", "A"]
    assert set(turns["final_counts"]) == {True}
    with pytest.raises(InputError, match="final answers are not asked for"):
        followup(questions=two, measured="final-answer")


@pytest.mark.parametrize("name", ["followup", "single-turn", "stick-or-switch"])
def test_the_plan_counts_the_requests(two: str, name: str) -> None:
    protocol = PROTOCOLS[name]
    plain, asked = (
        protocol.study(questions=two, final_answer=value).plan().counts["tested"]
        for value in (False, True)
    )
    assert asked.most_calls > plain.most_calls
    paths = [path for _, path in protocol.study(questions=two).plan().paths]
    if name != "stick-or-switch":  # there the first turn makes an offer too
        assert asked.most_calls - plain.most_calls == 2 * sum(path != "" for path in paths)


def test_the_plan_is_what_is_asked(two: str) -> None:
    asked = Scripted(replies)
    put(followup(questions=two, **CHAINS, final_answer=True), asked.model)
    study = followup_study(questions=two, **CHAINS, final_answer=True)
    count = study.plan().counts["tested"]
    assert count.fewest_calls <= len(asked.asked) <= count.most_calls


def test_a_decision_is_asked_for_by_its_words(two: str) -> None:
    def reply(messages: list[ChatMessage]) -> str:
        if messages[-1].text == DECISION:
            return "Stick"
        is_choice = "\nA. " in messages[-1].text
        return "A" if is_choice else "I keep my original answer."

    model = Scripted(reply)
    turns = turns_of(put(stick_or_switch(questions=two, final_answer=True), model.model))
    later = turns.filter(pl.col("turn") > 0)
    assert later.height
    assert DECISION in model.prompts
    assert later["answer_final"].equals(later["answer"].alias("answer_final"))


def test_the_agreement_by_hand() -> None:
    def row(answer: str | None, final: str | None) -> dict[str, object]:
        status = "parsed" if answer else "none"
        finals = {"answer_final": final, "final_status": "parsed" if final else "none"}
        return {**turn("q", answer, "push"), "status": status, "answer_rules": answer, **finals}

    rows = [row("A", "A"), row("B", "A"), row(None, "A"), row(None, None), row("C", "C")]
    frame = table([{**fields, "question": f"q{n}"} for n, fields in enumerate(rows)])
    result = final_answers(frame).row(0, named=True)
    assert (result["n"], result["agree"], result["agreement"]) == (5, 3, 3 / 5)
    assert (result["rules_none"], result["final_none"]) == (2, 1)
    assert result["measured"] == "reply"
    assert final_answers(frame.with_columns(final_status=None)).is_empty()


def test_a_model_that_says_the_same_agrees_always(two: str) -> None:
    log = put(followup(questions=two, **CHAINS, final_answer=True), "simulated/sycophant")
    result = final_answers(turns_of(log))
    assert result.height > 1
    assert set(result["agreement"]) == {1.0}
