"""What a server refuses: left out where a study can do without it, else told with a remedy."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast.dialogue.probing import fault_of_all
from holdfast.models.server import ServerError
from holdfast.protocols.medfuzz.significance import permutation
from tests.faults import Fault, FaultyServer, faulty_server
from tests.studies import Done, holdfast

from .driving import MARK, TURNS, Study

NO_PASS = "A retry will not help: "


def attacked(*models: str, folder: Path, limit: int, more: tuple[str, ...] = ()) -> Done:
    """A run of MedFuzz."""
    return holdfast(
        "run", "medfuzz", *models, "--limit", str(limit), "--epochs", "1",
        "--log-dir", folder / "r", *more,
    )  # fmt: skip


def target(server: FaultyServer, provider: str = "lean") -> tuple[str, ...]:
    """The model under test on the server, and a simulated attacker."""
    return (
        "--model", f"{provider}/bench", "--model-base-url", server.api,
        "--model-role", "attacker=simulated/attacker",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_a_target_that_refuses_log_probabilities_is_asked_without(
    provider: str, tmp_path: Path
) -> None:
    more = ("-T", "attempts=1", "-T", "confidence=true")
    with faulty_server(Fault("no-logprobs")) as server:
        run = attacked(*target(server, provider), folder=tmp_path, limit=2, more=more)
        assert run.returncode == 0, run.stderr
        first = server.stats()
        assert first["repeated"] == 0
        assert first["attempts"] > first["finished"]
        second_run = attacked(*target(server, provider), folder=tmp_path, limit=2, more=more)
        assert second_run.returncode == 0
        assert server.stats() == first
    assert f"{provider}/bench rejects log-probabilities" in run.stdout


@pytest.mark.slow
def test_without_log_probabilities_the_permutation_test_uses_the_answers(tmp_path: Path) -> None:
    more = ("-T", "attempts=2", "-T", "tested=2", "-T", "samples=1")
    with faulty_server(Fault("no-logprobs")) as server:
        run = attacked(*target(server), folder=tmp_path, limit=12, more=more)
    assert run.returncode == 0, run.stderr
    rows = permutation(pl.read_parquet(tmp_path / "r" / "turns.parquet"))
    assert rows.height > 0
    assert set(rows["by"]) == {"sampling"}
    assert rows["p0"].null_count() == 0


@pytest.mark.slow
def test_an_attacker_that_refuses_a_schema_is_asked_without(tmp_path: Path) -> None:
    with faulty_server(Fault("no-schema")) as server:
        attacker = f"attacker={{model: openai/attacker, base_url: '{server.api}'}}"
        models = ("--model", "simulated/sycophant", "--model-role", attacker)
        run = attacked(*models, folder=tmp_path, limit=2, more=("-T", "attempts=1"))
        assert server.stats()["finished"] > 0
    assert run.returncode == 0, run.stderr
    assert "openai/attacker rejects JSON schemas" in run.stdout


def test_similar_refusals_of_other_things_drop_nothing(tmp_path: Path) -> None:
    more = ("-T", "attempts=1", "-T", "confidence=true")
    with faulty_server(Fault("logprobs-busy", attempts=1)) as server:
        run = attacked(*target(server), folder=tmp_path, limit=1, more=more)
    assert run.returncode == 0, run.stderr
    assert "rejects" not in run.stdout + run.stderr


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (
            "too-long",
            "The conversation is longer than the model's context. Serve the model with a longer",
        ),
        ("status-400", "The server rejects the request. Change the setting that it names"),
        ("status-401", "Give a key that the server accepts"),
        ("status-404", "Check the model's name and the base URL, which ends in /v1"),
    ],
)
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_lasting_refusals_are_reported_with_a_remedy(
    provider: str, kind: str, remedy: str, tmp_path: Path
) -> None:
    if (provider, kind) == ("openai", "too-long"):
        pytest.skip("Inspect makes a reply of it that was cut off")
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, provider=provider)
        run = study.run()
        assert run.returncode == 3
        last = run.stderr.strip().splitlines()[-1]
        assert NO_PASS + remedy in last
        assert "goes on from here" not in last
        assert last.endswith(
            "Finished work is kept, but the rest fails again until you change this."
        )
        assert server.stats()["faults"] == {kind: 3}

        server.set()
        assert study.outcome()["calls"] == 3
        assert server.stats()["repeated"] == 0


@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_a_missing_system_role_is_reported_before_the_study(provider: str, tmp_path: Path) -> None:
    with faulty_server(Fault("no-system")) as server:
        study = Study(server, tmp_path, provider=provider, n=1)
        run = study.run()
        assert run.returncode == 2
        (line,) = run.stderr.strip().splitlines()
        assert "accepts no system message" in line
        assert line.endswith("Give -T system_prompt=none.")
        assert server.stats()["attempts"] == 1
        assert study.outcome("-T", "system_prompt=none")["complete"]


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        *((message, "Give -T system_prompt=none") for message in (
            "System role not supported",
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            "Only user and assistant roles are supported!",
            "Conversation roles must alternate user/assistant/user/assistant/...",
            "Developer instruction is not enabled for models/gemma-3-27b-it",
            "`system` messages are not allowed",
        )),
        ("the system is not ready to support it", None),
    ],
)  # fmt: skip
def test_refused_system_messages_are_recognised(message: str, remedy: str | None) -> None:
    fault = fault_of_all(ServerError(400, message), "lean/m", None)
    assert (fault and fault[1]) == remedy


def test_equal_failures_are_reported_together(tmp_path: Path) -> None:
    with faulty_server(Fault("status-404", after=1)) as server:
        run = Study(server, tmp_path, n=1).run("--max-connections", "1")
    last: Any = run.stderr.strip().splitlines()[-1]
    assert last.count("HTTP 404") == 1
    assert f"and {TURNS - 1 - 3} more: " in last
