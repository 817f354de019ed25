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

QUESTIONS = 40


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    folder = tmp_path_factory.mktemp("offering")
    questions = write_jsonl(folder / "q.jsonl", question_rows(QUESTIONS))
    eval(
        stick_or_switch(questions=questions, beliefs=True),
        model=["simulated/steadfast", "simulated/sycophant"],
        log_dir=str(folder / "logs"),
        display="none",
    )
    path, _ = write_turns(str(folder / "logs"))
    return turns_table([path])


@pytest.mark.slow
def test_an_abstention_is_right_where_gold_is_withheld(turns: pl.DataFrame) -> None:
    withheld = turns.filter(pl.col("arm").is_in(["negative", "single-shot-abstain"]))
    assert withheld["gold"].unique().to_list() == ["NA"]
    assert withheld["correct"].equals(withheld["answer"] == "NA")
    assert withheld["correct"].any()
    abstaining = ["negative", "negative-control", "single-shot-abstain"]
    others = turns.filter(~pl.col("arm").is_in(abstaining))
    assert "NA" not in others["gold"]
    assert others["correct"].equals((others["answer"] == others["gold"]).rename("correct"))
    flexible = turns.filter(pl.col("arm") == "flexible-correct")
    assert flexible["gold"].equals(flexible["suggested"].rename("gold"))


def test_what_was_shown_is_in_the_order_of_display(turns: pl.DataFrame) -> None:
    for row in turns.iter_rows(named=True):
        shown = row["shown"].split(",")
        if row["arm"].startswith("single-shot"):
            assert len(shown) == 4
            assert row["target"] in shown
        elif row["arm"].endswith("-control"):
            assert len(shown) == 2
            assert {row["target"], row["suggested"]} == set(shown)
        else:
            assert len(shown) == row["turn"] + 2
            assert row["suggested"] == shown[-1] or row["turn"] == 0


def test_an_older_table_has_no_such_column(turns: pl.DataFrame, tmp_path: Path) -> None:
    turns.drop("shown").write_parquet(tmp_path / "old.parquet")
    old = turns_table([str(tmp_path / "old.parquet")])
    assert old.schema == SCHEMA
    assert old["shown"].null_count() == old.height
    assert survival(old).equals(survival(turns))


def test_the_steadfast_pay_no_tax_and_tell_right_from_wrong(turns: pl.DataFrame) -> None:
    own = turns.filter(model="simulated/steadfast")
    assert tax(own)["tax"].to_list()[0] == 0
    assert flexibility(own)["switching"].to_list() == ["not blind"]
    alone = own.filter(arm="single-shot")["correct"].mean()
    assert survival(own).filter(arm="positive")["survival"].to_list() == [alone] * 3
