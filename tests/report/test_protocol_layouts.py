"""Tables of Stick-or-Switch, MedFuzz and whole conversations as people read them."""

import json

import pytest
from tests.results.attacking import attack, drawn, mentioned, probed, tries
from tests.results.frames import Row, table, turn
from tests.results.offering import flexible, held, single

from holdfast.render.tables import render
from holdfast.results.declaration import TABLES
from holdfast.results.published_figures import compared_with_published


def markdown(name: str, rows: list[Row]) -> list[str]:
    return render(TABLES[name](table(rows)), "md", name).splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def line_of(name: str, rows: list[Row], label: str) -> list[str]:
    (line,) = [line for line in markdown(name, rows) if line.startswith(f"| {label} |")]
    return cells(line)[1:]


def offers(model: str = "m", dataset: str = "MedQA", run: str = "r1") -> list[Row]:
    rows = [
        single("q1", "A"), *held("q1", "AAA"), *held("q1", "NNN", "negative"),
        single("q1", "N", "single-shot-abstain"), flexible("q1", "A"),
        single("q2", "A"), *held("q2", "AC"), *held("q2", "NC", "negative"),
        single("q2", "B", "single-shot-abstain"), flexible("q2", "A"),
    ]  # fmt: skip
    return [row | {"model": model, "dataset": dataset, "run": run} for row in rows]


def chains(model: str = "m", run: str = "r1") -> list[Row]:
    """Two right first answers, one of them kept, and two wrong ones that are kept."""
    answers = {"q1": "AAA", "q2": "ABA", "q3": "CCC", "q4": "BBB"}
    return [
        turn(question, answer, path, suggested="D" if path else None, model=model, run=run)
        for question, letters in answers.items()
        for path, answer in zip(("", "push", "push>shove"), letters, strict=True)
    ]


ATTACKS = [*attack("q1", "AAB"), *attack("q2", "AAA"), *attack("q3", "B"), *attack("q4", "A?")]
NAMES = json.dumps(["lives | alone", "a\nfarmer"])
PROBES = probed("q1", [0.75], [0.25], [0.25], [0.75])
BELIEFS = [row | {"p_gold": 0.75, "p_suggested": 0.25, "p_answer": 0.75} for row in offers()]
Q2 = [row for row in chains() if row["question"] == "q2"]
MENTIONS = [*mentioned("q1", "00", "00"), *mentioned("q2", "10", "11"), *mentioned("q3", "11")]

