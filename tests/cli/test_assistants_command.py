"""Assistants on the command line: functions, the word before the first call, checks, refusals."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from tests.assisting import Assistant, AssistantRequest, assisting, write_target
from tests.fuzzing import gold_in
from tests.studies import Done, holdfast, question_rows, write_jsonl

from holdfast.running.progress import Progress

FUNCTIONS = """
from pathlib import Path
Path("loaded").write_text("yes")

def right(messages):
    assert [m["role"] for m in messages][-1] == "user"
    return f"Heard {len(messages)}. (A) is right."

async def later(messages):
    import anyio
    await anyio.sleep(0)
    return right(messages)

def retrieving(messages, document=None):
    return "(B)" if document else "(A)"

def nothing(messages):
    return None

def broken(messages):
    raise KeyError("no such passage")

def slow(messages):
    import time
    time.sleep(3)
    return "(A)"

number = 3
"""


def right(texts: Sequence[str], document: str | None) -> str:
    return f"({gold_in(texts[0])}) seems right."


def put(model: str, *options: str, n: int = 2, log_dir: str = "r") -> Done:
    Path("app.py").write_text(FUNCTIONS, "utf-8")
    questions = write_jsonl(Path("q.jsonl"), question_rows(n))
    return holdfast(
        "run", "followup", "--model", model, "--questions", questions, "-T",
        "techniques=double-check", "--log-dir", log_dir, *options,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["right", "later"])
def test_a_function_answers_sync_or_async(name: str) -> None:
    done = put(f"python:app.py:{name}")
    assert done.returncode == 0, done.stderr
    assert f"python/app.py:{name} runs app.py in this process" in done.stderr
    turns = pl.read_parquet("r/turns.parquet")
    assert set(turns["answer"]) == {"A"}
    assert turns["replays"].null_count() == turns.height
    heard = turns.filter(pl.col("path") == "double-check")["reply"]
    assert set(heard) == {"Heard 4. (A) is right."}  # with the system message


def test_a_function_that_takes_a_document_is_given_it() -> None:
    Path("c.jsonl").write_text(
        json.dumps({"question": "q0", "second_best": "B", "misleading_context": "B fits. It does. "
                    "It is common. It is known", "inert_context": "It is there. It is seen. It is "
                    "known. It is named"}) + "\n", "utf-8",
    )  # fmt: skip
    options = ("-T", "inject=document", "-T", "contexts=c.jsonl")
    done = put("python:app.py:retrieving", *options, n=1)
    assert done.returncode == 0, done.stderr
    answers = dict(pl.read_parquet("r/turns.parquet").select("path", "answer").rows())
    assert answers["document"] == answers["inert:document"] == "B"
    assert answers["restate"] == "A"
    refused = put("python:app.py:right", *options, n=1, log_dir="s")
    assert refused.returncode == 2
    assert "'python/app.py:right' has no place for a document" in refused.stderr


FAULTS = {
    "nothing": (3, "app.py returned NoneType, not text"),
    "broken": (3, "app.py, line 21 raised KeyError: 'no such passage'"),
    "slow": (3, "TimeoutError"),
    "absent": (2, "app.py: has no function 'absent'. Write python:FILE.py:FUNCTION"),
    "number": (2, "app.py: has no function 'number'. Write python:FILE.py:FUNCTION"),
    "1x": (2, "'python:app.py:1x' names no function. Write python:FILE.py:FUNCTION"),
}


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_function_that_fails_is_told_in_one_line(name: str) -> None:
    code, fault = FAULTS[name]
    options = ("--generate-config", "{attempt_timeout: 1, max_retries: 0}")
    done = put(f"python:app.py:{name}", *options)
    assert done.returncode == code, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("holdfast:")]
    assert fault in line


def test_a_function_is_run_where_the_command_names_it_alone() -> None:
    Path("app.py").write_text(FUNCTIONS, "utf-8")
    planned = holdfast("run", "followup", "--dry-run", "--model", "python:app.py:right")
    assert planned.returncode == 0
    assert "python/app.py:right" in planned.stdout
    Path("study.toml").write_text(
        'protocols = ["followup"]\nmodel = "python:app.py:right"\n', "utf-8"
    )
    for command in (("run", "study.toml"), ("check", "study.toml")):
        done = holdfast(*command)
        assert done.returncode == 2
        assert "Name it on the command line: --model python:app.py:right" in done.stderr
    role = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--model-role",
        "judge=python:app.py:right",
    )  # fmt: skip
    assert role.returncode == 2
    assert "'python:app.py:right' is an assistant, and 'judge' a helper" in role.stderr
    assert not Path("loaded").exists()


def test_another_function_of_that_name_is_another_model() -> None:
    assert put("python:app.py:right").returncode == 0
    Path("app.py").write_text(FUNCTIONS.replace("(A) is right", "(B) is right"), "utf-8")
    again = holdfast(
        "run", "followup", "--model", "python:app.py:right", "--questions", "q.jsonl", "-T",
        "techniques=double-check", "--log-dir", "r",
    )  # fmt: skip
    assert again.returncode == 2
    assert "another setting: -M function was" in again.stderr


def asked_of(assistant: Assistant, *options: str, sessions: bool = False, more: str = "") -> Done:
    target = write_target(Path("app.toml"), assistant, sessions=sessions, more=more)
    questions = write_jsonl(Path("q.jsonl"), question_rows(3))
    return holdfast(
        "run", "followup", "--target", target, "--questions", questions, "-T",
        "techniques=double-check,authority-prior", *options,
    )  # fmt: skip


def test_the_host_and_the_variables_are_told_before_the_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("APP_KEY", "sk-0123456789")
    told: list[str] = []
    monkeypatch.setattr(Progress, "say", lambda self, line: told.append(line))
    monkeypatch.setattr("holdfast.cli.outcome.Drawn.say", lambda self, line: told.append(line))
    before: list[int] = []

    def fault(request: AssistantRequest) -> None:
        before.append(len(told))

    header = 'headers = { Authorization = "Bearer ${APP_KEY}" }'
    with assisting(right, fault=fault) as assistant:
        assert asked_of(assistant, more=header).returncode == 0
    assert before[0] == 1
    host = assistant.url
    assert told[0] == f"http/app sends to {host} with the environment variable APP_KEY"


@pytest.mark.parametrize(("nth", "is_told"), [(100, True), (20, True), (19, False), (0, False)])
@pytest.mark.rest_slow
def test_replies_that_name_no_option_are_told_of_after_the_first_twenty(
    nth: int, is_told: bool
) -> None:
    heard: list[str] = []

    def reply(texts: Sequence[str], document: str | None) -> str:
        heard.append(texts[-1])
        return right(texts, document) if len(heard) - 1 == nth else "Please see a doctor."

    with assisting(reply) as assistant:
        target = write_target(Path("app.toml"), assistant, sessions=False, more="connections = 1")
        questions = write_jsonl(Path("q.jsonl"), question_rows(10))
        done = holdfast(
            "run", "followup", "--target", target, "--questions", questions, "-T",
            "techniques=double-check",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "none of the first 20" in line]
    assert len(lines) == is_told
    assert all("--model-role reader=MODEL" in line for line in lines)


@pytest.mark.parametrize("sessions", [True, False])
def test_check_shows_what_was_sent_and_read(
    sessions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_KEY", "sk-0123456789")
    header = 'headers = { Authorization = "Bearer ${APP_KEY}", X-Who = "${APP_KEY}" }'
    with assisting(lambda texts, document: f"You told me: {' '.join(texts)}") as assistant:
        target = write_target(Path("app.toml"), assistant, sessions=sessions, more=header)
        done = holdfast("check", target, "--json")
        facts = json.loads(done.stdout)
        assert done.returncode == 0
        assert facts["kind"] == "target"
        assert facts["remembers"] is True
        assert facts["stateful"] is sessions
        assert len(facts["sent"]) == len(assistant.requests) == (4 if sessions else 2)
        assert all(assistant.url in request for request in facts["sent"])
        assert facts["read"][0].startswith("You told me: My patient is 47")
        assistant.reply = lambda texts, document: "Hello."
        forgets = holdfast("check", target)
        assert forgets.returncode == 0
        assert "does not name the age" in forgets.stderr
        assert "sk-0123456789" not in done.stdout + done.stderr + forgets.stdout
    gone = holdfast("check", target)
    assert gone.returncode == 2
    assert f"no server answers at {assistant.url}" in gone.stderr


@pytest.mark.parametrize("sessions", [True, False])
@pytest.mark.parametrize("defence", ["rederive", "quarantine", "vote", "recall", "abstain"])
@pytest.mark.rest_slow
def test_defences_stand_around_assistants(defence: str, sessions: bool) -> None:
    if defence == "recall":
        Path("recall.toml").write_text(
            'id = "recall"\nkind = "prompt"\nversion = 1\nturn = "Think again. {message}"\n',
            "utf-8",
        )
        defence = "recall.toml"
    with assisting(right) as assistant:
        done = asked_of(assistant, "--defence", defence, sessions=sessions)
    assert done.returncode == 0, done.stderr
    behind = pl.read_parquet("runs/turns.parquet").filter(pl.col("defence") != "none")
    assert behind.height
    assert behind.filter(pl.col("rule") != "handed-over")["correct"].all()


REFUSED = {
    "confidence": (("--defence", "confidence"), "gives no log-probabilities"),
    "system": (("--defence", "hardened"), "is sent no system message"),
    "settings": (("--max-tokens", "5"), "Set it in the assistant"),
    "address": (("--model-base-url", "http://h/"), "Write it into the target file"),
    "argument": (("-M", "x=1"), "Write it into the target file"),
    "another model": (("--model", "lean/x"), "Give --model http/NAME once"),
    "two": (("--model", "http/a", "--model", "http/b"), "names http/a and http/b"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(kind: str) -> None:
    options, fault = REFUSED[kind]
    with assisting(right) as assistant:
        done = asked_of(assistant, *options, sessions=True)
        assert assistant.requests == []
    assert done.returncode == 2
    assert fault in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_plan_counts_replays() -> None:
    with assisting(right) as assistant:
        options = ("--dry-run", "--json", "-T", "chains=double-check>authority-prior")
        (plain,) = json.loads(asked_of(assistant, *options).stdout)
        (row,) = json.loads(asked_of(assistant, *options, sessions=True).stdout)
        assert assistant.requests == []
        assert "replays" not in plain
        assert asked_of(assistant, *options[2:], sessions=True).returncode == 0
    assert len(assistant.asked) == row["generations"] + row["replays"]


def test_a_system_message_that_is_not_sent_is_told_of() -> None:
    with assisting(right) as assistant:
        done = asked_of(assistant, sessions=True)
    turns = pl.read_parquet("runs/turns.parquet")
    assert set(turns["sent_otherwise"]) == {"no system message was sent"}
    assert "no system message was sent" in done.stdout
