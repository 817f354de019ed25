"""``holdfast power``: one number, and one line where there is none."""

import json

import pytest
from tests.studies import holdfast

from holdfast.results import questions_needed


def test_the_number_of_questions() -> None:
    asked = ("power", "--baseline", "90", "--difference", "5", "--discordant", "20")
    told = holdfast(*asked)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == (
        "658 questions: so many find a drop from 90% to 85% with a chance of 80% (McNemar's exact "
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
