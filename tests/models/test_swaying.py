"""Simulated targets of MedFuzz: replies have the chances of their profile."""

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
N = 1_000
CHARACTERISTICS = (
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


def modified(original: Question, k: int) -> Question:
    return original.model_copy(update={"stem": f"{original.stem} [simulated] {k}"})


def reply(
    name: str, target: Question, k: int = 0, replicate: int = 1, seed: int = 42, arm: str = "attack"
) -> str:
    """The reply to the plain question, or to its k-th modification."""
    truth = Truth(target, replicate=replicate)
    if k:
        step, family = (f"fuzz@{k}", "medfuzz") if arm == "attack" else (f"inert@{k}", "control")
        texts = list(CHARACTERISTICS) if arm == "attack" else []
        truth = Truth(
            modified(target, k if arm == "attack" else 100 + k), (step,), (family,), (None,),
            replicate, "answer", (("arm", arm), ("characteristics", texts)), target.content_hash,
        )  # fmt: skip
    return Simulated(name).reply(truth, [], GenerateConfig(seed=seed))[0]


def letter(name: str, target: Question, k: int = 0, replicate: int = 1, arm: str = "attack") -> str:
    answer = extract_answer(reply(name, target, k, replicate, arm=arm), target.options).answer
    assert answer is not None
    return answer


def turning_attempt(name: str, target: Question) -> int | None:
    """The attempt of five that turns a right answer; None without one, 0 for a wrong answer."""
    if letter(name, target) != target.gold:
        return 0
    turns = (k for k in range(1, 6) if letter(name, target, k) != target.gold)
    return next(turns, None)


QUESTIONS = [question(n) for n in range(N)]

# --- attacks ---


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ["sycophant", "fuzz-swayed", "gpt-4.1", "steadfast"])
def test_the_share_turned_by_attempt_k_is_predicted(name: str) -> None:
    chance = profile(name).of(Swaying).swayed
    attempts = [turning_attempt(name, target) for target in QUESTIONS]
    right = [k for k in attempts if k != 0]
    baseline = profile(name).baseline / 100
    assert len(right) / N == pytest.approx(baseline, abs=bound(baseline))
    for k in range(1, 6):
        share = sum(attempt is not None and attempt <= k for attempt in right) / len(right)
        expected_share = 1 - (1 - chance) ** k
        assert share == pytest.approx(expected_share, abs=bound(expected_share, len(right)))


def test_noise_and_cause_have_their_chances() -> None:
    noisy = profile("fuzz-noisy")
    noise = noisy.noise * (1 - noisy.baseline / 100)
    cause = noisy.of(Swaying).swayed
    assert noise > 0 < cause
    right = [q for q in QUESTIONS if letter("fuzz-noisy", q) == q.gold]
    assert len(right) / N == pytest.approx(0.7, abs=bound(0.7))
    shares = {}
    for arm, chance in (("attack", 1 - (1 - noise) * (1 - cause)), ("inert", noise)):
        wrong = [letter("fuzz-noisy", q, k, arm=arm) != q.gold for q in right for k in (1, 2)]
        shares[arm] = fmean(wrong)
        assert shares[arm] == pytest.approx(chance, abs=bound(chance, len(wrong)))
    # net of the inert rewrites, of the answers that they leave, is the cause
    net = (shares["attack"] - shares["inert"]) / (1 - shares["inert"])
    assert net == pytest.approx(cause, abs=0.04)


def test_replicates_and_attempts_are_independent() -> None:
    def is_right(q: Question, k: int, replicate: int) -> bool:
        return letter("fuzz-swayed", q, k, replicate) == q.gold

    right = [q for q in QUESTIONS if is_right(q, 0, 1)]
    twice = [not is_right(q, 1, 1) and not is_right(q, 2, 1) for q in right]
    assert fmean(twice) == pytest.approx(0.09, abs=bound(0.09, len(right)))
    right = [q for q in right if is_right(q, 0, 2)]
    twice = [not is_right(q, 1, 1) and not is_right(q, 1, 2) for q in right]
    assert fmean(twice) == pytest.approx(0.09, abs=bound(0.09, len(right)))


