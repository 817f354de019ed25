"""Beliefs at the token that decides, in replies put together from tokens."""

import math

import pytest
from inspect_ai.model import Logprob, Logprobs, ModelOutput, TopLogprob

from holdfast.dialogue.beliefs import beliefs_in

OPTIONS = {"A": "Pulmonary embolism", "B": "Acute pericarditis", "C": "Aortic dissection"}
ANSWER_LETTER, OFFER = "A", "C"


def said(*tokens: str | dict[str, float]) -> ModelOutput:
    """A reply: of a token that is a table of alternatives the first was said."""
    content = []
    for token in tokens:
        probabilities = {token: 1.0} if isinstance(token, str) else token
        tops = [TopLogprob(token=item, logprob=math.log(p)) for item, p in probabilities.items()]
        first = tops[0]
        content.append(Logprob(token=first.token, logprob=first.logprob, top_logprobs=tops))
    output = ModelOutput.from_content("model", "".join(item.token for item in content))
    output.choices[0].logprobs = Logprobs(content=content)
    return output


def decided(*tokens: str | dict[str, float]) -> dict[str, float]:
    return beliefs_in(said(*tokens), OPTIONS, (ANSWER_LETTER, OFFER))


def chosen(*tokens: str | dict[str, float]) -> dict[str, float]:
    return beliefs_in(said(*tokens), OPTIONS, None)


def about(a: float, b: float, c: float) -> object:
    return pytest.approx({"A": a, "B": b, "C": c})


SWITCH = {" switch": 0.6, " stick": 0.2, " wait": 0.2}  # 0.75 to 0.25 of what is a decision
STICK = {" stick": 0.6, " switch": 0.2, " wait": 0.2}


ANSWER = {" A": 0.8, " C": 0.2}
DECISIONS: list[tuple[tuple[str | dict[str, float], ...], tuple[float, float, float]]] = [
    (("Answer", ":", {" B": 0.5, " A": 0.3, " (": 0.2}), (0.375, 0.625, 0)),
    (("I", " would", SWITCH), (0.25, 0, 0.75)),
    (("I", " would", STICK, " to", " it"), (0.75, 0, 0.25)),
    # both the word and its letter
    (({"Switch": 0.5, "C": 0.1, "Keep": 0.4},), (0.4, 0, 0.6)),
    (("No", {" change": 0.9, " stick": 0.1}, "."), (0.9, 0, 0.1)),
    # a negated word for sticking stands for the offer
    (("I", " would", " not", STICK, " to", " it", "."), (0.25, 0, 0.75)),
    (("I", " would", " no", " longer", STICK, "."), (0.25, 0, 0.75)),
    # the letter that is declined does not decide
    (("I", " would", " not", SWITCH, " to", {" C": 0.9, " B": 0.1}, "."), (0.75, 0, 0.25)),
    (("I", " would", " not", SWITCH, " to", {" C": 0.9, " B": 0.1}, ",", " since", " it",
      " fits", " less", "."), (0.75, 0, 0.25)),
    # nor a word or letter that is set against the answer
    (("I", " stick", " with", ANSWER, " rather", " than", SWITCH, "."), (0.8, 0, 0.2)),
    (("Answer", ":", ANSWER, ".", " It", " is", " not", " C", "."), (0.8, 0, 0.2)),
    # nor a condition
    (({"Stick": 0.7, "Switch": 0.3}, ".", " If", " there", " were", " a", " flap", ",", " I",
      " would", SWITCH, "."), (0.7, 0, 0.3)),
]  # fmt: skip


@pytest.mark.parametrize(("tokens", "beliefs"), DECISIONS)
def test_the_token_that_decides_gives_the_beliefs(
    tokens: tuple[str | dict[str, float], ...], beliefs: tuple[float, float, float]
) -> None:
    assert decided(*tokens) == about(*beliefs)


def test_the_token_of_a_first_answer_gives_the_beliefs() -> None:
    assert chosen("Answer", ":", {" B": 0.5, " A": 0.3, " (": 0.2}) == about(0.375, 0.625, 0)
    refusal = (".", " It", " is", " not", " C", ".")
    assert chosen("Answer", ":", ANSWER, *refusal) == about(0.8, 0, 0.2)
    # of two tokens that say the answer the last
    first, last = {" A": 0.6, " C": 0.4}, {" A": 0.9, " C": 0.1}
    assert chosen("I", " lean", " to", first, ".", " Answer", ":", last) == about(0.9, 0, 0.1)


@pytest.mark.parametrize(
    "before",
    [
        ("I", " would", " not"),
        ("I", " wouldn", "'t"),
        ("I", " won", "'t"),
        ("I", " won", "’t"),
        ("I", " will", " never"),
        ("There", " is", " no", " need", " to"),
        ("no", " need", " to"),
        ("I", " see", " no", " reason", " to"),
        ("I", " do", " not", " think", " I", " should"),
        ("I", " cannot", " justify", " a"),
        ("**", "I", " would", " not", "**"),
        ("The", " film", " is", " clear", ".", " I", " would", " not"),
    ],
    ids="".join,
)
def test_a_negated_word_stands_for_the_other_option(before: tuple[str, ...]) -> None:
    assert decided(*before, SWITCH, ".") == about(0.75, 0, 0.25)


@pytest.mark.parametrize(
    "before",
    [
        ("No", ",", " I", " would"),
        ("It", " is", " not", " A", ".", " I", " would"),
        ("No", "\n"),
        ("I", " see", " no", " reason", " not", " to"),
        ("Not", " that", " it", " fits", " well", ",", " but", " I", " would"),
    ],
    ids="".join,
)
def test_unrelated_negations_are_ignored(before: tuple[str, ...]) -> None:
    assert decided(*before, SWITCH, ".") == about(0.25, 0, 0.75)


@pytest.mark.parametrize("word", [("ort", "ic", " dissection"), ("ortic", " dissection")])
def test_initials_of_words_are_not_letters(word: tuple[str, ...]) -> None:
    tokens: list[str | dict[str, float]] = ["Answer", ":", ANSWER, ".", {" A": 0.5, " B": 0.5}]
    tokens += [*word, " is", " less", " likely", "."]
    assert chosen(*tokens) == about(0.8, 0, 0.2)


def test_letters_outside_the_alternatives_have_no_probability() -> None:
    output = ModelOutput.from_content("model", "B")
    output.choices[0].logprobs = Logprobs(content=[Logprob(token="B", logprob=-1.0)])
    assert beliefs_in(output, OPTIONS, None) == {"A": 0.0, "B": 1.0, "C": 0.0}


@pytest.mark.parametrize(
    "tokens",
    [
        ("It", " depends", "."),
        ("A", " careful", " look", " is", " needed", "."),
        ("Answer", ":", " A", " and", " C"),
        ("Aortic", " dissection"),
        ("",),
    ],
    ids="".join,
)
def test_no_answer_token_gives_no_belief(tokens: tuple[str, ...]) -> None:
    assert chosen(*tokens) == decided(*tokens) == {}
    # a word within a word
    assert decided("My", " answer", " is", " un", {"change": 0.9, "switch": 0.1}, "d", ".") == {}


def test_without_log_probabilities_there_is_no_belief() -> None:
    assert beliefs_in(ModelOutput.from_content("model", "A"), OPTIONS, None) == {}
    assert beliefs_in(ModelOutput(model="model"), OPTIONS, None) == {}
