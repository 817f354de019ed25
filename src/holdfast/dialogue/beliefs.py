"""Beliefs: probabilities of the options, from the log-probabilities of a short reply."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from inspect_ai.model import Logprob, ModelOutput

from holdfast.reading.answers import extract_answer
from holdfast.reading.decisions import is_negated, read_decision
from holdfast.reading.reply_text import plain_text

from .tokens import tokens_of

_WORDS = {"stick": 0, "stay": 0, "keep": 0, "switch": 1, "change": 1}
"""First words of a decision: 0 for the current option, 1 for the offered one."""

_NEAR = 200
"""Number of characters before a word that are searched for a negation."""


def beliefs_in(
    output: ModelOutput, options: Mapping[str, str], decision: tuple[str, str] | None
) -> dict[str, float]:
    """Return the probability of each displayed letter at the deciding token, among those in play.

    The deciding token is the last token that expresses the reply's answer: its displayed letter
    alone, or a word for sticking or switching. If the words before negate it ("I would not
    switch"), it stands for the other option, and so do its alternatives. Alternatives that the
    provider does not list have probability 0, and the rest is normalised to 1.

    Args:
        output: a generation with log-probabilities.
        options: displayed letter to text, for every option in play.
        decision: displayed letters of the current and the offered option. None for a choice among
            letters.

    Returns:
        Displayed letter to probability. Empty without log-probabilities, if the reply has no
        answer, if the tokens do not form the reply, or if no token decides.
    """
    logprobs = output.choices[0].logprobs if output.choices else None
    if not logprobs:
        return {}
    answer = _answer(output.completion, options, decision)
    for token, before in _whole_words(tokens_of(output.completion, logprobs.content)):
        standing = _standing(token.token, before, decision)
        letter = _letter(token.token, options, standing)
        if letter is None or letter != answer:
            continue
        mass = dict.fromkeys(options, 0.0)
        for text, logprob in _alternatives(token):
            letter = _letter(text, options, standing)
            if letter is not None:
                mass[letter] += math.exp(logprob)
        total = sum(mass.values())
        return {letter: p / total for letter, p in mass.items()} if total else {}
    return {}


def _answer(reply: str, options: Mapping[str, str], decision: tuple[str, str] | None) -> str | None:
    extraction = (
        read_decision(reply, options, *decision) if decision else extract_answer(reply, options)
    )
    return extraction.answer


def _whole_words(tokens: list[Logprob]) -> Iterator[tuple[Logprob, str]]:
    """Yield tokens that are not part of a longer word, last first, with the text before each."""
    text = "".join(token.token for token in tokens)
    end = len(text)
    for token in reversed(tokens):
        start = end - len(token.token)
        # " A" in " Aortic", "change" in "unchanged"
        continues_word = token.token[:1].isalnum() and text[start - 1 : start].isalnum()
        goes_on = token.token[-1:].isalnum() and text[end : end + 1].isalnum()
        if not continues_word and not goes_on:
            yield token, text[max(0, start - _NEAR) : start]
        end = start


def _standing(token: str, before: str, decision: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return the options that stick and switch mean after a text, reversed by a negation."""
    if decision is None or _WORDS.get(_word(token).lower()) is None:
        return decision
    clause = re.split(r"[.!?;:\n]", before)[-1]
    return decision[::-1] if is_negated(f"{plain_text(clause).lower()} ") else decision


def _alternatives(token: Logprob) -> Iterable[tuple[str, float]]:
    by_token = {top.token: top.logprob for top in token.top_logprobs or []}
    return {token.token: token.logprob, **by_token}.items()


def _letter(token: str, options: Mapping[str, str], standing: tuple[str, str] | None) -> str | None:
    """Return the displayed letter that a token stands for."""
    word = _word(token)
    if word in options:
        return word
    place = _WORDS.get(word.lower())
    return standing[place] if standing and place is not None else None


def _word(token: str) -> str:
    return re.sub(r"[\W_]+", "", token)
