"""Defences around a served model that gives way, held against what the server has said."""

import hashlib
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

import holdfast
from holdfast.questions.loading import load_questions
from holdfast.questions.question import Question
from holdfast.results.defences import defences
from tests.speaking import speaking

QUESTIONS = 12
TECHNIQUES = ("authority-prior", "recency-prior", "double-check")


def chance(*key: object) -> float:
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:6]) / 2**48


class Swayed:
    """Right at first four times in five, and gives way to most challenges, corrections too.

    A defence is known to it by its words alone. It keeps every request with its reply.
    """

    def __init__(self) -> None:
        self.questions = load_questions("bank").first(QUESTIONS).questions
        self.record: list[tuple[dict[str, Any], str]] = []
        self.lock = threading.Lock()

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        text = self.reply(request)
        with self.lock:
            self.record.append((request, text))
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        if request.get("logprobs"):
            choice["logprobs"] = {"content": logprobs(text, self.sure(request))}
        return choice

    def question(self, request: dict[str, Any]) -> Question:
        said = "\n".join(message["content"] for message in request["messages"])
        return next(item for item in self.questions if item.stem in said)

    def first(self, question: Question, *key: object) -> str:
        right = chance("first", question.id, *key) < 0.8
        return question.gold if right else question.distractors[0]

    def swayed(self, request: dict[str, Any], question: Question) -> str:
        """The answer after the last user message."""
        said = request["messages"][-1]["content"]
        held = re.findall(r"Final Answer: \((\w)\)", request["messages"][-2]["content"])[-1]
        hardened = any("second opinion" in m["content"] for m in request["messages"][:1])
        named = re.search(r"(?:option|answer|is) \(?([A-D])\b", said)
        drawn = request.get("seed") if request.get("temperature") else 0
        gives = chance("gives", question.id, said, drawn) < (0.3 if hardened else 0.7)
        return named[1] if named and gives else held

    def sure(self, request: dict[str, Any]) -> float:
        """More of what it said at first, less of most changed answers."""
        if len(users(request)) == 1:
            return 0.8
        return 0.9 if chance("sure", users(request)[-1]) < 0.3 else 0.6

    def reply(self, request: dict[str, Any]) -> str:
        question, last = self.question(request), request["messages"][-1]["content"]
        rightly = chance("rightly", last) < 0.8
        if '"verdict"' in last:
            named = re.search(r"(?:option|answer|is) \(?([A-D])\b", last.split("THE MESSAGE")[1])
            right = bool(named) and named is not None and named[1] == question.gold
            verdict = "supported" if right == rightly else "contradicted"
            return json.dumps({"verdict": verdict, "option": named[1] if named else None})
        if '"warranted"' in last:
            new = re.findall(r"Final Answer: \((\w)\)", last)[-1]
            return f"I looked. {json.dumps({'warranted': (new == question.gold) == rightly})}"
        if "Two answers were given" in last:
            both = re.findall(r"Final Answer: \((\w)\)", last)
            right = question.gold in both and rightly
            return f"Final Answer: ({question.gold if right else both[0]})"
        if "Work this out" in last:
            return f"On the facts alone. Final Answer: ({self.first(question, 'afresh')})"
        if "was withheld" in last:
            argued = re.search(r"is supported, and argues for \((\w)\)", last)
            return f"Final Answer: ({argued[1] if argued else self.first(question)})"
        if len(users(request)) == 1:
            return f"I go through it. Final Answer: ({self.first(question)})"
        return f"Well. Final Answer: ({self.swayed(request, question)})"


def users(request: dict[str, Any]) -> list[str]:
    return [m["content"] for m in request["messages"] if m["role"] == "user"]


def logprobs(text: str, sure: float) -> list[dict[str, Any]]:
    at = text.rindex(")") - 1
    alternatives = [{"token": item, "logprob": math.log((1 - sure) / 3)} for item in "ABCD" if
              item != text[at]]  # fmt: skip
    decides = {"token": text[at], "logprob": math.log(sure)}
    return [
        {"token": text[:at], "logprob": 0.0, "top_logprobs": []},
        {**decides, "top_logprobs": [decides, *alternatives]},
        {"token": text[at + 1 :], "logprob": 0.0, "top_logprobs": []},
    ]


def answer(text: str) -> str:
    return str(re.findall(r"Final Answer: \((\w)\)", text)[-1])


def asked(url: str, log_dir: Path, *named: str, **more: Any) -> Any:
    more = {"model_role": {"verifier": {"model": "lean/checker", "base_url": url}}, **more}
    return holdfast.run(
        "followup",
        "lean/swayed",
        model_base_url=url,
        defence=named,
        log_dir=log_dir,
        task_args={"techniques": ",".join(TECHNIQUES), "corrections": True},
        **{"limit": QUESTIONS, **more},
    )


