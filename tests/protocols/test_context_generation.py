"""Contexts from a generator, through a real eval: prompts, retries, rows and missing texts."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog
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
    "supports the correct answer to": "supporting_context",
    "does not help to answer it": "inert_context",
}

Reply = str | ModelOutput
Key = tuple[int, str, int]
"""Number of a question, kind of text, number of sentences."""


def subject(messages: Sequence[ChatMessage]) -> Key:
    """What a conversation is about."""
    first = messages[0].text
    kind = next(kind for mark, kind in MARKS.items() if mark in first)
    question = re.search(r"Vignette number (\d+)\.", first)
    length = re.search(r"Is exactly (\d+) sentences long", first)
    return int(question[1]) if question else 0, kind, int(length[1]) if length else 0


def sentences(n: int) -> str:
    return " ".join(f"Sentence {k} says little." for k in range(1, n + 1))


def alternative(n: int, **changes: Any) -> str:
    return json.dumps({"alternative_answer": "Pertussis", "context": sentences(n)} | changes)


def good(messages: Sequence[ChatMessage]) -> str:
    _, kind, n = subject(messages)
    if kind == "second_best":
        return "D" if "The correct answer is C," in messages[0].text else "C"
    return alternative(n) if kind == "alternative_context" else sentences(n)


def generator(replies: Callable[[int, str], Sequence[Reply]] = lambda *_: ()) -> Scripted:
    """First gives the replies for a question's text of a kind in turn, then a good reply."""

    def reply(messages: list[ChatMessage]) -> Reply:
        question, kind, _ = subject(messages)
        attempt, script = len(messages) // 2, replies(question, kind)
        return script[attempt] if attempt < len(script) else good(messages)

    return Scripted(reply)


def conversations(script: Scripted) -> dict[Key, list[list[str]]]:
    """Texts of the messages of each request."""
    texts: dict[Key, list[list[str]]] = defaultdict(list)
    for messages in script.asked:
        texts[subject(messages)].append([message.text for message in messages])
    return texts


def cases(folder: Path, n: int) -> str:
    """Questions whose right option is A."""
    return write_jsonl(folder / "q.jsonl", [row | {"gold": "A"} for row in question_rows(n)])


def in_order(log: EvalLog) -> list[dict[str, Any]]:
    """Rows in the order of the questions' numbers."""
    return sorted(prepared(log), key=lambda row: int(row["question"][1:]))


@pytest.fixture
def source(tmp_path: Path) -> str:
    return cases(tmp_path, 1)


def only(source: str) -> Question:
    (question,) = load_questions(source).questions
    return question


# --- prompts, rows and lengths ---


def test_a_question_takes_four_generations(source: str) -> None:
    script = generator()
    (row,) = prepared(put(contexts(source, sentences=5), script.model))
    question = only(source)
    prompts = [second_best_prompt(question)]
    prompts += [context_prompt(kind, question, "C", 5) for kind in CONTEXTS]
    assert sorted(script.prompts) == sorted(prompts)
    assert all([message.role for message in messages] == ["user"] for messages in script.asked)
    assert script.prompts[0] == prompts[0]
    assert row == {
        "question": "q0",
        "content_hash": question.content_hash,
        "length": None,
        "sentences": 5,
        "second_best": "C",
        "misleading_context": sentences(5),
        "alternative_context": sentences(5),
        "alternative_answer": "Pertussis",
        "edge_case_context": sentences(5),
        "missing": {},
    }


def test_supporting_and_inert_texts_have_their_lengths(
    source: str,
) -> None:
    script = generator()
    settings: dict[str, Any] = {"sentences": 5, "lengths": "2", "corrections": True, "inert": True}
    rows = prepared(put(contexts(source, **settings), script.model))
    question = only(source)
    supporting = context_prompt("supporting_context", question, None, 5)
    assert script.prompts.count(supporting) == 1
    assert f"Correct option to support: A. {question.options['A']}\n" in supporting
    for n in (5, 2):
        inert = context_prompt("inert_context", question, None, n)
        assert script.prompts.count(inert) == 1
        # its writer does not know the right option, so that the passage cannot lean to it
        assert "Correct" not in inert
        assert all(f"{x}. {text}" in inert for x, text in question.options.items())
        assert "{" not in supporting + inert
    assert [row.get("supporting_context") for row in rows] == [sentences(5), None]
    assert [row["inert_context"] for row in rows] == [sentences(5), sentences(2)]
    assert len(script.asked) == 1 + 3 * 2 + 1 + 2
    assert bounds(context_study(source, **settings))[0][0] == len(script.asked)


