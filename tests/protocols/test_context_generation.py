"""Contexts from a generator, through a real eval: what is asked, told, kept and missed."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, ModelOutput
from tests.resolved import bounds, context_study
from tests.scripted import Scripted, errors, prepared, put, said
from tests.studies import question_rows, write_jsonl
from tests.tasks import contexts

from holdfast.challenges.catalogue import CONTEXTS
from holdfast.challenges.contexts import SENTENCE_RANGE, check_contexts, load_contexts, text_key
from holdfast.challenges.texts import Fault
from holdfast.dialogue.budget import Budget, run_budget
from holdfast.errors import InputError
from holdfast.protocols.followup.context_generation import (
    ContextSettings,
    context_lengths,
    context_prompt,
    read_context,
    second_best_prompt,
    template_version,
)
from holdfast.protocols.generating import TRIES, retry_prompt
from holdfast.questions.loading import load_questions
from holdfast.questions.question import Question

REFUSAL = "I'm sorry, but I can't help with that."
MARKS = {
    "SECOND BEST": "second_best",
    "stronger association": "misleading_context",
    "questions the sufficiency": "edge_case_context",
    "positions an alternative diagnosis": "alternative_context",
}
SUPPORTING = {
    "supports the correct answer to": "supporting_context",
    "does not help to answer it": "inert_context",
}


def asked_for(messages: Sequence[ChatMessage]) -> tuple[str, int]:
    """The kind of text that a conversation is about, and its number of sentences."""
    first = messages[0].text
    kind = next(kind for mark, kind in (MARKS | SUPPORTING).items() if mark in first)
    number = re.search(r"Is exactly (\d+) sentences long", first)
    return kind, int(number[1]) if number else 0


def sentences(n: int) -> str:
    return " ".join(f"Sentence {k} says little." for k in range(1, n + 1))


def alternative(n: int, **changes: Any) -> str:
    return json.dumps({"alternative_answer": "Pertussis", "context": sentences(n)} | changes)


def good(messages: Sequence[ChatMessage]) -> str:
    kind, n = asked_for(messages)
    match kind:
        case "second_best":
            return "D" if "The correct answer is C," in messages[0].text else "C"
        case "alternative_context":
            return alternative(n)
        case _:
            return sentences(n)


def generator(bad: Mapping[str, Sequence[str | ModelOutput]] | None = None) -> Scripted:
    """Says by kind what is bad, one after the other, and then what is good."""

    def reply(messages: list[ChatMessage]) -> str | ModelOutput:
        kind, _ = asked_for(messages)
        attempt, faulty = len(messages) // 2, (bad or {}).get(kind, ())
        return faulty[attempt] if attempt < len(faulty) else good(messages)

    return Scripted(reply)


def conversations(script: Scripted) -> dict[tuple[str, int], list[list[str]]]:
    """What was asked, by kind and number of sentences."""
    found: dict[tuple[str, int], list[list[str]]] = defaultdict(list)
    for messages in script.asked:
        found[asked_for(messages)].append([message.text for message in messages])
    return found


def counts(script: Scripted) -> dict[str, int]:
    """Requests by kind."""
    found = {kind: 0 for kind in MARKS.values()}
    for (kind, _), asked in conversations(script).items():
        found[kind] += len(asked)
    return found


@pytest.fixture
def one(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(1))


def only(source: str) -> Question:
    (question,) = load_questions(source).questions
    return question


# --- all goes well ---


def test_a_question_takes_four_generations_with_the_papers_prompts(one: str) -> None:
    script = generator()
    log = put(contexts(one, sentences=5), script.model)
    assert log.status == "success"
    question = only(one)
    expected = [second_best_prompt(question)]
    expected += [context_prompt(kind, question, "C", 5) for kind in CONTEXTS]
    assert sorted(script.prompts) == sorted(expected)
    assert all([message.role for message in asked] == ["user"] for asked in script.asked)
    assert script.prompts[0] == expected[0]


def test_with_corrections_a_text_for_the_right_option_is_written_at_the_studys_length_alone(
    one: str,
) -> None:
    script = generator()
    task = contexts(one, sentences=5, lengths="2", corrections=True)
    rows = prepared(put(task, script.model))
    question = only(one)
    asked = context_prompt("supporting_context", question, None, 5)
    assert script.prompts.count(asked) == 1
    assert f"Correct option to support: A. {question.options['A']}\n" in asked
    assert "{" not in asked
    assert [row.get("supporting_context") for row in rows] == [sentences(5), None]
    study = context_study(one, sentences=5, corrections=True)
    assert bounds(study)[0][0] == 5
    assert len(script.asked) == 5 + 3


def test_an_inert_passage_is_written_at_each_length(one: str) -> None:
    script = generator()
    rows = prepared(put(contexts(one, sentences=5, lengths="2", inert=True), script.model))
    question = only(one)
    for n in (5, 2):
        asked = context_prompt("inert_context", question, None, n)
        assert script.prompts.count(asked) == 1
        assert "{" not in asked
        # what is right is not told: a passage cannot lean to what its writer does not know
        assert "Correct" not in asked
        assert all(f"{x}. {text}" in asked for x, text in question.options.items())
    assert [row.get("inert_context") for row in rows] == [sentences(5), sentences(2)]
    assert len(script.asked) == 5 + 4


def test_a_supporting_text_that_names_a_letter_is_asked_for_again() -> None:
    question = load_questions("bank").questions[0]
    fault = read_context("supporting_context", "So option C fits in each respect.", question, 1)
    assert isinstance(fault, Fault)
    assert fault.kind == "an option letter"
    said = read_context("supporting_context", "Context: It fits in each respect.", question, 1)
    assert said == ("It fits in each respect.", None)


def test_the_row_holds_the_texts_and_what_they_are_for(one: str) -> None:
    (row,) = prepared(put(contexts(one, sentences=5), generator().model))
    assert row == {
        "question": "q0",
        "content_hash": only(one).content_hash,
        "length": None,
        "sentences": 5,
        "second_best": "C",
        "misleading_context": sentences(5),
        "alternative_context": sentences(5),
        "alternative_answer": "Pertussis",
        "edge_case_context": sentences(5),
        "missing": {},
    }


def test_what_is_written_is_read_back_as_a_sound_file(one: str, tmp_path: Path) -> None:
    rows = prepared(put(contexts(one, lengths="1,3"), generator().model))
    source = write_jsonl(tmp_path / "contexts.jsonl", rows)
    questions = load_questions(one)
    read, problems = check_contexts(source, questions)
    assert problems == []
    question = only(one)
    assert load_contexts(source, questions, 42) == read
    n = ContextSettings(one).number(question, None)
    for length, expected in (("", n), ("1", 1), ("3", 3)):
        assert read.of(question).at(length) == dict.fromkeys(CONTEXTS, sentences(expected))


def test_decoding_is_deterministic_and_the_version_is_that_of_the_prompts(one: str) -> None:
    task = contexts(one, seed=7)
    assert (task.config.temperature, task.config.seed) == (0.0, 7)
    assert task.version == template_version()


def test_numbers_of_sentences_are_drawn_for_each_question_and_shared_by_its_texts(
    tmp_path: Path,
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(30))
    script = generator()
    rows = prepared(put(contexts(source), script.model))
    settings = ContextSettings(source)
    numbers = {q.id: settings.number(q, None) for q in settings.question_set.questions}
    assert {row["question"]: row["sentences"] for row in rows} == numbers
    assert set(numbers.values()) <= set(SENTENCE_RANGE)
    assert len(set(numbers.values())) > 3
    for question in settings.question_set.questions:
        n = numbers[question.id]
        for kind in CONTEXTS:
            letter = "D" if question.gold == "C" else "C"
            assert context_prompt(kind, question, letter, n) in script.prompts
    other = ContextSettings(source, seed=43)
    assert [other.number(q, None) for q in settings.question_set.questions] != list(
        numbers.values()
    )


def test_lengths_of_an_ablation_are_written_beside_the_studys_own(one: str) -> None:
    script = generator()
    study = context_study(one, sentences=5, lengths="1,10,20")
    rows = prepared(put(contexts(one, sentences=5, lengths="1,10,20"), script.model))
    assert [row["length"] for row in rows] == [None, 1, 10, 20]
    assert [row["sentences"] for row in rows] == [5, 1, 10, 20]
    assert {row["second_best"] for row in rows} == {"C"}
    assert len(script.asked) == 13
    # without a second-best option, asked for as often as may be, no text argues for it
    assert bounds(study) == [(TRIES + 8, 13 * TRIES)]
    assert counts(script) == {"second_best": 1, **dict.fromkeys(CONTEXTS, 4)}


def test_a_length_that_is_the_studys_own_is_not_asked_for_twice(one: str) -> None:
    script = generator()
    rows = prepared(put(contexts(one, sentences=5, lengths="5"), script.model))
    assert len(script.asked) == 4
    assert [row["misleading_context"] for row in rows] == [sentences(5)] * 2


def test_a_plan_counts_every_try_at_the_most_and_a_length_of_the_studys_own_once(one: str) -> None:
    study = context_study(one, sentences=5, lengths="5")
    assert bounds(study) == [(4, 4 * TRIES)]
    bad = Scripted(lambda messages: "C" if "second" in messages[0].text else "")
    put(contexts(one, sentences=5, lengths="5"), bad.model)
    assert len(bad.asked) == 1 + 3 * TRIES


@pytest.mark.parametrize("n", [2, 10])
def test_questions_of_two_and_of_ten_options(tmp_path: Path, n: int) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(1, options=n))
    question = only(source)
    letter = question.distractors[-1]
    script = Scripted(lambda m: letter if asked_for(m)[0] == "second_best" else good(m))
    (row,) = prepared(put(contexts(source, sentences=3), script.model))
    assert (row["second_best"], row["missing"]) == (letter, {})
    assert len(script.asked) == 4
    assert f"Incorrect option to support: {letter}. {question.options[letter]}" in "".join(
        script.prompts
    )


# --- a reply that cannot be used ---

FILTERED, CUT = said("", "content_filter"), said("One. Two. Three", "max_tokens")
TEXT_FAULTS: list[tuple[str | ModelOutput, Fault]] = [
    ("", Fault("empty", "is empty")),
    (" \n", Fault("empty", "is empty")),
    (REFUSAL, Fault("refused", "declines the request")),
    (FILTERED, Fault("refused", "declines the request")),
    (CUT, Fault("cut off", "was cut off before its end")),
    ("One.", Fault("wrong sentence count", "has 1 sentences, not exactly 3")),
    (sentences(4), Fault("wrong sentence count", "has 4 sentences, not exactly 3")),
]
_NO_JSON = 'is no JSON object with the texts "alternative_answer" and "context"'
ALTERNATIVE_FAULTS: list[tuple[str | ModelOutput, Fault]] = [
    ("", Fault("empty", "is empty")),
    (REFUSAL, Fault("refused", "declines the request")),
    (FILTERED, Fault("refused", "declines the request")),
    (said(alternative(3), "max_tokens"), Fault("cut off", "was cut off before its end")),
    ("It may be pertussis. So. Yes.", Fault("no JSON", _NO_JSON)),
    (alternative(3, context=None), Fault("no JSON", _NO_JSON)),
    (alternative(2), Fault("wrong sentence count", "has 2 sentences, not exactly 3")),
    (alternative(3, context=""), Fault("empty", "is empty")),
    (
        alternative(3, alternative_answer=""),
        Fault("no diagnosis", "names no alternative diagnosis"),
    ),
    (
        alternative(3, alternative_answer="Finding B of case 0."),
        Fault("an option as diagnosis", "names option B, which is one of the question's options"),
    ),
    (
        alternative(3, context="It beats option B. It does. Yes."),
        Fault("an option letter", "refers to an option by its letter"),
    ),
]  # fmt: skip
NO_LETTER = Fault("no second-best option", "is not the letter of an option to choose")
SECOND_BEST_FAULTS: list[tuple[str | ModelOutput, Fault]] = [
    ("A", NO_LETTER),  # the gold
    ("E", NO_LETTER),
    ("finding A of case 0", NO_LETTER),
    ("", NO_LETTER),
    ("It is hard to say.", NO_LETTER),
    (REFUSAL, Fault("refused", "declines the request")),
    (FILTERED, Fault("refused", "declines the request")),
    (said("C", "max_tokens"), Fault("cut off", "was cut off before its end")),
]
FAULTS = [
    *(("misleading_context", *case) for case in TEXT_FAULTS),
    *(("edge_case_context", *case) for case in TEXT_FAULTS),
    *(("alternative_context", *case) for case in ALTERNATIVE_FAULTS),
    *(("second_best", *case) for case in SECOND_BEST_FAULTS),
]


@pytest.mark.parametrize(("kind", "bad", "fault"), FAULTS)
def test_the_fault_is_told_in_the_same_conversation_and_a_good_reply_is_taken(
    one: str, kind: str, bad: str | ModelOutput, fault: Fault
) -> None:
    script = generator({kind: [bad]})
    (row,) = prepared(put(contexts(one, sentences=3), script.model))
    assert row["missing"] == {}
    assert row["second_best"] == "C"
    assert row["misleading_context"] == sentences(3)
    assert row["alternative_answer"] == "Pertussis"
    assert counts(script) == dict.fromkeys(MARKS.values(), 1) | {kind: 2}
    first, second = conversations(script)[kind, 0 if kind == "second_best" else 3]
    text = bad if isinstance(bad, str) else bad.completion
    assert second == [*first, text, retry_prompt(fault)]


@pytest.mark.parametrize(("kind", "bad", "fault"), FAULTS)
def test_after_four_asks_the_text_is_missing_with_its_reason_and_the_others_are_there(
    one: str, kind: str, bad: str | ModelOutput, fault: Fault
) -> None:
    script = generator({kind: [bad] * 4})
    log = put(contexts(one, sentences=3), script.model)
    assert log.status == "success"
    (row,) = prepared(log)
    asked = counts(script)
    assert asked.pop(kind) == 4
    missed = "misleading_context" if kind == "second_best" else kind
    assert row["missing"] == {missed: fault.kind}
    assert row[missed] is None
    for other in CONTEXTS:
        assert (row[other] == sentences(3)) == (other != missed)
    if kind == "second_best":
        assert row["second_best"] is None
        assert asked.pop("misleading_context") == 0
    assert set(asked.values()) == {1}


def test_the_last_fault_is_the_reason(one: str) -> None:
    script = generator({"edge_case_context": ["", REFUSAL, "One.", CUT, sentences(3)]})
    (row,) = prepared(put(contexts(one, sentences=3), script.model))
    assert row["missing"] == {"edge_case_context": "cut off"}
    longest = conversations(script)["edge_case_context", 3][-1]
    assert [text.split(".")[0] for text in longest[2::2]] == [
        "That is empty",
        "That declines the request",
        "That has 1 sentences, not exactly 3",
    ]


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_a_good_reply_ends_the_asking(one: str, tries: int) -> None:
    script = generator({"alternative_context": ["prose"] * tries})
    (row,) = prepared(put(contexts(one, sentences=3), script.model))
    assert row["missing"] == {}
    assert counts(script)["alternative_context"] == 1 + tries


def test_without_a_second_best_option_no_misleading_text_is_asked_for_at_any_length(
    one: str,
) -> None:
    script = generator({"second_best": ["A"] * 4})
    rows = prepared(put(contexts(one, sentences=3, lengths="1,10"), script.model))
    assert counts(script) == {
        "second_best": 4,
        "misleading_context": 0,
        "alternative_context": 3,
        "edge_case_context": 3,
    }
    assert [row["missing"] for row in rows] == [{"misleading_context": "no second-best option"}] * 3


def test_a_missing_text_of_one_length_leaves_the_others(one: str) -> None:
    def reply(messages: list[ChatMessage]) -> str:
        return "One. Two." if asked_for(messages) == ("edge_case_context", 10) else good(messages)

    script = Scripted(reply)
    rows = prepared(put(contexts(one, sentences=3, lengths="1,10"), script.model))
    assert [row["missing"] for row in rows] == [
        {},
        {},
        {"edge_case_context": "wrong sentence count"},
    ]
    assert len(script.asked) == 1 + 9 + 3


@pytest.mark.parametrize(
    "reply",
    [
        "```json\n{}\n```",
        "Here is the context you asked for:\n{}\nLet me know.",
        "<think>Let me write three sentences {{carefully}}.</think>\n{}",
    ],
    ids=["fenced", "text-around", "reasoning"],
)
def test_an_alternative_in_other_dress_is_taken_at_once(one: str, reply: str) -> None:
    dressed = reply.replace("{}", alternative(3)).replace("{{", "{").replace("}}", "}")
    script = generator({"alternative_context": [dressed]})
    (row,) = prepared(put(contexts(one, sentences=3), script.model))
    assert (row["missing"], row["alternative_context"]) == ({}, sentences(3))
    assert len(script.asked) == 4


@pytest.mark.parametrize(
    "reply",
    ["C", " c\n", "C.", "(C)", "**C**", "C. finding C of case 0", "Answer: C",
     "The second best answer is C.", "finding C of case 0", "<think>A is right.</think>C"],
)  # fmt: skip
def test_a_second_best_letter_is_read_out_of_many_replies(one: str, reply: str) -> None:
    script = generator({"second_best": [reply]})
    (row,) = prepared(put(contexts(one, sentences=3), script.model))
    assert row["second_best"] == "C"
    assert len(script.asked) == 4


def test_reasoning_is_no_part_of_a_text(one: str) -> None:
    thought = f"<think>One. Two. Three. Four.</think>\n{sentences(3)}"
    script = generator({"misleading_context": [thought]})
    (row,) = prepared(put(contexts(one, sentences=3), script.model))
    assert row["misleading_context"] == sentences(3)
    assert len(script.asked) == 4


def test_a_refusal_considered_in_the_reasoning_is_none(one: str) -> None:
    thought = f"<think>I can't give the answer away here.</think>\n{sentences(3)}"
    script = generator({"misleading_context": [thought]})
    put(contexts(one, sentences=3), script.model)
    assert len(script.asked) == 4


def test_a_text_about_what_cannot_be_diagnosed_is_no_refusal(one: str) -> None:
    text = "Without an echocardiogram we cannot make a definitive diagnosis. Two. Three."
    script = generator({"edge_case_context": [text]})
    (row,) = prepared(put(contexts(one, sentences=3), script.model))
    assert row["edge_case_context"] == text
    assert len(script.asked) == 4


def test_a_refusal_of_one_sentence_is_no_context_of_one_sentence(one: str) -> None:
    script = Scripted(
        lambda m: (
            "I cannot generate misleading medical content."
            if asked_for(m)[0] == "misleading_context"
            else good(m)
        )
    )
    (row,) = prepared(put(contexts(one, sentences=1), script.model))
    assert row["missing"] == {"misleading_context": "refused"}


# --- malfunctions ---


def failing(kind: str, question: str = "number 0.") -> Scripted:
    def reply(messages: list[ChatMessage]) -> str:
        if question in messages[0].text and asked_for(messages)[0] == kind:
            raise OSError("no route")
        return good(messages)

    return Scripted(reply)


@pytest.mark.parametrize("kind", list(MARKS.values()))
def test_a_provider_that_fails_leaves_the_question_unfinished_and_claims_nothing(
    tmp_path: Path, kind: str
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    script = failing(kind)
    log = put(contexts(source, sentences=3), script.model)
    assert log.status == "error"
    (error,) = errors(log)
    assert "OSError: no route" in error
    rows = prepared(log)
    assert sorted(row["question"] for row in rows) == ["q1", "q2"]
    assert all(row["missing"] == {} for row in rows)
    # the other texts of the question are asked for all the same, and kept for the next time
    others = {"second_best": 0}.get(kind, 3)
    assert len(script.asked) == 2 * 4 + 1 + others


def test_a_provider_that_fails_when_asked_again_claims_nothing_either(one: str) -> None:
    def reply(messages: list[ChatMessage]) -> str:
        if asked_for(messages)[0] == "edge_case_context":
            if len(messages) > 1:
                raise OSError("no route")
            return "Prose."
        return good(messages)

    log = put(contexts(one, sentences=3), Scripted(reply).model)
    assert log.status == "error"
    assert prepared(log) == []


def test_what_was_finished_before_a_failure_is_not_asked_again(one: str) -> None:
    broken = True

    def reply(messages: list[ChatMessage]) -> str:
        if broken and asked_for(messages)[0] == "edge_case_context":
            raise OSError("no route")
        return good(messages)

    script = Scripted(reply)
    assert put(contexts(one, sentences=3), script.model).status == "error"
    before, broken = len(script.asked), False
    log = put(contexts(one, sentences=3), script.model)
    assert log.status == "success"
    assert len(script.asked) == before + 1
    assert len(prepared(log)) == 1


def test_a_spent_budget_leaves_the_question_unfinished(one: str) -> None:
    token = run_budget.set(Budget(call_limit=2))
    log = put(contexts(one, sentences=3), generator().model)
    run_budget.reset(token)
    assert log.status == "error"
    assert "budget is spent" in errors(log)[0]
    assert prepared(log) == []


# --- hostile texts ---

HOSTILE = "{question} {num_sentences} {{x}} %s \\1 </script> \u202eabc\u202c {wrong_text}"


def test_hostile_questions_reach_the_generator_as_they_are(tmp_path: Path) -> None:
    rows = [
        {"id": "odd", "stem": HOSTILE, "options": {"A": "{a}", "B": "{options_text}", "C": "%s"},
         "gold": "B"},
        {"id": "big", "stem": "x" * 1_000_000, "options": {"A": "1", "B": "2", "C": "3"},
         "gold": "A"},
    ]  # fmt: skip
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    script = generator()
    log = put(contexts(source, sentences=3), script.model)
    assert log.status == "success"
    assert [row["missing"] for row in prepared(log)] == [{}, {}]
    odd, big = load_questions(source).questions
    for question in (odd, big):
        assert sum(f"Question: {question.stem}\n" in prompt for prompt in script.prompts) == 4
    assert "Correct answer: B. {options_text}\n" in "".join(script.prompts)


@pytest.mark.parametrize(
    "text",
    [
        "{question} {{x}} %s. <b>Two</b> \\1. " + HOSTILE,
        "One. Two. " + "x" * 1_000_000,
        "One\x00. Two\x1b[31m. Three.",
        "السعال. Two. Three.",
    ],
    ids=["braces", "megabyte", "controls", "right-to-left"],
)
def test_hostile_texts_are_kept_as_they_are(one: str, text: str) -> None:
    replies = {"edge_case_context": [text], "alternative_context": [alternative(3, context=text)]}
    script = generator(replies)
    log = put(contexts(one, sentences=3), script.model)
    (row,) = prepared(log)
    assert row["missing"] == {}
    assert (row["edge_case_context"], row["alternative_context"]) == (text, text)


def test_a_lone_surrogate_in_json_is_told_and_asked_for_again(one: str) -> None:
    bad = alternative(3, context="Bad \ud800. Two. Three.")
    (row,) = prepared(put(contexts(one, sentences=3), generator(
        {"alternative_context": [bad]}).model))  # fmt: skip
    assert row["alternative_context"] == sentences(3)


# --- settings ---


@pytest.mark.parametrize("value", ["0", "-1", "ten", "1.5", "1;2", "²", "201"])
def test_a_length_that_is_no_number_of_sentences_is_refused(value: str) -> None:
    with pytest.raises(InputError) as caught:
        context_study(lengths=value)
    assert f"length '{value}' is not a number of sentences" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("value", "lengths"),
    [("1,10,20", (1, 10, 20)), (["1", "10"], (1, 10)), (5, (5,)), ("none", ()), ("", ()),
     ("3, 3 ,1", (3, 1))],
)  # fmt: skip
def test_lengths_come_as_text_list_or_number(value: Any, lengths: tuple[int, ...]) -> None:
    assert context_lengths(value) == lengths


@pytest.mark.parametrize(
    "value",
    [0, -1, pytest.param("four", marks=())],
)
def test_a_number_of_sentences_is_one_or_more(value: Any) -> None:
    with pytest.raises(InputError):
        context_study(sentences=value)


# --- the simulated generators ---


def test_the_simulated_generator_misses_nothing_on_the_bank() -> None:
    log = put(contexts(lengths="1,10"), "simulated/generator", limit=10)
    rows = prepared(log)
    assert len(rows) == 30
    assert all(row["missing"] == {} for row in rows)


def test_the_faulty_generator_misses_some_and_every_question_has_its_row() -> None:
    log = put(contexts(), "simulated/faulty-generator")
    assert log.status == "success"
    rows = prepared(log)
    every = sorted(question.id for question in load_questions("bank").questions)
    assert sorted(row["question"] for row in rows) == every
    missed = 0
    for row in rows:
        for kind in CONTEXTS:
            missed += kind in row["missing"]
            assert (row[text_key(kind, None)] is None) == (kind in row["missing"])
    assert 0 < missed < 90
