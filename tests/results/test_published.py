"""Figures that papers print, as rows of the tables."""

from typing import Any

import polars as pl
import pytest

from holdfast.errors import InputError
from holdfast.protocols.followup.published import medqa_followup
from holdfast.protocols.stick_or_switch.published import stick_or_switch
from holdfast.results.declaration import TABLES
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.published_figures import PUBLISHED_SOURCES, published

NUMBERS = {
    "paper": {
        "accuracy": 5 * (2 + 8 + 2 + 14 + 3), "accuracy by family": 5 * 5,
        "single-turn": 5 * (1 + 8 + 2), "accuracy by step": 5 * 3 * 2, "accuracy by system": 1,
        "chains by model": 1,
    },
    "paper-no-system": {"accuracy": 5 * 29, "accuracy by family": 5 * 5, "single-turn": 5 * 11},
    "stick-or-switch": {"tax": 18 * 3 * 2, "flexibility": 18 * 3, "scale": 17 * 3},
    "medmisbench": {"accuracy": 2, "single-turn": 2, "flips": 1},
    "whoflips": {"flips": 7 * 3},
    "sycobench-600": {"flips": 7},
}  # fmt: skip
"""Rows of each table by source."""


@pytest.mark.parametrize("table", TABLES)
def test_published_rows_can_follow_measured_ones(table: str) -> None:
    rows = {source: published(table, source) for source in PUBLISHED_SOURCES}
    assert {source for source in rows if rows[source].schema != TABLES[table].schema} == set()
    heights = {source: rows[source].height for source in NUMBERS}
    assert heights == {source: NUMBERS[source].get(table, 0) for source in NUMBERS}


@pytest.mark.parametrize(
    ("table", "source", "row", "figures"),
    [
        ("accuracy", "paper", {"technique": "authority-prior", "model": "Claude Sonnet 4"},
         {"dataset": "MedQA", "protocol": "followup", "arm": "followup", "path": "authority-prior",
          "family": "inc_letter", "axis": "direct", "depth": "deep", "n": 1273, "correct": None,
          "accuracy": 0.54, "low": None, "baseline": 0.912, "relative_change": -0.407,
          "p_value": None, "run": "Manczak et al. 2025, Table 2"}),
        # printed, and not recomputed: (74.3 - 84.7) / 84.7 in exact counts would be -0.122
        ("accuracy", "paper", {"path": "wrong-option", "model": "MedGemma 27B"},
         {"relative_change": -0.123, "n": None}),
        # figures in the text only
        ("accuracy by system", "paper", {},
         {"system": "Social Sciences (Ethics/Communication/Patient Safety)", "family": "context",
          "relative_change": -0.625, "run": "Manczak et al. 2025, appendix D.2"}),
        ("chains by model", "paper", {"model": "all models"},
         {"smaller_drop_share": 0.85, "chains": None, "recovered": None}),
        # -0.168 is printed, 0.525 - 0.692 would be -0.167
        *(("tax", "stick-or-switch",
           {"model": "GPT-4o", "dataset": "JAMA CC", "behaviour": behaviour},
           {"against": "single-shot", "n": None, "single_shot": 0.692, "isolated": None,
            "end_to_end": end, "tax": None, "low": None, "raw_tax": tax,
            "run": "Guo et al. 2026, Tables A.1 and A.2"})
          for behaviour, end, tax in (("conviction", 0.525, -0.168), ("abstention", 0.192, -0.5))),
        ("tax", "stick-or-switch",
         {"model": "all models", "dataset": "MedQA", "behaviour": "conviction"},
         {"single_shot": 0.574, "end_to_end": 0.41, "raw_tax": -0.164}),
        ("flexibility", "stick-or-switch", {"model": "Qwen-3 (14B)", "dataset": "MedQA"},
         {"correct_rate": 0.482, "incorrect_rate": 0.49, "difference": -0.008, "d_prime": None,
          "run": "Guo et al. 2026, Table A.3"}),
        ("scale", "stick-or-switch", {"model": "Qwen-2.5 (72B)", "dataset": "MedQA"},
         {"family": "Qwen 2.5", "parameters": 72.0, "conviction": 0.708, "raw_tax": -0.017,
          "abstention": 0.338, "raw_abstention_tax": -0.386, "correct_rate": 0.85,
          "incorrect_rate": 0.287, "single_shot_abstention": None}),
    ],
)  # fmt: skip
def test_cells_match_the_papers(
    table: str, source: str, row: dict[str, str], figures: dict[str, Any]
) -> None:
    keys = row | ({"model": f"{row['model']} [published]"} if "model" in row else {})
    (cell,) = published(table, source).filter(**keys).to_dicts()
    assert {name: cell[name] for name in figures} == figures


def test_averages_of_table_4_have_no_n() -> None:
    rows = published("accuracy", "paper-no-system").filter(
        pl.col("model").str.starts_with("GPT-4.1 ["), arm=FAMILY_AVERAGE
    )
    assert rows.select("protocol", "family", "accuracy", "relative_change", "n").rows() == [
        ("single-turn", "inc_letter", 0.914, -0.015, None),
        ("single-turn", "wrong_op", 0.824, -0.113, None),
        ("followup", "rethink", 0.93, 0.002, None),
        ("followup", "inc_letter", 0.882, -0.05, None),
        ("followup", "context", 0.58, -0.375, None),
    ]
    # nor have wrong options
    rows = published("accuracy").filter(pl.col("technique") != "")
    assert set(rows.filter(pl.col("n").is_null())["technique"]) == {"wrong-option"}
    assert set(rows["n"].drop_nulls()) == {1273}


@pytest.mark.parametrize("source", ["paper", "paper-no-system"])
def test_the_single_turn_table_is_part_of_the_accuracies(source: str) -> None:
    columns = ["model", "technique", "family", "arm", "n", "accuracy", "baseline",
               "relative_change", "run"]  # fmt: skip
    part = published("accuracy", source).filter(protocol="single-turn")
    assert published("single-turn", source).select(columns).equals(part.select(columns))


def test_steps_match_table_3() -> None:
    rows = published("accuracy by step").filter(model="MedGemma 27B [published]")
    assert rows.select("family", "step", "relative_change").rows() == [
        ("rethink", "step1", 0.017), ("rethink", "step2&3", -0.03),
        ("inc_letter", "step1", -0.145), ("inc_letter", "step2&3", -0.228),
        ("context", "step1", -0.277), ("context", "step2&3", -0.388),
    ]  # fmt: skip
    assert set(rows.select("relative_to", "accuracy", "n").rows()) == {("overall", None, None)}


@pytest.mark.parametrize(
    ("table", "source", "models"),
    [
        ("accuracy", "paper", medqa_followup().models),
        ("tax", "stick-or-switch", (*stick_or_switch().models, "all models")),
        ("flexibility", "stick-or-switch", (*stick_or_switch().models, "all models")),
    ],
)
def test_models_are_marked_as_published(table: str, source: str, models: tuple[str, ...]) -> None:
    names = published(table, source)["model"].unique(maintain_order=True).to_list()
    assert names == [f"{model} [published]" for model in models]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("accuracy", "papers"), r"source 'papers'.*'paper'"),
        (("acuracy",), r"'acuracy'.*'accuracy'"),
    ],
)
def test_an_unknown_name_offers_the_nearest(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        published(*names)
