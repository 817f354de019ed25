"""The length ablation: every context at every length, through a real eval."""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests import resolved, tasks
from tests.resolved import counted, skipped
from tests.scripted import Scripted, prepared, put
from tests.studies import question_rows, turns_of, write_jsonl
from tests.tasks import contexts

from holdfast.challenges.catalogue import CONTEXTS, built_in
from holdfast.challenges.contexts import drawn_sentences
from holdfast.challenges.texts import challenge_prompt, sentence_count
from holdfast.errors import InputError
from holdfast.protocols.followup.protocol import FollowupSettings
from holdfast.questions.loading import load_questions
from holdfast.questions.question import Question

followup = partial(tasks.followup, controls=False)
followup_study = partial(resolved.followup_study, controls=False)

IN_CONTEXT = [id for id, technique in built_in().items() if technique.context]


def answering() -> Scripted:
    return Scripted(lambda _: "Final Answer: (A)")


def text(kind: str, question: str, length: int | None) -> str:
    return " ".join(f"{kind} of {question}, {k}." for k in range(1, (length or 4) + 1))


def row(question: str, length: int | None, *kinds: str, **changes: Any) -> dict[str, Any]:
    return {
        "question": question,
        "length": length,
        "sentences": length or 4,
        "second_best": "D",
        **{kind: text(kind, question, length) for kind in kinds or CONTEXTS},
        **changes,
    }


@pytest.fixture
def two(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(2))


@pytest.fixture
def context_file(tmp_path: Path) -> str:
    rows = [row(id, length) for id in ("q0", "q1") for length in (None, 1, 10, 20)]
    return write_jsonl(tmp_path / "contexts.jsonl", rows)


def asked_of(source: str) -> tuple[Question, ...]:
    return tuple(load_questions(source).questions)


def test_every_context_is_put_at_every_length(two: str, context_file: str) -> None:
    script = answering()
    turns = turns_of(
        put(followup(two, context_file, techniques="context", lengths="1,10,20"), script.model)
    )
    # 1 first answer, 4 contexts, 4 contexts at 3 lengths, per question
    assert len(script.asked) == turns.height == 2 * (1 + 4 + 12)
    ablation = turns.filter(pl.col("arm") == "length")
    assert (
        ablation["path"].to_list()
        == [f"{id}@{length}" for length in (1, 10, 20) for id in IN_CONTEXT] * 2
    )
    assert set(ablation["turn"]) == {1}
    assert set(ablation["family"]) == {"context"}
    assert ablation["technique"].to_list() == IN_CONTEXT * 6
    assert turns.filter(pl.col("arm") == "followup")["path"].to_list() == IN_CONTEXT * 2


def test_only_the_text_of_that_length_is_put(two: str, context_file: str) -> None:
    turns = turns_of(put(followup(two, context_file, lengths="1,10,20"), answering().model))
    for question in asked_of(two):
        rows = turns.filter(pl.col("question") == question.id, pl.col("family") == "context")
        for turn in rows.iter_rows(named=True):
            technique = built_in()[turn["technique"]]
            length = int(turn["path"].partition("@")[2] or 0) or None
            assert technique.context is not None
            context = text(technique.context, question.id, length)
            assert sentence_count(context) == (length or 4)
            values = {technique.context: context}
            assert turn["prompt"] == challenge_prompt(technique.template, question, values)


def test_lengths_can_be_asked_without_techniques(two: str, context_file: str) -> None:
    script = answering()
    log = put(followup(two, context_file, techniques="none", lengths=["1", "20"]), script.model)
    turns = turns_of(log)
    assert turns.height == len(script.asked) == 2 * (1 + 8)
    assert set(turns["arm"]) == {"baseline", "length"}
    suggestions = turns.filter(question="q0", turn=1).select("technique", "suggested").rows()
    assert dict(suggestions) == {
        "misleading-context": "D", "rag-style": "D", "alternative-context": None,
        "edge-case-context": None,
    }  # fmt: skip


def test_the_ablation_adds_twelve_generations_to_the_full_study() -> None:
    full = followup_study(contexts="synthetic", chains="paper")
    more = followup_study(contexts="synthetic", chains="paper", lengths="1,10,20")
    assert set(counted(full)) == {29}
    for question, count in zip(more.questions.questions, counted(more), strict=True):
        # where the study's own texts have a length of the ablation they are the same texts
        overlap = 4 if drawn_sentences(question, 42) in (1, 10, 20) else 0
        assert count == 29 + 12 - overlap


def test_the_studys_own_length_is_asked_once(two: str, tmp_path: Path) -> None:
    rows = [row(id, length) for id in ("q0", "q1") for length in (None, 4)]
    source = write_jsonl(tmp_path / "contexts.jsonl", rows)
    settings: dict[str, Any] = {"techniques": "context", "lengths": "4"}
    script = answering()
    turns = turns_of(put(followup(two, source, **settings), script.model))
    assert turns.height == 2 * (1 + 4 + 4)
    assert len(script.asked) == 2 * (1 + 4)
    assert turns.filter(pl.col("arm") == "length")["shared"].all()
    study = followup_study(two, source, **settings)
    assert counted(study) == [5, 5]


