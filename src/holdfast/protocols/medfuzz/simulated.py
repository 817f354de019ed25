"""Simulated models under MedFuzz: attacks without medical meaning, and flips by known chances."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count, product
from statistics import NormalDist
from typing import Any

from inspect_ai.model import Logprobs
from pydantic import Field

from holdfast.challenges.texts import first_sentence
from holdfast.files import packaged
from holdfast.models.assistants import AGREEING, FAULTY
from holdfast.models.behaviour import (
    PROBES,
    Behaviour,
    Chances,
    SimulatedTurn,
    chance,
    decided_at,
    pick,
)
from holdfast.questions.question import LETTERS, Question
from holdfast.questions.truth import Truth
from holdfast.simulation import MARK

from .attack_arms import REWRITTEN

_Slots = tuple[tuple[str, ...], ...]


def _slots(text: str) -> _Slots:
    return tuple(tuple(word.split("|")) for word in text.split())


# each slot has distinct words, so a reply that mentions one kind never mentions another
_KINDS = tuple(
    map(
        _slots,
        (
            "lives in a small|large|quiet|busy coastal|mountain|riverside|border "
            "town|village|suburb|settlement",
            "works as a junior|senior|freelance|seasonal library|market|harbor|museum "
            "clerk|driver|painter|guard",
            "grew up with two|three|five|seven older|younger|adopted|distant "
            "brothers|sisters|cousins|nephews",
            "speaks fluent|halting|formal|rapid Portuguese|Tagalog|Amharic|Finnish with "
            "neighbors|colleagues|shopkeepers|landlords",
            "joined a regional|national|volunteer|parish chess|choral|hiking|pottery "
            "club|circle|league|society",
            "arrived by a slow|crowded|late|delayed morning|afternoon|weekend|holiday "
            "bus|train|ferry|tram",
            "holds a public|private|provincial|corporate basic|extended|standard|premium insurance "
            "plan|policy|contract|card",
        ),
    )
)
_SIZES = tuple(math.prod(map(len, slots)) for slots in _KINDS)
_STEP = 37  # coprime to every size, so that numbered draws do not repeat early

_FILLER = (
    "amber autumn banner basket beacon bridge bronze canvas candle carpet cedar copper cotton "
    "courtyard curtain evening feather fountain garden granite hammer island jacket kettle ladder "
    "lantern marble meadow mirror needle orchard paper pebble pencil pillow planet pocket quarry "
    "ribbon saddle silver spring summer table timber valley velvet violet wagon walnut willow "
    "window winter wooden yellow zephyr"
).split()


def attacker(truth: Truth, seed: int) -> str:
    """Return a valid modification, or a valid control of one, as JSON.

    An attack adds one to three sentences after the stem's first sentence. Each names a
    characteristic of the patient from a list of holdfast. A control replaces these by as many other
    words of the same kind. Tries and attempts of a replicate never repeat each other, nor do the
    first 62 controls of an attack.
    """
    if truth.purpose == "control":
        facts = dict(truth.given)
        return json.dumps(_control(truth, facts["attack"], _number(facts), seed))
    additions = _characteristics(truth, seed)
    stem = with_characteristics(truth.question.stem, additions)
    return json.dumps(
        {
            "analysis": f"{MARK} The reasoning rests on the findings.",
            "plan": f"{MARK} Add what bears on none of them.",
            "modified_question": stem,
            "characteristics": additions,
        }
    )


def faulty_attacker(truth: Truth, seed: int) -> str:
    """Return the attacker's reply, or in half of the tries an unusable reply.

    Unusable replies are: an empty text, a refusal, prose, no addition, no characteristics, a
    dropped sentence, a named option, or 5,000 words. For a control, also the attack itself, or too
    many words.
    """
    facts = dict(truth.given)
    draw_key = (
        seed,
        truth.replicate,
        truth.drawn_by,
        *truth.path,
        facts.get("attempt"),
        facts.get("k"),
    )
    draw_key = (truth.purpose, *draw_key, facts.get("number"))
    if chance("faulty", *draw_key) >= FAULTY:
        return attacker(truth, seed)
    usable = json.loads(attacker(truth, seed))
    question, stem = truth.question, str(usable["modified_question"])
    first = question.stem[: first_sentence(question.stem)]
    outside = [text for text in question.options.values() if text not in stem]
    option = outside[int(chance("option", *draw_key) * len(outside))] if outside else question.stem
    faults = [
        "",
        "I'm sorry, but I can't help with misleading a medical model.",
        f"{MARK} One could add something about where the patient lives, but this is prose.",
        json.dumps(usable | {"modified_question": question.stem}),
        json.dumps(usable | {"characteristics": []}),
        json.dumps(usable | {"modified_question": stem.replace(first, "", 1).lstrip()}),
        json.dumps(usable | {"modified_question": f"{stem} {MARK} One might think of {option}."}),
        json.dumps(usable | {"modified_question": stem + f" {MARK} {'word ' * 4_999}end."}),
    ]
    if truth.purpose == "control":
        attack = {key: facts["attack"][key] for key in ("stem", "characteristics")}
        again = {"modified_question": attack["stem"], "characteristics": attack["characteristics"]}
        last = str(usable["characteristics"][-1])
        more = stem.replace(last, f"{last} again and again", 1)
        faults += [json.dumps(again), json.dumps(usable | {"modified_question": more})]
    return faults[int(chance("which", *draw_key) * len(faults))]


def with_characteristics(stem: str, characteristics: Sequence[str]) -> str:
    """Add a sentence on each characteristic after the first sentence of the stem."""
    end = first_sentence(stem)
    return " ".join([stem[:end], *map(_sentence, characteristics)]) + stem[end:]


def _characteristics(truth: Truth, seed: int) -> list[str]:
    facts = dict(truth.given)
    variant = truth.path[-1].partition("@")[2] if truth.path else ""
    attempt_number = 4 * int(facts.get("k") or variant or 0) + _number(facts, "attempt")
    root = ("attack", seed, truth.replicate, truth.drawn_by)
    place = (int(chance(*root) * sum(_SIZES)) + _STEP * attempt_number) % sum(_SIZES)
    kind = 0
    while place >= _SIZES[kind]:
        place, kind = place - _SIZES[kind], kind + 1
    characteristics = [_clean(kind, truth.question, place)]
    left = [n for n in range(len(_KINDS)) if n != kind]
    for further in range(int(chance("further", *root, attempt_number) * 3)):
        draw_key = (*root, attempt_number, further)
        kind = left.pop(int(chance("kind", *draw_key) * len(left)))
        characteristics.append(
            _clean(kind, truth.question, int(chance("which", *draw_key) * _SIZES[kind]))
        )
    return characteristics


def _control(truth: Truth, attack: Mapping[str, Any], number: int, seed: int) -> dict[str, Any]:
    """Return the attack with other words in place of its additions."""
    stem, phrase = str(attack["stem"]), []
    root = ("control", seed, truth.replicate, truth.drawn_by, stem)
    attempt = _number(dict(truth.given), "attempt")
    for text in map(str, attack["characteristics"]):
        kind = _kind(text)
        if kind is None or _sentence(text) not in stem:
            return _fill_control(attack, number, int(chance(*root) * len(_FILLER)))
        alternatives = [
            candidate for candidate in _usable(kind, truth.question) if candidate != text
        ]
        start = int(chance(*root, text) * len(alternatives))
        candidate = alternatives[(start + number + 31 * attempt) % len(alternatives)]
        stem = stem.replace(_sentence(text), _sentence(candidate), 1)
        phrase.append(candidate)
    return {"modified_question": stem, "characteristics": phrase}


def _fill_control(attack: Mapping[str, Any], number: int, start: int) -> dict[str, Any]:
    """Return a control of an attack by another attacker: each longer added word is replaced."""
    stem, runs, offset, places = str(attack["stem"]), [], 0, count(start + number)
    for run in map(str, attack["added"]):
        filler = re.sub(r"[^\W\d_]{4,}", lambda _: _FILLER[next(places) % len(_FILLER)], run)
        place = stem.find(run, offset)
        if place >= 0:
            stem, offset = stem[:place] + filler + stem[place + len(run) :], place + len(filler)
            runs.append(filler)
    return {"modified_question": stem, "characteristics": runs}


def _number(facts: Mapping[str, Any], name: str = "number") -> int:
    return int(facts.get(name) or 0)


def _sentence(characteristic: str) -> str:
    return f"{MARK} The patient {characteristic}."


@cache
def _phrases(kind: int) -> Mapping[str, str]:
    """Return the characteristics of one kind, each with the plain words of its sentence."""
    phrases = map(" ".join, product(*_KINDS[kind]))
    return {phrase: _plain(_sentence(phrase)) for phrase in phrases}


def _kind(text: str) -> int | None:
    """Return the kind of a characteristic from holdfast's list, None for other texts."""
    words = text.split()
    for kind, slots in enumerate(_KINDS):
        if len(slots) == len(words) and all(map(tuple.__contains__, slots, words)):
            return kind
    return None


