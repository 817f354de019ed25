import string
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reading.answers import extract_answer, first_character
from holdfast.reading.decisions import read_decision
from holdfast.reading.extraction import Extraction
from holdfast.reading.languages import in_english
from holdfast.reading.statements import statements

LABELLED: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "answer_replies.toml").read_text(encoding="utf-8")
)
OPTION_SETS = LABELLED.pop("options")
UNREAD = LABELLED.pop("unread")
DRUGS = OPTION_SETS["drugs"]


def read(reply: str, options: Mapping[str, str] = DRUGS) -> str:
    extraction = extract_answer(reply, options)
    assert (extraction.answer is not None) == (extraction.status == "parsed")
    return extraction.answer or extraction.status


@pytest.mark.parametrize("group", LABELLED)
def test_the_rules_agree_with_the_labels(group: str) -> None:
    wrong = [
        (reply, label)
        for options, label, reply in LABELLED[group]
        if read(reply, OPTION_SETS[options]) != label
    ]
    assert not wrong


def test_an_option_in_passing_is_left_to_a_reader() -> None:
    for options, _, reply in UNREAD:
        assert read(reply, OPTION_SETS[options]) == "none", reply


def test_every_option_set_and_outcome_is_labelled() -> None:
    rows = [*UNREAD, *(row for group in LABELLED.values() for row in group)]
    assert len(rows) >= 550
    assert {options for options, _, _ in rows} == set(OPTION_SETS)
    assert {label for _, label, _ in rows} >= set("ABCD") | {"ambiguous", "refused", "none"}


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("Reasoning.\n\nFinal Answer: (B)", "final-answer"),
        (r"\boxed{B}", "boxed"),
        ('{"answer": "B"}', "json"),
        ("<answer>B</answer>", "answer-tag"),
        ("**Answer:** B", "answer-label"),
        ("The best choice is B.", "answer-is"),
        ("I would choose option B: Clopidogrel", "choice"),
        ("Bleeding is unlikely. It's B.", "it-is"),
        ("Option B is the correct answer.", "is-correct"),
        ("Not C. B.", "contrast"),
        ("B. Clopidogrel", "leading-letter"),
        ("B", "bare-letter"),
        ("It inhibits P2Y12.\n\nB", "last-line"),
        ("The best drug for this man is B: Clopidogrel.", "verdict"),
        ("Clopidogrel", "option-text"),
    ],
)  # fmt: skip
def test_each_rule_reads_its_form(reply: str, rule: str) -> None:
    assert extract_answer(reply, DRUGS) == Extraction("B", "parsed", rule)


@pytest.mark.parametrize(
    ("reply", "status", "rule"),
    [
        ("", "none", "empty"),
        (" \n\t", "none", "empty"),
        ("\x00\u200b\u200f", "none", "empty"),
        ("<think>The answer is A.", "none", "unfinished"),
        ("I cannot provide medical advice.", "refused", "refusal"),
        ("None of the options is correct.", "none", "none-correct"),
        ("A or B? I cannot determine the answer.", "none", "abstention"),
        ("Answer: A and C", "ambiguous", "conflict"),
        ("Final Answer: (F)", "none", "not-an-option"),
        ("This is a hard question.", "none", "nothing"),
    ],
)
def test_a_reply_without_an_answer_has_its_rule(reply: str, status: Any, rule: str) -> None:
    assert extract_answer(reply, DRUGS) == Extraction(None, status, rule)


def test_long_texts_and_26_options_are_read() -> None:
    long = {"A": "very " * 4000 + "ill", "B": "very " * 4000 + "well"}
    assert read(long["B"], long) == "B"
    assert read("Final Answer: (Z)", dict.fromkeys(string.ascii_uppercase, "Same")) == "Z"
    assert read("A is possible. " * 70_000 + "\nFinal Answer: (B)" + " " * 100_000) == "B"
    assert read("Final Answer: (B)\n" + "\n" * 1_000_000) == "B"


# --- options that begin with words that lead to an answer ---

