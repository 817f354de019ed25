"""Measure answer extraction on replies whose answers people have read and labelled.

Usage: python benchmarks/extraction.py [FILE ...] [--json OUT]

FILE holds one JSON object a line:

    options            letter to text, or a list of texts in the order A, B, ...
    reply, response    the reply, under either name
    answer, gold       the label: a letter; null, or a word for what else the reply does.  Where a
                       row has both, ``answer`` is what the reply says, ``gold`` what is right
    kind               optional: the figures are given for each kind, too.  Rows that say instead
                       which wrong option was ``pushed`` are of the kinds "gives in", "holds" and
                       "first answer"

By default the labelled sets of ../shared/data are read, seen from the repository root; those that
are absent are left out and named.

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

from holdfast.reading.answers import extract_answer

DATA = Path(__file__).resolve().parents[2] / "shared/data"
DEFAULT_FILES = (
    DATA / "labelled_answers/mmlu_replies.jsonl",
    DATA / "followup_remarks/replies.jsonl",
    DATA / "capitulations/claude_haiku.jsonl",
)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SHARES = ("agree", "wrong", "none")
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


class Labelled(NamedTuple):
    """A reply with what people read in it.

    Attributes:
        kind: what kind of reply it is.
        reply: its text.
        options: letter to option text.
        label: a letter of ``options``, or what else the reply does; None for no answer.
    """

    kind: str
    reply: str
    options: dict[str, str]
    label: str | None


def labelled(record: dict[str, Any]) -> Labelled:
    """Take a labelled reply as a file has it.

    Raises:
        KeyError: A field is missing.
    """
    options = record["options"]
    if not isinstance(options, dict):
        options = dict(zip(LETTERS, options, strict=False))
    label = record["answer"] if "answer" in record else record["gold"]
    reply = record["reply"] if "reply" in record else record["response"]
    kind = record.get("kind", "all")
    if "pushed" in record and "kind" not in record:
        pushed = record["pushed"]
        kind = "first answer" if pushed is None else "gives in" if label == pushed else "holds"
    return Labelled(kind, reply, options, label)


def agrees(reading: Reading, label: str, options: dict[str, str]) -> bool:
    """Whether a reading says what the label says.

    Args:
        reading: The letter and status that were read.
        label: The labelled letter.
        options: Letter to option text.

    Returns:
        True for the labelled letter, and for a status that says the same as its text.
    """
    if reading.letter is not None:
        return reading.letter == label
    return reading.status in SAME_AS_STATUS.get(options[label].strip(" .").lower(), ())


def measure(rows: Sequence[Labelled], readings: Sequence[Reading]) -> dict[str, float]:
    """Count how a reader does on labelled replies.

    Args:
        rows: The labelled replies.
        readings: What the reader made of each.

    Returns:
        The number of replies with a letter, the shares of them on which the reader agrees, is
        wrong and finds nothing, the number of the others and the share of those given a letter;
        ``right``, ``wrong_letter``: over all replies, where no letter is right for the others.
    """
    counts: Counter[str] = Counter()
    for row, reading in zip(rows, readings, strict=True):
        if row.label not in row.options:
            counts["without"] += 1
            counts["letters_to_others"] += reading.letter is not None
        elif agrees(reading, row.label, row.options):
            counts["agree"] += 1
        else:
            counts["wrong" if reading.letter is not None else "none"] += 1
    n = counts["agree"] + counts["wrong"] + counts["none"]
    shares = {key: counts[key] / n if n else 0.0 for key in SHARES}
    without, others = counts["without"], counts["letters_to_others"]
    whole = n + without
    return {
        "n": n,
        **shares,
        "n_without": without,
        "letters_to_others": others / without if without else 0.0,
        "right": (counts["agree"] + without - others) / whole if whole else 0.0,
        "wrong_letter": (counts["wrong"] + others) / whole if whole else 0.0,
    }


Figures = dict[str, dict[str, float]]
"""Reader to its figures."""


def measure_set(rows: Sequence[Labelled]) -> dict[str, Figures]:
    """Figures of all readers for a set as a whole (``all``) and for each of its kinds."""
    kinds = sorted({row.kind for row in rows} - {"all"})
    figures: dict[str, Figures] = {kind: {} for kind in ("all", *kinds)}
    for name, read in READERS.items():
        readings = [read(row.reply, row.options) for row in rows]
        for kind, into in figures.items():
            of_kind = [
                (row, reading)
                for row, reading in zip(rows, readings, strict=True)
                if kind in ("all", row.kind)
            ]
            into[name] = measure([row for row, _ in of_kind], [read for _, read in of_kind])
    return figures


def load(file: Path) -> list[Labelled]:
    """Read a file of labelled replies.

    Raises:
        ValueError: A row is no labelled reply; the message names file, row and field.
    """
    rows = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                rows.append(labelled(json.loads(line)))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{file}, row {number}: {error!r}") from error
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its table.

    The JSON holds ``sets``: name of the file, kind, reader, figure; beside it the figures of each
    reader on the whole first set.

    Args:
        arguments: Command-line arguments; by default those of the process.

    Returns:
        The exit status: 2 if a file is missing or is not of the form above.
    """
    parser = argparse.ArgumentParser(description="Measure answer extraction on labelled replies.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there too")
    parsed = parser.parse_args(arguments)
    files = parsed.files or [file for file in DEFAULT_FILES if file.is_file()]
    absent = [file for file in parsed.files or DEFAULT_FILES if not file.is_file()]
    for file in absent:
        print(f"extraction.py: no such file: {file}", file=sys.stderr)
    if not files or (absent and parsed.files):
        return 2
    try:
        read = {_name(file): load(file) for file in files}
    except ValueError as error:
        print(f"extraction.py: {error}", file=sys.stderr)
        return 2
    sets = {name: measure_set(rows) for name, rows in read.items()}
    print(f"{'':30}{'agree':>8}{'wrong':>8}{'none':>8}{'letters to others':>20}")
    for name, kinds in sets.items():
        for kind, figures in kinds.items():
            first = figures["holdfast"]
            of = f"{first['n']} replies with a letter, {first['n_without']} others"
            print(f"{name}: {kind} ({of})")
            for reader, row in figures.items():
                shares = "".join(_share(row[key], row["n"], 8) for key in SHARES)
                others = _share(row["letters_to_others"], row["n_without"], 20)
                print(f"  {reader:28}{shares}{others}")
    if parsed.json is not None:
        written = {**next(iter(sets.values()))["all"], "sets": sets}
        parsed.json.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    return 0


def _share(share: float, n: float, width: int) -> str:
    return f"{share:{width}.2%}" if n else "-".rjust(width)


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


if __name__ == "__main__":
    sys.exit(main())
