"""What a study names is read once, however often its task is made."""

from pathlib import Path

import pytest
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.questions.fields import Fields
from holdfast.questions.loading import QuestionSet, load_questions


def test_the_questions_of_a_run_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    loaded: list[str] = []

    def counting(questions: str, fields: Fields | None = None) -> QuestionSet:
        loaded.append(questions)
        return load_questions(questions, fields)

    monkeypatch.setattr("holdfast.protocols.settings.load_questions", counting)
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--model", "simulated/steadfast",
        "--questions", source, "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert loaded == [source]
