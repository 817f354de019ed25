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
    dicts = [
        message if isinstance(message, dict) else {"role": message[0], "content": message[1]}
        for message in messages
    ]
    return {"id": "q1", "model": "m", "options": OPTIONS, "gold": "A", "messages": dicts, **fields}


def jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(fields) + "\n" for fields in rows), encoding="utf-8")
    return path


def imported(
    path: Path, mapping: str | Path, questions: str | None = None, **settings: Any
) -> Imported:
    """A file by a mapping, which is a file or its text."""
    if isinstance(mapping, str):
        file = Path("mapping.toml")
        file.write_text(mapping)
        mapping = file
    columns = read_mapping(mapping)
    question_set = None if questions is None else load_questions(questions, columns.fields)
    return import_transcripts(path, columns, question_set, **settings)


def refusal(path: Path, mapping: str | Path, questions: str | None = None) -> InputError:
    """The error with which an import is refused: one line with a remedy."""
    with pytest.raises(InputError) as caught:
        imported(path, mapping, questions)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
    return caught.value