def test_placeholders_have_the_requested_lengths() -> None:
    settings: dict[str, Any] = {"contexts": "synthetic", "lengths": "1,10,20"}
    study, contexts = followup_study(**settings), FollowupSettings(**settings).loaded_contexts
    for question in study.questions.first(10).questions:
        context = contexts.of(question)
        for length in ("1", "10", "20"):
            texts = context.at(length)
            assert list(texts) == [*CONTEXTS, "inert_context"]
            assert {sentence_count(t) for t in texts.values()} == {int(length)}
        assert skipped(study, question) == {}


def test_a_missing_length_is_omitted_with_its_reason(two: str, tmp_path: Path) -> None:
    missing = {"edge_case_context": "wrong sentence count"}
    source = write_jsonl(
        tmp_path / "contexts.jsonl",
        [
            row("q0", None),
            row("q0", 10, "misleading_context", missing=missing),
            row("q1", None),
            row("q1", 10, misleading_context="One. Two."),
        ],
    )
    script = answering()
    log = put(followup(two, source, techniques="none", lengths="10,20"), script.model)
    first, second = (sample.metadata["left_out"] for sample in log.samples or [])
    assert first == {
        "alternative-context@10": "no alternative_context of 10 sentences",
        "edge-case-context@10": "edge_case_context could not be generated (wrong sentence count)",
        "misleading-context@20": "no misleading_context of 20 sentences",
        "rag-style@20": "no misleading_context of 20 sentences",
        "alternative-context@20": "no alternative_context of 20 sentences",
        "edge-case-context@20": "no edge_case_context of 20 sentences",
    }
    unusable = "misleading_context cannot be used (wrong sentence count)"
    assert second["misleading-context@10"] == second["rag-style@10"] == unusable
    assert "edge-case-context@10" not in second
    turns = turns_of(log).filter(pl.col("turn") == 1)
    assert turns.filter(pl.col("question") == "q0")["path"].to_list() == [
        "misleading-context@10", "rag-style@10",
    ]  # fmt: skip
    study = followup_study(two, source, techniques="none", lengths="10,20")
    assert counted(study) == [1 + 2, 1 + 2]
    assert len(script.asked) == 6


def test_the_banks_contexts_have_no_lengths() -> None:
    study = followup_study(lengths="10", techniques="none")
    assert skipped(study, study.questions.questions[0]) == {
        f"{id}@10": f"no {built_in()[id].context} of 10 sentences" for id in IN_CONTEXT
    }
    assert counted(study, 1) == [1]


def test_the_ablation_puts_the_generated_texts(two: str, tmp_path: Path) -> None:
    rows = prepared(put(contexts(two, lengths="1,10,20"), "simulated/generator"))
    source = write_jsonl(tmp_path / "contexts.jsonl", rows)
    turns = turns_of(put(followup(two, source, lengths="1,10,20"), "simulated/sycophant"))
    assert turns.filter(pl.col("arm") == "length").height == 2 * 12
    by_length = {(r["question"], r["length"]): r for r in rows}
    for turn in turns.filter(pl.col("arm") == "length").iter_rows(named=True):
        length = int(turn["path"].partition("@")[2])
        kind = built_in()[turn["technique"]].context
        assert kind is not None
        assert by_length[turn["question"], length][kind] in turn["prompt"]


def test_chains_use_the_studys_own_length(two: str, context_file: str) -> None:
    chain = "authority-prior>rag-style"
    task = followup(two, context_file, techniques="none", lengths="1", chains=chain)
    turns = turns_of(put(task, answering().model))
    chain_turns = turns.filter(pl.col("arm") == "compound")
    assert set(chain_turns["path"]) == {"authority-prior>rag-style"}
    for turn in chain_turns.iter_rows(named=True):
        assert text("misleading_context", turn["question"], None) in turn["prompt"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chains": "authority-prior>rag-style@10"}, "rag-style@10"),
        ({"lengths": "9" * 5000}, "length '9{40}'"),
    ],
)
def test_chains_with_a_length_and_long_numbers_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        followup_study(**settings)


def test_contexts_of_a_user_catalogue_have_lengths_too(
    two: str, context_file: str, tmp_path: Path
) -> None:
    catalogue = tmp_path / "own.toml"
    catalogue.write_text(
        'family = "own"\naxis = "indirect"\ncitation = "test"\n[[technique]]\nid = "mine"\n'
        'needs = ["edge_case_context"]\ntemplate = "Look: {edge_case_context}"\n'
    )
    log = put(
        followup(two, context_file, techniques="mine", lengths="1", challenges=str(catalogue)),
        answering().model,
    )
    turns = turns_of(log)
    mine = turns.filter(pl.col("path") == "mine@1")
    assert set(mine["family"]) == {"own"}
    for turn in mine.iter_rows(named=True):
        prefix = f"Look: {text('edge_case_context', turn['question'], 1)}\n\n"
        assert turn["prompt"].startswith(prefix)
