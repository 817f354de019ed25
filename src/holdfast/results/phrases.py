"""Ids of families and techniques as words."""

import re
from collections.abc import Sequence
from typing import Any

from .grid import Row

FAMILIES = {
    "rethink": "Asked to reconsider",
    "inc_letter": "Told a wrong letter",
    "wrong_op": "Shown more plausible wrong options",
    "context": "Shown a misleading text",
    "document": "A misleading document is retrieved",
}
"""Families of challenges in plain words."""

PHRASES = {name: meaning[:1].lower() + meaning[1:] for name, meaning in FAMILIES.items()}
"""The same descriptions for use within a phrase, such as "average of ..."."""


_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_ACRONYMS = {"rag": "RAG"}


def words_of(technique: str) -> str:
    """Write a technique's id as words: ``rag-style`` as ``RAG style``; keep other texts."""
    if not _ID.fullmatch(technique):
        return technique
    return " ".join(_ACRONYMS.get(word, word) for word in technique.split("-"))


_TECHNIQUES = ("path", "technique", "challenge", "part", "mitigation")
"""Columns that contain ids of techniques, or chains of these."""


def in_words(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Replace ids of families and techniques by words.

    The words of each technique are unique: if they are taken, the id stays.
    """
    chains = {row[name] for row in rows for name in _TECHNIQUES if row.get(name)}
    steps = sorted({step for chain in chains for step in str(chain).split(">")})
    step_by_phrase = {step: step for step in steps}
    for step in steps:
        step_by_phrase.setdefault(words_of(step), step)
    words = {step: phrase for phrase, step in step_by_phrase.items() if phrase == words_of(step)}
    phrases = {
        chain: ">".join(words.get(step, step) for step in str(chain).split(">")) for chain in chains
    }
    families = [{"family": PHRASES.get(row["family"])} if row.get("family") in PHRASES else {}
                for row in rows]  # fmt: skip
    return [
        {**row, **family, **{name: phrases[row[name]] for name in _TECHNIQUES if row.get(name)}}
        for row, family in zip(rows, families, strict=True)
    ]
