"""Assistants that go wrong: one-line errors, nothing asked twice that replay does not need."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from holdfast.models import server as retries
from tests.assisting import Assistant, AssistantRequest, Fault, assisting, write_target
from tests.fuzzing import gold_in
from tests.studies import (
    HOLDFAST,
    Done,
    finished_generations,
    holdfast,
    question_rows,
    write_jsonl,
)

from .driving import apart
from .test_secrets import KEY, planted_in

N, TECHNIQUES = 4, "double-check,authority-prior"
GENERATIONS, REPLAYS = N * 5, N * 3
"""First answer, two challenges, restate and resample; three of them follow the first answer."""


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_FIRST_WAIT", 0.001)


def right(texts: Sequence[str], document: str | None) -> str:
    """The right answer, in words that tell of the whole conversation."""
    return (
        f"Asked {len(texts)} times, {sum(map(len, texts))} letters. ({gold_in(texts[0])}) is right."
    )


@pytest.fixture
def assistant() -> Iterator[Assistant]:
    with assisting(right) as assistant:
        yield assistant


def command(folder: Path, assistant: Assistant, *, sessions: bool, more: str = "") -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    target = write_target(folder / "app.toml", assistant, sessions=sessions, more=more)
    questions = write_jsonl(folder / "q.jsonl", question_rows(N))
    return [
        "run", "followup", "--target", target, "--questions", questions, "-T",
        f"techniques={TECHNIQUES}", "-T", "system_prompt=none", "--log-dir", str(folder / "r"),
    ]  # fmt: skip


def put(folder: Path, assistant: Assistant, *options: str, sessions: bool, more: str = "") -> Done:
    return holdfast(*command(folder, assistant, sessions=sessions, more=more), *options)


def turns(folder: Path) -> pl.DataFrame:
    """What a run left, without what tells of time, and of whom was asked."""
    frame = pl.read_parquet(folder / "r" / "turns.parquet")
    return frame.drop("latency", "run", "replays", "replays_differ", "replays_moved")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The turns where nothing goes wrong."""
    folder = tmp_path_factory.mktemp("sound")
    with assisting(right) as assistant, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_CACHE_DIR", str(folder / "cache"))
        assert put(folder, assistant, sessions=False).returncode == 0
        assert len(assistant.asked) == GENERATIONS
    return turns(folder)


@pytest.mark.slow
def test_sessions_give_the_turns_of_whole_conversations(
    sound: pl.DataFrame, assistant: Assistant, tmp_path: Path
) -> None:
    done = put(tmp_path, assistant, sessions=True)
    assert done.returncode == 0, done.stderr
    assert turns(tmp_path).equals(sound)
    assert len(assistant.asked) == GENERATIONS + REPLAYS
    assert assistant.sessions == {}  # all are closed


@pytest.mark.parametrize("session", ["", 'id = "$.session"'])
def test_ids_that_holdfast_makes_or_the_first_reply_brings_give_the_same_turns(
    session: str, sound: pl.DataFrame, assistant: Assistant, tmp_path: Path
) -> None:
    arguments = command(tmp_path, assistant, sessions=False)
    text = f"""url = "{assistant.url}/talk"
body = {{ message = "{{{{ last }}}}", session = "{{{{ session }}}}" }}
reply = "$.answer"
[session]
{session}
"""
    (tmp_path / "app.toml").write_text(text, "utf-8")
    done = holdfast(*arguments)
    assert done.returncode == 0, done.stderr
    assert turns(tmp_path).equals(sound)
    assert len(assistant.requests) == GENERATIONS + REPLAYS
    assert len(assistant.sessions) == GENERATIONS
    assert sorted({len(texts) for texts in assistant.sessions.values()}) == [1, 2]


def drawn(rate: float, status: int, text: str, kind: str = "asked") -> Fault:
    """A fault of that share of the requests, the same in each run."""
    rng = random.Random(f"{rate} {status}")

    def fault(request: AssistantRequest) -> tuple[int, str] | None:
        fits = request.is_asked if kind == "asked" else request.method == "POST"
        return (status, text) if fits and rng.random() < rate else None

    return fault


STORMS = {
    "429": drawn(0.5, 429, "slow down"),
    "503": drawn(0.5, 503, "busy"),
    "500": drawn(0.3, 500, "oops"),
    "everywhere": drawn(0.4, 429, "slow down", kind="all"),
    "html": drawn(0.3, 200, "<html><body>Bad gateway</body></html>"),
    "no reply": drawn(0.3, 200, '{"error": "the model is loading"}'),
    "null": drawn(0.3, 200, '{"answer": null}'),
    "nothing": drawn(0.3, 200, ""),
}


