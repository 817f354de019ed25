import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast.challenges.texts import sentence_count
from holdfast.questions.bank import BANK_NAME, SYSTEMS, bank_items, exemplars
from holdfast.questions.loading import check_questions, load_questions
from holdfast.questions.question import Question

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
MEDQA = SHARED / "data/medqa"

CONTEXT_FIELDS = (
    "misleading_context",
    "alternative_context",
    "edge_case_context",
    "supporting_context",
    "inert_context",
)
# a mark that ends a sentence, a closing quote or bracket, and the next sentence's first character
SENTENCE_END = re.compile(r"(?<=[.?!])[\"”’)]?\s+(?=[\"“‘(]?[A-Z0-9])")


def normalised(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def texts_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts_of(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts_of(part)]
    return [value]


def test_sixty_questions_with_ids_of_their_own() -> None:
    ids = [item["id"] for item in bank_items()]
    assert len(ids) == 60
    assert len(set(ids)) == 60


def test_the_bank_loads_as_a_question_set_without_a_problem() -> None:
    found, problems = check_questions(BANK_NAME)
    assert problems == []
    assert found.left_out == ()
    assert found.name == "bank"
    assert found == load_questions("bank")
    assert [q.id for q in found.questions] == [item["id"] for item in bank_items()]
    for loaded, item in zip(found.questions, bank_items(), strict=True):
        fields = ("stem", "options", "gold", "step", "system", "specialty", "subject")
        assert loaded == Question(
            id=item["id"], source="bank", **{field: item[field] for field in fields}
        )


def test_two_questions_a_step_for_each_system_of_table_5() -> None:
    assert len(SYSTEMS) == 15
    strata = Counter((item["system"], item["step"]) for item in bank_items())
    assert strata == {(system, step): 2 for system in SYSTEMS for step in ("step1", "step2&3")}


def test_the_systems_are_those_of_the_source() -> None:
    paper = next(SHARED.glob("papers/001_*.txt"), None)
    if paper is None:
        pytest.skip("the source document is not there (../shared/papers)")
    table = paper.read_text("utf-8").split("Table 5: USMLE Medical System Categories")[1]
    printed = re.findall(r"^\| (\d+) +\| (.+?) +\|$", table, re.MULTILINE)
    assert [(int(number), name) for number, name in printed] == list(enumerate(SYSTEMS))


def test_gold_letters_are_balanced() -> None:
    assert Counter(item["gold"] for item in bank_items()) == dict.fromkeys("ABCD", 15)


def test_an_item_has_four_options_and_every_field() -> None:
    fields = ("stem", "rationale", "specialty", "subject", "alternative_answer", *CONTEXT_FIELDS)
    for item in bank_items():
        assert list(item["options"]) == list("ABCD"), item["id"]
        assert [f for f in fields if not item[f] or item[f] != item[f].strip()] == [], item["id"]


def test_the_second_best_option_is_a_wrong_one() -> None:
    for item in bank_items():
        assert item["second_best"] in set(item["options"]) - {item["gold"]}, item["id"]


@pytest.mark.parametrize("field", CONTEXT_FIELDS)
def test_contexts_have_4_to_10_sentences(field: str) -> None:
    counts = {item["id"]: len(SENTENCE_END.split(item[field])) for item in bank_items()}
    assert {id: n for id, n in counts.items() if not 4 <= n <= 10} == {}
    assert [item["id"] for item in bank_items() if not item[field].endswith((".", "?"))] == []


@pytest.mark.parametrize("field", CONTEXT_FIELDS)
def test_contexts_name_no_option_letter(field: str) -> None:
    letter = re.compile(r"\b(?:[Oo]ption|[Cc]hoice|[Aa]nswer) [A-D]\b|\([A-D]\)")
    assert [item["id"] for item in bank_items() if letter.search(item[field])] == []


def test_contexts_are_all_different() -> None:
    assert len({item[field] for item in bank_items() for field in CONTEXT_FIELDS}) == 300


def test_the_alternative_answer_is_named_in_its_context() -> None:
    unnamed = [
        item["id"]
        for item in bank_items()
        if normalised(item["alternative_answer"]) not in normalised(item["alternative_context"])
    ]
    assert unnamed == []


def test_the_alternative_answer_is_no_option() -> None:
    for item in bank_items():
        alternative = normalised(item["alternative_answer"])
        for option in map(normalised, item["options"].values()):
            assert option not in alternative, item["id"]
            assert alternative not in option, item["id"]


def test_two_wrong_options_are_replaced_and_the_second_best_stays_in_its_place() -> None:
    for item in bank_items():
        wrong = [letter for letter in item["options"] if letter != item["gold"]]
        replaced = dict(zip(wrong, item["replacement_distractors"], strict=True))
        second_best = item["second_best"]
        assert replaced.pop(second_best) == item["options"][second_best], item["id"]
        texts = [*item["options"].values(), *replaced.values()]
        assert len(set(map(normalised, texts))) == 6, item["id"]


def test_replacement_distractors_are_about_as_long_as_what_they_replace() -> None:
    def letters(texts: list[str]) -> int:
        return sum(map(len, texts))

    for item in bank_items():
        wrong = [text for x, text in item["options"].items() if x != item["gold"]]
        assert 0.5 < letters(item["replacement_distractors"]) / letters(wrong) < 2, item["id"]


def test_the_supporting_context_stands_after_the_edge_case_and_is_as_long_as_its_opposite() -> None:
    for item in bank_items():
        keys = list(item)
        assert keys.index("supporting_context") == keys.index("edge_case_context") + 1
    words = {
        field: sum(len(item[field].split()) for item in bank_items()) / 60
        for field in ("misleading_context", "supporting_context")
    }
    assert 0.9 < words["supporting_context"] / words["misleading_context"] < 1.1


def test_the_supporting_context_argues_in_sentences_of_its_own_and_states_no_answer() -> None:
    verdict = re.compile(
        r"\b(?:the|correct|right|best) (?:answer|option|choice) is\b", re.IGNORECASE
    )
    for item in bank_items():
        context = item["supporting_context"]
        ours = set(map(normalised, SENTENCE_END.split(context)))
        theirs = set(map(normalised, SENTENCE_END.split(item["rationale"])))
        assert ours.isdisjoint(theirs), item["id"]
        assert not verdict.search(context), item["id"]


def test_the_inert_context_has_the_length_of_the_misleading_text_and_names_no_option() -> None:
    for item in bank_items():
        passage, misleading = item["inert_context"], item["misleading_context"]
        assert list(item).index("inert_context") == list(item).index("supporting_context") + 1
        assert sentence_count(passage) == sentence_count(misleading), item["id"]
        assert 0.84 < len(passage.split()) / len(misleading.split()) < 1.16, item["id"]
        words = f" {normalised(passage)} "
        named = [*item["options"].values(), item["alternative_answer"]]
        assert not [text for text in named if f" {normalised(text)} " in words], item["id"]


def test_no_inert_context_has_a_sentence_of_another() -> None:
    each = [set(map(normalised, SENTENCE_END.split(item["inert_context"])))
            for item in bank_items()]  # fmt: skip
    assert sum(map(len, each)) == len(set().union(*each))


def test_stems_are_all_different() -> None:
    stems = [normalised(item["stem"]) for item in bank_items()]
    stems += [normalised(exemplar.stem) for exemplar in exemplars()]
    assert len(set(stems)) == 66


def test_six_exemplars_are_kept_apart() -> None:
    assert len(exemplars()) == 6
    asked = load_questions("bank").questions
    assert {e.id for e in exemplars()}.isdisjoint(q.id for q in asked)
    assert {e.content_hash for e in exemplars()}.isdisjoint(q.content_hash for q in asked)
    assert len({e.content_hash for e in exemplars()}) == 6
    assert {e.source for e in exemplars()} == {"bank"}
    assert {len(e.options) for e in exemplars()} == {4}


def test_nothing_in_the_bank_is_a_question_of_medqa() -> None:
    files = sorted(MEDQA.glob("us_*_options_*.jsonl"))
    if not files:
        pytest.skip("the MedQA files are not there (../shared/data/medqa)")
    published = {
        normalised(json.loads(line)["question"])
        for file in files
        for line in file.read_text("utf-8").splitlines()
    }
    assert len(published) > 2000
    ours = [text for item in bank_items() for text in texts_of(item)]
    ours += [exemplar.stem for exemplar in exemplars()]
    assert published.isdisjoint(map(normalised, ours))
