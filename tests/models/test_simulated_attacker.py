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
"""Most that an attack may add."""


def said(
    name: str,
    question: Question,
    k: int = 1,
    attempt: int = 0,
    *,
    replicate: int = 1,
    seed: int = 42,
    attack: Mapping[str, Any] | None = None,
) -> str:
    """What the attacker says at its k-th attempt, or as the k-th control of an attack."""
    given: dict[str, Any] = {"attempt": attempt}
    if attack:
        given |= {"number": k, "attack": attack}
    truth = Truth(
        question,
        (f"{'control' if attack else 'fuzz'}@{k}",),
        ("medfuzz",),
        (None,),
        replicate,
        "control" if attack else "attack",
        tuple(sorted(given.items())),
    )
    return Simulated(name).reply(truth, [], GenerateConfig(seed=seed))[0]


def fuzz(question: Question, k: int = 1, attempt: int = 0, **others: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said("attacker", question, k, attempt, **others))
    return found


def as_attack(question: Question, found: Mapping[str, Any]) -> dict[str, Any]:
    """As a control is told of it."""
    stem, characteristics = found["modified_question"], found["characteristics"]
    return {
        "stem": stem,
        "characteristics": characteristics,
        "added": [added(question, stem, characteristics).strip()],
    }


def added(question: Question, stem: str, characteristics: list[str]) -> str:
    """What was added, proven to be all that was."""
    run = "".join(f" [simulated] The patient {text}." for text in characteristics)
    assert stem.replace(run, "", 1) == question.stem
    return run


def asked(stem: str, **options: str) -> Question:
    return Question(id="q", stem=stem, options=options or {"A": "one", "B": "other"}, gold="A")


# --- attacks ---


def test_an_attack_adds_one_to_three_sentences_and_leaves_the_rest_alone() -> None:
    numbers = Counter[int]()
    for question in BANK:
        for k in range(1, 6):
            found = fuzz(question, k)
            assert set(found) == {
                "analysis", "plan", "modified_question", "characteristics",
            }  # fmt: skip
            run = added(question, found["modified_question"], found["characteristics"])
            assert 0 < len(run.split()) <= WORDS
            numbers[len(found["characteristics"])] += 1
    assert set(numbers) == {1, 2, 3}
    assert min(numbers.values()) > len(BANK) * 5 / 5


def test_it_adds_them_after_the_first_sentence() -> None:
    question = asked("Mr. Roe, 30, coughs at 3.5 km. He is pale. Which is it?")
    found = fuzz(question)["modified_question"]
    assert found.startswith("Mr. Roe, 30, coughs at 3.5 km. [simulated] The patient ")
    assert found.endswith(". He is pale. Which is it?")


@pytest.mark.parametrize(
    "stem", ["Which is it?", "  Which is it?\n", "one {two} <b>three</b>", "x\r\ny. {0} z?"]
)
def test_any_stem_keeps_all_of_its_text(stem: str) -> None:
    question = asked(stem)
    found = fuzz(question)
    added(question, found["modified_question"], found["characteristics"])


def test_real_questions_keep_all_of_their_text(medqa: str) -> None:
    for question in load_questions(medqa).questions[:300]:
        found = fuzz(question)
        run = added(question, found["modified_question"], found["characteristics"])
        assert not any(
            f" {text.lower()} " in f"{run.lower()} " for text in question.options.values()
        )


def test_no_option_is_named() -> None:
    kinds = {"A": "The town (of Ur)", "B": "two", "C": "+", "D": "Insurance plan"}
    for n in range(60):
        question = asked(f"Case {n}. Which?", **kinds)
        for text in fuzz(question)["characteristics"]:
            words = text.lower().split()
            assert not {"town", "two"} & set(words)
            assert ("insurance", "plan") not in pairwise(words)


def test_tries_and_attempts_never_repeat_each_other() -> None:
    for question in BANK[:20]:
        found = [tuple(fuzz(question, k, a)["characteristics"]) for k in range(1, 6)
                 for a in range(4)]  # fmt: skip
        assert len(set(found)) == 20


def test_replicates_and_seeds_differ_and_each_is_the_same_again() -> None:
    found = {
        (replicate, seed): said("attacker", BANK[0], replicate=replicate, seed=seed)
        for replicate in range(1, 6)
        for seed in range(5)
    }
    assert len(set(found.values())) == 25
    for (replicate, seed), reply in found.items():
        assert said("attacker", BANK[0], replicate=replicate, seed=seed) == reply


def test_a_mention_of_one_characteristic_is_none_of_another() -> None:
    for question in BANK:
        for k in range(1, 6):
            texts = fuzz(question, k)["characteristics"]
            for place, text in enumerate(texts):
                found = mentions(f"It is said of the patient: {text}. ", texts)
                assert found == [n == place for n in range(len(texts))]


# --- controls ---


def test_a_control_has_as_many_words_in_the_same_places() -> None:
    for question in BANK:
        found = fuzz(question)
        attack = as_attack(question, found)
        control = fuzz(question, 7, attack=attack)
        run = added(question, control["modified_question"], control["characteristics"])
        assert len(run.split()) == len(attack["added"][0].split())
        assert len(control["characteristics"]) == len(found["characteristics"])
        for text, other in zip(found["characteristics"], control["characteristics"], strict=True):
            assert other != text
            assert other.split()[:1] == text.split()[:1]
            assert len(other.split()) == len(text.split())


def test_thirty_controls_and_their_second_tries_all_differ() -> None:
    for question in BANK[:20]:
        attack = as_attack(question, fuzz(question))
        found = {
            fuzz(question, number, attempt, attack=attack)["modified_question"]
            for number in range(1, 31)
            for attempt in (0, 1)
        }
        assert len(found | {attack["stem"]}) == 61


