"""Requests and rows of each protocol, over loopback, equal to those recorded.

``HOLDFAST_RECORD=1 pytest tests/parity`` records them anew.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aiohttp import web

import holdfast

from .answers import answer

RECORDINGS = Path(__file__).parent / "recorded"

COLUMNS = (
    "question", "epoch", "arm", "path", "turn", "technique", "family", "suggested", "target",
    "answer", "status", "rule", "prompt", "reply",
)  # fmt: skip

PLAN_COLUMNS = ("protocol", "defence", "model", "questions", "generations", "at_least")

STUDIES: Mapping[str, tuple[Sequence[str], Mapping[str, Any]]] = {
    "followup": (["followup"], {
        "limit": 8, "task_args": {"chains": "paper", "corrections": True}}),
    "followup-epochs": (["followup"], {
        "limit": 3, "epochs": 3, "task_args": {"corrections": True}}),
    "followup-not-own": (["followup"], {
        "limit": 6, "allow_simulated_inputs": True,
        "task_args": {"contexts": "synthetic", "suggest": "not-own", "lengths": "1,10"}}),
    "followup-judged": (["followup"], {
        "limit": 3, "model_role": {"judge": "lean/helper"}}),
    "single-turn": (["single-turn"], {"limit": 8, "task_args": {"mitigations": "all"}}),
    "two-protocols": (["single-turn", "followup"], {"limit": 4}),
    "stick-or-switch": (["stick-or-switch"], {"limit": 20}),
    "stick-or-switch-paper": (["stick-or-switch"], {
        "limit": 6, "task_args": {"exemplar_answers": "paper", "controls": False}}),
    "medfuzz": (["medfuzz"], {
        "limit": 6, "epochs": 3, "task_args": {"confirm": 3},
        "model_role": {"attacker": "lean/attacker", "judge": "lean/helper"}}),
    "medfuzz-bare": (["medfuzz"], {
        "limit": 6, "epochs": 2, "task_args": {"confirm": 0, "controls": False, "attempts": 2},
        "model_role": {"attacker": "lean/attacker"}}),
    "open": (["open"], {
        "limit": 4, "task_args": {"corrections": True, "judgements": 2},
        "model_role": {"judge": "lean/helper"}}),
    "pressure": (["pressure"], {
        "limit": 4, "task_args": {"neutral": "adaptive"}, "model_role": {"user": "lean/user"}}),
    "pressure-open": (["pressure"], {
        "limit": 3, "task_args": {"options": False, "turns": 7, "after_flip": "stop"},
        "model_role": {"judge": "lean/helper"}}),
    "defences": (["followup", "stick-or-switch"], {
        "limit": 2, "defence": ["vote", "rederive", "quarantine", "verify", "agreement+abstain"],
        "model_role": {"verifier": "lean/helper"}}),
}  # fmt: skip

LARGE = ("medfuzz", "pressure", "defences")
"""Studies whose plans take seconds."""


@dataclass
class Recorder:
    """A server on loopback that keeps the bodies of its requests."""

    port: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def complete(self, request: web.Request) -> web.Response:
        """Answer a chat-completions request."""
        body = await request.json()
        self.bodies.append(body)
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        message = {"role": "assistant", "content": answer(body)}
        return web.json_response({
            "id": f"completion-{len(self.bodies)}",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        })  # fmt: skip


@contextmanager
def recorder() -> Iterator[Recorder]:
    """A recorder for as long as the block lasts."""
    server, loop = Recorder(), asyncio.new_event_loop()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", server.complete)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        return runner

    runner = loop.run_until_complete(start())
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name
             for name in STUDIES],
)  # fmt: skip
def test_requests_and_rows_match_the_recording(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocols, options = STUDIES[name]
    with recorder() as server:
        monkeypatch.setenv("LEAN_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
        outcome = holdfast.run(protocols, "lean/tested", log_dir=tmp_path / "runs", **options)
        plan = holdfast.plan(protocols, "lean/tested", **options).table.to_dicts()
    assert not outcome.unfinished
    rows = holdfast.read_turns(tmp_path / "runs").select(
        "protocol", "defence", *COLUMNS
    ).to_dicts()  # fmt: skip
    lines = sorted(
        [f"request {body['model']} {_digest(body)}" for body in server.bodies]
        + [_label(row) + _digest([row[name] for name in COLUMNS]) for row in rows]
        + [
            f"plan {' '.join(str(row[name]) for name in PLAN_COLUMNS)}"
            for row in plan
            if not options.get("defence")
        ]
    )
    record = RECORDINGS / f"{name}.txt"
    if os.environ.get("HOLDFAST_RECORD"):
        record.write_text("\n".join([*lines, ""]))
    recording = record.read_text().splitlines()
    # to compare by eye
    (tmp_path / "bodies.jsonl").write_text("\n".join(map(json.dumps, server.bodies)))
    missing, more = set(recording) - set(lines), set(lines) - set(recording)
    assert not missing | more, f"{len(missing)} missing, {len(more)} more: see {tmp_path}"
    assert len(lines) == len(recording), "something is asked or recorded twice"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _label(row: Mapping[str, Any]) -> str:
    names = ("protocol", "defence", "question", "epoch", "arm", "path", "turn")
    return "row " + " ".join(str(row[name]) for name in names) + " "