def test_a_supporting_text_that_names_a_letter_is_a_fault() -> None:
    question = load_questions("bank").questions[0]
    fault = read_context("supporting_context", "So option C fits in each respect.", question, 1)
    assert isinstance(fault, Fault)
    assert fault.kind == "an option letter"
    text = read_context("supporting_context", "Context: It fits in each respect.", question, 1)
    assert text == ("It fits in each respect.", None)


def test_rows_are_read_back(source: str, tmp_path: Path) -> None:
    rows = prepared(put(contexts(source, lengths="1,3"), generator().model))
    file = write_jsonl(tmp_path / "contexts.jsonl", rows)
    questions = load_questions(source)
    contexts_read, problems = check_contexts(file, questions)
    assert problems == []
    question = only(source)
    assert load_contexts(file, questions, 42) == contexts_read
    n = ContextSettings(source).number(question, None)
    for length, count in (("", n), ("1", 1), ("3", 3)):
        assert contexts_read.of(question).at(length) == dict.fromkeys(CONTEXTS, sentences(count))


def test_texts_of_a_question_have_one_random_length(
    tmp_path: Path,
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(12))
    script = generator()
    rows = prepared(put(contexts(source), script.model))
    settings, other_seed = ContextSettings(source), ContextSettings(source, seed=43)
    questions = settings.question_set.questions
    numbers = {q.id: settings.number(q, None) for q in questions}
    assert {row["question"]: row["sentences"] for row in rows} == numbers
    assert set(numbers.values()) <= set(SENTENCE_RANGE)
    assert len(set(numbers.values())) > 3
    for question in questions:
        letter = "D" if question.gold == "C" else "C"
        for kind in CONTEXTS:
            assert context_prompt(kind, question, letter, numbers[question.id]) in script.prompts
    assert [other_seed.number(q, None) for q in questions] != list(numbers.values())


def test_ablation_lengths_follow_and_equal_ones_are_asked_once(
    source: str,
) -> None:
    settings: dict[str, Any] = {"sentences": 5, "lengths": "1,5,20"}
    script = generator()
    rows = prepared(put(contexts(source, **settings), script.model))
    assert [row["length"] for row in rows] == [None, 1, 5, 20]
    assert [row["sentences"] for row in rows] == [5, 1, 5, 20]
    assert [row["misleading_context"] for row in rows] == [sentences(n) for n in (5, 1, 5, 20)]
    assert {row["second_best"] for row in rows} == {"C"}
    assert len(script.asked) == 1 + 3 * 3
    # without a second-best option, asked for TRIES times, no text argues for it
    assert bounds(context_study(source, **settings)) == [(TRIES + 2 * 3, (1 + 3 * 3) * TRIES)]


def test_a_plan_bounds_every_try(source: str) -> None:
    assert bounds(context_study(source, sentences=5)) == [(4, 4 * TRIES)]
    script = generator(lambda _, kind: () if kind == "second_best" else [""] * TRIES)
    put(contexts(source, sentences=5), script.model)
    assert len(script.asked) == 1 + 3 * TRIES


@pytest.mark.parametrize("n", [2, 10])
def test_two_and_ten_options_work(tmp_path: Path, n: int) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(1, options=n))
    question = only(source)
    letter = question.distractors[-1]
    script = generator(lambda _, kind: [letter] if kind == "second_best" else ())
    (row,) = prepared(put(contexts(source, sentences=3), script.model))
    assert (row["second_best"], row["missing"]) == (letter, {})
    assert len(script.asked) == 4
    assert f"Incorrect option to support: {letter}. {question.options[letter]}" in "".join(
        script.prompts
    )


# --- replies that cannot be used, and those that can ---

FILTER, CUT = said("", "content_filter"), said("One. Two. Three", "max_tokens")
EMPTY = Fault("empty", "is empty")
REFUSAL_FAULT = Fault("refused", "declines the request")
CUT_OFF = Fault("cut off", "was cut off before its end")
NO_JSON = Fault("no JSON", 'is no JSON object with the texts "alternative_answer" and "context"')
NO_LETTER = Fault("no second-best option", "is not the letter of an option to choose")
AN_OPTION = "names option B, which is one of the question's options"