def test_a_control_names_no_option() -> None:
    question = asked("He is here. Why?", A="Town", B="two", C="weekend", D="chess")
    attack = as_attack(question, fuzz(question))
    for number in range(1, 31):
        words = set(" ".join(fuzz(question, number, attack=attack)["characteristics"]).split())
        assert not words & {"town", "two", "weekend", "chess"}


def test_the_attack_of_another_is_filled_with_other_words() -> None:
    question = asked("He is 30. His parents call. Why?")
    attack: dict[str, Any] = {
        "stem": "He is 30. His parents are from {far} away. His parents call, worried. Why?",
        "characteristics": ["parents from far away"],
        "added": ["His parents are from {far} away.", "worried"],
    }
    found = [fuzz(question, number, attack=attack) for number in range(1, 31)]
    assert len({one["modified_question"] for one in found}) == 30
    for one in found:
        stem = one["modified_question"]
        assert stem.startswith("He is 30. His ")
        assert " are " in stem
        assert " {far} " in stem
        assert " His parents call, " in stem
        assert "worried" not in stem
        assert len(stem.split()) == len(attack["stem"].split())
        assert all(text in stem for text in one["characteristics"])


# --- faulty attacker ---


def fault(question: Question, reply: str, attack: Mapping[str, Any] | None = None) -> str:
    """What is wrong with a reply, read without the checks of the protocol."""
    if is_refusal(reply):
        return "refusal"
    try:
        found = json.loads(reply)
    except ValueError:
        return "prose" if reply else "empty"
    stem, texts = found["modified_question"], found["characteristics"]
    if stem == question.stem:
        return "nothing added"
    if not texts:
        return "no characteristics"
    if attack and stem == attack["stem"]:
        return "the attack"
    if len(stem.split()) > 5_000:
        return "5,000 words"
    if any(f"think of {text}." in stem for text in question.options.values()):
        return "option"
    if attack and len(stem.split()) != len(attack["stem"].split()) and "again and again" in stem:
        return "too many words"
    run = "".join(f" [simulated] The patient {text}." for text in texts)
    return "" if stem.replace(run, "", 1) == question.stem else "dropped"


EVERY = {"empty", "refusal", "prose", "nothing added", "no characteristics", "dropped", "option",
         "5,000 words"}  # fmt: skip


def test_half_of_the_faulty_attackers_replies_cannot_be_used_in_every_way() -> None:
    found = Counter(
        fault(question, said("faulty-attacker", question, k, attempt))
        for question in BANK
        for k in range(1, 6)
        for attempt in range(4)
    )
    n = found.total()
    assert found.pop("") == pytest.approx(n / 2, abs=2.58 * (n / 4) ** 0.5)
    assert set(found) == EVERY


def test_half_of_its_controls_too() -> None:
    found = Counter[str]()
    for question in BANK[:30]:
        attack = as_attack(question, fuzz(question))
        found.update(
            fault(question, said("faulty-attacker", question, number, attack=attack), attack)
            for number in range(1, 31)
        )
    n = found.total()
    assert found.pop("") == pytest.approx(n / 2, abs=2.58 * (n / 4) ** 0.5)
    assert set(found) == EVERY | {"the attack", "too many words"}


def test_a_faulty_reply_is_the_same_each_time() -> None:
    for question in BANK[:20]:
        assert said("faulty-attacker", question) == said("faulty-attacker", question)


def test_one_sentence_dropped_leaves_the_others() -> None:
    question = asked("He is 30. He is pale. Which is it?")
    dropped = [
        json.loads(reply)["modified_question"]
        for k in range(1, 60)
        for reply in [said("faulty-attacker", question, k)]
        if fault(question, reply) == "dropped"
    ]
    assert dropped
    for stem in dropped:
        assert "He is 30." not in stem
        assert stem.endswith("He is pale. Which is it?")


# --- the checks of the protocol ---


def test_the_checks_find_every_attack_and_control_valid_and_every_fault() -> None:
    checked(BANK)


@pytest.mark.slow
def test_they_do_so_on_real_questions(medqa: str) -> None:
    checked(load_questions(medqa).questions[:600])


def checked(questions: Sequence[Question]) -> None:
    faults = 0
    for question in questions:
        attack = read_fuzz(said("attacker", question), question)
        assert not isinstance(attack, Fault), attack
        told = {"stem": attack.stem, "characteristics": list(attack.characteristics),
                "added": list(attack.additions)}  # fmt: skip
        control = read_control(said("attacker", question, 3, attack=told), question, attack)
        assert not isinstance(control, Fault), control
        reply = said("faulty-attacker", question)
        if wrong := fault(question, reply):
            assert wrong == "refusal" or isinstance(read_fuzz(reply, question), Fault), wrong
        reply = said("faulty-attacker", question, 3, attack=told)
        if wrong_control := fault(question, reply, told):
            found = read_control(reply, question, attack)
            assert wrong_control == "refusal" or isinstance(found, Fault), wrong_control
        faults += bool(wrong) + bool(wrong_control)
    assert 0 < faults < 2 * len(questions)


# --- what an attacker is told ---


def test_attempts_enter_the_cache_key() -> None:
    model = Simulated("attacker")
    truths = [
        Truth(BANK[0], (f"fuzz@{k}",), ("medfuzz",), (None,), 1, "attack", (("attempt", n),))
        for k in (1, 2)
        for n in (0, 1)
    ]
    assert len(set(map(model.looked_at, truths))) == 4
