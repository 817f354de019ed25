"""``holdfast check``: a file is recognised for what it is."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import facts_of
from tests.studies import holdfast, question_rows, write_jsonl

EXAMPLES = Path(__file__).parents[2] / "examples"

CONTEXT = {"question": "q0", "misleading_context": "One is here."}
NEW_OPTION = {"question": "q0", "distractors": {"B": "Another finding."}}
FILES: dict[str, tuple[str, list[dict[str, Any]] | str]] = {
    "questions": ("questions", question_rows(2)),
    "questions with a context": ("questions", [{**question_rows(1)[0], **CONTEXT}]),
    "questions without a key": ("questions", [{"id": "q0", "stem": "Why?", "options": ["x", "y"]}]),
    "contexts": ("contexts", [CONTEXT]),
    "contexts with the options": ("contexts", [{**CONTEXT, "options": {"A": "x", "B": "y"}}]),
    "contexts of a misspelt kind": ("contexts", [{"question": "q0", "misleading_contxt": "x"}]),
    "wrong options": ("distractors", [NEW_OPTION]),
    "labels": ("labels", [{"question": "q0", "system": "Renal"}]),
    "a study": ("study", 'protocols = "followup"\nmodel = "simulated/sycophant"\n'),
    "techniques": ("techniques", '[[technique]]\nid = "a"\n'),
    "rules": ("rules", "level = 0.9\n[[rule]]\nmin_accuracy = 0.5\n"),
    "a defence": ("defence", 'id = "a"\nkind = "prompt"\nturn = "{message}"\n'),
    "a mapping": ("mapping", '[turn]\nmodel = "model"\n'),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_recognised_by_its_columns_or_keys(name: str) -> None:
    kind, content = FILES[name]
    path = Path("f.toml" if isinstance(content, str) else "f.jsonl")
    if isinstance(content, str):
        path.write_text(content)
    else:
        write_jsonl(path, content)
    outputs = {
        rival: holdfast("check", path, *(("--kind", rival) if rival else ()))
        for rival in ("", *dict.fromkeys(kind for kind, rows in FILES.values()
                                         if isinstance(rows, str) == isinstance(content, str)))
    }  # fmt: skip
    texts = {rival: (run.stdout, run.stderr) for rival, run in outputs.items()}
    assert str(path) in "".join(texts[""])
    alike = {rival for rival, text in texts.items() if text == texts[""]}
    assert alike == {"", kind} or (isinstance(content, str) and kind in alike)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("own_questions.csv", "questions"),
        ("own_contexts.jsonl", "contexts"),
        ("own_techniques.toml", "techniques"),
        ("gate.toml", "rules"),
        ("mappings/duet.toml", "mapping"),
    ],
)
def test_the_examples_are_sound(name: str, kind: str) -> None:
    report = facts_of("check", EXAMPLES / name)
    assert (report["kind"], report["problems"]) == (kind, [])


def test_wrong_options_given_twice_are_named_with_both_rows() -> None:
    run = holdfast("check", write_jsonl(Path("d.jsonl"), [NEW_OPTION, NEW_OPTION]))
    assert run.returncode == 2
    assert "row 2, field 'question': 'q0'" in run.stderr
    assert "row 1" in run.stderr


def test_the_wrong_options_of_the_bank_are_sound() -> None:
    report = facts_of("check", "bank", "--kind", "distractors", "--questions", "bank")
    assert (report["distractors"], report["unused"]) == (60, 0)
