"""CONTRIBUTING.md: its worked examples run, and what it names exists."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
EXAMPLES = {
    title: body for title, body in re.findall(r"(?ms)^## (Add .+?)\n(.*?)(?=^## |\Z)", TEXT)
}
"""Section of each worked example."""

STEP = re.compile(
    r"(?ms)(?:(?P<how>At the end of|In a new file|[Ii]n) `(?P<file>[^`]+)`"
    r"(?:, below\s+`(?P<anchor>[^`]+)`)?:\n\n"
    r"```\w+\n(?P<content>.*?)^```)|^```console\n(?P<commands>.*?)^```"
)
"""A text to add, or commands to run."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what the examples change and use."""
    for part in ("src", "tests/fixtures"):
        shutil.copytree(ROOT / part, tmp_path / part)
    return tmp_path


def follow(section: str, clone: Path) -> str:
    """What the commands of an example print, once its texts are added."""
    output = ""
    for step in STEP.finditer(section):
        if step["commands"]:
            output += "".join(run(line, clone) for line in re.findall(r"(?m)^\$ (.+)$", step[0]))
        else:
            add(step, clone / step["file"])
    return output


def add(step: re.Match[str], file: Path) -> None:
    """Add a text where the page says."""
    if step["how"] == "In a new file":
        assert not file.exists()
        file.write_text(step["content"], "utf-8")
    elif step["how"] == "At the end of":
        file.write_text(file.read_text("utf-8") + step["content"], "utf-8")
    else:
        before, anchor, after = file.read_text("utf-8").partition(step["anchor"] + "\n")
        assert anchor, f"{file} has no {step['anchor']}"
        file.write_text(before + anchor + step["content"] + after, "utf-8")


def run(command: str, clone: Path) -> str:
    """What a command of the copy prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["sh", "-c", command], cwd=clone, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(clone / "src"), "PATH": path},
    )  # fmt: skip
    assert result.returncode == 0, f"{command}: {result.stderr}"
    return result.stdout


@pytest.mark.parametrize(
    ("title", "result"),
    [
        ("Add a technique", "fresh-eyes"),
        ("Add a table with its chart", "| double-check | 3 |"),
        ("Add a protocol", "restate-1"),
        ("Add a provider option", "lean/any"),
    ],
)
def test_a_worked_example_runs(title: str, result: str, clone: Path) -> None:
    assert result in follow(EXAMPLES[title], clone)


def test_every_example_is_run() -> None:
    assert len(EXAMPLES) == 4


def test_every_make_command_is_a_target() -> None:
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8")))
    commands = re.findall(r"(?m)^\$ make ([\w-]+)", TEXT)
    assert commands
    assert set(commands) <= targets


def test_files_named_in_the_page_exist() -> None:
    files = re.findall(r"`((?:src|tests|tools|docs)/[\w./-]+)`", TEXT)
    new_files = re.findall(r"In a new file `([^`]+)`", TEXT)
    assert [file for file in files if not (ROOT / file).exists()] == new_files


def test_the_table_of_packages_has_the_enforced_order() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    levels = {
        name.strip().removeprefix("holdfast."): number
        for number, layer in enumerate(layers)
        for name in layer.split("|")
    }
    packages = re.findall(r"(?m)^\| `(\w+)` \|", TEXT)
    assert {*packages} == {path.parent.name for path in ROOT.glob("src/holdfast/*/__init__.py")}
    assert [levels[name] for name in packages] == sorted(levels[name] for name in packages)