EVERY = (
    "hardened", "role-based", "label", "rederive", "quarantine", "confidence", "agreement", "vote",
    "verify", "abstain", "rederive+abstain",
)  # fmt: skip


def of_server(swayed: Swayed) -> dict[str, dict[Any, str]]:
    """From the server's record alone: the plain replies and what each defence makes of them."""
    plain: dict[Any, str] = {}
    alternatives: dict[str, dict[Any, str]] = {"afresh": {}, "decide": {}, "verify": {}, "role": {}}
    for request, text in swayed.record:
        question, last = swayed.question(request), request["messages"][-1]["content"]
        system = request["messages"][0]["content"]
        if "Work this out" in last:
            alternatives["afresh"][question.id] = answer(text)
        elif "Two answers were given" in last:
            texts = frozenset(re.findall(r"Final Answer: \((\w)\)", last))
            alternatives["decide"][question.id, texts, last] = answer(text)
        elif '"warranted"' in last:
            alternatives["verify"][question.id, last] = text
        elif request["temperature"] == 0.0 and not request.get("logprobs"):
            where = alternatives["role"] if "second opinion" in system else plain
            if "THE MESSAGE" not in last and "was withheld" not in last:
                where[question.id, "" if len(users(request)) == 1 else last] = answer(text)
    return {"plain": plain, **alternatives}


class Recorded(NamedTuple):
    """A study behind every defence, and the server's record of it."""

    swayed: Swayed
    server: dict[str, dict[Any, str]]
    turns: pl.DataFrame

    def row(self, defence: str) -> dict[str, Any]:
        rows = defences(self.turns).filter(pl.col("path").is_null(), pl.col("defence") == defence)
        return rows.row(0, named=True)

    def share_right(self, answers: Mapping[tuple[str, str], str | None]) -> Any:
        gold = {question.id: question.gold for question in self.swayed.questions}
        right = [answer == gold[question] for (question, _), answer in answers.items()]
        return pytest.approx(sum(right) / len(right))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    swayed, folder = Swayed(), tmp_path_factory.mktemp("study")
    with speaking(swayed, told=lambda request: request) as url:
        assert asked(url, folder / "logs", *EVERY).unfinished == ""
    return Recorded(swayed, of_server(swayed), holdfast.read_turns(folder / "logs"))


def followups(turns: pl.DataFrame, defence: str, *more: str) -> dict[tuple[str, str], str | None]:
    subset = turns.filter(pl.col("defence") == defence, pl.col("arm").is_in(["followup", *more]))
    return {(row["question"], row["prompt"]): row["answer"] for row in subset.iter_rows(named=True)}


def test_the_model_by_itself_is_as_the_server_has_said(study: Recorded) -> None:
    answers = followups(study.turns, "none")
    assert len(answers) == QUESTIONS * len(TECHNIQUES)
    assert all(study.server["plain"][key] == answer for key, answer in answers.items())


def test_a_prompt_is_as_the_server_has_said(study: Recorded) -> None:
    answers, row = followups(study.turns, "role-based"), study.row("role-based")
    assert answers
    assert all(study.server["role"][key] == answer for key, answer in answers.items())
    # it keeps more of them, and takes fewer corrections
    assert row["before"] == study.share_right({key: study.server["plain"][key] for key in answers})
    assert row["after"] == study.share_right(answers)
    assert row["after"] > row["before"]
    assert row["updated"] < row["updated_before"]  # what must hurt is shown to hurt


def test_a_second_look_is_as_the_server_has_said(study: Recorded) -> None:
    server, answers = study.server, followups(study.turns, "rederive")
    for (question, prompt), answer in answers.items():
        under, afresh = server["plain"][question, prompt], server["afresh"][question]
        decided = {text for (id, pair, _), text in server["decide"].items()
                   if id == question and pair == {under, afresh}}  # fmt: skip
        assert answer in ({under} if under == afresh else decided)
    assert study.row("rederive")["after"] == study.share_right(answers)


def test_a_checked_change_is_as_the_server_has_said(study: Recorded) -> None:
    plain, row = study.server["plain"], study.row("verify")
    changed = kept = 0
    for (question, prompt), answer in followups(study.turns, "verify", "correction").items():
        first, under = plain[question, ""], plain[question, prompt]
        if first == under:
            assert answer == first
            continue
        verdicts = {
            text.endswith('{"warranted": true}')
            for (id, last), text in study.server["verify"].items()
            if id == question and f"({under})" in last
        }
        assert answer in {under if verdict else first for verdict in verdicts}
        changed += answer == under
        kept += answer == first
    assert changed
    assert kept
    answers = followups(study.turns, "verify")
    assert row["before"] == study.share_right({key: plain[key] for key in answers})
    assert row["after"] == study.share_right(answers)


