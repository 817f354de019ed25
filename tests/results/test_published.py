import polars as pl
import pytest

from holdfast.errors import InputError
from holdfast.protocols.followup.published import medqa_followup
from holdfast.protocols.stick_or_switch.published import stick_or_switch
from holdfast.results.accuracy import RANKS
from holdfast.results.controls import EFFECT
from holdfast.results.declaration import TABLES
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.missing import MISSING
from holdfast.results.published_figures import PUBLISHED_SOURCES, published
from holdfast.results.turns import SCHEMA

MEASURED = {name: table(pl.DataFrame(schema=SCHEMA)) for name, table in TABLES.items()}
PRINTED = {
    "paper": {
        "accuracy": 5 * (2 + 8 + 2 + 14 + 3),
        "accuracy by family": 5 * 5,
        "single-turn": 5 * (1 + 8 + 2),
        "accuracy by step": 5 * 3 * 2,
        "accuracy by system": 1,
        "chains by model": 1,
    },
    "paper-no-system": {"accuracy": 5 * 29, "accuracy by family": 5 * 5, "single-turn": 5 * 11},
    "stick-or-switch": {"tax": 18 * 3 * 2, "flexibility": 18 * 3, "scale": 17 * 3},
    "medmisbench": {"accuracy": 2, "single-turn": 2, "flips": 1},
    "whoflips": {"flips": 7 * 3},
    "sycobench-600": {"flips": 7},
}
"""Rows of each table by source."""


@pytest.mark.parametrize("source", PUBLISHED_SOURCES)
@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_the_columns_of_the_measured_one(table: str, source: str) -> None:
    rows = published(table, source)
    assert rows.schema == MEASURED[table].schema
    assert rows.height == PRINTED[source].get(table, 0)
    # so it can stand below it
    assert pl.concat([MEASURED[table], rows]).height == rows.height


def test_a_cell_of_table_2() -> None:
    (row,) = (
        published("accuracy")
        .filter(pl.col("technique") == "authority-prior", pl.col("model").str.contains("Claude"))
        .iter_rows(named=True)
    )
    assert row == {
        "model": "Claude Sonnet 4 [published]", "dataset": "MedQA", "protocol": "followup",
        "arm": "followup", "path": "authority-prior", "technique": "authority-prior",
        "family": "inc_letter", "axis": "direct", "depth": "deep", "n": 1273, "correct": None,
        "accuracy": 0.54, "low": None, "high": None, "baseline": 0.912, "relative_change": -0.407,
        "change_low": None, "change_high": None, "p_value": None, "p_adjusted": None,
        "unparsed": None, "refused": None, "non_response": None,
        **dict.fromkeys((*EFFECT, "n_all", "of_all", *MISSING, *RANKS)),
        "run": "Manczak et al. 2025, Table 2",
    }  # fmt: skip


def test_a_change_is_as_printed_and_not_recomputed() -> None:
    row = published("accuracy").filter(
        pl.col("path") == "wrong-option", pl.col("model").str.contains("27B")
    )
    assert row["relative_change"].item() == -0.123
    # (74.3 - 84.7) / 84.7 in exact counts would be -0.122


def test_averages_are_printed_and_their_n_is_not() -> None:
    rows = published("accuracy", "paper-no-system").filter(
        pl.col("arm") == FAMILY_AVERAGE, pl.col("model").str.starts_with("GPT-4.1 [")
    )
    assert rows["family"].to_list() == [
        "inc_letter", "wrong_op", "rethink", "inc_letter", "context",
    ]  # fmt: skip
    assert rows["accuracy"].to_list() == [0.914, 0.824, 0.93, 0.882, 0.58]
    assert rows["relative_change"].to_list() == [-0.015, -0.113, 0.002, -0.05, -0.375]
    assert rows["protocol"].to_list() == ["single-turn"] * 2 + ["followup"] * 3
    assert rows["n"].to_list() == [None] * 5
    biases = "Manczak et al. 2025, Table 4, biases in BiasMedQA's wording"
    assert rows["run"].to_list() == [biases] * 2 + ["Manczak et al. 2025, Table 4"] * 3


def test_n_of_the_wrong_options_is_not_known() -> None:
    rows = published("accuracy").filter(pl.col("technique") != "")
    assert set(rows.filter(pl.col("n").is_null())["technique"]) == {"wrong-option"}
    assert set(rows["n"].drop_nulls()) == {1273}


@pytest.mark.parametrize("source", ["paper", "paper-no-system"])
def test_the_single_turn_table_is_that_part_of_the_accuracies(source: str) -> None:
    columns = ["model", "technique", "family", "arm", "n", "accuracy", "baseline",
               "relative_change", "run"]  # fmt: skip
    part = published("accuracy", source).filter(pl.col("protocol") == "single-turn")
    rows = published("single-turn", source)
    assert rows.select(columns).equals(part.select(columns))
    assert rows["mitigation"].unique().to_list() == [""]
    assert rows["plain"].null_count() == rows["suggested_rate"].null_count() == rows.height


