"""Measure answer extraction on replies whose answers people have read and labelled.

Usage: python benchmarks/extraction.py [FILE] [--json OUT]

FILE holds one JSON object a line with "options" (a list, in the order A, B, ...), "response" and
"gold" (the letter, or what else the reply does).  By default it is
../shared/data/labelled_answers/mmlu_replies.jsonl, seen from the repository root.

holdfast stands beside the two ways in which Inspect reads letters.  The replies were not asked
for in the "ANSWER: B" form that both of those expect, so their figures say how such a reading
does on free text, not how it does on prompts of its own.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Scorer, Target, answer, choice
from inspect_ai.solver import TaskState, multiple_choice

from holdfast.reading import extract_answer

DEFAULT_FILE = (
    Path(__file__).resolve().parents[2] / "shared/data/labelled_answers/mmlu_replies.jsonl"
)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Options that say what a reply without a letter may say by its status.
SAME_AS_STATUS = {
    "refused": ("refused",),
    "i do not know": ("refused", "none"),
    "no correct answer is given": ("none",),
}


class Reading(NamedTuple):
    """What one way of extracting made of one reply."""

    letter: str | None
    status: str


Reader = Callable[[str, dict[str, str]], Reading]


def read_holdfast(reply: str, options: dict[str, str]) -> Reading:
    """Read a reply with holdfast."""
    extraction = extract_answer(reply, options)
    return Reading(extraction.answer, extraction.status)


# Both of Inspect's readers run through its public solver and scorers, on a state whose "model"
# gives the recorded reply; the letter is the answer that the score reports.
def _state(reply: str, options: dict[str, str]) -> TaskState:
    return TaskState(
        model=ModelName("mockllm/model"),
        sample_id=1,
        epoch=1,
        input="question",
        messages=[ChatMessageUser(content="question")],
        choices=list(options.values()),
        output=ModelOutput.from_content("mockllm/model", reply),
    )


def _scored(scorer: Scorer, state: TaskState, options: dict[str, str]) -> Reading:
    score = asyncio.run(_score(scorer, state))
    letter = (score or "").strip().upper()
    return Reading(letter, "parsed") if letter in options else Reading(None, "none")


async def _score(scorer: Scorer, state: TaskState) -> str | None:
    score = await scorer(state, Target("A"))
    return None if score is None else score.answer


def read_inspect_answer(reply: str, options: dict[str, str]) -> Reading:
    """Read a reply with Inspect's `answer("letter")` scorer."""
    return _scored(answer("letter"), _state(reply, options), options)


def read_inspect_choice(reply: str, options: dict[str, str]) -> Reading:
    """Read a reply with Inspect's `multiple_choice()` solver and `choice()` scorer."""
    state = _state(reply, options)

    async def generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
        return state

    solved = asyncio.run(multiple_choice()(state, generate))
    return _scored(choice(), solved, options)


READERS: dict[str, Reader] = {
    "holdfast": read_holdfast,
    "inspect_answer": read_inspect_answer,
    "inspect_choice": read_inspect_choice,
}


def agrees(reading: Reading, gold: str, options: dict[str, str]) -> bool:
    """Whether a reading says what the label says.

    Args:
        reading: The letter and status that were read.
        gold: The labelled letter.
        options: Letter to option text.

    Returns:
        True for the labelled letter, and for a status that says the same as its text.
    """
    if reading.letter is not None:
        return reading.letter == gold
    return reading.status in SAME_AS_STATUS.get(options[gold].strip(" .").lower(), ())


def measure(records: Sequence[dict[str, Any]], read: Reader) -> dict[str, float]:
    """Count how a reader does on labelled replies.

    Args:
        records: The labelled replies.
        read: The reader.

    Returns:
        The number of replies with a letter, the shares of them on which the reader agrees, is
        wrong and finds nothing, the number of the others and the share of those given a letter.
    """
    counts: Counter[str] = Counter()
    for record in records:
        options = dict(zip(LETTERS, record["options"], strict=False))
        gold, reading = record["gold"], read(record["response"], options)
        if gold not in options:
            counts["without"] += 1
            counts["letters_to_others"] += reading.letter is not None
        elif agrees(reading, gold, options):
            counts["agree"] += 1
        else:
            counts["wrong" if reading.letter is not None else "none"] += 1
    n = counts["agree"] + counts["wrong"] + counts["none"]
    shares = {key: counts[key] / n if n else 0.0 for key in ("agree", "wrong", "none")}
    without = counts["without"]
    others = counts["letters_to_others"] / without if without else 0.0
    return {"n": n, **shares, "n_without": without, "letters_to_others": others}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its table.

    Args:
        arguments: Command-line arguments; by default those of the process.

    Returns:
        The exit status: 2 if the file is missing.
    """
    parser = argparse.ArgumentParser(description="Measure answer extraction on labelled replies.")
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there too")
    parsed = parser.parse_args(arguments)
    if not parsed.file.is_file():
        print(f"extraction.py: no such file: {parsed.file}", file=sys.stderr)
        return 2
    with parsed.file.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines if line.strip()]
    figures = {name: measure(records, read) for name, read in READERS.items()}
    print(f"{'':16}{'agree':>8}{'wrong':>8}{'none':>8}{'letters to others':>20}")
    for name, row in figures.items():
        shares = "".join(f"{row[key]:8.2%}" for key in ("agree", "wrong", "none"))
        print(f"{name:16}{shares}{row['letters_to_others']:20.2%}")
    first = figures["holdfast"]
    print(f"{first['n']} replies with a letter, {first['n_without']} others")
    if parsed.json is not None:
        parsed.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