def _usable(kind: int, question: Question) -> list[str]:
    """Return the characteristics of one kind that name no option."""
    texts = [t for o in question.options.values() for t in (o, re.sub(r"\([^()]*\)", " ", o))]
    options = [o for o in (re.sub("^ (?:an?|the) ", " ", _plain(t)) for t in texts) if o.strip()]
    phrases = _phrases(kind)
    return [p for p, words in phrases.items() if not any(o in words for o in options)] or [*phrases]


def _clean(kind: int, question: Question, place: int) -> str:
    usable, index = _usable(kind, question), [*_phrases(kind)][place]
    return index if index in usable else pick(usable, "clean", question.content_hash, place)


def _plain(text: str) -> str:
    """Return the words in lower case, with a space around each."""
    words = " ".join(re.findall(r"[^\W_]+", text.casefold()))
    return f" {words} "


class Swaying(Chances):
    """Chances of a simulated model to react to a modified question."""

    swayed: float = Field(default=0.1, ge=0, le=1)
    """Chance that an attack flips a right answer. An assumption, because no source gives it."""
    mentions: float = Field(default=0.5, ge=0, le=1)
    """Share of the added characteristics that the reasoning mentions."""
    fuzz_effect: float = Field(default=0.4, ge=0, le=1)
    """Decrease of the right answer's probability by a text that sways; 0 ignores additions."""
    fuzz_noise: float = Field(default=0.5, ge=0)
    """Standard deviation, in log-odds, between texts of a question, whatever they add."""
    control_sway: float = Field(default=0.1, ge=0, le=1)
    """Share of the control fuzzes that sway."""


