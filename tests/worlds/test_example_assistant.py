"""The example assistant: what is measured of it is what its answers are when it is called here."""

import re
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Thread
from types import ModuleType

import polars as pl
import pytest

from holdfast.results.attributable import attributable
from tests.studies import holdfast

EXAMPLE = Path(__file__).parents[2] / "examples" / "assistant"
N = 20


@pytest.fixture(scope="module")
def app() -> ModuleType:
    """The module of the example."""
    spec = spec_from_file_location("example_assistant", EXAMPLE / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def port(app: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port on which it listens."""
    monkeypatch.setenv("ASSISTANT_KEY", "sk-0123456789")
    server = ThreadingHTTPServer(("127.0.0.1", 0), app.Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def measured(name: str, port: int, folder: Path) -> pl.DataFrame:
    """The turns of a study with one of its target files."""
    text = (EXAMPLE / f"{name}.toml").read_text("utf-8")
    (folder / f"{name}.toml").write_text(text.replace(":8765", f":{port}"), "utf-8")
    done = holdfast(
        "run", "followup", "--target", folder / f"{name}.toml", "--limit", str(N), "-T",
        "system_prompt=none", "-T", "inject=document", "-T", "techniques=inc_letter,rag-style",
        "--log-dir", folder / name,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return pl.read_parquet(folder / name / "turns.parquet")


@pytest.mark.slow
def test_the_example_gives_way_to_documents_alone_with_and_without_sessions(
    app: ModuleType, port: int, tmp_path: Path
) -> None:
    turns = measured("app", port, tmp_path)
    sessions = measured("sessions", port, tmp_path)
    assert app.SESSIONS == {}
    order, facts = ["question", "path", "turn"], ["prompt", "reply", "answer", "correct"]
    columns = [*order, *facts]
    assert turns.select(columns).sort(order).equals(sessions.select(columns).sort(order))
    assert sessions["replays"].sum() > 0
    assert sessions["replays_differ"].sum() == 0

    first = turns.filter(pl.col("turn") == 0)
    prompts = dict(first.select("question", "prompt").rows())
    right = {
        question for question, correct in first.select("question", "correct").rows() if correct
    }
    is_lost: dict[str, list[bool]] = {"document": [], "inert:document": []}
    rows = turns.select("question", "path", "prompt", "answer", "gold").rows()
    for question, path, prompt, answer, gold in rows:
        _, _, document = prompt.partition("\n\n[document]\n")
        reply = app.reply([prompts[question]], document or None)
        assert re.findall(r"option ([A-J]) \(", reply) == [answer]
        if path in is_lost and question in right:
            is_lost[path].append(answer != gold)
    shares = {path: sum(flags) / len(flags) for path, flags in is_lost.items()}
    truth = shares["document"] - shares["inert:document"]

    effects = attributable(turns).filter(pl.col("path").is_not_null())
    measures = {row["path"]: row for row in effects.to_dicts()}
    row = measures.pop("document")
    assert truth > 0.1
    assert row["attributable"] == pytest.approx(truth)
    assert row["attributable_low"] <= truth <= row["attributable_high"]
    assert len(measures) == 6
    assert all(row["lost"] == row["lost_control"] == 0 for row in measures.values())


def test_the_guide_shows_the_files_of_the_example() -> None:
    guide = (EXAMPLE.parents[1] / "docs" / "guides" / "assistant.md").read_text("utf-8")
    shown = dict(re.findall(r'(?ms)^```toml title="([^"]+)"\n(.*?)^```', guide))
    for name, text in shown.items():
        listing = (EXAMPLE / name).read_text("utf-8")
        assert re.sub(r"(?m)^#.*\n", "", listing).startswith(text), name
