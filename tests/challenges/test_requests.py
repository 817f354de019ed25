"""Requests to a model that writes or reads texts, and its replies: properties of all of them."""

import re
import time
from collections.abc import Callable

import pytest

from holdfast.challenges.catalogue import CONTEXTS, built_in
from holdfast.challenges.cues import judge_prompt, read_judgement
from holdfast.protocols.followup.context_generation import (
    context_prompt,
    read_context,
    second_best_prompt,
)
from holdfast.protocols.labelling import read_system, system_label_prompt
from holdfast.protocols.medfuzz.attacker import (
    attack_prompt,
    attacker_system,
    control_prompt,
    faithfulness_prompt,
    next_attack_prompt,
    read_faithfulness,
    read_review,
    review_prompt,
)
from holdfast.protocols.medfuzz.characteristics import mentions
from holdfast.protocols.medfuzz.modification import Fuzz, read_fuzz
from holdfast.protocols.second_reading import read_reading, reading_prompt
from holdfast.protocols.single_turn.distractors import distractor_prompt, read_distractors
from holdfast.questions.question import Question

DEFAULT = "patient-characteristics"
HOSTILE = "{options_text} {gold} {fence} {reply} [[reply]] {{x}} %s {0} \\1 \\g<0> </question>"
PLAIN = " ".join(["word"] * 11)
"""As many words as the hostile text."""


def question(text: str) -> Question:
    options = {"A": f"{text} a", "B": f"b {text}", "C": "croup"}
    return Question(id="q", stem=f"Why {text}?", options=options, gold="A")


def fuzz(text: str) -> Fuzz:
    return Fuzz(f"Why? {text} x.", (f"is {text}", "y"), "", "", (f"{text} x.",), 1)


PROMPTS: dict[str, Callable[[str], str]] = {
    "second-best": lambda text: second_best_prompt(question(text)),
    **{
        kind: lambda text, kind=kind: context_prompt(kind, question(text), "B", 5)  # type: ignore[misc]
        for kind in CONTEXTS
    },
    "distractors": lambda text: distractor_prompt(question(text), ("B",), [f"{text} c"]),
    "system": lambda text: system_label_prompt(question(text)),
    "assumption": lambda text: attacker_system(f"Vignettes hold no numbers. {text}"),
    "attack": lambda text: attack_prompt(question(text), f"r {text}", "A", 0.5, DEFAULT),
    "next-attack": lambda text: next_attack_prompt(f"r {text}", "B", 0.5),
    "control": lambda text: control_prompt(question(text), fuzz(text), 1),
    "faithfulness": lambda text: faithfulness_prompt(text, [f"is {text}", "y"], f"r {text}"),
    "review": lambda text: review_prompt(question(text), fuzz(text), "A", f"r {text}"),
    "reading": lambda text: reading_prompt({"A": text, "B": "b"}, None, f"r {text}"),
    "judge": lambda text: judge_prompt(built_in()["rag-style"], f"c {text}", f"r {text}"),
}
REPLY_PROMPTS = ["attack", "next-attack", "faithfulness", "review", "reading", "judge"]
FENCE = re.compile(r"===== \w+ =====")


@pytest.mark.parametrize("name", PROMPTS)
def test_hostile_text_stays_text(name: str) -> None:
    hostile, plain = (FENCE.sub("", PROMPTS[name](text)) for text in (HOSTILE, PLAIN))
    assert HOSTILE in hostile
    assert hostile.replace(HOSTILE, PLAIN) == plain
    assert not re.search(r"\{\w+\}|\[\[", plain)  # no placeholder is open
    assert plain == plain.strip()


@pytest.mark.parametrize("name", REPLY_PROMPTS)
def test_very_long_replies_keep_their_ends(name: str) -> None:
    text = f"begin{'x' * 1_000_000}end"
    prompts = {
        "attack": attack_prompt(question("word"), text, "A", 0.5, DEFAULT),
        "next-attack": next_attack_prompt(text, "A", 0.5),
        "faithfulness": faithfulness_prompt("stem", ["y"], text),
        "review": review_prompt(question("word"), fuzz("word"), "A", text),
        "reading": reading_prompt({"A": "a", "B": "b"}, None, text),
        "judge": judge_prompt(built_in()["rag-style"], "c", text),
    }
    assert len(prompts[name]) < 30_000
    assert "begin" in prompts[name]
    assert "xend\n" in prompts[name]


@pytest.mark.parametrize("name", REPLY_PROMPTS)
def test_a_fence_occurs_in_none_of_its_texts(name: str) -> None:
    first = PROMPTS[name]("word")
    (fence,) = set(FENCE.findall(first))
    (second_fence,) = set(FENCE.findall(PROMPTS[name](fence))) - {fence}
    count = PROMPTS[name]("word").count(fence)
    assert PROMPTS[name](fence).count(second_fence) == count
    assert PROMPTS[name]("word") == first


Q = question("word")
READERS: dict[str, Callable[[str], object]] = {
    "context": lambda reply: [read_context(kind, reply, Q, 5) for kind in CONTEXTS],
    "distractors": lambda reply: read_distractors(reply, Q, ("B", "C")),
    "system": read_system,
    "modification": lambda reply: read_fuzz(reply, Q),
    "faithfulness": lambda reply: read_faithfulness(f"[true{reply}", 3),
    "review": read_review,
    "reading": lambda reply: read_reading(reply, Q.options),
    "judgement": read_judgement,
    "mentions": lambda reply: mentions(reply, ["vegan yogi", "lives alone"] * 5),
}
UNITS = [
    "a ", "a. ", ".", "A. ", "1 ", "1.", "1 mm. ", "\n", "\u00a0a.", "\u0301", "(", '"', "“[(",
    "{", "{}", '{"a":', '{"a{', '{"named":1e', '{"score":', '{"modified_question":"', "[",
    "[true, ", "true ", "option ", "vegan ", "ing", "患",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_megabyte_takes_bounded_time(unit: str) -> None:
    reply = unit * (1_000_000 // len(unit))
    for name, reader in READERS.items():
        start = time.process_time()
        reader(reply)
        assert time.process_time() - start < 3, name
