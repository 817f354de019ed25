"""CONTRIBUTING.md: what it names exists, and what it tells you to do works."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import inspect_ai
import pytest

from holdfast.cli.app import app
from tests.studies import holdfast_apart

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FENCES = re.findall(r"(?ms)^```console\n(.+?)^```", TEXT)
PROSE = re.sub(r"(?ms)^```.+?^```", "", TEXT)
CODE = sorted({" ".join(code.split()) for code in re.findall(r"`([^`]+)`", PROSE)})
PLACED = re.findall(r"`(\w+)`\s+(?:\(|in\s+)`([\w/.-]+\.\w+)`", PROSE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BANNED = ("utils", "helpers", "common", "misc")


@cache
def sources() -> str:
    """The text of every module."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py")))


def defines(text: str, name: str) -> bool:
    """Whether a module's text defines a name."""
    pattern = rf"^ *(?:(?:async )?def|class) {name}\b|^{name}\b[^=\n]*="
    return re.search(pattern, text, re.M) is not None


def exists(path: str) -> bool:
    """Whether a path is there, from the root or within the package; FAMILY stands for any name."""
    pattern = re.sub(r"\b[A-Z]{3,}(?=\.)", "*", path.rstrip("/"))
    beneath = [] if "/" in path else [*SOURCE.rglob(pattern)]
    return bool(beneath) or any(any(folder.glob(pattern)) for folder in (ROOT, SOURCE))


def targets() -> set[str]:
    """What make can be told to do."""
    return set(re.findall(r"(?m)^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8")))


def known(code: str) -> bool:
    """Whether what stands in backticks is there."""
    name = code.removesuffix("()")
    words = [word for word in code.split() if not re.match(r"\w+=|python$", word)]
    match words:
        case ["make", target]:
            return target in targets()
        case ["holdfast", command]:
            return command in {one.name or one.callback.__name__ for one in app.registered_commands
                               if one.callback}  # fmt: skip
        case ["-m", "'not", _]:
            marker = words[2].strip("'")
            markers = PROJECT["tool"]["pytest"]["ini_options"]["markers"]
            return any(one.startswith(marker) for one in markers)
        case [path] if re.search(r"[/.]", path):
            return exists(path)
        case _ if code in BANNED:
            return not [*SOURCE.rglob(f"{code}.py")]
    return exists(name) or defines(sources(), name) or hasattr(inspect_ai, name)


@pytest.mark.parametrize("code", CODE)
def test_what_stands_in_backticks_exists(code: str) -> None:
    assert known(code)


@pytest.mark.parametrize(("name", "path"), PLACED)
def test_a_name_stands_in_the_file_that_is_named_beside_it(name: str, path: str) -> None:
    (file,) = [folder / path for folder in (ROOT, SOURCE) if (folder / path).is_file()]
    assert defines(file.read_text(encoding="utf-8"), name)


def test_every_command_is_a_target_of_make() -> None:
    commands = [line for fence in FENCES for line in re.findall(r"(?m)^\$ (.+?)(?: +#|$)", fence)]
    assert commands
    for command in commands:
        make, *words = command.split()
        assert make == "make"
        assert next(word for word in words if "=" not in word) in targets()


def test_the_table_of_packages_is_the_order_that_is_checked() -> None:
    named = re.findall(r"(?m)^\| `(\w+)` \|", TEXT)
    (contract,) = [one for one in PROJECT["tool"]["importlinter"]["contracts"]
                   if one["type"] == "layers"]  # fmt: skip
    layers = [[name.strip().removeprefix("holdfast.") for name in layer.split("|")]
              for layer in contract["layers"]]  # fmt: skip
    place = {name: number for number, layer in enumerate(layers) for name in layer}
    assert {*named} == {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert [place[name] for name in named] == sorted(place[name] for name in named)


# --- Adding a protocol ---


@pytest.fixture
def added(tmp_path: Path) -> Path:
    """A copy of the package to which the protocol of the fixture is added."""
    package = tmp_path / "source" / "holdfast"
    shutil.copytree(SOURCE, package)
    folder = package / "protocols" / "restating"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Restating."""\n')
    shutil.copy(ROOT / "tests/fixtures/restating/restating.py", folder / "protocol.py")
    module = '"holdfast.protocols.restating.protocol",\n'
    _add(package, "PROTOCOLS = {\n", f'    "restating": {module}')
    _add(
        package, "TABLES = {\n", '    "restated": "holdfast.protocols.restating.protocol:TABLE",\n'
    )
    return package


def _add(package: Path, after: str, line: str) -> None:
    """Add a line to a constant, in the file that CONTRIBUTING names."""
    file = package / dict(PLACED)[after.split()[0]]
    text = file.read_text(encoding="utf-8")
    assert text.count(f"\n{after}") == 1
    file.write_text(text.replace(f"\n{after}", f"\n{after}{line}"), encoding="utf-8")


def with_package(package: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command of the copy."""
    env = {**os.environ, "PYTHONPATH": str(package.parent)}
    return holdfast_apart(*arguments, env=env, cwd=package.parents[1])


RUN = ("run", "restating", "--model", "simulated/sycophant", "--limit", "3")


@pytest.mark.slow
def test_a_protocol_that_is_added_as_told_runs_and_is_reported(added: Path) -> None:
    run = with_package(added, *RUN)
    assert run.returncode == 0, run.stderr
    assert "restating" in run.stdout
    table = with_package(added, "table", "runs", "--table", "restated", "--format", "json")
    assert table.returncode == 0, table.stderr
    assert [row["n"] for row in json.loads(table.stdout)] == [3]
    report = with_package(added, "report", "runs", "--output", "r.html")
    assert report.returncode == 0, report.stderr
    assert "when asked again" in report.stdout
    assert 'id="restated"' in (added.parents[1] / "r.html").read_text(encoding="utf-8")


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("after", "line", "message"),
    [
        ("TABLES = {\n", '    "misplaced": "holdfast.protocols.restating.mesures:TABLE",\n',
         "no module 'holdfast.protocols.restating.mesures'"),
        ("PROTOCOLS = {\n", '    "misnamed": "holdfast.protocols.misnamed.protocol",\n',
         "no module 'holdfast.protocols.misnamed"),
        ("PROTOCOLS = {\n", '    "bare": "holdfast.protocols.restating",\n', "has no PROTOCOL"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_before_the_first_call(
    added: Path, after: str, line: str, message: str
) -> None:
    _add(added, after, line)
    run = with_package(added, *RUN)
    assert run.returncode == 2, run.stderr
    assert message in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert not (added.parents[1] / "runs").exists()
