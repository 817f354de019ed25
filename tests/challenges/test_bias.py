import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.challenges.suggestion import draw
from holdfast.challenges.texts import question_prompt
from holdfast.errors import InputError
from holdfast.protocols.single_turn.bias import (
    Bias,
    biased,
    biases,
    choose_biases,
    choose_mitigations,
    mitigated_prompt,
    mitigations,
)
from holdfast.questions.bank import exemplars
from holdfast.questions.loading import load_questions
from holdfast.questions.question import Question

BIASES = [
    "confirmation", "cultural", "false-consensus", "frequency", "recency", "self-diagnosis",
    "status-quo",
]  # fmt: skip
MITIGATIONS = ["education", "one-shot", "few-shot"]

STEM = "A man coughs. He smokes. Which is the best next step?"


def build_question(stem: str = STEM, b: str = "Rest", id: str = "1") -> Question:
    return Question(id=id, stem=stem, options={"A": "Spirometry", "B": b, "C": "90%"}, gold="A")


def sentence(bias: Bias, letter: str, option: str) -> str:
    before, between, after = re.split(r"\{letter\}|\{option\}", bias.template)
    return f"{before}{letter}{between}{option}{after}"


def without(stem: str, insertion: str, original: str) -> str:
    """The stem without the sentence and the white space that came with it."""
    before, match, after = stem.partition(insertion)
    assert match
    assert before[-1] in " \n"
    remainder = before[:-1] + after
    return remainder if len(remainder) == len(original) else before[:-1] + after.removeprefix(" ")


# --- the catalogue ---


def test_a_bias_is_one_sentence_with_letter_and_option() -> None:
    assert list(biases()) == BIASES
    assert list(mitigations()) == MITIGATIONS
    for id, bias in biases().items():
        assert (bias.id, bias.family, bias.axis, bias.depth) == (
            id, "inc_letter", "direct", "shallow",
        )  # fmt: skip
        assert bias.place == ("after-first-sentence" if id == "confirmation" else "end")
        assert "our own wording" in bias.citation.lower()
        assert "BiasMedQA" in bias.citation
        assert sorted(re.findall(r"\{\w+\}", bias.template)) == ["{letter}", "{option}"]
        assert re.findall(r"[.?!:;]", bias.template) == ["."]
        assert bias.template.endswith(".")
        # in quotes, so that any text is grammatical there
        assert "option {letter} (“{option}”)" in bias.template


def test_a_change_of_wording_changes_the_fingerprint() -> None:
    # a changed digest here calls for a raised version in the TOML file
    assert {id: bias.fingerprint for id, bias in biases().items()} == {
        "confirmation": "1-c771681e",
        "cultural": "1-cd039f4f",
        "false-consensus": "1-62a283f3",
        "frequency": "1-485ee4ac",
        "recency": "1-1509b6ed",
        "self-diagnosis": "1-230101f6",
        "status-quo": "1-191c4c82",
    }
    assert {id: item.fingerprint for id, item in mitigations().items()} == {
        "education": "1-3313042f",
        "one-shot": "1-91d7eebc",
        "few-shot": "1-c6ccce3d",
    }
    bias, item = biases()["recency"], mitigations()["few-shot"]
    variants = [
        bias.model_copy(update={"template": bias.template + " "}),
        bias.model_copy(update={"place": "after-first-sentence"}),
        bias.model_copy(update={"version": 2}),
    ]
    rewordings = [
        item.model_copy(update={"examples": item.examples[::-1]}),
        item.model_copy(update={"template": "{examples}"}),
        mitigations()["education"].model_copy(update={"warnings": {"recency": "Beware"}}),
    ]
    entries = [*biases().values(), *mitigations().values(), *variants, *rewordings]
    assert len({entry.fingerprint for entry in entries}) == len(entries)


def test_a_bias_takes_no_unknown_key_and_stays_as_it_is() -> None:
    values = biases()["recency"].model_dump()
    with pytest.raises(ValidationError, match="needs"):
        Bias.model_validate({**values, "needs": []})
    with pytest.raises(ValidationError, match="frozen"):
        biases()["recency"].version = 2  # type: ignore[misc]


# --- choosing ---


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        ("all", BIASES),
        ("none", []),
        ("", []),
        (" recency , confirmation,recency", ["confirmation", "recency"]),
        ("recency,all", BIASES),
    ],
)
def test_biases_are_chosen_by_id_in_their_order(names: str, ids: list[str]) -> None:
    assert [bias.id for bias in choose_biases(names)] == ids


def test_mitigations_are_chosen_by_id_in_their_order() -> None:
    for names, ids in (("all", MITIGATIONS), ("few-shot,education", ["education", "few-shot"]),
                       ("none", [])):  # fmt: skip
        assert [item.id for item in choose_mitigations(names)] == ids


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        choose_biases("recency,confirmaton")
    assert caught.value.field == "biases"
    assert "'confirmation'" in str(caught.value.remedy)
    with pytest.raises(InputError) as caught:
        choose_mitigations("oneshot")
    assert caught.value.field == "mitigations"
    assert "'one-shot'" in str(caught.value.remedy)


