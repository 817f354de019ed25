"""A judge compares new wrong options with those they replace, and is not told which is which."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scripted import Scripted, prepared, put
from tests.studies import holdfast, question_rows, write_jsonl
from tests.tasks import plausibility

from holdfast.challenges.texts import Fault
from holdfast.protocols.single_turn.distractors import Distractors
from holdfast.protocols.single_turn.plausibility import (
    PlausibilityCounts,
    PlausibilitySettings,
    read_verdict,
    verdicts,
)
from holdfast.questions.loading import load_questions


def files(folder: Path, n: int, new: str) -> tuple[str, str]:
    """Questions, and a file that replaces option B of each by a text."""
    questions = write_jsonl(folder / "q.jsonl", question_rows(n))
    loaded_questions = load_questions(questions).questions
    rows = [
        {"question": q.id, "distractors": {q.distractors[0]: f"{new} {q.options[q.gold]}!"}}
        for q in loaded_questions
    ]
    return questions, write_jsonl(folder / "d.jsonl", rows)


# --- what is asked ---


def test_both_sets_are_shown_without_marking_the_new() -> None:
    result = PlausibilitySettings()
    for question in result.question_set.questions:
        prompt = result.prompt(question)
        new = result.wrong_options.replaced(question)
        for of in (question, new):
            options = "\n".join(f"- {of.options[letter]}" for letter in question.distractors)
            assert prompt.count(options) == 1
        assert f"Right answer: {question.options[question.gold]}\n" in prompt
        at = prompt.index("\n".join(f"- {new.options[x]}" for x in question.distractors))
        assert (at < prompt.index("Set 2:")) == (result.new_at(question) == "1")
        words = prompt.replace(question.stem, "").casefold()
        assert not any(word in words for word in ("new", "old ", "original", "replace"))


def test_the_seed_decides_the_order_of_the_sets() -> None:
    def draws(seed: int) -> list[str]:
        settings = PlausibilitySettings(seed=seed)
        return [settings.new_at(question) for question in settings.question_set.questions]

    assert draws(1) == draws(1) != draws(2)
    assert all(15 <= draws(seed).count("1") <= 45 for seed in (1, 2))


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"more_plausible": "1"}', "1"),
        ('{"more_plausible": 2}', "2"),
        ('```json\n{"more_plausible": "Set 2"}\n```', "2"),
        ('Set 1 is too easy. {"more_plausible": "2"}', "2"),
        ('{"more_plausible": "same"}', "same"),
        ('{"more_plausible": "neither"}', "same"),
        ("The second set.", "2"),
        ("Both are equally plausible.", "same"),
        ("Set 1", "1"),
        *((reply, None) for reply in (
            "", "I cannot say.", "Set 1 or set 2.", '{"more_plausible": null}', "12",
        )),
    ],
)  # fmt: skip
def test_a_verdict_is_read_or_a_fault(reply: str, verdict: str | None) -> None:
    reading = read_verdict(reply)
    assert reading == verdict if verdict else isinstance(reading, Fault)


# --- what comes of it ---


@pytest.mark.parametrize(
    ("side", "verdict"), [("new", "more"), ("old", "less"), ("same", "same"), ("1", None)]
)
def test_verdicts_concern_the_new_options_in_either_place(side: str, verdict: str | None) -> None:
    settings = PlausibilitySettings()
    place = {settings.prompt(q): settings.new_at(q) for q in settings.question_set.questions}

    def judge(messages: list[Any]) -> str:
        new = place[messages[-1].text]
        sides = {"new": new, "old": "21"[int(new) - 1]}
        return json.dumps({"more_plausible": sides.get(side, side)})

    n = 12 if verdict else 60
    rows = prepared(put(plausibility(), Scripted(judge).model, limit=n))
    counts = verdicts(rows, settings.wrong_options)
    assert (counts.n, counts.unread) == (n, 0)
    assert counts.below == (side == "old")
    if verdict is None:  # who always names the first set is at half
        assert 15 <= counts.more <= 45
    else:
        assert [row["verdict"] for row in rows] == [verdict] * n
        assert getattr(counts, verdict.replace("same", "ties")) == n
        assert counts.not_below[0] == (0 if side == "old" else 1)


def test_a_silent_judge_is_retried_then_counted() -> None:
    judge = Scripted(lambda messages: "Hm.")
    rows = prepared(put(plausibility(), judge.model, limit=2))
    assert [row["missing"] for row in rows] == ["no verdict"] * 2
    assert len(judge.asked) == 8
    result = verdicts(rows, PlausibilitySettings().wrong_options)
    assert (result.n, result.unread) == (0, 2)
    assert not result.below
    assert "n = 0" in result.line("x")
    assert "low" not in result.as_json()


def test_questions_without_new_options_are_not_asked(tmp_path: Path) -> None:
    questions, new = files(tmp_path, 3, "near")
    rows = Path(new).read_text().splitlines()
    Path(new).write_text(rows[0] + "\n")
    judge = Scripted(lambda messages: '{"more_plausible": "same"}')
    output = prepared(put(plausibility(questions, distractors=new), judge.model))
    assert len(output) == len(judge.asked) == 1


def test_verdicts_on_other_options_are_ignored() -> None:
    mine = Distractors("mine", {"q": {"A": "x"}})
    rows = [
        {"distractors": mine.fingerprint, "verdict": "more"},
        {"distractors": "another", "verdict": "less"},
        {"verdict": "less"},
    ]
    assert verdicts(rows, mine) == PlausibilityCounts(1, 0, 0, 0)


def test_share_and_interval_match_hand_calculation() -> None:
    result = PlausibilityCounts(more=30, ties=10, less=20, unread=3)
    share, low, high = result.not_below
    assert result.n == 60
    assert share == pytest.approx(40 / 60)
    # Wilson, z = 1.96, n = 60
    assert [low, high] == pytest.approx([0.5406, 0.7727], abs=1e-4)
    assert not result.below
    # without the ties, 5 of 16 reaches up to 0.556, 4 of 16 to 0.495
    assert not PlausibilityCounts(5, 20, 11, 0).below
    assert PlausibilityCounts(4, 20, 12, 0).below


# --- the command ---


@pytest.mark.slow
def test_the_command_fails_where_new_options_are_weaker(
    tmp_path: Path,
) -> None:
    def check(folder: str, new: str, *more: str) -> Any:
        (tmp_path / folder).mkdir(exist_ok=True)
        questions, new_options = files(tmp_path / folder, 40, new)
        place = tmp_path / folder
        return holdfast(
            "generate", "plausibility", "--distractors", new_options, "--questions", questions,
            "--model", "simulated/judge", "-o", place / "p.jsonl",
            "--log-dir", place / "logs", *more,
        )  # fmt: skip

    # the simulated judge counts words shared with the right option
    near = check("near", "near", "--json")
    assert near.returncode == 0, near.stderr
    summary = json.loads(near.stdout)["plausibility"]
    assert summary["n"] == 40
    assert summary["more"] >= 30
    assert (summary["below"], summary["low"] > 0.5) == (False, True)
    plain = check("near", "near")
    assert f"more plausible: {summary['more']}" in plain.stdout
    assert "n = 40" in plain.stdout

    questions, new_options = files(tmp_path / "near", 40, "near")
    rows = [json.loads(line) for line in Path(new_options).read_text().splitlines()]
    for row in rows:
        row["distractors"] = dict.fromkeys(row["distractors"], "zzz")
    far = holdfast(
        "generate", "plausibility", "--distractors", write_jsonl(tmp_path / "far.jsonl", rows),
        "--questions", questions, "--model", "simulated/judge", "-o", tmp_path / "p.jsonl",
        "--log-dir", tmp_path / "logs",
    )  # fmt: skip
    assert far.returncode == 2
    assert "simulated/judge judged the new options less plausible than the old" in far.stderr
    result = holdfast(
        "generate", "plausibility", "--distractors", new_options, "--model", "simulated/judge"
    )
    assert result.returncode == 2
    assert "contains no wrong options for any of the 60 questions of 'bank'" in result.stderr
