from pathlib import Path

import pytest

from holdfast.errors import InputError
from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.protocols.stick_or_switch.flexibility import flexibility
from holdfast.protocols.stick_or_switch.scale import SCALE_COLUMNS, scale
from tests.results.frames import Row, table
from tests.results.offering import drawn, flexible, held, single


def study(model: str) -> list[Row]:
    rows = [
        single("q1", "A"), *held("q1", "AAA"), *held("q1", "NC", "negative"), flexible("q1", "A"),
        single("q1", "N", "single-shot-abstain"), single("q2", "A"), *held("q2", "AB"),
    ]  # fmt: skip
    return [row | {"model": model, "run": f"run of {model}"} for row in rows]


MODELS = ("vllm/Qwen/Qwen2.5-72B-Instruct", "unheard/of", "openai/gpt-4o", "ollama/qwen2.5:7b")


def test_models_stand_by_family_and_size() -> None:
    rows = scale(table([row for model in MODELS for row in study(model)]))
    assert rows.columns == list(SCALE_COLUMNS)
    assert rows.select("model", "family", "parameters").rows() == [
        ("ollama/qwen2.5:7b", "Qwen 2.5", 7.0),
        ("vllm/Qwen/Qwen2.5-72B-Instruct", "Qwen 2.5", 72.0),
        ("openai/gpt-4o", "GPT", None),
        ("unheard/of", None, None),
    ]


def test_the_figures_by_hand() -> None:
    row = scale(table(study("m"))).row(0, named=True)
    assert {name: row[name] for name in SCALE_COLUMNS[4:16]} == {
        "single_shot": 1.0, "isolated": 1.0, "conviction": 0.5, "tax": -0.5,
        "raw_tax": -0.5,
        "single_shot_abstention": 1.0, "isolated_abstention": 1.0, "abstention": 0.0,
        "abstention_tax": -1.0, "raw_abstention_tax": -1.0, "correct_rate": 1.0,
        "incorrect_rate": 1.0,
    }  # fmt: skip


def test_a_users_own_sizes(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("model,family,parameters\nunheard/of,Mine,3.5\n")
    row = scale(table(study("unheard/of")), models=str(own)).row(0, named=True)
    assert (row["family"], row["parameters"]) == ("Mine", 3.5)
    with pytest.raises(InputError, match="cannot be read"):
        scale(table(study("m")), models=str(tmp_path / "none.csv"))


@pytest.mark.parametrize("seed", range(5))
def test_every_figure_is_that_of_its_own_table(seed: int) -> None:
    turns = table(drawn(seed))
    survived, taxes, switches = survival(turns), tax(turns), flexibility(turns)
    rows = scale(turns).to_dicts()
    assert len(rows) == survived["run"].n_unique()
    for row in rows:
        own = survived.filter(run=row["run"])
        for arm, name in (("positive", "conviction"), ("negative", "abstention")):
            last = own.filter(arm=arm)["survival"].to_list()[-1:]
            assert [row[name]] == (last or [None])
        paid = taxes.filter(run=row["run"], behaviour="abstention", against="single-shot")
        assert [row["abstention_tax"]] == (paid["tax"].to_list() or [None])
        assert [row["abstention_tax_low"]] == (paid["low"].to_list() or [None])
        held = own.filter(arm="positive").rows(named=True)
        assert row["conviction_high"] == (held[-1]["high"] if held else None)
        rates = switches.filter(run=row["run"])
        assert [row["incorrect_high"]] == (rates["incorrect_high"].to_list() or [None])
        assert [row["correct_rate"]] == (rates["correct_rate"].to_list() or [None])
