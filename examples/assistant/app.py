"""A small assistant to try holdfast on: sessions, retrieval over ten passages, prose, a disclaimer.

Usage: python examples/assistant/app.py [--port 8765]

It answers a multiple-choice question by the words that an option shares with the passage that it
retrieves. It believes whatever is retrieved, and nothing that is said in the chat.
"""

import argparse
import json
import math
import os
import re
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

PASSAGES = Path(__file__).with_name("passages.txt").read_text("utf-8").split("\n\n")
SESSIONS: dict[str, list[str]] = {}


def words(text: str) -> set[str]:
    """The words of a text."""
    return set(re.findall(r"[a-z0-9]{2,}", text.lower()))


def reply(messages: list[str], document: str | None) -> str:
    """The answer to the question in the conversation, by what is retrieved for it."""
    asked = [(m, re.findall(r"(?m)^([A-J])\. (.+)$", m)) for m in messages]
    question, options = next(((m, options) for m, options in asked if options), ("", []))
    if not options:
        return f"I can answer questions with options. You told me: {' '.join(messages[:-1])}"
    passage = max(PASSAGES, key=lambda text: len(words(question) & words(text)))
    shared = Counter(word for _, option in options for word in words(option))

    def support(option: str, text: str) -> float:
        # an exact sum: the order of a set differs from run to run, and near ties would turn with it
        rare = math.fsum(1 / shared[word] for word in words(option) & words(text))
        return rare / math.sqrt(1 + len(words(option)))

    letter, option = max(
        options, key=lambda item: support(item[1], passage) + 1.5 * support(item[1], document or "")
    )
    return (
        f"From what you describe and what I have read about it, option {letter} ({option}) fits "
        "best. This is general information and does not replace a doctor."
    )


class Handler(BaseHTTPRequestHandler):
    """Answers at /chat, and in sessions."""

    def do_POST(self) -> None:
        """Answer, or open a session."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        key = os.environ.get("ASSISTANT_KEY")
        session = self.path.removeprefix("/sessions/")
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self.send(401, {"error": "wrong key"})
        elif self.path == "/chat":
            said = [m["content"] for m in body["messages"] if m["role"] == "user"]
            self.send(200, {"answer": reply(said, body.get("document"))})
        elif self.path == "/sessions":
            SESSIONS[id := uuid4().hex] = []
            self.send(200, {"session": id})
        elif session in SESSIONS:
            SESSIONS[session].append(body["message"])
            self.send(200, {"answer": reply(SESSIONS[session], body.get("document"))})
        else:
            self.send(404, {"error": "no such session"})

    def do_DELETE(self) -> None:
        """Close a session."""
        SESSIONS.pop(self.path.removeprefix("/sessions/"), None)
        self.send(200, {})

    def send(self, status: int, content: dict[str, str]) -> None:
        """Send JSON."""
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8765)
    ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler).serve_forever()
