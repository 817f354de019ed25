"""Whatever is typed, a command ends with one of its exit codes: no traceback, no hang, no half."""

import os
import shutil
from pathlib import Path

import pytest
from tests.cli.command_lines import (
    GOOD,
    TOO_LONG,
    Combination,
    combinations,
    fault,
    parameters,
    write_files,
    write_inputs,
)

NUMBER = int(os.environ.get("HOLDFAST_FUZZ", "120"))
"""Command lines that are tried; the nightly run tries 2,000."""

SEED = int(os.environ.get("HOLDFAST_FUZZ_SEED", "1"))

PART = 40
"""Command lines in one test, so that several processes share them."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    before = Path.cwd()
    os.chdir(folder)
    try:
        write_files(folder)
        write_inputs(folder)
    finally:
        os.chdir(before)
    return folder


def test_every_command_has_a_working_command_line() -> None:
    assert set(parameters()) == {*GOOD, *TOO_LONG}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(-(-NUMBER // PART)))
@pytest.mark.filterwarnings("ignore")
def test_no_command_line_ends_in_a_traceback(
    part: int, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    faults = []
    sampled_lines = list(combinations(NUMBER, SEED))[part * PART : (part + 1) * PART]
    for number, combination in enumerate(sampled_lines):
        folder = tmp_path / str(number)
        shutil.copytree(inputs, folder, symlinks=True)
        monkeypatch.chdir(folder)
        if message := fault(combination, folder):
            faults.append(f"{combination}: {message}")
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(folder)
    assert faults == []


CASES = {
    "a file that is not there": ["import", "/nonexistent.csv"],
    "a home that is not there": ["import", "~nosuchuser/x.csv", "--mapping", "mapping.toml"],
    "prices that are a folder": ["run", "--prices", "dir"],
    "prices that are empty": ["run", "--prices", "empty"],
    "prices that link to themselves": ["run", "--prices", "loop"],
    "prices nested 20,000 deep": ["run", "--prices", "deep.yaml"],
    "prices that are no numbers": ["run", "--prices", "nan.json"],
    "questions nested 20,000 deep": ["run", "--questions", "deep.json"],
    "techniques nested 20,000 deep": ["run", "-T", "challenges=deep.toml"],
    "a table that links to itself": ["table", "runs", "-o", "loop"],
    "rules nested 20,000 deep": ["gate", "runs", "--rules", "deep.toml"],
    "no connections": ["run", "--max-connections", "0"],
    "fewer than none": ["run", "--max-connections", "-1"],
    "more tests than there are atoms": ["power", "--tests", str(10**20)],
    "more rows than a table has": ["export", "runs", "--format", "csv", "--limit", str(10**20)],
    "an argument that is not the provider's": ["run", "-M", "config=1"],
    "a role with a number for a URL": [
        "run", "--model-role", "judge={model: simulated/judge, base_url: 3}",
    ],
    "a log dir of two lines": ["run", "--log-dir", "a\nb"],
    "a log dir without a name": ["run", "--log-dir", ""],
    "the demo in a log dir of two lines": ["demo", "--log-dir", "a\nb"],
    "a log dir with a name too long": ["run", "--log-dir", "x" * 300],
    "a log dir with a name too long, of a verdict": [
        "run", "--until", "rules.toml", "--log-dir", "x" * 300,
    ],
    "a log dir of no known kind": ["run", "--log-dir", "nosuch://x/y"],
    "a log dir that cannot be reached": ["table", "https://127.0.0.1:9/v1"],
    "a temperature that is no number": ["run", "--generate-config", "{temperature: nan}"],
    "an endless temperature": ["run", "--generate-config", "{temperature: inf}"],
    "a temperature below nothing": ["run", "--generate-config", "{temperature: -1}"],
    "an endless budget": ["run", "--cost-limit", "inf"],
    "a seed that no table holds": ["run", "--seed", str(2**70)],
    "processes without end": ["run", "--shards", str(2**63)],
    "figures where a file is": ["report", "runs", "--figures", "file"],
    "an argument nested in nothing": ["run", "-M", "x={? : 1, config: 2}", "-M", "api_token=x"],
    "one of two files that cannot be written": [
        "gate", "runs", "--rules", "rules.toml", "--junit", "gate.xml", "--summary", "dir",
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.rest_slow
def test_unusable_input_ends_in_one_line(
    case: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, *more = CASES[case]
    good = GOOD.get(command, (command,))
    arguments = (*good, *more) if command in ("run", "power") else (command, *more)
    folder = tmp_path / "here"
    shutil.copytree(inputs, folder, symlinks=True)
    monkeypatch.chdir(folder)
    assert fault(Combination(command, tuple(more), arguments), folder, code=2) == ""


def test_missing_ray_leaves_no_log_dir(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.running.shards.find_spec", lambda _: None)
    folder = tmp_path / "here"
    shutil.copytree(inputs, folder, symlinks=True)
    monkeypatch.chdir(folder)
    more = ("--shards", "2", "--ray", "local", "--log-dir", "elsewhere")
    assert fault(Combination("run", more, (*GOOD["run"], *more)), folder, code=2) == ""
    assert not (folder / "elsewhere").exists()
