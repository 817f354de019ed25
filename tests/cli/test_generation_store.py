"""Where a run keeps its generations: beside its logs, elsewhere, and behind a URL."""

import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from inspect_ai.model import ModelOutput

from holdfast.dialogue.generations import Generations, generations
from holdfast.running.log_dir import generation_store

FIRST, SECOND, THIRD = ("1" * 32, "2" * 32, "3" * 32)
URL = "memory://bucket/run"


def put(*keys: str) -> None:
    for key in keys:
        generations().put(key, ModelOutput.from_content("m", key))


def found(*keys: str) -> list[bool]:
    return [generations().get(key) is not None for key in keys]


@pytest.fixture
def bucket() -> Iterator[fsspec.AbstractFileSystem]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


@pytest.fixture(autouse=True)
def _nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_CACHE_DIR")


def test_a_folder_holds_its_generations(tmp_path: Path) -> None:
    with generation_store(str(tmp_path / "run")):
        put(FIRST)
    assert len(Generations(tmp_path / "run" / ".cache")) == 1


def test_the_users_cache_dir_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: fsspec.AbstractFileSystem
) -> None:
    monkeypatch.setenv("HOLDFAST_CACHE_DIR", str(tmp_path / "fast"))
    for key, log_dir in ((FIRST, str(tmp_path / "run")), (SECOND, URL)):
        with generation_store(log_dir):
            put(key)
    assert len(Generations(tmp_path / "fast")) == 2
    assert not (tmp_path / "run").exists()
    assert not bucket.store


def test_generations_behind_a_url_serve_the_next_process(
    bucket: fsspec.AbstractFileSystem,
) -> None:
    with generation_store(URL):
        put(FIRST, SECOND)
    with generation_store(URL):
        assert found(FIRST, SECOND, THIRD) == [True, True, False]
        put(THIRD)
    with generation_store(URL):
        assert found(FIRST, SECOND, THIRD) == [True, True, True]
    # what was fetched is not brought again
    lines = [line for name in bucket.glob(f"{URL}/.cache/*") for line in bucket.cat(name).split()]
    assert len(lines) == 3


def test_whole_lines_of_an_unfinished_part_count(
    bucket: fsspec.AbstractFileSystem,
) -> None:
    with generation_store(URL):
        put(FIRST, SECOND)
    (part,) = bucket.glob(f"{URL}/.cache/*")
    first, second = bucket.cat(part).splitlines(keepends=True)
    bucket.rm(part)
    bucket.pipe(f"{URL}/.cache/a.jsonl", first[:-9])
    bucket.pipe(f"{URL}/.cache/b.jsonl", second)
    with generation_store(URL):
        assert found(FIRST, SECOND) == [False, True]


def test_a_failed_upload_goes_with_the_next(
    bucket: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.running.log_dir._OFTEN", 0.01)
    failures: list[str] = []
    open_file = type(bucket)._open

    def once_out_of_reach(self: object, path: str, mode: str = "rb", **more: object) -> object:
        if mode == "wb" and len(failures) < 3:
            failures.append(path)
            raise ConnectionError("out of reach")
        return open_file(self, path, mode, **more)

    monkeypatch.setattr(type(bucket), "_open", once_out_of_reach)
    with generation_store(URL):
        put(FIRST)
        for _ in range(500):
            if len(failures) == 3:
                break
            time.sleep(0.01)
        put(SECOND)
    assert len(failures) == 3
    with generation_store(URL):
        assert found(FIRST, SECOND) == [True, True]
