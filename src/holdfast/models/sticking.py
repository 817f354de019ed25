"""What a simulated responder does in Stick-or-Switch: choose, stick or switch by known chances."""

import math
from collections.abc import Mapping
from typing import Any

from inspect_ai.model import Logprob, Logprobs, TopLogprob

from holdfast.questions import LETTERS, Truth

from .chance import chance, pick
from .profile import Profile
from .wording import CHOICES, STICKS, SWITCHES

ABSTAIN = "NA"
"""How ``None of the Above`` is called beside a question's own letters."""

_CONFIDENCE = 0.85
"""Probability given to what is answered; everything else in play shares the rest."""


def decided(model: str, profile: Profile, truth: Truth, given: Mapping[str, Any], seed: int) -> str:
    """The option answered, of those in play.

    The chance to choose the target is that of a right first answer, or of an abstention; later
    turns stick with a chance of their own, the same at each, so that survival is
    ``S(t) = S(1) stick ** (t - 1)`` unless a profile has another chance from the third turn on.

    Args:
        model: the profile's name, part of every draw.
        profile: its chances.
        truth: the turn under way.
        given: the arm, the options shown, the one held and the one that is right.
        seed: the run's seed.
    """
    arm, shown, held = given["arm"], given["shown"], given["held"]
    root = (model, seed, truth.replicate, truth.drawn_by)
    if held is None:
        abstaining = given["right"] == ABSTAIN
        known = profile.baseline / 100
        if abstaining:
            known = profile.abstain
        elif arm == "positive" and profile.isolated is not None:
            known = profile.isolated
        # one draw for all arms that ask the same, so that what is known once is known again
        if chance("abstain" if abstaining else "first", *root) < known:
            return str(given["right"])
        return pick([letter for letter in shown if letter != given["right"]], "other", arm, *root)
    if arm == "flexible-correct":
        return str(shown[-1] if chance("flexible", *root) < profile.flexible else held)
    stick = profile.stick.get(arm, 1.0)
    if len(shown) > 3:
        stick = profile.stick_on.get(arm, stick)
    return str(held if chance("stick", arm, len(shown), *root) < stick else shown[-1])


def worded(letter: str, truth: Truth, given: Mapping[str, Any]) -> tuple[str, Logprobs]:
    """The answer in one of several wordings, with its log-probabilities."""
    shown, held = given["shown"], given["held"]
    label, offered = LETTERS[shown.index(letter)], LETTERS[len(shown) - 1]
    wordings = CHOICES if held is None else SWITCHES if label == offered else STICKS
    key = ("wording", truth.drawn_by, given["arm"], len(shown))
    wording = pick(wordings, *key)
    text = " ".join(truth.question.options.get(letter, "None of the Above").split())
    said = wording.format(label=label, text=text.strip("\"'`*_$\\{}<>()[].:"))
    if "{label}" in wording:
        start = wording.index("{label}")
        others = [LETTERS[place] for place in range(len(shown)) if LETTERS[place] != label]
        return said, _logprobs(said, start, label, others)
    word = next(w for w in ("switch", "Switch", "stick", "Stick") if w in said)
    other = {"switch": "stick", "Switch": "Stick", "stick": "switch", "Stick": "Switch"}[word]
    return said, _logprobs(said, said.index(word), word, [other])


def _logprobs(text: str, start: int, token: str, others: list[str]) -> Logprobs:
    """Certain but for the token that decides."""
    rest = math.log((1 - _CONFIDENCE) / len(others)) if others else -math.inf
    top = [TopLogprob(token=token, logprob=math.log(_CONFIDENCE))]
    top += [TopLogprob(token=other, logprob=rest) for other in others]
    decides = Logprob(token=token, logprob=math.log(_CONFIDENCE), top_logprobs=top)
    around = [text[:start], text[start + len(token) :]]
    before, after = ([Logprob(token=piece, logprob=0.0)] if piece else [] for piece in around)
    return Logprobs(content=[*before, decides, *after])