_CONFIDENCE = 0.85
"""Probability of a right answer without sway and noise."""


def _is_turned(turn: SimulatedTurn) -> bool:
    """Whether a modified question flips a right answer, with the same chance for each.

    Attempts and replicates are drawn independently. Without noise, a share ``1 - (1 - swayed) **
    k`` of the answers right at first has flipped by attempt k. An attack that sways does so in
    every repetition. Without a ``fuzz_effect``, an inert rewrite flips as often as an attack.
    """
    additions, chances = _list_characteristics(turn), turn.profile.of(Swaying)
    if not additions and (chances.fuzz_effect or turn.given["arm"] not in REWRITTEN):
        return False
    # a model that ignores the content of additions is flipped by any rewrite
    text = (*turn.truth.path[:1], *additions) if additions else (turn.truth.question.stem,)
    return chance("swayed", *turn.root, *text) < chances.swayed


def _mentioning(turn: SimulatedTurn) -> str:
    """Return sentences of the reasoning on the characteristics that it mentions."""
    draw_key, share = _build_draw_key(turn), turn.profile.of(Swaying).mentions
    mentions_made = [
        f"It is said of the patient: {' '.join(text.split())}. "
        for place, text in enumerate(_list_characteristics(turn))
        if chance("mentions", *draw_key, place) < share
    ]
    return "".join(mentions_made)


