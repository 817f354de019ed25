"""The measures of Stick-or-Switch on real dialogues, against the file's own columns."""

from pathlib import Path

import polars as pl
import pytest

from holdfast.protocols.stick_or_switch.convictions import survival
from holdfast.protocols.stick_or_switch.flexibility import beliefs, flexibility, winners
from holdfast.results.accuracy import accuracy
from holdfast.results.declaration import TABLES
from tests.results.duet import SETTINGS, TURNS, duet_turns

MODELS = ("Llama-3.1-8B-Instruct", "gpt-4o-mini")


@pytest.fixture(scope="module")
def recordings(shared: Path) -> Path:
    return shared / "data" / "duet_recordings" / "biology_two_models.csv"


def own(recordings: Path, model: str, setting: str) -> pl.DataFrame:
    rows = pl.read_csv(recordings).filter(model_name=model, setting=setting)
    assert rows.height > 100
    return rows


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("model", MODELS)
def test_accuracy_by_turn_is_exactly_that_of_the_file(
    recordings: Path, model: str, setting: str
) -> None:
    rows = own(recordings, model, setting)
    measured = accuracy(duet_turns(recordings)).filter(model=model, arm=SETTINGS[setting])
    assert measured.select("path", "n", "correct", "accuracy").rows() == [
        (
            ">".join(["push"] * turn), rows.height, rows[f"turn_{turn}_correct"].sum(),
            rows[f"turn_{turn}_correct"].mean(),
        )
        for turn in range(TURNS)
    ]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_survival_is_exactly_the_product_of_the_files_columns(recordings: Path, model: str) -> None:
    rows = own(recordings, model, "NEG")
    measured = survival(duet_turns(recordings)).filter(model=model, arm="positive")
    right = pl.lit(1)
    expected = []
    for turn in range(TURNS):
        at_risk = rows.select(right.sum()).item() if turn else rows.height
        right = right * pl.col(f"turn_{turn}_correct")
        kept = rows.select(right.sum()).item()
        expected.append((turn + 1, rows.height, kept, kept / rows.height, at_risk, at_risk - kept))
    columns = ["turn", "n", "kept", "survival", "at_risk", "lost"]
    assert measured.select(columns).rows() == expected
    # where an answer comes back, a later accuracy is higher than survival
    assert expected[-1][2] <= rows["turn_3_correct"].sum()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("model", MODELS)
def test_one_push_from_each_side(recordings: Path, model: str, setting: str) -> None:
    # a held answer pushed to the right option is the correct side, to a wrong one the other
    arms = {"NEG": "negative", "POS": "flexible-correct"}
    (row,) = flexibility(duet_turns(recordings, arms)).filter(model=model).to_dicts()
    rows, right = own(recordings, model, setting), pl.col("turn_1_correct")
    if setting == "POS":
        assert (row["n_correct"], row["correct_switches"]) == (
            rows.height, rows.select(right.sum()).item(),
        )  # fmt: skip
        assert row["correct_rate"] == rows["turn_1_correct"].mean()
        return
    to_other = rows.select(
        ((right == 0) & (pl.col("turn_1_selected_letter") != pl.col("target_letter"))).sum()
    ).item()
    wrong = rows.select((right == 0).sum()).item()
    assert (row["n_incorrect"], row["incorrect_switches"]) == (rows.height, wrong - to_other)
    assert row["incorrect_rate"] + to_other / rows.height == pytest.approx(
        1 - rows["turn_1_correct"].mean(), abs=1e-12  # type: ignore[operator]
    )  # fmt: skip


def test_both_models_switch_with_sense_in_these_dialogues(recordings: Path) -> None:
    arms = {"NEG": "negative", "POS": "flexible-correct"}
    rows = {row["model"]: row for row in flexibility(duet_turns(recordings, arms)).to_dicts()}
    gpt, llama = rows["gpt-4o-mini"], rows["Llama-3.1-8B-Instruct"]
    assert gpt["d_prime_low"] > 0
    # Llama takes 87% of both; whether its d' is within 0.5 the interval does not say
    assert llama["switching"] == "undetermined"
    assert llama["d_prime_low"] < -0.5 < 0.5 < llama["d_prime_high"]
    assert abs(llama["difference"]) < 0.01


def test_beliefs_are_the_files_confidences(recordings: Path) -> None:
    frame = beliefs(duet_turns(recordings)).filter(arm="positive", turn=2)
    for model in MODELS:
        rows = own(recordings, model, "NEG")
        (row,) = frame.filter(model=model).to_dicts()
        lost = rows.filter(turn_1_correct=0)
        assert row["target"] == pytest.approx(rows["turn_1_conf_answer"].mean(), abs=1e-9)
        assert row["suggested"] == pytest.approx(rows["turn_1_conf_target"].mean(), abs=1e-9)
        assert row["n_switched"] == lost.height
        assert row["before_switch"] == pytest.approx(lost["turn_0_conf_selected"].mean(), abs=1e-9)


def test_the_pushed_option_wins(recordings: Path) -> None:
    rows = winners(duet_turns(recordings)).filter(arm="positive")
    assert rows["offered"].sum() > rows["adopted"].sum() > 300


def test_beliefs_of_survivors_stand_beside_those_of_all(recordings: Path) -> None:
    turns = duet_turns(recordings).filter(pl.col("arm") == "positive")
    rows = beliefs(turns).filter(model="Llama-3.1-8B-Instruct").sort("turn").to_dicts()
    # it seems to come back, where only who still holds is left
    assert [round(100 * row["target"]) for row in rows] == [90, 14, 33, 66]
    assert [round(100 * row["target_all"], 1) for row in rows] == [90.4, 13.9, 6.5, 4.1]
    assert {row["n_all"] for row in rows} == {210}
    assert all(row["target_all_low"] < row["target_all"] < row["target_all_high"] for row in rows)


def test_recordings_that_stop_at_the_flip_say_that_they_are_of_survivors(recordings: Path) -> None:
    whole = duet_turns(recordings).filter(pl.col("arm") == "positive")
    gone = (pl.col("answer") != pl.col("target")).cast(pl.Int64)
    before = gone.cum_sum().over("model", "question", "epoch", order_by="turn") - gone
    stopped = accuracy(whole.filter(before == 0))
    held = survival(whole)
    for row in stopped.to_dicts():
        turn = row["path"].count(">") + bool(row["path"]) + 1
        (lasting,) = held.filter(model=row["model"], turn=turn).to_dicts()
        if turn <= 2:  # nothing had been given up before
            assert row["of_all"] is row["n_all"] is None
            continue
        assert row["n"] == lasting["at_risk"] < row["n_all"] == lasting["n"]
        # what was given up stays given up
        assert row["of_all"] == pytest.approx(lasting["survival"])
        assert row["of_all"] < row["accuracy"]
    (grid,) = TABLES["accuracy"].layout(stopped.to_dicts()) or []
    assert any("Survivors only" in note for note in grid.notes)
    assert accuracy(whole)["of_all"].null_count() == accuracy(whole).height
