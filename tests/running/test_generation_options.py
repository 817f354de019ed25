"""Each setting of generation reaches the provider as its field, or is refused."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, ResponseSchema, get_model
from inspect_ai.util import JSONSchema
from tests.speaking import speaking
from tests.studies import Done, holdfast, question_rows, write_jsonl

import holdfast as python
from holdfast.errors import InputError
from holdfast.models.lean import HANDLED_SETTINGS, Lean
from holdfast.running.generation import UNSENT, Generation

VALUES: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "reasoning_effort": "low",
    "reasoning_summary": "auto",
    "verbosity": "low",
    "effort": "low",
    "cache_prompt": True,
}
"""A value of each setting, where that is not 2."""

SETTINGS = (
    "temperature", "max_tokens", "top_p", "top_k", "frequency_penalty", "presence_penalty",
    "reasoning_effort", "reasoning_tokens", "reasoning_summary", "verbosity", "effort",
    "cache_prompt", "batch", "max_retries", "timeout", "attempt_timeout",
)  # fmt: skip
OFFLINE = ("simulated/sycophant", "lexical/overlap", "recorded")


def config(setting: str, folder: Path) -> Path:
    """A file that sets it."""
    file = folder / "config.json"
    file.write_text(json.dumps({setting: VALUES.get(setting, 2)}))
    return file


def run_with(file: Path, folder: Path, model: str, *more: str) -> Done:
    """Ask a question of a model with the settings of a file."""
    questions = write_jsonl(folder / "q.jsonl", question_rows(1))
    return holdfast(
        "run", "followup", "--model", model, "--questions", questions, "-T", "techniques=none",
        "--log-dir", folder / "r", "--generate-config", file, *more,
    )  # fmt: skip


def recording(requests: list[dict[str, Any]]) -> AbstractContextManager[str]:
    """A server that keeps its requests."""

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return "Final Answer: (A)"

    return speaking(reply, excerpt=lambda request: request)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.rest_slow
def test_lean_sends_a_setting_as_its_field_or_refuses_it(setting: str, tmp_path: Path) -> None:
    requests, file = list[dict[str, Any]](), config(setting, tmp_path)
    with recording(requests) as url:
        run = run_with(file, tmp_path, "lean/m", "--model-base-url", url)
    if setting not in UNSENT and setting not in Lean.sent_as:
        assert (run.returncode, requests) == (2, [])
        place = f"holdfast: {file}, field '{setting}'"
        assert run.stderr.startswith(f"{place}: 'lean/m' does not support it")
        return
    assert run.returncode == 0, run.stderr
    if setting not in UNSENT:
        field = Lean.sent_as[setting]
        assert {request.get(field) for request in requests} == {VALUES.get(setting, 2)}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("model", OFFLINE)
@pytest.mark.rest_slow
def test_simulated_models_refuse_unused_settings(model: str, setting: str, tmp_path: Path) -> None:
    if model == "recorded":
        rows = [{"question": "q0", "path": "", "reply": "Final Answer: (A)"}]
        model = f"recorded/{write_jsonl(tmp_path / 'replies.jsonl', rows)}"
    file = config(setting, tmp_path)
    run = run_with(file, tmp_path, model)
    sent_as = getattr(get_model(model, memoize=False).api, "sent_as", None)
    assert sent_as is not None
    if setting not in UNSENT and setting not in sent_as:
        assert run.returncode == 2
        place = f"holdfast: {file}, field '{setting}'"
        assert run.stderr.startswith(f"{place}: '{model}' does not support it")
        assert not (tmp_path / "r").exists()
    else:
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temprature": 1}, "unknown setting 'temprature'. Did you mean 'temperature'?"),
        ({"temperature": "hot"}, "is 'hot'"),
        ({"temperature": -1}, "is -1.0. Give 0 to 100"),
        ({"temperature": float("nan")}, "is nan"),
        ({"max_tokens": 0}, "is 0"),
        ({"seed": 1}, "Give --seed"),
        ({"system_message": "x"}, "-T system_prompt"),
        ({"extra_headers": {"Authorization": "x"}}, "sounds like a secret,"),
        ("{temperature: 1", "is not a mapping of settings"),
        ("[]", "no such file"),
    ],
)
def test_unusable_settings_end_in_one_line(options: Any, words: str) -> None:
    with pytest.raises(InputError, match=r"--generate-config|no such file") as caught:
        Generation.read(options)
    assert words in str(caught.value)


def test_python_accepts_mapping_config_or_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("temperature: 0.5\nmax_tokens: 9\n")
    values = {"temperature": 0.5, "max_tokens": 9}
    for options in (values, GenerateConfig(**values), file, "{temperature: 0.5, max_tokens: 9}"):
        assert Generation.read(options).values == values
    with pytest.raises(InputError, match="does not support it"):
        python.run("followup", "lexical/overlap", limit=1, generate_config=values)


@pytest.mark.parametrize("setting", GenerateConfig.model_fields)
@pytest.mark.rest_slow
async def test_lean_drops_no_setting_silently(setting: str) -> None:
    values: dict[str, Any] = {
        "stop_seqs": ["END"], "logit_bias": {1: 2.0}, "logprobs": True, "cache": False,
        "response_schema": ResponseSchema(name="reply", json_schema=JSONSchema(type="object")),
        "extra_headers": {"X-Study": "1"}, "extra_body": {"min_p": 0.1}, "modalities": ["image"],
        "reasoning_mode": "x", "fallback_models": ["m"], "system_message": "Be exact.",
        "reasoning_history": "all", **VALUES,
    }  # fmt: skip
    config = GenerateConfig.model_construct(**{setting: values.get(setting, 1)})
    requests: list[dict[str, Any]] = []
    with recording(requests) as url:
        lean = Lean("m", url)
        try:
            if setting in Lean.sent_as or setting in HANDLED_SETTINGS:
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
    schema = ResponseSchema(name="reply", json_schema=JSONSchema(type="object"))
    with recording(requests) as url:
        lean = Lean("m", url)
        config = GenerateConfig(response_schema=schema)
        await lean.generate([ChatMessageUser(content="?")], [], "none", config)
        await lean.aclose()
    assert requests[0]["response_format"]["type"] == "json_schema"
    assert requests[0]["response_format"]["json_schema"]["name"] == "reply"
    assert json.dumps(requests[0]["response_format"])
