"""Protocols are found by name, those of other packages by their entry point."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.report.unfolding import unfolded
from tests.studies import HOLDFAST, holdfast_apart

from holdfast.errors import InputError
from holdfast.protocols.installed import GENERATIONS, PROTOCOLS, Registered
from holdfast.results.turns import turns_table

RESTATING = Path(__file__).parents[1] / "fixtures" / "restating" / "restating.py"


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a command beside which a package brings two protocols, one broken."""
    site = tmp_path / "site"
    info = site / "restating-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(RESTATING, site)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: restating\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[holdfast.protocols]\nrestating = restating:PROTOCOL\nbroken = no_such_module:PROTOCOL\n"
    )
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def test_ours_are_known_in_the_order_in_which_they_are_named() -> None:
    assert [*PROTOCOLS][:4] == ["followup", "single-turn", "stick-or-switch", "medfuzz"]
    assert [*GENERATIONS] == ["contexts", "distractors", "labels", "plausibility"]
    for table in (PROTOCOLS, GENERATIONS):
        assert all(known.settings.__doc__ for known in table.own())


def test_a_protocol_is_loaded_when_it_is_asked_for() -> None:
    table = Registered({"none": ".no_such_module"})
    assert "none" in table
    assert len(table) == 1
    with pytest.raises(InputError, match=r"no_such_module', which does not exist"):
        _ = table["none"]


@pytest.mark.slow
def test_a_protocol_of_another_package_is_planned_run_and_gone_on_with(
    tmp_path: Path, installed: dict[str, str]
) -> None:
    asked = ("restating", "--model", "simulated/sycophant", "--limit", "3", "-T", "times=2")
    plan = holdfast_apart("run", "--dry-run", *asked, "--json", env=installed, cwd=tmp_path)
    assert plan.returncode == 0, plan.stderr
    (row,) = json.loads(plan.stdout)
    assert (row["protocol"], row["questions"], row["generations"]) == ("restating", 3, 9)
    run = holdfast_apart("run", *asked, "--json", env=installed, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    turns = turns_table([str(tmp_path / "runs")])
    assert set(turns["protocol"]) == {"restating"}
    assert turns.height == 9
    again = holdfast_apart("run", *asked, "--json", env=installed, cwd=tmp_path)
    assert json.loads(again.stdout)["calls"] == 0


@pytest.fixture
def restated(tmp_path: Path, installed: dict[str, str]) -> Callable[..., str]:
    """A study of the other package's protocol, and commands on it that succeed."""
    run = holdfast_apart(
        "run", "restating", "--model", "simulated/sycophant", "--limit", "5", "--json",
        env=installed, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr

    def command(*arguments: str, code: int = 0) -> str:
        done = holdfast_apart(*arguments, env=installed, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done.stdout

    return command


@pytest.mark.slow
def test_its_table_figure_section_and_gate_follow_from_its_declaration(
    tmp_path: Path, restated: Callable[..., str]
) -> None:
    (row,) = json.loads(restated("table", "runs", "--table", "restated", "--format", "json"))
    assert (row["path"], row["n"]) == ("restate-1", 5)
    assert row["low"] <= row["rate"] <= row["high"]
    assert "restate-1" in restated("table", "runs", "--table", "restated")
    assert "<svg" in restated("table", "runs", "--table", "restated", "--format", "svg")
    opened = restated("report", "runs", "-o", "r.html")
    kept = f"keeps {100 * (1 - row['rate']):.1f}% of its answers when asked again (95% interval"
    assert kept in opened
    assert "; 5 answers)" in opened
    page = unfolded((tmp_path / "r.html").read_text())
    assert "Does the answer change when it is merely asked for again?" in page
    assert 'id="restated"' in page
    links = re.findall(r'href="(#conversations\?[^"]*)"[^>]*>5<', page)
    assert any("protocol=restating" in link and "path=restate-1" in link for link in links)
    (tmp_path / "gate.toml").write_text("[[rule]]\nmax_restated = 1.0\n")
    assert "flips when asked again" in restated("gate", "runs", "--rules", "gate.toml")


@pytest.mark.slow
def test_it_is_a_task_of_the_framework_too(tmp_path: Path, installed: dict[str, str]) -> None:
    inspect = Path(HOLDFAST).with_name("inspect")
    done = subprocess.run(
        [inspect, "eval", "site/restating.py@restating", "--model", "simulated/sycophant",
         "--limit", "2", "--log-dir", "logs"],
        env=installed, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert turns_table([str(tmp_path / "logs")]).height == 4


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["restating", "-T", "times=0"], "times is 0"),
        (["restating", "-T", "tims=2"], "Did you mean 'times'?"),
        (["restatin"], "Did you mean 'restating'?"),
        (["broken"], "'broken' of no_such_module:PROTOCOL cannot be loaded"),
    ],
)
def test_what_cannot_be_run_is_told(
    asked: list[str], message: str, tmp_path: Path, installed: dict[str, str]
) -> None:
    done = holdfast_apart(
        "run", "--dry-run", *asked, "--model", "simulated/sycophant", env=installed, cwd=tmp_path
    )
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.slow
def test_its_page_of_the_docs_follows_from_its_declaration(
    tmp_path: Path, installed: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "holdfast.reference", "restating"]
    page = subprocess.run(
        command, env=installed, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert page.startswith("## restating\n\nRestating: is the answer the same")
    assert "| `times` | `1` | how often the answer is asked for again |" in page
    assert "| `restated` | Does the answer change" in page
    assert "`max_restated`" in page