@pytest.mark.parametrize("sessions", [True, False])
@pytest.mark.parametrize("storm", STORMS)
@pytest.mark.rest_slow
def test_a_storm_passes_and_leaves_the_same_turns(
    storm: str, sessions: bool, sound: pl.DataFrame, assistant: Assistant, tmp_path: Path
) -> None:
    first = {"probe": True}

    def fault(request: AssistantRequest) -> tuple[int, str] | None:
        # the first request of a study is sent alone, and stops it where it cannot be read
        if request.is_asked and first.pop("probe", False):
            return None
        return STORMS[storm](request)

    assistant.fault = fault
    done = put(tmp_path, assistant, "--generate-config", "{max_retries: 100}", sessions=sessions)
    assert done.returncode == 0, done.stderr
    assert turns(tmp_path).equals(sound)


def test_a_refused_call_is_repeated_within_its_session(
    assistant: Assistant, tmp_path: Path
) -> None:
    refused = []

    def fault(request: AssistantRequest) -> tuple[int, str] | None:
        # counted by what is asked: an attempt can be three requests
        if not request.is_asked or len(assistant.asked) % 3:
            return None
        refused.append(request)
        return 429, "slow down"

    assistant.fault = fault
    done = put(tmp_path, assistant, "--generate-config", "{max_retries: 100}", sessions=True)
    assert done.returncode == 0, done.stderr
    first = [r for r in refused if not assistant_heard(assistant, r)]
    assert len(refused) > 5
    # what the assistant has answered: each turn once, and first turns whose session was fresh
    answered = len(assistant.asked) - len(refused)
    assert answered == GENERATIONS + REPLAYS
    assert first


def assistant_heard(assistant: Assistant, request: AssistantRequest) -> bool:
    """Whether a session had heard something before a request."""
    return any(r.path == request.path and r.number < request.number for r in assistant.asked)


def test_a_check_survives_a_busy_moment(assistant: Assistant, tmp_path: Path) -> None:
    busy = [True, True]
    assistant.reply = lambda texts, document: " ".join(texts)
    assistant.fault = lambda request: (503, "busy") if busy and busy.pop() else None
    command(tmp_path, assistant, sessions=True)
    checked = holdfast("check", tmp_path / "app.toml")
    assert checked.returncode == 0, checked.stderr
    assert not busy


def test_a_refusal_to_open_a_session_is_named(assistant: Assistant, tmp_path: Path) -> None:
    assistant.fault = lambda request: (451, "no seats") if request.path == "/sessions" else None
    command(tmp_path, assistant, sessions=True, more="refused = [451]")
    checked = holdfast("check", tmp_path / "app.toml")
    assert checked.returncode == 2
    assert "opens no session (status 451): no seats" in checked.stderr


def test_sessions_that_expire_are_begun_anew(
    sound: pl.DataFrame, assistant: Assistant, tmp_path: Path
) -> None:
    expired: set[str] = set()

    def fault(request: AssistantRequest) -> tuple[int, str] | None:
        # every third session is gone when its second message comes
        id = request.path.rpartition("-")[2]
        heard = len(assistant.sessions.get(request.path.removeprefix("/sessions/"), []))
        if request.is_asked and heard == 1 and int(id) % 3 == 0:
            expired.add(id)
            return 404, '{"error": "no such session"}'
        return None

    assistant.fault = fault
    done = put(tmp_path, assistant, sessions=True)
    assert done.returncode == 0, done.stderr
    assert expired
    assert turns(tmp_path).equals(sound)
    assert len(assistant.asked) == GENERATIONS + REPLAYS + 2 * len(expired)


def test_an_id_that_repeats_mixes_no_conversations(
    sound: pl.DataFrame, assistant: Assistant, tmp_path: Path
) -> None:
    assistant.next_id = lambda number: f"session-{number - number % 4 // 3}"
    done = put(tmp_path, assistant, sessions=True)
    assert done.returncode == 0, done.stderr
    assert turns(tmp_path).equals(sound)
    with assisting(right, next_id=lambda number: "same") as other:
        options = ("--generate-config", "{max_retries: 2}")
        done = put(tmp_path / "always", other, *options, sessions=True)
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("holdfast:")]
    assert "session id 'same' was used before" in line


def test_a_late_reply_is_nobodys(sound: pl.DataFrame, assistant: Assistant, tmp_path: Path) -> None:
    def fault(request: AssistantRequest) -> None:
        if request.is_asked and request.number % 7 == 5:
            time.sleep(1.2)

    assistant.fault = fault
    done = put(tmp_path, assistant, sessions=True, more="timeout = 0.6")
    assert done.returncode == 0, done.stderr
    assert turns(tmp_path).equals(sound)


ALWAYS = {
    "html": (
        200,
        "<html>Sign in</html>",
        2,
        "is not in JSON: the response begins with '<html>Sign in",
    ),
    "no path": (200, '{"reply": "A"}', 2, "path $.answer matches nothing in a reply with the keys"),
    "no text": (200, '{"answer": {"text": "A"}}', 2, "path $.answer does not lead to text"),
    "401": (401, '{"error": "wrong key"}', 2, "HTTP 401: wrong key"),
    "404": (404, "not here", 2, "HTTP 404: not here"),
    "400": (400, '{"error": "bad field"}', 3, "HTTP 400: bad field"),
    "429": (429, "slow down", 3, "HTTP 429: slow down"),
}


