"""Importing in a test: a mapping written out, rows written to a file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.questions.loading import load_questions
from holdfast.transcripts.importing import Imported, import_transcripts
from holdfast.transcripts.mapping import read_mapping

MAPPINGS = Path(__file__).parents[2] / "examples" / "mappings"

OPTIONS = {"A": "Aspirin", "B": "Biotin", "C": "Codeine"}

REPLIES = """
options = "options"
[turn]
model = "model"
question = "id"
gold = "gold"
reply = "reply"
"""

CHATS = """
messages = "messages"
options = "options"
[turn]
model = "model"
question = "id"
gold = "gold"
"""


def row(**fields: Any) -> dict[str, Any]:
    """A reply to a question of three options, A being right."""
    return {"id": "q1", "model": "m", "options": OPTIONS, "gold": "A", "reply": "B", **fields}


def chat(*messages: tuple[str, Any] | dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A conversation; a message is a role and a content."""
    said = [
        message if isinstance(message, dict) else {"role": message[0], "content": message[1]}
        for message in messages
    ]
    return {"id": "q1", "model": "m", "options": OPTIONS, "gold": "A", "messages": said, **fields}


def jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def imported(
    path: Path, mapping: str | Path, questions: str | None = None, **settings: Any
) -> Imported:
    """A file by a mapping, given as a file or as its text."""
    if isinstance(mapping, str):
        written = path.with_name("mapping.toml")
        written.write_text(mapping)
        mapping = written
    read = read_mapping(mapping)
    asked = None if questions is None else load_questions(questions, read.fields)
    return import_transcripts(path, read, asked, **settings)


def refusal(path: Path, mapping: str | Path, questions: str | None = None) -> str:
    """The line with which an import is refused."""
    with pytest.raises(InputError) as caught:
        imported(path, mapping, questions)
    line = str(caught.value)
    assert "\n" not in line
    return line
