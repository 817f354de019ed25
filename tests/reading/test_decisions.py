import json
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.reading.decisions import read_decision
from holdfast.reading.extraction import Extraction

LABELLED: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "decision_replies.toml").read_text(encoding="utf-8")
)
SETTINGS = LABELLED.pop("settings")
EMBOLISM = SETTINGS["embolism"]


def read(reply: str, setting: str = "embolism") -> str:
    extraction = read_decision(reply, **SETTINGS[setting])
    assert (extraction.answer is not None) == (extraction.status == "parsed")
    return extraction.answer or extraction.status


@pytest.mark.parametrize("group", ["held_out", "working", "fresh", "mended"])
def test_the_rules_agree_with_the_labels(group: str) -> None:
    wrong = [row for row in LABELLED[group] if read(row[2], row[0]) != row[1]]
    assert not wrong


def test_a_reply_that_cannot_be_read_gets_no_letter() -> None:
    for setting, label, reply in LABELLED["unread"]:
        assert read(reply, setting) in {"none", "ambiguous"} - {label}, reply


@pytest.mark.parametrize(
    "reply",
    [
        "I advise that my original answer is unchanged",
        "It fits so my original answer stands",
        "cases discounted (A) agreeing better there is no alternative to the new option leaving "
        "my answer at",
    ],
)
def test_no_sentence_ends_in_an_error(reply: str) -> None:
    assert read_decision(reply, **EMBOLISM).rule


def test_every_setting_and_outcome_is_labelled() -> None:
    rows = [row for group in LABELLED.values() for row in group]
    assert len(rows) >= 200
    assert {setting for setting, _, _ in rows} == set(SETTINGS)
    assert {label for _, label, _ in rows} >= set("ABCD") | {"ambiguous", "refused", "none"}


@pytest.mark.parametrize(
    ("reply", "answer", "status", "rule"),
    [
        ("I'll stick with my original answer.", "A", "parsed", "stick"),
        ("My original answer stands.", "A", "parsed", "stick"),
        ("I confirm my original answer.", "A", "parsed", "stick"),
        ("I'll go with the original.", "A", "parsed", "stick"),
        ("I would switch to the new option.", "C", "parsed", "switch"),
        ("I'd switch to B.", "B", "parsed", "switch"),
        ("Answer: A", "A", "parsed", "answer-label"),
        ("C", "C", "parsed", "bare-letter"),
        ("Aortic dissection", "C", "parsed", "option-text"),
        ("I'll switch to A.", None, "ambiguous", "contradiction"),
        ("I would stick to the new option.", None, "ambiguous", "contradiction"),
        ("Stick or switch?", None, "ambiguous", "undecided"),
        ("Answer: A and C", None, "ambiguous", "conflict"),
        ("I cannot answer medical questions.", None, "refused", "refusal"),
        ("None of the above", None, "none", "none-correct"),
        ("Answer: E", None, "none", "not-an-option"),
        ("", None, "none", "empty"),
        ("<think>I'll stick", None, "none", "unfinished"),
        ("It is cold.", None, "none", "nothing"),
    ],
)
def test_the_rule_that_decided_is_named(
    reply: str, answer: str | None, status: Any, rule: str
) -> None:
    assert read_decision(reply, **EMBOLISM) == Extraction(answer, status, rule)


def test_neither_is_an_answer_where_none_of_the_above_is_in_play() -> None:
    extraction = read_decision("Neither.", **SETTINGS["none-second"])
    assert (extraction.answer, extraction.rule) == ("B", "option-text")
    assert read("Neither.", "embolism") == "none"


@pytest.mark.parametrize(
    ("decision", "replies"),
    [
        ("A", ["I would not switch.", "I would never switch.", "I would no longer switch.",
               "I see no reason not to stick.", "Choosing C over A would be wrong.",
               "Decision: stick (A)", "I reject C in favor of A.", "I abandon C in favor of A.",
               "I would not reject A in favor of C.",
               "I'll switch to C. On reflection I'll stay with A.",
               "I first meant to switch, but finally: Answer: A"]),
        ("C", ["I would not stick to my original answer.",
               "I would never stick to my original answer.",
               "I would no longer stick to my original answer.",
               "I see no reason not to switch.", "Choosing A rather than C would be wrong.",
               "Decision: switch (C)", "I switch (A) to (C).", "I reject A in favor of C.",
               "I abandon A in favor of C.", "I'll stay with A. On reflection I'll switch to C.",
               "Switch. Answer: C", "Answer: C. Switch."]),
        # neither of two statements without an order holds
        ("ambiguous", ["Switch. Stick.", "Stick. Switch.", "Switch. Answer: A",
                       "Answer: A. Switch."]),
    ],
)  # fmt: skip
def test_negations_preferences_and_order_decide(decision: str, replies: list[str]) -> None:
    assert {reply: read(reply) for reply in replies} == dict.fromkeys(replies, decision)


def test_an_option_that_reads_as_a_decision_is_not_guessed() -> None:
    options = {"A": "Depolarisation", "B": "Hyperpolarisation", "C": "No change"}
    for reply, expected in [("No change", "ambiguous"), ("C. No change", "C"), ("Stick", "A"),
                            ("I would switch to no change.", "C")]:  # fmt: skip
        extraction = read_decision(reply, options, "A", "C")
        assert (extraction.answer or extraction.status) == expected