def test_table_3() -> None:
    rows = published("accuracy by step").filter(pl.col("model") == "MedGemma 27B [published]")
    assert rows.select("family", "step", "relative_change").rows() == [
        ("rethink", "step1", 0.017), ("rethink", "step2&3", -0.03),
        ("inc_letter", "step1", -0.145), ("inc_letter", "step2&3", -0.228),
        ("context", "step1", -0.277), ("context", "step2&3", -0.388),
    ]  # fmt: skip
    assert rows["relative_to"].unique().to_list() == ["overall"]
    assert rows["accuracy"].null_count() == rows["n"].null_count() == 6


def test_the_figures_printed_in_the_text_only() -> None:
    (fragile,) = published("accuracy by system").iter_rows(named=True)
    assert fragile["system"] == "Social Sciences (Ethics/Communication/Patient Safety)"
    assert (fragile["family"], fragile["relative_change"]) == ("context", -0.625)
    assert fragile["run"] == "Manczak et al. 2025, appendix D.2"
    (summary,) = published("chains by model").iter_rows(named=True)
    assert (summary["model"], summary["smaller_drop_share"]) == ("all models [published]", 0.85)
    assert summary["chains"] is summary["recovered"] is None


def test_a_model_is_marked_as_published() -> None:
    names = published("accuracy")["model"].unique(maintain_order=True).to_list()
    assert names == [f"{model} [published]" for model in medqa_followup().models]


# --- Stick-or-Switch ---


def test_a_cell_of_tables_a1_and_a2() -> None:
    rows = published("tax", "stick-or-switch").filter(model="GPT-4o [published]", dataset="JAMA CC")
    assert rows.to_dicts() == [
        {
            "model": "GPT-4o [published]", "dataset": "JAMA CC", "behaviour": behaviour,
            "against": "single-shot", "n": None, "single_shot": 0.692, "isolated": None,
             "end_to_end": end, "tax": None, "low": None, "high": None,
            "raw_tax": tax, "run": "Guo et al. 2026, Tables A.1 and A.2",
        }
        for behaviour, end, tax in (("conviction", 0.525, -0.168), ("abstention", 0.192, -0.5))
    ]  # fmt: skip
    # -0.168 is printed, 0.525 - 0.692 would be -0.167


def test_a_cell_of_table_a3() -> None:
    rows = published("flexibility", "stick-or-switch")
    (row,) = rows.filter(model="Qwen-3 (14B) [published]", dataset="MedQA").to_dicts()
    known = {name: value for name, value in row.items() if value is not None}
    assert known == {
        "model": "Qwen-3 (14B) [published]", "dataset": "MedQA", "correct_rate": 0.482,
        "incorrect_rate": 0.49, "difference": -0.008, "run": "Guo et al. 2026, Table A.3",
    }  # fmt: skip


@pytest.mark.parametrize("table", ["tax", "flexibility"])
def test_the_averages_are_rows_of_all_models(table: str) -> None:
    rows = published(table, "stick-or-switch")
    names = rows["model"].unique(maintain_order=True).to_list()
    paper = stick_or_switch()
    assert names == [f"{model} [published]" for model in (*paper.models, "all models")]
    assert rows["dataset"].unique(maintain_order=True).to_list() == list(paper.datasets)


def test_the_average_tax() -> None:
    rows = published("tax", "stick-or-switch").filter(model="all models [published]")
    assert rows.select("dataset", "behaviour", "single_shot", "end_to_end", "raw_tax").rows()[
        :2
    ] == [
        ("MedQA", "conviction", 0.574, 0.41, -0.164),
        ("MedQA", "abstention", 0.574, 0.25, -0.324),
    ]


def test_scale_puts_the_tables_together_by_family_and_size() -> None:
    rows = published("scale", "stick-or-switch").filter(dataset="MedQA")
    assert rows["family"].unique(maintain_order=True).to_list() == [
        "GPT", "Qwen 2.5", "Llama 3", "Qwen 3", "Gemma 3",
    ]  # fmt: skip
    qwen = rows.filter(family="Qwen 2.5")
    assert qwen["parameters"].to_list() == [1.5, 3.0, 7.0, 72.0]
    assert qwen.select("conviction", "raw_tax", "abstention", "raw_abstention_tax", "correct_rate",
                       "incorrect_rate").row(3) == (
        0.708, -0.017, 0.338, -0.386, 0.85, 0.287,
    )  # fmt: skip
    assert rows["single_shot_abstention"].null_count() == rows.height


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown published source 'papers'.*'paper'"):
        published("accuracy", "papers")
    with pytest.raises(InputError, match=r"unknown table 'acuracy'.*'accuracy'"):
        published("acuracy")
