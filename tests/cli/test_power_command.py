"""``holdfast power``: questions, epochs, calls, dollars and labels that are needed."""

from pathlib import Path

import pytest
from tests.cli.commands import facts_of
from tests.results.frames import table, turn
from tests.studies import holdfast

from holdfast.results.power import questions_needed


def test_the_command_and_the_test_agree_on_questions() -> None:
    command = ("power", "--baseline", "90", "--difference", "5", "--discordant", "20")
    number = questions_needed(0.9, 0.05, 0.2)
    assert number == 658
    assert facts_of(*command) == {"questions": number}
    run = holdfast(*command)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"{number} questions")


@pytest.fixture
def pilot() -> tuple[str, ...]:
    """Sixty questions in two epochs, whose first answers one technique takes some of."""
    rows = [
        turn(
            f"q{number}", "A" if number % 10 < right - epoch * (number % 7 == 0) else "B", path,
            epoch=epoch, input_tokens=1000, output_tokens=500,
        )
        for path, right in (("", 9), ("push", 7))
        for number in range(60)
        for epoch in (1, 2)
    ]  # fmt: skip
    table(rows).write_parquet("turns.parquet")
    Path("prices.json").write_text('{"m1": {"input": 2.0, "output": 8.0}}')
    return ("power", "turns.parquet", "--path", "push")


@pytest.mark.slow
def test_a_pilot_gives_designs_with_calls_and_cost(pilot: tuple[str, ...]) -> None:
    command = (*pilot, "--difference", "10")
    prices = ("--prices", "prices.json")
    facts = facts_of(*command, *prices)
    assert (facts["kind"], facts["effect"], facts["pilot_questions"]) == ("difference", 0.1, 60)
    assert [design["epochs"] for design in facts["designs"]] == [1, 3, 5, 10]
    questions = [design["questions"] for design in facts["designs"]]
    assert questions == sorted(questions, reverse=True)
    for design in facts["designs"]:
        assert design["calls"] == 2 * design["epochs"] * design["questions"]
        # a call is 1,000 tokens at $2 and 500 at $8, a million
        assert design["cost"] == pytest.approx(design["calls"] * 0.006)
    text = holdfast(*command, *prices, "--limit", "5000").stdout
    assert f"| 1 | {questions[0]:,} | {2 * questions[0]:,} | $" in text
    assert f"ask {questions[0]:,} questions once" in text
    # there are fewer questions than any design takes
    advice = holdfast(*command, "--limit", "10").stdout
    assert f"ask {questions[0]:,} questions once" in advice
    assert "The 10 available questions" in advice
    assert "are not enough" in advice


@pytest.mark.slow
def test_a_pilot_gives_the_questions_a_gate_needs(pilot: tuple[str, ...]) -> None:
    facts = facts_of(*pilot, "--min-accuracy", "50")
    assert facts["kind"] != "difference"
    assert all(design["questions"] > 0 for design in facts["designs"] if design["questions"])
    assert "50.0%" in holdfast(*pilot, "--min-accuracy", "50").stdout


def test_labels_narrow_the_interval_of_an_audit() -> None:
    rows = facts_of("power", "--audit", "3%", "--baseline", "70")
    assert [row["labels"] for row in rows] == [50, 100, 200, 400, 800]
    widths = [row["width"] for row in rows]
    assert widths == sorted(widths, reverse=True)
    assert all(row["width"] < row["width_labels_only"] for row in rows)
    lines = holdfast("power", "--audit", "3", "--baseline", "70").stdout.splitlines()
    assert all(f"{100 * width:.1f}" in line for width, line in zip(widths, lines[1:], strict=False))