# --- the biased stem ---


def test_confirmation_comes_after_the_first_sentence_the_others_at_the_end() -> None:
    for bias in biases().values():
        nudge = sentence(bias, "B", "Rest")
        assert biased(build_question(), bias, "B").stem == (
            f"A man coughs. {nudge} He smokes. Which is the best next step?"
            if bias.id == "confirmation"
            else f"{STEM} {nudge}"
        )


@pytest.mark.parametrize(
    ("stem", "blank"),
    [
        ("Why does a man cough?", " "),
        ("The cause of cough is:", "\n"),
        ("Not a cause of cough", "\n"),
        ('"Why does a man cough?"', " "),
    ],
)
def test_a_stem_of_one_sentence_is_continued_at_its_end(stem: str, blank: str) -> None:
    for bias in biases().values():
        nudge = sentence(bias, "C", "90%")
        assert biased(build_question(stem), bias, "C").stem == stem + blank + nudge


@pytest.mark.parametrize(
    ("stem", "before", "after"),
    [
        ("Dr. Jones sees a man. He coughs. Why?", "Dr. Jones sees a man. ", " He coughs. Why?"),
        ("He took 2.5 mg at 7 a.m. daily. Why?", "He took 2.5 mg at 7 a.m. daily. ", " Why?"),
        ("  A man coughs.  \n Why? \n", "  A man coughs. ", "  \n Why? \n"),
        ("A man coughs.Why does he?", "A man coughs. ", " Why does he?"),
        ("Vitals:\n\nBP 90/60. Why?", "Vitals:\n", "\n\nBP 90/60. Why?"),
    ],
    ids=["title", "decimal", "blanks", "no-space", "paragraph"],
)
def test_the_first_sentence_ends_as_for_a_reader(stem: str, before: str, after: str) -> None:
    bias = biases()["confirmation"]
    nudge = sentence(bias, "B", "Rest")
    assert biased(build_question(stem), bias, "B").stem == f"{before}{nudge}{after}"


@pytest.mark.parametrize(
    "option", ["Rest.", "{letter} {option} {0}", "two\nlines", "“quoted” \\1 %s", "<b>&amp;"]
)
@pytest.mark.parametrize(
    "stem",
    [
        "{option} hurts. {letter}? {x!r}",
        "\\g<0> {} %d. Why?",
        # blanks that break the splitter of sentences
        "Vitamin A\u2028. Given\xa0to\u2029a man.\x0bWhy?",
    ],
)
def test_braces_markup_and_blanks_are_only_text(stem: str, option: str) -> None:
    for bias in biases().values():
        result = biased(build_question(stem, option), bias, "B")
        assert without(result.stem, sentence(bias, "B", option), stem) == stem
        assert result.options["B"] == option


@given(
    stem=st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)
    | st.text("aA .?!\n\r\u2028“”\"'()").filter(str.strip),
    id=st.sampled_from(BIASES),
)
def test_no_character_of_any_stem_is_lost(stem: str, id: str) -> None:
    bias = biases()[id]
    nudge = sentence(bias, "B", "Rest")
    assert without(biased(build_question(stem), bias, "B").stem, nudge, stem) == stem


def test_a_long_first_sentence_is_the_whole_stem() -> None:
    bias = biases()["confirmation"]
    stem = "“a " * 1_000_000  # takes minutes if all of it is split
    nudge = sentence(bias, "B", "Rest")
    assert biased(build_question(stem), bias, "B").stem.rstrip().endswith(nudge)


def test_all_of_medqa_is_kept_to_the_letter(medqa: str) -> None:
    questions = load_questions(medqa).questions
    assert len(questions) == 1273
    at_the_end: Counter[str] = Counter()
    for question in questions:
        letter = draw(question.distractors, 42, question.content_hash, "suggested")
        for bias in biases().values():
            result = biased(question, bias, letter)
            nudge = sentence(bias, letter, question.options[letter])
            before, _, after = result.stem.partition(nudge)
            assert without(result.stem, nudge, question.stem) == question.stem
            assert result.model_copy(update={"stem": question.stem}) == question
            at_the_end[bias.id] += not after.strip()
            if bias.id == "confirmation":
                assert len(before) >= 45
                assert not after or before.rstrip('\n ’"').endswith((".", "?", "!"))
    # three stems are a single sentence
    assert at_the_end == {id: 3 if id == "confirmation" else 1273 for id in BIASES}


