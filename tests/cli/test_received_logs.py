"""A log dir of somebody else's: nothing in it says where a request goes or what code is loaded."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.model import ModelConfig, _model
from tests.fuzzing import ATTACKS_ALONE, Script, script_server
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.errors import InputError

CANARY = "from pathlib import Path\nPath({!r}).write_text('loaded')\n"
HELPER = ("--model-role", "attacker=simulated/attacker")


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    """A server that nobody has named, with a key in the environment that it would like to have."""
    monkeypatch.setenv("SINK_API_KEY", "secret")
    with script_server(lambda _: "Final Answer: (A)") as site:
        yield site


@pytest.fixture
def model_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that are built."""
    names: list[str] = []
    build = _model.get_model

    def recorded(name: str, **more: Any) -> Any:
        names.append(name)
        return build(name, **more)

    monkeypatch.setattr("holdfast.running.models.get_model", recorded)
    return names


def attacked(log_dir: str = "runs") -> None:
    source = write_jsonl(Path("q.jsonl"), question_rows(4))
    run = holdfast(
        "run", "medfuzz", *ATTACKS_ALONE, "--questions", source, "--epochs", "1", *HELPER,
        "--model", "simulated/fuzz-swayed", "--log-dir", log_dir,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def forged(change: Callable[[EvalLog], None], log_dir: str = "runs") -> None:
    """Change what the logs of a log dir say of themselves."""
    for info in list_eval_logs(log_dir):
        log = read_eval_log(info.name)
        change(log)
        write_eval_log(log, info.name)
    Path(log_dir, "turns.parquet").unlink()
    shutil.rmtree(Path(log_dir, ".cache"), ignore_errors=True)


def at_sink(url: str) -> Callable[[EvalLog], None]:
    def change(log: EvalLog) -> None:
        log.eval.model, log.eval.model_base_url = "openai-api/sink/x", url
        role_model = ModelConfig(model="openai-api/sink/y", base_url=url)
        log.eval.model_roles = dict.fromkeys(
            ("attacker", "judge", "reader", "generator"), role_model
        )

    return change


def of_code(log: EvalLog) -> None:
    log.eval.model, log.eval.model_args = "hf/x", {"model_path": ".", "trust_remote_code": True}
    role_model = ModelConfig(model="hf/y", args={"model_path": ".", "trust_remote_code": True})
    log.eval.model_roles = dict.fromkeys(("attacker", "judge", "reader"), role_model)
    canary = f"{os.getcwd()}/canary.py"
    log.eval.task_file = canary
    log.eval.task = log.eval.task_registry_name = "canary@task"
    log.eval.task_args |= {"exemplars": canary, "challenges": canary, "contexts": canary}


AFTERWARDS = {
    "replay": ("run", "medfuzz", "-T", "attacks=runs", "--model", "simulated/steadfast"),
    "replay with a helper": (
        "run", "medfuzz", "-T", "attacks=runs", "--model", "simulated/steadfast", *HELPER,
    ),
    "table": ("table", "runs"),
    "report": ("report", "runs", "-o", "report.html"),
    "score": ("score", "runs", "--model-role", "reader=simulated/reader-0"),
    "export": ("export", "runs", "--format", "csv", "-o", "turns.csv"),
    "power": ("power", "runs", "--path", "fuzz@1", "--difference", "5"),
    "run": (
        "run", "medfuzz", "--questions", "q.jsonl", "--model", "simulated/fuzz-swayed", *HELPER,
        "--limit", "1", "--epochs", "1", "-T", "tested=2", "-T", "samples=1",
    ),
}  # fmt: skip


def test_a_forged_log_triggers_no_request(sink: Script, model_names: list[str]) -> None:
    attacked()
    forged(at_sink(sink.url))
    model_names.clear()
    for command in AFTERWARDS.values():
        holdfast(*command)
    assert sink.requests == []
    assert [name for name in model_names if name.startswith("openai-api/")] == []


@pytest.mark.slow
def test_a_forged_log_loads_no_code(
    model_names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attacked()
    forged(of_code)
    Path("canary.py").write_text(CANARY.format("loaded"), "utf-8")
    monkeypatch.syspath_prepend(os.getcwd())
    model_names.clear()
    for command in AFTERWARDS.values():
        holdfast(*command)
    assert not Path("loaded").exists()
    assert [name for name in model_names if name.startswith("hf/")] == []


@pytest.mark.slow
def test_a_replay_asks_the_named_model_at_its_own_address(sink: Script) -> None:
    with script_server(lambda _: "Final Answer: (A)") as site:
        attacked("received")
        forged(at_sink(sink.url), "received")
        result = holdfast(
            "run", "medfuzz", "-T", "attacks=received", "--model", "openai-api/sink/x",
            "--model-base-url", site.url,
        )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert sink.requests == []
    assert site.requests


def of_function(log: EvalLog) -> None:
    """A log that names a file to run as a model and as a helper."""
    canary = f"{os.getcwd()}/canary.py"
    log.eval.model, log.eval.model_args = f"python/{canary}:answer", {"function": canary}
    named = ModelConfig(model=f"python/{canary}:answer", args={"function": canary})
    log.eval.model_roles = dict.fromkeys(("attacker", "judge", "reader"), named)


def of_target(log: EvalLog) -> None:
    """The same of a target file, whose request carries a secret."""
    file = f"{os.getcwd()}/sink.toml"
    log.eval.model, log.eval.model_args = "http/sink", {"target": file}
    named = ModelConfig(model="http/sink", args={"target": file})
    log.eval.model_roles = dict.fromkeys(("attacker", "judge", "reader"), named)


@pytest.mark.parametrize("change", [of_function, of_target])
@pytest.mark.slow
def test_a_forged_log_names_no_assistant(
    change: Callable[[EvalLog], None], sink: Script, model_names: list[str]
) -> None:
    attacked()
    forged(change)
    Path("canary.py").write_text(CANARY.format("loaded") + "def answer(messages): ...\n", "utf-8")
    Path("sink.toml").write_text(
        f'url = "{sink.url}/{{{{ last }}}}"\nheaders = {{ Authorization = "${{SINK_API_KEY}}" }}\n'
        'body = { m = "{{ messages }}" }\n',
        "utf-8",
    )
    model_names.clear()
    for command in AFTERWARDS.values():
        holdfast(*command)
    assert not Path("loaded").exists()
    assert sink.requests == []
    assert [name for name in model_names if name.startswith(("python/", "http/"))] == []


@pytest.mark.parametrize(
    ("name", "argument"),
    [("python/canary.py:answer", {"function": "canary.py"}), ("http/x", {"target": "sink.toml"})],
)
def test_a_name_and_a_path_make_no_assistant(name: str, argument: dict[str, Any]) -> None:
    Path("canary.py").write_text(CANARY.format("loaded") + "def answer(messages): ...\n", "utf-8")
    Path("sink.toml").write_text('url = "http://h/"\nbody = { m = "{{ messages }}" }\n', "utf-8")
    with pytest.raises(InputError):
        _model.get_model(name, memoize=False, **argument)
    assert not Path("loaded").exists()


@pytest.mark.parametrize("model", ["openai-api/sink/x", "vllm-completions/x", "hf/x"])
@pytest.mark.slow
def test_a_price_look_up_builds_no_model(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "-T", "techniques=rethink",
        "-T", "controls=false", "--limit", "40",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    turns = pl.read_parquet("runs/turns.parquet").with_columns(model=pl.lit(model))
    turns.write_parquet("received.parquet")
    names: list[str] = []
    build = _model.get_model

    def recorded(name: str, **more: Any) -> Any:
        names.append(name)
        return build(name, **more)

    monkeypatch.setattr(_model, "get_model", recorded)
    Path("prices.json").write_text(json.dumps({model: {"input": 1, "output": 1}}), "utf-8")
    power = ("power", "received.parquet", "--path", "rethink")
    assert holdfast(*power).returncode == 0
    assert names == []
    assert "$" in holdfast(*power, "--prices", "prices.json").stdout
