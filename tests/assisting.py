"""An assistant on loopback, with sessions and without, that goes wrong where a test wants it.

POST /chat {"messages", "document"}            {"answer"}, of the whole conversation
POST /talk {"message", "document", "session"}  {"answer", "session"}, without an id in a new session
POST /sessions                                 {"session"}
POST /sessions/ID {"message", "document"}      {"answer"}, of a conversation that it remembers
DELETE /sessions/ID                            closes it
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

Reply = Callable[[Sequence[str], str | None], str]
"""What is said to the messages of a user, of which the newest has that document."""


@dataclass(frozen=True)
class AssistantRequest:
    """A request as the assistant got it.

    Attributes:
        number: how many came before.
        method: of HTTP.
        path: of the URL.
        headers: by name.
        body: what it brought; None for nothing.
    """

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def is_asked(self) -> bool:
        """Whether it asks for a reply."""
        return self.method == "POST" and self.path != "/sessions"


Fault = Callable[[AssistantRequest], tuple[int, str] | None]
"""Status and text that a request is answered with instead; None for no fault."""


@dataclass
class Assistant:
    """The assistant.

    Attributes:
        reply: what it says.
        fault: where it goes wrong.
        next_id: the id of the session that it opens, by how many it has opened.
        requests: all that it got.
        sessions: what the user has said, by id.
        most_open: how many requests it has answered at once at the most.
    """

    reply: Reply
    fault: Fault = lambda request: None
    next_id: Callable[[int], str] = lambda number: f"session-{number}"
    requests: list[AssistantRequest] = field(default_factory=list)
    sessions: dict[str, list[str]] = field(default_factory=dict)
    url: str = ""
    most_open: int = 0
    _open: int = 0
    _opened: int = 0
    _lock: Lock = field(default_factory=Lock)

    @property
    def asked(self) -> list[AssistantRequest]:
        """The requests for a reply."""
        return [request for request in self.requests if request.is_asked]

    def answer(self, request: AssistantRequest) -> tuple[int, str]:
        """Status and text of the response."""
        if (fault := self.fault(request)) is not None:
            return fault
        id = request.path.removeprefix("/sessions/")
        if request.path == "/chat":
            texts = [m["content"] for m in request.body["messages"] if m["role"] == "user"]
            return 200, json.dumps({"answer": self.reply(texts, request.body.get("document"))})
        if request.path == "/sessions":
            return 200, json.dumps({"session": self.open_session()})
        if request.path == "/talk":
            id = request.body.get("session") or self.open_session()
            self.sessions.setdefault(id, [])
        if id not in self.sessions:
            return 404, json.dumps({"error": "no such session"})
        if request.method == "DELETE":
            self.sessions.pop(id)
            return 200, "{}"
        self.sessions[id].append(request.body["message"])
        text = self.reply(self.sessions[id], request.body.get("document"))
        return 200, json.dumps({"answer": text, "session": id})

    def open_session(self) -> str:
        """The id of a new session."""
        with self._lock:
            id = self.next_id(self._opened)
            self._opened += 1
            self.sessions.setdefault(id, [])
        return id

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        length = int(handler.headers.get("Content-Length") or 0)
        data = handler.rfile.read(length)
        with self._lock:
            request = AssistantRequest(
                len(self.requests), handler.command, handler.path, dict(handler.headers),
                json.loads(data) if data else None,
            )  # fmt: skip
            self.requests.append(request)
            self._open += 1
            self.most_open = max(self.most_open, self._open)
        try:
            status, text = self.answer(request)
        finally:
            with self._lock:
                self._open -= 1
        content = text.encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        if status in (429, 503):
            handler.send_header("Retry-After", "0")
        handler.end_headers()
        handler.wfile.write(content)


@contextmanager
def assisting(reply: Reply, **more: Any) -> Iterator[Assistant]:
    """An assistant on loopback, in threads."""
    assistant = Assistant(reply, **more)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assistant.handle(self)

        def do_DELETE(self) -> None:
            assistant.handle(self)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 100

        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    assistant.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield assistant
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_target(path: Path, assistant: Assistant, *, sessions: bool, more: str = "") -> str:
    """A target file for the assistant, and its path."""
    if not sessions:
        text = f"""
url = "{assistant.url}/chat"
body = {{ messages = "{{{{ messages }}}}", document = "{{{{ document }}}}" }}
reply = "$.answer"
{more}
"""
    else:
        text = f"""
url = "{assistant.url}/sessions/{{{{ session }}}}"
body = {{ message = "{{{{ last }}}}", document = "{{{{ document }}}}" }}
reply = "$.answer"
{more}

[session.open]
url = "{assistant.url}/sessions"
id = "$.session"

[session.close]
url = "{assistant.url}/sessions/{{{{ session }}}}"
method = "DELETE"
"""
    path.write_text(text, "utf-8")
    return str(path)