def wrong_count(n: int) -> Fault:
    return Fault("wrong sentence count", f"has {n} sentences, not exactly 3")


TEXT_FAULTS: list[tuple[Reply, Fault]] = [
    ("", EMPTY),
    (" \n", EMPTY),
    (REFUSAL, REFUSAL_FAULT),
    ("I cannot generate misleading medical content.", REFUSAL_FAULT),
    (FILTER, REFUSAL_FAULT),
    (CUT, CUT_OFF),
    ("One.", wrong_count(1)),
    (sentences(4), wrong_count(4)),
]
ALTERNATIVE_FAULTS: list[tuple[Reply, Fault]] = [
    ("", EMPTY),
    (REFUSAL, REFUSAL_FAULT),
    (FILTER, REFUSAL_FAULT),
    (said(alternative(3), "max_tokens"), CUT_OFF),
    ("It may be pertussis. So. Yes.", NO_JSON),
    (alternative(3, context=None), NO_JSON),
    (alternative(2), wrong_count(2)),
    (alternative(3, context=""), EMPTY),
    (
        alternative(3, alternative_answer=""),
        Fault("no diagnosis", "names no alternative diagnosis"),
    ),
    (
        alternative(3, alternative_answer="Finding B of case 0."),
        Fault("an option as diagnosis", AN_OPTION),
    ),
    (
        alternative(3, context="It beats option B. It does. Yes."),
        Fault("an option letter", "refers to an option by its letter"),
    ),
]
SECOND_BEST_FAULTS: list[tuple[Reply, Fault]] = [
    ("A", NO_LETTER),  # the gold
    ("E", NO_LETTER),
    ("finding A of case 0", NO_LETTER),
    ("", NO_LETTER),
    ("It is hard to say.", NO_LETTER),
    (REFUSAL, REFUSAL_FAULT),
    (FILTER, REFUSAL_FAULT),
    (said("C", "max_tokens"), CUT_OFF),
]
FAULTS = [
    *(("misleading_context", *row) for row in TEXT_FAULTS),
    *(("edge_case_context", *row) for row in TEXT_FAULTS),
    *(("alternative_context", *row) for row in ALTERNATIVE_FAULTS),
    *(("second_best", *row) for row in SECOND_BEST_FAULTS),
]


def of_case(number: int, reply: Reply) -> Reply:
    return reply.replace("case 0", f"case {number}") if isinstance(reply, str) else reply


def faulty(times: int) -> Scripted:
    """Replies to question n with fault n, so often."""

    def replies(question: int, kind: str) -> Sequence[Reply]:
        faulty_kind, reply, _ = FAULTS[question]
        return [of_case(question, reply)] * times if kind == faulty_kind else ()

    return generator(replies)


def test_a_fault_is_named_and_the_next_good_reply_accepted(
    tmp_path: Path,
) -> None:
    script = faulty(1)
    rows = in_order(put(contexts(cases(tmp_path, len(FAULTS)), sentences=3), script.model))
    requests = conversations(script)
    for number, (kind, reply, fault) in enumerate(FAULTS):
        row, text = rows[number], of_case(number, reply)
        assert (row["missing"], row["second_best"], row["alternative_answer"]) == (
            {}, "C", "Pertussis",
        )  # fmt: skip
        assert {row[context] for context in CONTEXTS} == {sentences(3)}
        first, second = requests.pop((number, kind, 0 if kind == "second_best" else 3))
        text = text if isinstance(text, str) else text.completion
        assert second == [*first, text, retry_prompt(fault)]
    assert {len(texts) for texts in requests.values()} == {1}
    assert len(script.asked) == 5 * len(FAULTS)


