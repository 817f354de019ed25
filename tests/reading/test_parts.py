"""An option named by a part of its words, where a reply names none in another way."""

import pytest

from holdfast.reading.answers import extract_answer

NERVES = {
    "A": "Right third nerve palsy",
    "B": "Left third nerve palsy",
    "C": "Right sixth nerve palsy",
    "D": "Left sixth nerve palsy",
}
CHEST = {
    "A": "D-dimer",
    "B": "Chest radiography",
    "C": "Acute pericarditis",
    "D": "Posterior inferior cerebellar artery occlusion",
    "E": "CT pulmonary angiogram",
}
DRUGS = {
    "A": "Add lithium to treatment",
    "B": "Change treatment to duloxetine",
    "C": "Change treatment to lithium",
    "D": "Intravenous magnesium sulfate",
}


@pytest.mark.parametrize(
    ("options", "reply", "letter"),
    [
        (NERVES, "The eye cannot abduct. I stay with the left sixth nerve.", "D"),
        (NERVES, "My answer is the left sixth, not the right one.", "D"),
        (CHEST, "Pericarditis is the diagnosis I would settle on.", "C"),
        (CHEST, "Vertigo, hoarseness, Horner: the answer is PICAO.", "D"),
        (DRUGS, "The best next step would be to change the treatment to lithium.", "C"),
        (DRUGS, "I would give magnesium; it is better than anything that sedates.", "D"),
    ],
)
def test_a_part_of_one_option_alone_is_its_name(
    options: dict[str, str], reply: str, letter: str
) -> None:
    extraction = extract_answer(reply, options)
    assert (extraction.answer, extraction.rule.endswith(":part")) == (letter, True)


@pytest.mark.parametrize(
    ("options", "reply"),
    [
        (NERVES, "My answer is a palsy of the sixth nerve."),  # of two options
        (CHEST, "The most likely diagnosis is a pulmonary embolism. The best next step would be"),
        (CHEST, "My answer is the radial nerve."),
        (CHEST, "Pericarditis is likely, but I cannot decide without the tracing."),
        (CHEST, "Pericarditis is a common cause of pain that changes with posture."),
        (DRUGS, "I thought magnesium, then lithium, then magnesium again."),
        (
            CHEST,
            "Given how the pain began and what she told us of her legs, it would be best to order "
            "a pulmonary",
        ),  # cut off
    ],
)
def test_an_ambiguous_open_or_foreign_part_is_no_answer(
    options: dict[str, str], reply: str
) -> None:
    assert extract_answer(reply, options).answer is None


def test_a_letter_counts_before_a_part() -> None:
    extraction = extract_answer("The left sixth nerve is paler. Answer: B", NERVES)
    assert (extraction.answer, extraction.rule) == ("B", "answer-label")
