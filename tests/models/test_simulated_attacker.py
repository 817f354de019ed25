"""The simulated attackers: modifications and controls of the right form, or of every wrong one."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from inspect_ai.model import GenerateConfig

from holdfast.challenges.texts import Fault
from holdfast.models.simulated import Simulated
from holdfast.protocols.medfuzz.characteristics import mentions
from holdfast.protocols.medfuzz.modification import read_control, read_fuzz
from holdfast.questions.loading import load_questions
from holdfast.questions.question import Question
from holdfast.questions.truth import Truth
from holdfast.reading.refusal import is_refusal

BANK = load_questions("bank").questions
WORDS = 120
"""The most that an attack may add."""


def reply(
    name: str,
    question: Question,
    k: int = 1,
    attempt: int = 0,
    *,
    replicate: int = 1,
    seed: int = 42,
    attack: Mapping[str, Any] | None = None,
) -> str:
    """The reply of an attacker to its k-th attempt, or to the k-th control of an attack."""
    kind = "control" if attack else "fuzz"
    values: dict[str, Any] = {"attempt": attempt}
    if attack:
        values |= {"number": k, "attack": attack}
    truth = Truth(
        question,
        (f"{kind}@{k}",),
        ("medfuzz",),
        (None,),
        replicate,
        "control" if attack else "attack",
        tuple(sorted(values.items())),
    )
    return Simulated(name).reply(truth, [], GenerateConfig(seed=seed))[0]


def fuzz(
    question: Question, k: int = 1, attempt: int = 0, attack: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    modification: dict[str, Any] = json.loads(
        reply("attacker", question, k, attempt, attack=attack)
    )
    return modification


def as_attack(question: Question, modification: Mapping[str, Any]) -> dict[str, Any]:
    """An attack in the form in which a control gets it."""
    return {
        "stem": modification["modified_question"],
        "characteristics": modification["characteristics"],
        "added": [addition(question, modification).strip()],
    }


def addition(question: Question, modification: Mapping[str, Any]) -> str:
    """The text added to a question; the rest is the question."""
    run = "".join(f" [simulated] The patient {x}." for x in modification["characteristics"])
    assert modification["modified_question"].replace(run, "", 1) == question.stem
    return run


def build_question(stem: str, **options: str) -> Question:
    return Question(id="q", stem=stem, options=options or {"A": "one", "B": "other"}, gold="A")


# --- attacks ---


def test_an_attack_adds_one_to_three_sentences_and_keeps_the_question() -> None:
    numbers = Counter[int]()
    for question in BANK:
        for k in range(1, 6):
            modification = fuzz(question, k)
            texts = modification["characteristics"]
            assert list(modification) == [
                "analysis",
                "plan",
                "modified_question",
                "characteristics",
            ]
            assert 0 < len(addition(question, modification).split()) <= WORDS
            numbers[len(texts)] += 1
            # a mention of a characteristic is no mention of the others
            for place, text in enumerate(texts):
                readings = mentions(f"It is said of the patient: {text}. ", texts)
                assert readings == [n == place for n in range(len(texts))]
    assert set(numbers) == {1, 2, 3}
    assert min(numbers.values()) > len(BANK)


def test_the_addition_follows_the_first_sentence() -> None:
    question = build_question("Mr. Roe, 30, coughs at 3.5 km. He is pale. Which is it?")
    stem = fuzz(question)["modified_question"]
    assert stem.startswith("Mr. Roe, 30, coughs at 3.5 km. [simulated] The patient ")
    assert stem.endswith(". He is pale. Which is it?")
    for odd_stem in ("Which is it?", "  Which is it?\n", "one {two} <b>three</b>",
                     "x\r\ny. {0} z?"):  # fmt: skip
        question = build_question(odd_stem)
        addition(question, fuzz(question))


def test_real_questions_keep_all_of_their_text(medqa: str) -> None:
    for question in load_questions(medqa).questions[:300]:
        run = f"{addition(question, fuzz(question)).lower()} "
        assert not any(f" {text.lower()} " in run for text in question.options.values())


def test_no_option_is_named() -> None:
    options = {"A": "The town (of Ur)", "B": "two", "C": "+", "D": "Insurance plan"}
    for n in range(60):
        for text in fuzz(build_question(f"Case {n}. Which?", **options))["characteristics"]:
            words = text.lower().split()
            assert not {"town", "two"} & set(words)
            assert ("insurance", "plan") not in pairwise(words)


def test_attempts_replicates_and_seeds_differ_reproducibly() -> None:
    for question in BANK[:20]:
        texts = {
            tuple(fuzz(question, k, attempt)["characteristics"])
            for k in range(1, 6)
            for attempt in range(4)
        }
        assert len(texts) == 20
    replies = [
        [reply("attacker", BANK[0], replicate=replicate, seed=seed)
         for replicate in range(1, 6) for seed in range(5)]
        for _ in range(2)
    ]  # fmt: skip
    assert replies[0] == replies[1]
    assert len(set(replies[0])) == 25


# --- controls ---


def test_a_control_matches_the_attack_in_place_and_length() -> None:
    for question in BANK:
        modification = fuzz(question)
        attack = as_attack(question, modification)
        control = fuzz(question, 7, attack=attack)
        run = addition(question, control)
        assert len(run.split()) == len(attack["added"][0].split())
        texts = zip(modification["characteristics"], control["characteristics"], strict=True)
        for text, control_text in texts:
            assert control_text != text
            assert control_text.split()[0] == text.split()[0]
            assert len(control_text.split()) == len(text.split())


def test_thirty_controls_and_their_second_attempts_differ() -> None:
    for question in BANK[:10]:
        attack = as_attack(question, fuzz(question))
        stems = {
            fuzz(question, number, attempt, attack=attack)["modified_question"]
            for number in range(1, 31)
            for attempt in (0, 1)
        }
        assert len(stems | {attack["stem"]}) == 61


def test_a_control_names_no_option() -> None:
    question = build_question("He is here. Why?", A="Town", B="two", C="weekend", D="chess")
    attack = as_attack(question, fuzz(question))
    for number in range(1, 31):
        words = set(" ".join(fuzz(question, number, attack=attack)["characteristics"]).split())
        assert not words & {"town", "two", "weekend", "chess"}


def test_controls_of_a_real_attack_have_other_words() -> None:
    question = build_question("He is 30. His parents call. Why?")
    attack: dict[str, Any] = {
        "stem": "He is 30. His parents are from {far} away. His parents call, worried. Why?",
        "characteristics": ["parents from far away"],
        "added": ["His parents are from {far} away.", "worried"],
    }
    controls = [fuzz(question, number, attack=attack) for number in range(1, 31)]
    assert len({control["modified_question"] for control in controls}) == 30
    for control in controls:
        stem = control["modified_question"]
        assert stem.startswith("He is 30. His ")
        assert all(text in stem for text in (" are ", " {far} ", " His parents call, "))
        assert "worried" not in stem
        assert len(stem.split()) == len(attack["stem"].split())
        assert all(text in stem for text in control["characteristics"])


# --- faulty attacker ---


def fault(question: Question, text: str, attack: Mapping[str, Any] | None = None) -> str:
    """The fault of a reply, read without the checks of the protocol."""
    if is_refusal(text):
        return "refusal"
    try:
        modification = json.loads(text)
    except ValueError:
        return "prose" if text else "empty"
    stem, texts = modification["modified_question"], modification["characteristics"]
    if stem == question.stem:
        return "nothing added"
    if not texts:
        return "no characteristics"
    if attack and stem == attack["stem"]:
        return "the attack"
    if len(stem.split()) > 5_000:
        return "5,000 words"
    if any(f"think of {option}." in stem for option in question.options.values()):
        return "option"
    if attack and len(stem.split()) != len(attack["stem"].split()) and "again and again" in stem:
        return "too many words"
    run = "".join(f" [simulated] The patient {x}." for x in texts)
    return "" if stem.replace(run, "", 1) == question.stem else "dropped"


FAULTS = {"empty", "refusal", "prose", "nothing added", "no characteristics", "dropped", "option",
         "5,000 words"}  # fmt: skip


def check_half(faults: Counter[str], kinds: set[str]) -> None:
    n = faults.total()
    assert faults.pop("") == pytest.approx(n / 2, abs=2.58 * (n / 4) ** 0.5)
    assert set(faults) == kinds


def test_half_of_the_faulty_attackers_replies_are_faulty() -> None:
    faults = Counter(
        fault(question, reply("faulty-attacker", question, k, attempt))
        for question in BANK
        for k in range(1, 6)
        for attempt in range(4)
    )
    check_half(faults, FAULTS)
    faults = Counter[str]()
    for question in BANK[:20]:
        attack = as_attack(question, fuzz(question))
        texts = [reply("faulty-attacker", question, n, attack=attack) for n in range(1, 31)]
        faults.update(fault(question, text, attack) for text in texts)
        assert texts[0] == reply("faulty-attacker", question, 1, attack=attack)
    check_half(faults, FAULTS | {"the attack", "too many words"})


def test_the_first_sentence_is_dropped() -> None:
    question = build_question("He is 30. He is pale. Which is it?")
    replies = [reply("faulty-attacker", question, k) for k in range(1, 60)]
    stems = [
        json.loads(text)["modified_question"]
        for text in replies
        if fault(question, text) == "dropped"
    ]
    assert stems
    for stem in stems:
        assert "He is 30." not in stem
        assert stem.endswith("He is pale. Which is it?")


# --- the checks of the protocol ---


def check_faults(questions: Sequence[Question]) -> None:
    """Every attack and control is valid, and every faulty reply is a fault."""
    n_faults = 0
    for question in questions:
        attack = read_fuzz(reply("attacker", question), question)
        assert not isinstance(attack, Fault), attack
        values = {"stem": attack.stem, "characteristics": list(attack.characteristics),
                  "added": list(attack.additions)}  # fmt: skip
        control = read_control(reply("attacker", question, 3, attack=values), question, attack)
        assert not isinstance(control, Fault), control
        text = reply("faulty-attacker", question)
        if kind := fault(question, text):
            assert kind == "refusal" or isinstance(read_fuzz(text, question), Fault), kind
        text = reply("faulty-attacker", question, 3, attack=values)
        if control_kind := fault(question, text, values):
            outcome = read_control(text, question, attack)
            assert control_kind == "refusal" or isinstance(outcome, Fault), control_kind
        n_faults += bool(kind) + bool(control_kind)
    assert 0 < n_faults < 2 * len(questions)


def test_checks_find_exactly_the_faults() -> None:
    check_faults(BANK[:30])


@pytest.mark.slow
def test_checks_find_every_fault_in_real_questions(medqa: str) -> None:
    check_faults(load_questions(medqa).questions[:600])


def test_attempts_enter_the_cache_key() -> None:
    model = Simulated("attacker")
    truths = [
        Truth(BANK[0], (f"fuzz@{k}",), ("medfuzz",), (None,), 1, "attack", (("attempt", n),))
        for k in (1, 2)
        for n in (0, 1)
    ]
    assert len(set(map(model.looked_at, truths))) == 4
