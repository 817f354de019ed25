"""What a study names is read once, however often its task is made."""

from pathlib import Path

import pytest
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.protocols import study as studies


def test_the_questions_of_a_run_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    loaded: list[str] = []
    load = studies.load_questions

    def counting(questions: str, *others: object) -> object:
        loaded.append(questions)
        return load(questions, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(studies, "load_questions", counting)
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--model", "simulated/steadfast",
        "--questions", source, "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert loaded == [source]
