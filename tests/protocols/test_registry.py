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

import holdfast
from holdfast.errors import InputError
from holdfast.protocols.installed import GENERATIONS, PROTOCOLS, Registered
from holdfast.results.turns import turns_table

RESTATING = Path(__file__).parents[1] / "fixtures" / "restating" / "restating.py"


@pytest.fixture
def package_environment(tmp_path: Path) -> dict[str, str]:
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


def test_our_protocols_keep_their_order() -> None:
    assert [*PROTOCOLS][:4] == ["followup", "single-turn", "stick-or-switch", "medfuzz"]
    assert [*GENERATIONS] == ["contexts", "distractors", "labels", "plausibility"]
    for table in (PROTOCOLS, GENERATIONS):
        assert all(entry.settings.__doc__ for entry in table.own())


def test_protocols_are_loaded_on_demand() -> None:
    table = Registered({"none": ".no_such_module"})
    assert "none" in table
    assert len(table) == 1
    with pytest.raises(InputError, match=r"no_such_module', which does not exist"):
        _ = table["none"]


def test_a_seed_that_no_protocol_takes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PROTOCOLS, "_of_files", {})  # other tests do not know the file
    text = RESTATING.read_text("utf-8").replace(", config=deterministic", "")
    text = re.sub(r"(?m)^    seed: int = .*\n", "", text)
    file = tmp_path / "unseeded.py"
    file.write_text(text, "utf-8")
    model = "simulated/sycophant"
    assert holdfast.plan(str(file), model, limit=1).table["generations"].to_list() == [2]
    with pytest.raises(InputError, match="taken by no protocol") as refused:
        holdfast.plan(str(file), model, limit=1, seed=7)
    assert refused.value.field == "--seed"


@pytest.mark.slow
def test_a_protocol_of_another_package_runs(
    tmp_path: Path, package_environment: dict[str, str]
) -> None:
    study = ("restating", "--model", "simulated/sycophant", "--limit", "3", "-T", "times=2")
    plan = holdfast_apart(
        "run", "--dry-run", *study, "--json", env=package_environment, cwd=tmp_path
    )
    assert plan.returncode == 0, plan.stderr
    (row,) = json.loads(plan.stdout)
    assert (row["protocol"], row["questions"], row["generations"]) == ("restating", 3, 9)
    run = holdfast_apart("run", *study, "--json", env=package_environment, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    turns = turns_table([str(tmp_path / "runs")])
    assert set(turns["protocol"]) == {"restating"}
    assert turns.height == 9
    again = holdfast_apart("run", *study, "--json", env=package_environment, cwd=tmp_path)
    assert json.loads(again.stdout)["calls"] == 0


@pytest.fixture
def run_command(tmp_path: Path, package_environment: dict[str, str]) -> Callable[..., str]:
    """A study of the other package's protocol, and commands on it that succeed."""
    run = holdfast_apart(
        "run", "restating", "--model", "simulated/sycophant", "--limit", "5", "--json",
        env=package_environment, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr

    def command(*arguments: str, code: int = 0) -> str:
        result = holdfast_apart(*arguments, env=package_environment, cwd=tmp_path)
        assert result.returncode == code, result.stderr
        return result.stdout

    return command


@pytest.mark.slow
def test_its_table_figure_section_and_gate_follow_from_its_declaration(
    tmp_path: Path, run_command: Callable[..., str]
) -> None:
    (row,) = json.loads(run_command("table", "runs", "--table", "restated", "--format", "json"))
    assert (row["path"], row["n"]) == ("restate-1", 5)
    assert row["low"] <= row["rate"] <= row["high"]
    assert "restate-1" in run_command("table", "runs", "--table", "restated")
    assert "<svg" in run_command("table", "runs", "--table", "restated", "--format", "svg")
    headline = run_command("report", "runs", "-o", "r.html")
    sentence = f"keeps {100 * (1 - row['rate']):.1f}% of its answers when asked again (95% interval"
    assert sentence in headline
    assert "; 5 answers)" in headline
    page = unfolded((tmp_path / "r.html").read_text())
    assert "Does the answer change when it is merely asked for again?" in page
    assert 'id="restated"' in page
    links = re.findall(r'href="(#conversations\?[^"]*)"[^>]*>5<', page)
    assert any("protocol=restating" in link and "path=restate-1" in link for link in links)
    (tmp_path / "gate.toml").write_text("[[rule]]\nmax_restated = 1.0\n")
    assert "flips when asked again" in run_command("gate", "runs", "--rules", "gate.toml")


@pytest.mark.slow
def test_it_is_an_inspect_task_too(tmp_path: Path, package_environment: dict[str, str]) -> None:
    inspect = Path(HOLDFAST).with_name("inspect")
    result = subprocess.run(
        [inspect, "eval", "site/restating.py@restating", "--model", "simulated/sycophant",
         "--limit", "2", "--log-dir", "logs"],
        env=package_environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert turns_table([str(tmp_path / "logs")]).height == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["restating", "-T", "times=0"], "times is 0"),
        (["restating", "-T", "tims=2"], "Did you mean 'times'?"),
        (["restatin"], "Did you mean 'restating'?"),
        (["broken"], "'broken' of no_such_module:PROTOCOL cannot be loaded"),
    ],
)
def test_unusable_protocols_are_reported(
    arguments: list[str], message: str, tmp_path: Path, package_environment: dict[str, str]
) -> None:
    result = holdfast_apart(
        "run",
        "--dry-run",
        *arguments,
        "--model",
        "simulated/sycophant",
        env=package_environment,
        cwd=tmp_path,
    )
    assert result.returncode == 2
    assert message in result.stderr


@pytest.mark.slow
def test_its_page_of_the_docs_follows_from_its_declaration(
    tmp_path: Path, package_environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "holdfast.reference", "restating"]
    page = subprocess.run(
        command, env=package_environment, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert page.startswith("## restating\n\nRestating: is the answer the same")
    assert "| `times` | `1` | how often the answer is asked for again |" in page
    assert "| `restated` | Does the answer change" in page
    assert "`max_restated`" in page