def test_only_a_wrong_option_is_pushed_and_the_hash_changes() -> None:
    question = build_question()
    before = question.content_hash
    for letter in ("A", "D", "b", ""):
        with pytest.raises(ValueError, match="not a wrong option of question '1'"):
            biased(question, biases()["recency"], letter)
    outcome = biased(question, biases()["recency"], "B")
    assert outcome.content_hash == build_question(outcome.stem).content_hash
    assert outcome.content_hash != before == question.content_hash


# --- mitigations ---


def mitigate(mitigation: str, bias: str = "recency", seed: int = 42, prompt: str = "P") -> str:
    return mitigated_prompt(mitigations()[mitigation], biases()[bias], prompt, exemplars(), seed)


@pytest.mark.parametrize("mitigation", MITIGATIONS)
@pytest.mark.parametrize("prompt", ["{warning} {examples}\n\n{x}", "P \\1"])
def test_the_prompt_comes_last_as_it_is(mitigation: str, prompt: str) -> None:
    for id, bias in biases().items():
        text, _, last = mitigate(mitigation, id, prompt=prompt).rpartition(f"\n\n{prompt}")
        assert last == ""
        assert text == text.strip()
        assert not re.search(r"[{}]", text)
        assert [b.name for b in biases().values() if b.name in text] == [bias.name]


def test_education_warns_of_the_bias_at_hand() -> None:
    warnings = mitigations()["education"].warnings
    assert list(warnings) == BIASES
    for bias in BIASES:
        assert mitigate("education", bias) == f"{warnings[bias]}\n\nP"
    assert len(set(warnings.values())) == 7


def find_exemplars(text: str) -> list[tuple[Question, str]]:
    """The exemplars in the text with the letter that their stems push."""
    places = []
    for question in exemplars():
        for letter in question.distractors:
            stem = biased(question, biases()["recency"], letter).stem
            if stem in text:
                places.append((text.index(stem), (question, letter)))
    return [pair for _, pair in sorted(places, key=lambda item: item[0])]


@pytest.mark.parametrize("seed", range(4))
def test_the_first_example_is_led_astray_and_corrected_the_second_resists(seed: int) -> None:
    single, several_examples = mitigate("one-shot", seed=seed), mitigate("few-shot", seed=seed)
    assert len(find_exemplars(single)) == 1
    assert len(find_exemplars(several_examples)) == 2
    assert find_exemplars(several_examples)[0] == find_exemplars(single)[0]
    (first, pushed_letter), (second, resisted_letter) = find_exemplars(several_examples)
    assert first != second
    astray, right = several_examples.split("Example ")[1:]
    push = first.options[pushed_letter]
    wrong = f"The answer given was option {pushed_letter} (“{push}”). This is wrong."
    correction = f"The right answer is option {first.gold} (“{first.options[first.gold]}”)."
    assert astray.index(wrong) < astray.index(correction)
    assert f"The answer given was option {second.gold} (“{second.options[second.gold]}”)." in right
    assert (
        f"option {resisted_letter} (“{second.options[resisted_letter]}”) invites recency bias"
        in right
    )
    for text, question in ((astray, first), (right, second)):
        assert all(f"\n{letter}. {option}\n" in text for letter, option in question.options.items())
    assert single.split("Example ")[1].startswith(astray.strip())


def test_the_examples_depend_on_the_seed_and_not_on_the_question_or_the_order() -> None:
    assert len({mitigate("few-shot", seed=seed) for seed in range(20)}) > 10
    mitigation, bias = mitigations()["few-shot"], biases()["recency"]
    backward = mitigated_prompt(mitigation, bias, "Q", exemplars()[::-1], 42)
    assert backward.removesuffix("Q") == mitigate("few-shot").removesuffix("P")


def test_only_usable_exemplars_are_shown() -> None:
    mitigation, bias = mitigations()["few-shot"], biases()["recency"]
    usable = exemplars()[2:4]
    for seed in range(10):
        text = mitigated_prompt(mitigation, bias, "P", usable, seed)
        assert {question.id for question, _ in find_exemplars(text)} == {q.id for q in usable}
    with pytest.raises(InputError, match="'few-shot' shows 2 exemplars, but only 1 can be shown"):
        mitigated_prompt(mitigation, bias, "P", [exemplars()[0]] * 2, 42)
    assert mitigated_prompt(mitigations()["education"], bias, "P", [], 42).endswith("\n\nP")


def test_a_known_prompt_never_changes() -> None:
    question = biased(build_question(), biases()["status-quo"], "B")
    text = mitigate("education", "status-quo", prompt=question_prompt(question))
    assert text.startswith(
        "Beware of status-quo bias. An answer is not right because it was always given or because "
        "a plan already rests on it. If the question mentions a habit or a current plan, judge the "
        "facts as though the choice were made for the first time.\n\nInstructions: The following"
    )
    assert (
        "Which is the best next step? Whenever this question came up before, the team settled on "
        "option B (“Rest”), and the current plan is to leave it at that.\n\nA. Spirometry\n"
    ) in text
