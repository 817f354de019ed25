"""``holdfast power``: one number, and one line where there is none."""

import pytest
from tests.studies import holdfast

from holdfast.results import questions_needed


def test_the_number_of_questions() -> None:
    told = holdfast("power", "--baseline", "0.9", "--difference", "5", "--discordant", "0.2")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == f"{questions_needed(0.9, 0.05, 0.2)}\n"


@pytest.mark.parametrize(
    ("difference", "discordant", "said"),
    [
        ("0", "0.2", "no number of questions finds no difference"),
        ("95", "0.2", "is not a share of 0 to 1"),
        ("5", "0.01", "0.05 to 0.25"),
    ],
)
def test_what_cannot_be_is_one_line(difference: str, discordant: str, said: str) -> None:
    told = holdfast(
        "power", "--baseline", "0.9", "--difference", difference, "--discordant", discordant
    )
    assert (told.returncode, told.stdout) == (2, "")
    (line,) = told.stderr.splitlines()
    assert said in line
