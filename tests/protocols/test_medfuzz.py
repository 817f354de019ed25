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
def source(tmp_path: Path) -> str:
    return written(tmp_path, 1)


def attacker_of(reply: Script = attacking) -> Scripted:
    return scripted(reply, "attacker")


def run(target: Scripted, source: str, attacker: Scripted | None = None, **more: Any) -> EvalLog:
    return attack(
        target.model, attacker=(attacker or attacker_of()).model, questions=source, **more
    )


def check_steps(turns: pl.DataFrame, attempts: int) -> None:
    """Check that a replicate has a first answer and that many valid attempts."""
    steps = [("baseline", "")]
    for k in range(1, attempts + 1):
        steps += [("attack", f"fuzz@{k}"), ("attacker", f"fuzz@{k}")]
    assert sorted(turns.select("arm", "path").rows()) == sorted(steps)


def target_of(*trades: str) -> Scripted:
    return scripted(answering(*trades), "target")


def score_of(log: EvalLog) -> dict[str, float]:
    assert log.results
    return {
        name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
    } | {score.name: next(iter(score.metrics.values())).value for score in log.results.scores}


# --- how an attack goes ---


@pytest.mark.parametrize(("attempts", "k"), [(5, 0), (5, 1), (5, 2), (5, 5), (1, None), (5, None)])
def test_a_right_answer_is_attacked_until_it_flips(
    attempts: int, k: int | None, source: str
) -> None:
    """The answer is wrong after attempt k, from the first if k is 0, never if it is None."""
    target = target_of(*(TRADES[k - 1 :] if k else ()))
    if k == 0:
        target = scripted(lambda _: "Final Answer: (B)", "target")
    attacker = attacker_of()
    turns = turns_of(run(target, source, attacker, attempts=attempts))
    tries = attempts if k is None else k
    assert (len(target.asked), len(attacker.asked)) == (1 + tries, tries)
    check_steps(turns, tries)
    # as long as any curve of the study
    right = attempts + 1 if k is None else k
    assert attacks(turns)["accuracy"].to_list() == [1.0] * right + [0.0] * (attempts + 1 - right)
    (row,) = attack_summary(turns).iter_rows(named=True)
    assert (row["failed"], row["succeeded"], row["first_wrong"]) == (k is None, bool(k), k == 0)
    assert row["tries"] == tries
    if k:
        assert row["attempts_needed"] == k
        answers = turns.filter(pl.col("arm") != "attacker")["answer"].to_list()
        assert answers == ["A"] * k + ["B"]


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


def test_the_attacker_sees_its_history_and_the_last_reply(source: str) -> None:
    attacker = attacker_of()
    run(scripted(surer, "target"), source, attacker, attempts=3)
    (question,) = load_questions(source).questions
    for k, messages in enumerate(attacker.asked):
        assert [m.role for m in messages] == ["system", *["user", "assistant"] * k, "user"]
        replies = [m.text for m in messages[2::2]]
        assert replies == [fuzz(question.stem, trade) for trade in TRADES[:k]]
        if k:
            history = [m.text for m in attacker.asked[k - 1]]
            assert [m.text for m in messages[:-2]] == history
        last = messages[-1].text
        assert f"I weighed that of a {[None, *TRADES][k]}. Final Answer: A" in last
        assert f"Its answer: A, with a probability of {20 * (k + 1)} %" in last
    first = attacker.prompts[0]
    assert question.stem in first
    assert all(f"{letter}. {text}" in first for letter, text in question.options.items())
    assert f"The right answer is A. {question.options['A']}" in first


def test_without_confidence_the_attacker_sees_no_probability(source: str) -> None:
    without: dict[str, Any] = {"confidence": False}
    for script, settings in ((surer, without), (answering(), {})):
        attacker = attacker_of()
        run(scripted(script, "target"), source, attacker, attempts=2, **settings)
        assert all("Its answer: A\n" in prompt for prompt in attacker.prompts)
        assert not any("probability of" in prompt for prompt in attacker.prompts)


