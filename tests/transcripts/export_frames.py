"""Turns tables with words, and the lines of their exports."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from tests.results.frames import Row, table

from holdfast.results.turns import SCHEMA
from holdfast.transcripts.export import Export


def spoken(rows: Sequence[Row]) -> pl.DataFrame:
    """A table whose prompts name their question and path, and whose replies all differ."""
    with_texts = []
    for n, row in enumerate(rows):
        prompt = f"ask {row['question']} {row['path']} {row.get('suggested') or ''}".strip()
        with_texts.append({"prompt": prompt, "reply": f"say {row['question']} {n}"} | row)
    return table(with_texts).select(SCHEMA.names())


def lines(exported_turns: Export) -> list[Any]:
    """The lines of an export, all of them strict JSON."""
    assert not isinstance(exported_turns.content, pl.DataFrame)
    text = b"".join(exported_turns.content).decode("ascii")
    assert len(text.splitlines()) == text.count("\n") == exported_turns.count
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


def words(messages: Sequence[Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]
