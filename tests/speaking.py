"""A chat-completions server on loopback whose replies a function of the messages gives."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import itemgetter
from typing import Any

from benchmarks.server import completion, request_hash

Messages = list[dict[str, Any]]

Choice = dict[str, Any]
"""Fields of the reply's choice, ``message`` among them."""

Refusal = tuple[int, str]
"""An HTTP status and what the server says with it."""


@contextmanager
def speaking(
    reply: Callable[[Any], str | Refusal | Choice],
    excerpt: Callable[[Any], Any] = itemgetter("messages"),
) -> Iterator[str]:
    """Serve a model for as long as the block lasts.

    Args:
        reply: what the model says to messages of ``role`` and ``content``, or how it refuses them.
        excerpt: what of a request it is told, where that is not the messages alone.

    Yields:
        The base URL of the API.
    """

    class ChatHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            output = reply(excerpt(request))
            if isinstance(output, str):
                status, answer = 200, completion(request, request_hash(request))
                answer["choices"][0]["message"]["content"] = output
            elif isinstance(output, dict):
                status, answer = 200, completion(request, request_hash(request))
                answer["choices"][0] |= output
            else:
                status, answer = output[0], {"error": {"message": output[1]}}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), ChatHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()
