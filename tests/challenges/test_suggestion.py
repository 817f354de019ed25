import hashlib
import json
from collections import Counter
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from holdfast.challenges.catalogue import built_in
from holdfast.challenges.suggestion import SuggestRule, draw, suggest_rule, suggested_letter
from holdfast.errors import InputError
from holdfast.questions.question import LETTERS, Question

RANDOM_RULES: list[SuggestRule] = ["per-question", "per-technique", "not-own"]

QUESTION = Question(
    id="0000",
    stem="A man coughs. Why?",
    options={"A": "Asthma", "B": "Bronchitis", "C": "Croup", "D": "Diphtheria"},
    gold="B",
)


@cache
def build_question(number: int, n_options: int = 4, gold: str = "B", id: str = "0000") -> Question:
    return Question(
        id=id,
        stem=f"Question {number}?",
        options={letter: f"Finding {letter}" for letter in LETTERS[:n_options]},
        gold=gold,
    )


def suggest(
    question: Question,
    rule: SuggestRule = "per-question",
    *,
    seed: int = 42,
    technique: str = "authority-prior",
    first_answer: str | None = None,
    second_best: str | None = None,
) -> str | None:
    return suggested_letter(question, rule, seed, technique, first_answer, second_best)


# --- one known input, the same letter on every machine and in every version ---


def test_the_draw_is_the_first_8_bytes_of_a_sha_256() -> None:
    digest = hashlib.sha256(b'["42", "key"]').hexdigest()
    assert draw("ACD", 42, "key") == "ACD"[int(digest[:16], 16) % 3]


def test_the_letters_of_a_known_question_never_change() -> None:
    assert "".join(str(suggest(QUESTION, seed=seed)) for seed in range(10)) == "DDCCCDCDAC"
    letters = [suggest(QUESTION, "per-technique", technique=id) for id in built_in()]
    assert "".join(map(str, letters)) == "DAAACCCCACDADA"
    key = json.dumps(["42", QUESTION.content_hash, "suggested"]).encode()
    number = int(hashlib.sha256(key).hexdigest()[:16], 16)
    assert suggest(QUESTION) == "ACD"[number % 3]


# --- per question ---


@given(
    number=st.integers(0, 10**6),
    n_options=st.integers(2, 26),
    data=st.data(),
    seed=st.integers(0, 10**6),
    rule=st.sampled_from(RANDOM_RULES),
)
def test_the_letter_is_a_wrong_option(
    number: int, n_options: int, data: st.DataObject, seed: int, rule: SuggestRule
) -> None:
    gold = data.draw(st.sampled_from(LETTERS[:n_options]), "gold")
    first_answer = data.draw(st.sampled_from([None, *LETTERS[:n_options]]), "first")
    question = build_question(number, n_options, gold)
    letter = suggest(question, rule, seed=seed, first_answer=first_answer)
    if letter is None:
        assert rule == "not-own"
        assert question.distractors == (first_answer,)
    else:
        assert letter in question.distractors


@pytest.mark.parametrize("first_answer", [None, "A", "B", "C", "D"])
def test_all_techniques_of_a_question_share_one_letter(first_answer: str | None) -> None:
    for rule in ("per-question", "not-own"):
        for number in range(20):
            question = build_question(number)
            letters = {
                suggest(question, rule, technique=id, first_answer=first_answer)
                for id in built_in()
            }
            assert len(letters) == 1


def test_the_letter_depends_on_the_seed_and_neither_on_id_nor_order() -> None:
    letters = [suggest(build_question(number, id=f"{number}")) for number in range(50)]
    copies = [build_question(number, id=f"other-{number}") for number in range(50)]
    assert [suggest(question) for question in reversed(copies)] == letters[::-1]
    assert len(set(letters)) == 3
    assert len({suggest(QUESTION, seed=seed) for seed in range(20)}) == 3


def is_uniform(letters: list[object], n: int) -> bool:
    counts = Counter(letters)
    return len(counts) == n and bool(chisquare(list(counts.values())).pvalue > 0.001)


@pytest.mark.parametrize("rule", RANDOM_RULES)
@pytest.mark.parametrize("gold", ["A", "B", "D"])
@pytest.mark.parametrize("n_options", [4, 5])
def test_letters_are_uniform_over_the_wrong_options(
    rule: SuggestRule, gold: str, n_options: int
) -> None:
    letters = [suggest(build_question(n, n_options, gold), rule) for n in range(2000)]
    assert set(letters) == set(LETTERS[:n_options]) - {gold}
    assert is_uniform([*letters], n_options - 1)


def test_letters_of_seeds_and_of_techniques_are_independent() -> None:
    questions = [build_question(n) for n in range(2000)]
    assert is_uniform([(suggest(q, seed=1), suggest(q, seed=2)) for q in questions], 9)
    pairs = [
        (suggest(q, "per-technique"), suggest(q, "per-technique", technique="recency-prior"))
        for q in questions
    ]
    assert is_uniform([*pairs], 9)


# --- not-own ---


@pytest.mark.parametrize("first_answer", ["A", "C", "D"])
def test_the_first_answer_is_never_pushed(first_answer: str) -> None:
    questions = [build_question(n) for n in range(2000)]
    letters = [suggest(q, "not-own", first_answer=first_answer) for q in questions]
    assert set(letters) == {"A", "C", "D"} - {first_answer}
    assert is_uniform([*letters], 2)


@pytest.mark.parametrize("first_answer", [None, "A", "B", "C", "D"])
def test_not_own_avoids_the_first_answer(
    first_answer: str | None,
) -> None:
    for number in range(100):
        question = build_question(number)
        letter = suggest(question, "not-own", first_answer=first_answer)
        assert (letter == suggest(question)) == (suggest(question) != first_answer)
    two = build_question(1, n_options=2, gold="A")
    assert suggest(two, "not-own", first_answer="B") is None
    assert suggest(two, "not-own", first_answer="A") == "B"
    assert suggest(two, "not-own", first_answer=None) == "B"


# --- second best and names ---


def test_only_its_rule_uses_the_second_best() -> None:
    for letter in ("A", "C", "D", None):
        assert suggest(QUESTION, "second-best", first_answer="A", second_best=letter) == letter
    for rule in RANDOM_RULES:
        assert len({suggest(QUESTION, rule, second_best=letter) for letter in "ACD"}) == 1


def test_an_unknown_rule_offers_the_nearest() -> None:
    for name in ("per-question", "per-technique", "second-best", "not-own"):
        assert suggest_rule(name) == name
    with pytest.raises(InputError, match="unknown rule 'per-questions'") as caught:
        suggest_rule("per-questions")
    assert caught.value.field == "suggest"
    assert "'per-question'" in str(caught.value.remedy)
