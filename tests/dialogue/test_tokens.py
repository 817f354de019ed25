"""The tokens of a reply, out of what providers of local models give."""

import math

import pytest
from inspect_ai.model import Logprob, TopLogprob

from holdfast.dialogue.tokens import tokens_of


def told(**alternatives: float) -> Logprob:
    tops = [TopLogprob(token=text, logprob=math.log(p)) for text, p in alternatives.items()]
    return Logprob(token=tops[0].token, logprob=tops[0].logprob, top_logprobs=tops)


def plain(*tokens: str) -> list[Logprob]:
    return [told(**{token: 1.0}) for token in tokens]


def texts(reply: str, tokens: list[Logprob]) -> list[str]:
    return [token.token for token in tokens_of(reply, tokens)]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["Answer", ":", " B"], ["Answer", ":", " B"]),
        (["Answer", ":", "ĠB"], ["Answer", ":", " B"]),
        (["▁Answer", ":", "▁B"], [" Answer", ":", " B"]),
    ],
    ids=["text", "bytes", "pieces"],
)
def test_blank_marks_are_blanks(tokens: list[str], words: list[str]) -> None:
    assert texts("Answer: B", plain(*tokens)) == words


def test_padding_is_not_part_of_a_reply() -> None:
    assert texts("B", plain("▁B", "<|end|>", "▁B", "B")) == [" B"]


def test_a_reply_after_reasoning_comes_last() -> None:
    assert texts("B", plain("<think>", "A", " or", " B", "</think>", "\n", "B")) == ["B"]


def test_the_sampled_token_is_found_among_the_alternatives() -> None:
    alternatives = [told(**{"ĠC": 0.6, "ĠA": 0.3, "A": 0.1}), told(**{".": 0.9, "Ġor": 0.1})]
    first, second = tokens_of(" A.", alternatives)
    assert (first.token, second.token) == (" A", ".")
    assert first.logprob == pytest.approx(math.log(0.3))
    # both ways to write the letter are kept apart, so that their probabilities add up
    assert [top.token for top in first.top_logprobs or []] == [" C", " A", "A"]


def test_alternatives_of_all_tokens_spell_the_reply() -> None:
    # "Ans" fits at first and leads nowhere
    alternatives = [told(Ans=0.5, Answer=0.3), told(**{" A": 0.5, ":": 0.5}), told(**{" B": 1.0})]
    assert texts("Answer: B", alternatives) == ["Answer", ":", " B"]


def test_multibyte_characters_are_joined() -> None:
    assert texts("won’t\nB", plain("won", "âĢĻ", "t", "Ċ", "B")) == ["won", "’", "t", "\n", "B"]
    assert texts("é\nB", plain("é", "<0x0A>", "B")) == ["é", "\n", "B"]
    split = texts("won’t", plain("won", "âĢ", "Ļt"))
    assert (len(split), split[0], split[2][-1]) == (3, "won", "t")


def test_blanks_around_a_reply_are_ignored() -> None:
    assert texts("B", plain("\n", "B", " \n")) == ["\n", "B"]
    assert texts("  B\n", plain("ĠB", "Ċ")) == [" B"]
    assert texts("B", plain("B \n")) == ["B \n"]


@pytest.mark.parametrize("reply", ["", "C", "B or C"])
def test_replies_not_made_of_the_tokens_have_none(reply: str) -> None:
    assert tokens_of(reply, plain("B", "<|end|>")) == []
