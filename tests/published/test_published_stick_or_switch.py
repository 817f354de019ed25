from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from holdfast.protocols.stick_or_switch.published import (
    Conviction,
    Flexibility,
    ModelTable,
    StickOrSwitch,
    stick_or_switch,
)

PAPER = stick_or_switch()
TABLES: list[ModelTable[Conviction] | ModelTable[Flexibility]] = [
    PAPER.conviction,
    PAPER.abstention,
    PAPER.flexibility,
]


def figures(cell: Conviction | Flexibility) -> tuple[Decimal, Decimal, Decimal]:
    if isinstance(cell, Conviction):
        return cell.single_shot, cell.multi_turn, cell.difference
    return cell.incorrect, cell.correct, cell.difference


@pytest.fixture(scope="module")
def text(resources: Path) -> str:
    return next(resources.glob("papers/002_*.txt")).read_text("utf-8")


def test_every_cell_matches_the_paper(text: str) -> None:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    start = [number for number, line in enumerate(lines) if line.startswith("| Model |")]
    assert len(start) == 3
    for table, first, end in zip(TABLES, start, [*start[1:], None], strict=True):
        header, *paper_rows = (
            [cell.strip() for cell in line.strip("|").split("|") if cell.strip()]
            for line in lines[first:end]
        )
        assert header[1:] == list(PAPER.datasets)
        if table is not PAPER.flexibility:
            assert paper_rows.pop(0) == ["SS", "MT"] * 3
        ours = [
            [name, *(figure for cell in row.values() for figure in cell.printed)]
            for name, row in [*table.cells.items(), ("Average", table.average)]
        ]
        assert paper_rows == ours
        assert sum(len(row) for row in paper_rows) == 18 * 7


def test_tables_are_those_the_text_names(text: str) -> None:
    # the stored text has no captions: what it says of a table tells which one that is
    medqa = [abs(table.average["MedQA"].difference) for table in TABLES[:2]]
    assert (
        f"final abstention rates drop by {medqa[1]} pp, compared to just a {medqa[0]} pp drop in "
        "accuracy"
    ) in text
    big = [PAPER.flexibility.cells[m]["JAMA CC"] for m in
           ("GPT-4o", "Llama-3.1 (70B)", "Qwen-2.5 (72B)")]  # fmt: skip
    assert "correct switch rates ({}%, {}%, and {}%".format(*(cell.correct for cell in big)) in text
    assert (
        "incorrectly adopt distractor suggestions {}%, {}%, and {}% of the time (Table A.3)"
    ).format(*(cell.incorrect for cell in big)) in text


def test_cells_are_found_by_model_and_dataset() -> None:
    cell = PAPER.conviction.cells["GPT-4o"]["JAMA CC"]
    assert figures(cell) == (Decimal("69.2"), Decimal("52.5"), Decimal("-16.8"))
    blind = PAPER.flexibility.cells["Qwen-3 (32B)"]["JAMA CC"]
    assert figures(blind) == (Decimal("47.2"), Decimal("47.2"), Decimal("0.0"))
    assert blind.printed == ("47.2", "47.2 (+0.0)")


@pytest.mark.parametrize("cell", ["85.5", "85.5 80.0 (-5.5)", "85.5 | 80.0 (5.5)", "85 | 80 (-5)"])
def test_a_pair_is_as_the_tables_print_it(cell: str) -> None:
    data = PAPER.model_dump()
    data["conviction"]["average"]["MedQA"] = cell
    with pytest.raises(ValidationError, match="not a pair of cells"):
        StickOrSwitch.model_validate(data)


def test_each_table_has_every_model_and_dataset() -> None:
    data = PAPER.model_dump()
    del data["abstention"]["cells"]["GPT-4o"]
    with pytest.raises(ValidationError, match=r"Table A\.2: its rows"):
        StickOrSwitch.model_validate(data)
    data = PAPER.model_dump()
    del data["flexibility"]["average"]["JAMA CC"]
    with pytest.raises(ValidationError, match=r"Table A\.3: a row without one pair"):
        StickOrSwitch.model_validate(data)
