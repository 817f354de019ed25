"""Parity with Stick-or-Switch: every difference and average from the printed cells."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from pathlib import Path

import pytest

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
COMMERCIAL = ("GPT-5.2", "GPT-4o")
QUESTIONS, COMMERCIAL_QUESTIONS = 1200, 400
"""Not printed in the paper's text; the counts that the tables allow."""

Figures = tuple[Decimal, Decimal, Decimal]
Interval = tuple[Fraction, Fraction]
HALF = Fraction(1, 20)


def figures(cell: Conviction | Flexibility) -> Figures:
    if isinstance(cell, Conviction):
        return cell.single_shot, cell.multi_turn, cell.difference
    return cell.incorrect, cell.correct, cell.difference


def rows(table: ModelTable[Conviction] | ModelTable[Flexibility]) -> dict[str, dict[str, Figures]]:
    """Figures by row and dataset, the average as the last row."""
    cells = {model: {d: figures(c) for d, c in row.items()} for model, row in table.cells.items()}
    return cells | {"Average": {d: figures(c) for d, c in table.average.items()}}


@pytest.fixture(scope="module")
def text(resources: Path) -> str:
    return next(resources.glob("papers/002_*.txt")).read_text("utf-8")


# --- differences and averages from the printed cells, known to half of their last digit ---


def around(figure: Decimal) -> Interval:
    """What rounds to the figure; both ends, since the paper's rule for ties is unknown."""
    return Fraction(figure) - HALF, Fraction(figure) + HALF


def overlap(left: Interval, right: Interval) -> Interval:
    """What is in both; the ends change places where nothing is."""
    return max(left[0], right[0]), min(left[1], right[1])


def tightened(first: Interval, second: Interval, difference: Interval) -> tuple[Interval, ...]:
    """What is left of three intervals when the third is of the second less the first.

    One pass is enough: each bound follows from at most two others.
    """
    return (
        overlap(first, (second[0] - difference[1], second[1] - difference[0])),
        overlap(second, (first[0] + difference[0], first[1] + difference[1])),
        overlap(difference, (second[0] - first[1], second[1] - first[0])),
    )


def mean(intervals: list[Interval]) -> Interval:
    low, high = zip(*intervals, strict=True)
    return sum(low, Fraction()) / len(low), sum(high, Fraction()) / len(high)


def impossible(table: ModelTable[Conviction] | ModelTable[Flexibility]) -> list[tuple[str, str]]:
    """Rows and datasets with no unrounded figures behind them; an average, none with its rows."""
    misprints = []
    for dataset in PAPER.datasets:
        behind: list[tuple[Interval, ...]] = []
        for name, row in rows(table).items():
            intervals = [around(figure) for figure in row[dataset]]
            if name == "Average":
                columns = [mean(list(column)) for column in zip(*behind, strict=True)]
                intervals = [overlap(*pair) for pair in zip(intervals, columns, strict=True)]
            first, second, difference = intervals
            behind.append(tightened(first, second, difference))
            if any(low > high for low, high in behind[-1]):
                misprints.append((name, dataset))
    return misprints


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.place)
def test_differences_and_averages_fit_unrounded_figures(
    table: ModelTable[Conviction] | ModelTable[Flexibility],
) -> None:
    assert impossible(table) == []


@pytest.mark.parametrize("table", ["conviction", "abstention", "flexibility"])
@pytest.mark.parametrize(
    ("place", "shift"),
    [(("cells", "Llama-3.1 (8B)"), "0.3"), (("average",), "0.2"), (("average",), "-0.2")],
)
@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_misprint_is_found(table: str, place: tuple[str, ...], shift: str, column: int) -> None:
    data = PAPER.model_dump()
    row = data[table]
    for key in place:
        row = row[key]
    name = list(row["JAMA CC"])[column]
    row["JAMA CC"][name] += Decimal(shift)
    paper = StickOrSwitch.model_validate(data)
    row_name = "Average" if place == ("average",) else place[-1]
    assert (row_name, "JAMA CC") in impossible(getattr(paper, table))


def test_differences_off_by_a_last_digit_are_listed() -> None:
    off = [
        (table.place, name, dataset)
        for table in TABLES
        for name, row in rows(table).items()
        for dataset, (first, second, difference) in row.items()
        if second - first != difference
    ]
    by_table = [sum(place == table.place for place, _, _ in off) for table in TABLES]
    assert by_table == [17, 11, 17]  # of 54 each: differences are of unrounded figures
    assert [cell for cell in off if cell[1] == "Average"] == [
        ("Table A.1", "Average", "JAMA CC"),
        ("Table A.3", "Average", "MedQA"),
        ("Table A.3", "Average", "MedMCQA"),
    ]


