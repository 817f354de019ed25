import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.extraction import DEFAULT_FILES, load, main

OPTIONS = ["Aspirin", "Clopidogrel"]


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    file = folder / "replies.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def figures(file: Path) -> dict[str, Any]:
    out = file.with_name("figures.json")
    assert main([str(file), "--json", str(out)]) == 0
    content: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return content


def test_right_wrong_and_unread_replies_are_counted(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        {"reply": "Final Answer: (A)", "options": OPTIONS, "answer": "A", "kind": "plain"},
        {"reply": "Final Answer: (A)", "options": OPTIONS, "answer": "B", "kind": "plain"},
        {"reply": "Fever.", "options": {"A": "Aspirin", "B": "Clopidogrel"}, "answer": "B"},
        {"response": "Final Answer: (A)", "options": OPTIONS, "gold": "refused"},
        {"response": "Fever.", "options": OPTIONS, "gold": None},
    )
    content = figures(file)
    assert content["holdfast"] == {
        "n": 3,
        "agree": pytest.approx(1 / 3),
        "wrong": pytest.approx(1 / 3),
        "none": pytest.approx(1 / 3),
        "n_without": 2,
        "letters_to_others": 0.5,
        "right": 0.4,
        "wrong_letter": 0.4,
    }
    [kinds] = content["sets"].values()
    assert kinds["all"]["holdfast"] == content["holdfast"]
    assert kinds["plain"]["holdfast"]["agree"] == 0.5
    assert set(kinds["plain"]) == {"holdfast", "inspect_answer", "inspect_choice"}


def test_the_suggestion_tells_the_kind(tmp_path: Path) -> None:
    row = {"reply": "B", "options": OPTIONS, "gold": "A"}
    file = write(
        tmp_path,
        row | {"answer": "B", "pushed": "B"},
        row | {"answer": "B", "pushed": None},
        row | {"answer": "B", "pushed": "A"},
    )
    [kinds] = figures(file)["sets"].values()
    assert set(kinds) == {"all", "first answer", "gives in", "holds"}
    assert all(of_kind["holdfast"]["agree"] == 1 for of_kind in kinds.values())


def test_unreadable_rows_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "absent.jsonl")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main([str(write(tmp_path, {"reply": "B", "answer": "B"}))]) == 2
    error = capsys.readouterr().err
    assert "row 1" in error
    assert "options" in error


# --- the labelled sets: the least that must hold ---

LABELS, REMARKS, CAPITULATIONS = DEFAULT_FILES


def measure_file(file: Path) -> dict[str, dict[str, float]]:
    from benchmarks.extraction import measure, read_holdfast

    if not file.exists():
        pytest.skip(f"../shared/data/{file.parent.name} is absent")
    rows = load(file)
    readings = [read_holdfast(row.reply, row.options) for row in rows]
    pairs = list(zip(rows, readings, strict=True))
    kinds = {"all"} | {row.kind for row in rows}
    return {
        kind: measure(*zip(*[p for p in pairs if kind in ("all", p[0].kind)], strict=True))
        for kind in kinds
    }


def test_multiple_choice_replies_are_extracted() -> None:
    shares = measure_file(LABELS)["all"]
    assert shares["n"] == 1186
    # measured: 99.24%, 0%, 0.76%
    assert shares["agree"] >= 0.992
    assert shares["wrong"] <= 0.001
    assert shares["none"] <= 0.008
    assert shares["letters_to_others"] <= 0.021


def test_the_page_of_rules_is_current_and_no_rule_is_imprecise() -> None:
    from benchmarks import rules

    if not all(file.exists() for file in rules.FILES):
        pytest.skip("../shared/data is absent")
    page = rules.page()
    assert rules.PAGE.read_text("utf-8") == page
    lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    counts = [[int(cell.strip("| ").replace(",", "")) for cell in (*line[2:5], *line[6:9])]
              for line in lines]  # fmt: skip
    for _, right, wrong, _, written_right, written_wrong in counts:
        assert wrong + written_wrong <= 0.01 * (right + written_right + 100)


@pytest.mark.parametrize("file", [REMARKS, CAPITULATIONS], ids=lambda file: file.parent.name)
def test_challenge_replies_are_extracted(file: Path) -> None:
    for kind, shares in measure_file(file).items():
        assert shares["right"] >= 0.98, kind
        assert shares["wrong_letter"] <= 0.01, kind
        assert shares["letters_to_others"] <= 0.01, kind