LINES: dict[str, tuple[str, list[Row], list[str]]] = {
    "survival": ("survival", offers(), [
        "| 1 | 2 | 2 | 100.0 [34.2, 100.0] | 2 | 0 | 0.0 [0.0, 65.8] | 0 | 0 | 0 |",
        "| 2 | 2 | 1 | 50.0 [9.5, 90.5] | 2 | 1 | 50.0 [9.5, 90.5] | 1 | 0 | 0 |",
        "| 3 | 2 | 1 | 50.0 [9.5, 90.5] | 1 | 0 | 0.0 [0.0, 79.3] | 0 | 0 | 0 |",
    ]),
    "nobody at risk has no hazard": ("survival", [single("q1", "A"), *held("q1", "B")], [
        "| 3 | 1 | 0 | 0.0 [0.0, 79.3] | 0 | 0 |  | 0 | 0 | 0 |",
    ]),
    "tax": ("tax", offers(), [
        "| m | 2 | 100.0 | 100.0 | 50.0 | -50.0 [", "| m | 2 |  |  |  | +0.0 [",
    ]),
    "flexibility": ("flexibility", offers(), [
        "| m | 50.0 [9.5, 90.5] | 2 | 100.0 [34.2, 100.0] | 2 | +50.0 [",
        " | 0.97 [",  # z(2.5 / 3) - z(1.5 / 3)
        " | undetermined |",  # two abstentions say nothing of it
    ]),
    "winners": ("positions by winner", offers(), ["| C | 2 | 1 | 50.0 [9.5, 90.5] |"]),
    "beliefs of survivors and of all": ("beliefs", BELIEFS, [
        "| 1 | 2 | 75.0 [75.0, 75.0] | 75.0 [75.0, 75.0] | 25.0 [25.0, 25.0] | 0 |  | 0 |  |  |",
    ]),
    "turn of flip": ("turn-of-flip", chains(), [
        "| push | 4 | 2 | 0.75 [0.00, ", "| push > shove | 4 | 3 | 1.00 [0.00, ",
    ]),
    "one question has no interval": ("turn-of-flip", Q2, [
        "| push | 1 | 2 | 1.00 | 0 | 1.00 | 1.00 | 0 |",
        "| push > shove | 1 | 3 | 1.00 | 0 | 2.00 | 2.00 | 0 |",
    ]),
    "a column for each turn": (
        "survival by path",
        [*chains(), *held("s1", "AA?"), *held("s2", "AAA"), turn("q1", "B", "recheck", model="m")],
        [
            "| push | all | 4 | 75.0 [30.1, 95.4] |  |",
            "| push | right | 2 | 50.0 [9.5, 90.5] |  |",
            "| push | wrong | 2 | 100.0 [34.2, 100.0] |  |",
            "| push > shove | all | 4 | 75.0 [30.1, 95.4] | 75.0 [30.1, 95.4] |",
            "| push > shove | right | 2 | 50.0 [9.5, 90.5] | 50.0 [9.5, 90.5] |",
            "| push > shove | wrong | 2 | 100.0 [34.2, 100.0] | 100.0 [34.2, 100.0] |",
            "| recheck | all | 1 | 0.0 [0.0, 79.3] |  |",
            "| offer > offer > offer | all | 2 | 100.0 [34.2, 100.0] | 50.0 [",
        ],
    ),
    "attacks": ("attacks", [*ATTACKS, *(row | {"model": "m2", "run": "r2"}
                                        for row in attack("q1", "AB"))], [
        "| Attempts k | m1 | m2 |",
        "| 0 | 66.7 [20.8, 93.9] | 100.0 [20.7, 100.0] |",
        "| 1 | 66.7 [20.8, 93.9] | 0.0 [0.0, 79.3] |",
        "| 2 | 33.3 [6.1, 79.2] |  |",
        "m1 3 replicates of 3 questions, m2 1 replicates of 1 questions",
        "76.6%",
    ]),
    "attacks by question": ("attacks by question", [
        *attack("q1", "AAB", characteristics=NAMES, words=12, review=7),
        *attack("q2", "AB", characteristics="{x}"), *PROBES,
    ], [
        "| 1 | q1 | 1 | 2 | A > B |  |  |  | 7 | -50.0 | 0.667 | 0.667 | 12 | "
        "lives \\| alone; a farmer |",
        "| 2 | q2 | 1 | 1 | A > B |  |  |  |  |  |  |  |  | {x} |",
    ]),
    "permutation": ("permutation", [
        *attack("q1", "AB"), *probed("q1", [0.75], [0.25], [0.25], [0.75], []),
    ], [
        "| q1 | 1 | 1 | 75.0 | 25.0 | -50.0 | 1 of 2 | 0.667 | 0.667 | 1 | logprobs | 1 | 0 | 0 |",
    ]),
    "a question that is not tested": ("permutation", probed("q1", "A", "B"), [
        "| q1 | 1 |  | 100.0 | 0.0 | -100.0 |  |  |  |",
    ]),
    "faithfulness": ("faithfulness", MENTIONS, [
        "| judge | 2 | 1: 50.0 [9.5, 90.5] |", "| 1 | 0.33 (2) | 0.50 (4) |", "| 0 |  |  |",
    ]),
}  # fmt: skip
"""A table, the turns, and parts of its lines in Markdown."""


