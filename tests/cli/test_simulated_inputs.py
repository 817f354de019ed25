"""What says nothing of medicine reaches a real model only where the user insists, and is marked."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.server import Server
from tests.studies import holdfast, question_rows, write_jsonl

import holdfast as api
from holdfast.errors import InputError

ALLOWED = "--allow-simulated-inputs"
MARKED = "lean/bench [simulated contexts]"
SMALL = ("-T", "techniques=rethink,rag-style", "-T", "controls=false", "--limit", "3")


def at(server: Server) -> list[str]:
    return ["--model", "lean/bench", "--model-base-url", f"{server.url}/v1"]


def asked(server: Server) -> int:
    return int(server.stats()["calls"])


def made(what: str = "contexts") -> str:
    """A file that a simulated generator has written."""
    done = holdfast(
        "generate",
        what,
        "--model",
        "simulated/generator",
        "--limit",
        "3",
        "-o",
        f"{what}.jsonl",
        "--log-dir",
        "prepared",
    )
    assert done.returncode == 0, done.stderr
    return f"{what}.jsonl"


INPUTS = {
    "a file": ("followup", ("-T", "contexts=contexts.jsonl")),
    "a file without a model": ("followup", ("-T", "contexts=bare.jsonl")),
    "placeholders": ("followup", ("-T", "contexts=synthetic")),
    "a generator": ("followup", ("--model-role", "generator=simulated/generator")),
    "wrong options": ("single-turn", ("-T", "distractors=distractors.jsonl")),
}


@pytest.mark.parametrize("case", INPUTS)
@pytest.mark.parametrize("way", ["", "--dry-run", "--until"])
def test_simulated_inputs_are_refused_for_a_real_model_before_any_call(
    case: str, way: str, server: Server
) -> None:
    protocol, inputs = INPUTS[case]
    made("distractors" if protocol == "single-turn" else "contexts")
    if "contexts=bare.jsonl" in inputs:
        rows = map(json.loads, Path("contexts.jsonl").read_text("utf-8").splitlines())
        write_jsonl(
            Path("bare.jsonl"), [{k: v for k, v in r.items() if k != "model"} for r in rows]
        )
    about = 'technique = "rag-style"\n' if protocol == "followup" else ""
    Path("rules.toml").write_text(f"[[rule]]\n{about}min_accuracy = 0.5\n", "utf-8")
    more = {"": (), "--until": (way, "rules.toml")}.get(way, (way,))
    done = holdfast("run", protocol, *more, *at(server), *inputs, "--limit", "3")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.strip().splitlines()
    assert "'lean/bench'" in line
    assert "--model-role generator=MODEL" in line
    assert ALLOWED in line
    assert asked(server) == 0
    assert not Path("runs").exists()


@pytest.mark.parametrize("call", [api.run, api.plan])
def test_python_refuses_them_too(call: Any, server: Server) -> None:
    options: dict[str, Any] = {
        "model_base_url": f"{server.url}/v1",
        "task_args": {"contexts": "synthetic"},
        "limit": 3,
    }
    with pytest.raises(InputError, match="allow-simulated-inputs"):
        call("followup", "lean/bench", **options)
    assert asked(server) == 0
    if call is api.plan:
        call("followup", "lean/bench", **options, allow_simulated_inputs=True)


@pytest.mark.parametrize(
    "more",
    [
        ("--model", "simulated/sycophant", "-T", "contexts=synthetic"),
        ("-T", "contexts=synthetic", "-T", "techniques=rethink"),
        ("-T", "contexts=auto"),
    ],
)
def test_other_inputs_and_models_are_not_concerned(more: tuple[str, ...], server: Server) -> None:
    model = () if "--model" in more else at(server)
    done = holdfast("run", "followup", *model, "-T", "controls=false", "--limit", "1", *more)
    assert done.returncode == 0, done.stderr
    if model:
        assert "SIMULATED" not in done.stdout


@pytest.fixture
def runs(server: Server) -> str:
    """A log dir of a real model that was told simulated contexts."""
    done = holdfast(
        "run",
        "followup",
        *at(server),
        "-T",
        f"contexts={made()}",
        *SMALL,
        ALLOWED,
        "--log-dir",
        "runs",
    )
    assert done.returncode == 0, done.stderr
    assert "[SIMULATED" in done.stdout
    assert asked(server)
    return "runs"


@pytest.mark.slow
def test_what_rests_on_them_is_marked_wherever_it_appears(runs: str) -> None:
    assert set(pl.read_parquet("runs/turns.parquet")["model"]) == {MARKED}
    rules = "[[rule]]\nmin_accuracy = 0.01\n"
    Path("rules.toml").write_text(rules, "utf-8")
    holdfast("gate", runs, "--rules", "rules.toml", "--junit", "gate.xml", "--summary", "gate.md")
    holdfast("report", runs, "-o", "report.html")
    holdfast("report", runs, "--leaderboard", "site")
    outputs = {
        "a table": holdfast("table", runs, "--format", "md").stdout,
        "csv": holdfast("table", runs, "--format", "csv").stdout,
        "json": holdfast("table", runs, "--format", "json").stdout,
        "a figure": holdfast("table", runs, "--format", "vega").stdout,
        "a gate": holdfast("gate", runs, "--rules", "rules.toml").stdout,
        "JUnit": Path("gate.xml").read_text("utf-8"),
        "a summary": Path("gate.md").read_text("utf-8"),
        "a report": Path("report.html").read_text("utf-8"),
        "a leaderboard": Path("site/index.html").read_text("utf-8"),
    }
    other = holdfast(
        "run", "followup", "--model", "simulated/steadfast", *SMALL, "--log-dir", "other"
    )
    assert other.returncode == 0, other.stderr
    outputs["a comparison"] = holdfast("compare", runs, "other").stdout
    unmarked = [name for name, text in outputs.items() if "simulated contexts" not in text]
    silent = [name for name, text in outputs.items() if "simulated" not in text.lower()]
    assert (unmarked, silent) == ([], [])
    capitals = [name for name, text in outputs.items() if "SIMULATED" not in text]
    assert set(capitals) <= {"csv", "json", "JUnit", "a gate"}  # those name the model


def test_the_same_command_goes_on_and_another_reading_keeps_the_mark(
    runs: str, server: Server
) -> None:
    before = asked(server)
    again = holdfast(
        "run", "followup", *at(server), "-T", "contexts=contexts.jsonl", *SMALL, ALLOWED
    )
    assert again.returncode == 0, again.stderr
    assert asked(server) == before
    done = holdfast("score", runs, "--json")
    assert [run["model"] for run in json.loads(done.stdout)["runs"]] == [MARKED]
    assert set(pl.read_parquet("runs/turns.parquet")["model"]) == {MARKED}


def test_labels_of_a_simulated_classifier_are_refused_for_a_real_model(server: Server) -> None:
    done = holdfast(
        "generate",
        "labels",
        "--model",
        "simulated/classifier",
        "-o",
        "systems.jsonl",
        "--log-dir",
        "prepared",
    )
    assert done.returncode == 0, done.stderr
    labelled = ("--labels", "systems.jsonl", "-T", "techniques=rethink", "--limit", "1")
    refused = holdfast("run", "followup", *at(server), *labelled)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "generate labels --model MODEL'" in refused.stderr
    assert asked(server) == 0
    assert not Path("runs").exists()
    assert holdfast("run", "followup", "--model", "simulated/sycophant", *labelled).returncode == 0


def test_a_real_file_with_simulated_rows_for_other_questions_is_used(server: Server) -> None:
    made()
    questions = write_jsonl(Path("q.jsonl"), question_rows(1))
    row = {"question": "q0", "misleading_context": "It misleads.", "model": "openai/gpt-4.1"}
    with Path("contexts.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    done = holdfast(
        "run",
        "--dry-run",
        "followup",
        *at(server),
        "--questions",
        questions,
        "-T",
        "contexts=contexts.jsonl",
    )
    assert done.returncode == 0, done.stderr


def test_a_run_that_grows_by_simulated_contexts_is_marked_as_a_whole(server: Server) -> None:
    questions = ("--questions", write_jsonl(Path("q.jsonl"), question_rows(2)), *SMALL)
    assert holdfast("run", "followup", *at(server), *questions).returncode == 0
    assert set(pl.read_parquet("runs/turns.parquet")["model"]) == {"lean/bench"}
    more = ("-T", "contexts=synthetic", ALLOWED)
    assert holdfast("run", "followup", *at(server), *questions, *more).returncode == 0
    turns = pl.read_parquet("runs/turns.parquet")
    assert turns["run"].n_unique() == 1
    assert set(turns["model"]) == {MARKED}