@pytest.mark.parametrize("kind", ALWAYS)
def test_what_never_works_is_told_in_one_line(
    kind: str, assistant: Assistant, tmp_path: Path
) -> None:
    status, text, code, fault = ALWAYS[kind]
    assistant.fault = lambda request: (status, text) if request.is_asked else None
    done = put(tmp_path, assistant, "--generate-config", "{max_retries: 1}", sessions=False)
    assert done.returncode == code, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("holdfast:")]
    assert fault in line
    if code == 2:
        assert len(assistant.requests) == 1


def test_a_refusal_is_a_verdict(assistant: Assistant, tmp_path: Path) -> None:
    assistant.fault = lambda request: (
        (451, '{"error": "I do not discuss that"}')
        if request.is_asked and len(request.body["messages"]) > 1
        else None
    )
    done = put(tmp_path, assistant, sessions=False, more="refused = [451]")
    assert done.returncode == 0, done.stderr
    later = turns(tmp_path).filter(pl.col("turn") > 0)
    assert set(later["status"]) == {"refused"}
    assert set(later["reply"]) == {"I do not discuss that"}


def test_limits_hold(assistant: Assistant, tmp_path: Path) -> None:
    def fault(request: AssistantRequest) -> None:
        time.sleep(0.02)

    assistant.fault = fault
    began = time.monotonic()
    done = put(tmp_path, assistant, sessions=False, more="connections = 2\nrate = 20")
    assert done.returncode == 0, done.stderr
    assert assistant.most_open <= 2
    assert time.monotonic() - began >= (GENERATIONS - 1) / 20


def test_a_budget_counts_replays(assistant: Assistant, tmp_path: Path) -> None:
    done = put(tmp_path, assistant, "--call-limit", "10", sessions=True)
    assert done.returncode == 3
    assert len(assistant.asked) <= 10
    done = put(tmp_path, assistant, sessions=True)
    assert done.returncode == 0
    assert len(assistant.asked) == GENERATIONS + REPLAYS


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [True, False])
def test_a_secret_stands_nowhere_even_if_the_assistant_quotes_it(
    sessions: bool, assistant: Assistant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_CREDENTIAL", KEY)
    monkeypatch.setenv("HOLDFAST_CACHE_DIR", str(tmp_path / "cache"))
    quoted = {"answers": 0, "errors": 0}

    def reply(texts: Sequence[str], document: str | None) -> str:
        quoted["answers"] += 1
        return f"{right(texts, document)} My key is {KEY}, in JSON \\u0073k."

    def fault(request: AssistantRequest) -> tuple[int, str] | None:
        assert request.headers.get("Authorization") == f"Bearer {KEY}" or not request.is_asked
        if request.number % 4 == 3:
            quoted["errors"] += 1
            return 503, f'{{"error": "cannot serve {KEY}"}}'
        if request.is_asked and len(str(request.body)) % 5 == 0:
            return 400, f"never for {KEY}"
        return None

    assistant.reply, assistant.fault = reply, fault
    header = 'headers = { Authorization = "Bearer ${APP_CREDENTIAL}" }'
    done = put(tmp_path, assistant, "--generate-config", "{max_retries: 2}", sessions=sessions,
               more=header)  # fmt: skip
    checked = holdfast("check", tmp_path / "app.toml")
    planned = put(tmp_path, assistant, "--dry-run", sessions=sessions, more=header)
    said = [done.stdout, done.stderr, checked.stdout, checked.stderr, planned.stdout]
    if (tmp_path / "r" / "turns.parquet").exists():
        made = holdfast("report", tmp_path / "r", "-o", tmp_path / "report.html")
        said += [made.stdout, made.stderr]
    assert quoted["answers"]
    assert quoted["errors"]
    assert "with the environment variable APP_CREDENTIAL" in done.stderr
    assert planted_in(tmp_path) == []
    assert not any(KEY in text for text in said)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 4))])
def test_killed_at_random_and_resumed_a_run_leaves_the_same_turns(
    seed: int, sound: pl.DataFrame, assistant: Assistant, tmp_path: Path
) -> None:
    rng = random.Random(seed)

    def fault(request: AssistantRequest) -> None:
        time.sleep(0.03)

    assistant.fault = fault
    arguments = [
        str(HOLDFAST),
        *command(tmp_path, assistant, sessions=True, more="connections = 2"),
    ]
    env, asked = apart(), 0
    for _ in range(3):
        process = subprocess.Popen(
            arguments, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = len(assistant.asked) + rng.randint(1, 9)
        while len(assistant.asked) < until and process.poll() is None:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    kept, asked = finished_generations(tmp_path / "r"), len(assistant.asked)
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert turns(tmp_path).equals(sound)
    # no finished generation is asked for again
    left = GENERATIONS - kept
    assert left <= len(assistant.asked) - asked <= 2 * left
