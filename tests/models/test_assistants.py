"""The simulated helpers of a study: their replies by purpose."""

import json
from collections import Counter
from typing import Any

import pytest
from inspect_ai.model import GenerateConfig, get_model

from holdfast.challenges.catalogue import CONTEXTS
from holdfast.challenges.cues import read_judgement
from holdfast.challenges.texts import Fault, sentence_count
from holdfast.errors import InputError
from holdfast.models.behaviour import CHOICES, PROBES, STICKS, SWITCHES, WORDINGS
from holdfast.models.simulated import Simulated
from holdfast.protocols.followup.context_generation import read_context
from holdfast.protocols.labelling import read_system
from holdfast.protocols.single_turn.distractors import read_distractors
from holdfast.questions.bank import SYSTEMS
from holdfast.questions.loading import load_questions
from holdfast.questions.question import LETTERS, Question
from holdfast.questions.truth import Purpose, Truth
from holdfast.reading.refusal import is_refusal
from holdfast.reading.reply_text import without_reasoning

BANK = load_questions("bank").questions


def ask(
    name: str,
    question: Question,
    purpose: Purpose,
    *path: str,
    suggested: str | None = None,
    **values: Any,
) -> str:
    """The reply of a helper, without any message: it depends on the truth alone."""
    letters = (None,) * (len(path) - 1) + (suggested,) if path else ()
    truth = Truth(
        question, path, ("",) * len(path), letters, 1, purpose, tuple(sorted(values.items()))
    )
    return Simulated(name).reply(truth, [], GenerateConfig())[0]


def context(name: str, question: Question, kind: str, n: int, attempt: int = 0) -> str:
    letter = question.distractors[-1]
    return ask(name, question, "context", f"{kind}@{n}", suggested=letter, attempt=attempt)


def small(**options: str) -> Question:
    return Question(id="q", stem="Which?", options=options, gold="A")


# --- generator ---


@pytest.mark.parametrize("n", [1, 2, 4, 10, 20, 100])
@pytest.mark.parametrize("kind", CONTEXTS)
def test_the_generator_writes_the_requested_sentences(kind: str, n: int) -> None:
    for question in BANK:
        outcome = read_context(kind, context("generator", question, kind, n), question, n)
        assert not isinstance(outcome, Fault)
        text, diagnosis = outcome
        assert sentence_count(text) == n
        assert text.count("[simulated]") == n
        assert (diagnosis is not None) == (kind == "alternative_context")


@pytest.mark.slow
def test_the_generator_writes_usable_texts_for_real_questions(medqa: str) -> None:
    unusable = [
        (question.id, kind, outcome)
        for question in load_questions(medqa).questions
        for kind in CONTEXTS
        for n in (1, 7)
        for text in [context("generator", question, kind, n)]
        for outcome in [read_context(kind, text, question, n)]
        if isinstance(outcome, Fault) or is_refusal(text)
    ]
    assert unusable == []


@pytest.mark.parametrize("text", ["%", "(E. coli)", "No. 5", "{question}", "Dr. X. Y.", "≥ 2.5"])
def test_odd_options_end_no_sentence(text: str) -> None:
    question = small(A=text, B=f"{text} {text}")
    for kind in CONTEXTS:
        for n in (1, 4):
            reply = context("generator", question, kind, n)
            assert not isinstance(read_context(kind, reply, question, n), Fault)


def test_the_generators_second_best_is_a_wrong_option_and_any_of_them() -> None:
    options = {letter: f"finding {letter}" for letter in LETTERS[:4]}
    questions = [
        Question(id="q", stem=f"Which ({n})?", options=options, gold="B") for n in range(300)
    ]
    letters = Counter(
        ask("generator", question, "context", "second-best") for question in questions
    )
    assert set(letters) == {"A", "C", "D"}
    assert min(letters.values()) > 60


def test_misleading_texts_name_the_wrong_option_and_edge_cases_the_right_one() -> None:
    question = small(A="Alpha", B="Beta", C="Gamma")
    misleading = context("generator", question, "misleading_context", 4)
    assert "Gamma" in misleading
    assert "Alpha" not in misleading
    assert "Alpha" in context("generator", question, "edge_case_context", 4)
    alternative = context("generator", question, "alternative_context", 4)
    assert not any(option in alternative for option in question.options.values())


def test_the_generator_writes_a_new_text_for_each_letter() -> None:
    for question in BANK:
        letters = question.distractors[:2]
        reply = ask("generator", question, "distractors", letters=letters, attempt=0)
        outcome = read_distractors(reply, question, letters)
        assert not isinstance(outcome, Fault)
        assert set(outcome) == set(letters)
        assert all(text.startswith("[simulated]") for text in outcome.values())


# --- faulty generator ---


def test_half_of_the_faulty_generators_replies_are_unusable() -> None:
    kinds: Counter[str] = Counter()
    usable = 0
    for question in BANK:
        for kind in CONTEXTS:
            for attempt in range(4):
                reply = context("faulty-generator", question, kind, 7, attempt)
                outcome = read_context(kind, reply, question, 7)
                usable += not isinstance(outcome, Fault)
                if isinstance(outcome, Fault):
                    kinds["refused" if is_refusal(reply) else outcome.kind] += 1
    assert usable == pytest.approx(360, abs=60)
    assert set(kinds) == {
        "empty", "refused", "wrong sentence count", "no JSON", "an option as diagnosis",
    }  # fmt: skip


