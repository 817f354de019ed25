"""How much a model believes in each option, read off the log-probabilities of a short reply."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from inspect_ai.model import Logprob, ModelOutput

from holdfast.reading.answers import extract_answer
from holdfast.reading.decisions import is_negated, read_decision
from holdfast.reading.reply_text import plain_text

from .tokens import tokens_of

_WORDS = {"stick": 0, "stay": 0, "keep": 0, "switch": 1, "change": 1}
"""First words of a decision: 0 for the option held, 1 for the one offered."""

_NEAR = 200
"""So many characters before a word are read for what negates it."""


def beliefs_in(
    output: ModelOutput, options: Mapping[str, str], decision: tuple[str, str] | None
) -> dict[str, float]:
    """Probability of each displayed letter at the token that decides, among those in play.

    The deciding token is the last one that stands for the reply's answer: its displayed letter by
    itself, or a word for sticking or switching. Where words before such a word negate it ("I
    would not switch"), it stands for the other option, and so do the words in its place. What the
    model leaves out of its alternatives has probability 0, and the rest is normalised to 1.

    Args:
        output: a generation asked for with log-probabilities.
        options: displayed letter to text, of everything in play.
        decision: displayed letters of the option held and of the one offered; None where the
            turn is a choice among letters.

    Returns:
        Displayed letter to probability; empty where there are no log-probabilities, the reply
        has no answer, the reply is not made of the tokens, or none of them decides.
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
    """The tokens that are no part of a longer word, the last first, with the text before each."""
    text = "".join(token.token for token in tokens)
    end = len(text)
    for token in reversed(tokens):
        start = end - len(token.token)
        # " A" of " Aortic", "change" of "unchanged"
        continues_word = token.token[:1].isalnum() and text[start - 1 : start].isalnum()
        goes_on = token.token[-1:].isalnum() and text[end : end + 1].isalnum()
        if not continues_word and not goes_on:
            yield token, text[max(0, start - _NEAR) : start]
        end = start


def _standing(token: str, before: str, decision: tuple[str, str] | None) -> tuple[str, str] | None:
    """What the words for sticking and for switching stand for behind a text."""
    if decision is None or _WORDS.get(_word(token).lower()) is None:
        return decision
    clause = re.split(r"[.!?;:\n]", before)[-1]
    return decision[::-1] if is_negated(f"{plain_text(clause).lower()} ") else decision


def _alternatives(token: Logprob) -> Iterable[tuple[str, float]]:
    by_token = {top.token: top.logprob for top in token.top_logprobs or []}
    return {token.token: token.logprob, **by_token}.items()


def _letter(token: str, options: Mapping[str, str], standing: tuple[str, str] | None) -> str | None:
    """The displayed letter that a token stands for."""
    word = _word(token)
    if word in options:
        return word
    place = _WORDS.get(word.lower())
    return standing[place] if standing and place is not None else None


def _word(token: str) -> str:
    return re.sub(r"[\W_]+", "", token)
