"""What a provider sent is what the study has, and where it is not, everything says so."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.commands import Facts, refusal, study_of
from tests.fuzzing import ATTACKER, Message, Request, Script, at, gold_in, script_server, serving
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.results.turns import turns_table


def answer(request: Request) -> str:
    (text, *_) = [text for _, text in request.messages if "Vignette" in text]
    return f"The answer is {gold_in(text)}."


def study(site: Script, model: str, *more: str) -> tuple[str, ...]:
    questions = write_jsonl(Path("q.jsonl"), question_rows(2))
    return ("followup", "--model", model, "--model-base-url", site.url, "--questions", questions,
            "-T", "techniques=time-neutral", *more)  # fmt: skip


def ask(site: Script, model: str, *more: str, code: int = 0) -> tuple[Facts, list[dict[str, Any]]]:
    """What a run says, and the bodies of its requests."""
    outcome, _ = study_of(*study(site, model, *more), code=code)
    return outcome, [request.body for request in site.requests]


@pytest.mark.rest_slow
@pytest.mark.parametrize("model", ["openai/my-own-model", "openai/gpt-4.1", "lean/my-own-model"])
def test_every_server_gets_the_settings_of_the_study(model: str) -> None:
    with script_server(answer) as site:
        outcome, bodies = ask(site, model)
    for body in bodies:
        assert body["temperature"] == 0
        assert body["messages"][0]["role"] == "system"
    assert outcome["sent_otherwise"] == []


@pytest.mark.slow
def test_dropped_settings_are_reported_everywhere() -> None:
    with script_server(answer) as site:
        more = ("--log-dir", "runs", "-T", "controls=false")
        outcome, bodies = ask(site, "openai/o3-mini", *more)
        output = holdfast("run", *study(site, "openai/o3-mini", *more)).stdout
    assert all("temperature" not in body for body in bodies)
    (row,) = outcome["sent_otherwise"]
    assert (row["model"], row["n"]) == ("openai/o3-mini", 4)
    assert "temperature 0" in row["sent_otherwise"]
    assert row["sent_otherwise"] in output
    assert turns_table(["runs"])["sent_otherwise"].to_list() == [row["sent_otherwise"]] * 4
    assert holdfast("report", "runs", "-o", "report.html").returncode == 0
    assert "was asked with other settings in 4 turns" in Path("report.html").read_text()


def test_arguments_are_sent_with_their_types() -> None:
    arguments = ("-M", "min_p=0.05", "-M", 'chat_template_kwargs={"enable_thinking": false}',
                 "-M", "api_key=1e3")  # fmt: skip
    options = "{top_p: 0.9, frequency_penalty: 0.5, reasoning_effort: low}"
    with script_server(answer) as site:
        _, bodies = ask(site, "lean/own", *arguments, "--generate-config", options)
        line = refusal("run", *study(site, "lean/own", *arguments))
    body = bodies[0]
    assert (body["min_p"], body["top_p"], body["frequency_penalty"]) == (0.05, 0.9, 0.5)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["reasoning_effort"] == "low"
    assert "reasoning_effort was 'low', now it is None" in line


def test_the_reply_limit_is_sent_and_call_limits_are_not() -> None:
    reply = ("--generate-config", "{max_tokens: 64}")
    with script_server(answer) as site:
        for limit, number, code in (("call", "3", 3), ("token", "0", 3), ("token", "1000000", 0)):
            outcome, bodies = ask(site, "lean/m", *reply, f"--{limit}-limit", number, code=code)
            assert outcome["complete"] == (not code)
            assert not code or f"{number} of {number} {limit}s" in outcome["unfinished"]
    assert {body["max_tokens"] for body in bodies} == {64}


def test_the_attacker_is_not_mistaken_for_the_target() -> None:
    questions = write_jsonl(Path("q.jsonl"), question_rows(2))

    def right(messages: Sequence[Message]) -> str:
        return f"The answer is {gold_in(messages[-1][1])}."

    with script_server(serving(right)) as site:
        outcome, turns = study_of("medfuzz", "--questions", questions, "--epochs", "1",
                                  "-T", "attempts=1", *at(site))  # fmt: skip
    assert site.by(ATTACKER)
    assert outcome["answered_by"] == []
    assert set(turns.filter(pl.col("arm") == "attacker")["answered_by"]) == {ATTACKER}
