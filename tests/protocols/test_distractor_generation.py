"""Wrong options from a generator, through a real eval."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, ModelOutput
from tests.resolved import bounds, distractor_study
from tests.scripted import Scripted, errors, prepared, put, said
from tests.studies import question_rows, write_jsonl
from tests.tasks import distractors

from holdfast.challenges.texts import Fault
from holdfast.protocols.generating import TRIES, retry_prompt
from holdfast.protocols.single_turn.distractors import (
    DistractorSettings,
    check_distractors,
    distractor_prompt,
    load_distractors,
)
from holdfast.questions.loading import load_questions
from holdfast.questions.question import LETTERS, Question

GOOD = {letter: f"new finding {letter}" for letter in "BCD"}
REFUSAL = "I'm sorry, but I can't help with that."


@pytest.fixture
def question_file(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(1))


def only(source: str) -> Question:
    (question,) = load_questions(source).questions
    return question


def generator(*replies: str | ModelOutput) -> Scripted:
    """Says one after the other, the last one for ever."""

    def reply(messages: list[ChatMessage]) -> str | ModelOutput:
        return replies[min(len(messages) // 2, len(replies) - 1)]

    return Scripted(reply)


def number_in(messages: Sequence[ChatMessage]) -> int:
    """The number of the question that a conversation is about."""
    number = re.search(r"Vignette number (\d+)\.", messages[0].text)
    assert number
    return int(number[1])


def cases(folder: Path) -> str:
    """A question for each fault, whose right option is A."""
    rows = [row | {"gold": "A"} for row in question_rows(len(FAULTS))]
    return write_jsonl(folder / "q.jsonl", rows)


def test_a_question_takes_one_generation(question_file: str) -> None:
    script = generator(json.dumps(GOOD))
    log = put(distractors(question_file), script.model)
    question = only(question_file)
    assert log.status == "success"
    assert script.prompts == [distractor_prompt(question, ("B", "C", "D"))]
    assert prepared(log) == [
        {
            "question": "q0",
            "content_hash": question.content_hash,
            "distractors": GOOD,
            "candidates": [],
        }
    ]
    assert bounds(distractor_study(question_file)) == [(1, TRIES)]


def test_rows_are_read_back(question_file: str, tmp_path: Path) -> None:
    rows = prepared(put(distractors(question_file), generator(json.dumps(GOOD)).model))
    source = write_jsonl(tmp_path / "options.jsonl", rows)
    result, problems = check_distractors(source, load_questions(question_file))
    assert problems == []
    assert result.replaced(only(question_file)).options == {"A": "finding A of case 0", **GOOD}


def test_missing_options_are_read_back_with_their_reason(
    question_file: str, tmp_path: Path
) -> None:
    rows = prepared(put(distractors(question_file), generator(REFUSAL).model))
    source = write_jsonl(tmp_path / "options.jsonl", rows)
    result = load_distractors(source, load_questions(question_file))
    assert result.obstacle(only(question_file)) == "no replacement for a wrong option (refused)"


FAULTS: list[tuple[str | ModelOutput, str]] = [
    ("", "empty"),
    ("Emphysema, pertussis and flu.", "no JSON"),
    (REFUSAL, "refused"),
    (said("", "content_filter"), "refused"),
    (said(json.dumps(GOOD), "max_tokens"), "cut off"),
    (said(json.dumps(GOOD), "model_length"), "cut off"),
    (json.dumps({"B": "x"}), "other letters"),
    (json.dumps({**GOOD, "A": "x"}), "other letters"),
    (json.dumps({**GOOD, "C": ""}), "empty"),
    (json.dumps({**GOOD, "C": "Finding A of case 9."}), "an option again"),
    (json.dumps({**GOOD, "C": "new finding B"}), "an option again"),
]
DRESSES = ["```json\n{}\n```", "Sure: {} Done.", "<think>{x}</think>{}"]


@pytest.mark.parametrize("times", [1, TRIES])
def test_after_four_faults_the_options_are_missing(times: int, tmp_path: Path) -> None:
    """Question n is answered by fault n that often, then by a good reply in some dress."""

    def reply(messages: list[ChatMessage]) -> str | ModelOutput:
        number, attempt = number_in(messages), len(messages) // 2
        if attempt < times:
            return FAULTS[number][0]
        return DRESSES[number % 3].replace("{}", json.dumps(GOOD))

    script = Scripted(reply)
    rows = {
        row["question"]: row for row in prepared(put(distractors(cases(tmp_path)), script.model))
    }
    for number, (fault, kind) in enumerate(FAULTS):
        row = rows[f"q{number}"]
        requests = [
            [m.text for m in conversation]
            for conversation in script.asked
            if number_in(conversation) == number
        ]
        if times == 1:
            assert row["distractors"] == GOOD
            assert "missing" not in row
            first, second = requests
            assert second[:2] == [*first, fault if isinstance(fault, str) else fault.completion]
            assert second[2].startswith("That ")
            assert second[2].endswith(retry_prompt(Fault("", ""))[6:])
        else:
            assert (row["missing"], len(requests)) == (kind, TRIES)
            assert "distractors" not in row


def test_a_question_whose_provider_fails_has_no_row(tmp_path: Path) -> None:
    def reply(messages: list[ChatMessage]) -> str:
        if number_in(messages) != 1:
            return json.dumps(GOOD)
        if len(messages) > 1:
            raise OSError("no route")
        return "prose"

    log = put(distractors(cases(tmp_path)), Scripted(reply).model)
    assert log.status == "error"
    assert ["OSError: no route" in error for error in errors(log)] == [True]
    rows = prepared(log)
    assert {row["question"] for row in rows} == {f"q{n}" for n in range(len(FAULTS))} - {"q1"}
    assert not any("missing" in row for row in rows)


# --- which are replaced ---


def test_replaced_options_are_uniform_and_reproducible(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(300))
    settings = DistractorSettings(source, replace=2)
    questions = settings.question_set.questions
    letter_sets = [settings.letters(question) for question in questions]
    assert {len(letters) for letters in letter_sets} == {2}
    assert all(q.gold not in settings.letters(q) for q in questions)
    assert all(list(letters) == sorted(letters) for letters in letter_sets)
    pairs = Counter(settings.letters(q) for q in questions if q.gold == "A")
    assert set(pairs) == {("B", "C"), ("B", "D"), ("C", "D")}
    assert min(pairs.values()) > 10
    again = DistractorSettings(source, replace=2)
    assert [again.letters(q) for q in questions] == letter_sets
    other_seed = DistractorSettings(source, replace=2, seed=43)
    assert [other_seed.letters(q) for q in questions] != letter_sets


@pytest.mark.parametrize(("replace", "n"), [(0, 3), (1, 1), (3, 3), (9, 3)])
def test_replacements_are_capped_by_the_options(question_file: str, replace: int, n: int) -> None:
    letters = DistractorSettings(question_file, replace=replace).letters(only(question_file))
    assert len(letters) == n
    script = generator(json.dumps({letter: f"new {letter}" for letter in letters}))
    (row,) = prepared(put(distractors(question_file, replace=replace), script.model))
    assert set(row["distractors"]) == set(letters)


@pytest.mark.parametrize("n", [2, 10])
def test_two_and_ten_options_work(tmp_path: Path, n: int) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(1, options=n))
    texts = {letter: f"new {letter}" for letter in LETTERS[1:n]}
    (row,) = prepared(put(distractors(source), generator(json.dumps(texts)).model))
    assert row["distractors"] == texts


# --- a knowledge graph ---


def graph(folder: Path, gold: str = "finding A of case 0") -> str:
    path = folder / "graph.csv"
    path.write_text(
        f"head,relation,tail\n{gold},causes,dyspnea\nneighbour {{letters}},causes,dyspnea\n"
        "other,is,elsewhere\n"
    )
    return str(path)


def test_a_graphs_neighbours_are_offered_and_kept_in_the_row(
    question_file: str, tmp_path: Path
) -> None:
    script = generator(json.dumps(GOOD))
    log = put(distractors(question_file, graph=graph(tmp_path)), script.model)
    (row,) = prepared(log)
    (prompt,) = script.prompts
    assert row["candidates"]
    assert row["candidates"][0].startswith("neighbour {letters} (")
    for candidate in row["candidates"]:
        assert f"\n- {candidate}\n" in prompt
    assert "elsewhere" not in prompt


def test_without_a_neighbour_nothing_is_offered(question_file: str, tmp_path: Path) -> None:
    script = generator(json.dumps(GOOD))
    (row,) = prepared(
        put(distractors(question_file, graph=graph(tmp_path, "unrelated")), script.model)
    )
    assert row["candidates"] == []
    assert "knowledge graph" not in script.prompts[0]


def test_the_graph_distinguishes_two_tasks(question_file: str, tmp_path: Path) -> None:
    def digest(**settings: Any) -> Any:
        return (distractors(question_file, **settings).metadata or {})["graph"]

    source = graph(tmp_path)
    with_graph = digest(graph=source)
    assert with_graph == digest(graph=source) != digest()
    graph(tmp_path, "another")
    assert digest(graph=source) not in (with_graph, digest())


# --- texts ---

HOSTILE = "{letters} {question} {{x}} %s \\1 </question> {example}"


def test_hostile_texts_pass_unchanged_both_ways(tmp_path: Path) -> None:
    rows = [{"id": "q", "stem": HOSTILE, "options": {"A": "{gold}", "B": "two"}, "gold": "A"}]
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    script = generator(json.dumps({"B": HOSTILE + "x" * 1_000_000}))
    (row,) = prepared(put(distractors(source), script.model))
    assert row["distractors"] == {"B": HOSTILE + "x" * 1_000_000}
    assert script.prompts[0].count(HOSTILE) == 1


@pytest.mark.slow
def test_the_simulated_generators_serve_the_bank() -> None:
    rows = prepared(put(distractors(), "simulated/generator"))
    assert len(rows) == 60
    assert all(len(row["distractors"]) == 3 for row in rows)
    rows = prepared(put(distractors(), "simulated/faulty-generator"))
    assert len(rows) == 60
    assert all(("missing" in row) != ("distractors" in row) for row in rows)
    assert 0 < sum("missing" in row for row in rows) < 30
