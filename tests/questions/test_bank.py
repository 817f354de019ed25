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

RESOURCES = Path(__file__).resolve().parents[2].parent / "shared"
MEDQA = RESOURCES / "data/medqa"

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


def test_the_bank_loads_sixty_questions() -> None:
    question_set, problems = check_questions(BANK_NAME)
    assert (problems, question_set.left_out, question_set.name) == ([], (), "bank")
    assert question_set == load_questions("bank")
    assert len({item["id"] for item in bank_items()}) == 60
    for question, item in zip(question_set.questions, bank_items(), strict=True):
        fields = ("stem", "options", "gold", "step", "system", "specialty", "subject")
        assert question == Question(
            id=item["id"], source="bank", **{field: item[field] for field in fields}
        )


def test_two_questions_a_step_for_each_system_of_table_5() -> None:
    assert len(SYSTEMS) == 15
    strata = Counter((item["system"], item["step"]) for item in bank_items())
    assert strata == {(system, step): 2 for system in SYSTEMS for step in ("step1", "step2&3")}


def test_systems_match_the_source() -> None:
    paper = next(RESOURCES.glob("papers/001_*.txt"), None)
    if paper is None:
        pytest.skip("the source document is not there (../shared/papers)")
    table = paper.read_text("utf-8").split("Table 5: USMLE Medical System Categories")[1]
    table_rows = re.findall(r"^\| (\d+) +\| (.+?) +\|$", table, re.MULTILINE)
    assert [(int(number), name) for number, name in table_rows] == list(enumerate(SYSTEMS))


def test_gold_letters_are_balanced() -> None:
    assert Counter(item["gold"] for item in bank_items()) == dict.fromkeys("ABCD", 15)


def test_items_are_complete() -> None:
    fields = ("stem", "rationale", "specialty", "subject", "alternative_answer", *CONTEXT_FIELDS)
    for item in bank_items():
        assert list(item["options"]) == list("ABCD"), item["id"]
        assert [f for f in fields if not item[f] or item[f] != item[f].strip()] == [], item["id"]
        assert item["second_best"] in set(item["options"]) - {item["gold"]}, item["id"]


def test_contexts_differ_and_name_no_letter() -> None:
    letter = re.compile(r"\b(?:[Oo]ption|[Cc]hoice|[Aa]nswer) [A-D]\b|\([A-D]\)")
    texts = [item[field] for item in bank_items() for field in CONTEXT_FIELDS]
    assert len(set(texts)) == 300
    for text in texts:
        assert 4 <= len(SENTENCE_END.split(text)) <= 10, text
        assert text.endswith((".", "?")), text
        assert not letter.search(text), text


def test_the_alternative_answer_is_not_an_option() -> None:
    for item in bank_items():
        alternative = normalised(item["alternative_answer"])
        assert alternative in normalised(item["alternative_context"]), item["id"]
        for option in map(normalised, item["options"].values()):
            assert option not in alternative, item["id"]
            assert alternative not in option, item["id"]


def test_replaced_options_have_similar_lengths() -> None:
    for item in bank_items():
        wrong = [letter for letter in item["options"] if letter != item["gold"]]
        replacements = dict(zip(wrong, item["replacement_distractors"], strict=True))
        second_best = item["second_best"]
        assert replacements.pop(second_best) == item["options"][second_best], item["id"]
        texts = [*item["options"].values(), *replacements.values()]
        assert len(set(map(normalised, texts))) == 6, item["id"]
        lengths = [
            sum(map(len, options))
            for options in (item["replacement_distractors"], [item["options"][x] for x in wrong])
        ]
        assert 0.5 < lengths[0] / lengths[1] < 2, item["id"]


def test_the_supporting_context_matches_its_opposite_in_length() -> None:
    for item in bank_items():
        keys = list(item)
        assert keys.index("supporting_context") == keys.index("edge_case_context") + 1
    words = {
        field: sum(len(item[field].split()) for item in bank_items()) / 60
        for field in ("misleading_context", "supporting_context")
    }
    assert 0.9 < words["supporting_context"] / words["misleading_context"] < 1.1


def test_the_supporting_context_states_no_answer() -> None:
    verdict = re.compile(
        r"\b(?:the|correct|right|best) (?:answer|option|choice) is\b", re.IGNORECASE
    )
    for item in bank_items():
        context = item["supporting_context"]
        ours = set(map(normalised, SENTENCE_END.split(context)))
        theirs = set(map(normalised, SENTENCE_END.split(item["rationale"])))
        assert ours.isdisjoint(theirs), item["id"]
        assert not verdict.search(context), item["id"]


def test_the_inert_context_matches_the_misleading_length() -> None:
    for item in bank_items():
        passage, misleading = item["inert_context"], item["misleading_context"]
        assert list(item).index("inert_context") == list(item).index("supporting_context") + 1
        assert sentence_count(passage) == sentence_count(misleading), item["id"]
        assert 0.84 < len(passage.split()) / len(misleading.split()) < 1.16, item["id"]
        words = f" {normalised(passage)} "
        names = [*item["options"].values(), item["alternative_answer"]]
        assert not [text for text in names if f" {normalised(text)} " in words], item["id"]


def test_inert_contexts_share_no_sentence() -> None:
    sentences = [set(map(normalised, SENTENCE_END.split(item["inert_context"])))
            for item in bank_items()]  # fmt: skip
    assert sum(map(len, sentences)) == len(set().union(*sentences))


def test_stems_are_all_different() -> None:
    stems = [normalised(item["stem"]) for item in bank_items()]
    stems += [normalised(exemplar.stem) for exemplar in exemplars()]
    assert len(set(stems)) == 66


def test_six_exemplars_are_kept_apart() -> None:
    assert len(exemplars()) == 6
    questions = load_questions("bank").questions
    assert {e.id for e in exemplars()}.isdisjoint(q.id for q in questions)
    assert {e.content_hash for e in exemplars()}.isdisjoint(q.content_hash for q in questions)
    assert len({e.content_hash for e in exemplars()}) == 6
    assert {e.source for e in exemplars()} == {"bank"}
    assert {len(e.options) for e in exemplars()} == {4}


def test_the_bank_has_no_question_of_medqa() -> None:
    files = sorted(MEDQA.glob("us_*_options_*.jsonl"))
    if not files:
        pytest.skip("the MedQA files are not there (../shared/data/medqa)")
    texts = {
        normalised(json.loads(line)["question"])
        for file in files
        for line in file.read_text("utf-8").splitlines()
    }
    assert len(texts) > 2000
    ours = [text for item in bank_items() for text in texts_of(item)]
    ours += [exemplar.stem for exemplar in exemplars()]
    assert texts.isdisjoint(map(normalised, ours))
