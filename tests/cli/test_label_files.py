"""Labels beside a run: ``--labels``, the file in the log dir, and the tables by stratum."""

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.studies import Done, holdfast, question_rows, write_jsonl

Row = dict[str, Any]


def run_with(labels: str | Path, tmp_path: Path, *more: str | Path, log_dir: str = "r") -> Done:
    return holdfast(
        "run", "followup", "--model", "simulated/sycophant", "-T", "techniques=double-check",
        "--labels", labels, "--log-dir", tmp_path / log_dir, *more,
    )  # fmt: skip


def strata_of(tmp_path: Path, column: str, log_dir: str = "r") -> dict[str, str | None]:
    turns = pl.read_parquet(tmp_path / log_dir / "turns.parquet")
    return dict(turns.select("question", column).unique().rows())


@pytest.fixture
def questions(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(4))


@pytest.fixture
def numbered(tmp_path: Path) -> str:
    """Questions without an id, which the loader numbers 0000, 0001, ..."""
    rows = [{k: v for k, v in row.items() if k != "id"} for row in question_rows(4)]
    return write_jsonl(tmp_path / "n.jsonl", rows)


@pytest.mark.rest_slow
@pytest.mark.parametrize("column", ["question", "id"])
def test_labels_are_found_by_the_id_of_a_question(
    column: str, questions: str, tmp_path: Path
) -> None:
    labels = write_jsonl(
        tmp_path / "l.jsonl",
        [{column: f"q{n}", "system": f"system {n % 2}", "note": "x"} for n in range(3)],
    )
    run = run_with(labels, tmp_path, "--questions", questions)
    assert run.returncode == 0, run.stderr
    assert strata_of(tmp_path, "system") == {
        "q0": "system 0", "q1": "system 1", "q2": "system 0", "q3": None
    }  # fmt: skip
    # other labels stay those of the question file
    assert set(strata_of(tmp_path, "step").values()) == {"step1", "step2&3"}


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_labels_are_found_by_the_number_of_a_question(
    kind: str, numbered: str, tmp_path: Path
) -> None:
    path = tmp_path / f"l.{kind}"
    if kind == "csv":
        path.write_text("index,specialty,subject\n0,Cardiology,\n2,Surgery,Anatomy\n")
    else:
        write_jsonl(path, [{"index": 0, "specialty": "Cardiology"},
                           {"index": 2, "specialty": "Surgery", "subject": "Anatomy"}])  # fmt: skip
    run = run_with(path, tmp_path, "--questions", numbered)
    assert run.returncode == 0, run.stderr
    assert strata_of(tmp_path, "specialty") == {
        "0000": "Cardiology", "0001": None, "0002": "Surgery", "0003": None
    }  # fmt: skip
    assert strata_of(tmp_path, "subject") == {
        "0000": None, "0001": None, "0002": "Anatomy", "0003": None
    }  # fmt: skip


def test_labels_take_the_place_of_the_questions_own(questions: str, tmp_path: Path) -> None:
    labels = write_jsonl(tmp_path / "l.jsonl", [{"question": "q1", "step": "step3"}])
    assert run_with(labels, tmp_path, "--questions", questions).returncode == 0
    assert strata_of(tmp_path, "step") == {
        "q0": "step1", "q1": "step3", "q2": "step1", "q3": "step2&3"
    }  # fmt: skip


