import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from benchmarks.server import COMPLETIONS, Server, reply_text, request_hash, running_server

ROOT = Path(__file__).resolve().parents[2]


def body(*texts: str, model: str = "bench") -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text} for text in texts]}


def connect(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)


def post(server: Server, path: str, content: object) -> tuple[int, dict[str, Any]]:
    connection = connect(server)
    connection.request("POST", path, json.dumps(content))
    reply = connection.getresponse()
    response = reply.status, json.load(reply)
    connection.close()
    return response


def has_ended(pid: int, within: float = 10) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            # an orphan that nobody waits for is gone too
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.reset()
    return running


def test_a_completion_has_what_a_client_reads(server: Server) -> None:
    status, reply = post(server, COMPLETIONS, body("x" * 400))
    text = reply["choices"][0]["message"]["content"]
    assert status == 200
    assert reply["model"] == "bench"
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert reply["usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": len(text) // 4,
        "total_tokens": 100 + len(text) // 4,
    }
    assert reply["id"].startswith(f"chatcmpl-{request_hash(body('x' * 400))}-")


def test_replies_depend_on_the_messages_alone(server: Server) -> None:
    first, again, third = (
        post(server, COMPLETIONS, content)[1]
        for content in (body("a"), {**body("a"), "temperature": 1}, body("b"))
    )
    assert first["choices"] == again["choices"]
    assert first["id"] != again["id"]
    assert first["choices"] != third["choices"]


def test_replies_are_about_150_words_and_end_in_every_letter() -> None:
    texts = [reply_text(request_hash(body(str(n)))) for n in range(400)]
    assert all(130 <= len(text.split()) <= 170 for text in texts)
    letters = [re.findall(r"Final Answer: \(([A-D])\)$", text)[0] for text in texts]
    assert all(70 <= letters.count(letter) <= 130 for letter in "ABCD")


def test_content_in_parts_is_counted(server: Server) -> None:
    parts = [{"type": "text", "text": "x" * 40}, {"type": "text", "text": "y" * 40}]
    content = {"model": "bench", "messages": [{"role": "user", "content": parts}]}
    assert post(server, COMPLETIONS, content)[1]["usage"]["prompt_tokens"] == 20


def test_stats_separate_distinct_and_repeated_requests(server: Server) -> None:
    for text in ("a", "b", "a", "a"):
        post(server, COMPLETIONS, body(text))
    post(server, COMPLETIONS, body("a", model="another"))
    counts = {"calls": 5, "distinct": 3, "repeated": 2, "paths": {COMPLETIONS: 5}}
    assert server.stats() == counts
    server.reset()
    assert server.stats() == {"calls": 0, "distinct": 0, "repeated": 0, "paths": {}}


def test_the_clock_runs_from_the_first_request_to_the_last_reply() -> None:
    with running_server(latency_ms=200) as server:
        assert server.seconds() == 0
        for text in ("a", "b"):
            post(server, COMPLETIONS, body(text))
        seconds = server.seconds()
        assert 0.4 <= seconds < 5
        time.sleep(0.1)
        assert server.seconds() == seconds
        server.reset()
        assert server.seconds() == 0


def test_key_order_does_not_matter(server: Server) -> None:
    content = body("a")
    reversed_content = {
        "messages": [dict(reversed(content["messages"][0].items()))],
        "model": "bench",
    }
    assert list(reversed_content) != list(content)
    assert request_hash(reversed_content) == request_hash(content)


@pytest.mark.parametrize("path", ["/v1/responses", "/", "/v1/models"])
def test_unknown_paths_are_404_and_not_counted(server: Server, path: str) -> None:
    status, reply = post(server, path, body("a"))
    assert status == 404
    assert path in reply["error"]["message"]
    assert server.stats() == {"calls": 0, "distinct": 0, "repeated": 0, "paths": {path: 1}}


@pytest.mark.parametrize(
    "content",
    [[], "text", {}, {"model": "bench"}, {"model": "bench", "messages": ["text"]}],
)
def test_a_body_that_is_no_request_is_refused(server: Server, content: object) -> None:
    assert post(server, COMPLETIONS, content)[0] == 400
    assert server.stats()["calls"] == 0


def test_streaming_is_refused(server: Server) -> None:
    assert post(server, COMPLETIONS, {**body("a"), "stream": True})[0] == 400


def test_a_connection_is_kept_for_many_requests(server: Server) -> None:
    connection = connect(server)
    connection.connect()
    connection_socket = connection.sock
    for n in range(50):
        connection.request("POST", COMPLETIONS, json.dumps(body(str(n))))
        reply = connection.getresponse()
        assert reply.status == 200
        reply.read()
    assert connection.sock is connection_socket
    connection.close()
    assert server.stats()["distinct"] == 50


def test_requests_may_arrive_in_pieces(server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    content = json.dumps(body("é" * 3)).encode()
    request = f"POST {COMPLETIONS} HTTP/1.1\r\ncontent-LENGTH: {len(content)}\r\n\r\n".encode()
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        for byte in request + content[:-1]:
            connection.sendall(bytes([byte]))
        connection.sendall(content[-1:] + 2 * (request + content))
        response = b""
        while response.count(b'"finish_reason"') < 3:
            response += connection.recv(65536)
    assert response.count(b"HTTP/1.1 200 OK") == 3
    assert server.stats()["repeated"] == 2


def test_a_connection_is_closed_on_request(server: Server) -> None:
    connection = connect(server)
    connection.request("GET", "/stats", headers={"Connection": "close"})
    assert connection.getresponse().read()
    assert connection.sock is None


def test_completions_wait_concurrently() -> None:
    with running_server(latency_ms=200) as server, ThreadPoolExecutor(20) as clients:
        start = time.monotonic()
        statuses = clients.map(lambda n: post(server, COMPLETIONS, body(str(n)))[0], range(20))
        assert set(statuses) == {200}
        assert 0.2 <= time.monotonic() - start < 2
        start = time.monotonic()
        server.stats()
        assert time.monotonic() - start < 0.2


def test_every_sent_completion_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "answered.log"
    with running_server(log=log) as server:
        assert server.log == log
        assert server.answered() == []
        for text in ("a", "b", "a"):
            post(server, COMPLETIONS, body(text))
        post(server, "/v1/responses", body("c"))
        assert server.answered() == [request_hash(body(text)) for text in ("a", "b", "a")]


def test_abandoned_completions_are_not_logged(tmp_path: Path) -> None:
    with running_server(latency_ms=300, log=tmp_path / "log") as server:
        connection = connect(server)
        connection.request("POST", COMPLETIONS, json.dumps(body("a")))
        connection.close()
        post(server, COMPLETIONS, body("b"))
        assert server.answered() == [request_hash(body("b"))]
        assert server.stats()["calls"] == 2


def test_the_server_ends_with_the_block() -> None:
    with running_server() as server:
        os.kill(server.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_the_server_ends_when_its_time_is_up() -> None:
    with running_server(lifetime=0.2) as server:
        assert has_ended(server.pid)


def test_the_server_ends_with_the_process_that_started_it() -> None:
    program = (
        "import time; from benchmarks.server import running_server\n"
        "with running_server() as server: print(server.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert has_ended(pid)
