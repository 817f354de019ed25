"""The first hour with an endpoint of one's own: what goes wrong first, and what is said of it."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from benchmarks.server import Server
from rich.console import Console
from tests.cli.commands import lacking, study_of
from tests.speaking import speaking
from tests.studies import HOLDFAST, Done, holdfast, question_rows, write_jsonl

from holdfast.render.tables import arranged
from holdfast.render.terminal import Summary, fitted, summary, terminal
from holdfast.results.declaration import TABLES
from holdfast.results.turns import turns_table

RETHINK = ("-T", "techniques=rethink")
SYCOPHANT = ("--model", "simulated/sycophant")


@pytest.fixture(autouse=True)
def questions() -> str:
    return write_jsonl(Path("q.jsonl"), question_rows(6))


def run(*more: str | Path) -> Done:
    return holdfast("run", "followup", "--questions", "q.jsonl", "--log-dir", "r", *more)


REFUSALS: dict[str, tuple[tuple[int, str] | None, str, str]] = {
    "no version": ((404, "Not Found"), "", "/v1"),
    "no such model": ((404, "The model `bench` does not exist."), "/v1", "is unknown at"),
    "unknown model": ((400, "unknown model: bench"), "/v1", "is unknown at"),
    "a wrong key": ((401, "Incorrect API key provided"), "/v1", "was rejected at"),
    "no server": (None, "", "http://127.0.0.1:9/v1"),
}  # fmt: skip


@pytest.mark.rest_slow
@pytest.mark.parametrize("provider", ["lean", "openai-api/own"])
@pytest.mark.parametrize("name", REFUSALS)
def test_a_fault_of_all_requests_stops_the_study_first(
    name: str, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_API_KEY", "a-key-that-is-long")
    refusal, path, words = REFUSALS[name]
    with speaking(lambda _: refusal or (500, "")) as url:
        place = url.removesuffix("/v1") + path if refusal else "http://127.0.0.1:9/v1"
        at = ("--model", f"{provider}/bench", "--model-base-url", place)
        for shards in ((), ("--shards", "2")) if provider == "lean" and path else ((),):
            study = run(*at, *shards, *RETHINK)
            assert study.returncode == 2
            assert words in study.stderr
            assert study.stderr.count("holdfast: ") == 1
            assert not list(Path("r").glob("*.eval"))


def test_the_first_request_is_one_of_the_study(server: Server) -> None:
    outcome, _ = study_of("followup", "--questions", "q.jsonl", "--model", "lean/bench",
                          "--model-base-url", f"{server.url}/v1", *RETHINK)  # fmt: skip
    assert server.stats()["repeated"] == 0
    assert server.stats()["calls"] == outcome["calls"] == 6 * 8


# what a run lacks


@pytest.mark.slow
@pytest.mark.parametrize("lack", ["contexts", "questions"])
def test_every_command_reports_what_a_run_lacks(lack: str) -> None:
    rule = {"contexts": 'technique = "rag-style"\nmax_relative_drop = 0.1',
            "questions": 'protocol = "followup"\nmin_accuracy = 0.01'}  # fmt: skip
    Path("g.toml").write_text(f"[[rule]]\n{rule[lack]}\n")
    study = (*SYCOPHANT, *RETHINK, "--call-limit", "9") if lack == "questions" else SYCOPHANT
    words = {
        "contexts": ["4 of 14 techniques", "no contexts for q"],
        "questions": ["followup of simulated/sycophant on q", "unfinished"],
    }[lack]
    outputs = [
        holdfast("table", "r").stderr if run(*study) else "",
        holdfast("report", "r", "-o", "r.html").stderr,
        Path("r.html").read_text("utf-8").partition("<nav")[0],
    ]
    gate = holdfast("gate", "r", "--rules", "g.toml")
    outputs.append(gate.stderr)
    if lack == "contexts":
        outputs += [run("--dry-run", *study).stderr, " ".join(run(*study).stdout.split())]
        # four contexts of six questions, and how to write them
        assert lacking(["24 generations", "generate contexts"], outputs[-1]) == []
    assert [lacking(words, text) for text in outputs] == [[]] * len(outputs)
    assert gate.returncode == (2 if lack == "contexts" else 4)
    if lack == "questions":  # nothing is decided until it is finished
        assert holdfast("gate", "r", "--rules", "g.toml", "--allow-unfinished").returncode == 0
        run(*SYCOPHANT, *RETHINK)
        assert holdfast("gate", "r", "--rules", "g.toml").returncode == 0
        assert holdfast("table", "r").stderr == ""


# what a run says at its end


@pytest.mark.slow
def test_unreadable_replies_are_reported_first() -> None:
    replies = iter(["Hard to say: it depends."] * 3 + ["Let me think."] * 45)
    with speaking(lambda _: next(replies)) as url:
        study = run("--model", "lean/mumbler", "--model-base-url", url, *RETHINK)
    first, *examples, remedy = study.stdout.splitlines()[:4]
    assert lacking(["lean/mumbler", "100%", "36 replies"], first) == []
    assert sorted(examples) == ["  Hard to say: it depends.", "  Let me think."]
    assert "holdfast score r --model-role reader=MODEL" in remedy
    # no right answer, no share of them
    assert "of right answers kept" not in study.stdout
    assert "no price known for lean/mumbler" in study.stdout


@pytest.mark.slow
def test_a_run_on_a_terminal_ends_with_its_headline_alone() -> None:
    ours, theirs = os.openpty()
    command = ["run", "followup", "--questions", "q.jsonl", "--log-dir", "r", *SYCOPHANT, *RETHINK]
    process = subprocess.Popen([HOLDFAST, *command], stdout=theirs, stderr=theirs)
    os.close(theirs)
    output = b""
    with suppress(OSError):  # what a terminal gives once nobody holds its other end
        while part := os.read(ours, 4096):
            output += part
    os.close(ours)
    assert process.wait(60) == 0
    headline, following = output.rstrip().splitlines()[-2:]
    assert b"simulated/sycophant" in headline
    assert b"holdfast report r" in following
    # what the framework says of an end
    assert b"successfully" not in output
    assert b"could not be read" not in output


# tables on a terminal


def lines_of(table: Any, width: int) -> list[str]:
    console = Console(width=width, record=True, file=None, quiet=False)
    with console.capture() as text:
        console.print(table)
    return text.get().splitlines()


def summary_with(unread: str) -> Summary:
    notes = [("", "Read this."), ("Sugg./other", "Sugg: where."), ("Unread", "Unread: none.")]
    headers = ("n", "Accuracy %", "95% interval", "Sugg./other", "Unread")
    row = ("misleading-context", "12", "100.0", "75.7 to 100.0", "6/0", unread)
    return summary("study", notes, headers, [row], label=("Challenge", 10))


@pytest.mark.parametrize(
    ("unread", "width", "columns"),
    [
        ("0", 110, ["Sugg./other", "Unread"]),
        ("0", 75, ["Sugg./other"]),
        ("3", 75, ["Unread"]),
        ("0", 60, []),
        ("0", 20, []),
    ],
)
def test_a_narrow_terminal_keeps_estimate_and_interval(
    unread: str, width: int, columns: list[str]
) -> None:
    narrow = fitted(summary_with(unread), width)
    headers = [str(column.header) for column in narrow.columns]
    assert headers == ["Challenge", "n", "Accuracy %", "95% interval", *columns]
    assert width < 60 or all(len(line) <= width for line in lines_of(narrow, width))
    for header in ("Sugg./other", "Unread"):
        assert (f"{header[:4]}" in str(narrow.caption)) == (header in columns)


def test_an_empty_interval_stays_on_a_narrow_terminal() -> None:
    notes = [("", "Read this.")]
    row = ("misleading-context", "12", "100.0", "", "6/0", "3")
    headers = ("n", "Accuracy %", "95% interval", "Sugg./other", "Unread")
    narrow = fitted(summary("study", notes, headers, [row], label=("Challenge", 10)), 75)
    assert "95% interval" in [str(column.header) for column in narrow.columns]


@pytest.mark.rest_slow
@pytest.mark.parametrize("width", [200, 50])
def test_a_table_on_a_terminal_has_every_figure(width: int) -> None:
    run(*SYCOPHANT, "--model", "simulated/steadfast", *RETHINK)
    rows = TABLES["accuracy"](turns_table(["r"], text=False))
    grids = arranged(rows, "accuracy")
    assert grids is not None
    lines = [line for part in terminal(grids, width) for line in lines_of(part, width)]
    assert max(map(len, lines)) <= width
    text = " ".join(lines)
    assert not {"sycophant", "steadfast"} - set(text.replace("/", " ").split())
    cells = [cell.text for grid in grids for block in grid.blocks for group in block.groups
             for line in group for cell in line.cells]  # fmt: skip
    assert all(cell.split()[0] in text for cell in cells if cell)
    assert "…" not in text
