"""Turns tables with words, and what an export wrote of them."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from tests.results.frames import Row, table

from holdfast.results.turns import SCHEMA
from holdfast.transcripts.export import Export


def spoken(rows: Sequence[Row]) -> pl.DataFrame:
    """A table in which prompts are those of their question and path, and every reply is its own."""
    said = []
    for n, row in enumerate(rows):
        words = f"ask {row['question']} {row['path']} {row.get('suggested') or ''}".strip()
        said.append({"prompt": words, "reply": f"say {row['question']} {n}"} | row)
    return table(said).select(SCHEMA.names())


def lines(found: Export) -> list[Any]:
    """The lines of an export, each of them JSON as its specification wants it."""
    assert not isinstance(found.content, pl.DataFrame)
    written = b"".join(found.content).decode("ascii")
    assert len(written.splitlines()) == written.count("\n") == found.count
    return [json.loads(line, parse_constant=pytest.fail) for line in written.splitlines()]


def said(messages: Sequence[Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]
