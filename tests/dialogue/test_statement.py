"""Explicit statements of an answer: what is left out of the search changes nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.dialogue.claim import View
from holdfast.dialogue.statement import _MARKED, _SPOKEN, _found, _last, stated

OPTIONS = {"A": "amoxicillin", "B": "no contact", "C": "contact", "D": "answer"}
PIECES = (
    "The answer is B", "Final Answer: (C)", "so it's A", "is correct", "contact is correct",
    "I would choose B", "answer: (D)", "\\boxed{A}", "<answer>B</answer>", '"answer": "C"',
    "B is the best option", "therefore B", "ans. B", "choosing B over A would be wrong", "not",
    "you said", "change my answer to", "no", "I change my", "to B", ".", ". ", "\n", " ", ", ",
    "**", "(", ")",
)  # fmt: skip


def view(text: str) -> View:
    return View(text, text.lower(), text, OPTIONS)


@settings(max_examples=3000, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=10), st.sampled_from((" ", "", ". ", ".")))
def test_the_last_word_is_that_of_a_search_of_the_whole_reply(
    pieces: list[str], between: str
) -> None:
    reply = view(between.join(pieces))
    whole = _last(reply, _found(reply, (*_MARKED, *_SPOKEN), 0))
    assert stated(reply) == (whole and whole[1])


def test_a_spoken_statement_in_the_sentence_of_a_marked_one_can_be_the_last_word() -> None:
    said = stated(view("Final Answer: (C). On reflection, final answer: (A), no, the answer is B"))
    assert said is not None
    assert (said.answer, said.rule) == ("B", "answer-is")


def test_a_spoken_statement_that_begins_before_a_marked_one_can_be_the_last_word() -> None:
    said = stated(view("On reflection. I change my final answer: (A) to B"))
    assert said is not None
    assert (said.answer, said.rule) == ("B", "choice")