@pytest.mark.slow
def test_labels_hold_for_every_table_made_there_later(questions: str, tmp_path: Path) -> None:
    common = ("run", "followup", "--model", "simulated/sycophant", "--questions", questions,
              "-T", "techniques=rethink", "--log-dir", tmp_path / "r")  # fmt: skip
    assert holdfast(*common).returncode == 0
    table = ("table", tmp_path / "r", "--table", "accuracy", "--by", "system", "--format", "json")
    assert json.loads(holdfast(*table).stdout) == []
    labels = write_jsonl(
        tmp_path / "l.jsonl", [{"question": f"q{n}", "system": "Renal"} for n in range(4)]
    )
    # the same run once more with labels asks nothing
    again = holdfast(*common, "--labels", labels, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["calls"] == 0
    Path(labels).unlink()
    assert holdfast(*common).returncode == 0  # and they stay without being named again
    rows = json.loads(holdfast(*table).stdout)
    assert {row["system"] for row in rows} == {"Renal"}
    assert set(strata_of(tmp_path, "system").values()) == {"Renal"}


def test_labels_of_more_questions_than_were_asked_are_not_kept(
    questions: str, tmp_path: Path
) -> None:
    labels = write_jsonl(
        tmp_path / "l.jsonl",
        [{"question": id, "system": "Renal"} for id in ("q0", "another", "q1")],
    )
    assert run_with(labels, tmp_path, "--questions", questions).returncode == 0
    kept = [json.loads(line) for line in (tmp_path / "r" / "labels.jsonl").open()]
    assert [{**row, "crc32": None} for row in kept] == [
        {"dataset": "q", "question": "q0", "system": "Renal", "crc32": None},
        {"dataset": "q", "question": "q1", "system": "Renal", "crc32": None},
    ]


def test_labels_given_one_after_the_other_stand_beside_each_other(
    questions: str, tmp_path: Path
) -> None:
    given = (
        [{"question": "q0", "system": "Renal"}, {"question": "q1", "system": "Renal"}],
        [{"question": "q1", "specialty": "Surgery"}, {"question": "q2", "system": "Skin"}],
        [{"question": "q0", "system": "Nerves"}],
    )
    for rows in given:
        labels = write_jsonl(tmp_path / "l.jsonl", rows)
        assert run_with(labels, tmp_path, "--questions", questions).returncode == 0
    assert strata_of(tmp_path, "system") == {"q0": "Nerves", "q1": "Renal", "q2": "Skin",
                                             "q3": None}  # fmt: skip
    assert strata_of(tmp_path, "specialty") == {"q0": None, "q1": "Surgery", "q2": None,
                                                "q3": None}  # fmt: skip


def test_labels_of_two_question_sets_with_the_same_ids_stay_apart(tmp_path: Path) -> None:
    for name, system in (("a", "Renal"), ("b", "Skin")):
        source = write_jsonl(tmp_path / f"{name}.jsonl", question_rows(2))
        labels = write_jsonl(tmp_path / "l.jsonl", [{"question": "q0", "system": system}])
        assert run_with(labels, tmp_path, "--questions", source).returncode == 0
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet").filter(pl.col("question") == "q0")
    assert dict(turns.select("dataset", "system").unique().rows()) == {"a": "Renal", "b": "Skin"}


def test_labels_for_another_question_under_the_same_id_are_not_taken(
    questions: str, tmp_path: Path
) -> None:
    rows = [
        {"question": "q0", "system": "Renal", "content_hash": "of another"},
        {"question": "q1", "system": "Skin"},
    ]
    labels = write_jsonl(tmp_path / "l.jsonl", rows)
    assert run_with(labels, tmp_path, "--questions", questions).returncode == 0
    assert strata_of(tmp_path, "system")["q0"] is None
    assert strata_of(tmp_path, "system")["q1"] == "Skin"


def test_what_label_systems_makes_is_taken_also_where_a_label_is_missing(tmp_path: Path) -> None:
    made = holdfast(
        "generate", "labels", "--model", "simulated/classifier", "--limit", "6",
        "-o", tmp_path / "s.jsonl",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").open()]
    lost = rows[2]
    del lost["system"]
    lost["missing"] = "no category"
    write_jsonl(tmp_path / "s.jsonl", rows)
    run = run_with(tmp_path / "s.jsonl", tmp_path, "--limit", "6")
    assert run.returncode == 0, run.stderr
    kept = [json.loads(line)["question"] for line in (tmp_path / "r" / "labels.jsonl").open()]
    assert kept == [row["question"] for row in rows if row is not lost]


BAD: dict[str, tuple[str, list[str]]] = {
    "no such file": ("", ["no such file"]),
    "empty": ("l.jsonl:", ["l.jsonl: is empty"]),
    "broken": ('l.jsonl:{"question": "q0", "system": "x"}\n{oops\n', ["row 2", "broken JSON"]),
    "no id": ('l.jsonl:{"system": "x"}\n', ["row 1", "field 'question'", "is missing"]),
    "no label": ('l.jsonl:{"question": "q0", "sistem": "x"}\n',
                 ["row 1", "field 'system'", "has no label", "Did you mean 'system'"]),
    "other questions": ('l.jsonl:{"question": "z9", "system": "x"}\n',
                        ["field 'question'", "no label for any question of this study"]),
    "a folder": ("folder/", ["is a folder"]),
    "another kind": ("l.txt:x", ["unknown kind of file '.txt'"]),
    "a short row": ("l.csv:question,system\nq0\n", ["row 1", "has 1 cells"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_labels_that_cannot_be_used_are_refused_in_one_line_before_anything_is_asked(
    case: str, questions: str, tmp_path: Path
) -> None:
    content, expected = BAD[case]
    name, _, text = content.partition(":")
    path = tmp_path / (name or "l.jsonl")
    if name.endswith("/"):
        path.mkdir()
    elif name:
        path.write_text(text)
    run = run_with(path, tmp_path, "--questions", questions)
    assert run.returncode == 2
    assert run.stdout == ""
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith(f"holdfast: {path}")
    assert [part for part in expected if part not in last] == []
    # a file that is wrong is told before money is spent
    assert run.stderr.strip().splitlines() == [last]
    assert not (tmp_path / "r").exists()


def test_a_label_file_in_the_log_dir_that_was_spoilt_is_named(
    questions: str, tmp_path: Path
) -> None:
    labels = write_jsonl(tmp_path / "l.jsonl", [{"question": "q1", "step": "step3"}])
    assert run_with(labels, tmp_path, "--questions", questions).returncode == 0
    (tmp_path / "r" / "labels.jsonl").write_text("{oops\n")
    run = holdfast("table", tmp_path / "r", "--table", "accuracy", "--by", "step")
    assert run.returncode == 2
    (line,) = run.stderr.strip().splitlines()
    assert "labels.jsonl: cannot be read as labels" in line
    assert line.endswith("Remove the file and repeat the command of its run with --labels FILE.")
    again = run_with(labels, tmp_path, "--questions", questions)
    assert again.returncode == 2
    last = again.stderr.strip().splitlines()[-1]
    assert last.startswith(line.partition(" (")[0])
    assert last.endswith("with --labels FILE.")


def test_a_name_of_five_thousand_digits_is_only_another_question(
    questions: str, tmp_path: Path
) -> None:
    rows = [{"question": "9" * 5000, "system": "Renal"}, {"question": "q0", "system": "Skin"}]
    labels = write_jsonl(tmp_path / "l.jsonl", rows)
    run = run_with(labels, tmp_path, "--questions", questions)
    assert run.returncode == 0, run.stderr
    assert strata_of(tmp_path, "system")["q0"] == "Skin"


@pytest.mark.slow
def test_systems_are_ordered_by_their_mean_degradation(tmp_path: Path) -> None:
    made = ("run", "followup", "--model", "simulated/sycophant", "--model",
            "simulated/claude-sonnet-4", "--log-dir", tmp_path / "r", "-T",
            "techniques=double-check,authority-prior,rag-style")  # fmt: skip
    assert holdfast(*made).returncode == 0
    table = ("table", tmp_path / "r", "--table", "accuracy", "--by", "system")
    rows = json.loads(holdfast(*table, "--format", "json").stdout)
    changes: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["arm"] == "family-average" and row["relative_change"] is not None:
            changes.setdefault((row["family"], row["system"]), []).append(row["relative_change"])
    shown: dict[str, list[str]] = {}
    family = ""
    for line in holdfast(*table).stdout.splitlines():
        first = line.strip("| ").split(" | ")[0].strip()
        if first.startswith("**") and first.strip("*").split(",")[0] in (
            "rethink", "inc_letter", "context"
        ):  # fmt: skip
            family = first.strip("*").split(",")[0]
        elif first.startswith("**") or not line.startswith("|"):
            family = ""
        elif family:
            shown.setdefault(family, []).append(first)
    assert sorted(shown) == ["context", "inc_letter", "rethink"]
    for family, systems in shown.items():
        assert len(systems) == 15
        means = [sum(c) / len(c) for c in (changes[family, system] for system in systems)]
        assert means == sorted(means, reverse=True)


@pytest.mark.rest_slow
@pytest.mark.parametrize("relative_to", ["stratum", "overall"])
def test_both_readings_of_relative_change(relative_to: str, tmp_path: Path) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/claude-sonnet-4", "--log-dir", tmp_path / "r",
        "-T", "techniques=double-check,rag-style",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    table = holdfast("table", tmp_path / "r", "--table", "accuracy", "--by", "step",
                     "--relative-to", relative_to, "--format", "csv")  # fmt: skip
    assert table.returncode == 0, table.stderr
    rows = list(csv.DictReader(io.StringIO(table.stdout)))
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    first = turns.filter(pl.col("arm") == "baseline")
    for row in rows:
        among = first if relative_to == "overall" else first.filter(pl.col("step") == row["step"])
        baseline = float(among["correct"].cast(pl.Float64).mean() or 0)  # type: ignore[arg-type]
        assert float(row["baseline"]) == pytest.approx(baseline)
        expected = (float(row["accuracy"]) - baseline) / baseline
        assert float(row["relative_change"]) == pytest.approx(expected)


@pytest.mark.slow
def test_the_real_specialties_label_the_real_questions(
    shared: Path, medqa: str, tmp_path: Path
) -> None:
    source = shared / "data" / "medqa" / "us_test_specialties.jsonl"
    given = {
        f"{row['index']:04d}": row["specialty"]
        for row in map(json.loads, source.read_text("utf-8").splitlines())
    }
    run = run_with(source, tmp_path, "--questions", medqa, "--limit", "200")
    assert run.returncode == 0, run.stderr
    found = strata_of(tmp_path, "specialty")
    assert len(found) == 200
    assert found == {id: given.get(id) for id in found}
    table = holdfast("table", tmp_path / "r", "--table", "accuracy", "--by", "specialty",
                     "--format", "json")  # fmt: skip
    rows = [row for row in json.loads(table.stdout) if row["arm"] == "baseline"]
    counts = Counter(given[id] for id in found if id in given)
    assert {row["specialty"]: row["n"] for row in rows} == counts
