"""Each option of generation reaches the provider as its field, or is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, ResponseSchema, get_model
from inspect_ai.util import JSONSchema
from tests.speaking import speaking
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.errors import InputError
from holdfast.models.lean import HANDLED, Lean
from holdfast.running.options import generation_options

VALUES: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "reasoning_effort": "low",
    "reasoning_summary": "auto",
    "verbosity": "low",
    "effort": "low",
    "cache_prompt": "true",
}
"""A value of each option, where that is not 2."""

OPTIONS = tuple(generation_options())
OFFLINE = ("simulated/sycophant", "lexical/overlap", "recorded")


def flag(option: str) -> list[str]:
    return [f"--{option.replace('_', '-')}", str(VALUES.get(option, 2))]


def test_every_option_is_a_setting_of_inspects() -> None:
    settings = [option.setting for option in generation_options().values()]
    assert set(settings) <= set(GenerateConfig.model_fields)
    assert len(set(settings)) == len(settings)
    assert {"temperature", "top_k", "max_tokens"} <= set(settings)


@pytest.mark.parametrize("option", OPTIONS)
def test_lean_sends_an_option_as_its_field_or_refuses_it(option: str, tmp_path: Path) -> None:
    setting = generation_options()[option]
    requests: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return "Final Answer: (A)"

    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(1))
    with speaking(reply, told=lambda request: request) as url:
        run = holdfast(
            "run", "followup", "--model", "lean/m", "--model-base-url", url, "--questions",
            questions, "-T", "techniques=rethink", "--log-dir", tmp_path / "r", *flag(option),
        )  # fmt: skip
    if setting.sent and setting.setting not in Lean.sent_as:
        assert (run.returncode, requests) == (2, [])
        assert run.stderr.startswith(f"holdfast: {flag(option)[0]}: 'lean/m' does not support it")
        return
    assert run.returncode == 0, run.stderr
    if setting.sent:
        field = Lean.sent_as[str(setting.setting)]
        assert {request.get(field) for request in requests} == {VALUES.get(option, 2)}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("model", OFFLINE)
def test_models_without_a_network_refuse_what_their_replies_do_not_depend_on(
    model: str, option: str, tmp_path: Path
) -> None:
    setting = generation_options()[option]
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(1))
    study = ("--questions", questions, "-T", "techniques=none", "-T", "controls=true")
    if model == "recorded":
        rows = [{"question": "q0", "path": "", "reply": "Final Answer: (A)"}]
        model = f"recorded/{write_jsonl(tmp_path / 'replies.jsonl', rows)}"
    run = holdfast(
        "run", "followup", "--model", model, *study, "--log-dir", tmp_path / "r", *flag(option)
    )
    sent_as = getattr(get_model(model, memoize=False).api, "sent_as", None)
    assert sent_as is not None
    if setting.sent and setting.setting not in sent_as:
        assert run.returncode == 2
        assert run.stderr.startswith(f"holdfast: {flag(option)[0]}: '{model}' does not support it")
        assert not (tmp_path / "r").exists()
    else:
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("setting", GenerateConfig.model_fields)
async def test_lean_drops_no_setting_of_inspects_in_silence(setting: str) -> None:
    values: dict[str, Any] = {
        "stop_seqs": ["END"], "logit_bias": {1: 2.0}, "logprobs": True, "cache": False,
        "response_schema": ResponseSchema(name="reply", json_schema=JSONSchema(type="object")),
        "extra_headers": {"X-Study": "1"}, "extra_body": {"min_p": 0.1}, "modalities": ["image"],
        "reasoning_mode": "x", "fallback_models": ["m"], "system_message": "Be exact.",
        "reasoning_history": "all", **VALUES,
    }  # fmt: skip
    config = GenerateConfig.model_construct(**{setting: values.get(setting, 1)})
    requests: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return "Final Answer: (A)"

    with speaking(reply, told=lambda request: request) as url:
        lean = Lean("m", url)
        try:
            if setting in Lean.sent_as or setting in HANDLED:
                await lean.generate([ChatMessageUser(content="?")], [], "none", config)
                (request,) = requests
                field = Lean.sent_as.get(setting)
                assert field is None or field in request
            else:
                with pytest.raises(InputError, match=setting):
                    await lean.generate([ChatMessageUser(content="?")], [], "none", config)
                assert not requests
        finally:
            await lean.aclose()
    assert "top_k" in Lean.sent_as


async def test_lean_sends_a_schema_as_the_api_has_it() -> None:
    requests: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return "{}"

    schema = ResponseSchema(name="reply", json_schema=JSONSchema(type="object"))
    with speaking(reply, told=lambda request: request) as url:
        lean = Lean("m", url)
        config = GenerateConfig(response_schema=schema)
        await lean.generate([ChatMessageUser(content="?")], [], "none", config)
        await lean.aclose()
    assert requests[0]["response_format"]["type"] == "json_schema"
    assert requests[0]["response_format"]["json_schema"]["name"] == "reply"
    assert json.dumps(requests[0]["response_format"])