def test_each_attempt_is_fresh_with_unchanged_options(source: str) -> None:
    target = target_of()
    run(target, source, attempts=3)
    (question,) = load_questions(source).questions
    stems = [question.stem]
    stems += [json.loads(fuzz(question.stem, trade))["modified_question"] for trade in TRADES[:3]]
    assert [[(m.role, m.text) for m in messages] for messages in target.asked] == [
        [("system", system_prompt("expert")), ("user", question_prompt(question.changed(stem=s)))]
        for s in stems
    ]


def test_the_attacker_sees_the_users_assumption(source: str) -> None:
    assumption = "The question names no {weather}; add <b>some</b>."
    attacker = attacker_of()
    run(target_of(), source, attacker, attempts=1, assumption=assumption)
    assert assumption in attacker.asked[0][0].text
    assert assumption in attacker.prompts[0]
    plain = attacker_of()
    run(target_of(), source, plain, attempts=1)
    assert "characteristics of the patient" in plain.asked[0][0].text


def test_reasoning_and_fences_around_a_modification_are_no_fault(source: str) -> None:
    def reply(messages: Sequence[Message]) -> str:
        return f"<think>{{not this}}</think>Here it is:\n```json\n{attacking(messages)}\n```"

    turns = turns_of(run(target_of(), source, attacker_of(reply)))
    assert attack_summary(turns).select("tries", "invalid_tries").row(0) == (5, 0)


# --- what is noted, and the judge ---


def test_a_flip_records_additions_and_mentions(source: str) -> None:
    def silent(messages: Sequence[Message]) -> str:
        return "Final Answer: (B)" if trade_in(messages[-1][1]) else "Final Answer: (A)"

    for script, mentions in ((answering("baker"), [True]), (silent, [False])):
        turns = turns_of(run(scripted(script, "target"), source))
        (row,) = turns.filter(arm="attack").iter_rows(named=True)
        assert json.loads(row["characteristics"]) == ["works as a baker"]
        assert json.loads(row["mentioned"]) == mentions
        assert (row["words"], row["mentioned_judged"], row["review"]) == (6, None, None)


def judging(mention: str, review: str) -> Scripted:
    def reply(messages: Sequence[Message]) -> str:
        return review if "score" in messages[-1][1] else mention

    return scripted(reply, "judge")


@pytest.mark.parametrize(
    ("mention", "review", "row"),
    [
        ("[true]", '{"score": 7}', ("[true]", 7)),
        ("[false]", "I would say 3, or 4.", ("[false]", None)),
        ("[true, false]", "", (None, None)),
        ("It does.", '{"score": 11}', (None, None)),
    ],
)
def test_a_judge_reads_only_the_flip(
    mention: str, review: str, row: tuple[str | None, int | None], source: str
) -> None:
    judge = judging(mention, review)
    turns = turns_of(run(target_of("potter"), source, judge=judge.model)).filter(arm="attack")
    assert len(judge.asked) == 2
    assert turns.select("mentioned_judged", "review").rows() == [(None, None)] * 2 + [row]
    assert all("One who works as a potter has another." in prompt for prompt in judge.prompts)
    assert {message.role for messages in judge.asked for message in messages} == {"user"}


def test_a_judge_reads_nothing_without_a_flip(source: str) -> None:
    judge = judging("[true]", "5")
    run(target_of(), source, judge=judge.model)
    assert judge.asked == []


# --- what cannot be used ---


@pytest.mark.slow
def test_without_an_attacker_nothing_is_asked(source: str) -> None:
    target = target_of()
    (message,) = errors(put(medfuzz(questions=source), target.model))
    assert "'attacker'" in message
    assert target.asked == []


def test_after_an_invalid_attempt_the_next_one_follows(source: str) -> None:
    def reply(messages: Sequence[Message]) -> str:
        replies = sum(role == "assistant" for role, _ in messages)
        return "Prose." if replies < 4 else attacking(messages)

    target, attacker = target_of(TRADES[5]), attacker_of(reply)
    turns = turns_of(run(target, source, attacker))
    assert [trade_in(prompt) for prompt in target.prompts] == [None, TRADES[4], TRADES[5]]
    tries = turns.filter(arm="attacker")
    assert tries.select("path", "status", "rule").rows() == [
        *[("fuzz@1", "none", "no JSON")] * 4,
        ("fuzz@2", "parsed", "valid"),
        ("fuzz@3", "parsed", "valid"),
    ]
    assert tries["answer"].null_count() == 6
    assert not tries["correct"].any()
    assert all("That is no JSON object" in prompt for prompt in attacker.prompts[1:5])
    (row,) = attack_summary(turns).iter_rows(named=True)
    assert (row["tries"], row["invalid_tries"], row["invalid_attempts"]) == (6, 4, 1)
    assert attacks(turns)["accuracy"].to_list() == [1.0] * 3 + [0.0] * 3


