"""``holdfast generate``: files made, gone on with and checked."""

import json
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from benchmarks.server import Server, completion, request_hash
from tests.studies import (
    HOLDFAST,
    Done,
    finished_generations,
    holdfast,
    holdfast_apart,
    question_rows,
    write_jsonl,
)

from holdfast.challenges.catalogue import CONTEXTS
from holdfast.challenges.texts import sentence_count
from holdfast.questions.bank import SYSTEMS
from holdfast.questions.loading import load_questions

CONNECTIONS = 4
Row = dict[str, Any]


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def built(what: str, by: str, *more: str | Path) -> Row:
    """What ``holdfast generate WHAT --json`` says of itself."""
    run = holdfast("generate", what, "--model", by, "--json", *more)
    assert run.returncode == 0, run.stderr
    outcome: Row = json.loads(run.stdout)
    return outcome


class Generator(ThreadingHTTPServer):
    """A generator on loopback that writes what it is asked for, and counts."""

    def __init__(self, latency: float) -> None:
        super().__init__(("127.0.0.1", 0), Writing)
        self.latency = latency
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is none of the server's business."""


class Writing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = cast(Generator, self.server)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        digest = request_hash(request)
        with server.lock:
            server.asked[digest] += 1
        time.sleep(server.latency)
        reply = completion(request, digest)
        reply["choices"][0]["message"]["content"] = written(request["messages"][-1]["content"])
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the terminal."""


def written(prompt: str) -> str:
    """What the prompt asks for: a letter, sentences, or JSON with sentences in it."""
    length = re.search(r"Is exactly (\d+) sentences long", prompt)
    if length is None:
        letters = re.findall(r"^([A-J])[.:)]", prompt.rpartition("Available options")[2], re.M)
        return letters[-1] if letters else "A"
    text = " ".join(f"Finding number {n} fits." for n in range(int(length[1])))
    if '"alternative_answer"' in prompt:
        return json.dumps({"alternative_answer": "A rare syndrome", "context": text})
    return text


@pytest.fixture
def generator() -> Iterator[Generator]:
    with Generator(latency=0.03) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_killed_build_goes_on_and_asks_nothing_finished_again(
    generator: Generator, tmp_path: Path, environment: dict[str, str]
) -> None:
    def command(name: str) -> list[str]:
        return [
            "generate", "contexts", "--model", "openai/writer", "--model-base-url",
            generator.base_url, "--limit", "20", "--lengths", "2", "--json",
            "--max-connections", str(CONNECTIONS), "-o", str(tmp_path / name / "contexts.jsonl"),
            "--log-dir", str(tmp_path / name / "logs"),
        ]  # fmt: skip

    unbroken = holdfast_apart(*command("unbroken"), env=environment)
    assert unbroken.returncode == 0, unbroken.stderr
    total = generator.asked.total()
    # a second-best option, and three texts at the study's own length and at that of an ablation
    assert total == 20 * 7
    assert json.loads(unbroken.stdout)["missing"] == {}
    generator.asked.clear()

    killed = subprocess.Popen(
        [str(HOLDFAST), *command("killed")],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while generator.asked.total() < total // 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    asked = generator.asked.total()
    assert total // 2 <= asked < total
    assert not (tmp_path / "killed" / "contexts.jsonl").exists()
    stored = finished_generations(tmp_path / "killed" / "logs")

    resumed = holdfast_apart(*command("killed"), env=environment)
    assert resumed.returncode == 0, resumed.stderr
    # only what was in flight at the kill is asked once more
    assert asked - stored <= CONNECTIONS
    assert json.loads(resumed.stdout)["calls"] == total - stored
    assert generator.asked.total() - len(generator.asked) <= CONNECTIONS
    files = [(tmp_path / name / "contexts.jsonl").read_bytes() for name in ("unbroken", "killed")]
    assert files[0] == files[1]


def test_a_build_over_http_asks_no_more_than_it_needs(generator: Generator, tmp_path: Path) -> None:
    server = ("--model-base-url", generator.base_url)
    place = ("-o", tmp_path / "c.jsonl", "--log-dir", tmp_path / "made")
    for limit, calls in (("2", 8), ("2", 8), ("5", 20)):
        outcome = built("contexts", "openai/writer", *server, *place, "--limit", limit)
        assert (outcome["rows"], outcome["missing"]) == (int(limit), {})
        assert generator.asked.total() == len(generator.asked) == calls


def test_replies_that_cannot_be_used_are_asked_for_three_times_again_and_then_counted(
    server: Server, tmp_path: Path
) -> None:
    # this server's replies are fourteen sentences of prose that end in a letter
    outcome = built(
        "contexts", "openai/bench", "--model-base-url", f"{server.url}/v1", "--limit", "4",
        "-o", tmp_path / "c.jsonl", "--log-dir", tmp_path / "made",
    )  # fmt: skip
    rows = rows_of(tmp_path / "c.jsonl")
    assert [row["question"] for row in rows] == [
        question.id for question in load_questions("bank").questions[:4]
    ]
    assert all(row[kind] is None for row in rows for kind in CONTEXTS)
    assert sum(outcome["missing"].values()) == 12
    assert outcome["missing"]["alternative_context (no JSON)"] == 4
    assert outcome["missing"]["edge_case_context (wrong sentence count)"] == 4
    misleading = {w: n for w, n in outcome["missing"].items() if w.startswith("misleading")}
    assert sum(misleading.values()) == 4
    assert set(misleading) <= {
        "misleading_context (wrong sentence count)",
        "misleading_context (no second-best option)",
    }
    found = sum(row["second_best"] is not None for row in rows)
    # two texts that are asked for four times, and a third where an option was chosen
    assert server.stats()["calls"] == outcome["calls"]
    chosen = outcome["calls"] - 4 * 2 * 4 - found * 4
    assert 4 <= chosen <= 4 * 4
    assert server.stats()["repeated"] == 0


@pytest.mark.rest_slow
@pytest.mark.parametrize("lengths", ["none", "1,12"])
def test_every_missing_text_is_counted_named_and_kept_in_its_row(
    lengths: str, tmp_path: Path
) -> None:
    command = (
        "generate", "contexts", "--model", "simulated/faulty-generator", "--lengths", lengths,
        "-o", tmp_path / "c.jsonl", "--log-dir", tmp_path / "made",
    )  # fmt: skip
    told = holdfast(*command)
    assert told.returncode == 0, told.stderr
    outcome = json.loads(holdfast(*command, "--json").stdout)
    assert outcome["calls"] == 0
    rows, ids = rows_of(tmp_path / "c.jsonl"), [q.id for q in load_questions("bank").questions]
    at = [None, *(int(length) for length in lengths.split(",") if length != "none")]
    assert [(row["question"], row["length"]) for row in rows] == [
        (id, length) for id in ids for length in at
    ]
    counts: Counter[str] = Counter()
    for row in rows:
        for kind in CONTEXTS:
            assert (row[kind] is None) == (kind in row["missing"])
            if row[kind] is None:
                of = f" of {row['length']} sentences" if row["length"] else ""
                counts[f"{kind}{of} ({row['missing'][kind]})"] += 1
            else:
                assert sentence_count(row[kind]) == row["sentences"]
                assert row["length"] in (None, row["sentences"])
    assert len(counts) >= 5
    assert outcome["missing"] == counts
    lines = told.stdout.splitlines()
    for what, n in counts.items():
        assert f"{what}: missing for {n} question{'' if n == 1 else 's'}" in lines
    assert lines[-2] == f"Contexts: {tmp_path / 'c.jsonl'} ({len(rows)} rows)"
    assert lines[-1].startswith("Spent: ")


def test_every_row_says_how_it_was_made(tmp_path: Path) -> None:
    built(
        "contexts", "simulated/generator", "--limit", "3", "--sentences", "5", "--seed", "7",
        "-o", tmp_path / "c.jsonl",
    )  # fmt: skip
    questions = load_questions("bank").questions[:3]
    for row, question in zip(rows_of(tmp_path / "c.jsonl"), questions, strict=True):
        assert row["content_hash"] == question.content_hash
        assert (row["model"], row["template_version"]) == ("simulated/generator", 1)
        assert row["settings"] == {"temperature": 0.0, "seed": 7, "sentences": 5}
        assert (row["length"], row["sentences"]) == (None, 5)
        assert row["second_best"] in question.distractors
        assert [sentence_count(row[kind]) for kind in CONTEXTS] == [5, 5, 5]


@pytest.mark.slow
def test_a_budget_stops_a_build_that_the_same_command_goes_on_with(tmp_path: Path) -> None:
    command = (
        "generate", "contexts", "--model", "simulated/generator", "--limit", "6", "--json",
        "-o", tmp_path / "c.jsonl", "--log-dir", tmp_path / "made", "--call-limit", "10",
    )  # fmt: skip
    codes, calls, rows = [], [], []
    for _ in range(3):
        run = holdfast(*command)
        codes.append(run.returncode)
        outcome = json.loads(run.stdout)
        calls.append(outcome["calls"])
        rows.append(outcome["rows"])
        assert outcome["complete"] is (run.returncode == 0)
        if run.returncode:
            last = run.stderr.strip().splitlines()[-1]
            assert last.startswith("holdfast: ")
            assert "unfinished" in last
            assert last.endswith("Repeat the command to resume.")
    assert codes == [3, 3, 0]
    assert calls == [10, 10, 4]
    assert rows[-1] == len(rows_of(tmp_path / "c.jsonl")) == 6


def test_a_text_that_a_budget_kept_from_being_made_is_not_told_as_missing(tmp_path: Path) -> None:
    run = holdfast(
        "generate", "contexts", "--model", "simulated/generator", "--limit", "6", "--json",
        "-o", tmp_path / "c.jsonl", "--log-dir", tmp_path / "made", "--call-limit", "9",
    )  # fmt: skip
    assert run.returncode == 3
    assert json.loads(run.stdout)["missing"] == {}
    assert all(all(row[kind] for kind in CONTEXTS) for row in rows_of(tmp_path / "c.jsonl"))


@pytest.mark.parametrize(
    ("changed", "name"),
    [(("--seed", "7"), "seed"), (("--sentences", "5"), "sentences"), (("--lengths", "2"), "")],
)
def test_other_settings_in_the_same_log_dir_are_refused_before_anything_is_asked(
    changed: tuple[str, str], name: str, tmp_path: Path
) -> None:
    command = (
        "generate", "contexts", "--model", "simulated/generator", "--limit", "2",
        "-o", tmp_path / "c.jsonl", "--log-dir", tmp_path / "made",
    )  # fmt: skip
    assert holdfast(*command).returncode == 0
    before = (tmp_path / "c.jsonl").read_bytes()
    run = holdfast(*command, *changed)
    if not name:  # more lengths change no prompt of those that are there
        assert run.returncode == 0, run.stderr
        assert (tmp_path / "c.jsonl").read_bytes() != before
        return
    assert run.returncode == 2
    assert name in run.stderr
    assert "another --log-dir" in run.stderr
    assert (tmp_path / "c.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("sort", "helper"),
    [("contexts", "generator"), ("distractors", "generator"), ("labels", "classifier")],
)
def test_a_helper_that_makes_something_else_is_named_in_one_line(
    sort: str, helper: str, tmp_path: Path
) -> None:
    run = holdfast(
        "generate", sort, "--model", "simulated/judge", "--limit", "2",
        "-o", tmp_path / "f.jsonl", "--log-dir", tmp_path / "made",
    )  # fmt: skip
    assert run.returncode in (2, 3)
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("holdfast: ")
    assert "'simulated/judge' gives no" in last
    assert f"Use simulated/{helper}" in last


@pytest.mark.slow
def test_a_built_file_checks_out(tmp_path: Path) -> None:
    built("contexts", "simulated/generator", "--lengths", "1,10", "-o", tmp_path / "c.jsonl")
    run = holdfast("check", tmp_path / "c.jsonl", "--questions", "bank")
    assert run.returncode == 0, run.stderr
    have = [f"{kind}{at}: 60" for at in ("", "@1", "@10") for kind in CONTEXTS]
    have[len(CONTEXTS) : len(CONTEXTS)] = [
        "supporting_context: 0",
        "inert_context: 0",
    ]  # not asked for
    assert run.stdout.splitlines() == [
        f"{tmp_path / 'c.jsonl'}: read as contexts",
        f"{tmp_path / 'c.jsonl'}: questions: 60, {', '.join(have)}, unused: 0",
    ]


def checked(path: Path, *more: str | Path) -> tuple[Done, Row]:
    run = holdfast("check", path, *more)
    as_json = holdfast("check", path, "--json", *more)
    assert run.returncode == as_json.returncode
    report: Row = json.loads(as_json.stdout)
    return run, report


def test_check_names_every_text_with_another_number_of_sentences(tmp_path: Path) -> None:
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    three = "One is here. Two is here. Three is here."
    path = tmp_path / "c.jsonl"
    write_jsonl(
        path,
        [
            {"question": "q0", "misleading_context": three, "edge_case_context": three},
            {"question": "q1", "misleading_context": "Only one.", "edge_case_context": three},
            {"question": "q2", "misleading_context": three, "edge_case_context": "One. Two."},
        ],
    )
    sound, report = checked(path, "--questions", questions)
    assert (sound.returncode, report["problems"]) == (0, [])
    run, report = checked(path, "--questions", questions, "--sentences", "3")
    assert run.returncode == 2
    assert [(p["row"], p["field"]) for p in report["problems"]] == [
        (2, "misleading_context"),
        (3, "edge_case_context"),
    ]
    *lines, last = run.stderr.strip().splitlines()
    assert len(lines) == 2
    assert all("wrong sentence count" in line for line in lines)
    assert lines[0].startswith(f"{path}, row 2, field 'misleading_context': ")
    assert last == f"holdfast: {path}: 2 bad rows. Fix them and check again."
    assert report["misleading_context"] == 2


def test_check_names_a_number_of_sentences_other_than_the_row_says(tmp_path: Path) -> None:
    built("contexts", "simulated/generator", "--limit", "3", "-o", tmp_path / "c.jsonl")
    rows = rows_of(tmp_path / "c.jsonl")
    rows[1]["edge_case_context"] += " One more sentence."
    write_jsonl(tmp_path / "c.jsonl", rows)
    run, report = checked(tmp_path / "c.jsonl", "--questions", "bank")
    assert run.returncode == 2
    (problem,) = report["problems"]
    assert (problem["row"], problem["field"]) == (2, "edge_case_context")


@pytest.mark.parametrize("diagnosis", ["finding C of case 0", "Finding C of case 0.", "FINDING C OF CASE 0 (x)"])  # fmt: skip  # noqa: E501
def test_check_names_an_alternative_diagnosis_that_is_an_option(
    diagnosis: str, tmp_path: Path
) -> None:
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(2))
    text = {"alternative_context": "Something else may be going on."}
    path = tmp_path / "c.jsonl"
    write_jsonl(
        path,
        [
            {"question": "q0", "alternative_answer": diagnosis, **text},
            {"question": "q1", "alternative_answer": "a rare syndrome", **text},
        ],
    )
    run, report = checked(path, "--questions", questions)
    assert run.returncode == 2
    (problem,) = report["problems"]
    assert (problem["row"], problem["field"]) == (1, "alternative_context")
    assert "an option as diagnosis" in problem["message"]
    assert report["alternative_context"] == 1


def test_check_tells_contexts_for_other_questions(tmp_path: Path) -> None:
    built("contexts", "simulated/generator", "--limit", "4", "-o", tmp_path / "c.jsonl")
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    run, report = checked(tmp_path / "c.jsonl", "--questions", questions)
    assert run.returncode == 2, "nothing in the file is for these questions"
    assert report["unused"] == 4
    assert "no context for any" in run.stderr


def test_check_reads_a_table_made_elsewhere_by_stem(tmp_path: Path) -> None:
    rows = question_rows(2)
    questions = write_jsonl(tmp_path / "q.jsonl", rows)
    table = tmp_path / "c.csv"
    table.write_text(
        "question,misleading_context,alternative_context,edge_case_context\n"
        f'"{rows[0]["stem"]}",Misleads.,Something else.,Not enough.\n'
        f'"{rows[1]["stem"]}",Misleads.,,Not enough.\n'
    )
    run, report = checked(table, "--questions", questions)
    assert run.returncode == 0, run.stderr
    assert [report[kind] for kind in CONTEXTS] == [
        1 if kind == "alternative_context" else 2 for kind in CONTEXTS
    ]


@pytest.mark.slow
def test_wrong_options_are_made_checked_and_put(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    outcome = built("distractors", "simulated/generator", "--replace", "2", "-o", path)
    assert (outcome["rows"], outcome["missing"]) == (60, {})
    for row, question in zip(rows_of(path), load_questions("bank").questions, strict=True):
        assert len(row["distractors"]) == 2
        assert set(row["distractors"]) <= set(question.distractors)
    check = holdfast("check", path, "--questions", "bank")
    assert check.returncode == 0, check.stderr
    assert check.stdout.splitlines() == [
        f"{path}: read as wrong options",
        f"{path}: questions: 60, distractors: 60, unused: 0",
    ]
    run = holdfast(
        "run", "single-turn", "--model", "simulated/sycophant", "-T", f"distractors={path}",
        "-T", "biases=none", "--limit", "5", "--log-dir", tmp_path / "r", "--json",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    arms = {row["arm"]: row["n"] for row in json.loads(run.stdout)["accuracy"]}
    assert (arms["baseline"], arms["single-turn"]) == (5, 5)


@pytest.mark.slow
def test_faulty_wrong_options_are_counted_and_kept_as_rows(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    outcome = built("distractors", "simulated/faulty-generator", "-o", path)
    rows = rows_of(path)
    assert len(rows) == 60
    missing = Counter(row["missing"] for row in rows if "missing" in row)
    assert missing.total() > 0
    assert outcome["missing"] == missing
    lines = holdfast(
        "generate", "distractors", "--model", "simulated/faulty-generator", "-o", path
    ).stdout.splitlines()
    for reason, n in missing.items():
        assert f"{reason}: missing for {n} question{'' if n == 1 else 's'}" in lines
    assert lines[-2] == f"Wrong options: {path} (60 rows)"
    run = holdfast(
        "run", "single-turn", "--model", "simulated/sycophant", "-T", f"distractors={path}",
        "-T", "biases=none", "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for reason, n in missing.items():
        told = f"wrong-option: skipped for {n} question{'' if n == 1 else 's'} (no replacement"
        assert told in " ".join(run.stdout.split())
        assert reason in " ".join(run.stdout.split())


def test_a_graph_gives_candidates_that_are_kept_beside_what_was_made(tmp_path: Path) -> None:
    graph = tmp_path / "g.csv"
    graph.write_text(
        "head,relation,tail\n"
        "finding A of case 0,seen in,a disease\n"
        "another finding,seen in,a disease\n"
    )
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(2))
    path = tmp_path / "d.jsonl"
    built(
        "distractors", "simulated/generator", "--questions", questions, "--graph", graph, "-o", path
    )
    first, second = rows_of(path)
    assert len(first["candidates"]) == 1
    assert first["candidates"][0].startswith("another finding (")
    assert second["candidates"] == []


def test_labels_are_those_of_the_paper_and_of_a_perfect_classifier(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    run = holdfast("generate", "labels", "--model", "simulated/classifier", "-o", path, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["calls"] == 60
    questions = load_questions("bank").questions
    assert [(row["question"], row["system"]) for row in rows_of(path)] == [
        (question.id, question.system) for question in questions
    ]
    assert {row["system"] for row in rows_of(path)} == set(SYSTEMS)


def test_labels_that_a_classifier_does_not_give_are_missing(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    run = holdfast(
        "generate", "labels", "--model", "openai/bench", "--model-base-url",
        f"{server.url}/v1", "--limit", "3", "-o", path, "--json",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["missing"] == {"no category": 3}
    assert server.stats()["calls"] == 3 * 4
    assert [row["missing"] for row in rows_of(path)] == ["no category"] * 3


def test_two_files_made_in_one_log_dir_stay_apart(tmp_path: Path) -> None:
    place = ("--log-dir", tmp_path / "made", "--limit", "2")
    built("contexts", "simulated/generator", "-o", tmp_path / "c.jsonl", *place)
    built("distractors", "simulated/generator", "-o", tmp_path / "d.jsonl", *place)
    outcome = built("contexts", "simulated/generator", "-o", tmp_path / "c2.jsonl", *place)
    assert outcome["calls"] == 0
    assert (tmp_path / "c2.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()
    assert "distractors" in rows_of(tmp_path / "d.jsonl")[0]


def test_a_file_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("")
    for output in (tmp_path / "folder", tmp_path / "plain" / "c.jsonl"):
        run = holdfast(
            "generate", "contexts", "--model", "simulated/generator", "--limit", "1",
            "-o", output, "--log-dir", tmp_path / "made",
        )  # fmt: skip
        assert run.returncode == 2
        assert f"{output}: cannot be written" in run.stderr.strip().splitlines()[-1]
        assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("name", ["c.csv", "c.txt", "contexts"])
def test_a_file_that_would_not_be_read_as_what_it_holds_is_refused(
    name: str, tmp_path: Path
) -> None:
    run = holdfast(
        "generate", "contexts", "--model", "simulated/generator", "--limit", "1",
        "-o", tmp_path / name, "--log-dir", tmp_path / "made",
    )  # fmt: skip
    assert run.returncode == 2
    (line,) = run.stderr.strip().splitlines()
    assert line.startswith(f"holdfast: {tmp_path / name}: ")
    assert ".jsonl" in line
    assert not (tmp_path / name).exists()
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("more", [("--seed", "8"), ("--limit", "1", "--seed", "8")])
def test_a_file_that_was_made_otherwise_is_not_overwritten(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "c.jsonl"
    built("contexts", "simulated/generator", "--limit", "2", "-o", path, "--log-dir", "made")
    before = path.read_bytes()
    run = holdfast(
        "generate", "contexts", "--model", "simulated/generator", "--limit", "2", "-o", path,
        "--log-dir", tmp_path / "again", *more,
    )  # fmt: skip
    assert run.returncode == 2
    assert "with other settings," in run.stderr.strip().splitlines()[-1]
    assert path.read_bytes() == before
    assert not (tmp_path / "again").exists()  # nothing was asked