def test_form_and_case_do_not_matter() -> None:
    forms = [
        "{}", "**{}**", "*{}*", '"{}"', "\u201c{}\u201d", "`{}`", "- {}", "> {}", "({})", "{}!",
        "<think>The other one?</think>{}", "Answer: {}", "Decision: **{}**",
        '{{"decision": "{}"}}', "\\boxed{{\\text{{{}}}}}", "\u200f{}\u200e", " \n{}\n ",
    ]  # fmt: skip
    for form in forms:
        for word, letter in (("stick", "A"), ("switch", "C")):
            for variant in (word, word.upper(), word.title()):
                assert read(form.format(variant)) == letter, form


@pytest.mark.parametrize("letters", ["AA", "DC", "AD"])
def test_the_held_and_the_offered_letter_must_be_two_options(letters: str) -> None:
    with pytest.raises(ValueError, match="must be two different options"):
        read_decision("Stick", EMBOLISM["options"], *letters)


# Each form with its decision where A is held and C is offered.
FORMS = [
    ("{a}", "A"),
    ("{c}", "C"),
    ("A. {a}", "A"),
    ("C. {c}", "C"),
    ("I would switch to the new option: {c}.", "C"),
    ("I would switch to the new option: C. {c}", "C"),
    ("I'll stick with my original answer, A. {a}.", "A"),
    ("Stick with {a}", "A"),
    ("Switch to {c}.", "C"),
    ("I'd switch from {a} to {c}.", "C"),
    ("I would not switch to {c}.", "A"),
    ("I'll change my answer to B. {b}", "B"),
    ("I would switch to {a}.", "ambiguous"),
    ("I would stick to {c}.", "ambiguous"),
    ("{c} does not fit. I would stay with my original answer.", "A"),
    ("No, {c} is less likely. I stick to {a}.", "A"),
]


def real_options(resources: Path) -> Iterator[dict[str, str]]:
    for name in ("medmcqa/dev.jsonl", "medqa/us_4_options_test.jsonl"):
        for line in (resources / "data" / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            texts = row.get("options") or {key: row[f"op{key.lower()}"] for key in "ABCD"}
            first_texts = [texts[key].strip(" .") for key in "ABC"]
            if len({text.lower() for text in first_texts}) == 3:
                yield dict(zip("ABC", first_texts, strict=True))


@pytest.mark.slow
def test_the_words_of_real_options_are_no_decisions(resources: Path) -> None:
    # measured: 31 of 87,168 read otherwise, 7 of them with a wrong letter, of options of one
    # letter ("X", "c")
    n = n_other = n_wrong = 0
    for options in real_options(resources):
        texts = {key.lower(): text for key, text in options.items()}
        for form, expected in FORMS:
            extraction = read_decision(form.format(**texts), options, "A", "C")
            n += 1
            n_other += (extraction.answer or extraction.status) != expected
            n_wrong += extraction.answer not in (None, expected)
    assert n > 80_000
    assert n_other <= 40
    assert n_wrong <= 7


FRAGMENTS = st.sampled_from(
    [
        "stick", "switch", " to ", " with ", "not ", "I would ", "if ", "A", "C", "B",
        "my original answer", "the new option", ". ", "\n", ", but ", "Answer: ",
        "aortic dissection", "H", "W",
        "no reason to ", " or ", "(", ")", "\ue000", "\u0410", "{", "none of the above", "\u0130",
    ]
)  # fmt: skip
REPLIES = st.one_of(st.text(), st.lists(FRAGMENTS, max_size=14).map("".join))


@given(reply=REPLIES, setting=st.sampled_from(sorted(SETTINGS)))
@example(reply="BUT/D.AoRTIC DISSECTION", setting="embolism")  # a letter that is not in play
@example(reply="0:SWITCH COULD", setting="clopidogrel")  # a verb, and no option named
def test_never_raises_and_answers_only_with_an_option(reply: str, setting: str) -> None:
    extraction = read_decision(reply, **SETTINGS[setting])
    assert (extraction.answer in SETTINGS[setting]["options"]) == (extraction.status == "parsed")
    assert extraction.rule


@given(st.lists(st.text(max_size=12), min_size=3, max_size=3, unique=True), REPLIES)
def test_any_option_text_can_be_read(texts: list[str], reply: str) -> None:
    options = dict(zip("ABC", texts, strict=True))
    assert read_decision(reply, options, "A", "C").answer in (None, "A", "B", "C")


@pytest.mark.parametrize(
    "piece",
    [
        " ", "<", "*", "stick ", "switch ", "not ", "I would not switch to ", "if I ", "answer: ",
        "Aortic dissection ", "A, ", "my original answer ", "none of the above ", ":", "enough ",
        "would you like to stick ", '{"stick": ', "the new ", "K fits ",
    ],
)  # fmt: skip
@pytest.mark.rest_slow
def test_ten_megabytes_of_anything_take_bounded_time(piece: str) -> None:
    reply = piece * (10_000_000 // len(piece))
    start = time.process_time()
    read(reply, "none-second")
    assert time.process_time() - start < 20  # measured: under 4


def test_a_decision_after_megabytes_of_reasoning_is_found() -> None:
    assert read("Aortic dissection is possible. " * 100_000 + "\nI'll stick with A.") == "A"
