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

pytestmark = pytest.mark.slow

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
        text = "\n".join(message["content"] for message in request["messages"])
        return next(item for item in self.questions if item.stem in text)

    def first(self, question: Question, *key: object) -> str:
        right = chance("first", question.id, *key) < 0.8
        return question.gold if right else question.distractors[0]

    def swayed(self, request: dict[str, Any], question: Question) -> str:
        """The answer after the last user message."""
        push = request["messages"][-1]["content"]
        previous = re.findall(r"Final Answer: \((\w)\)", request["messages"][-2]["content"])[-1]
        has_system_prompt = any("second opinion" in m["content"] for m in request["messages"][:1])
        suggestion = re.search(r"(?:option|answer|is) \(?([A-D])\b", push)
        sample_seed = request.get("seed") if request.get("temperature") else 0
        gives = chance("gives", question.id, push, sample_seed) < (
            0.3 if has_system_prompt else 0.7
        )
        return suggestion[1] if suggestion and gives else previous

    def sure(self, request: dict[str, Any]) -> float:
        """More of what it said at first, less of most changed answers."""
        if len(users(request)) == 1:
            return 0.8
        return 0.9 if chance("sure", users(request)[-1]) < 0.3 else 0.6

    def reply(self, request: dict[str, Any]) -> str:
        question, last = self.question(request), request["messages"][-1]["content"]
        rightly = chance("rightly", last) < 0.8
        if '"verdict"' in last:
            suggestion = re.search(
                r"(?:option|answer|is) \(?([A-D])\b", last.split("THE MESSAGE")[1]
            )
            right = bool(suggestion) and suggestion is not None and suggestion[1] == question.gold
            verdict = "supported" if right == rightly else "contradicted"
            return json.dumps({"verdict": verdict, "option": suggestion[1] if suggestion else None})
        if '"warranted"' in last:
            new = re.findall(r"Final Answer: \((\w)\)", last)[-1]
            return f"I looked. {json.dumps({'warranted': (new == question.gold) == rightly})}"
        if "Two answers were given" in last:
            answers = re.findall(r"Final Answer: \((\w)\)", last)
            right = question.gold in answers and rightly
            return f"Final Answer: ({question.gold if right else answers[0]})"
        if "Work this out" in last:
            return f"On the facts alone. Final Answer: ({self.first(question, 'afresh')})"
        if "was withheld" in last:
            argument = re.search(r"is supported, and argues for \((\w)\)", last)
            return f"Final Answer: ({argument[1] if argument else self.first(question)})"
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


def run(url: str, log_dir: Path, *names: str, **more: Any) -> Any:
    more = {"model_role": {"verifier": {"model": "lean/checker", "base_url": url}}, **more}
    return holdfast.run(
        "followup",
        "lean/swayed",
        model_base_url=url,
        defence=names,
        log_dir=log_dir,
        task_args={"techniques": ",".join(TECHNIQUES), "corrections": True},
        **{"limit": QUESTIONS, **more},
    )


DEFENCES = (
    "hardened", "role-based", "label", "rederive", "quarantine", "confidence", "agreement", "vote",
    "verify", "abstain", "rederive+abstain",
)  # fmt: skip


def of_server(model: Swayed) -> dict[str, dict[Any, str]]:
    """From the server's record alone: the plain replies and what each defence makes of them."""
    plain: dict[Any, str] = {}
    alternatives: dict[str, dict[Any, str]] = {"afresh": {}, "decide": {}, "verify": {}, "role": {}}
    for request, text in model.record:
        question, last = model.question(request), request["messages"][-1]["content"]
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

    model: Swayed
    server: dict[str, dict[Any, str]]
    turns: pl.DataFrame

    def row(self, defence: str) -> dict[str, Any]:
        rows = defences(self.turns).filter(pl.col("path").is_null(), pl.col("defence") == defence)
        return rows.row(0, named=True)

    def share_right(self, answers: Mapping[tuple[str, str], str | None]) -> Any:
        gold = {question.id: question.gold for question in self.model.questions}
        right = [answer == gold[question] for (question, _), answer in answers.items()]
        return pytest.approx(sum(right) / len(right))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    model, folder = Swayed(), tmp_path_factory.mktemp("study")
    with speaking(model, excerpt=lambda request: request) as url:
        assert run(url, folder / "logs", *DEFENCES).unfinished == ""
    return Recorded(model, of_server(model), holdfast.read_turns(folder / "logs"))


def followups(turns: pl.DataFrame, defence: str, *more: str) -> dict[tuple[str, str], str | None]:
    subset = turns.filter(pl.col("defence") == defence, pl.col("arm").is_in(["followup", *more]))
    return {(row["question"], row["prompt"]): row["answer"] for row in subset.iter_rows(named=True)}


def test_undefended_answers_match_the_server(study: Recorded) -> None:
    answers = followups(study.turns, "none")
    assert len(answers) == QUESTIONS * len(TECHNIQUES)
    assert all(study.server["plain"][key] == answer for key, answer in answers.items())


def test_answers_behind_a_prompt_match_the_server(study: Recorded) -> None:
    answers, row = followups(study.turns, "role-based"), study.row("role-based")
    assert answers
    assert all(study.server["role"][key] == answer for key, answer in answers.items())
    # it keeps more of them, and takes fewer corrections
    assert row["before"] == study.share_right({key: study.server["plain"][key] for key in answers})
    assert row["after"] == study.share_right(answers)
    assert row["after"] > row["before"]
    assert row["updated"] < row["updated_before"]  # what must hurt is shown to hurt


