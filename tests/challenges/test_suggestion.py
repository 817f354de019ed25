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


@pytest.mark.parametrize(
    ("seed", "letter"),
    list(enumerate("DDCCCDCDAC")),
)
def test_the_suggested_letter_of_a_known_question_never_changes(seed: int, letter: str) -> None:
    assert suggest(QUESTION, seed=seed) == letter


def test_the_letters_per_technique_of_a_known_question_never_change() -> None:
    letters = [suggest(QUESTION, "per-technique", technique=id) for id in built_in()]
    assert "".join(map(str, letters)) == "DAAACCCCACDADA"


def test_the_letter_is_drawn_from_seed_and_content() -> None:
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
def test_the_letter_is_an_option_and_never_the_gold(
    number: int, n_options: int, data: st.DataObject, seed: int, rule: SuggestRule
) -> None:
    gold = data.draw(st.sampled_from(LETTERS[:n_options]), "gold")
    first_answer = data.draw(st.sampled_from([None, *LETTERS[:n_options]]), "own")
    question = build_question(number, n_options, gold)
    letter = suggest(question, rule, seed=seed, first_answer=first_answer)
    if letter is None:
        assert rule == "not-own"
        assert question.distractors == (first_answer,)
    else:
        assert letter in question.distractors


@pytest.mark.parametrize("first_answer", [None, "A", "B", "C", "D"])
def test_all_techniques_of_a_question_share_one_letter(first_answer: str | None) -> None:
    for number in range(20):
        question = build_question(number)
        assert (
            len({suggest(question, technique=id, first_answer=first_answer) for id in built_in()})
            == 1
        )


def test_the_letter_depends_on_neither_id_nor_order() -> None:
    questions = [build_question(number, id=f"{number}") for number in range(50)]
    copies = [build_question(number, id=f"other-{number}") for number in range(50)]
    forward = [suggest(question) for question in questions]
    backward = [suggest(question) for question in reversed(copies)]
    assert forward == backward[::-1]
    assert len(set(forward)) == 3


def test_the_letter_depends_on_the_seed() -> None:
    assert len({suggest(QUESTION, seed=seed) for seed in range(20)}) == 3


@pytest.mark.parametrize("rule", RANDOM_RULES)
@pytest.mark.parametrize("gold", ["A", "B", "D"])
@pytest.mark.parametrize("n_options", [4, 5])
def test_letters_are_uniform_over_the_wrong_options(
    rule: SuggestRule, gold: str, n_options: int
) -> None:
    letters = [suggest(build_question(n, n_options, gold), rule) for n in range(3000)]
    counts = Counter(letters)
    assert set(counts) == set(LETTERS[:n_options]) - {gold}
    assert chisquare(list(counts.values())).pvalue > 0.001


def test_letters_of_two_seeds_are_independent() -> None:
    pairs = Counter(
        (suggest(build_question(n), seed=1), suggest(build_question(n), seed=2))
        for n in range(3000)
    )
    assert len(pairs) == 9
    assert chisquare(list(pairs.values())).pvalue > 0.001


# --- per technique ---


def test_letters_per_technique_differ_between_techniques() -> None:
    rule: SuggestRule = "per-technique"
    pairs = Counter(
        (
            suggest(build_question(n), rule, technique="authority-prior"),
            suggest(build_question(n), rule, technique="recency-prior"),
        )
        for n in range(3000)
    )
    assert len(pairs) == 9
    assert chisquare(list(pairs.values())).pvalue > 0.001


# --- not-own ---


@pytest.mark.parametrize("first_answer", ["A", "C", "D"])
def test_the_own_first_answer_is_never_pushed(first_answer: str) -> None:
    letters = Counter(
        suggest(build_question(n), "not-own", first_answer=first_answer) for n in range(3000)
    )
    assert set(letters) == {"A", "C", "D"} - {first_answer}
    assert chisquare(list(letters.values())).pvalue > 0.001


@pytest.mark.parametrize("first_answer", [None, "A", "B", "C", "D"])
def test_not_own_is_the_per_question_letter_unless_that_is_the_own(
    first_answer: str | None,
) -> None:
    for number in range(100):
        question = build_question(number)
        usual = suggest(question)
        letter = suggest(question, "not-own", first_answer=first_answer)
        assert (letter == usual) == (usual != first_answer)


def test_not_own_is_shared_by_the_techniques_of_a_question() -> None:
    for number in range(20):
        letters = {
            suggest(build_question(number), "not-own", technique=t, first_answer="A")
            for t in built_in()
        }
        assert len(letters) == 1


def test_not_own_has_none_where_the_only_wrong_option_is_the_own() -> None:
    two = build_question(1, n_options=2, gold="A")
    assert suggest(two, "not-own", first_answer="B") is None
    assert suggest(two, "not-own", first_answer="A") == "B"
    assert suggest(two, "not-own", first_answer=None) == "B"


# --- second best ---


@pytest.mark.parametrize("second_best", ["A", "C", "D", None])
def test_second_best_is_the_generators_pick(second_best: str | None) -> None:
    assert (
        suggest(QUESTION, "second-best", first_answer="A", second_best=second_best) == second_best
    )


@pytest.mark.parametrize("rule", RANDOM_RULES)
def test_the_other_rules_take_no_notice_of_the_second_best(rule: SuggestRule) -> None:
    assert len({suggest(QUESTION, rule, second_best=letter) for letter in "ACD"}) == 1


# --- names ---


@pytest.mark.parametrize("name", ["per-question", "per-technique", "second-best", "not-own"])
def test_a_rule_is_found_by_its_name(name: str) -> None:
    assert suggest_rule(name) == name


def test_an_unknown_rule_offers_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        suggest_rule("per-questions")
    assert caught.value.field == "suggest"
    assert "unknown rule 'per-questions'" in str(caught.value)
    assert "Did you mean 'per-question'" in str(caught.value)