def test_averages_off_by_a_last_digit_are_listed() -> None:
    off = []
    for table in TABLES:
        for dataset, averages in rows(table)["Average"].items():
            columns = zip(*(figures(row[dataset]) for row in table.cells.values()), strict=True)
            for average, column in zip(averages, columns, strict=True):
                ours = sum(column) / Decimal(len(column))
                if abs(ours - average) > Decimal("0.05"):
                    off.append((table.place, dataset, str(average), f"{ours:.3f}"))
    assert off == [
        ("Table A.1", "MedQA", "41.0", "41.053"),
        ("Table A.1", "MedMCQA", "59.3", "59.353"),
        ("Table A.1", "MedMCQA", "-17.3", "-17.353"),
        ("Table A.2", "MedMCQA", "59.3", "59.353"),
    ]


# --- whole counts of questions behind Tables A.1 and A.2 ---


def counts(figure: Decimal, n: int) -> list[int]:
    """Counts of n that print as this percentage, ties of rounding to either side."""
    low, high = (n * (20 * figure + side) / 2000 for side in (-1, 1))
    return list(range(ceil(low), floor(high) + 1))


def prints(k: int, n: int, figure: Decimal) -> bool:
    return abs(2000 * k - int(20 * figure) * n) <= n


def pairs(cell: Conviction, n: int) -> list[tuple[int, int]]:
    """Counts of n, single-shot and multi-turn, that print as the cell with its difference."""
    return [
        (before, after)
        for before in counts(cell.single_shot, n)
        for after in counts(cell.multi_turn, n)
        if prints(after - before, n, cell.difference)
    ]


def possible_sizes(models: list[str], dataset: str, below: int) -> list[int]:
    cells = [t.cells[m][dataset] for t in (PAPER.conviction, PAPER.abstention) for m in models]
    return [n for n in range(1, below) if all(pairs(cell, n) for cell in cells)]


@pytest.mark.parametrize("dataset", PAPER.datasets)
def test_tables_allow_few_numbers_of_questions(dataset: str) -> None:
    open_weight = [model for model in PAPER.models if model not in COMMERCIAL]
    assert len(open_weight) == 15
    assert possible_sizes(open_weight, dataset, 1500) == [QUESTIONS]
    assert possible_sizes(list(COMMERCIAL), dataset, 600) == [COMMERCIAL_QUESTIONS]


def triples(model: str, dataset: str) -> set[tuple[int, int, int]]:
    """Counts, single-shot, positive and negative, behind both tables; in parts of 1,200."""
    n = COMMERCIAL_QUESTIONS if model in COMMERCIAL else QUESTIONS
    scale = QUESTIONS // n
    return {
        (before * scale, conviction * scale, abstention * scale)
        for before, conviction in pairs(PAPER.conviction.cells[model][dataset], n)
        for single_shot, abstention in pairs(PAPER.abstention.cells[model][dataset], n)
        if single_shot == before
    }


@pytest.mark.parametrize("dataset", PAPER.datasets)
def test_whole_counts_print_as_every_cell_difference_and_average_at_once(dataset: str) -> None:
    sums = {(0, 0, 0)}
    for model in PAPER.models:
        behind = triples(model, dataset)
        sums = {(a + x, b + y, c + z) for a, b, c in sums for x, y, z in behind}
    n = QUESTIONS * len(PAPER.models)
    conviction, abstention = PAPER.conviction.average[dataset], PAPER.abstention.average[dataset]
    assert any(
        prints(a, n, conviction.single_shot)
        and prints(b, n, conviction.multi_turn)
        and prints(b - a, n, conviction.difference)
        and prints(c, n, abstention.multi_turn)
        and prints(c - a, n, abstention.difference)
        for a, b, c in sums
    )


# --- the tables against each other and against the text ---


def test_single_shot_of_table_a2_is_the_accuracy_of_table_a1() -> None:
    ours = rows(PAPER.conviction)
    for name, row in rows(PAPER.abstention).items():
        for dataset, cells in row.items():
            assert cells[0] == ours[name][dataset][0]