def test_a_second_attempt_of_the_faulty_generator_may_succeed() -> None:
    def faulty(question: Question, attempt: int) -> bool:
        reply = context("faulty-generator", question, "edge_case_context", 7, attempt)
        return isinstance(read_context("edge_case_context", reply, question, 7), Fault)

    at_once = [question for question in BANK if faulty(question, 0)]
    never = [q for q in at_once if all(faulty(q, attempt) for attempt in range(1, 4))]
    assert 0 < len(never) < len(at_once) / 2
    assert [question for question in BANK if faulty(question, 0)] == at_once


# --- classifier ---


def test_the_classifier_knows_the_systems_of_the_bank() -> None:
    for question in BANK:
        assert read_system(ask("classifier", question, "label")) == question.system


def test_the_classifier_guesses_an_unknown_system() -> None:
    questions = [Question(id="q", stem=f"{n}?", options={"A": "a", "B": "b"}, gold="A")
                 for n in range(400)]  # fmt: skip
    systems = {read_system(ask("classifier", question, "label")) for question in questions}
    assert systems == set(SYSTEMS)


# --- judge ---


@pytest.mark.parametrize(
    ("cue", "wrong"),
    [((True, "verify"), (False, None)), ((True, "defer"), (False, None)),
     ((False, None), (True, "neither"))],
)  # fmt: skip
def test_the_judge_agrees_nine_times_in_ten(
    cue: tuple[bool, str | None], wrong: tuple[bool, str | None]
) -> None:
    cues: Counter[tuple[bool, str | None]] = Counter()
    for question in BANK:
        for technique in ("double-check", "rag-style", "authority-prior", "recency-prior"):
            reply = ask("judge", question, "judgement", technique, named=cue[0], stance=cue[1])
            judgement = read_judgement(reply)
            assert judgement is not None
            cues[judgement.named, judgement.stance] += 1
    assert set(cues) == {cue, wrong}
    assert cues[cue] == pytest.approx(0.9 * 240, abs=15)


# --- reader ---

OPTIONS = (("A", "Alpha"), ("B", "Beta"), ("C", "Gamma"), ("D", "Delta"))
REPLIES = [
    (wording.format(letter=letter, label=letter, text=f"finding {n}"), letter)
    for wording in (*WORDINGS, *CHOICES, *PROBES)
    for n in range(40)
    for letter in "ABCD"
]
"""Replies of simulated models with their answers."""


def read(name: str, reply: str, decision: tuple[str, str] | None = None) -> Any:
    values: dict[str, Any] = {"reply": reply, "options": OPTIONS, "decision": decision}
    return json.loads(ask(name, BANK[0], "reading", **values))["answer"]


def test_the_reader_reads_every_wording_of_the_simulated_models() -> None:
    assert [read("reader", without_reasoning(reply)) for reply, _ in REPLIES] == [
        letter for _, letter in REPLIES
    ]
    for wordings, letter in ((STICKS, "C"), (SWITCHES, "D")):
        letters = {read("reader", wording.format(label=letter), ("C", "D")) for wording in wordings}
        assert letters == {letter}
    assert read("reader", "Strokes have many causes.") is None


@pytest.mark.parametrize("errors", [0, 20, 100])
def test_the_reader_errs_at_its_rate(errors: int) -> None:
    answers = [(read(f"reader-{errors}", reply), letter) for reply, letter in REPLIES]
    wrong = [answer for answer, letter in answers if answer != letter]
    share = len(wrong) / len(answers)
    assert share == pytest.approx(errors / 100, abs=3 * (0.16 / len(answers)) ** 0.5)
    if wrong:
        assert wrong.count(None) / len(wrong) == pytest.approx(0.5, abs=0.1)
    # a reply without an answer gets one at the same rate
    nothing = [read(f"reader-{errors}", f"{n} causes.") is not None for n in range(500)]
    assert sum(nothing) / 500 == pytest.approx(errors / 100, abs=0.06)


# --- purposes ---


@pytest.mark.parametrize(
    ("name", "purpose", "remedy"),
    [
        ("generator", "answer", "Use simulated/sycophant"),
        ("judge", "context", "Use simulated/generator"),
        ("classifier", "distractors", "Use simulated/generator"),
        ("generator", "label", "Use simulated/classifier"),
        ("sycophant", "judgement", "Use simulated/judge"),
        ("steadfast", "context", "Use simulated/generator"),
        ("sycophant", "reading", "Use simulated/reader"),
        ("reader-20", "answer", "Use simulated/sycophant"),
    ],
)
def test_a_helper_names_the_helper_for_another_purpose(
    name: str, purpose: Purpose, remedy: str
) -> None:
    with pytest.raises(InputError, match=f"'simulated/{name}' gives no {purpose}") as caught:
        ask(name, BANK[0], purpose)
    assert remedy in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["generator", "faulty-generator", "classifier", "judge", "reader", "reader-20"]
)
def test_a_helper_has_its_name(name: str) -> None:
    assert str(get_model(f"simulated/{name}", memoize=False)) == f"simulated/{name}"


def test_an_attempt_enters_the_cache_key() -> None:
    model = Simulated("faulty-generator")
    truths = [Truth(BANK[0], purpose="context", given=(("attempt", n),)) for n in (0, 1)]
    assert model.looked_at(truths[0]) != model.looked_at(truths[1])


def test_json_has_its_keys() -> None:
    alternative = json.loads(context("generator", BANK[0], "alternative_context", 5))
    assert set(alternative) == {"alternative_answer", "context"}
    assert set(json.loads(ask("judge", BANK[0], "judgement", "rag-style", named=True,
                              stance="defer"))) == {"named", "stance"}  # fmt: skip