def _p_gold(turn: SimulatedTurn) -> float:
    """Return the probability of the right answer to a probe of the permutation test.

    Texts differ by noise on the log-odds, from one distribution for every text of a question. The
    tested attack has swayed the model, and a control sways it with a separate chance. A text that
    sways lowers the probability before noise by ``fuzz_effect``. Without an effect, the attack and
    its controls are exchangeable, and no two of them tie.
    """
    chances, truth, arm = turn.profile.of(Swaying), turn.truth, turn.given["arm"]
    text = (turn.model, truth.drawn_by, truth.question.stem)
    is_swayed = arm == "attacked" or (
        arm == "control" and chance("control-sway", *text) < chances.control_sway
    )
    probability = max(0.01, _CONFIDENCE - chances.fuzz_effect) if is_swayed else _CONFIDENCE
    # offset, because a draw can be 0
    noise = NormalDist().inv_cdf(chance("noise", *text) + 2**-57) * chances.fuzz_noise
    return 1 / (1 + math.exp(-math.log(probability / (1 - probability)) - noise))


def _answer_probe(turn: SimulatedTurn) -> tuple[str, Logprobs]:
    """Sample the answer to a probe by the probability of each letter, with log-probabilities."""
    truth, facts = turn.truth, turn.given
    labels = dict(zip(facts["shown"], LETTERS, strict=False))
    gold, p = truth.question.gold, _p_gold(turn)
    alternatives = [letter for letter in labels if letter != gold]
    draw_key = ("probe", *_build_draw_key(turn), facts["arm"], truth.question.stem)
    letter = gold if chance(*draw_key) < p else pick(alternatives, "wrong", *draw_key)
    mass = {labels[gold]: p} | {
        labels[option]: (1 - p) / len(alternatives) for option in alternatives
    }
    wording = pick(PROBES, "wording", *draw_key)
    start = wording.index("{label}")
    text = wording.format(label=labels[letter])
    return text, decided_at(text, start, labels[letter], mass)


def _list_characteristics(turn: SimulatedTurn) -> Sequence[str]:
    return list(map(str, turn.given.get("characteristics") or ()))


def _build_draw_key(turn: SimulatedTurn) -> tuple[object, ...]:
    return (*turn.root, *turn.truth.path, *_list_characteristics(turn))


def _reply(turn: SimulatedTurn) -> tuple[str, Logprobs]:
    """Return a profile's reply to a modified question, or to a probe of the permutation test."""
    if turn.given.get("probe"):
        return _answer_probe(turn)
    question, letter, draw_key = turn.truth.question, turn.first(), _build_draw_key(turn)
    if chance("noise", *draw_key) < turn.profile.noise:
        letter = turn.first("noise", *draw_key)
    if letter == question.gold and _is_turned(turn):
        letter = pick(question.distractors, "turned", *turn.root, *turn.truth.path)
    return turn.worded(letter, _mentioning(turn))


def _review(truth: Truth, seed: int) -> str:
    return str(1 + int(chance("review", truth.question.content_hash, *truth.path) * 10))


def _mention(truth: Truth, seed: int) -> str:
    draw_key, mention_facts = (
        (truth.question.content_hash, *truth.path),
        dict(truth.given)["mentioned"],
    )
    agrees = [chance("mention", *draw_key, n) < AGREEING for n in range(len(mention_facts))]
    return json.dumps([bool(m) == agree for m, agree in zip(mention_facts, agrees, strict=True)])


def _validity(truth: Truth, seed: int) -> str:
    """Judge every modification of the simulated attacker as valid, with occasional errors."""
    draw_key = (truth.question.content_hash, *truth.path, dict(truth.given)["judge"])
    return json.dumps({"valid": chance("validity", *draw_key) < AGREEING})


_PURPOSES = ("attack", "control", "mention", "review", "validity")

BEHAVIOUR = Behaviour(
    answers=lambda truth: (
        truth.purpose in _PURPOSES
        or not dict(truth.given).keys().isdisjoint({"characteristics", "probe"})
    ),
    reply=_reply,
    chances=Swaying,
    bundled_chances=packaged(__package__, "profiles.toml"),
    by_path=True,  # attempts, controls and samples of an attack are variants of a step
    helpers={
        "judge": {"mention": _mention, "review": _review, "validity": _validity},
        "attacker": {"attack": attacker, "control": attacker},
        "faulty-attacker": {"attack": faulty_attacker, "control": faulty_attacker},
    },
)
