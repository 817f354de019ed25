"""Models that run in this process: their weights are loaded once, and only to be asked."""

import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import Model, get_model
from tests.studies import holdfast

from holdfast.running import models


@pytest.fixture
def names_built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names whose model Inspect was made to look up or to make."""
    names: list[str] = []

    def looked_up(model: str | Model) -> None:
        names.append(str(model))

    def make(name: str, **arguments: Any) -> Model:
        names.append(name)
        return get_model(name, **arguments)

    monkeypatch.setattr(models, "get_model_info", looked_up)
    monkeypatch.setattr(models, "get_model", make)
    return names


@pytest.mark.parametrize("name", ["hf/some/model", "vllm/some/model"])
def test_a_price_loads_no_weights(name: str, names_built: list[str], tmp_path: Path) -> None:
    assert models.price_of(name) is None
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({name: {"input": 1.0, "output": 2.0}}))
    models.load_prices(str(path))
    assert names_built == []
    # one that is priced is looked up by its name, where the price now is
    models.price_of(name)
    assert names_built == [name]


def test_a_plan_loads_no_weights(names_built: list[str], tmp_path: Path) -> None:
    result = holdfast(
        "run", "--dry-run", "followup", "--model", "hf/another/model", "--log-dir", tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "hf/another/model" not in names_built
