"""An option named by a part of its words, where a reply names none in another way."""

import pytest

from holdfast.reading.answers import extract_answer
from holdfast.reading.mentions import prepared
from holdfast.reading.parts import with_parts

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


OTHERS = {
    "A": "Repeat troponin",
    "B": "Primary biliary cholangitis",
    "C": "Posterior body cyst",
    "D": "Cardiac tamponade",
    "E": "Thiamine deficiency",
}
PALSIES = {"A": "Ulnar nerve palsy", "B": "Radial nerve palsy"}
TYPES = {
    "A": "Type I hypersensitivity",
    "B": "Type II hypersensitivity",
    "C": "Type III hypersensitivity",
}


@pytest.mark.parametrize(
    ("options", "text", "names"),
    [
        (NERVES, "It is the left sixth nerve.", {"left sixth nerve"}),
        (NERVES, "The sixth nerve, or the left side.", set()),  # of two options
        (CHEST, "Pericarditis.", {"pericarditis"}),
        (CHEST, "A pulmonary embolism.", set()),  # another noun follows
        (CHEST, "A rheumatoid pericarditis.", set()),  # another adjective precedes
        (CHEST, "PICAO, not picao.", {"picao"}),
        (CHEST, "The picao.", set()),  # initials in small letters
        (CHEST, "It is B. radiography.", set()),  # of a species
        (CHEST, "A CT of the chest.", {"ct", "chest"}),
        (CHEST, "a ct", set()),
        (CHEST, "posterior", set()),  # less than a quarter of the words
        (CHEST, "She came in the morning, and so it would be right to order a pulmonary", set()),
        (OTHERS, "I repeat.", set()),  # a word with a function of its own
        (OTHERS, "PBC or CT", set()),  # of two options, and too short
    ],
)
def test_words_that_only_one_option_has_are_its_name(
    options: dict[str, str], text: str, names: set[str]
) -> None:
    known = prepared(tuple(options.items()))
    assert {name for _, name in {*with_parts(text, known).texts} - {*known.texts}} == names


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
        (OTHERS, "Management includes:\n1. Giving thiamine before feeding\n2. Fluids"),
        (
            PALSIES,
            "A weak grip would be an ulnar palsy. The wrist drops, as in a radial palsy at night.",
        ),
        (DRUGS, "I thought it was magnesium, and I said magnesium."),
        (CHEST, "I stay with pericarditis. It is not clear which of these it is."),
        (
            TYPES,
            "Type I is quick, type II is slow, type III is mixed. Serum sickness is type III.",
        ),
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
