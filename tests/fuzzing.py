"""What the tests of MedFuzz share: an attacker and a target by script, in the process or by HTTP.

Questions are those of ``question_rows``; an attempt gives the patient a trade, so that a prompt
tells which question it is about, and a modified one which attempt it is.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

from benchmarks.server import COMPLETIONS, HOST, Connection, Json, Site, completion
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, ModelOutput

from tests.scripted import Scripted, put
from tests.tasks import medfuzz

TRADES = (
    "baker", "sailor", "potter", "farmer", "tailor", "miller", "weaver", "mason", "cooper",
    "brewer", "fisher", "joiner", "glazier", "saddler", "tanner", "thatcher", "carver", "roofer",
    "printer", "gardener", "plumber", "painter", "butcher", "grocer",
)  # fmt: skip
"""The trade that each reply of the attacker adds, in order; a control adds another."""

GOLD = "ABCD"
"""The right letter of question ``q{i}`` is ``GOLD[i % 4]``."""

# names of which the framework knows that they take a temperature
TARGET, ATTACKER = "gpt-4-target", "gpt-4-attacker"
"""Models of the server."""

Message = tuple[str, str]
"""Role and text."""

Reply = Callable[[Sequence[Message]], str]


def stem_in(text: str) -> str:
    """The stem of the question that a prompt is about."""
    number = re.search(r"Vignette number (\d+)\.", text)
    assert number, text
    return f"Vignette number {number[1]}. Which finding is expected?"


def gold_in(text: str) -> str:
    """The right letter of the question that a prompt is about."""
    number = re.search(r"Vignette number (\d+)\.", text)
    assert number, text
    return GOLD[int(number[1]) % 4]


def trade_in(text: str) -> str | None:
    """The trade that a modified question names, None for the original."""
    match = re.search(r"works as an? (\w+)\.", text)
    return match[1] if match else None


def fuzz(stem: str, trade: str, **changes: Any) -> str:
    """A valid modification: the patient has that trade."""
    first, remainder = stem.split(". ", 1)
    fields = {
        "analysis": "It rests on the findings.",
        "plan": "A trade may draw it away.",
        "modified_question": f"{first}. The patient works as a {trade}. {remainder}",
        "characteristics": [f"works as a {trade}"],
    }
    return json.dumps(fields | changes)


def attacking(messages: Sequence[Message]) -> str:
    """The next trade in each reply of a conversation; controls have their own by number."""
    prompt = messages[1][1]
    control = re.search(r"This is control number (\d+)", prompt)
    replies = sum(role == "assistant" for role, _ in messages)
    trade = TRADES[-int(control[1])] if control else TRADES[replies]
    return fuzz(stem_in(prompt), trade)


def answering(*trades: str) -> Reply:
    """A target that is right but where the patient has one of those trades."""

    def reply(messages: Sequence[Message]) -> str:
        gold, trade = gold_in(messages[-1][1]), trade_in(messages[-1][1])
        if trade not in trades:
            return f"The finding fits. Final Answer: ({gold})"
        return f"One who works as a {trade} has another. Final Answer: ({wrong(gold)})"

    return reply


def wrong(letter: str) -> str:
    """A wrong letter."""
    return "B" if letter == "A" else "A"


ATTACKS_ALONE = ("-T", "controls=false", "-T", "confirm=0")
"""Arguments of a run that asks nothing beside its attacks."""


# --- in the process ---


def scripted(reply: Callable[[Sequence[Message]], str | ModelOutput], name: str) -> Scripted:
    """A model of the process that answers by that script."""

    def answer(messages: list[ChatMessage]) -> str | ModelOutput:
        return reply([(message.role, message.text) for message in messages])

    return Scripted(answer, name)


def attack(
    target: Any,
    *,
    attacker: Any,
    judge: Any = None,
    roles: Mapping[str, Any] | None = None,
    epochs: int = 1,
    **settings: Any,
) -> EvalLog:
    """A study of MedFuzz through a real ``eval``."""
    settings = {"controls": False, "confirm": 0} | settings
    bound = {"attacker": attacker} | ({"judge": judge} if judge is not None else {})
    return put(medfuzz(**settings), target, epochs=epochs, roles=bound | dict(roles or {}))


# --- over HTTP ---


@dataclass(frozen=True)
class Request:
    """A request as the server got it."""

    model: str
    messages: tuple[Message, ...]
    seed: int | None
    body: Json

    @property
    def key(self) -> str:
        """Equal for equal requests."""
        return json.dumps([self.model, self.messages, self.seed])


Serving = Callable[[Request], str | tuple[str, str]]
"""What is said to a request, with the reason why it ends where that is not ``stop``."""


class Script(Site):
    """What answers by a script and keeps what it was asked."""

    url = ""

    def __init__(self, reply: Serving, latency_ms: float) -> None:
        super().__init__(latency_ms / 1000, None)
        self.reply = reply
        self.requests: list[Request] = []

    @property
    def repeated(self) -> int:
        """Requests that had been made before, seed included."""
        return len(self.requests) - len({request.key for request in self.requests})

    def by(self, model: str) -> list[Request]:
        """Requests to one model, in the order of asking."""
        return [request for request in self.requests if request.model == model]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Json, str]:
        if path != COMPLETIONS:
            return 404, {"error": {"message": f"no such endpoint: {path}"}}, ""
        payload = json.loads(body)
        messages = tuple((m["role"], _text(m["content"])) for m in payload["messages"])
        request = Request(payload["model"], messages, payload.get("seed"), payload)
        self.requests.append(request)
        output = self.reply(request)
        text, reason = (output, "stop") if isinstance(output, str) else output
        reply = completion(payload, f"{len(self.requests):032x}")
        reply["choices"][0]["message"]["content"] = text
        reply["choices"][0]["finish_reason"] = reason
        return 200, reply, request.key


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def serving(target: Reply, attacker: Reply = attacking) -> Callable[[Request], str]:
    """A server of two models, the attacker and any other."""

    def reply(request: Request) -> str:
        return (attacker if request.model == ATTACKER else target)(request.messages)

    return reply


@contextmanager
def script_server(reply: Serving, latency_ms: float = 0) -> Iterator[Script]:
    """A server on loopback, in a thread, that answers by a script."""
    site, loop = Script(reply, latency_ms), asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(lambda: Connection(site), HOST, 0))
    site.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}/v1"
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.close()


def at(site: Script, *more: str) -> list[str]:
    """Arguments that put target and attacker at the server."""
    role = f"attacker={{model: openai/{ATTACKER}, base_url: {site.url}}}"
    return [
        "--model", f"openai/{TARGET}", "--model-base-url", site.url, "--model-role", role, *more,
    ]  # fmt: skip
