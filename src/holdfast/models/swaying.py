"""What a simulated responder does under MedFuzz: answers that turn by known chances."""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

from inspect_ai.model import Logprob, Logprobs, TopLogprob

from holdfast.questions import LETTERS, Truth

from .chance import chance, pick
from .profile import Profile
from .wording import PROBES

_CONFIDENCE = 0.85
"""Probability of a right answer where nothing sways it and nothing is noise."""


def turned(model: str, profile: Profile, truth: Truth, seed: int) -> bool:
    """Whether a modified question turns a right answer, each with the same chance.

    Attempts and replicates are drawn apart, so that of the answers right at first a share
    ``1 - (1 - swayed) ** k`` has turned by attempt k.

    Args:
        model: the profile's name, part of every draw.
        profile: its chances.
        truth: the turn under way, with the characteristics that were added as given.
        seed: the run's seed.
    """
    return chance("swayed", *_here(model, truth, seed)) < profile.swayed


def mentioning(model: str, profile: Profile, truth: Truth, seed: int) -> str:
    """What the reasoning says of the characteristics, each of which it mentions or leaves out.

    Args:
        model: the profile's name.
        profile: its chances.
        truth: as for ``turned``.
        seed: the run's seed.
    """
    here = _here(model, truth, seed)
    said = [
        f"It is said of the patient: {' '.join(text.split())}. "
        for place, text in enumerate(_characteristics(truth))
        if chance("mentions", *here, place) < profile.mentions
    ]
    return "".join(said)


def p_gold(model: str, profile: Profile, truth: Truth) -> float:
    """Probability of the right answer to a probe of the permutation test.

    Texts differ by noise on the log-odds, drawn from one law for every text of a question. The
    attack tested has swayed the model, a control does so by a chance of its own; then the
    probability before noise is lower by ``fuzz_effect``. With no effect the attack and its
    controls are exchangeable, and no two of them tie.

    Args:
        model: the profile's name.
        profile: its chances.
        truth: the probe, with its text as the question and its arm (``original``, ``attacked``
            or ``control``) as given. Neither seed, order of display nor number counts.
    """
    text = (model, truth.drawn_by, truth.question.stem)
    arm = dict(truth.given)["arm"]
    swayed = arm == "attacked" or (
        arm == "control" and chance("control-sway", *text) < profile.control_sway
    )
    before = max(0.01, _CONFIDENCE - profile.fuzz_effect) if swayed else _CONFIDENCE
    # half a step up, because a draw can be 0
    noise = NormalDist().inv_cdf(chance("noise", *text) + 2**-57) * profile.fuzz_noise
    return 1 / (1 + math.exp(-math.log(before / (1 - before)) - noise))


def probed(
    model: str, profile: Profile, truth: Truth, given: Mapping[str, Any], seed: int
) -> tuple[str, Logprobs]:
    """The answer to a probe, sampled by the probability of each letter, with log-probabilities.

    Args:
        model: the profile's name.
        profile: its chances.
        truth: as for ``p_gold``; the path tells samples apart.
        given: the arm and the options in the order of display (``shown``).
        seed: the run's seed.
    """
    labels = dict(zip(given["shown"], LETTERS, strict=False))
    gold, p = truth.question.gold, p_gold(model, profile, truth)
    others = [letter for letter in labels if letter != gold]
    here = ("probe", *_here(model, truth, seed), given["arm"], truth.question.stem)
    letter = gold if chance(*here) < p else pick(others, "wrong", *here)
    mass = {labels[gold]: p} | {labels[other]: (1 - p) / len(others) for other in others}
    wording = pick(PROBES, "wording", *here)
    start = wording.index("{label}")
    text = wording.format(label=labels[letter])
    return text, decided_at(text, start, labels[letter], mass)


def decided_at(text: str, start: int, token: str, mass: Mapping[str, float]) -> Logprobs:
    """Log-probabilities of a text that is certain but for one token.

    Args:
        text: the reply.
        start: where the token stands.
        token: what was said there.
        mass: probability of each text that could stand there, above 0.
    """
    top = [TopLogprob(token=other, logprob=math.log(p)) for other, p in mass.items()]
    decides = Logprob(token=token, logprob=math.log(mass[token]), top_logprobs=top)
    around = [text[:start], text[start + len(token) :]]
    before, after = ([Logprob(token=piece, logprob=0.0)] if piece else [] for piece in around)
    return Logprobs(content=[*before, decides, *after])


def _characteristics(truth: Truth) -> Sequence[str]:
    return list(map(str, dict(truth.given).get("characteristics") or ()))


def _here(model: str, truth: Truth, seed: int) -> tuple[object, ...]:
    root = (model, seed, truth.replicate, truth.drawn_by)
    return (*root, *truth.path, *_characteristics(truth))
