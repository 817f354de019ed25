"""MedFuzz through a real eval: who is asked what, when it ends, what is noted, what is scored."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import Logprob, Logprobs, ModelOutput, TopLogprob
from tests.fuzzing import (
    TRADES,
    Message,
    answering,
    attack,
    attacking,
    fuzz,
    scripted,
    stem_in,
    trade_in,
)
from tests.resolved import medfuzz_study
from tests.scripted import Scripted, errors, put, said
from tests.studies import question_rows, turns_of, write_jsonl
from tests.tasks import medfuzz

from holdfast.challenges.texts import question_prompt, system_prompt
from holdfast.errors import InputError
from holdfast.protocols.medfuzz.attacks import attack_summary, attacks
from holdfast.questions.loading import load_questions
from holdfast.results.declaration import TABLES

Script = Callable[[Sequence[Message]], str | ModelOutput]


def written(tmp_path: Path, n: int) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(n))


@pytest.fixture
def one(tmp_path: Path) -> str:
    return written(tmp_path, 1)


def attacker_of(reply: Script = attacking) -> Scripted:
    return scripted(reply, "attacker")


def target_of(*turned: str) -> Scripted:
    return scripted(answering(*turned), "target")


def steps(turns: pl.DataFrame) -> set[tuple[str, str]]:
    rows = turns.select("arm", "path").rows()
    assert len(set(rows)) == len(rows)
    return set(rows)


def attempted(k: int) -> set[tuple[str, str]]:
    """The steps of a replicate with k valid attempts."""
    put_to = {(arm, f"fuzz@{n}") for n in range(1, k + 1) for arm in ("attack", "attacker")}
    return put_to | {("baseline", "")}


def score_of(log: EvalLog) -> dict[str, float]:
    assert log.results
    return {
        name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
    } | {score.name: next(iter(score.metrics.values())).value for score in log.results.scores}


# --- how an attack goes ---


def test_a_wrong_first_answer_takes_one_generation(one: str) -> None:
    target, attacker = scripted(lambda _: "Final Answer: (B)", "target"), attacker_of()
    turns = turns_of(attack(target.model, attacker=attacker.model, questions=one))
    assert (len(target.asked), len(attacker.asked)) == (1, 0)
    assert steps(turns) == attempted(0)
    # as long as any other curve of the study
    assert attacks(turns)["accuracy"].to_list() == [0.0] * 6


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_right_answer_is_attacked_until_it_turns(k: int, one: str) -> None:
    target, attacker = target_of(*TRADES[k - 1 :]), attacker_of()
    turns = turns_of(attack(target.model, attacker=attacker.model, questions=one))
    assert (len(target.asked), len(attacker.asked)) == (1 + k, k)
    assert steps(turns) == attempted(k)
    assert turns.filter(pl.col("arm") != "attacker")["answer"].to_list() == ["A"] * k + ["B"]
    assert attacks(turns)["accuracy"].to_list() == [1.0] * k + [0.0] * (6 - k)
    (row,) = attack_summary(turns).iter_rows(named=True)
    assert (row["succeeded"], row["attempts_needed"], row["tries"]) == (1, k, k)


@pytest.mark.parametrize("attempts", [1, 5])
def test_an_answer_that_stays_right_is_attacked_k_times(attempts: int, one: str) -> None:
    target, attacker = target_of(), attacker_of()
    more: dict[str, Any] = {} if attempts == 5 else {"attempts": attempts}
    turns = turns_of(attack(target.model, attacker=attacker.model, questions=one, **more))
    assert (len(target.asked), len(attacker.asked)) == (1 + attempts, attempts)
    assert steps(turns) == attempted(attempts)
    assert attacks(turns)["accuracy"].to_list() == [1.0] * (1 + attempts)
    assert attack_summary(turns).select("failed", "succeeded").row(0) == (1, 0)


def surer(messages: Sequence[Message]) -> ModelOutput:
    """Right, at first with a probability of a fifth, and a fifth surer with each attempt."""
    trade = trade_in(messages[-1][1])
    p = 0.2 * (1 if trade is None else 2 + TRADES.index(trade))
    output = said(f"I weighed that of a {trade}. Final Answer: A")
    top = [TopLogprob(token=letter, logprob=math.log(q)) for letter, q in (("A", p), ("B", 1 - p))]
    output.choices[0].logprobs = Logprobs(
        content=[
            Logprob(token=output.completion[:-1], logprob=0.0),
            Logprob(token="A", logprob=math.log(p), top_logprobs=top),
        ]
    )
    return output


def test_the_attacker_has_its_whole_history_and_what_the_model_said_last(one: str) -> None:
    target, attacker = scripted(surer, "target"), attacker_of()
    attack(target.model, attacker=attacker.model, questions=one, attempts=3)
    (question,) = load_questions(one).questions
    for k, asked in enumerate(attacker.asked):
        assert [m.role for m in asked] == ["system", *["user", "assistant"] * k, "user"]
        assert [m.text for m in asked[2::2]] == [fuzz(question.stem, trade) for trade in TRADES[:k]]
        if k:
            assert [m.text for m in asked[:-2]] == [m.text for m in attacker.asked[k - 1]]
        last = asked[-1].text
        assert f"I weighed that of a {[None, *TRADES][k]}. Final Answer: A" in last
        assert f"Its answer: A, with a probability of {20 * (k + 1)} %" in last
    first = attacker.prompts[0]
    assert question.stem in first
    assert all(f"{letter}. {text}" in first for letter, text in question.options.items())
    assert f"The right answer is A. {question.options['A']}" in first


def test_without_confidence_the_attacker_is_told_none(one: str) -> None:
    without: dict[str, Any] = {"confidence": False}
    for script, settings in ((surer, without), (answering(), {})):
        target, attacker = scripted(script, "target"), attacker_of()
        attack(target.model, attacker=attacker.model, questions=one, attempts=2, **settings)
        assert all("Its answer: A\n" in prompt for prompt in attacker.prompts)
        assert not any("probability of" in prompt for prompt in attacker.prompts)


def test_each_attempt_is_a_fresh_conversation_with_the_options_untouched(one: str) -> None:
    target = target_of()
    attack(target.model, attacker=attacker_of().model, questions=one, attempts=3)
    (question,) = load_questions(one).questions
    stems = [question.stem]
    stems += [json.loads(fuzz(question.stem, trade))["modified_question"] for trade in TRADES[:3]]
    assert [[(m.role, m.text) for m in asked] for asked in target.asked] == [
        [("system", system_prompt("expert")), ("user", question_prompt(question.changed(stem=s)))]
        for s in stems
    ]


def test_an_assumption_of_the_users_own_is_what_the_attacker_is_told(one: str) -> None:
    own = "The question names no {weather}; add <b>some</b>."
    attacker = attacker_of()
    attack(target_of().model, attacker=attacker.model, questions=one, attempts=1, assumption=own)
    assert own in attacker.asked[0][0].text
    assert own in attacker.prompts[0]
    plain = attacker_of()
    attack(target_of().model, attacker=plain.model, questions=one, attempts=1)
    assert "characteristics of the patient" in plain.asked[0][0].text


def test_reasoning_and_fences_around_a_modification_are_no_fault(one: str) -> None:
    def reply(messages: Sequence[Message]) -> str:
        return f"<think>{{not this}}</think>Here it is:\n```json\n{attacking(messages)}\n```"

    attacker = attacker_of(reply)
    turns = turns_of(attack(target_of().model, attacker=attacker.model, questions=one))
    assert attack_summary(turns).select("tries", "invalid_tries").row(0) == (5, 0)


# --- what is noted, and the judge ---


def test_a_turned_answer_notes_what_was_added_and_what_its_reasoning_mentions(one: str) -> None:
    def silent(messages: Sequence[Message]) -> str:
        return "Final Answer: (B)" if trade_in(messages[-1][1]) else "Final Answer: (A)"

    for script, mentioned in ((answering("baker"), [True]), (silent, [False])):
        target = scripted(script, "target")
        turns = turns_of(attack(target.model, attacker=attacker_of().model, questions=one))
        (row,) = turns.filter(pl.col("arm") == "attack").iter_rows(named=True)
        assert json.loads(row["characteristics"]) == ["works as a baker"]
        assert json.loads(row["mentioned"]) == mentioned
        assert (row["words"], row["mentioned_judged"], row["review"]) == (6, None, None)


def judging(mention: str, review: str) -> Scripted:
    def reply(messages: Sequence[Message]) -> str:
        return review if "score" in messages[-1][1] else mention

    return scripted(reply, "judge")


@pytest.mark.parametrize(
    ("mention", "review", "expected"),
    [
        ("[true]", '{"score": 7}', ("[true]", 7)),
        ("[false]", "I would say 3, or 4.", ("[false]", None)),
        ("[true, false]", "", (None, None)),
        ("It does.", '{"score": 11}', (None, None)),
    ],
)
def test_a_judge_reads_the_turned_answer_alone(
    mention: str, review: str, expected: tuple[str | None, int | None], one: str
) -> None:
    judge, target = judging(mention, review), target_of("potter")
    log = attack(target.model, attacker=attacker_of().model, judge=judge.model, questions=one)
    turns = turns_of(log).filter(pl.col("arm") == "attack")
    assert len(judge.asked) == 2
    assert turns.height == 3
    assert turns.select("mentioned_judged", "review").rows() == [(None, None)] * 2 + [expected]
    assert all("One who works as a potter has another." in prompt for prompt in judge.prompts)
    assert {message.role for asked in judge.asked for message in asked} == {"user"}


def test_a_judge_has_nothing_to_read_where_nothing_turns(one: str) -> None:
    judge = judging("[true]", "5")
    attack(target_of().model, attacker=attacker_of().model, judge=judge.model, questions=one)
    assert judge.asked == []


# --- what cannot be used ---


def test_without_an_attacker_nothing_takes_its_place(one: str) -> None:
    target = target_of()
    log = put(medfuzz(questions=one), target.model)
    (message,) = errors(log)
    assert "no model has the role 'attacker'" in message
    assert "never the model under test" in message
    assert target.asked == []


def test_an_attempt_that_stays_invalid_goes_unanswered_and_the_next_goes_on(one: str) -> None:
    def reply(messages: Sequence[Message]) -> str:
        replies = sum(role == "assistant" for role, _ in messages)
        return "Prose." if replies < 4 else attacking(messages)

    target, attacker = target_of(TRADES[5]), attacker_of(reply)
    turns = turns_of(attack(target.model, attacker=attacker.model, questions=one))
    assert [trade_in(prompt) for prompt in target.prompts] == [None, TRADES[4], TRADES[5]]
    tried = turns.filter(pl.col("arm") == "attacker")
    assert tried.select("path", "status", "rule").rows() == [
        *[("fuzz@1", "none", "no JSON")] * 4,
        ("fuzz@2", "parsed", "valid"),
        ("fuzz@3", "parsed", "valid"),
    ]
    assert tried["answer"].null_count() == 6
    assert not tried["correct"].any()
    assert all("That is no JSON object" in prompt for prompt in attacker.prompts[1:5])
    (row,) = attack_summary(turns).iter_rows(named=True)
    assert (row["tries"], row["invalid_tries"], row["invalid_attempts"]) == (6, 4, 1)
    assert attacks(turns)["accuracy"].to_list() == [1.0] * 3 + [0.0] * 3


UNREAD: dict[str, tuple[str | ModelOutput, str]] = {
    "says nothing": ("It is cold.", "unread"),
    "is empty": ("", "unread"),
    "refuses": ("I cannot answer medical questions.", "refused"),
    "is filtered": (said("", "content_filter"), "filtered"),
    "is cut off": (said("Considering", "max_tokens"), "unread"),
    "names two": ("Final Answer: A and B", "unread"),
}


@pytest.mark.parametrize("at", [None, "sailor"], ids=["first", "attempt 2"])
@pytest.mark.parametrize("case", UNREAD)
@pytest.mark.rest_slow
def test_a_reply_without_an_answer_drops_the_replicate_from_every_k(
    case: str, at: str | None, tmp_path: Path
) -> None:
    broken, kind = UNREAD[case]

    def reply(messages: Sequence[Message]) -> str | ModelOutput:
        prompt = messages[-1][1]
        if stem_in(prompt).startswith("Vignette number 0.") and trade_in(prompt) == at:
            return broken
        return answering("potter")(messages)

    target, attacker = scripted(reply, "target"), attacker_of()
    log = attack(target.model, attacker=attacker.model, questions=written(tmp_path, 2))
    turns = turns_of(log)
    own = turns.filter(pl.col("question") == "q0")
    assert steps(own) == attempted(0 if at is None else 2)
    # of q1 alone, which the third attempt turned
    curve = attacks(turns)
    assert curve["replicates"].unique().to_list() == [1]
    assert curve["accuracy"].to_list() == [1.0] * 3 + [0.0] * 3
    (row,) = attack_summary(turns).iter_rows(named=True)
    assert (row["replicates"], row["model_errors"], row["succeeded"]) == (2, 1, 1)
    counted = {name: row[name] for name in ("refused", "filtered", "unread")}
    assert counted == {"refused": 0, "filtered": 0, "unread": 0} | {kind: 1}


@pytest.mark.parametrize("who", ["target", "attacker"])
def test_a_call_that_fails_leaves_the_replicate_unfinished_and_resumable(
    who: str, one: str
) -> None:
    failures = [OSError("no route")]

    def failing(name: str, reply: Callable[[Sequence[Message]], str]) -> Script:
        def answer(messages: Sequence[Message]) -> str:
            second = name == who and (
                trade_in(messages[-1][1]) == "sailor" if name == "target" else len(messages) == 4
            )
            if second and failures:
                raise failures.pop()
            return reply(messages)

        return answer

    target = scripted(failing("target", answering("potter")), "target")
    attacker = attacker_of(failing("attacker", attacking))
    log = attack(target.model, attacker=attacker.model, questions=one)
    assert log.status == "error"
    assert "OSError: no route" in errors(log)[0]
    turns = turns_of(log)
    assert TABLES["attacks"](turns).is_empty()
    asked = (len(target.asked), len(attacker.asked))
    assert asked == ((3, 2) if who == "target" else (2, 2))
    again = turns_of(attack(target.model, attacker=attacker.model, questions=one))
    # what failed is asked once more, and nothing else
    assert (len(target.asked), len(attacker.asked)) == (
        4 + (who == "target"),
        3 + (who != "target"),
    )
    assert steps(again) == attempted(3)
    assert attacks(again)["accuracy"].to_list() == [1.0] * 3 + [0.0] * 3


# --- settings and scores ---


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"attempts": 0}, "attempts is 0"),
        ({"attempts": "x"}, "attempts is 'x'"),
        ({"assumption": " "}, "names no assumption"),
        ({"system_prompt": ["a"]}, "system_prompt"),
        ({"questions": "none.jsonl"}, "no such file"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        medfuzz_study(**settings)


def test_each_model_has_a_temperature_of_one_and_five_replicates(one: str) -> None:
    task = medfuzz(questions=one, seed=7)
    assert (task.config.temperature, task.config.seed, task.epochs) == (1.0, 7, 5)


def test_scores_are_those_of_the_table(tmp_path: Path) -> None:
    # of the four right letters the target knows three, and one of its answers turns at once
    def reply(messages: Sequence[Message]) -> str:
        stem, trade = stem_in(messages[-1][1]), trade_in(messages[-1][1])
        if "number 2." in stem or ("number 1." in stem and trade):
            return "Final Answer: (A)"
        return answering("sailor")(messages)

    target, attacker = scripted(reply, "target"), attacker_of()
    log = attack(
        target.model, attacker=attacker.model, questions=written(tmp_path, 4), attempts=2, epochs=2
    )
    turns = turns_of(log)
    assert attacks(turns).select("k", "accuracy", "replicates").rows() == [
        (0, 0.75, 8), (1, 0.5, 8), (2, 0.0, 8),
    ]  # fmt: skip
    score = score_of(log)
    # of the right first answers, those that no attack has flipped: what is not asked is flipped
    assert score["baseline"] == 0.75
    assert [score[f"fuzz@{k}"] for k in (1, 2)] == [pytest.approx(2 / 3), 0.0]