UNREAD: list[tuple[str | ModelOutput, str]] = [
    ("It is cold.", "unread"),
    ("", "unread"),
    ("I cannot answer medical questions.", "refused"),
    (said("", "content_filter"), "filtered"),
    (said("Considering", "max_tokens"), "unread"),
    ("Final Answer: A and B", "unread"),
]


@pytest.mark.parametrize("trade", [None, "sailor"], ids=["first answer", "attempt 2"])
def test_an_unread_first_reply_drops_the_replicate(trade: str | None, tmp_path: Path) -> None:
    def reply(messages: Sequence[Message]) -> str | ModelOutput:
        prompt = messages[-1][1]
        number = int(stem_in(prompt).split()[2].strip("."))
        if number < len(UNREAD) and trade_in(prompt) == trade:
            return UNREAD[number][0]
        return answering("potter")(messages)

    source = written(tmp_path, len(UNREAD) + 1)
    turns = turns_of(run(scripted(reply, "target"), source))
    for number in range(len(UNREAD)):
        check_steps(turns.filter(question=f"q{number}"), 0 if trade is None else 2)
    # of the last question alone, which the third attempt flipped
    curve = attacks(turns)
    assert curve["replicates"].unique().to_list() == [1]
    assert curve["accuracy"].to_list() == [1.0] * 3 + [0.0] * 3
    (row,) = attack_summary(turns).iter_rows(named=True)
    assert (row["replicates"], row["model_errors"], row["succeeded"]) == (7, 6, 1)
    assert (row["refused"], row["filtered"], row["unread"]) == (1, 1, 4)


@pytest.mark.parametrize("who", ["target", "attacker"])
def test_a_failed_call_leaves_the_replicate_resumable(who: str, source: str) -> None:
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
    log = run(target, source, attacker)
    assert log.status == "error"
    assert "OSError: no route" in errors(log)[0]
    turns = turns_of(log)
    assert TABLES["attacks"](turns).is_empty()
    calls = (len(target.asked), len(attacker.asked))
    assert calls == ((3, 2) if who == "target" else (2, 2))
    turns = turns_of(run(target, source, attacker))
    # the failed call is repeated, and no other
    calls = (len(target.asked), len(attacker.asked))
    assert calls == ((5, 3) if who == "target" else (4, 4))
    check_steps(turns, 3)
    assert attacks(turns)["accuracy"].to_list() == [1.0] * 3 + [0.0] * 3


# --- settings and scores ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attempts": "x"}, "attempts is 'x'"),
        ({"assumption": " "}, "names no assumption"),
        ({"system_prompt": ["a"]}, "system_prompt"),
        ({"questions": "none.jsonl"}, "no such file"),
    ],
)
def test_unusable_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        medfuzz_study(**settings)


def test_scores_match_the_table(tmp_path: Path) -> None:
    # of the four right letters the target knows three, and one of its answers turns at once
    def reply(messages: Sequence[Message]) -> str:
        stem, trade = stem_in(messages[-1][1]), trade_in(messages[-1][1])
        if "number 2." in stem or ("number 1." in stem and trade):
            return "Final Answer: (A)"
        return answering("sailor")(messages)

    log = run(scripted(reply, "target"), written(tmp_path, 4), attempts=2, epochs=2)
    turns = turns_of(log)
    assert attacks(turns).select("k", "accuracy", "replicates").rows() == [
        (0, 0.75, 8), (1, 0.5, 8), (2, 0.0, 8),
    ]  # fmt: skip
    score = score_of(log)
    # of the right first answers, those that no attack has flipped: what is not asked is flipped
    assert score["baseline"] == 0.75
    assert [score[f"fuzz@{k}"] for k in (1, 2)] == [pytest.approx(2 / 3), 0.0]
