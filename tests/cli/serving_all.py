"""A server that takes any part in a study: target, attacker, generator of contexts or reader."""

import hashlib
import json
import re

from tests.fuzzing import ATTACKER, Request, attacking


def draw(text: str, values: str) -> str:
    """One of the letters, fixed by the text."""
    return values[hashlib.sha256(text.encode()).digest()[0] % len(values)]


def text_for(prompt: str) -> str:
    """What a prompt of a generator asks for: a letter, sentences, or JSON with sentences in it."""
    length = re.search(r"Is exactly (\d+) sentences long", prompt)
    if length is None:
        letters = re.findall(r"^([A-J])[.:)]", prompt.rpartition("Available options")[2], re.M)
        return letters[-1] if letters else "A"
    text = " ".join(f"Finding number {n} fits." for n in range(int(length[1])))
    if '"alternative_answer"' in prompt:
        return json.dumps({"alternative_answer": "A rare syndrome", "context": text})
    return text


def reply_to(request: Request) -> str:
    """Targets draw a letter by the messages; every other try of an attacker is no attack."""
    if request.model == "writer":
        return text_for(request.messages[-1][1])
    if request.model == ATTACKER:
        replies = sum(role == "assistant" for role, _ in request.messages)
        return attacking(request.messages) if replies % 2 else "Prose."
    letter = draw(json.dumps([request.messages, request.seed]), "AABCD")
    return f"The case calls for it.\n\nFinal Answer: {letter}"