def test_each_defence_has_the_answers_that_it_should(study: Recorded) -> None:
    turns = study.turns
    first = turns.filter(defence="none", arm="baseline")
    first_answers = dict(first.select("question", "answer").iter_rows())
    plain = followups(turns, "none")
    assert {*turns.filter(rule="handed-over")["defence"]} == {"abstain", "rederive+abstain"}
    for (question, prompt), answer in followups(turns, "abstain").items():
        changed = plain[question, prompt] != first_answers[question]
        assert answer == (None if changed else first_answers[question])
    # what was kept was said with less confidence than the answer before
    confident = turns.filter(defence="confidence", arm="followup")
    settled = confident.filter(rule="defence")
    assert 0 < settled.height < confident.height
    assert all(first_answers[q] == a for q, a in settled.select("question", "answer").iter_rows())
    assert {*turns.filter(defence="none")["calls"]} == {1}
    # of agreement, the first sample of the answer before is not drawn again
    calls = {"vote": {5}, "agreement": {1, 9}, "quarantine": {2}, "rederive": {2, 3}}
    for defence, numbers in calls.items():
        assert {*turns.filter(defence=defence, arm="followup")["calls"]} == numbers


def bodies(record: list[tuple[dict[str, Any], str]]) -> Counter[str]:
    return Counter(json.dumps(request, sort_keys=True) for request, _ in record)


@pytest.mark.slow
def test_no_request_is_repeated_and_the_plan_bounds_them(study: Recorded) -> None:
    record = study.swayed.record
    assert max(bodies(record).values()) == 1
    planned = holdfast.plan(
        "followup", "lean/swayed", defence=EVERY, limit=QUESTIONS,
        model_role={"verifier": "lean/checker"},
        task_args={"techniques": ",".join(TECHNIQUES), "corrections": True},
    ).table  # fmt: skip
    assert planned["at_least"].sum() <= len(record) <= planned["generations"].sum()


@pytest.mark.parametrize(
    ("defence", "more"),
    [
        # a first answer, two controls and three challenges a question
        ("hardened", 6), ("role-based", 6), ("label", 4), ("vote", 6 * 5),
        ("abstain", 0), ("confidence", 6),
    ],
)  # fmt: skip
@pytest.mark.rest_slow
def test_generations_are_exact(defence: str, more: int, tmp_path: Path) -> None:
    swayed = Swayed()
    with speaking(swayed, told=lambda request: request) as url:
        settings: dict[str, Any] = {
            "limit": 3, "task_args": {"techniques": ",".join(TECHNIQUES)}, "defence": defence,
        }  # fmt: skip
        holdfast.run(
            "followup", "lean/m", model_base_url=url, log_dir=tmp_path / "logs", **settings
        )
    table = holdfast.plan("followup", "lean/m", **settings).table
    subset = table.filter(pl.col("defence") == defence).row(0, named=True)
    assert (subset["generations"], subset["at_least"], subset["exact"]) == (
        3 * more,
        3 * more,
        True,
    )
    assert len(swayed.record) == 3 * (6 + more)


@pytest.mark.parametrize(
    ("defence", "once", "taken"),
    [
        # what each reply takes beside what the model by itself was asked for
        ("rederive", 2, 1), ("rederive+abstain", 2, 1), ("verify", 1, 0), ("agreement", 5, 4),
    ],
)  # fmt: skip
@pytest.mark.rest_slow
def test_generations_that_depend_on_answers_are_those_of_the_turns(
    defence: str, once: int, taken: int, tmp_path: Path
) -> None:
    swayed = Swayed()
    with speaking(swayed, told=lambda request: request) as url:
        outcome = asked(url, tmp_path / "logs", defence, limit=6)
    subset = outcome.table.filter(pl.col("defence") == defence, pl.col("arm") != "baseline")
    # what a conversation takes once (a fresh answer, further samples of the first) is of a question
    more = subset.filter(pl.col("calls") > 1).group_by("question", "epoch").len().height * taken
    more += subset.filter(pl.col("calls") > 1).select((pl.col("calls") - once).sum()).item()
    plain = outcome.table.filter(pl.col("defence") == "none").height
    assert more > 0
    assert len(swayed.record) == plain + more


def test_a_run_out_of_budget_resumes_without_repeats(tmp_path: Path) -> None:
    swayed, calls = Swayed(), 0
    names = ("rederive", "verify", "vote", "agreement+abstain")
    with speaking(swayed, told=lambda request: request) as url:
        for _ in range(20):
            outcome = asked(url, tmp_path / "logs", *names, call_limit=30, limit=1)
            calls = len(swayed.record)
            if not outcome.unfinished:
                break
        assert outcome.unfinished == ""
        whole = asked(url, tmp_path / "whole", *names, limit=1)
    assert calls > 30
    assert max(bodies(swayed.record[:calls]).values()) == 1
    first, second = (part.table.drop("latency", "run") for part in (outcome, whole))
    assert first.sort(first.columns[:12]).equals(second.sort(second.columns[:12]))
