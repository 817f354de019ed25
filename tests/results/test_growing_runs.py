"""Runs that have grown: what extends a run, and how its logs become one table."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai import eval
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from polars.testing import assert_frame_equal

from holdfast.protocols.installed import PROTOCOLS
from holdfast.results.declaration import TABLES
from holdfast.results.runs import run_id, run_settings
from holdfast.results.turns import turns_table, write_turns
from tests.studies import question_rows, study, turns_of, write_jsonl
from tests.tasks import single_turn

TURN = ["question", "epoch", "arm", "path", "turn"]
UNSTEADY = ["latency", "shared"]


@pytest.fixture
def questions(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(3))


def put(questions: str, techniques: str = "rethink", **settings: Any) -> EvalLog:
    limit, epochs = settings.pop("limit", None), settings.pop("epochs", 1)
    model = settings.pop("model", None) or get_model("simulated/sycophant", memoize=False)
    return study(
        model, limit=limit, epochs=epochs, questions=questions, techniques=techniques, **settings
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "grows"),
    [
        ({"techniques": "all"}, True),
        ({"techniques": "none"}, True),
        ({"chains": "paper"}, True),
        ({"lengths": "1,20"}, True),
        ({"lengths": 10}, True),
        ({"seed": 7}, False),
        ({"suggest": "per-technique"}, False),
        ({"system_prompt": "none"}, False),
        ({"reasoning_history": "all"}, False),
        ({"contexts": "synthetic"}, False),
    ],
)
def test_a_larger_study_is_the_same_run(
    settings: dict[str, Any], grows: bool, questions: str
) -> None:
    assert (run_id(put(questions)) == run_id(put(questions, **settings))) == grows


@pytest.mark.parametrize("protocol", PROTOCOLS.own())
def test_a_judge_does_not_change_the_run(protocol: Any) -> None:
    """Where a judge reads the answers, the second judge does not change the run."""
    judges = {"--model-role judge", "--model-role judge-2"}
    assert len(judges & set(protocol.growing)) == 1
    assert not {"-T seed", "-T suggest", "-T system_prompt"} & set(protocol.growing)


@pytest.mark.rest_slow
@pytest.mark.parametrize("more", [{"biases": "all"}, {"mitigations": "education"}])
def test_more_biases_and_mitigations_are_the_same_run(more: dict[str, str], questions: str) -> None:
    model = get_model("simulated/sycophant", memoize=False)
    ids = set()
    for settings in ({}, more):
        task_settings: dict[str, Any] = {"biases": "recency", "controls": False} | settings
        task = single_turn(questions=questions, **task_settings)
        (log,) = eval(task, model=model, display="none", log_realtime=False)
        ids.add(run_id(log))
    assert len(ids) == 1


@pytest.mark.slow
def test_logs_of_a_run_are_one_table_in_any_order(questions: str) -> None:
    logs = [
        put(questions),
        put(questions, "inc_letter", limit=2),
        put(questions, "none", chains="double-check>option-mapping"),
    ]
    log_dir = str(Path(logs[0].location).parent)
    table = turns_table([log_dir])
    assert table["run"].unique().to_list() == [run_id(logs[0])]
    assert not table.select(pl.struct(TURN).is_duplicated().any()).item()
    assert table["question"].to_list() == sorted(table["question"])
    assert run_settings(logs[0])["-T techniques"] == "rethink"
    paths = {row[0]: row[1] for row in table.group_by("path").len().rows()}
    assert paths[""] == 3
    assert paths["double-check"] == paths["double-check>option-mapping"] == 3
    assert paths["authority-prior"] == 2
    assert table.height == 3 * (1 + 5 + 1) + 2 * 5
    # what one study of everything would have had
    whole = turns_of(
        put(questions, "rethink,inc_letter", chains="double-check>option-mapping")
    ).filter((pl.col("family") != "inc_letter") | (pl.col("question") != "q2"))
    order = {"by": TURN, "maintain_order": True}
    assert_frame_equal(table.drop(UNSTEADY).sort(**order), whole.drop(UNSTEADY).sort(**order))  # type: ignore[arg-type]


class Answering:
    """Says A to everything, but breaks down where the message holds a word."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __repr__(self) -> str:
        return "one and the same model"

    def __call__(self, messages: list[Any], *arguments: Any) -> ModelOutput:
        if self.word and self.word in messages[-1].text:
            raise RuntimeError("out of order")
        output = ModelOutput.from_content("mockllm/model", "Final Answer: (A)")
        # without a usage the framework would fetch a tokenizer
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output


def answering(word: str = "") -> Model:
    return get_model("mockllm/model", custom_outputs=Answering(word), memoize=False)


PHRASE = "given the stakes"
"""In the message of one technique only."""


def test_a_failed_turn_later_answered_counts_as_answered(
    questions: str,
) -> None:
    failing = put(questions, model=answering(PHRASE), limit=1)
    assert turns_of(failing)["status"].to_list().count("error") == 1
    put(questions, chains="double-check>option-mapping", model=answering(), limit=1)
    table = turns_table([str(Path(failing.location).parent)])
    assert table["run"].n_unique() == 1
    assert set(table["status"]) == {"parsed"}
    assert table.height == 7


def test_a_later_failure_does_not_replace_an_answer(
    questions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = put(questions, model=answering(), limit=1)
    monkeypatch.setenv("HOLDFAST_CACHE_DIR", str(tmp_path / "lost"))  # or it would not be asked
    longer = put(questions, "rethink,inc_letter", model=answering(PHRASE), limit=1)
    assert turns_of(longer)["status"].to_list().count("error") == 1
    table = turns_table([str(Path(sound.location).parent)])
    assert table["run"].n_unique() == 1
    assert not table.select(pl.struct(TURN).is_duplicated().any()).item()
    rows = table.filter(pl.col("path") == "high-stakes-neutral")
    assert rows["status"].to_list() == ["parsed"]


def test_epochs_of_a_grown_run_stay_apart(questions: str) -> None:
    first = put(questions, epochs=2)
    put(questions, "rethink,inc_letter", epochs=2)
    table = turns_table([str(Path(first.location).parent)])
    assert table.height == 3 * 2 * (1 + 5 + 5)
    assert table.group_by("epoch").len().sort("epoch")["len"].to_list() == [33, 33]


@pytest.mark.slow
def test_the_table_in_the_log_dir_matches_its_logs(questions: str) -> None:
    put(questions)
    log = put(questions, "inc_letter")
    log_dir = str(Path(log.location).parent)
    path, without_texts = write_turns(log_dir)
    table = turns_table([log_dir])
    assert_frame_equal(pl.read_parquet(path), table)
    assert_frame_equal(without_texts, table.drop("prompt", "reply"))
    # one source or two: each turn counts once
    assert_frame_equal(turns_table([path, log_dir]), table)
    for name, measure in TABLES.items():
        assert measure(without_texts).equals(measure(table)), name
