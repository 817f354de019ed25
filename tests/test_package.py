"""The package as others install and load it."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import get_model

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
def test_inspects_own_command_line_finds_the_task_and_the_models(tmp_path: Path) -> None:
    inspect = Path(sys.executable).with_name("inspect")
    run(
        inspect, "eval", "holdfast/followup", "--model", "simulated/sycophant", "--limit", "5",
        "--display", "plain", "--log-dir", "logs", cwd=tmp_path,
    )  # fmt: skip
    (info,) = list_eval_logs(str(tmp_path / "logs"))
    log = read_eval_log(info)
    assert log.status == "success"
    assert len(log.samples or []) == 5


@pytest.mark.slow
def test_bad_input_under_inspects_command_line_shows_its_message(tmp_path: Path) -> None:
    result = subprocess.run(
        [
            Path(sys.executable).with_name("inspect"), "eval", "holdfast/followup",
            "--model", "simulated/sycophant", "-T", "techniques=inc_leter,rag-style",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert result.returncode != 0
    assert "unknown technique 'inc_leter'" in result.stdout + result.stderr


@pytest.mark.parametrize("name", ["simulated/steadfast", "lexical/overlap"])
def test_every_registered_model_resolves(name: str) -> None:
    assert str(get_model(name, memoize=False)) == name


@pytest.mark.slow
def test_the_wheel_runs_the_demo_in_a_clean_environment(
    tmp_path: Path,
) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", cwd=ROOT)
    (wheel,) = (tmp_path / "dist").glob("holdfast-*.whl")
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    bare = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HOLDFAST_CACHE_DIR")}
    output = run(python.with_name("holdfast"), "demo", cwd=elsewhere, env=bare)
    assert "SIMULATED" in output
    assert (elsewhere / "runs" / "demo" / "turns.parquet").is_file()