def test_second_looks_match_the_server(study: Recorded) -> None:
    server, answers = study.server, followups(study.turns, "rederive")
    for (question, prompt), answer in answers.items():
        under, afresh = server["plain"][question, prompt], server["afresh"][question]
        decisions = {text for (id, pair, _), text in server["decide"].items()
                     if id == question and pair == {under, afresh}}  # fmt: skip
        assert answer in ({under} if under == afresh else decisions)
    assert study.row("rederive")["after"] == study.share_right(answers)


def test_checked_changes_match_the_server(study: Recorded) -> None:
    plain, row = study.server["plain"], study.row("verify")
    changes = retained = 0
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
        changes += answer == under
        retained += answer == first
    assert changes
    assert retained
    answers = followups(study.turns, "verify")
    assert row["before"] == study.share_right({key: plain[key] for key in answers})
    assert row["after"] == study.share_right(answers)


def test_each_defence_gives_the_answers_it_should(study: Recorded) -> None:
    turns = study.turns
    first = turns.filter(defence="none", arm="baseline")
    first_answers = dict(first.select("question", "answer").iter_rows())
    plain = followups(turns, "none")
    assert {*turns.filter(rule="handed-over")["defence"]} == {"abstain", "rederive+abstain"}
    for (question, prompt), answer in followups(turns, "abstain").items():
        changes = plain[question, prompt] != first_answers[question]
        assert answer == (None if changes else first_answers[question])
    # what was kept was said with less confidence than the answer before
    confident = turns.filter(defence="confidence", arm="followup")
    reversals = confident.filter(rule="defence")
    assert 0 < reversals.height < confident.height
    assert all(first_answers[q] == a for q, a in reversals.select("question", "answer").iter_rows())
    assert {*turns.filter(defence="none")["calls"]} == {1}
    # of agreement, the first sample of the answer before is not drawn again
    calls = {"vote": {5}, "agreement": {1, 9}, "quarantine": {2}, "rederive": {2, 3}}
    for defence, numbers in calls.items():
        assert {*turns.filter(defence=defence, arm="followup")["calls"]} == numbers


def bodies(record: list[tuple[dict[str, Any], str]]) -> Counter[str]:
    return Counter(json.dumps(request, sort_keys=True) for request, _ in record)


def test_requests_are_unique_and_within_the_plan(study: Recorded) -> None:
    record = study.model.record
    assert max(bodies(record).values()) == 1
    plan = holdfast.plan(
        "followup", "lean/swayed", defence=DEFENCES, limit=QUESTIONS,
        model_role={"verifier": "lean/checker"},
        task_args={"techniques": ",".join(TECHNIQUES), "corrections": True},
    ).table  # fmt: skip
    assert plan["at_least"].sum() <= len(record) <= plan["generations"].sum()


@pytest.mark.parametrize(
    ("defence", "more"),
    [
        # a first answer, two controls and three challenges a question
        ("hardened", 6), ("role-based", 6), ("label", 4), ("vote", 6 * 5),
        ("abstain", 0), ("confidence", 6),
    ],
)  # fmt: skip
def test_the_plan_is_exact(defence: str, more: int, tmp_path: Path) -> None:
    model = Swayed()
    with speaking(model, excerpt=lambda request: request) as url:
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
    assert len(model.record) == 3 * (6 + more)


@pytest.mark.parametrize(
    ("defence", "once", "once_per_question"),
    [
        # what each reply takes beside what the model by itself was asked for
        ("rederive", 2, 1), ("rederive+abstain", 2, 1), ("verify", 1, 0), ("agreement", 5, 4),
    ],
)  # fmt: skip
def test_answer_dependent_generations_match_the_turns(
    defence: str, once: int, once_per_question: int, tmp_path: Path
) -> None:
    model = Swayed()
    with speaking(model, excerpt=lambda request: request) as url:
        outcome = run(url, tmp_path / "logs", defence, limit=6)
    subset = outcome.table.filter(pl.col("defence") == defence, pl.col("arm") != "baseline")
    # what a conversation takes once (a fresh answer, further samples of the first) is of a question
    more = (
        subset.filter(pl.col("calls") > 1).group_by("question", "epoch").len().height
        * once_per_question
    )
    more += subset.filter(pl.col("calls") > 1).select((pl.col("calls") - once).sum()).item()
    plain = outcome.table.filter(pl.col("defence") == "none").height
    assert more > 0
    assert len(model.record) == plain + more


def test_a_run_out_of_budget_resumes_without_repeats(tmp_path: Path) -> None:
    model, calls = Swayed(), 0
    names = ("rederive", "verify", "vote", "agreement+abstain")
    with speaking(model, excerpt=lambda request: request) as url:
        for _ in range(20):
            outcome = run(url, tmp_path / "logs", *names, call_limit=30, limit=1)
            calls = len(model.record)
            if not outcome.unfinished:
                break
        assert outcome.unfinished == ""
        whole = run(url, tmp_path / "whole", *names, limit=1)
    assert calls > 30
    assert max(bodies(model.record[:calls]).values()) == 1
    first, second = (part.table.drop("latency", "run") for part in (outcome, whole))
    assert first.sort(first.columns[:12]).equals(second.sort(second.columns[:12]))
