import re
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError
from tests.results import frames

from holdfast.protocols.followup.published import MedQAFollowup, medqa_followup
from holdfast.results.declaration import TABLES
from holdfast.results.published_figures import compared_with_published

PAPER = medqa_followup()


@pytest.fixture(scope="module")
def text(resources: Path) -> str:
    return next(resources.glob("papers/001_*.txt")).read_text("utf-8")


def table(text: str, place: str, end: str) -> list[list[str]]:
    """Rows of a table of the paper's text, markup left out."""
    passage = text.split(f"\n{place}: ")[1].split(end)[0]
    lines = [re.sub(r"</?[bi]>", "", line) for line in passage.splitlines() if line[:1] == "|"]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if "--" not in line
    ]


def our_id(name: str) -> str:
    return name.lower().replace(" ", "-").replace("rag-style-context", "rag-style")


@pytest.mark.parametrize(
    ("source", "end"), [("paper", "#### 4.1"), ("paper-no-system", "Table 5: ")]
)
def test_every_cell_matches_the_paper(source: str, end: str, text: str) -> None:
    ours = PAPER.accuracy[source]
    header, baseline, *rows = table(text, ours.place, end)
    assert header[1:] == list(PAPER.models)
    assert baseline[1:] == [str(figure) for figure in ours.baseline]
    paper_rows = [(our_id(name), tuple(row)) for name, *row in rows if row[0]]
    our_rows = []
    for family in ours.families:
        our_rows += list(family.techniques.items())
        label = {"inc_letter": "inc_letter---biasmedqa", "wrong_op": "wrong_op---kggd"}
        name = label.get(family.family, "") if family.arm == "single-turn" else family.family
        our_rows.append((f"{name}-(avg)", family.average))
    assert paper_rows == our_rows
    assert len(paper_rows) == 10 + 17


def test_table_3_matches_the_paper(text: str) -> None:
    families, steps, *rows = table(text, "Table 3", "Figure 3: ")
    assert [name for name in families[1:] if name] == list(PAPER.steps.changes)
    assert steps[1:3] == ["Step 1", "Steps 2&3"]
    # the table has a hyphen in one model's name
    assert [row[0].replace("-mini", " mini") for row in rows] == list(PAPER.models)
    for column, row in enumerate(rows):
        ours = [change for by in PAPER.steps.changes.values() for change in by[column]]
        assert row[1:] == ours


def test_figures_of_the_text_match_the_paper(text: str) -> None:
    assert f"high {PAPER.sub_additive.share}" in text
    assert "surprisingly high 85%" in text
    (comparison,) = PAPER.systems
    assert f"a relative {comparison.change.strip('-')} drop for {comparison.model}" in text
    assert f"| {comparison.system} |" in text
    assert f"The dataset contains {PAPER.questions:,} questions" in text


def test_a_column_of_accuracies_matches() -> None:
    baseline, by_technique = PAPER.accuracies("paper-no-system", "GPT-4.1 mini")
    assert baseline == Decimal("91.0")
    assert by_technique["rag-style"] == Decimal("34.6")
    assert by_technique["wrong-option"] == Decimal("79.4")
    assert len(by_technique) == 8 + 14


def test_a_row_must_have_a_figure_for_each_model() -> None:
    data = PAPER.model_dump()
    data["steps"]["changes"]["context"] = data["steps"]["changes"]["context"][1:]
    with pytest.raises(ValidationError, match="Table 3: context lacks a model"):
        MedQAFollowup.model_validate(data)
    data = PAPER.model_dump()
    data["accuracy"]["paper"]["families"][0]["average"] = ("89.3 (-2.1%)",)
    with pytest.raises(ValidationError, match="Table 2: a row without one figure"):
        MedQAFollowup.model_validate(data)


@pytest.mark.parametrize("cell", ["89.3", "89.3 (2.1%)", "89.3 (−2.1%)", "89 (-2.1%)"])
def test_a_cell_is_as_the_tables_print_it(cell: str) -> None:
    data = PAPER.model_dump()
    data["accuracy"]["paper"]["families"][0]["average"] = (cell,) * 5
    with pytest.raises(ValidationError):
        MedQAFollowup.model_validate(data)


@pytest.mark.parametrize("name", ["accuracy", "single-turn"])
def test_biases_in_another_wording_are_marked(name: str) -> None:
    recency = frames.alone("q1", "B", "recency") | {"family": "inc_letter"}
    ours = [frames.alone("q1", "A"), recency]
    rows, _ = compared_with_published(TABLES[name](frames.table(ours)), name, "paper")
    paper_rows = rows.filter(pl.col("model").str.ends_with("[published]"))
    single = paper_rows.filter(pl.col("arm") == "single-turn")
    assert single["run"].str.ends_with("in BiasMedQA's wording").all()
    grid = (TABLES[name].layout(rows.to_dicts()) or [])[0]
    assert any(text.startswith("†") and "BiasMedQA's wording" in text for text in grid.notes)
    lines = {line.label: line for block in grid.blocks for group in block.groups for line in group}
    paper_columns = [n for n, header in enumerate(grid.columns) if "[published]" in header]
    assert all("†" in lines["recency"].cells[n].text for n in paper_columns)
    assert "†" not in lines["recency"].cells[0].text
    assert all("†" not in lines["wrong-option"].cells[n].text for n in paper_columns)
