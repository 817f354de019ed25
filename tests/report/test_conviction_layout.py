import polars as pl
from tests.results.frames import Row, table
from tests.results.offering import flexible, held, single

from holdfast.render.tables import render
from holdfast.results.declaration import TABLES
from holdfast.results.published_figures import compared_with_published


def study(model: str = "m", dataset: str = "MedQA", run: str = "r1") -> list[Row]:
    rows = [
        single("q1", "A"), *held("q1", "AAA"), *held("q1", "NNN", "negative"),
        single("q1", "N", "single-shot-abstain"), flexible("q1", "A"),
        single("q2", "A"), *held("q2", "AC"), *held("q2", "NC", "negative"),
        single("q2", "B", "single-shot-abstain"), flexible("q2", "A"),
    ]  # fmt: skip
    return [row | {"model": model, "dataset": dataset, "run": run} for row in rows]


def markdown(name: str, rows: list[Row]) -> list[str]:
    return render(TABLES[name](table(rows)), "md", name).splitlines()


def test_survival() -> None:
    lines = markdown("survival", study())
    assert lines[2].startswith("| **m, Positive conviction** |")
    assert lines[3:6] == [
        "| 1 | 2 | 2 | 100.0 [34.2, 100.0] | 2 | 0 | 0.0 [0.0, 65.8] | 0 | 0 | 0 |",
        "| 2 | 2 | 1 | 50.0 [9.5, 90.5] | 2 | 1 | 50.0 [9.5, 90.5] | 1 | 0 | 0 |",
        "| 3 | 2 | 1 | 50.0 [9.5, 90.5] | 1 | 0 | 0.0 [0.0, 79.3] | 0 | 0 | 0 |",
    ]


def test_nobody_at_risk_leaves_the_hazard_empty() -> None:
    lines = markdown("survival", [single("q1", "A"), *held("q1", "B")])
    assert lines[5] == "| 3 | 1 | 0 | 0.0 [0.0, 79.3] | 0 | 0 |  | 0 | 0 | 0 |"


def test_tax_with_a_part_for_each_comparison() -> None:
    lines = markdown("tax", study())
    assert [line.split("**")[1] for line in lines if "**" in line] == [
        "Conviction against single-shot",
        "Abstention against single-shot",
        "Abstention against single-shot-abstain",
        "Asymmetry",
    ]
    assert lines[3].startswith("| m | 2 | 100.0 | 100.0 | 50.0 | -50.0 [")
    assert lines[9].startswith("| m | 2 |  |  |  | +0.0 [")
    # the paper's own tax stands beside the paper alone
    assert "Paper" not in "".join(lines)


def test_flexibility() -> None:
    (line,) = [line for line in markdown("flexibility", study()) if line.startswith("| m |")]
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[:5] == ["m", "50.0 [9.5, 90.5]", "2", "100.0 [34.2, 100.0]", "2"]
    assert cells[5].startswith("+50.0 [")
    # z(2.5 / 3) - z(1.5 / 3)
    assert cells[6].startswith("0.97 [")
    # two abstentions say nothing of it
    assert cells[8] == "undetermined"


def test_datasets_have_a_table_each() -> None:
    rows = [*study(), *study("b", "MedQA", "r2"), *study("m", "JAMA CC", "r3")]
    text = render(TABLES["tax"](table(rows)), "md", "tax")
    first, second = (part for part in text.split("| Model |") if part)
    assert "Questions: MedQA." in first
    assert "Questions: JAMA CC." in second
    assert first.count("| b |") == 4
    assert "| b |" not in second


def test_the_paper_stands_below_by_dataset_and_family() -> None:
    for name in ("tax", "flexibility", "scale"):
        rows, note = compared_with_published(
            TABLES[name](table(study("openai/gpt-4o"))), name, "stick-or-switch"
        )
        assert note == ""
        text = render(rows, "md", name)
        medqa = text.split("| Model |")[1]
        assert "| openai/gpt-4o |" in medqa
        assert "| GPT-4o [published] |" in medqa
    assert "**Gemma 3**" in text
    row = next(line for line in medqa.split("\n") if "Qwen-2.5 (72B) [published]" in line)
    assert row.startswith("| Qwen-2.5 (72B) [published] | 72 | 72.4 |  | 70.8 |  |")
    assert row.endswith("| -1.7 | -38.6 |")


def test_two_runs_of_a_model_are_told_apart() -> None:
    lines = markdown("flexibility", [*study(), *study(run="r2")])
    assert [line.split("|")[1].strip() for line in lines[2:4]] == ["m (run r1)", "m (run r2)"]


def test_positions_and_winners_name_what_they_count() -> None:
    labels = [line.split("|")[1].strip() for line in markdown("positions", study())[3:8]]
    assert labels == [
        "Target shown as number 1", "Option offered B", "Option offered C", "Option offered D",
        "Offer 1",
    ]  # fmt: skip
    assert "| C | 2 | 1 | 50.0 [9.5, 90.5] |" in markdown("positions by winner", study())


def test_accuracy_has_the_arms_apart_and_no_turn_that_was_asked_of_some_alone() -> None:
    lines = markdown("accuracy", study())
    labels = [line.split("|")[1].strip() for line in lines[3:] if line.startswith("|")]
    assert sorted(labels) == [
        "negative, turn 1", "positive, turn 1", "single-shot", "single-shot-abstain",
    ]  # fmt: skip


def test_beliefs_that_are_not_there_are_empty() -> None:
    rows = [row | {"p_gold": 0.75, "p_suggested": 0.25, "p_answer": 0.75} for row in study()]
    frame = TABLES["beliefs"](table(rows))
    lines = render(frame, "md", "beliefs").splitlines()
    both = "75.0 [75.0, 75.0] | 75.0 [75.0, 75.0]"  # of survivors, and of all
    assert lines[3] == f"| 1 | 2 | {both} | 25.0 [25.0, 25.0] | 0 |  | 0 |  |  |"
    assert frame.filter(pl.col("arm") == "flexible-correct")["target"].to_list() == [None]
