"""MedFuzz as people read it."""

import json

import polars as pl
from tests.results.attacking import attack, drawn, mentioned, probed, tries
from tests.results.frames import Row, table

from holdfast.render.tables import render
from holdfast.results.declaration import TABLES

TABLES_OF_ATTACKS = (
    "attacks",
    "attack-summary",
    "attacks by question",
    "permutation",
    "faithfulness",
)


def markdown(name: str, rows: list[Row]) -> list[str]:
    return render(TABLES[name](table(rows)), "md", name).splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def line_of(name: str, rows: list[Row], label: str) -> list[str]:
    (line,) = [own for own in markdown(name, rows) if own.startswith(f"| {label} |")]
    return cells(line)[1:]


STUDY = [*attack("q1", "AAB"), *attack("q2", "AAA"), *attack("q3", "B"), *attack("q4", "A?")]


def test_the_curve_has_models_beside_each_other_and_the_human_reference() -> None:
    rows = [*STUDY, *({**row, "model": "m2", "run": "r2"} for row in attack("q1", "AB"))]
    lines = markdown("attacks", rows)
    assert lines[0] == "| Attempts k | m1 | m2 |"
    assert [cells(line) for line in lines[2:5]] == [
        ["0", "66.7 [20.8, 93.9]", "100.0 [20.7, 100.0]"],
        ["1", "66.7 [20.8, 93.9]", "0.0 [0.0, 79.3]"],
        ["2", "33.3 [6.1, 79.2]", ""],
    ]
    notes = "\n".join(lines[5:])
    assert "Kept: m1 3 replicates of 3 questions, m2 1 replicates of 1 questions." in notes
    assert "76.6% on average on USMLE exams (MedFuzz (Ness et al., 2024), Figure 2)" in notes


def test_summary() -> None:
    rows = [*STUDY, *tries(["prose", "prose"], "fuzz@1", question="q1", epoch=1)[1:]]
    expected = {
        "Questions": "4", "All replicates": "4", "First answer wrong": "1", "Attack failed": "1",
        "Attack succeeded": "1", "Model error": "1", "of which unread": "1",
        "Succeeded %": "50.0 [9.5, 90.5]", "Attempts needed, mean": "2.00",
        "Tries of the attacker": "6", "Invalid tries": "1", "Invalid for": "prose 1",
        "Dollars": "", "Dollars for a success": "", "Generations without a price": "15",
    }  # fmt: skip
    found = {label: line_of("attack-summary", rows, label)[0] for label in expected}
    assert found == expected


def test_dollars() -> None:
    rows = [{**row, "cost": 0.0125} for row in attack("q1", "AB")]
    assert line_of("attack-summary", rows, "Dollars for a success") == ["0.0375"]


def test_list() -> None:
    named = json.dumps(["lives | alone", "a\nfarmer"])
    rows = [
        *attack("q1", "AAB", characteristics=named, words=12, review=7),
        *attack("q2", "AB"),
        *probed("q1", [0.75], [0.25], [0.25], [0.75]),
    ]
    table_lines = [line for line in markdown("attacks by question", rows) if line.startswith("| 1")]
    assert table_lines == [
        "| 1 | q1 | 1 | 2 | A > B |  |  |  | 7 | -50.0 | 0.667 | 0.667 | 12 | "
        "lives \\| alone; a farmer |"
    ]
    assert line_of("attacks by question", rows, "2") == ["q2", "1", "1", "A > B", *[""] * 9]


def test_characteristics_that_are_no_list_are_shown_as_they_are() -> None:
    rows = attack("q1", "AB", characteristics="{x}")
    assert line_of("attacks by question", rows, "1")[-1] == "{x}"


def test_permutation() -> None:
    rows = [*attack("q1", "AB"), *probed("q1", [0.75], [0.25], [0.25], [0.75], [])]
    assert line_of("permutation", rows, "q1") == [
        "1", "1", "75.0", "25.0", "-50.0", "1 of 2", "0.667", "0.667", "1", "logprobs", "1",
        "0", "0",
    ]  # fmt: skip
    untested = line_of("permutation", probed("q1", "A", "B"), "q1")
    assert untested[:8] == ["1", "", "100.0", "0.0", "-100.0", "", "", ""]


def test_faithfulness() -> None:
    rows = [*mentioned("q1", "00", "00"), *mentioned("q2", "10", "11"), *mentioned("q3", "11")]
    shown = line_of("faithfulness", rows, "judge")
    assert shown[:2] == ["2", "1: 50.0 [9.5, 90.5]"]
    assert shown[-3:] == ["1", "0.33 (2)", "0.50 (4)"]
    assert line_of("faithfulness", rows, "lexical")[-3:] == ["0", "", ""]


def test_studies_are_told_apart_and_texts_are_data() -> None:
    rows = [{**row, "model": "a|b"} for row in drawn(5, ("m1",))]
    rows += [{**row, "run": f"another {row['run']}"} for row in rows]
    for name in TABLES_OF_ATTACKS:
        text = "\n".join(markdown(name, rows))
        assert "a\\|b" in text
        assert text.count("another ") >= 1
        assert "tabular" in render(TABLES[name](table(rows)), "latex", name)


def test_every_row_is_in_the_data_formats() -> None:
    for name in TABLES_OF_ATTACKS:
        frame = TABLES[name](table(drawn(5)))
        assert pl.read_json(render(frame, "json", name).encode()).height == frame.height > 0
