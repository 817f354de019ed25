"""Simulated targets of MedFuzz: the chances of a profile come out of what it says."""

import json
import math
from statistics import fmean, median
from typing import Any

import pytest
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    GenerateConfig,
    Logprobs,
    ModelOutput,
)

from holdfast.dialogue.beliefs import beliefs_in
from holdfast.models.behaviour import Profile, profile, profiles
from holdfast.models.simulated import Simulated
from holdfast.protocols.medfuzz.characteristics import mentions
from holdfast.protocols.medfuzz.simulated import Swaying
from holdfast.questions.loading import load_questions
from holdfast.questions.question import LETTERS, Question
from holdfast.questions.truth import Truth
from holdfast.reading.answers import extract_answer

BANK = load_questions("bank").questions
N = 2_000
ADDED = (
    "lives in a small coastal town",
    "speaks fluent Finnish with neighbors",
    "joined a national chess club",
)


def bound(p: float, n: int = N) -> float:
    """Half the width of the 99% interval of a share."""
    return 2.576 * math.sqrt(p * (1 - p) / n)


def question(n: int) -> Question:
    return Question(
        id=str(n),
        stem=f"Case {n}. Which?",
        options={"A": "alpha", "B": "beta", "C": "gamma", "D": "delta"},
        gold="ABCD"[n % 4],
    )


def put(asked: Question, k: int) -> Question:
    return asked.model_copy(update={"stem": f"{asked.stem} [simulated] {k}"})


def answered(name: str, asked: Question, k: int = 0, replicate: int = 1, seed: int = 42) -> str:
    """The reply to the plain question, or to its k-th modification."""
    truth = Truth(asked, replicate=replicate)
    if k:
        given = (("arm", "attack"), ("characteristics", list(ADDED)))
        truth = Truth(
            put(asked, k), (f"fuzz@{k}",), ("medfuzz",), (None,), replicate, "answer", given,
            asked.content_hash,
        )  # fmt: skip
    return Simulated(name).reply(truth, [], GenerateConfig(seed=seed))[0]


def letter(name: str, asked: Question, k: int = 0, replicate: int = 1, seed: int = 42) -> str:
    found = extract_answer(answered(name, asked, k, replicate, seed), asked.options).answer
    assert found is not None
    return found


def turned_at(name: str, asked: Question, replicate: int = 1) -> int | None:
    """The attempt of five that turns a right answer; None where none does, 0 for a wrong one."""
    if letter(name, asked, 0, replicate) != asked.gold:
        return 0
    turns = (k for k in range(1, 6) if letter(name, asked, k, replicate) != asked.gold)
    return next(turns, None)


# --- attacks ---


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ["sycophant", "fuzz-swayed", "gpt-4.1", "steadfast"])
def test_the_share_turned_by_attempt_k_is_known(name: str) -> None:
    s = profile(name).of(Swaying).swayed
    found = [turned_at(name, question(n)) for n in range(N)]
    right = [k for k in found if k != 0]
    assert len(right) / N == pytest.approx(
        profile(name).baseline / 100, abs=bound(profile(name).baseline / 100)
    )
    for k in range(1, 6):
        share = sum(at is not None and at <= k for at in right) / len(right)
        known = 1 - (1 - s) ** k
        assert share == pytest.approx(known, abs=bound(known, len(right)))


def inert(name: str, asked: Question, k: int) -> str:
    """The answer to the k-th inert rewrite."""
    given: tuple[tuple[str, Any], ...] = (("arm", "inert"), ("characteristics", []))
    truth = Truth(
        put(asked, 100 + k), (f"inert@{k}",), ("control",), (None,), 1, "answer", given,
        asked.content_hash,
    )  # fmt: skip
    reply = Simulated(name).reply(truth, [], GenerateConfig(seed=42))[0]
    found = extract_answer(reply, asked.options).answer
    assert found is not None
    return found


def test_noise_and_cause_are_both_known() -> None:
    known = profile("fuzz-noisy")
    noise = known.noise * (1 - known.baseline / 100)
    swayed = known.of(Swaying).swayed
    assert noise > 0 < swayed
    asked = [question(n) for n in range(N)]
    right = [q for q in asked if letter("fuzz-noisy", q) == q.gold]
    assert len(right) / N == pytest.approx(0.7, abs=bound(0.7))
    under = {
        "attack": [letter("fuzz-noisy", q, k) != q.gold for q in right for k in (1, 2)],
        "inert": [inert("fuzz-noisy", q, k) != q.gold for q in right for k in (1, 2)],
    }
    truths = {"attack": 1 - (1 - noise) * (1 - swayed), "inert": noise}
    for arm, truth in truths.items():
        assert fmean(under[arm]) == pytest.approx(truth, abs=bound(truth, len(under[arm])))
    # what is net of the inert rewrites, of the answers that they left, is the cause
    attacked, usual = fmean(under["attack"]), fmean(under["inert"])
    assert (attacked - usual) / (1 - usual) == pytest.approx(swayed, abs=0.03)


