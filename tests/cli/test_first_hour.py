"""The first hour with an endpoint of one's own: what goes wrong first, and what is said of it."""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.server import Server
from rich.console import Console
from tests.speaking import speaking
from tests.studies import HOLDFAST, Done, holdfast, question_rows, write_jsonl

from holdfast.render.tables import arranged
from holdfast.render.terminal import Summary, fitted, summary, terminal
from holdfast.results.declaration import TABLES
from holdfast.results.turns import turns_table

RETHINK = ("-T", "techniques=rethink")


@pytest.fixture
def questions(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(6))


def run(log_dir: Path, questions: str, *more: str | Path) -> Done:
    return holdfast("run", "followup", "--questions", questions, "--log-dir", log_dir, *more)


# ---- The first request ----


@pytest.mark.parametrize("provider", ["lean", "openai-api/own"])
@pytest.mark.parametrize(
    ("status", "message", "path", "told"),
    [
        (404, "Not Found", "", "Does it end in /v1?"),
        (404, "The model `bench` does not exist.", "/v1", "is unknown at"),
        (400, "unknown model: bench", "/v1", "is unknown at"),
        (401, "Incorrect API key provided", "/v1", "was rejected at"),
    ],
)
@pytest.mark.rest_slow
def test_what_is_wrong_for_all_requests_is_told_before_the_study(
    tmp_path: Path, questions: str, monkeypatch: pytest.MonkeyPatch, provider: str, status: int,
    message: str, path: str, told: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("OWN_API_KEY", "a-key-that-is-long")
    with speaking(lambda _: (status, message)) as url:
        made = run(tmp_path / "r", questions, "--model", f"{provider}/bench",
                   "--model-base-url", url.removesuffix("/v1") + path, *RETHINK)  # fmt: skip
    assert made.returncode == 2
    assert told in made.stderr
    assert made.stderr.count("holdfast: ") == 1
    assert not list((tmp_path / "r").glob("*.eval"))


@pytest.mark.slow
def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path, questions: str) -> None:
    made = run(tmp_path / "r", questions, "--model", "lean/bench", "--model-base-url",
               "http://127.0.0.1:9/v1", *RETHINK)  # fmt: skip
    assert made.returncode == 2
    assert "no server answers at http://127.0.0.1:9/v1" in made.stderr
    assert not list((tmp_path / "r").glob("*.eval"))


def test_shards_are_not_put_to_a_server_that_refuses_the_key(
    tmp_path: Path, questions: str
) -> None:
    with speaking(lambda _: (401, "Incorrect API key provided")) as url:
        made = run(tmp_path / "r", questions, "--model", "lean/bench", "--model-base-url", url,
                   "--shards", "2", *RETHINK)  # fmt: skip
    assert made.returncode == 2
    assert "was rejected at" in made.stderr
    assert not list((tmp_path / "r").glob("*.eval"))


def test_the_first_request_is_the_studys_own(
    server: Server, tmp_path: Path, questions: str
) -> None:
    made = run(tmp_path / "r", questions, "--model", "lean/bench", "--model-base-url",
               f"{server.url}/v1", "--json", *RETHINK)  # fmt: skip
    assert made.returncode == 0, made.stderr
    outcome = json.loads(made.stdout)
    assert server.stats()["repeated"] == 0
    assert server.stats()["calls"] == outcome["calls"] == 6 * 8


# ---- What a run lacks ----


def test_contexts_are_added_to_a_run_begun_without_them(tmp_path: Path, questions: str) -> None:
    place = tmp_path / "r"
    first = run(place, questions, "--model", "simulated/sycophant")
    assert "4 of 14 techniques skipped: no contexts" in first.stdout
    build = f"'holdfast generate contexts --questions {questions} --model MODEL'"
    assert f"{build} (24 generations)" in " ".join(first.stdout.split())
    built = holdfast("generate", "contexts", "--questions", questions, "--model",
                     "simulated/generator", "-o", tmp_path / "c.jsonl", "--log-dir",
                     tmp_path / "made")  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert "Spent: 24 calls" in built.stdout
    contexts = ("-T", f"contexts={tmp_path / 'c.jsonl'}")
    more = run(place, questions, "--model", "simulated/sycophant", "--json", *contexts)
    assert more.returncode == 0, more.stderr
    outcome = json.loads(more.stdout)
    assert (outcome["calls"], outcome["cached"]) == (6 * 4, 6 * 13)
    turns = pl.read_parquet(outcome["turns"])
    assert turns.height == 6 * 17
    assert turns["run"].n_unique() == 1
    assert holdfast("table", place).stderr == ""
    back = run(place, questions, "--model", "simulated/sycophant")
    assert back.returncode == 2
    assert "content of contexts" in back.stderr


