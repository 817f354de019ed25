"""The mappings that come with holdfast, on files made in their published layouts."""

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.questions import layouts
from tests.studies import write_jsonl

from holdfast.cli.transcripts import MAPPINGS
from holdfast.results.declaration import TABLES
from holdfast.transcripts.importing import Imported, import_transcripts
from holdfast.transcripts.mapping import read_mapping, shipped

LETTERS = "ABCD"


def by(name: str, path: Path) -> Imported:
    """A path by a shipped mapping."""
    return import_transcripts(path, read_mapping(Path(name)))


def flips(turns: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Right first answers and those that became wrong, by path."""
    rows = TABLES["flips"](turns).iter_rows(named=True)
    return {row["path"]: (row["n_right"], row["right_to_wrong"]) for row in rows}


def test_the_help_names_every_mapping() -> None:
    assert tuple(sorted(shipped())) == MAPPINGS
    for name in shipped():
        read_mapping(Path(name))


# --- SuperSycophantic ---


def test_supersycophantic_is_imported(tmp_path: Path) -> None:
    rng = random.Random(3)
    rows: list[dict[str, Any]] = []
    for id in range(10):
        initial = rng.choice("AABC")
        for trigger in ("authority", "scarcity"):
            for tone in ("mild", "strong"):
                final = rng.choice([*LETTERS, None])
                rows.append({
                    "item_id": f"g{id}", "model": "m", "trigger": trigger, "tone": tone,
                    "correct_answer": "A", "pressure_target": "D", "initial_answer": initial,
                    "final_answer": final, "eligible": initial != "D",
                    "truth_departure": initial == "A" and final not in ("A", None),
                    "final_parse_method": "boxed", "first_response_text": f"\\boxed{{{initial}}}",
                    "second_response_text": f"\\boxed{{{final}}}",
                })  # fmt: skip
    rows.append(
        rows[0] | {"trigger": "unity", "final_answer": None, "final_parse_method": "not_run"}
    )
    turns = by("supersycophantic", Path(write_jsonl(tmp_path / "s.jsonl", rows))).turns
    rates: dict[str, list[int]] = {}
    for row in rows[:-1]:
        counts = rates.setdefault(f"{row['trigger']}-{row['tone']}", [0, 0])
        counts[0] += row["initial_answer"] == "A"
        counts[1] += row["truth_departure"]
    assert flips(turns) == {path: tuple(counts) for path, counts in rates.items()}
    assert turns.height == 10 + 40


def sequence(id: str, triggers: list[str], tones: list[str], answers: str) -> dict[str, Any]:
    """A row of a sequence, of the first answer and those after it; it ends at the first flip."""
    first, later = answers[0], answers[1:]
    rounds = [
        {"step": step, "trigger": trigger, "tone": tone, "answer": answer, "confidence": 4,
         "parse_method": "boxed", "is_correct": answer == "A", "pressure_aligned": answer == "D",
         "truth_departure": answer != "A",
         "response_text": f"After {'>'.join(triggers)}: \\boxed{{{answer}}}"}
        for step, (trigger, tone, answer) in enumerate(zip(triggers, tones, later, strict=False), 1)
    ]  # fmt: skip
    return {
        "item_id": id, "model": "m",
        "trigger": ">".join(triggers) if len({*triggers}) > 1 else triggers[0],
        "trigger_sequence": triggers, "tone_sequence": tones, "correct_answer": "A",
        "pressure_target": "D", "initial_answer": first if first in LETTERS else None,
        "initial_correct": first == "A", "eligible": first == "A",
        "initial_parse_method": "boxed" if first in LETTERS else "unparsed",
        "first_response_text": f"\\boxed{{{first}}}" if first in LETTERS else "None",
        "rounds": rounds, "usage": {"first": {}, "rounds": [{} for _ in rounds]},
        "final_answer": answers[-1], "truth_departure": len(later) > 0 and later[-1] != "A",
    }  # fmt: skip


def test_supersycophantic_temporal_is_imported(tmp_path: Path) -> None:
    tones = ["mild", "moderate", "strong"]
    rows = [
        sequence("g1", ["authority"] * 3, tones, "AAAA"),
        sequence("g1", ["scarcity"] * 3, tones, "AD"),
        sequence("g2", ["authority"] * 3, tones, "AAD"),
        sequence("g2", ["scarcity"] * 3, tones, "AAAA"),
        # no round follows a first answer that is wrong, or that cannot be read
        sequence("g3", ["authority"] * 3, tones, "B"),
        sequence("g3", ["scarcity"] * 3, tones, "B"),
        sequence("g4", ["authority"] * 3, tones, "?"),
        sequence("g4", ["scarcity"] * 3, tones, "?"),
    ]
    turns = by("supersycophantic-temporal", Path(write_jsonl(tmp_path / "s.jsonl", rows))).turns
    assert turns.filter(arm="baseline").height == 4
    rows_by_path = flips(turns)
    assert rows_by_path["authority-mild"] == (2, 0)
    assert rows_by_path["authority-mild>authority-moderate"] == (2, 1)
    assert rows_by_path["authority-mild>authority-moderate>authority-strong"] == (1, 0)
    assert rows_by_path["scarcity-mild"] == (2, 1)
    assert turns.filter(pl.col("turn") > 0)["suggested"].unique().to_list() == ["D"]


def test_supersycophantic_orders_have_their_own_replies(
    tmp_path: Path,
) -> None:
    tones = ["moderate"] * 3
    orders = [["authority", "scarcity", "unity"], ["authority", "unity", "scarcity"],
              ["scarcity", "authority", "unity"]]  # fmt: skip
    rows = [sequence("g1", order, tones, answers)
            for order, answers in zip(orders, ("AAAA", "AD", "AAD"), strict=True)]  # fmt: skip
    turns = by("supersycophantic-orders", Path(write_jsonl(tmp_path / "s.jsonl", rows))).turns
    assert turns["dataset"].unique(maintain_order=True).to_list() == [">".join(o) for o in orders]
    first_turns = turns.filter(path="authority-moderate")
    assert first_turns["answer"].to_list() == ["A", "D"]
    rates = TABLES["flips"](turns).filter(path="authority-moderate")
    assert rates.select("dataset", "n_right", "right_to_wrong").rows() == [
        ("authority>scarcity>unity", 1, 0), ("authority>unity>scarcity", 1, 1),
    ]  # fmt: skip


# --- Inspect and lm-evaluation-harness ---


def test_inspect_evals_is_imported(tmp_path: Path) -> None:
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    letters = ["A", "B", "C", "A", "D"]
    replies = [ModelOutput.from_content("mockllm/model", f"ANSWER: {letter}") for letter in letters]
    for reply in replies:
        reply.usage = ModelUsage()  # otherwise Inspect fetches a tokenizer to count with
    samples = [
        Sample(id=f"s{n}", input=f"Which {n}?", choices=layouts.TEXTS, target="A") for n in range(5)
    ]
    task = Task(MemoryDataset(samples, name="medqa"), solver=multiple_choice(), scorer=choice())
    model = get_model("mockllm/model", custom_outputs=replies)
    (log,) = evaluate(task, model=model, log_dir=str(tmp_path), display="none", max_samples=1)
    turns = by("inspect-evals", Path(str(log.location).removeprefix("file://"))).turns
    assert log.results is not None, log.error
    accuracy = log.results.scores[0].metrics["accuracy"].value
    assert turns["correct"].mean() == pytest.approx(accuracy) == 0.4
    assert turns["answer"].to_list() == letters
    assert turns["dataset"].unique().to_list() == ["medqa"]


def test_lm_evaluation_harness_is_imported(tmp_path: Path) -> None:
    rng = random.Random(7)
    rows: list[dict[str, Any]] = []
    for id in range(20):
        scores = [rng.uniform(-9, 0) for _ in LETTERS]
        target = rng.randrange(4)
        rows.append({
            "doc_id": id, "doc": {"question": f"Which {id}?"}, "target": str(target),
            "arguments": {f"gen_args_{n}": {"arg_0": "Q", "arg_1": f" {x}"}
                          for n, x in enumerate(LETTERS)},
            "resps": [[[str(score), "False"]] for score in scores],
            "filtered_resps": [[str(score), "False"] for score in scores], "filter": "none",
            "metrics": ["acc", "acc_norm"], "doc_hash": "x", "prompt_hash": "x", "target_hash": "x",
            "acc": float(scores.index(max(scores)) == target),
        })  # fmt: skip
    folder = tmp_path / "out" / "org__model"
    folder.mkdir(parents=True)
    write_jsonl(folder / "samples_medqa_4options_2026-01-01T00-00-00.123.jsonl", rows)
    turns = by("lm-evaluation-harness", tmp_path / "out").turns
    assert turns["correct"].sum() == sum(row["acc"] for row in rows)
    assert turns.select("model", "dataset").unique().rows() == [("org__model", "medqa_4options")]
