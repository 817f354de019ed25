"""Starting: help, bad usage and a table that is there import nothing slow."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.studies import holdfast

SLOW = ("inspect_ai", "polars", "numpy", "openai", "aiohttp", "fsspec", "altair")

USES = {
    "help": ["--help"],
    "help of run": ["run", "--help"],
    "help of list": ["list", "--help"],
    "help of generate": ["generate", "contexts", "--help"],
    "help of check": ["check", "--help"],
    "version": ["--version"],
    "no such option": ["run", "followup", "--nope"],
    "a value out of range": ["run", "followup", "--max-connections", "0"],
    "no argument": ["table"],
}


def loaded(*arguments: str) -> set[str]:
    """Top-level packages that a command imports."""
    code = (
        "import json, sys\n"
        "from holdfast.cli.main import main\n"
        f"sys.argv = ['holdfast', *{list(arguments)!r}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('\\n' + json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=120, capture_output=True, text=True
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


@pytest.mark.rest_slow
@pytest.mark.parametrize("use", USES)
def test_help_and_bad_usage_start_fast(use: str) -> None:
    assert not loaded(*USES[use]) & set(SLOW)


@pytest.mark.slow
def test_an_existing_table_is_read_without_inspect(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    run = holdfast("run", "followup", "--model", "simulated/sycophant", "--limit", "2",
                   "-T", "techniques=rethink", "--log-dir", runs)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert not loaded("table", str(runs)) & {"inspect_ai", "openai", "aiohttp", "fsspec", "altair"}
    by_table = holdfast("table", runs, "--format", "json").stdout

    # a log that has changed since makes the table stale: the logs count
    (log,) = runs.glob("*.eval")
    shutil.move(log, log.with_name(f"later-{log.name}"))
    assert "inspect_ai" in loaded("table", str(runs))
    assert holdfast("table", runs, "--format", "json").stdout == by_table


def test_the_version_is_that_of_the_package() -> None:
    result = holdfast("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("holdfast 0.")


def test_bad_usage_ends_in_one_line() -> None:
    for arguments in (["run"], ["run", "--nope"], ["table"], ["nosuch"]):
        result = holdfast(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        (line,) = result.stderr.splitlines()
        assert line.startswith("holdfast: ")
        assert "--help'" in line


def test_the_help_of_run_has_at_most_23_options_in_five_groups() -> None:
    text = holdfast("run", "--help").stdout
    assert len(re.findall(r"^  -", text, re.M)) <= 23
    headings = re.findall(r"^(\w+):$", text, re.M)
    assert headings == ["Arguments", "Model", "Questions", "Protocol", "Budget", "Output"]
    assert not re.findall(r"\d{8}", text)  # a bound that nobody meets