def test_table_a2_prints_no_single_shot_abstention(text: str) -> None:
    # section 6.1 has these three near or below chance when they abstain with all options at once
    assert "including the majority of models under 8B, as well as larger models like" in text
    assert "like Gemma 3 27B, Llama 3 70B, and Qwen 2.5 72B" in text
    # section 6.2 takes the figures of Table A.2 for such rates
    assert "Despite single-shot abstention rates of 60-70%" in text
    models = ("Gemma-3 (27B)", "Llama-3.1 (70B)", "Qwen-2.5 (72B)")
    shares = [cell.single_shot for m in models for cell in PAPER.abstention.cells[m].values()]
    assert (min(shares), max(shares)) == (Decimal("58.7"), Decimal("73.8"))


def test_one_model_has_two_names(text: str) -> None:
    assert "than Llama 3.3 70B across all datasets" in text
    assert [model for model in PAPER.models if "70B" in model] == ["Llama-3.1 (70B)"]


def survivors_beyond_turn_2() -> Iterator[tuple[str, str, Decimal, Decimal]]:
    """Abstentions held to the end that are more than all that refuse an incorrect suggestion."""
    for model, row in PAPER.abstention.cells.items():
        for dataset, cell in row.items():
            refusals = 100 - PAPER.flexibility.cells[model][dataset].incorrect
            if cell.multi_turn > refusals + Decimal("0.1"):
                yield model, dataset, cell.multi_turn, refusals


def test_some_abstentions_rise_after_turn_2() -> None:
    assert list(survivors_beyond_turn_2()) == [
        ("Llama-3.1 (8B)", "MedMCQA", Decimal("53.6"), Decimal("53.2"))
    ]


def outside(cells: list[tuple[str, str, Decimal]], low: str, high: str) -> list[tuple[str, ...]]:
    """Figures that do not round to a range of whole percents."""
    return [
        (model, dataset, str(figure))
        for model, dataset, figure in cells
        if not Decimal(low) - Decimal("0.5") <= figure <= Decimal(high) + Decimal("0.5")
    ]


def test_ranges_of_the_text_outside_the_tables(text: str) -> None:
    assert "Qwen 3 32B demonstrates a severe failure mode, with accuracy dropping by 40–60" in text
    drops = PAPER.conviction.cells["Qwen-3 (32B)"].items()
    assert outside([("Qwen-3 (32B)", d, -c.difference) for d, c in drops], "40", "60") == [
        ("Qwen-3 (32B)", "MedQA", "64.2")
    ]
    assert "similar rates of 45–50% across all dataset (Table A.3)" in text
    rates = [
        (model, dataset, rate)
        for model in ("Qwen-3 (32B)", "Qwen-3 (14B)", "Qwen-3 (8B)")
        for dataset, cell in PAPER.flexibility.cells[model].items()
        for rate in (cell.incorrect, cell.correct)
    ]
    assert outside(rates, "45", "50") == [
        ("Qwen-3 (32B)", "MedMCQA", "52.8"),
        ("Qwen-3 (14B)", "MedMCQA", "51.5"),
        ("Qwen-3 (8B)", "MedMCQA", "51.5"),
    ]
    assert "by an average of up to 30%, reaching 65% in certain models" in text
    taxes = [(t.place, d, -c.difference) for t in TABLES[:2] for d, c in t.average.items()]
    assert outside(taxes, "0", "30") == [
        ("Table A.2", "MedQA", "32.4"),
        ("Table A.2", "JAMA CC", "32.7"),
        ("Table A.2", "MedMCQA", "36.6"),
    ]
    worst = min(
        figure[2] for t in TABLES[:2] for row in rows(t).values() for figure in row.values()
    )
    assert worst == Decimal("-64.2")
    assert "final abstention survival rate falls below random chance" in text
    jama = [(m, "JAMA CC", PAPER.abstention.cells[m]["JAMA CC"].multi_turn) for m in
            ("Qwen-2.5 (72B)", "Llama-3.1 (70B)")]  # fmt: skip
    # chance of four options, if the vignettes have as many as the other two datasets
    assert [cell for cell in jama if cell[2] >= 25] == [
        ("Llama-3.1 (70B)", "JAMA CC", Decimal("25.8"))
    ]


def test_counts_of_models_in_the_text_are_those_of_table_a1(text: str) -> None:
    below = [
        sum(row[dataset].difference < 0 for row in PAPER.conviction.cells.values())
        for dataset in PAPER.datasets
    ]
    assert (
        "({} of 17 on MedQA; {} of 17 on JAMA CC; {} of 17 on MedMCQA; Table A.1)".format(*below)
        in text
    )
