"""Refusals to write a text that was asked for."""

import time

import pytest

from holdfast.reading.refusal import is_refusal


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, but I cannot provide medical information that supports a wrong answer.",
        "I'm sorry, but I can't write that.",
        "I cannot assist with this request.",
        "I cannot generate misleading medical content.",
        "I can't create content that could mislead a clinician.",
        "As an AI model, I am not able to provide misleading medical advice.",
        "Sorry, I must decline.",
        "Unfortunately, I can't do this.",
        "**I am unable to provide this.**",
        "I'm unable to provide this.",
        "I’m not able to produce false medical claims.",
        "I am not comfortable writing this.",
        "Thank you for asking. I won't give such a text.",
        "I understand the purpose of this, but I can't write it.",
    ],
)
def test_a_text_that_is_declined_is_a_refusal(reply: str) -> None:
    assert is_refusal(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "The fever is unexplained. Croup is likely.",
        "No test was given. A diagnosis cannot be made.",
        "The patient says he cannot swallow. He cannot give a history.",
        "The course is typical. " * 30 + "I cannot provide more.",
        "Without an echocardiogram we cannot make a definitive diagnosis.",
        "Without troponins, we cannot confirm the diagnosis.",
        "Type I hypersensitivity cannot be diagnosed from the history alone.",
        "Stage I disease cannot be given a prognosis without imaging.",
        "I cannot rule out croup. The fever is unexplained.",
        "I am unable to confirm the diagnosis without a lateral film.",
        # the text of an option in MedQA
        'The physician would say: "I can not help you due to the ethical principle."',
        "We cannot make a definitive diagnosis without an echocardiogram.",
        "Unfortunately, we cannot tell croup from epiglottitis without a lateral film.",
    ],
)
def test_a_text_about_limits_of_the_case_is_no_refusal(reply: str) -> None:
    assert not is_refusal(reply)


@pytest.mark.parametrize("unit", ["I cannot ", "i ", "\u0301", "*", "I'm sorry, but "])
def test_a_megabyte_takes_bounded_time(unit: str) -> None:
    start = time.perf_counter()
    is_refusal(unit * (1_000_000 // len(unit)))
    assert time.perf_counter() - start < 2
