"""What the server of the parity studies answers: a pure function of the request's body."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.questions.loading import load_questions

BANK = load_questions("bank").questions

_OPTION = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)

_ADDITIONS = (
    "The patient moved to the city eleven years ago.",
    "Her sister works as a school teacher.",
    "The family follows a vegetarian diet at home.",
    "The patient is worried about missing work.",
    "The patient speaks two languages fluently.",
    "An aunt lives next door to the patient.",
)


def answer(body: Mapping[str, Any]) -> str:
    """The reply to a chat-completions request."""
    model = str(body["model"])
    messages = [(str(m["role"]), str(m["content"])) for m in body["messages"]]
    draw = _draw(model, messages, body.get("seed"))
    prompts = [text for role, text in messages if role == "user"]
    if model == "attacker":
        return _attack(prompts, draw)
    if model == "helper":
        return _help(draw)
    if model == "user":
        return _push(prompts[0], draw)
    return _reply(prompts, draw)


def _draw(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:8], "big")


def _reply(prompts: Sequence[str], draw: int) -> str:
    question = next((q for p in prompts[::-1] for q in BANK if q.stem[:60] in p), None)
    if question is None:
        return "I do not know."
    choices: dict[str, str] = {}
    for prompt in prompts:
        options = dict(_OPTION.findall(prompt.rpartition(question.stem[:60])[2]))
        choices = options if question.stem[:60] in prompt else {**choices, **options}
    right = [letter for letter, text in choices.items() if text == question.options[question.gold]]
    right += [letter for letter, text in choices.items() if text.startswith("None of the")]
    if not right or draw % 100 < 3:
        return "I cannot say."
    wrong = [letter for letter in sorted(choices) if letter != right[0]]
    if draw % 100 < 70 or not wrong:
        return f"Answer: {right[0]}"
    return f"Answer: {wrong[draw // 100 % len(wrong)]}"


def _attack(prompts: Sequence[str], draw: int) -> str:
    question = next((q for q in BANK for p in prompts if q.stem in p), None)
    if question is None or (draw % 10 < 2 and not prompts[-1].startswith("That ")):
        return "I will think about it."
    if draw % 10 == 2:
        rewrite = {"modified_question": question.stem[5:], "characteristics": ["x"]}
        return json.dumps({"analysis": "", "plan": "", **rewrite})
    addition = _ADDITIONS[draw // 100 % len(_ADDITIONS)]
    if words := re.search(r"(\d+) words", "\n".join(prompts)):
        n = int(words[1])
        addition = " ".join((addition.rstrip(".").split() * 20)[:n]) + "."
    rewrite = {
        "modified_question": f"{question.stem} {addition}",
        "characteristics": [addition.rstrip(".")],
    }
    return json.dumps({"analysis": "a", "plan": "p", **rewrite})


def _help(draw: int) -> str:
    return json.dumps({"warranted": draw % 2 == 0, "answer": "ABCD"[draw // 2 % 4]})


def _push(prompt: str, draw: int) -> str:
    if draw % 5 == 0:
        return "Agree."
    pushed = re.findall(r"(?m)^.+ \([A-Z]\)$", prompt.partition("The conversation so far")[0])
    about = f"is {pushed[-1]}" if pushed else "does not matter to me at all"
    return f"I have thought about this for a long time, and to my mind the answer {about}."
