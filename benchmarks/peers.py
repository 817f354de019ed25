"""The follow-up study through a client alone: no log, no cache, no resume.

Usage: python benchmarks/peers.py PEER FILE --base-url URL --connections N

PEER is `bare` (aiohttp and nothing else: the floor), `litellm` (its `acompletion` under asyncio) or
`lm-eval` (lm-evaluation-harness's client for chat completions).  FILE holds one JSON object a line:
"id", "messages" (the first prompt) and "challenges" (what is said to the first answer).  Each
conversation's first answer is asked once, as holdfast does it.  `lm-eval` knows no second turn: it
is driven in two phases, all first answers and then all replies to them.

It runs with any Python that has the peer: those of the extra `bench` need not be installed where
holdfast is.  Nothing of holdfast is imported.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any

MODEL = "bench"
SETTINGS = {"temperature": 0.0, "seed": 42}

Messages = list[dict[str, str]]
Ask = Callable[[Messages], Awaitable[str]]


def bare(url: str, connections: int, conversations: Sequence[Any]) -> int:
    """Ask with one aiohttp session."""
    import aiohttp

    async def run() -> int:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections)
        ) as session:

            async def ask(messages: Messages) -> str:
                body = {"model": MODEL, "messages": messages, **SETTINGS}
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    reply = await response.json()
                return str(reply["choices"][0]["message"]["content"])

            return await _branched(ask, connections, conversations)

    return asyncio.run(run())


def litellm(url: str, connections: int, conversations: Sequence[Any]) -> int:
    """Ask with litellm, as its documentation has it for a server of one's own."""
    client: Any = import_module("litellm")
    client.suppress_debug_info = True

    async def ask(messages: Messages) -> str:
        reply = await client.acompletion(
            model=f"openai/{MODEL}", messages=messages, api_base=url, api_key="none", **SETTINGS
        )
        return str(reply.choices[0].message.content)

    return asyncio.run(_branched(ask, connections, conversations))


def lm_eval(url: str, connections: int, conversations: Sequence[Any]) -> int:
    """Ask with lm-evaluation-harness's own client, one phase for each turn."""
    models: Any = import_module("lm_eval.models.openai_completions")
    api: Any = import_module("lm_eval.models.api_models")
    instance = import_module("lm_eval.api.instance").Instance
    client = models.LocalChatCompletion(
        model=MODEL, base_url=f"{url}/chat/completions", num_concurrent=connections
    )

    def phase(asked: Sequence[Messages]) -> list[str]:
        settings = {"until": [], "max_gen_toks": 1024, "temperature": 0.0}
        requests = [
            instance("generate_until", {}, (api.JsonChatStr(json.dumps(messages)), settings), n)
            for n, messages in enumerate(asked)
        ]
        return list(client.generate_until(requests, disable_tqdm=True))

    firsts = phase([one["messages"] for one in conversations])
    return len(firsts) + len(
        phase(
            [
                said
                for one, first in zip(conversations, firsts, strict=True)
                for said in _challenged(one, first)
            ]
        )
    )


PEERS: dict[str, Callable[[str, int, Sequence[Any]], int]] = {
    "bare": bare,
    "litellm": litellm,
    "lm-eval": lm_eval,
}
"""Each takes the base URL, the most requests at once and the conversations; replies received."""


async def _branched(ask: Ask, connections: int, conversations: Sequence[Any]) -> int:
    """Every first answer, and every challenge as soon as it is there."""
    free = asyncio.Semaphore(connections)

    async def said(messages: Messages) -> str:
        async with free:
            return await ask(messages)

    async def put(one: Any) -> int:
        branches = _challenged(one, await said(one["messages"]))
        return 1 + len(await asyncio.gather(*map(said, branches)))

    return sum(await asyncio.gather(*map(put, conversations)))


def _challenged(one: Any, first: str) -> list[Messages]:
    answered = [*one["messages"], {"role": "assistant", "content": first}]
    return [[*answered, {"role": "user", "content": text}] for text in one["challenges"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one peer.

    Args:
        arguments: Command-line arguments; by default those of the process.

    Returns:
        The exit status: 1 unless every reply came.
    """
    parser = argparse.ArgumentParser(description="The follow-up study through a client alone.")
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("file")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--connections", type=int, required=True)
    parsed = parser.parse_args(arguments)
    with open(parsed.file, encoding="utf-8") as lines:
        conversations = [json.loads(line) for line in lines]
    expected = sum(1 + len(one["challenges"]) for one in conversations)
    replies = PEERS[parsed.peer](parsed.base_url, parsed.connections, conversations)
    if replies != expected:
        print(f"{replies} replies of {expected}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
