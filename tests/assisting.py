"""Test assistant on the loopback interface, with and without sessions and with optional faults.

POST /chat {"messages", "document"}            {"answer"}, from the whole conversation
POST /talk {"message", "document", "session"}  {"answer", "session"}, new session if no id is given
POST /sessions                                 {"session"}, opens a session
POST /sessions/ID {"message", "document"}      {"answer"}, from the history of the session
DELETE /sessions/ID                            {}, closes the session
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
"""Function that returns the reply to the user messages and the document of the newest message."""


@dataclass(frozen=True)
class AssistantRequest:
    """Request that the assistant received.

    Attributes:
        number: number of earlier requests.
        method: HTTP method.
        path: path of the URL.
        headers: headers by name.
        body: parsed JSON body, None for no body.
    """

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def is_asked(self) -> bool:
        """Whether the request asks for a reply."""
        return self.method == "POST" and self.path != "/sessions"


Fault = Callable[[AssistantRequest], tuple[int, str] | None]
"""Function that returns status and text of a faulty response to a request, None for no fault."""


@dataclass
class Assistant:
    """Assistant that records its requests and sessions.

    Attributes:
        reply: function that returns the reply.
        fault: function that returns a faulty response, or None for a normal response.
        next_id: function that returns the id of a new session, given the number of earlier ones.
        requests: all requests received.
        sessions: user messages by session id.
        url: base URL of the assistant.
        most_open: maximum number of requests handled at the same time.
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
        """Requests that ask for a reply."""
        return [request for request in self.requests if request.is_asked]

    def answer(self, request: AssistantRequest) -> tuple[int, str]:
        """Return status and text of the response to a request."""
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
        """Open a session and return its id."""
        with self._lock:
            id = self.next_id(self._opened)
            self._opened += 1
            self.sessions.setdefault(id, [])
        return id

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Record a request and send the response."""
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
    """Run an assistant on the loopback interface, in threads, until the block ends."""
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
    """Write a target file for the assistant and return its path."""
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