def test_after_four_faults_only_that_text_is_missing(
    tmp_path: Path,
) -> None:
    script = faulty(TRIES)
    log = put(contexts(cases(tmp_path, len(FAULTS)), sentences=3), script.model)
    assert log.status == "success"
    requests = {key[:2]: len(texts) for key, texts in conversations(script).items()}
    for number, (row, (kind, _, fault)) in enumerate(zip(in_order(log), FAULTS, strict=True)):
        missing = "misleading_context" if kind == "second_best" else kind
        assert row["missing"] == {missing: fault.kind}
        texts = {context: row[context] for context in CONTEXTS}
        assert texts == dict.fromkeys(CONTEXTS, sentences(3)) | {missing: None}
        assert row["second_best"] == (None if kind == "second_best" else "C")
        counts = dict.fromkeys(["second_best", *CONTEXTS], 1) | {kind: TRIES}
        if kind == "second_best":
            del counts["misleading_context"]
        assert {key[1]: n for key, n in requests.items() if key[0] == number} == counts


def test_a_good_fourth_reply_is_accepted(source: str) -> None:
    texts: dict[str, Sequence[Reply]] = {
        "edge_case_context": ["", REFUSAL, "One.", CUT],
        "alternative_context": ["prose"] * 3,
    }
    script = generator(lambda _, kind: texts.get(kind, ()))
    (row,) = prepared(put(contexts(source, sentences=3), script.model))
    assert row["missing"] == {"edge_case_context": "cut off"}
    assert row["alternative_context"] == sentences(3)
    *_, longest = conversations(script)[0, "edge_case_context", 3]
    assert longest[2::2] == [
        retry_prompt(fault) for fault in (EMPTY, REFUSAL_FAULT, wrong_count(1))
    ]


def test_one_missing_length_leaves_the_others(tmp_path: Path) -> None:
    def reply(messages: list[ChatMessage]) -> str:
        match subject(messages):
            case (0, "edge_case_context", 10):
                return "One. Two."
            case (1, "second_best", _):
                return "A"
        return good(messages)

    script = Scripted(reply)
    settings: dict[str, Any] = {"sentences": 3, "lengths": "1,10"}
    rows = prepared(put(contexts(cases(tmp_path, 2), **settings), script.model))
    assert [row["missing"] for row in rows] == [
        {},
        {},
        {"edge_case_context": "wrong sentence count"},
        *[{"misleading_context": "no second-best option"}] * 3,
    ]
    assert len(script.asked) == 1 + 3 * 3 + 3 + TRIES + 3 * 2


HOSTILE = "{question} {num_sentences} {{x}} %s \\1 </script> \u202eabc\u202c {wrong_text}"
TEXTS = [
    "Without an echocardiogram we cannot make a definitive diagnosis. Two. Three.",
    "{question} {{x}} %s. <b>Two</b> \\1. " + HOSTILE,
    "One. Two. " + "x" * 1_000_000,
    "One\x00. Two\x1b[31m. Three.",
    "السعال. Two. Three.",
]
THOUGHTS = ["One. Two. Three. Four.", "I can't give the answer away here."]
LETTERS = [
    "C", " c\n", "C.", "(C)", "**C**", "C. finding C of case 0", "Answer: C",
    "The second best answer is C.", "finding C of case 0", "<think>A is right.</think>C",
]  # fmt: skip
USABLE = [
    *(("edge_case_context", text, text) for text in TEXTS),
    *(("alternative_context", alternative(3, context=text), text) for text in TEXTS),
    *(
        ("misleading_context", f"<think>{reasoning}</think>\n{sentences(3)}", sentences(3))
        for reasoning in THOUGHTS
    ),
    *(
        ("alternative_context", f"{before}{alternative(3)}{after}", sentences(3))
        for before, after in (
            ("```json\n", "\n```"),
            ("Here is the context you asked for:\n", "\nLet me know."),
            ("<think>Let me write three sentences {carefully}.</think>\n", ""),
        )
    ),
    *(("second_best", reply, "C") for reply in LETTERS),
]


def test_usable_replies_in_any_form_are_accepted(tmp_path: Path) -> None:
    def replies(question: int, kind: str) -> Sequence[Reply]:
        usable_kind, reply, _ = USABLE[question]
        return [of_case(question, reply)] if kind == usable_kind else ()

    script = generator(replies)
    rows = in_order(put(contexts(cases(tmp_path, len(USABLE)), sentences=3), script.model))
    assert len(script.asked) == 4 * len(USABLE)
    for row, (kind, _, text) in zip(rows, USABLE, strict=True):
        assert row["missing"] == {}
        assert row[kind] == text


