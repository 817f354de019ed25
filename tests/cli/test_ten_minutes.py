"""The commands of the README, from an empty folder to a verdict, on a local endpoint."""

import re
import shutil
import time
from pathlib import Path

import pytest
from benchmarks.server import Server
from tests.studies import holdfast_apart, question_rows, write_jsonl

ROOT = Path(__file__).parents[2]
MINUTES = 10


def commands() -> list[list[str]]:
    """What the README has typed with a server of one's own."""
    section = (ROOT / "README.md").read_text("utf-8").partition("## A real model")[2]
    block = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return [line[2:].split() for line in block[1].splitlines() if line.startswith("$ holdfast")]


@pytest.mark.slow
def test_the_readme_leads_to_a_verdict(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jsonl(tmp_path / "questions.jsonl", question_rows(50))
    shutil.copy(ROOT / "examples" / "gate.toml", tmp_path / "gate.toml")
    monkeypatch.setenv("LEAN_BASE_URL", f"{server.url}/v1")
    local = {"lean/NAME": "lean/bench", "openai/gpt-4.1": "simulated/generator"}
    began, codes, output = time.monotonic(), list[int](), ""
    for command in commands():
        arguments = [local.get(word, word) for word in command[1:]]
        # here the generator is simulated, and the server is taken for a real model
        arguments += ["--allow-simulated-inputs"] if "contexts=contexts.jsonl" in arguments else []
        result = holdfast_apart(*arguments, cwd=tmp_path)
        codes.append(result.returncode)
        output = result.stdout
        assert "Traceback" not in result.stderr
    assert codes[:-1] == [0] * 7
    assert codes[-1] in (0, 1, 4)
    assert re.search(r"^gate: (pass|fail|undecided) \(", output, re.MULTILINE)
    assert server.stats()["repeated"] == 0
    assert server.stats()["calls"] == 50 * 17
    assert time.monotonic() - began < 60 * MINUTES
