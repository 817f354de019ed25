"""``holdfast medfuzz show``: one attack as it went, for people and machines, hostile texts too."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.fuzzing import TRADES, Message, answering, attack, attacking, fuzz, scripted, trade_in
from tests.studies import holdfast, question_rows, turns_of, write_jsonl

from holdfast.errors import InputError
from holdfast.protocols.medfuzz.attack_log import attack_story, attack_view, marked
from holdfast.protocols.medfuzz.significance import permutation
from holdfast.results import turns_table

HOSTILE = "\x1b[31mred\x1b[0m [bold]{letter}[/bold] <b>& \x9b2J\x07 [link=x]"
"""Colours, markup of several kinds, a bell, and what erases a screen."""


def story_of(
    tmp_path: Path, target: Any = None, attacker: Any = attacking, **settings: Any
) -> dict[str, Any]:
    turns = turns_for(tmp_path, target, attacker, **settings)
    return attack_story(turns, "q0")


def turns_for(
    tmp_path: Path, target: Any = None, attacker: Any = attacking, **settings: Any
) -> pl.DataFrame:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(2))
    log = attack(
        scripted(target or answering("sailor"), "target").model,
        attacker=scripted(attacker, "attacker").model,
        questions=source,
        **settings,
    )
    return turns_of(log)


def shown(story: dict[str, Any], width: int = 200) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(attack_view(story))
    return out.getvalue()


# --- the story ---


def test_a_story_has_every_attempt_with_what_was_added(tmp_path: Path) -> None:
    story = story_of(tmp_path)
    assert (story["question"], story["gold"], story["replicate"]) == ("q0", "A", 1)
    assert (story["turned_at"], story["test"]) == (2, None)
    assert story["first"]["answer"] == "A"
    assert [attempt["number"] for attempt in story["attempts"]] == [1, 2]
    for attempt, trade, answer in zip(story["attempts"], TRADES, "AB", strict=False):
        added = "".join(text for text, is_added in attempt["pieces"] if is_added)
        assert added.strip() == f"The patient works as a {trade}."
        kept = "".join(text for text, is_added in attempt["pieces"] if not is_added)
        assert kept == story["first"]["prompt"]
        assert attempt["characteristics"] == [f"works as a {trade}"]
        assert (attempt["answer"], attempt["refused"]) == (answer, [])
        assert attempt["mentioned"] == [answer == "B"]
        assert attempt["mentioned_judged"] is None


def test_refused_tries_and_invalid_attempts_are_told_with_their_reasons(tmp_path: Path) -> None:
    def attacker(messages: Sequence[Message]) -> str:
        tried = sum(role == "assistant" for role, _ in messages)
        return ["Prose.", "", "I cannot help with that.", "More."][tried] if tried < 4 else (
            "Prose." if tried == 4 else attacking(messages)
        )  # fmt: skip

    story = story_of(tmp_path, answering(*TRADES), attacker)
    first, second = story["attempts"]
    assert first == {"number": 1, "refused": ["no JSON", "empty", "refused", "no JSON"]}
    assert second["refused"] == ["no JSON"]
    assert story["turned_at"] == 2
    text = shown(story)
    assert "Modifications that were refused: no JSON, empty, refused, no JSON" in text
    assert "No valid modification: the attempt is invalid." in text


def test_the_view_marks_what_was_added_and_says_how_it_ended(tmp_path: Path) -> None:
    text = shown(story_of(tmp_path))
    assert "Vignette number 0. [+ The patient works as a baker. +] Which finding" in text
    assert "Right answer: A. First answer: A." in text
    assert "added: works as a sailor (mentioned by rule, not judged by judge)" in text
    assert "The answer flipped at attempt 2." in text
    assert "[SIMULATED]" not in text
    held = shown(story_of(tmp_path, answering(), attempts=1))
    assert "The answer did not flip." in held


def test_a_reply_without_an_answer_is_shown_by_its_status(tmp_path: Path) -> None:
    def target(messages: Sequence[Message]) -> str:
        if trade_in(messages[-1][1]):
            return "I cannot answer medical questions."
        return answering()(messages)

    story = story_of(tmp_path, target)
    assert story["turned_at"] is None
    assert story["attempts"][0]["answer"] is None
    assert "Answer: refused" in shown(story)


def test_hostile_texts_are_shown_as_text_and_kept_in_the_data(tmp_path: Path) -> None:
    def attacker(messages: Sequence[Message]) -> str:
        stem = messages[1][1][messages[1][1].index("Vignette") :].split("\n")[0]
        sound = json.loads(fuzz(stem, "baker"))
        sound["modified_question"] += f" {HOSTILE} is said."
        sound["characteristics"] = [f"red {HOSTILE}"]
        return json.dumps(sound)

    def target(messages: Sequence[Message]) -> str:
        return f"{HOSTILE} {answering('baker')(messages)}"

    story = story_of(tmp_path, target, attacker)
    text = shown(story)
    assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in text)
    # replies, the question and the characteristic; markup is neither obeyed nor swallowed
    assert text.count("[bold]{letter}[/bold] <b>&") == 4
    assert text.count("[link=x]") == 4
    (attempt,) = story["attempts"]
    assert attempt["characteristics"] == [f"red {HOSTILE}"]
    assert HOSTILE in json.loads(json.dumps(story))["first"]["reply"]


def test_of_several_replicates_the_first_that_turned_is_told(tmp_path: Path) -> None:
    turns = turns_for(tmp_path, epochs=3)
    # the first replicate is made to hold
    epoch, arm = pl.col("epoch") == 1, pl.col("arm") == "attack"
    held = turns.with_columns(
        pl.when(epoch & arm).then(pl.col("gold")).otherwise("answer").alias("answer"),
        pl.when(epoch & arm).then(True).otherwise("correct").alias("correct"),
    )
    assert attack_story(turns, "q0")["replicate"] == 1
    assert attack_story(held, "q0")["replicate"] == 2
    assert attack_story(held, "q0", replicate=1)["turned_at"] is None
    assert attack_story(held, "q0", replicate=3)["replicate"] == 3


# --- what cannot be shown ---


def test_what_is_not_there_is_told_with_what_is(tmp_path: Path) -> None:
    turns = turns_for(tmp_path)
    with pytest.raises(InputError, match=r"no attack on a question 'q9'.*q0, q1"):
        attack_story(turns, "q9")
    with pytest.raises(InputError, match="no replicate 4"):
        attack_story(turns, "q0", replicate=4)
    with pytest.raises(InputError, match=r"'mockllm/other' was not attacked .*mockllm/target"):
        attack_story(turns, "q0", model="mockllm/other")
    with pytest.raises(InputError, match="has no texts"):
        attack_story(turns.with_columns(prompt=pl.lit(None, pl.String)), "q0")
    with pytest.raises(InputError, match="Run medfuzz first"):
        attack_story(turns.clear(), "q0")
    two = pl.concat([turns, turns.with_columns(model=pl.lit("mockllm/other"))])
    with pytest.raises(InputError, match="2 models were attacked"):
        attack_story(two, "q0")
    assert attack_story(two, "q0", model="mockllm/other")["model"] == "mockllm/other"
    sets = pl.concat([turns, turns.with_columns(dataset=pl.lit("more"), run=pl.lit("another"))])
    with pytest.raises(InputError, match=r"2 question sets were attacked .*q, more"):
        attack_story(sets, "q0")
    story = attack_story(sets, "q0", dataset="more")
    assert story["dataset"] == "more"
    assert len(story["attempts"]) == len(attack_story(turns, "q0")["attempts"])


# --- what was added ---


@given(
    st.lists(st.text("ab .\n{[", max_size=6), max_size=8),
    st.lists(st.text("cd .\n}]", max_size=6), max_size=8),
)
def test_pieces_put_together_are_the_later_text(before: list[str], more: list[str]) -> None:
    old = " ".join(before)
    new = " ".join(x for pair in zip(before, more, strict=False) for x in pair)
    pieces = marked(old, new)
    assert "".join(text for text, _ in pieces) == new
    assert all(not added for _, added in marked(old, old))


# --- the command ---


@pytest.fixture
def runs() -> None:
    run = holdfast(
        "run", "medfuzz", "--model", "simulated/fuzz-swayed", "--limit", "3", "--epochs", "2",
        "--model-role", "attacker=simulated/attacker", "--model-role", "judge=simulated/judge",
        "-T", "tested=2", "-T", "samples=1", "-T", "confirm=0", "-T", "controls=false",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


@pytest.mark.usefixtures("runs")
def test_the_command_tells_people_and_machines_the_same(tmp_path: Path) -> None:
    row = permutation(turns_table(["runs"])).row(0, named=True)
    id = row["question"]
    told = holdfast("medfuzz", "show", "runs", "--id", id)
    assert told.returncode == 0, told.stderr
    assert "[SIMULATED]" in told.stdout
    assert "[+ [simulated] The patient " in told.stdout
    assert f"p = {row['b']}/2 = {row['p_value']:.3f}" in " ".join(told.stdout.split())
    done = holdfast("medfuzz", "show", "runs", "--id", id, "--json")
    assert done.stderr == ""
    story = json.loads(done.stdout)
    assert story["test"]["p_value"] == row["p_value"]
    assert (story["turned_at"], story["replicate"]) == (row["k"], row["epoch"])
    assert story["attempts"][-1]["mentioned_judged"] is not None
    # the turns table alone is enough
    alone = holdfast("medfuzz", "show", "runs/turns.parquet", "--id", id, "--json")
    assert json.loads(alone.stdout) == story


@pytest.mark.usefixtures("runs")
def test_the_command_refuses_what_is_not_there_in_one_line() -> None:
    for arguments, expected in (
        (["--id", "nobody"], "no attack on a question 'nobody'"),
        (["--id", "bank-cardiovascular-1", "--replicate", "9"], "no replicate 9"),
        (["--id", "bank-cardiovascular-1", "--model", "openai/x"], "'openai/x' was not attacked"),
    ):
        done = holdfast("medfuzz", "show", "runs", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.strip().splitlines()
        assert expected in line
