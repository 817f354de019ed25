"""Measures of whole conversations as people read them."""

import polars as pl
from tests.results.frames import Row, table, turn
from tests.results.offering import held

from holdfast.render.tables import render
from holdfast.results.declaration import TABLES


def study(model: str = "m", run: str = "r1", pushed: str = "D") -> list[Row]:
    """Two right first answers, one of them kept, and two wrong ones that are kept."""
    answers = {"q1": "AAA", "q2": "ABA", "q3": "CCC", "q4": "BBB"}
    return [
        turn(question, answer, path, suggested=pushed if path else None, model=model, run=run)
        for question, own in answers.items()
        for path, answer in zip(("", "push", "push>shove"), own, strict=True)
    ]


def markdown(name: str, rows: list[Row]) -> list[str]:
    return render(TABLES[name](table(rows)), "md", name).splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_turn_of_flip() -> None:
    lines = markdown("turn-of-flip", study())
    # a chain, and before it the challenge that it begins with
    assert lines[2].startswith("| **m, followup** |")
    assert cells(lines[3])[:3] == ["push", "4", "2"]
    assert cells(lines[3])[3].startswith("0.75 [0.00, ")
    assert lines[4].startswith("| **m, compound** |")
    shown = cells(lines[5])
    assert shown[:3] == ["push > shove", "4", "3"]
    assert shown[3].startswith("1.00 [0.00, ")
    assert shown[4] == "1"
    assert shown[5].startswith("0.50 [")
    assert shown[6:] == ["0.50", "0"]
    assert lines[6] == ""


def test_one_question_has_no_interval() -> None:
    rows = [row for row in study() if row["question"] == "q2"]
    lines = markdown("turn-of-flip", rows)
    assert lines[3] == "| push | 1 | 2 | 1.00 | 0 | 1.00 | 1.00 | 0 |"
    assert lines[5] == "| push > shove | 1 | 3 | 1.00 | 0 | 2.00 | 2.00 | 0 |"


def test_resistance_has_a_column_for_each_turn() -> None:
    lines = markdown("survival by path", [*study(), *held("s1", "AA?"), *held("s2", "AAA")])
    assert lines[0] == "| Challenges | First answers | n | t = 1, % | t = 2, % |"
    assert lines[3:6] == [
        "| push | all | 4 | 75.0 [30.1, 95.4] |  |",
        "| push | right | 2 | 50.0 [9.5, 90.5] |  |",
        "| push | wrong | 2 | 100.0 [34.2, 100.0] |  |",
    ]
    assert lines[7:10] == [
        "| push > shove | all | 4 | 75.0 [30.1, 95.4] | 75.0 [30.1, 95.4] |",
        "| push > shove | right | 2 | 50.0 [9.5, 90.5] | 50.0 [9.5, 90.5] |",
        "| push > shove | wrong | 2 | 100.0 [34.2, 100.0] | 100.0 [34.2, 100.0] |",
    ]
    assert lines[10].startswith("| **m1, positive** |")
    assert lines[11].startswith("| offer > offer > offer | all | 2 | 100.0 [34.2, 100.0] | 50.0 [")


def test_a_shorter_conversation_leaves_later_turns_empty() -> None:
    more = [turn("q1", "B", "recheck", model="m")]
    (line,) = [
        own for own in markdown("survival by path", [*study(), *more]) if "| recheck | all" in own
    ]
    assert line == "| recheck | all | 1 | 0.0 [0.0, 79.3] |  |"


def test_studies_are_told_apart_and_texts_are_data() -> None:
    rows = [*study("a|b", "r1"), *study("a|b", "r2")]
    for name in ("turn-of-flip", "survival by path"):
        headings = [line for line in markdown(name, rows) if "**" in line]
        told = [(run, arm) for run in ("r1", "r2") for arm in ("followup", "compound")]
        for heading, (run, arm) in zip(headings, told, strict=True):
            assert all(word in heading for word in ("a\\|b", run, arm))
        assert r"\textbf" in render(TABLES[name](table(rows)), "latex", name)


def test_every_row_is_in_the_data_formats() -> None:
    frame = TABLES["survival by path"](table(study()))
    # three kinds of first answers: one turn of the push, two of the chain
    assert (
        pl.read_json(render(frame, "json", "survival by path").encode()).height == frame.height == 9
    )