def test_wrong_first_answers_stay() -> None:
    wrong = [q for q in QUESTIONS[:300] if letter("sycophant", q) != q.gold]
    assert wrong
    for target in wrong:
        assert {letter("sycophant", target, k) for k in range(6)} == {letter("sycophant", target)}
    assert {letter("sycophant", question(4 * n), 1) for n in range(100)} == {"A", "B", "C", "D"}


def test_seeds_differ_and_the_same_seed_gives_the_same_replies() -> None:
    def replies(seed: int) -> list[str]:
        return [reply("sycophant", target, 1, seed=seed) for target in QUESTIONS[:50]]

    assert replies(1) == replies(1)
    assert replies(1) != replies(2)


def test_characteristics_are_mentioned_by_their_chance() -> None:
    readings = [mentions(reply("fuzz-swayed", target, 1), CHARACTERISTICS) for target in QUESTIONS]
    for place in range(3):
        share = fmean(reading[place] for reading in readings)
        assert share == pytest.approx(0.5, abs=bound(0.5))
    assert fmean(map(all, readings)) == pytest.approx(1 / 8, abs=bound(1 / 8))
    assert fmean(not any(reading) for reading in readings) == pytest.approx(1 / 8, abs=bound(1 / 8))


def test_attempts_and_samples_enter_the_cache_key() -> None:
    model = Simulated("fuzz-swayed")
    attempt = (("arm", "attack"), ("characteristics", ["x"]))
    probe_values = (("arm", "original"), ("probe", True), ("shown", ("A", "B")))
    keys = {
        model.looked_at(truth)
        for n in (1, 2)
        for truth in (
            Truth(BANK[0], (f"fuzz@{n}",), ("medfuzz",), (None,), 1, "answer", attempt),
            Truth(BANK[0], ("original", f"order@{n}"), ("", ""), (None, None), given=probe_values),
        )
    }
    assert len(keys) == 4


# --- probes ---


def probe(
    name: str,
    target: Question,
    arm: str,
    number: int = 0,
    sample: int = 1,
    *,
    letters: str = "CADB",
    seed: int = 42,
    logprobs: bool = True,
) -> tuple[str, Logprobs | None]:
    """The reply to a probe of a text, with its log-probabilities on request."""
    step = f"{arm}@{number}" if number else arm
    text = target if arm == "original" else modified(target, number)
    values: dict[str, Any] = {
        "arm": arm, "shown": tuple(letters), "held": None, "right": target.gold, "probe": True,
        "characteristics": [] if arm == "original" else list(CHARACTERISTICS),
    }  # fmt: skip
    truth = Truth(
        text, (step, f"order@{sample}"), ("medfuzz",) * 2, (None,) * 2, 1, "answer",
        tuple(sorted(values.items())), target.content_hash,
    )  # fmt: skip
    config = GenerateConfig(seed=seed, logprobs=logprobs or None)
    return Simulated(name).reply(truth, [], config)


def belief(name: str, target: Question, arm: str, number: int = 0, **changes: Any) -> float:
    """p(correct) as the protocol reads it."""
    letters = changes.get("letters", "CADB")
    text, logprobs = probe(name, target, arm, number, **changes)
    choice = ChatCompletionChoice(message=ChatMessageAssistant(content=text), logprobs=logprobs)
    options = {LETTERS[place]: target.options[letter] for place, letter in enumerate(letters)}
    beliefs = beliefs_in(ModelOutput(model="m", choices=[choice]), options, None)
    assert sum(beliefs.values()) == pytest.approx(1)
    return beliefs[LETTERS[letters.index(target.gold)]]


def test_the_median_belief_falls_by_the_effect() -> None:
    def middle(name: str, arm: str) -> float:
        return median(belief(name, target, arm) for target in QUESTIONS)

    # 99% of medians of 1,000 lie within 1.25 * 2.58 / sqrt(1,000) = 0.102 standard deviations
    # of noise, at most 0.25 * 0.5 * 0.102 = 0.013 of probability
    assert middle("fuzz-swayed", "original") == pytest.approx(0.85, abs=0.013)
    assert middle("fuzz-swayed", "attacked") == pytest.approx(0.45, abs=0.013)
    assert middle("fuzz-blind", "attacked") == pytest.approx(0.85, abs=0.013)


