"""What a provider sent is what the study has, and where it is not, everything says so."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fuzzing import (
    ATTACKER,
    Message,
    Request,
    Script,
    at,
    gold_in,
    script_server,
    serving,
)
from tests.studies import Done, holdfast, question_rows, write_jsonl

from holdfast.results.turns import turns_table


def answer(request: Request) -> str:
    (text, *_) = [text for _, text in request.messages if "Vignette" in text]
    return f"The answer is {gold_in(text)}."


def ran(site: Script, tmp_path: Path, model: str, *more: str) -> Done:
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(2))
    return holdfast(
        "run", "followup", "--model", model, "--model-base-url", site.url, "--questions", questions,
        "-T", "techniques=time-neutral", *more,
    )  # fmt: skip


def asked(site: Script) -> list[dict[str, Any]]:
    return [request.body for request in site.requests]


@pytest.mark.rest_slow
@pytest.mark.parametrize("model", ["openai/my-own-model", "openai/gpt-4.1", "lean/my-own-model"])
def test_a_model_of_an_own_server_is_asked_as_the_study_has_it(model: str, tmp_path: Path) -> None:
    with script_server(answer) as site:
        run = ran(site, tmp_path, model, "--json")
    assert run.returncode == 0, run.stderr
    for body in asked(site):
        assert body["temperature"] == 0
        assert body["messages"][0]["role"] == "system"
    assert json.loads(run.stdout)["sent_otherwise"] == []


@pytest.mark.slow
def test_what_a_provider_leaves_out_is_told_everywhere(tmp_path: Path) -> None:
    with script_server(answer) as site:
        plain = ("--log-dir", "runs", "-T", "controls=false")
        run = ran(site, tmp_path, "openai/o3-mini", *plain)
        assert run.returncode == 0, run.stderr
        again = ran(site, tmp_path, "openai/o3-mini", *plain, "--json")
    assert all("temperature" not in body for body in asked(site))
    told = "temperature 0 was not sent; the system message was sent as developer"
    assert f"openai/o3-mini: 4 turns not sent with the settings given: {told}" in run.stdout
    row = {"model": "openai/o3-mini", "sent_otherwise": told, "n": 4}
    assert json.loads(again.stdout)["sent_otherwise"] == [row]
    assert turns_table(["runs"])["sent_otherwise"].to_list() == [told] * 4
    assert holdfast("report", "runs", "-o", "report.html").returncode == 0
    assert "was asked with other settings in 4 turns" in Path("report.html").read_text()


def test_arguments_and_options_go_out_typed(tmp_path: Path) -> None:
    more = (
        "-M", "min_p=0.05", "-M", 'chat_template_kwargs={"enable_thinking": false}',
        "-M", "api_key=1e3",
        "--generate-config", "{top_p: 0.9, frequency_penalty: 0.5, reasoning_effort: low}",
    )  # fmt: skip
    with script_server(answer) as site:
        run = ran(site, tmp_path, "lean/my-own-model", "--log-dir", "runs", *more)
        assert run.returncode == 0, run.stderr
        without = ran(site, tmp_path, "lean/my-own-model", "--log-dir", "runs", *more[:-2])
    body = asked(site)[0]
    assert (body["min_p"], body["top_p"], body["frequency_penalty"]) == (0.05, 0.9, 0.5)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["reasoning_effort"] == "low"
    assert without.returncode == 2
    assert "reasoning_effort was 'low', now it is None" in without.stderr


def test_max_tokens_is_the_longest_reply_and_limits_are_of_the_run(tmp_path: Path) -> None:
    reply = ("--log-dir", "runs", "--generate-config", "{max_tokens: 64}")
    with script_server(answer) as site:
        first = ran(site, tmp_path, "lean/m", *reply, "--call-limit", "3")
        tokens = ran(site, tmp_path, "lean/m", *reply, "--token-limit", "0")
        last = ran(site, tmp_path, "lean/m", *reply, "--token-limit", "1000000")
    assert [run.returncode for run in (first, tokens, last)] == [3, 3, 0], last.stderr
    assert {body["max_tokens"] for body in asked(site)} == {64}
    assert "3 of 3 calls" in first.stderr
    assert "0 of 0 tokens" in tokens.stderr


@pytest.mark.parametrize("name", ["max-calls", "max-cost", "max-output-tokens"])
def test_a_limit_has_no_second_name(name: str) -> None:
    run = holdfast("run", "followup", "--model", "simulated/steadfast", f"--{name}", "1")
    assert run.returncode == 2
    assert f"No such option: --{name}" in run.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ("--generate-config", "{reasoning_effort: much}"),
            "--generate-config reasoning_effort: is 'much'. Input should be",
        ),
        (
            ("--generate-config", "{reasoning_tokens: 100}"),
            "--generate-config reasoning_tokens: 'lean/m' does not support it",
        ),
        (
            ("--generate-config", "{batch: 10}"),
            "--generate-config batch: 'lean/m' does not support it",
        ),
        (("--generate-config", "{top_p: 2}"), "--generate-config top_p: is 2.0. Give 0 to 1"),
        (("-M", "config=1"), "-M: 'config' is not a provider argument"),
        (("-M", "=1"), "-M: '' is not a provider argument"),
    ],
)
def test_options_that_cannot_go_out_are_refused(
    more: tuple[str, str], said: str, tmp_path: Path
) -> None:
    run = holdfast(
        "run", "followup", "--model", "lean/m", "--model-base-url", "http://127.0.0.1:9/v1", *more
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert said in run.stderr
    assert not (tmp_path / "runs").exists()


def test_an_attacker_is_no_other_model_than_the_one_asked(tmp_path: Path) -> None:
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(2))

    def right(messages: Sequence[Message]) -> str:
        return f"The answer is {gold_in(messages[-1][1])}."

    with script_server(serving(right)) as site:
        run = holdfast("run", "medfuzz", "--questions", questions, "--epochs", "1", "--json",
                       "-T", "attempts=1", *at(site))  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert site.by(ATTACKER)
    outcome = json.loads(run.stdout)
    assert outcome["answered_by"] == []
    turns = turns_table(["runs"])
    assert set(turns.filter(arm="attacker")["answered_by"]) == {ATTACKER}
