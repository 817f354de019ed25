"""``holdfast power``: one number, and one line where there is none."""

import json

import pytest
from tests.results.frames import table, turn
from tests.studies import holdfast

from holdfast.results.power import questions_needed


def test_the_number_of_questions() -> None:
    asked = ("power", "--baseline", "90", "--difference", "5", "--discordant", "20")
    told = holdfast(*asked)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == (
        "658 questions give 80% power to detect a drop from 90% to 85% (McNemar's exact "
        "test, 1 test, alpha 0.05; right on one side only: 20%).\n"
    )
    told = holdfast(*asked, "--json")
    assert json.loads(told.stdout) == {"questions": questions_needed(0.9, 0.05, 0.2)}
    assert holdfast("power", "--baseline", "90", "--difference", "-5").stdout.count("rise") == 1


@pytest.mark.parametrize(
    ("difference", "discordant", "said"),
    [
        ("0", "20", "no number of questions can find so small a difference"),
        ("1e-300", "20", "no number of questions can find so small a difference"),
        ("nan", "20", "--difference"),
        ("95", "20", "90% less 95 points is not in 0% to 100%"),
        ("5", "2", "5% to 25%"),
        ("5", "0.2", "Give percent: --discordant 20"),
    ],
)
def test_what_cannot_be_is_one_line(difference: str, discordant: str, said: str) -> None:
    told = holdfast(
        "power", "--baseline", "90", "--difference", difference, "--discordant", discordant
    )
    assert (told.returncode, told.stdout) == (2, "")
    (line,) = told.stderr.splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--baseline", "0.9", "Give percent: --baseline 90"),
        ("--baseline", "inf", "--baseline"),
        ("--tests", str(10**20), "--tests"),
        ("--alpha", "1e-300", "too small"),
        ("--power", "1", "is not between 0 and 1"),
    ],
)
def test_numbers_that_cannot_be_meant_are_one_line(option: str, value: str, said: str) -> None:
    good = {"--baseline": "90", "--difference": "5"} | {option: value}
    told = holdfast("power", *(part for pair in good.items() for part in pair))
    assert (told.returncode, told.stdout) == (2, "")
    (line,) = told.stderr.splitlines()
    assert said in line


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> str:
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
    folder = tmp_path_factory.mktemp("pilot")
    table(rows).write_parquet(folder / "turns.parquet")
    (folder / "prices.json").write_text('{"m1": {"input": 2.0, "output": 8.0}}')
    return str(folder / "turns.parquet")


@pytest.mark.slow
def test_questions_and_epochs_from_a_pilot_with_calls_and_cost(pilot: str) -> None:
    asked = ("power", pilot, "--path", "push", "--difference", "10")
    prices = ("--prices", pilot.replace("turns.parquet", "prices.json"))
    told = holdfast(*asked, *prices, "--json")
    assert (told.returncode, told.stderr) == (0, "")
    found = json.loads(told.stdout)
    assert (found["kind"], found["effect"], found["pilot_questions"]) == ("difference", 0.1, 60)
    assert [one["epochs"] for one in found["designs"]] == [1, 3, 5, 10]
    questions = [one["questions"] for one in found["designs"]]
    assert questions == sorted(questions, reverse=True)
    for one in found["designs"]:
        assert one["calls"] == 2 * one["epochs"] * one["questions"]
        # a call is 1,000 tokens at $2 and 500 at $8, a million
        assert one["cost"] == pytest.approx(one["calls"] * 0.006)
    text = holdfast(*asked, *prices, "--limit", "5000").stdout
    assert text.startswith("To find a drop of 10.0 points with a chance of 80%: ask ")
    assert f"ask {questions[0]:,} questions once (the fewest calls)." in text
    assert f"| 1 | {questions[0]:,} | {2 * questions[0]:,} | $" in text
    few = holdfast(*asked, "--limit", "10").stdout
    assert f"ask more questions: {questions[0]:,} once" in few


@pytest.mark.slow
def test_a_gate_is_counted_for(pilot: str) -> None:
    told = holdfast("power", pilot, "--path", "push", "--min-accuracy", "50")
    assert told.returncode == 0
    assert told.stdout.startswith("To decide an accuracy of at least 50.0%, if it is ")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--difference", "5"), "--path: is needed"),
        (("--path", "pusch", "--difference", "5"), "Did you mean 'push'"),
        (("--path", "push", "--model", "m9"), "--model: no model 'm9'"),
        (
            ("--path", "push", "--min-accuracy", "50", "--max-drop", "5"),
            "cannot be combined with another limit",
        ),
        (("--path", "push", "--correlation", "0.3"), "Give percent: --correlation 30"),
    ],
)
def test_what_a_pilot_cannot_say_is_one_line(pilot: str, more: tuple[str, ...], said: str) -> None:
    told = holdfast("power", pilot, *more)
    assert (told.returncode, told.stdout) == (2, "")
    (line,) = told.stderr.splitlines()
    assert said in line


def test_without_figures_or_a_pilot_it_says_what_is_needed() -> None:
    told = holdfast("power", "--difference", "5")
    assert told.returncode == 2
    assert told.stderr == "holdfast: --baseline: is needed. Give it, or a log directory.\n"
