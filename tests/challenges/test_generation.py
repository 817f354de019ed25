"""The prompts of appendix F, and what a generator's reply must hold."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from holdfast.challenges.catalogue import CONTEXTS
from holdfast.challenges.contexts import SENTENCE_RANGE, drawn_sentences
from holdfast.challenges.texts import Fault, json_object, sentence_count
from holdfast.protocols.followup.context_generation import (
    context_prompt,
    read_context,
    second_best_prompt,
    template_version,
)
from holdfast.protocols.generating import retry_prompt
from holdfast.questions.question import LETTERS, Question

QUESTION = Question(
    id="q1",
    stem="A man coughs. Why?",
    options={"A": "Asthma", "B": "Bronchitis", "C": "The croup (viral)", "D": "Ménière disease"},
    gold="B",
)
ALTERNATIVE = {"alternative_answer": "Pertussis", "context": "One. Two."}


ARTICLE = ()


def single_spaced(text: str) -> str:
    return " ".join(text.split())


# --- appendix F, word for word ---


def read_templates(shared: Path) -> dict[str, str]:
    """The four templates as the paper prints them, by name."""
    paper = next(shared.glob("papers/001_*.txt"), None)
    if paper is None:
        pytest.skip("the source document is not there (../shared/papers)")
    appendix = paper.read_text("utf-8").split("## F Context Generation Templates")[1]
    appendix = appendix.replace("\\_", "_").replace("```", "")
    templates = [part.split("\n###")[0] for part in appendix.split("**Template:**")[1:]]
    names = ("second_best", "misleading_context", "edge_case_context", "alternative_context")
    return {name: single_spaced(text) for name, text in zip(names, templates, strict=True)}


def test_the_prompts_are_those_of_appendix_f_word_for_word(shared: Path) -> None:
    wrong = "A. Asthma C. The croup (viral) D. Ménière disease"
    option_list = "A. Asthma B. Bronchitis C. The croup (viral) D. Ménière disease"
    values = {
        "question": QUESTION.stem,
        "correct_letter": "B",
        "correct_answer": "B",
        "correct_text": "Bronchitis",
        "wrong_answer": "C",
        "wrong_text": "The croup (viral)",
        "num_sentences": "7",
    }
    prompts = {"second_best": second_best_prompt(QUESTION)}
    prompts |= {kind: context_prompt(kind, QUESTION, "C", 7) for kind in CONTEXTS}
    templates = read_templates(shared)
    assert set(prompts) == set(templates)
    for name, template in templates.items():
        options = wrong if name == "second_best" else option_list
        filled_template = template.replace("{options_text}", options)
        for placeholder, value in values.items():
            filled_template = filled_template.replace(f"{{{placeholder}}}", value)
        assert single_spaced(prompts[name]) == filled_template


def test_the_papers_templates_are_read_whole(shared: Path) -> None:
    templates = read_templates(shared)
    assert templates["second_best"].endswith("Answer:")
    assert templates["misleading_context"].endswith("association information: Context:")
    assert templates["edge_case_context"].endswith("insufficiency reasoning: Context:")
    assert templates["alternative_context"].endswith("reasoning that favors the alternative.")


def test_the_second_best_is_chosen_among_the_wrong_options_under_their_own_letters() -> None:
    prompt = second_best_prompt(QUESTION)
    assert "The correct answer is B, which you should NOT select." in prompt
    assert "A. Asthma\nC. The croup (viral)\nD. Ménière disease\n" in prompt
    assert "Bronchitis" not in prompt


def test_each_kind_of_context_sees_only_what_it_is_about() -> None:
    misleading = context_prompt("misleading_context", QUESTION, "C", 4)
    assert "Incorrect option to support: C. The croup (viral)" in misleading
    assert "Bronchitis" not in misleading
    edge = context_prompt("edge_case_context", QUESTION, None, 4)
    assert "Correct answer: B. Bronchitis" in edge
    assert "Asthma" not in edge
    alternative = context_prompt("alternative_context", QUESTION, None, 4)
    for letter, option in QUESTION.options.items():
        assert f"\n{letter}. {option}\n" in alternative
    for prompt in (misleading, edge, alternative):
        assert prompt.count("Is exactly 4 sentences long") == 1


HOSTILE = "{options_text} {question} {num_sentences} {{x}} %s {0} \\1 \\g<0> </script> {wrong_text}"


@pytest.mark.parametrize("kind", ["second_best", *CONTEXTS])
def test_braces_in_a_question_are_text(kind: str) -> None:
    options = {"A": f"{HOSTILE} a", "B": f"{HOSTILE} b", "C": "three"}
    question = Question(id="q", stem=HOSTILE, options=options, gold="C")
    prompt = (
        second_best_prompt(question)
        if kind == "second_best"
        else context_prompt(kind, question, "A", 5)
    )
    assert f"Question: {HOSTILE}\n" in prompt
    counts = {"second_best": 3, "misleading_context": 2, "edge_case_context": 1}
    assert prompt.count(HOSTILE) == counts.get(kind, 3)
    assert "three" in prompt or kind in ("second_best", "misleading_context")


@pytest.mark.parametrize("n", [2, 10, 26])
def test_any_number_of_options_is_asked_about(n: int) -> None:
    options = {letter: f"finding {letter}{letter}" for letter in LETTERS[:n]}
    question = Question(id="q", stem="Which?", options=options, gold="A")
    prompt = second_best_prompt(question)
    assert prompt.count("finding") == n - 1
    assert context_prompt("alternative_context", question, None, 1).count("finding") == n
    assert "1. Names" in context_prompt("alternative_context", question, None, 1)


def test_the_prompts_have_a_version() -> None:
    assert template_version() >= 1


# --- how many sentences ---


def test_numbers_of_sentences_are_drawn_evenly_from_4_to_10() -> None:
    assert list(SENTENCE_RANGE) == [4, 5, 6, 7, 8, 9, 10]
    questions = [QUESTION.model_copy(update={"stem": f"{n}?"}) for n in range(2800)]
    questions = [Question.model_validate(q.model_dump()) for q in questions]
    counts = Counter(drawn_sentences(question, 42) for question in questions)
    assert set(counts) == set(SENTENCE_RANGE)
    assert chisquare(list(counts.values())).pvalue > 0.001


def test_the_number_drawn_is_fixed_by_content_and_seed_and_not_by_the_id() -> None:
    second_question = Question.model_validate(
        {**QUESTION.model_dump(), "id": "other", "step": "step1"}
    )
    seeds = range(40)
    numbers = [drawn_sentences(QUESTION, seed) for seed in seeds]
    assert [drawn_sentences(second_question, seed) for seed in seeds] == numbers
    assert set(numbers) == set(SENTENCE_RANGE)


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("", 0),
        (" \n ", 0),
        ("...", 0),
        ("No full stop at its end", 1),
        ("One. Two. Three.", 3),
        ("Is it so? It is! Good.", 3),
        ("The hemoglobin is 7.2 g/dL. The patient is pale.", 2),
        ("Growth of E. coli is seen. It is common.", 2),
        ("Dr. Jones disagrees. The patient does not.", 2),
        ("Some drugs, e.g. warfarin, interact. Others do not.", 2),
        ("He took 5 mg vs. 10 mg before. It helped.", 2),
        ("Vitamin K. It helps.", 2),
        ("The lesion measures 2 mm. Inadequate imaging remains.", 2),
        ("Fluids were given i.v. at noon. He recovered.", 2),
        ("One line.\nAnother line.\n\nA third.", 3),
        ("- One.\n- Two.", 2),
        ("1. One thing.\n2. Another thing.", 2),
        ("Spaced\u00a0by\u2003other\u3000blanks. Still two.", 2),
        ("Σημεία. Ещё одно.", 2),
    ],
)
def test_sentences_are_counted_as_a_reader_would(text: str, n: int) -> None:
    assert sentence_count(text) == n


def test_an_abbreviation_after_a_number_ends_no_sentence() -> None:
    assert sentence_count("Arm 1 vs. Arm 2 showed no difference. It was small.") == 2


@given(
    st.lists(
        st.lists(st.sampled_from(["pain", "the", "fever", "worsens"]), min_size=2, max_size=9),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([" ", "\n", "  ", "\n\n"]),
)
def test_plain_sentences_are_counted_exactly(sentences: list[list[str]], between: str) -> None:
    text = between.join(" ".join(words).capitalize() + "." for words in sentences)
    assert sentence_count(text) == len(sentences)


@pytest.mark.parametrize(
    "unit", [".", "a. ", "(", '"', "{", '{"a":', "\n", "\u00a0a.", "A.", "“[(", "1 mm. "]
)
def test_a_hostile_megabyte_is_read_in_no_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    start = time.perf_counter()
    for kind in CONTEXTS:
        read_context(kind, text, QUESTION, 5)
    assert time.perf_counter() - start < 5


def test_sentences_past_any_number_of_characters_count_too() -> None:
    text = "This is a sentence of some length. " * 20_000
    assert isinstance(read_context("misleading_context", text, QUESTION, 571), Fault)
    assert isinstance(read_context("misleading_context", text, QUESTION, 572), Fault)


# --- reading a context ---


def fault(kind: str, reply: str, sentences: int = 2, question: Question = QUESTION) -> Fault:
    outcome = read_context(kind, reply, question, sentences)
    assert isinstance(outcome, Fault)
    return outcome


@pytest.mark.parametrize("kind", ["misleading_context", "edge_case_context"])
@pytest.mark.parametrize(
    "reply",
    ["One. Two.", "  One. Two.\n", "Context: One. Two.", "Context:\n\nOne. Two.",
     "**Context:** One. Two.", "**Context**: One. Two.", "CONTEXT: One. Two."],
)  # fmt: skip
def test_a_context_is_the_reply_without_blanks_and_heading(kind: str, reply: str) -> None:
    assert read_context(kind, reply, QUESTION, 2) == ("One. Two.", None)


@pytest.mark.parametrize("text", ["Contextual factors matter. So it is.", "Context matters. Yes."])
def test_a_first_word_that_is_no_heading_stays(text: str) -> None:
    assert read_context("edge_case_context", text, QUESTION, 2) == (text, None)


@pytest.mark.parametrize("kind", ["misleading_context", "edge_case_context"])
@pytest.mark.parametrize("reply", ["", " \n\t ", "Context:", "**Context:**\n"])
def test_a_reply_that_says_nothing_is_empty(kind: str, reply: str) -> None:
    assert fault(kind, reply).kind == "empty"


@pytest.mark.parametrize("kind", CONTEXTS)
def test_the_fault_tells_how_many_sentences_there_are_and_should_be(kind: str) -> None:
    alternative = json.dumps({"alternative_answer": "Pertussis", "context": "One. Two. Three."})
    reply = alternative if kind == "alternative_context" else "One. Two. Three."
    failure = fault(kind, reply, 7)
    assert failure.kind == "wrong sentence count"
    assert "has 3 sentences" in failure.detail
    assert "7" in failure.detail


def wrap(before: str, after: str) -> Callable[[str], str]:
    return lambda text: f"{before}{text}{after}"


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(wrap("", ""), id="bare"),
        pytest.param(wrap("```json\n", "\n```"), id="fenced"),
        pytest.param(wrap("```\n", "\n```\n"), id="fenced-without-language"),
        pytest.param(wrap("Here it is: ", " I hope {this} helps."), id="text-around"),
        pytest.param(wrap("{question} {} {{x}} ", ""), id="other-braces-before"),
        pytest.param(lambda text: text.replace(", ", ",\n  "), id="over-lines"),
        pytest.param(lambda text: text.replace("One. ", "One.\n"), id="line-break-in-a-text"),
        pytest.param(
            wrap('As asked, {"alternative_answer": "...", "context": "..."}: ', ""), id="last"
        ),
        pytest.param(wrap("", ' {"note": "Hope this helps."}'), id="other-object-behind"),
    ],
)
def test_an_alternative_is_read_whatever_stands_around_its_json(form: Any) -> None:
    context = read_context("alternative_context", form(json.dumps(ALTERNATIVE)), QUESTION, 2)
    assert not isinstance(context, Fault)
    assert (single_spaced(context[0]), context[1]) == ("One. Two.", "Pertussis")


@pytest.mark.parametrize(
    "reply",
    [
        "It could well be pertussis. The history is short.",
        "{",
        "[]",
        "{}",
        '["alternative_answer", "context"]',
        "null",
        '{"alternative_answer": "Pertussis"}',
        '{"context": "One. Two."}',
        '{"alternative_answer": 3, "context": "One. Two."}',
        '{"alternative_answer": "Pertussis", "context": null}',
        '{"alternative_answer": ["Pertussis"], "context": ["One.", "Two."]}',
        "{'alternative_answer': 'Pertussis', 'context': 'One. Two.'}",
        '{"alternative_answer": "Pertussis", "context": "One. Two.',
        "{" * 5000,
        '{"a":' * 5000,
    ],
)
def test_what_is_not_the_json_asked_for_is_told_so(reply: str) -> None:
    failure = fault("alternative_context", reply)
    assert failure.kind == "no JSON"
    assert "alternative_answer" in failure.detail
    assert "context" in failure.detail


@pytest.mark.parametrize("empty", ["", "  \n"])
def test_an_empty_reply_is_empty_and_not_no_json(empty: str) -> None:
    assert fault("alternative_context", empty).kind == "empty"


def alternative(**changes: str) -> str:
    return json.dumps(ALTERNATIVE | changes)


def test_an_alternative_without_a_diagnosis_or_a_text_is_told_so() -> None:
    assert fault("alternative_context", alternative(alternative_answer=" ")).kind == "no diagnosis"
    assert fault("alternative_context", alternative(context=" ")).kind == "empty"


@pytest.mark.parametrize(
    ("diagnosis", "letter"),
    [
        ("Asthma", "A"),
        ("asthma", "A"),
        (" ASTHMA. ", "A"),
        ("Bronchitis (acute)", "B"),
        ("the croup", "C"),
        ("THE CROUP (acute)", "C"),
        ("Ménière disease", "D"),
        ("Me\u0301nie\u0300re disease", "D"),
        ("MÉNIÈRE DISEASE", "D"),
        ("Meniere's disease", "D"),
        ("Meniere disease", "D"),
        ("A. Asthma", "A"),
        *[
            pytest.param(name, letter, marks=ARTICLE)
            for name, letter in (("an asthma", "A"), ("Croup", "C"), ("croup (viral)", "C"))
        ],
    ],
)
def test_an_option_is_no_alternative_however_it_is_written(diagnosis: str, letter: str) -> None:
    failure = fault("alternative_context", alternative(alternative_answer=diagnosis))
    assert failure.kind == "an option as diagnosis"
    assert f"option {letter}" in failure.detail


@pytest.mark.parametrize("letter", ["A", "(C)", "d", "Option B", "E"])
def test_a_letter_is_no_diagnosis(letter: str) -> None:
    failure = fault("alternative_context", alternative(alternative_answer=letter))
    assert failure.kind == "an option as diagnosis"


@pytest.mark.parametrize("diagnosis", ["Croupous pneumonia", "Asthma-COPD overlap", "Q fever"])
def test_what_only_resembles_an_option_is_an_alternative(diagnosis: str) -> None:
    reply = alternative(alternative_answer=diagnosis)
    assert read_context("alternative_context", reply, QUESTION, 2) == ("One. Two.", diagnosis)


@pytest.mark.parametrize(
    "text",
    [
        "It fits better than option A. Yes.",
        "It fits better than choice (C). Yes.",
        "It is not answer B here. Yes.",
        "Option C is less likely. Yes.",
        "Neither options A and C fit. No.",
        "Choice D is out. Yes.",
        *[
            pytest.param(
                text,
                marks=(),
            )
            for text in (
                "It beats option **C**. Yes.",
                'It beats option "C". Yes.',
            )
        ],
    ],
)
def test_an_alternative_that_names_a_letter_is_refused(text: str) -> None:
    assert fault("alternative_context", alternative(context=text)).kind == "an option letter"


@pytest.mark.parametrize(
    "text",
    [
        "Vitamin C was low. So was vitamin D.",
        "Hepatitis B is one option. A test is another.",
        "The answer is open. A second look helps.",
        "Option E is a letter of no option here. Fine.",
    ],
)
def test_a_letter_that_stands_for_no_option_is_no_fault(text: str) -> None:
    reply = alternative(context=text)
    assert read_context("alternative_context", reply, QUESTION, 2) == (text, "Pertussis")


def test_letters_up_to_the_tenth_are_known() -> None:
    options = {letter: f"finding {letter}{letter}" for letter in LETTERS[:10]}
    ten = Question(id="q", stem="Which?", options=options, gold="A")
    reply = alternative(context="It fits better than option J. Yes.")
    assert fault("alternative_context", reply, question=ten).kind == "an option letter"
    assert not isinstance(read_context("alternative_context", reply, QUESTION, 2), Fault)


@pytest.mark.parametrize("kind", CONTEXTS)
@pytest.mark.parametrize(
    "text",
    ["{question} {{x}} %s \\1 <b>two</b>. Two.", "السعال \u202eabc\u202c. Two.", "NUL \x00. Two."],
)
def test_odd_texts_come_through_as_they_are(kind: str, text: str) -> None:
    reply = alternative(context=text) if kind == "alternative_context" else text
    context = read_context(kind, reply, QUESTION, 2)
    assert not isinstance(context, Fault)
    assert context[0] == text


@pytest.mark.parametrize("column", ["context", "alternative_answer"])
def test_a_lone_surrogate_out_of_json_is_a_fault(column: str) -> None:
    reply = alternative(**{column: "Bad \ud800. Text."})
    assert "\\ud800" in reply
    assert isinstance(read_context("alternative_context", reply, QUESTION, 2), Fault)


# --- asking again ---


def test_what_was_wrong_is_told_and_the_rest_left_to_the_first_request() -> None:
    prompt = retry_prompt(Fault("kind", "has {n} sentences, not {fault}"))
    assert prompt.startswith("That has {n} sentences, not {fault}. ")
    assert "again" in prompt
    assert "kind" not in prompt


@pytest.mark.parametrize(
    ("reply", "content"),
    [
        ('x {"a": 1} {"b": 2}', {"b": 2}),
        ("{} []", {}),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('{bad} {"a": "\n\t"}', {"a": "\n\t"}),
        ("nothing", {}),
    ],
)
def test_the_last_json_object_that_holds_something(reply: str, content: dict[str, Any]) -> None:
    assert json_object(reply) == content


def test_the_last_json_object_with_the_keys_asked_for() -> None:
    reply = '{"a": 1, "b": 2} {"a": 3, "b": 4} {"a": 5} {}'
    assert json_object(reply, "a", "b") == {"a": 3, "b": 4}
    assert json_object(reply, "a") == {"a": 5}
    assert json_object(reply, "c") == {}


def test_braces_of_prose_do_not_hide_an_object_behind_them() -> None:
    assert json_object(r"\frac{1}{2} " * 1000 + '{"a": 1}') == {"a": 1}


def test_no_prompt_leaves_a_placeholder_open() -> None:
    prompts = [second_best_prompt(QUESTION)]
    prompts += [context_prompt(kind, QUESTION, "A", 3) for kind in CONTEXTS]
    for prompt in prompts:
        assert not re.search(r"\{\w+\}", prompt)
