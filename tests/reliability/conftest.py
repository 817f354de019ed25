"""What the same study gives where nothing goes wrong."""

from functools import cache

import polars as pl
import pytest

from tests.faults import faulty_server

from .driving import Sound, Study


@pytest.fixture(scope="session")
def sound_by(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    """The turns of three questions by provider, all replies whole."""

    @cache
    def turns(provider: str) -> pl.DataFrame:
        with pytest.MonkeyPatch.context() as patch, faulty_server() as server:
            folder = tmp_path_factory.mktemp("sound")
            patch.setenv("HOLDFAST_CACHE_DIR", str(folder / "cache"))
            patch.setenv("INSPECT_LOG_DIR", str(folder / "logs"))
            patch.setenv("OPENAI_API_KEY", "none")
            study = Study(server, folder, provider=provider)
            study.outcome()
            return study.turns()

    return turns


@pytest.fixture
def sound(sound_by: Sound) -> pl.DataFrame:
    """The turns of three questions through lean, all replies whole."""
    return sound_by("lean")