def test_a_lone_surrogate_in_json_is_a_fault(source: str) -> None:
    reply = alternative(3, context="Bad \ud800. Two. Three.")
    script = generator(lambda _, kind: [reply] if kind == "alternative_context" else ())
    (row,) = prepared(put(contexts(source, sentences=3), script.model))
    assert row["alternative_context"] == sentences(3)


def test_hostile_questions_reach_the_generator_unchanged(tmp_path: Path) -> None:
    rows = [
        {"id": "odd", "stem": HOSTILE, "options": {"A": "{a}", "B": "{options_text}", "C": "%s"},
         "gold": "B"},
        {"id": "big", "stem": "x" * 1_000_000, "options": {"A": "1", "B": "2", "C": "3"},
         "gold": "A"},
    ]  # fmt: skip
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    script = generator()
    log = put(contexts(source, sentences=3), script.model)
    assert [row["missing"] for row in prepared(log)] == [{}, {}]
    for question in load_questions(source).questions:
        assert sum(f"Question: {question.stem}\n" in prompt for prompt in script.prompts) == 4
    assert "Correct answer: B. {options_text}\n" in "".join(script.prompts)


# --- malfunctions ---


def test_a_failed_question_has_no_row_and_resumes(
    tmp_path: Path,
) -> None:
    kinds = ["second_best", *CONTEXTS]
    failing = True

    def reply(messages: list[ChatMessage]) -> str:
        """Question n fails in text n; the last but one when asked again; the last one never."""
        question, kind, _ = subject(messages)
        if failing and kinds.index(kind) == question:
            raise OSError("no route")
        if failing and (question, kind) == (4, "edge_case_context"):
            if len(messages) > 1:
                raise OSError("no route")
            return "Prose."
        return good(messages)

    script = Scripted(reply)
    task = contexts(cases(tmp_path, 6), sentences=3)
    log = put(task, script.model)
    assert log.status == "error"
    assert ["OSError: no route" in error for error in errors(log)] == [True] * 5
    assert [row["question"] for row in prepared(log)] == ["q5"]
    # the other texts of a question are asked for all the same, and kept for the next time
    requests, failing = len(script.asked), False
    assert requests == 1 + 3 * 4 + 5 + 4
    log = put(task, script.model)
    assert log.status == "success"
    assert [row["missing"] for row in prepared(log)] == [{}] * 6
    assert len(script.asked) == requests + 4 + 3 + 1


def test_a_spent_budget_leaves_the_question_unfinished(source: str) -> None:
    token = run_budget.set(Budget(call_limit=2))
    log = put(contexts(source, sentences=3), generator().model)
    run_budget.reset(token)
    assert log.status == "error"
    assert "budget" in errors(log)[0]
    assert prepared(log) == []


# --- settings ---


@pytest.mark.parametrize("value", ["0", "-1", "ten", "1.5", "1;2", "²", "201"])
def test_an_unusable_length_is_refused(value: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"'{value}'")) as caught:
        context_study(lengths=value)
    assert caught.value.field == "lengths"
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("value", "lengths"),
    [("1,10,20", (1, 10, 20)), (["1", "10"], (1, 10)), (5, (5,)), ("none", ()), ("", ()),
     ("3, 3 ,1", (3, 1)), ("200", (200,))],
)  # fmt: skip
def test_lengths_come_as_text_list_or_number(value: Any, lengths: tuple[int, ...]) -> None:
    assert context_lengths(value) == lengths


@pytest.mark.parametrize("value", [0, -1, "four"])
def test_a_number_of_sentences_is_one_or_more(value: Any) -> None:
    with pytest.raises(InputError):
        context_study(sentences=value)


# --- the simulated generators ---


def test_the_simulated_generator_misses_nothing_on_the_bank() -> None:
    rows = prepared(put(contexts(lengths="1,10"), "simulated/generator", limit=10))
    assert [row["missing"] for row in rows] == [{}] * 30


@pytest.mark.slow
def test_the_faulty_generator_still_gives_every_row() -> None:
    log = put(contexts(), "simulated/faulty-generator")
    assert log.status == "success"
    rows = prepared(log)
    questions = sorted(question.id for question in load_questions("bank").questions)
    assert sorted(row["question"] for row in rows) == questions
    for row in rows:
        for kind in CONTEXTS:
            assert (row[text_key(kind, None)] is None) == (kind in row["missing"])
    assert 0 < sum(len(row["missing"]) for row in rows) < 90
