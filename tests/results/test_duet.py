"""The measures of Stick-or-Switch on real dialogues, against the file's own columns."""

from pathlib import Path

import polars as pl
import pytest

from holdfast.protocols.stick_or_switch.convictions import survival
from holdfast.protocols.stick_or_switch.flexibility import beliefs, flexibility, winners
from holdfast.results.accuracy import accuracy
from tests.results.duet import SETTINGS, TURNS, duet_turns

MODELS = ("Llama-3.1-8B-Instruct", "gpt-4o-mini")
PUSHES = {"NEG": "negative", "POS": "flexible-correct"}
"""An answer pushed to the right option is the correct side, to a wrong one the other."""


@pytest.fixture(scope="module")
def recordings(resources: Path) -> Path:
    return resources / "data" / "duet_recordings" / "biology_two_models.csv"


def dialogues(recordings: Path, model: str, setting: str) -> pl.DataFrame:
    rows = pl.read_csv(recordings).filter(model_name=model, setting=setting)
    assert rows.height > 100
    return rows


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("model", MODELS)
def test_accuracy_by_turn_matches_the_file(recordings: Path, model: str, setting: str) -> None:
    rows = dialogues(recordings, model, setting)
    frame = accuracy(duet_turns(recordings)).filter(model=model, arm=SETTINGS[setting])
    right = [rows[f"turn_{turn}_correct"] for turn in range(TURNS)]
    assert frame.select("path", "n", "correct", "accuracy").rows() == [
        (">".join(["push"] * turn), rows.height, column.sum(), column.mean())
        for turn, column in enumerate(right)
    ]


@pytest.mark.parametrize("model", MODELS)
def test_survival_is_the_product_of_the_columns(recordings: Path, model: str) -> None:
    rows = dialogues(recordings, model, "NEG")
    frame = survival(duet_turns(recordings)).filter(model=model, arm="positive")
    right, figures, at_risk = pl.lit(1), [], rows.height
    for turn in range(TURNS):
        right = right * pl.col(f"turn_{turn}_correct")
        left = rows.select(right.sum()).item()
        figures.append((turn + 1, rows.height, left, left / rows.height, at_risk, at_risk - left))
        at_risk = left
    columns = ["turn", "n", "kept", "survival", "at_risk", "lost"]
    assert frame.select(columns).rows() == figures


@pytest.mark.parametrize("model", MODELS)
def test_switches_match_the_file(recordings: Path, model: str) -> None:
    (row,) = flexibility(duet_turns(recordings, PUSHES)).filter(model=model).to_dicts()
    rows = dialogues(recordings, model, "POS")
    right = rows["turn_1_correct"]
    assert (row["n_correct"], row["correct_switches"]) == (rows.height, right.sum())
    assert row["correct_rate"] == right.mean()
    rows = dialogues(recordings, model, "NEG")
    wrong = rows.filter(turn_1_correct=0)
    switches = wrong.filter(pl.col("turn_1_selected_letter") == pl.col("target_letter"))
    assert (row["n_incorrect"], row["incorrect_switches"]) == (rows.height, switches.height)
    if model == "gpt-4o-mini":
        assert row["d_prime_low"] > 0
    else:  # takes 87% of both; whether its d' is within 0.5 the interval does not say
        assert row["switching"] == "undetermined"
        assert row["d_prime_low"] < -0.5 < 0.5 < row["d_prime_high"]
        assert abs(row["difference"]) < 0.01


def test_beliefs_match_the_confidences_of_the_file(recordings: Path) -> None:
    turns = duet_turns(recordings).filter(pl.col("arm") == "positive")
    frame = beliefs(turns)
    for model in MODELS:
        rows = dialogues(recordings, model, "NEG")
        (row,) = frame.filter(model=model, turn=2).to_dicts()
        switches = rows.filter(turn_1_correct=0)
        figures = (row["target"], row["suggested"], row["before_switch"])
        assert figures == pytest.approx(
            (rows["turn_1_conf_answer"].mean(), rows["turn_1_conf_target"].mean(),
             switches["turn_0_conf_selected"].mean()), abs=1e-9,
        )  # fmt: skip
        assert row["n_switched"] == switches.height
    # those of survivors stand beside those of all: it seems to come back, where only who still
    # holds is left
    rows = frame.filter(model="Llama-3.1-8B-Instruct").sort("turn")
    assert [round(100 * share) for share in rows["target"]] == [90, 14, 33, 66]
    assert [round(100 * share, 1) for share in rows["target_all"]] == [90.4, 13.9, 6.5, 4.1]
    assert set(rows["n_all"]) == {210}
    offers = winners(turns)
    assert offers["offered"].sum() > offers["adopted"].sum() > 300


def test_truncated_recordings_contain_survivors(recordings: Path) -> None:
    whole = duet_turns(recordings).filter(pl.col("arm") == "positive")
    departure = (pl.col("answer") != pl.col("target")).cast(pl.Int64)
    before = departure.cum_sum().over("model", "question", "epoch", order_by="turn") - departure
    lasting = survival(whole)
    for row in accuracy(whole.filter(before == 0)).to_dicts():
        turn = row["path"].count(">") + bool(row["path"]) + 1
        (survivors,) = lasting.filter(model=row["model"], turn=turn).to_dicts()
        if turn <= 2:  # nothing had been given up before
            assert row["of_all"] is row["n_all"] is None
            continue
        assert row["n"] == survivors["at_risk"] < row["n_all"] == survivors["n"]
        # what was given up stays given up
        assert row["of_all"] == pytest.approx(survivors["survival"])
        assert row["of_all"] < row["accuracy"]
    assert accuracy(whole)["of_all"].null_count() == accuracy(whole).height