@pytest.mark.slow
def test_a_run_cut_short_while_it_is_given_contexts_keeps_both_and_is_unfinished(
    tmp_path: Path, questions: str
) -> None:
    place = tmp_path / "r"
    model = ("--model", "simulated/sycophant", "-T", "techniques=rethink,context")
    assert run(place, questions, *model).returncode == 0
    holdfast("generate", "contexts", "--questions", questions, "--model", "simulated/generator",
             "-o", tmp_path / "c.jsonl", "--log-dir", tmp_path / "made")  # fmt: skip
    more = ("-T", f"contexts={tmp_path / 'c.jsonl'}")
    cut = run(place, questions, *model, *more, "--call-limit", "2")
    assert cut.returncode == 3
    turns = turns_table([str(place)])
    assert turns.filter(pl.col("family") == "rethink").height == 6 * 5
    assert turns.filter(pl.col("family") == "context").height == 2
    assert "is unfinished: " in holdfast("table", place).stderr
    done = run(place, questions, *model, *more, "--json")
    assert (done.returncode, json.loads(done.stdout)["calls"]) == (0, 6 * 4 - 2)
    assert holdfast("table", place).stderr == ""


@pytest.mark.slow
def test_what_is_left_out_is_told_by_every_command(tmp_path: Path, questions: str) -> None:
    place, told = tmp_path / "r", "4 of 14 techniques skipped: no contexts for q."
    run(place, questions, "--model", "simulated/sycophant")
    plan = holdfast(
        "run", "--dry-run", "followup", "--questions", questions, "--model", "simulated/sycophant"
    )
    table = holdfast("table", place)
    report = holdfast("report", place, "-o", tmp_path / "r.html")
    rules = tmp_path / "g.toml"
    rules.write_text('[[rule]]\ntechnique = "rag-style"\nmax_relative_drop = 0.1\n')
    gate = holdfast("gate", place, "--rules", rules)
    assert all(told in done.stderr for done in (plan, table, report, gate))
    assert gate.returncode == 2
    assert told in (tmp_path / "r.html").read_text("utf-8").partition("<nav")[0]


@pytest.mark.slow
def test_an_unfinished_run_is_told_and_decides_nothing(tmp_path: Path, questions: str) -> None:
    place, told = tmp_path / "r", "followup of simulated/steadfast on q is unfinished: "
    run(place, questions, "--model", "simulated/steadfast", "--call-limit", "9", *RETHINK)
    rules = tmp_path / "g.toml"
    rules.write_text('[[rule]]\nprotocol = "followup"\nmin_accuracy = 0.01\n')
    gate = holdfast("gate", place, "--rules", rules)
    assert (gate.returncode, "the run is unfinished" in gate.stdout) == (4, True)
    assert holdfast("gate", place, "--rules", rules, "--allow-unfinished").returncode == 0
    assert told in holdfast("table", place).stderr
    assert told in gate.stderr
    run(place, questions, "--model", "simulated/steadfast", *RETHINK)
    assert holdfast("gate", place, "--rules", rules).returncode == 0
    assert holdfast("table", place).stderr == ""


# ---- What a run says at its end ----


