"""The lean provider against a server with scripted replies."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    get_model,
)
from tenacity import RetryCallState, Retrying

from holdfast.errors import InputError
from holdfast.models.lean import Lean
from holdfast.models.server import ServerError

MESSAGES: list[ChatMessage] = [
    ChatMessageSystem(content="Be exact."),
    ChatMessageUser(content="Which? {x} \u202e"),
]


def completion(**choice: Any) -> dict[str, Any]:
    message = choice.pop("message", {"role": "assistant", "content": "Final Answer: (B)"})
    return {
        "model": "served",
        "choices": [{"message": message, "finish_reason": "stop", **choice}],
        "usage": {
            "prompt_tokens": 50,
            "completion_tokens": 7,
            "total_tokens": 57,
            "prompt_tokens_details": {"cached_tokens": 30},
        },
    }


class ReplyServer:
    """A server that gives the replies of a list, the last one for ever."""

    def __init__(self, *replies: tuple[int, Any]) -> None:
        self.replies = list(replies)
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.fields: dict[str, str] = {}
        script = self

        class ReplyHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                script.bodies.append(json.loads(body))
                script.keys.append(self.headers.get("Authorization"))
                status, reply = (
                    script.replies.pop(0) if len(script.replies) > 1 else script.replies[0]
                )
                content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                for name, value in script.fields.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), ReplyHandler)
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.thread.start()

    def model(self, **settings: Any) -> Model:
        return get_model(
            "lean/tiny",
            base_url=f"http://127.0.0.1:{self.server.server_address[1]}/v1",
            config=GenerateConfig(max_retries=1, **settings),
            memoize=False,
        )


@pytest.fixture
def serve() -> Iterator[Callable[..., ReplyServer]]:
    scripts: list[ReplyServer] = []

    def start(*replies: tuple[int, Any]) -> ReplyServer:
        scripts.append(ReplyServer(*replies))
        return scripts[-1]

    yield start
    for script in scripts:
        script.server.shutdown()
        script.server.server_close()


async def test_requests_have_settings_and_replies_usage(
    serve: Callable[..., ReplyServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_API_KEY", "secret")
    script = serve((200, completion()))
    model = script.model(temperature=0.0, seed=42, max_tokens=9)
    async with model:
        output = await model.generate(list(MESSAGES))
    assert script.bodies == [
        {
            "model": "tiny",
            "messages": [
                {"role": "system", "content": "Be exact."},
                {"role": "user", "content": "Which? {x} \u202e"},
            ],
            "temperature": 0.0,
            "max_tokens": 9,
            "seed": 42,
        }
    ]
    assert script.keys == ["Bearer secret"]
    assert (output.completion, output.model) == ("Final Answer: (B)", "served")
    assert output.stop_reason == "stop"
    assert output.usage is not None
    assert (output.usage.input_tokens, output.usage.input_tokens_cache_read) == (20, 30)
    assert (output.usage.output_tokens, output.usage.total_tokens) == (7, 57)


@pytest.mark.parametrize(
    ("choice", "stop_reason", "text"),
    [
        ({"finish_reason": "length"}, "max_tokens", "Final Answer: (B)"),
        ({"message": {"content": None}, "finish_reason": "content_filter"}, "content_filter", ""),
        ({"message": {"content": None, "refusal": "I cannot"}}, "content_filter", "I cannot"),
        ({"message": {"content": "B", "reasoning_content": "Hm."}}, "stop", "B"),
    ],
    ids=["cut off", "filtered", "refused", "reasoned"],
)
async def test_a_reply_has_its_stop_reason_and_text(
    choice: dict[str, Any], stop_reason: str, text: str, serve: Callable[..., ReplyServer]
) -> None:
    async with serve((200, completion(**choice))).model() as model:
        output = await model.generate(list(MESSAGES))
    assert (output.stop_reason, output.completion) == (stop_reason, text)


async def test_log_probabilities_are_kept(serve: Callable[..., ReplyServer]) -> None:
    token = {"token": "B", "logprob": -0.1, "top_logprobs": [{"token": "A", "logprob": -2.0}]}
    script = serve((200, completion(logprobs={"content": [token]})))
    async with script.model(logprobs=True, top_logprobs=5) as model:
        output = await model.generate(list(MESSAGES))
    assert (script.bodies[0]["logprobs"], script.bodies[0]["top_logprobs"]) == (True, 5)
    (logprobs,) = [choice.logprobs for choice in output.choices]
    assert logprobs is not None
    assert logprobs.content[0].logprob == -0.1


@pytest.mark.parametrize(
    "fault",
    [
        (429, {"error": {"message": "slow down"}}),
        (503, b"busy"),
        (200, b'{"choices": ['),
        (200, {}),
        (200, completion(message={"content": 7})),
    ],
    ids=["rate limit", "unavailable", "truncated", "empty", "no text"],
)
async def test_a_passing_fault_is_retried(
    fault: tuple[int, Any], serve: Callable[..., ReplyServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = serve(fault, (200, completion()))
    monkeypatch.setattr("asyncio.sleep", _no_wait)
    monkeypatch.setattr("anyio.sleep", _no_wait)
    async with script.model() as model:
        output = await model.generate(list(MESSAGES))
    assert output.completion == "Final Answer: (B)"
    assert len(script.bodies) == 2


async def _no_wait(*_: Any) -> None:
    return None


async def test_a_lasting_fault_is_raised_at_once_without_the_key(
    serve: Callable[..., ReplyServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_API_KEY", "sk-secret-123")
    script = serve((401, {"error": {"message": "wrong key\nsk-secret-123 given"}}))
    async with script.model() as model:
        with pytest.raises(Exception, match=r"HTTP 401: wrong key \[key\] given"):
            await model.generate(list(MESSAGES))
    assert len(script.bodies) == 1


async def test_a_password_from_the_environment_is_sent_not_kept(
    serve: Callable[..., ReplyServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = serve((200, completion()))
    port = script.server.server_address[1]
    monkeypatch.setenv("LEAN_BASE_URL", f"http://me:pa%40ss@127.0.0.1:{port}/v1")
    async with get_model("lean/tiny", memoize=False) as model:
        await model.generate(list(MESSAGES))
    assert script.keys == ["Basic " + base64.b64encode(b"me:pa@ss").decode()]
    assert model.api.base_url == f"http://127.0.0.1:{port}/v1"
    assert model.explicit_base_url is None


async def test_a_filtered_request_is_a_reply(serve: Callable[..., ReplyServer]) -> None:
    script = serve((400, {"error": {"message": "not this", "code": "content_filter"}}))
    async with script.model() as model:
        output = await model.generate(list(MESSAGES))
    assert (output.stop_reason, output.completion) == ("content_filter", "not this")


def wait_after(error: Exception, attempt: int) -> float:
    """The seconds that the provider waits after a failed attempt."""
    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = attempt
    state.set_exception((type(error), error, None))
    return Lean("tiny", "http://127.0.0.1:9/v1").retry_wait()(state)


@pytest.mark.parametrize(
    ("attempt", "low", "high"), [(1, 0.5, 0.75), (2, 1.5, 2.25), (4, 13.5, 20.25), (9, 300, 300)]
)
def test_waits_triple_up_to_five_minutes(attempt: int, low: float, high: float) -> None:
    for _ in range(20):  # part of a wait is drawn
        assert low <= wait_after(ServerError(503, "busy"), attempt) <= high


def test_the_servers_wait_is_respected_up_to_five_minutes() -> None:
    assert wait_after(ServerError(429, "slow down", 20.0), 1) == 20.0
    assert wait_after(ServerError(429, "slow down", 7200.0), 1) == 300.0


async def test_retry_after_is_read_as_seconds_or_as_a_date(
    serve: Callable[..., ReplyServer],
) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90))
    for header, low, high in (
        ("2.5", 2.5, 2.5),
        (date, 80, 90),
        ("soon", None, None),
        ("Infinity", None, None),
        ("nan", None, None),
        ("1e9", 300, 300),
        ("-5", 0, 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 300, 300),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None, None),
    ):
        script = serve((429, {"error": "slow down"}))
        script.fields = {"Retry-After": header}
        lean = Lean("tiny", f"http://127.0.0.1:{script.server.server_address[1]}/v1")
        with pytest.raises(ServerError) as caught:
            await lean.generate(list(MESSAGES), [], "auto", GenerateConfig())
        await lean.aclose()
        after = caught.value.retry_after
        assert after is None if low is None else low <= (after or 0.0) <= (high or 0.0)


def test_a_server_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAN_BASE_URL", raising=False)
    with pytest.raises(InputError, match="--model-base-url"):
        Lean("tiny")
