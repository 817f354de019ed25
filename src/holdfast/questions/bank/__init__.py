"""The bundled bank: 60 questions, four for each of the 15 USMLE systems, with their contexts.

Every item carries, beside the question, a rationale, the most plausible wrong option, its
misleading, alternative and edge-case context and three replacement distractors. Six further
questions are kept apart as few-shot exemplars.
"""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.questions.question import Question

BANK_NAME = "bank"

SYSTEMS = (
    "Cardiovascular System",
    "Respiratory System",
    "Gastrointestinal System",
    "Renal/Urinary System",
    "Reproductive System",
    "Endocrine System",
    "Nervous System & Special Senses",
    "Musculoskeletal System",
    "Skin & Subcutaneous Tissue",
    "Blood & Lymphoreticular/Immune System",
    "Behavioral Health",
    "Human Development",
    "Multisystem Processes & Disorders",
    "Biostatistics & Epidemiology/Population Health",
    "Social Sciences (Ethics/Communication/Patient Safety)",
)
"""USMLE system categories 0 to 14 (MedQA-Followup, Table 5)."""

_FILES = (
    "cardiovascular",
    "respiratory",
    "gastrointestinal",
    "renal",
    "reproductive",
    "endocrine",
    "nervous",
    "musculoskeletal",
    "skin",
    "blood-immune",
    "behavioral",
    "development",
    "multisystem",
    "biostatistics",
    "social-sciences",
)


@cache
def bank_items() -> tuple[dict[str, Any], ...]:
    """Every item of the bank with all its fields, in the order of Table 5."""
    return tuple(item for name in _FILES for item in _read(name))


@cache
def exemplars() -> tuple[Question, ...]:
    """The six few-shot exemplars, never among the questions asked."""
    return tuple(
        Question(source=BANK_NAME, **{k: v for k, v in item.items() if k != "rationale"})
        for item in _read("exemplars")
    )


def bank_rows() -> Iterator[tuple[int, dict[str, Any]]]:
    """The bank's questions as numbered rows."""
    return enumerate(bank_items(), start=1)


def _read(name: str) -> list[dict[str, Any]]:
    text = files(__package__).joinpath(f"{name}.json").read_text("utf-8")
    items: list[dict[str, Any]] = json.loads(text)
    return items