OPENERS = [
    "No", "Not", "Yes,", "So", "It's", "Stop", "Keep", "Select", "Choose", "Maintain", "Recommend",
    "Therefore", "I think", "Going with", "Change to", "Is", "As", "Without", "Initial", "Both",
    "Most likely",
]  # fmt: skip
FORMS = [
    "{text}", "{text}.", "{letter}. {text}", "({letter}) {text}", "{letter}\n{text}",
    "The answer is {text}.", "Answer: {text}", "Answer: {letter}. {text}", "**{letter}) {text}**",
    "Final Answer: ({letter}) {text}", "I would choose {text}.", "I think {text}.",
    "{text} is the correct answer.", "Therefore, {text}.", "I would switch to {text}.",
    "The best next step is {text}.", '{{"answer": "{letter}. {text}"}}', "\\boxed{{{text}}}",
]  # fmt: skip


@pytest.mark.parametrize("opener", OPENERS)
def test_the_words_of_an_option_lead_to_no_other_option(opener: str) -> None:
    options = {"A": "Aspirin therapy", "B": f"{opener} aspirin therapy"}
    for form in FORMS:
        for letter, option in options.items():
            for text in (option, option.lower()):
                reply = form.format(letter=letter, text=text)
                # "I think aspirin therapy" contains the text of B, and may well mean it
                if letter == "B" or options["B"].lower() not in reply.lower():
                    assert read(reply, options) == letter, reply


def test_an_option_about_correctness_is_an_option() -> None:
    options = {"A": "Statement 1", "B": "Only statement 1 is correct", "C": "A and B are correct"}
    assert read("Answer: B. Only statement 1 is correct", options) == "B"
    assert read("C. A and B are correct", options) == "C"
    assert read("Statement 1 is correct.", options) == "A"


@pytest.mark.parametrize("reply", ["None", "Neither.", "None of these", "None of them is right."])
def test_none_is_left_to_a_reader_even_where_it_is_an_option(reply: str) -> None:
    with_none = {"A": "Clopidogrel", "B": "None of the Above"}
    assert extract_answer(reply, with_none) == Extraction(None, "none", "none-correct")
    assert extract_answer("None of the above.", with_none).answer == "B"


def test_the_letter_decides_and_the_rule_says_where_its_words_are_of_another_option() -> None:
    for reply, rule in [("Answer: B. Aspirin", "answer-label"), ("B. Aspirin", "leading-letter")]:
        assert extract_answer(reply, DRUGS) == Extraction("B", "parsed", f"{rule}:other-words")
    assert extract_answer("Answer: B. Clopidogrel", DRUGS).rule == "answer-label"


# --- any reply ---

FRAGMENTS = st.sampled_from(
    [
        "The answer is ", "not ", "A", "B", " or ", " and ", "I ", "cannot ", "answer", ":", "**",
        "(", ")", "{", "}", "\\boxed{", "\n", " ", "Aspirin", "clopidogrel", " is ", "correct",
        "</think>", "<think>", "Final Answer: ", '"answer": ', "none of the above", "you said ",
        "if ", "would ", "no ", "choosing ", "wrong", "\u200f", "\uff21", "\u0301", "<", "?", ".",
        ",", "E. coli", "$", "'",
    ]
)  # fmt: skip
REPLIES = st.one_of(
    st.text(),
    st.text(alphabet="AB .,:()*\n\\{}$<>/"),
    st.lists(FRAGMENTS, max_size=12).map("".join),
)
OPTIONS = st.lists(
    st.one_of(st.text(max_size=12), st.sampled_from(["A", "4", "Aspirin", "(", "[a", "\\"])),
    min_size=2,
    max_size=26,
).map(lambda texts: dict(zip(string.ascii_uppercase, texts, strict=False)))


@given(reply=REPLIES, options=OPTIONS)
def test_never_raises_and_answers_only_with_an_option(reply: str, options: dict[str, str]) -> None:
    extraction = extract_answer(reply, options)
    assert (extraction.answer in options) == (extraction.status == "parsed")
    assert extraction.rule


@given(text=REPLIES.filter(lambda text: "<think>" not in text), letter=st.sampled_from("ABCD"))
def test_a_final_answer_at_the_end_holds(text: str, letter: str) -> None:
    extraction = extract_answer(f"{text}\n\nFinal Answer: ({letter})", DRUGS)
    assert (extraction.answer, extraction.rule) == (letter, "final-answer")