def test_replies_that_cannot_be_read_are_told_first(tmp_path: Path, questions: str) -> None:
    said = iter(["Hard to say: it depends."] * 3 + ["Let me think."] * 45)
    with speaking(lambda _: next(said)) as url:
        made = run(tmp_path / "r", questions, "--model", "lean/mumbler", "--model-base-url", url,
                   *RETHINK)  # fmt: skip
    first, *replies, remedy = made.stdout.splitlines()[:4]
    assert first.startswith("lean/mumbler: 100% of 36 replies could not be parsed.")
    assert sorted(replies) == ["  Hard to say: it depends.", "  Let me think."]
    assert f"holdfast score {tmp_path / 'r'} --model-role reader=MODEL" in remedy
    # no right answer, no share of them
    assert "of right answers kept" not in made.stdout
    assert "no price known for lean/mumbler" in made.stdout


def test_a_run_ends_with_its_headline_and_the_next_command(tmp_path: Path, questions: str) -> None:
    made = run(tmp_path / "r", questions, "--model", "simulated/sycophant", *RETHINK)
    headline, following = made.stdout.rstrip().splitlines()[-2:]
    assert "of its first answers and on" in headline
    assert following == f"Next:  holdfast report {tmp_path / 'r'}"
    assert "successfully" not in made.stdout + made.stderr
    assert "could not be read" not in made.stdout


@pytest.mark.slow
def test_the_framework_does_not_say_on_a_terminal_how_a_run_ended(
    tmp_path: Path, questions: str
) -> None:
    ours, theirs = os.openpty()
    command = ["run", "followup", "--questions", questions, "--log-dir", str(tmp_path / "r"),
               "--model", "simulated/sycophant", *RETHINK]  # fmt: skip
    process = subprocess.Popen([HOLDFAST, *command], stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # what a terminal gives once nobody holds its other end
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert process.wait(60) == 0
    assert b"of its first answers and on" in shown
    assert b"successfully" not in shown


# ---- Tables on a terminal ----


def drawn(table: Any, width: int) -> list[str]:
    console = Console(width=width, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


def summarized(unread: str) -> Summary:
    notes = [("", "Read this."), ("Sugg./other", "Sugg: where."), ("Unread", "Unread: none.")]
    headers = ("n", "Accuracy %", "95% interval", "Sugg./other", "Unread")
    row = ("misleading-context", "12", "100.0", "75.7 to 100.0", "6/0", unread)
    return summary("study", notes, headers, [row], label=("Challenge", 10))


@pytest.mark.parametrize(
    ("unread", "width", "left"),
    [
        ("0", 110, ["Sugg./other", "Unread"]),
        ("0", 75, ["Sugg./other"]),
        ("3", 75, ["Unread"]),
        ("0", 60, []),
        ("0", 20, []),
    ],
)
def test_an_estimate_and_its_interval_stay_where_a_terminal_is_narrow(
    unread: str, width: int, left: list[str]
) -> None:
    narrow = fitted(summarized(unread), width)
    headers = [str(column.header) for column in narrow.columns]
    assert headers == ["Challenge", "n", "Accuracy %", "95% interval", *left]
    assert width < 60 or all(len(line) <= width for line in drawn(narrow, width))
    for header in ("Sugg./other", "Unread"):
        assert (f"{header[:4]}" in str(narrow.caption)) == (header in left)


@pytest.mark.rest_slow
@pytest.mark.parametrize("width", [200, 80, 50])
def test_a_table_on_a_terminal_shows_every_figure(
    tmp_path: Path, questions: str, width: int
) -> None:
    models = ("--model", "simulated/sycophant", "--model", "simulated/steadfast")
    run(tmp_path / "r", questions, *models, *RETHINK)
    rows = TABLES["accuracy"](turns_table([str(tmp_path / "r")], text=False))
    grids = arranged(rows, "accuracy")
    assert grids is not None
    lines = [line for part in terminal(grids, width) for line in drawn(part, width)]
    assert max(map(len, lines)) <= width
    shown = " ".join(lines)
    assert not {"sycophant", "steadfast"} - set(shown.replace("/", " ").split())
    cells = [cell.text for grid in grids for block in grid.blocks for group in block.groups
             for line in group for cell in line.cells]  # fmt: skip
    assert all(cell.split()[0] in shown for cell in cells if cell)
    assert "…" not in shown
