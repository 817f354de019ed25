"""Rows in the layouts of published question sets, made up."""

import json
from typing import Any

Row = dict[str, Any]

STEM = "A {n}-year-old man has a cough. Which drug is best?"
TEXTS = ["Aspirin", "Biotin", "Codeine", "Digoxin"]


def medqa_followup(n: int) -> Row:
    options = dict(zip("ABCD", TEXTS, strict=True))
    context = {
        f"{kind}_context": f"The {kind} text {n}."
        for kind in ("misleading", "alternative", "edge_case")
    }
    targets = {
        "target_answer_misleading_context": "AC"[n % 2] if n % 3 else TEXTS[3],
        "target_answer_alternative_context": "Gout",
        "target_answer_edge_case_context": "",
    }
    return {
        "question": STEM.format(n=30 + n), "answer": "Biotin", "options": options,
        "meta_info": "step1", "answer_idx": "B", "usmle_system": "Respiratory System",
        "selection_method": "drawn", **context, **targets,
    }  # fmt: skip


def medqa(n: int) -> Row:
    return {
        "question": STEM.format(n=30 + n), "answer": "Biotin",
        "options": dict(zip("ABCD", TEXTS, strict=True)), "meta_info": "step1",
        "answer_idx": "B", "metamap_phrases": ["man", "cough"],
    }  # fmt: skip


def medmcqa(n: int) -> Row:
    options = {f"op{letter}": text for letter, text in zip("abcd", TEXTS, strict=True)}
    return {
        "id": f"m{n}", "question": STEM.format(n=30 + n), **options, "cop": n % 4,
        "choice_type": "single", "exp": "Never shown.", "subject_name": "Medicine",
        "topic_name": None,
    }  # fmt: skip


def medmisbench(n: int, *, numeric: bool = False, inside: bool = False) -> Row:
    empty = {f"{prefix}{letter}": None for prefix in ("op", "inject") for letter in "abcdefghij"}
    stem = STEM.format(n=30 + n)
    if inside:
        stem += "\nAnswer Choices: " + " ".join(
            f"({letter}) {text}" for letter, text in zip("ABCD", TEXTS, strict=True)
        )
    options = (
        {} if inside else {f"op{letter}": text for letter, text in zip("abcd", TEXTS, strict=True)}
    )
    statements = {f"inject{letter}": f"Statement {letter} of {n}." for letter in "abcd"}
    return {
        **empty, **options, **statements, "opj": "nan", "injectj": '"', "id": f"q{n}",
        "source_dataset": "MedQA", "question": stem, "answer": 2 if numeric else "B",
        "choice_type": "single", "injection_content": "exception poisoning",
        "injection_provenance": "authority",
    }  # fmt: skip


def whoflips(n: int, subject: str = "virology", maker: str = "gpt-5.1", **more: Any) -> Row:
    return {
        "original_id": f"{subject}-{n}", "subject": subject, "question": STEM.format(n=30 + n),
        "choices": json.dumps(dict(zip("ABCD", TEXTS, strict=True))), "correct_label": "B",
        "correct_text": "Biotin", "coercion_model": maker,
        "coercion_text": f"{maker} says that codeine is best in case {n}.", "score": 0.5, **more,
    }  # fmt: skip


def sycobench(n: int) -> Row:
    options = [f"{letter}) {text}" for letter, text in zip("ABCD", TEXTS, strict=True)]
    return {
        "id": f"s{n:03d}", "domain": "math", "difficulty": "easy",
        "question": STEM.format(n=30 + n),
        "options": options, "correct": "AB"[n % 2], "reasoning": "never shown",
    }  # fmt: skip


def mmlu(n: int) -> Row:
    return {
        "question": STEM.format(n=30 + n),
        "subject": "anatomy",
        "choices": TEXTS,
        "answer": n % 4,
    }


def medxpertqa(n: int) -> Row:
    options = dict(zip("ABCDEFGHIJ", [*TEXTS, *"uvwxyz"], strict=True))
    option_list = " ".join(f"({letter}) {text}" for letter, text in options.items())
    return {
        "id": f"Text-{n}", "question": f"{STEM.format(n=30 + n)}\nAnswer Choices: {option_list}",
        "options": options, "label": "J", "medical_task": "Treatment",
        "body_system": "Respiratory", "question_type": "Reasoning",
    }  # fmt: skip