def test_replicates_are_drawn_apart() -> None:
    found = [
        (letter("fuzz-swayed", question(n), 1, 1), letter("fuzz-swayed", question(n), 1, 2), n)
        for n in range(N)
        if all(letter("fuzz-swayed", question(n), 0, r) == question(n).gold for r in (1, 2))
    ]
    both = sum(one != question(n).gold != other for one, other, n in found) / len(found)
    assert both == pytest.approx(0.09, abs=bound(0.09, len(found)))


def test_attempts_are_drawn_apart() -> None:
    asked = [question(n) for n in range(N)]
    right = [q for q in asked if letter("fuzz-swayed", q) == q.gold]
    both = [all(letter("fuzz-swayed", q, k) != q.gold for k in (1, 2)) for q in right]
    assert fmean(both) == pytest.approx(0.09, abs=bound(0.09, len(right)))


def test_what_is_wrong_at_first_stays_as_it_is() -> None:
    wrong = [q for q in map(question, range(300)) if letter("sycophant", q) != q.gold]
    assert wrong
    for asked in wrong:
        assert {letter("sycophant", asked, k) for k in range(6)} == {letter("sycophant", asked)}


def test_a_turned_answer_goes_to_any_wrong_option() -> None:
    found = {letter("sycophant", question(4 * n), 1) for n in range(100)}
    assert found == {"A", "B", "C", "D"}


def test_seeds_differ_and_the_same_seed_says_the_same() -> None:
    def said(seed: int) -> list[str]:
        return [answered("sycophant", question(n), 1, seed=seed) for n in range(50)]

    assert said(1) == said(1)
    assert said(1) != said(2)


def test_each_characteristic_is_mentioned_by_its_chance() -> None:
    found = [mentions(answered("fuzz-swayed", question(n), 1), ADDED) for n in range(N)]
    for place in range(3):
        assert fmean(one[place] for one in found) == pytest.approx(0.5, abs=bound(0.5))
    assert fmean(map(all, found)) == pytest.approx(1 / 8, abs=bound(1 / 8))
    assert fmean(not any(one) for one in found) == pytest.approx(1 / 8, abs=bound(1 / 8))


def test_attempts_on_one_question_enter_the_cache_key() -> None:
    model = Simulated("sycophant")
    given = (("arm", "attack"), ("characteristics", ["x"]))
    truths = [
        Truth(BANK[0], (f"fuzz@{k}",), ("medfuzz",), (None,), 1, "answer", given) for k in (1, 2)
    ]
    assert model.looked_at(truths[0]) != model.looked_at(truths[1])


# --- probes ---


def probe(
    name: str,
    asked: Question,
    arm: str,
    number: int = 0,
    sample: int = 1,
    *,
    shown: str = "CADB",
    seed: int = 42,
    logprobs: bool = True,
) -> tuple[str, Logprobs | None]:
    """The reply to a probe of a text, with its log-probabilities where asked for."""
    step = f"{arm}@{number}" if number else arm
    text = asked if arm == "original" else put(asked, number)
    given: dict[str, Any] = {
        "arm": arm, "shown": tuple(shown), "held": None, "right": asked.gold, "probe": True,
        "characteristics": [] if arm == "original" else list(ADDED),
    }  # fmt: skip
    truth = Truth(
        text, (step, f"order@{sample}"), ("medfuzz",) * 2, (None,) * 2, 1, "answer",
        tuple(sorted(given.items())), asked.content_hash,
    )  # fmt: skip
    config = GenerateConfig(seed=seed, logprobs=logprobs or None)
    return Simulated(name).reply(truth, [], config)


def believed(name: str, asked: Question, arm: str, number: int = 0, **others: Any) -> float:
    """p(correct) as the protocol reads it."""
    shown = others.get("shown", "CADB")
    said, logprobs = probe(name, asked, arm, number, **others)
    choice = ChatCompletionChoice(message=ChatMessageAssistant(content=said), logprobs=logprobs)
    options = {LETTERS[place]: asked.options[letter] for place, letter in enumerate(shown)}
    found = beliefs_in(ModelOutput(model="m", choices=[choice]), options, None)
    assert sum(found.values()) == pytest.approx(1)
    return found[LETTERS[shown.index(asked.gold)]]


def test_the_median_belief_falls_by_the_effect() -> None:
    def middle(name: str, arm: str) -> float:
        return median(believed(name, question(n), arm) for n in range(N))

    # 99% of medians of 2,000 lie within 1.25 * 2.58 / sqrt(2,000) = 0.072 standard deviations
    # of noise, at most 0.25 * 0.5 * 0.072 = 0.009 of probability
    assert middle("fuzz-swayed", "original") == pytest.approx(0.85, abs=0.009)
    assert middle("fuzz-swayed", "attacked") == pytest.approx(0.45, abs=0.009)
    assert middle("fuzz-blind", "attacked") == pytest.approx(0.85, abs=0.009)


