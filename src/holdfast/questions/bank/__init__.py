"""The bundled bank: 60 questions, four for each of the 15 USMLE systems, and six exemplars."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.questions.question import Question

BANK_NAME = "bank"

_FILES = {
    "cardiovascular": "Cardiovascular System",
    "respiratory": "Respiratory System",
    "gastrointestinal": "Gastrointestinal System",
    "renal": "Renal/Urinary System",
    "reproductive": "Reproductive System",
    "endocrine": "Endocrine System",
    "nervous": "Nervous System & Special Senses",
    "musculoskeletal": "Musculoskeletal System",
    "skin": "Skin & Subcutaneous Tissue",
    "blood-immune": "Blood & Lymphoreticular/Immune System",
    "behavioral": "Behavioral Health",
    "development": "Human Development",
    "multisystem": "Multisystem Processes & Disorders",
    "biostatistics": "Biostatistics & Epidemiology/Population Health",
    "social-sciences": "Social Sciences (Ethics/Communication/Patient Safety)",
}

SYSTEMS = tuple(_FILES.values())
"""USMLE system categories 0 to 14 (MedQA-Followup, Table 5)."""


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


def _read(name: str) -> list[dict[str, Any]]:
    text = files(__package__).joinpath(f"{name}.json").read_text("utf-8")
    items: list[dict[str, Any]] = json.loads(text)
    return items
