"""The prompts of appendix F, and the reading of a generator's reply."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from holdfast.challenges.catalogue import CONTEXTS
from holdfast.challenges.contexts import SENTENCE_RANGE, drawn_sentences
from holdfast.challenges.texts import Fault, sentence_count
from holdfast.protocols.followup.context_generation import (
    context_prompt,
    read_context,
    second_best_prompt,
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


def single_spaced(text: str) -> str:
    return " ".join(text.split())


# --- appendix F, word for word ---


def read_templates(resources: Path) -> dict[str, str]:
    """The four templates as the paper prints them, by name."""
    paper = next(resources.glob("papers/001_*.txt"), None)
    if paper is None:
        pytest.skip("the source document is not there (../shared/papers)")
    appendix = paper.read_text("utf-8").split("## F Context Generation Templates")[1]
    appendix = appendix.replace("\\_", "_").replace("```", "")
    templates = [part.split("\n###")[0] for part in appendix.split("**Template:**")[1:]]
    names = ("second_best", "misleading_context", "edge_case_context", "alternative_context")
    return {name: single_spaced(text) for name, text in zip(names, templates, strict=True)}


def test_the_prompts_are_those_of_appendix_f_word_for_word(resources: Path) -> None:
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
    templates = read_templates(resources)
    assert set(prompts) == set(templates)
    for name, template in templates.items():
        options = wrong if name == "second_best" else option_list
        filled_template = template.replace("{options_text}", options)
        for placeholder, value in values.items():
            filled_template = filled_template.replace(f"{{{placeholder}}}", value)
        assert single_spaced(prompts[name]) == filled_template
    # the templates are read to their ends
    assert templates["second_best"].endswith("Answer:")
    assert templates["misleading_context"].endswith("association information: Context:")
    assert templates["edge_case_context"].endswith("insufficiency reasoning: Context:")
    assert templates["alternative_context"].endswith("reasoning that favors the alternative.")


# --- prompts ---


def test_a_prompt_shows_only_its_subject() -> None:
    second_best = second_best_prompt(QUESTION)
    assert "The correct answer is B, which you should NOT select." in second_best
    assert "A. Asthma\nC. The croup (viral)\nD. Ménière disease\n" in second_best
    misleading = context_prompt("misleading_context", QUESTION, "C", 4)
    assert "Incorrect option to support: C. The croup (viral)" in misleading
    assert "Bronchitis" not in second_best + misleading
    edge = context_prompt("edge_case_context", QUESTION, None, 4)
    assert "Correct answer: B. Bronchitis" in edge
    assert "Asthma" not in edge
    alternative = context_prompt("alternative_context", QUESTION, None, 4)
    for letter, option in QUESTION.options.items():
        assert f"\n{letter}. {option}\n" in alternative
    for prompt in (misleading, edge, alternative):
        assert prompt.count("Is exactly 4 sentences long") == 1


@pytest.mark.parametrize("n", [2, 10, 26])
def test_every_option_is_in_its_prompts(n: int) -> None:
    options = {letter: f"finding {letter}{letter}" for letter in LETTERS[:n]}
    question = Question(id="q", stem="Which?", options=options, gold="A")
    assert second_best_prompt(question).count("finding") == n - 1
    alternative = context_prompt("alternative_context", question, None, 1)
    assert (alternative.count("finding"), "1. Names" in alternative) == (n, True)


def test_a_retry_prompt_states_the_fault() -> None:
    prompt = retry_prompt(Fault("kind", "has {n} sentences, not {fault}"))
    assert prompt.startswith("That has {n} sentences, not {fault}. ")
    assert "kind" not in prompt


# --- numbers of sentences ---


def test_lengths_are_uniform_from_4_to_10_and_reproducible() -> None:
    assert list(SENTENCE_RANGE) == [4, 5, 6, 7, 8, 9, 10]
    values = QUESTION.model_dump()
    questions = [Question.model_validate(values | {"stem": f"{n}?"}) for n in range(1400)]
    counts = Counter(drawn_sentences(question, 42) for question in questions)
    assert set(counts) == set(SENTENCE_RANGE)
    assert chisquare(list(counts.values())).pvalue > 0.001
    copy = Question.model_validate(values | {"id": "other", "step": "step1"})
    numbers = [drawn_sentences(QUESTION, seed) for seed in range(40)]
    assert [drawn_sentences(copy, seed) for seed in range(40)] == numbers
    assert set(numbers) == set(SENTENCE_RANGE)


@pytest.mark.parametrize(
    ("n", "texts"),
    [
        (0, ["", " \n ", "..."]),
        (1, ["No full stop at its end"]),
        (2, ["The hemoglobin is 7.2 g/dL. The patient is pale.",
             "Growth of E. coli is seen. It is common.",
             "Dr. Jones disagrees. The patient does not.",
             "Some drugs, e.g. warfarin, interact. Others do not.",
             "He took 5 mg vs. 10 mg before. It helped.",
             "Arm 1 vs. Arm 2 showed no difference. It was small.",
             "Vitamin K. It helps.",
             "The lesion measures 2 mm. Inadequate imaging remains.",
             "Fluids were given i.v. at noon. He recovered.",
             "- One.\n- Two.", "1. One thing.\n2. Another thing.",
             "Spaced\u00a0by\u2003other\u3000blanks. Still two.",
             "Σημεία. Ещё одно."]),
        (3, ["One. Two. Three.", "Is it so? It is! Good.",
             "One line.\nAnother line.\n\nA third."]),
    ],
)  # fmt: skip
def test_sentences_are_counted_as_by_a_reader(n: int, texts: list[str]) -> None:
    assert {text: sentence_count(text) for text in texts} == dict.fromkeys(texts, n)


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


def test_sentences_of_a_long_text_are_all_counted() -> None:
    text = "This is a sentence of some length. " * 20_000
    assert fault("misleading_context", text, 571).kind == "wrong sentence count"


# --- reading a context ---


def fault(kind: str, reply: str, sentences: int = 2, question: Question = QUESTION) -> Fault:
    outcome = read_context(kind, reply, question, sentences)
    assert isinstance(outcome, Fault)
    return outcome


def alternative(**changes: str) -> str:
    return json.dumps(ALTERNATIVE | changes)


@pytest.mark.parametrize("kind", ["misleading_context", "edge_case_context"])
def test_blanks_and_heading_are_stripped_from_a_context(kind: str) -> None:
    for heading in ("", "  ", "Context: ", "Context:\n\n", "**Context:** ", "**Context**: ",
                    "CONTEXT: "):  # fmt: skip
        reply = f"{heading}One. Two.\n"
        assert read_context(kind, reply, QUESTION, 2) == ("One. Two.", None)
    # a first word that is no heading is part of the text
    for text in ("Contextual factors matter. So it is.", "Context matters. Yes."):
        assert read_context(kind, text, QUESTION, 2) == (text, None)
    for reply in ("", " \n\t ", "Context:", "**Context:**\n"):
        assert fault(kind, reply).kind == "empty"


@pytest.mark.parametrize("kind", CONTEXTS)
def test_the_fault_names_the_number_of_sentences_and_the_requested_one(kind: str) -> None:
    text = "One. Two. Three."
    reply = alternative(context=text) if kind == "alternative_context" else text
    failure = fault(kind, reply, 7)
    assert failure.kind == "wrong sentence count"
    assert "has 3 sentences" in failure.detail
    assert "7" in failure.detail


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "```json\n{}\n```",
        "```\n{}\n```\n",
        "Here it is: {} I hope {this} helps.",
        "{question} {{x}} {}",
        'As asked, {"alternative_answer": "...", "context": "..."}: {}',
        '{} {"note": "Hope this helps."}',
    ],
)
@pytest.mark.parametrize("line_break", [("", ""), (", ", ",\n  "), ("One. ", "One.\n")])
def test_an_alternative_is_read_from_json_in_any_surroundings(
    form: str, line_break: tuple[str, str]
) -> None:
    reply = form.replace("{}", alternative().replace(*line_break))
    context = read_context("alternative_context", reply, QUESTION, 2)
    assert not isinstance(context, Fault)
    assert (single_spaced(context[0]), context[1]) == ("One. Two.", "Pertussis")


@pytest.mark.parametrize(
    "reply",
    [
        "It could well be pertussis. The history is short.", "{", "[]", "{}",
        '["alternative_answer", "context"]', "null", '{"alternative_answer": "Pertussis"}',
        '{"context": "One. Two."}', '{"alternative_answer": 3, "context": "One. Two."}',
        '{"alternative_answer": "Pertussis", "context": null}',
        '{"alternative_answer": ["Pertussis"], "context": ["One.", "Two."]}',
        "{'alternative_answer': 'Pertussis', 'context': 'One. Two.'}",
        '{"alternative_answer": "Pertussis", "context": "One. Two.',
        "{" * 5000, '{"a":' * 5000,
    ],
)  # fmt: skip
def test_a_reply_without_the_requested_json_is_a_fault(reply: str) -> None:
    failure = fault("alternative_context", reply)
    assert failure.kind == "no JSON"
    assert "alternative_answer" in failure.detail
    assert "context" in failure.detail


OPTION_NAMES = {
    "A": ["Asthma", "asthma", " ASTHMA. ", "A. Asthma", "an asthma"],
    "B": ["Bronchitis (acute)", "B. Bronchitis", "Option B: bronchitis"],
    "C": ["the croup", "THE CROUP (acute)", "Croup", "croup (viral)"],
    "D": ["Ménière disease", "Me\u0301nie\u0300re disease", "MÉNIÈRE DISEASE",
          "Meniere's disease", "Meniere disease"],
}  # fmt: skip


def test_an_option_in_any_notation_is_no_alternative() -> None:
    for letter, names in OPTION_NAMES.items():
        for name in names:
            failure = fault("alternative_context", alternative(alternative_answer=name))
            assert failure.kind == "an option as diagnosis"
            assert f"option {letter}" in failure.detail
    for name in ("A", "(C)", "d", "Option B", "E"):
        failure = fault("alternative_context", alternative(alternative_answer=name))
        assert failure.kind == "an option as diagnosis"
    for name in ("Croupous pneumonia", "Asthma-COPD overlap", "Q fever"):
        reply = alternative(alternative_answer=name)
        assert read_context("alternative_context", reply, QUESTION, 2) == ("One. Two.", name)


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("empty", ""),
        ("empty", "  \n"),
        ("empty", alternative(context=" ")),
        ("no diagnosis", alternative(alternative_answer=" ")),
        ("invalid text", alternative(alternative_answer="Bad \ud800.")),
        ("invalid text", alternative(context="Bad \ud800. Text.")),
        *(
            ("an option letter", alternative(context=text))
            for text in (
                "It fits better than option A. Yes.", "It fits better than choice (C). Yes.",
                "It is not answer B here. Yes.", "Option C is less likely. Yes.",
                "Neither options A and C fit. No.", "Choice D is out. Yes.",
                "It beats option **C**. Yes.", 'It beats option "C". Yes.',
            )
        ),
    ],
)  # fmt: skip
def test_an_alternative_has_its_kind_of_fault(kind: str, reply: str) -> None:
    assert fault("alternative_context", reply).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        # letters that stand for no option
        "Vitamin C was low. So was vitamin D.",
        "Hepatitis B is one option. A test is another.",
        "The answer is open. A second look helps.",
        "Option E is a letter of no option here. Fine.",
        # odd texts
        "{question} {{x}} %s \\1 <b>two</b>. Two.",
        "السعال \u202eabc\u202c. Two.",
        "NUL \x00. Two.",
    ],
)
def test_sound_texts_are_read_unchanged(text: str) -> None:
    for kind in CONTEXTS:
        reply = alternative(context=text) if kind == "alternative_context" else text
        context = read_context(kind, reply, QUESTION, 2)
        assert context == (text, "Pertussis" if kind == "alternative_context" else None)


def test_letters_are_options_only_of_their_question() -> None:
    options = {letter: f"finding {letter}{letter}" for letter in LETTERS[:10]}
    ten = Question(id="q", stem="Which?", options=options, gold="A")
    reply = alternative(context="It fits better than option J. Yes.")
    assert fault("alternative_context", reply, question=ten).kind == "an option letter"
    assert not isinstance(read_context("alternative_context", reply, QUESTION, 2), Fault)