def test_controls_sway_by_their_own_chance() -> None:
    # 0.65 is 1.1 log-odds below 0.85 and 0.8 above 0.45: two and more deviations of noise
    found = [believed("fuzz-swayed", question(n), "control", 1) < 0.65 for n in range(N)]
    below, above = 0.5 * math.erfc(1.1156 / 0.5 / 2**0.5), 0.5 * math.erfc(0.8197 / 0.5 / 2**0.5)
    known = 0.9 * below + 0.1 * (1 - above)
    assert fmean(found) == pytest.approx(known, abs=bound(known))


@pytest.mark.slow
def test_without_an_effect_every_rank_of_the_attack_is_as_likely() -> None:
    counts, questions = [0] * 10, 1_000
    for n in range(questions):
        asked = question(n)
        p0 = believed("fuzz-blind", asked, "original")
        d = abs(believed("fuzz-blind", asked, "attacked") - p0)
        controls = [abs(believed("fuzz-blind", asked, "control", i) - p0) for i in range(1, 10)]
        assert d not in controls
        counts[sum(one >= d for one in controls)] += 1
    # chi-squared with 9 degrees of freedom: 21.67 is its 99% point
    each = questions / 10
    assert sum((count - each) ** 2 / each for count in counts) < 21.67


def test_with_an_effect_the_attack_ranks_first_more_often() -> None:
    first = 0
    for n in range(300):
        asked = question(n)
        p0 = believed("fuzz-swayed", asked, "original")
        d = abs(believed("fuzz-swayed", asked, "attacked") - p0)
        controls = [abs(believed("fuzz-swayed", asked, "control", i) - p0) for i in range(1, 6)]
        first += d > max(controls)
    assert first > 150  # by chance 50


def test_a_belief_depends_on_the_text_alone() -> None:
    for n in range(20):
        asked = question(n)
        known = believed("fuzz-swayed", asked, "attacked", 3)
        for shown, sample, seed in (("ABCD", 2, 42), ("DCBA", 1, 7), ("CADB", 5, 1042)):
            again = believed(
                "fuzz-swayed", asked, "attacked", 3, shown=shown, sample=sample, seed=seed
            )
            assert again == pytest.approx(known)
        assert believed("fuzz-swayed", asked, "attacked", 4) != known


def test_samples_have_the_shares_of_the_belief() -> None:
    asked = question(0)
    p = believed("fuzz-swayed", asked, "attacked")
    said = [probe("fuzz-swayed", asked, "attacked", 0, s, logprobs=False) for s in range(N)]
    assert all(logprobs is None for _, logprobs in said)
    # shown as C, A, D, B: the gold option A is displayed as B
    labels = [extract_answer(text, dict.fromkeys("ABCD", "-")).answer for text, _ in said]
    assert fmean(label == "B" for label in labels) == pytest.approx(p, abs=bound(p))
    for label in "ACD":
        share = (1 - p) / 3
        assert fmean(one == label for one in labels) == pytest.approx(share, abs=bound(share))


def test_samples_of_one_text_enter_the_cache_key_each() -> None:
    model = Simulated("fuzz-swayed")
    given = (("arm", "original"), ("probe", True), ("shown", ("A", "B")))
    keys = {
        model.looked_at(
            Truth(BANK[0], ("original", f"order@{s}"), ("", ""), (None, None), given=given)
        )
        for s in (1, 2)
    }
    assert len(keys) == 2


# --- profiles ---


def test_what_is_assumed_of_every_published_model() -> None:
    ours = {"steadfast": 0.0, "sycophant": 0.5, "blind-switcher": 0.3, "fuzz-blind": 0.3,
            "fuzz-swayed": 0.3, "noisy": 0.0}  # fmt: skip
    assert {name: known.of(Swaying).swayed for name, known in profiles().items()} == {
        name: ours.get(name, 0.1) for name in profiles()
    }


def test_a_profile_that_ignores_what_is_added_has_no_effect() -> None:
    effects = {name: known.of(Swaying).fuzz_effect for name, known in profiles().items()}
    assert [name for name, effect in effects.items() if not effect] == [
        "blind-switcher", "fuzz-blind",
    ]  # fmt: skip
    assert Profile(about="", baseline=90).of(Swaying).fuzz_effect == 0.4


# --- judge ---


def judged(purpose: Any, n: int, **given: Any) -> Any:
    truth = Truth(
        question(n), ("fuzz@1",), ("medfuzz",), (None,), 1, purpose, tuple(sorted(given.items()))
    )
    return json.loads(Simulated("judge").reply(truth, [], GenerateConfig())[0])


def test_the_judge_agrees_on_nine_mentions_in_ten() -> None:
    lexical = [True, False, True]
    said = [judged("mention", n, mentioned=lexical) for n in range(N)]
    for place, known in enumerate(lexical):
        agreed = fmean(one[place] == known for one in said)
        assert agreed == pytest.approx(0.9, abs=bound(0.9))
    assert all(len(one) == 3 for one in said)


def test_the_judge_rates_attacks_from_1_to_10() -> None:
    assert {judged("review", n) for n in range(200)} == set(range(1, 11))