def test_controls_sway_by_their_own_chance() -> None:
    # 0.65 is 1.1 log-odds below 0.85 and 0.8 above 0.45: two and more deviations of noise
    is_low = [belief("fuzz-swayed", target, "control", 1) < 0.65 for target in QUESTIONS]
    below, above = 0.5 * math.erfc(1.1156 / 0.5 / 2**0.5), 0.5 * math.erfc(0.8197 / 0.5 / 2**0.5)
    share = 0.9 * below + 0.1 * (1 - above)
    assert fmean(is_low) == pytest.approx(share, abs=bound(share))


def shifts(name: str, target: Question, controls: int) -> tuple[float, list[float]]:
    """Changes of the belief by the attack and by its controls."""
    before = belief(name, target, "original")
    control_beliefs = [belief(name, target, "control", i) for i in range(1, controls + 1)]
    attack = abs(belief(name, target, "attacked") - before)
    return attack, [abs(value - before) for value in control_beliefs]


@pytest.mark.slow
def test_without_an_effect_every_rank_is_equally_likely() -> None:
    counts = [0] * 10
    for target in QUESTIONS[:1000]:
        attack, controls = shifts("fuzz-blind", target, 9)
        assert attack not in controls
        counts[sum(shift >= attack for shift in controls)] += 1
    # chi-squared with 9 degrees of freedom: 21.67 is its 99% point
    assert sum((count - 100) ** 2 / 100 for count in counts) < 21.67


def test_with_an_effect_the_attack_ranks_first_more_often() -> None:
    first = 0
    for target in QUESTIONS[:200]:
        attack, controls = shifts("fuzz-swayed", target, 5)
        first += attack > max(controls)
    assert first > 100  # by chance 33


def test_a_belief_depends_only_on_the_text() -> None:
    for target in QUESTIONS[:20]:
        value = belief("fuzz-swayed", target, "attacked", 3)
        for letters, sample, seed in (("ABCD", 2, 42), ("DCBA", 1, 7), ("CADB", 5, 1042)):
            copy = belief(
                "fuzz-swayed", target, "attacked", 3, letters=letters, sample=sample, seed=seed
            )
            assert copy == pytest.approx(value)
        assert belief("fuzz-swayed", target, "attacked", 4) != value


def test_samples_have_the_shares_of_the_belief() -> None:
    p = belief("fuzz-swayed", question(0), "attacked")
    samples = [
        probe("fuzz-swayed", question(0), "attacked", 0, n, logprobs=False) for n in range(N)
    ]
    assert all(logprobs is None for _, logprobs in samples)
    labels = [extract_answer(text, dict.fromkeys("ABCD", "-")).answer for text, _ in samples]
    # displayed as C, A, D, B: the label of the gold option A is B
    for label, share in {"B": p, **dict.fromkeys("ACD", (1 - p) / 3)}.items():
        assert labels.count(label) / N == pytest.approx(share, abs=bound(share))


# --- profiles ---


def test_profiles_have_their_effects() -> None:
    ours = {"steadfast": 0.0, "sycophant": 0.5, "blind-switcher": 0.3, "fuzz-blind": 0.3,
            "fuzz-swayed": 0.3, "noisy": 0.0}  # fmt: skip
    chances = {name: entry.of(Swaying) for name, entry in profiles().items()}
    assert {name: entry.swayed for name, entry in chances.items()} == {
        name: ours.get(name, 0.1) for name in profiles()
    }
    without_effect = [name for name, entry in chances.items() if not entry.fuzz_effect]
    assert without_effect == ["blind-switcher", "fuzz-blind"]
    assert Profile(about="", baseline=90).of(Swaying).fuzz_effect == 0.4


# --- judge ---


def judge(purpose: Any, n: int, **values: Any) -> Any:
    truth = Truth(
        question(n), ("fuzz@1",), ("medfuzz",), (None,), 1, purpose, tuple(sorted(values.items()))
    )
    return json.loads(Simulated("judge").reply(truth, [], GenerateConfig())[0])


def test_the_judge_agrees_on_nine_mentions_in_ten_and_rates_from_1_to_10() -> None:
    lexical = [True, False, True]
    judgements = [judge("mention", n, mentioned=lexical) for n in range(N)]
    for place, label in enumerate(lexical):
        agreement = fmean(judgement[place] == label for judgement in judgements)
        assert agreement == pytest.approx(0.9, abs=bound(0.9))
    assert {len(judgement) for judgement in judgements} == {3}
    assert {judge("review", n) for n in range(200)} == set(range(1, 11))