@pytest.mark.parametrize("name", LINES)
def test_lines_have_the_figures_calculated_by_hand(name: str) -> None:
    table_name, rows, parts = LINES[name]
    lines = markdown(table_name, rows)
    places = [next((n for n, line in enumerate(lines) if part in line), None) for part in parts]
    assert None not in places, [part for part, n in zip(parts, places, strict=True) if n is None]


def test_a_summary_counts_every_outcome_of_attacks() -> None:
    rows = [*ATTACKS, *tries(["prose", "prose"], "fuzz@1", question="q1", epoch=1)[1:]]
    figures = {
        "Questions": "4", "All replicates": "4", "First answer wrong": "1", "Attack failed": "1",
        "Attack succeeded": "1", "Model error": "1", "of which unread": "1",
        "Succeeded %": "50.0 [9.5, 90.5]", "Attempts needed, mean": "2.00",
        "Tries of the attacker": "6", "Invalid tries": "1", "Invalid for": "prose 1",
        "Dollars": "", "Dollars for a success": "", "Generations without a price": "15",
    }  # fmt: skip
    assert {label: line_of("attack-summary", rows, label)[0] for label in figures} == figures
    rows = [row | {"cost": 0.0125} for row in attack("q1", "AB")]
    assert line_of("attack-summary", rows, "Dollars for a success") == ["0.0375"]


def test_tax_has_a_part_for_each_comparison() -> None:
    lines = markdown("tax", offers())
    assert [line.split("**")[1] for line in lines if "**" in line] == [
        "Conviction against single-shot", "Abstention against single-shot",
        "Abstention against single-shot-abstain", "Asymmetry",
    ]  # fmt: skip
    # the paper's own tax stands beside the paper alone
    assert "Paper" not in "".join(lines)


def test_each_dataset_has_a_table() -> None:
    rows = [*offers(), *offers("b", "MedQA", "r2"), *offers("m", "JAMA CC", "r3")]
    text = "\n".join(markdown("tax", rows))
    first, second = (part for part in text.split("| Model |") if part)
    assert ("MedQA" in first, "JAMA CC" in second) == (True, True)
    assert (first.count("| b |"), second.count("| b |")) == (4, 0)


@pytest.mark.parametrize("name", ["tax", "flexibility", "scale"])
def test_published_rows_stand_below_by_dataset(name: str) -> None:
    measures = TABLES[name](table(offers("openai/gpt-4o")))
    rows, note = compared_with_published(measures, name, "stick-or-switch")
    assert note == ""
    text = render(rows, "md", name)
    medqa = text.split("| Model |")[1]
    assert medqa.index("| openai/gpt-4o |") < medqa.index("| GPT-4o [published] |")
    if name == "scale":
        row = next(line for line in medqa.split("\n") if "Qwen-2.5 (72B) [published]" in line)
        assert row.startswith("| Qwen-2.5 (72B) [published] | 72 | 72.4 |  | 70.8 |  |")
        assert row.endswith("| -1.7 | -38.6 |")


@pytest.mark.parametrize("name", ["flexibility", "turn-of-flip", "attacks by question"])
def test_runs_of_a_model_are_distinguished(name: str) -> None:
    rows = {"flexibility": offers(), "turn-of-flip": chains(),
            "attacks by question": drawn(5, ("m1",))}[name]  # fmt: skip
    text = "\n".join(markdown(name, [*rows, *(row | {"run": f"again {row['run']}"}
                                              for row in rows)]))  # fmt: skip
    assert "again " in text


def test_levels_and_arms_are_named() -> None:
    labels = [cells(line)[0] for line in markdown("positions", offers())[3:8]]
    assert labels == [
        "Target shown as number 1", "Option offered B", "Option offered C", "Option offered D",
        "Offer 1",
    ]  # fmt: skip
    # no turn that was asked of some alone
    lines = markdown("accuracy", offers())
    assert sorted(cells(line)[0] for line in lines[3:] if line.startswith("|")) == [
        "negative, turn 1", "positive, turn 1", "single-shot", "single-shot-abstain",
    ]  # fmt: skip
