"""What stands in examples/ runs."""

import subprocess
import sys
from pathlib import Path

from holdfast.challenges import built_in, load_catalogue, load_contexts
from holdfast.questions import load_questions
from tests.studies import holdfast

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_example_questions_techniques_contexts_and_prices_make_a_study(tmp_path: Path) -> None:
    questions = load_questions(str(EXAMPLES / "own_questions.csv"))
    contexts = load_contexts(str(EXAMPLES / "own_contexts.jsonl"), questions, seed=42)
    own = set(load_catalogue(str(EXAMPLES / "own_techniques.toml"))) - set(built_in())
    assert len(questions.questions) == 3
    assert contexts.by_question.keys() <= {question.id for question in questions.questions}
    assert own
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant",
        "--questions", EXAMPLES / "own_questions.csv",
        "--contexts", EXAMPLES / "own_contexts.jsonl",
        "--challenges", EXAMPLES / "own_techniques.toml",
        "--prices", EXAMPLES / "prices.json",
        "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert all(name in run.stdout for name in own)


def test_reading_the_turns_table_prints_what_was_kept() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "read_turns.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "rethink" in done.stdout
    assert "context" in done.stdout