PIECES = [
    " ", "\n", "a", "*", "(", "\\", "<", "<think", "<think>", "</think>", "\\boxed{", "answer: ",
    "the answer is ", "is A ", "so i ", '"answer": ', "i cannot ", "A or ", "Aspirin ",
    "is aspirin ", "is the correct answer ", "if you say the answer ", "A\n", "\u0301",
    "\u0345\u0301", "\uff21", "\u200f", "\x00", "none of the ", "(A) ", "not ", "no aspirin ",
    "choosing A over ", "switching to A would be ", "going with aspirin in ", "stick ", "switch ",
    "not stick to A ", "I would not switch to ", "if I ", "Aortic dissection ", "A, ", "A, B, ",
    "my original answer ", "the new option ", ":", "enough ", "would you like to stick ",
    '{"stick": ', "the new ", "K fits ", "{", "[", '{"a":', "[[", "A.", "A. B. ", "(", "A) B) ",
    "Final Answer: (A) ", "Final Answer: ", "A -> B ", "A \u2192 ", "all but A ", "Dr. ", "e.g. ",
    "Ans. A ", "\u7b54\u6848", "\u9009A", "\u306f", "respuesta ", "respuesta final A ",
    "the checker says A ", "according to ", "|A|yes|\n", "- A: wrong\n", "\u2713 A\n", "[x] A\n",
    "A\n\n", "B) xxxxxxxxxxxx", "\n\nB) x", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ",
    "'", '"', "A's ", "don't ", "...", "?!", "A? ", "A B C D ", "a b ", "i ", "A and B and ",
    "over A than B ", "because A ", "though A, ", "is is is ", "to to to ", "from A to B ",
    "change from A to ", "\ue000", "\u0130", "\U0001d401", "\uff11", "\ufb00", "\ufdfa",
    "&#9989;", "\t", "\r\n", "`", "~~", "**A** ",
]  # fmt: skip


def test_a_translation_is_no_longer_than_a_reply_in_english() -> None:
    reply = "\u9009A" * 6_000 + "\nFinal Answer: (B)"
    translated = in_english(reply, DRUGS.values())
    assert 10_000 < len(translated) <= 24_000
    assert translated.endswith("Final Answer: (B)")
    assert extract_answer(reply, DRUGS).answer == "B"


def is_fast(reading: Callable[[], object]) -> bool:
    """Whether it takes less than 0.3 s; other work on the machine may slow one attempt."""
    for _ in range(4):
        start = time.process_time()
        reading()
        if time.process_time() - start < 0.3:
            return True
    return False


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.rest_slow
def test_a_megabyte_of_anything_is_read_at_once(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    with_answer = f"{text}\nFinal Answer: (B)"
    assert is_fast(lambda: extract_answer(text, DRUGS))
    assert is_fast(lambda: extract_answer(with_answer, DRUGS))
    assert is_fast(lambda: read_decision(text, DRUGS, "A", "B"))
    # reasoning without an end is no answer
    assert extract_answer(with_answer, DRUGS).answer == (None if piece == "<think>" else "B")


# --- first character ---

CROUP = {"A": "Asthma", "B": "Bronchitis", "C": "Croup"}


@pytest.mark.parametrize("reply", ["A", "A. Asthma", "Asthma", "A man of 40 has croup: (C)"])
def test_the_first_character_is_the_answer(reply: str) -> None:
    assert first_character(reply, CROUP) == Extraction("A", "parsed", "first-character")


@pytest.mark.parametrize("reply", ["", " A", "\nA", "(A)", "a", "D", "The answer is A", "**A**"])
def test_a_first_character_that_is_no_letter_is_no_answer(reply: str) -> None:
    assert first_character(reply, CROUP) == Extraction(None, "none", "first-character")


@given(st.text(max_size=20))
def test_the_characters_after_the_first_do_not_matter(reply: str) -> None:
    expected = reply[0] if reply[:1] in set("ABC") else None
    assert first_character(reply, CROUP).answer == expected


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [("\ue000, then.", "verdict"), ("\ue000, therefore; it is cheap.", "verdict"),
     ("\ue000, then, as before.", "bare"), ("\ue000 then.", "bare")],
)  # fmt: skip
def test_an_option_is_concluded_only_at_the_end_of_its_clause(sentence: str, rule: str) -> None:
    assert [claim.rule for _, claim in statements(sentence)] == [rule]
