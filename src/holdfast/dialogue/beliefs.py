"""How much a model believes in each option, read off the log-probabilities of a short reply."""

import math
import re
from collections.abc import Iterable, Mapping

from inspect_ai.model import Logprob, ModelOutput

_WORDS = {"stick": 0, "stay": 0, "keep": 0, "switch": 1, "change": 1}
"""First words of a decision: 0 for the option held, 1 for the one offered."""


def beliefs_in(
    output: ModelOutput, options: Mapping[str, str], decision: tuple[str, str] | None
) -> dict[str, float]:
    """Probability of each displayed letter at the token that decides, among those in play.

    The deciding token is the last one that is a displayed letter by itself, or one of the words
    for sticking and switching; where the reply is a word, its probability is that of the letter
    it stands for. What the model leaves out of its alternatives has probability 0, and the rest
    is normalised to 1.

    Args:
        output: a generation asked for with log-probabilities.
        options: displayed letter to text, of everything in play.
        decision: displayed letters of the option held and of the one offered; None where the
            turn is a choice among letters.

    Returns:
        Displayed letter to probability; empty where there are no log-probabilities, or no token
        that decides.
    """
    logprobs = output.choices[0].logprobs if output.choices else None
    for token in reversed(logprobs.content if logprobs else []):
        if _letter(token.token, options, decision) is None:
            continue
        mass = dict.fromkeys(options, 0.0)
        for text, logprob in _alternatives(token):
            letter = _letter(text, options, decision)
            if letter is not None:
                mass[letter] += math.exp(logprob)
        total = sum(mass.values())
        return {letter: p / total for letter, p in mass.items()} if total else {}
    return {}


def _alternatives(token: Logprob) -> Iterable[tuple[str, float]]:
    named = {top.token: top.logprob for top in token.top_logprobs or []}
    return {token.token: token.logprob, **named}.items()


def _letter(token: str, options: Mapping[str, str], decision: tuple[str, str] | None) -> str | None:
    """The displayed letter that a token stands for."""
    word = re.sub(r"[\W_]+", "", token)
    if word in options:
        return word
    place = _WORDS.get(word.lower())
    return decision[place] if decision and place is not None else None
