"""What says nothing of medicine reaches a real model only where the user insists, and is marked."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.server import Server
from tests.cli.commands import facts_of, json_lines, lacking, refusal, study_of
from tests.studies import holdfast, question_rows, write_jsonl

import holdfast as api
from holdfast.errors import InputError

ALLOW = "--allow-simulated-inputs"
MARK = "lean/bench [simulated contexts]"
SMALL = ("-T", "techniques=rethink,rag-style", "-T", "controls=false", "--limit", "3")


def at(server: Server) -> list[str]:
    return ["--model", "lean/bench", "--model-base-url", f"{server.url}/v1"]


def generate(kind: str = "contexts", model: str = "generator") -> str:
    """A file that a simulated model has written."""
    facts_of("generate", kind, "--model", f"simulated/{model}", "--limit", "3",
             "-o", f"{kind}.jsonl", "--log-dir", "prepared")  # fmt: skip
    return f"{kind}.jsonl"


INPUTS = {
    "a file": ("followup", ("-T", "contexts=contexts.jsonl")),
    "a file without a model": ("followup", ("-T", "contexts=bare.jsonl")),
    "placeholders": ("followup", ("-T", "contexts=synthetic")),
    "a generator": ("followup", ("--model-role", "generator=simulated/generator")),
    "wrong options": ("single-turn", ("-T", "distractors=distractors.jsonl")),
    "labels": ("followup", ("--labels", "labels.jsonl", "-T", "techniques=rethink")),
}


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", INPUTS)
def test_simulated_inputs_are_refused_for_a_real_model(name: str, server: Server) -> None:
    protocol, inputs = INPUTS[name]
    generate("distractors")
    generate("labels", "classifier")
    rows = json_lines(Path(generate()))
    write_jsonl(Path("bare.jsonl"), [{k: v for k, v in r.items() if k != "model"} for r in rows])
    about = 'technique = "rag-style"\n' if protocol == "followup" else ""
    Path("rules.toml").write_text(f"[[rule]]\n{about}min_accuracy = 0.5\n", "utf-8")
    ways = ((),) if name == "labels" else ((), ("--dry-run",), ("--until", "rules.toml"))
    for way in ways:
        line = refusal("run", protocol, *way, *at(server), *inputs, "--limit", "3")
        words = ["generate labels"] if name == "labels" else ["'lean/bench'", ALLOW]
        assert lacking([*words, "MODEL"], line) == []
    assert server.stats()["calls"] == 0
    if name == "labels":
        facts_of("run", protocol, "--model", "simulated/sycophant", *inputs, "--limit", "1")


@pytest.mark.parametrize("call", [api.run, api.plan])
def test_python_refuses_simulated_inputs_too(call: Any, server: Server) -> None:
    options: dict[str, Any] = {
        "model_base_url": f"{server.url}/v1",
        "task_args": {"contexts": "synthetic"},
        "limit": 3,
    }
    with pytest.raises(InputError, match="allow-simulated-inputs"):
        call("followup", "lean/bench", **options)
    assert server.stats()["calls"] == 0
    if call is api.plan:
        call("followup", "lean/bench", **options, allow_simulated_inputs=True)


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    "more",
    [
        ("--model", "simulated/sycophant", "-T", "contexts=synthetic"),
        ("-T", "contexts=synthetic", "-T", "techniques=rethink"),
        ("-T", "contexts=auto"),
        ("-T", "contexts=contexts.jsonl", "--questions", "q.jsonl"),
    ],
)
def test_inputs_for_simulated_models_are_allowed(more: tuple[str, ...], server: Server) -> None:
    questions = write_jsonl(Path("q.jsonl"), question_rows(1))
    if questions in more:  # the simulated rows are for other questions
        row = {"question": "q0", "misleading_context": "It misleads.", "model": "openai/gpt-4.1"}
        write_jsonl(Path("contexts.jsonl"), [*json_lines(Path(generate())), row])
    model = () if "--model" in more else at(server)
    run = holdfast("run", "followup", *model, "-T", "controls=false", "--limit", "1", *more)
    assert run.returncode == 0, run.stderr
    assert ("SIMULATED" in run.stdout) == (not model)


@pytest.fixture
def runs(server: Server) -> str:
    """A log dir of a real model that was told simulated contexts."""
    study_of("followup", *at(server), "-T", f"contexts={generate()}", *SMALL, ALLOW)
    assert server.stats()["calls"]
    return "runs"


@pytest.mark.slow
def test_results_of_simulated_inputs_are_marked_everywhere(runs: str) -> None:
    assert set(pl.read_parquet("runs/turns.parquet")["model"]) == {MARK}
    Path("rules.toml").write_text("[[rule]]\nmin_accuracy = 0.01\n", "utf-8")
    holdfast("gate", runs, "--rules", "rules.toml", "--junit", "gate.xml", "--summary", "gate.md")
    holdfast("report", runs, "-o", "report.html")
    holdfast("report", runs, "--leaderboard", "site")
    study_of("followup", "--model", "simulated/steadfast", *SMALL, "--log-dir", "second")
    outputs = {
        **{name: holdfast("table", runs, "--format", name).stdout
           for name in ("md", "csv", "json", "vega")},
        "gate": holdfast("gate", runs, "--rules", "rules.toml").stdout,
        "comparison": holdfast("compare", runs, "second").stdout,
        **{name: Path(name).read_text("utf-8")
           for name in ("gate.xml", "gate.md", "report.html", "site/index.html")},
    }  # fmt: skip
    assert [name for name, text in outputs.items() if "simulated contexts" not in text] == []
    plain = {name for name, text in outputs.items() if "SIMULATED" not in text}
    assert plain <= {"csv", "json", "gate.xml", "gate"}  # those name the model


def test_rereading_and_growing_keep_the_mark(runs: str, server: Server) -> None:
    calls = server.stats()["calls"]
    study = ("followup", *at(server), "-T", "contexts=contexts.jsonl", *SMALL, ALLOW)
    study_of(*study)
    assert server.stats()["calls"] == calls
    facts = facts_of("score", runs)
    assert [run["model"] for run in facts["runs"]] == [MARK]
    assert set(pl.read_parquet("runs/turns.parquet")["model"]) == {MARK}


def test_simulated_contexts_mark_the_whole_run(server: Server) -> None:
    questions = ("--questions", write_jsonl(Path("q.jsonl"), question_rows(2)), *SMALL)
    for more, model in (((), "lean/bench"), (("-T", "contexts=synthetic", ALLOW), MARK)):
        _, turns = study_of("followup", *at(server), *questions, *more)
        assert turns["run"].n_unique() == 1
        assert set(turns["model"]) == {model}
