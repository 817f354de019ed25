"""Turns whose right answer is not the question's own, and what they showed."""

from pathlib import Path

import polars as pl
import pytest
from inspect_ai import eval

from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.protocols.stick_or_switch.flexibility import flexibility
from holdfast.results.turns import SCHEMA, turns_table, write_turns
from tests.studies import question_rows, write_jsonl
from tests.tasks import stick_or_switch

ABSTENTIONS = ("negative", "negative-control", "single-shot-abstain")


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    folder = tmp_path_factory.mktemp("offering")
    questions = write_jsonl(folder / "q.jsonl", question_rows(16))
    eval(
        stick_or_switch(questions=questions, beliefs=True),
        model=["simulated/steadfast", "simulated/sycophant"],
        log_dir=str(folder / "logs"),
        display="none",
    )
    path, _ = write_turns(str(folder / "logs"))
    return turns_table([path])


@pytest.mark.slow
def test_gold_and_options_are_those_of_the_turn(turns: pl.DataFrame) -> None:
    for row in turns.iter_rows(named=True):
        arm, options = row["arm"], row["shown"].split(",")
        # an abstention is right where gold is withheld
        assert (row["gold"] == "NA") == (arm in ABSTENTIONS)
        assert row["correct"] == (row["answer"] == row["gold"])
        if arm.startswith("single-shot"):
            assert (len(options), row["target"] in options) == (4, True)
        elif arm.endswith("-control"):
            assert len(options) == 2
            assert {row["target"], row["suggested"]} == set(options)
        else:
            assert len(options) == row["turn"] + 2
            assert row["suggested"] == options[-1] or row["turn"] == 0
        if arm == "flexible-correct":
            assert row["gold"] == row["suggested"]


@pytest.mark.slow
def test_an_older_table_lacks_the_options(turns: pl.DataFrame, tmp_path: Path) -> None:
    turns.drop("shown").write_parquet(tmp_path / "old.parquet")
    old = turns_table([str(tmp_path / "old.parquet")])
    assert old.schema == SCHEMA
    assert old["shown"].null_count() == old.height
    assert survival(old).equals(survival(turns))


def test_a_steadfast_model_pays_no_tax_and_is_not_blind(turns: pl.DataFrame) -> None:
    steadfast = turns.filter(model="simulated/steadfast")
    assert tax(steadfast)["tax"].to_list()[0] == 0
    assert flexibility(steadfast)["switching"].to_list() == ["not blind"]
    right = steadfast.filter(arm="single-shot")["correct"].mean()
    assert survival(steadfast).filter(arm="positive")["survival"].to_list() == [right] * 3
