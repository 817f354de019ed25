"""Fixtures of all tests: separate folders for caches and logs, the real data, the local server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.server import Server, running_server
from hypothesis import settings
from inspect_ai.model._model_info import clear_model_info_cache

# a busy machine must not fail a test; separate tests measure what must be fast
settings.register_profile("holdfast", deadline=None)
settings.load_profile("holdfast")

RESOURCES = Path(__file__).parents[2] / "shared"


@pytest.fixture(autouse=True)
def _separate_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    clear_model_info_cache()  # removes prices that another test set


@pytest.fixture(scope="session")
def resources() -> Path:
    if not (RESOURCES / "data").is_dir():
        pytest.skip("the real data in ../shared is absent")
    return RESOURCES


@pytest.fixture(scope="session")
def medqa(resources: Path) -> str:
    return str(resources / "data" / "medqa" / "us_4_options_test.jsonl")


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as local:
        yield local


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment of a separate process, whose generation cache stands next to its logs."""
    return {k: v for k, v in os.environ.items() if k != "HOLDFAST_CACHE_DIR"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all cases but the first as slow where a test is marked `rest_slow`."""
    functions: set[str] = set()
    for item in items:
        if item.get_closest_marker("rest_slow") is None:
            continue
        function = item.nodeid.partition("[")[0]
        if function in functions:
            item.add_marker(pytest.mark.slow)
        functions.add(function)
