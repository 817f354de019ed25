"""Labels beside a run: ``--labels``, the file in the log dir, and the tables by stratum."""

import json
from collections import Counter
from pathlib import Path
from statistics import mean

import polars as pl
import pytest
from tests.cli.commands import Facts, facts_of, json_lines, refusal, rows_of
from tests.studies import holdfast, of_table, question_rows, write_jsonl

RUN = ("run", "followup", "--model", "simulated/sycophant", "-T", "techniques=double-check",
       "--log-dir", "r")  # fmt: skip


def label(rows: list[Facts], *more: str, numbers: bool = False) -> Facts:
    """A run on four questions with these labels; by number, the questions have no id."""
    drop = {"id"} if numbers else set()
    questions = [{k: v for k, v in row.items() if k not in drop} for row in question_rows(4)]
    source = write_jsonl(Path("n.jsonl" if numbers else "q.jsonl"), questions)
    labels = write_jsonl(Path("l.jsonl"), rows)
    outcome: Facts = facts_of(*RUN, "--labels", labels, "--questions", source, *more)
    return outcome


def strata(column: str) -> dict[str, str | None]:
    turns = pl.read_parquet("r/turns.parquet").sort("question")
    return dict(turns.select("question", column).unique(maintain_order=True).rows())


LABELS: dict[str, tuple[list[Facts], str, list[str | None]]] = {
    "by id": ([{"id": f"q{n}", "system": f"s{n % 2}", "note": "x"} for n in range(3)],
              "system", ["s0", "s1", "s0", None]),
    "by question": ([{"question": "q1", "system": "s"}], "system", [None, "s", None, None]),
    "by number": ([{"index": 0, "specialty": "Cardiology"}, {"index": 2, "specialty": "Surgery"}],
                  "specialty", ["Cardiology", None, "Surgery", None]),
    "instead of those of the question": ([{"question": "q1", "step": "step3"}],
                                         "step", ["step1", "step3", "step1", "step2&3"]),
    "of another label": ([{"question": "q1", "system": "s"}],
                         "step", ["step1", "step2&3", "step1", "step2&3"]),
    "of another question": ([{"question": "q0", "system": "s", "content_hash": "of another"},
                             {"question": "q1", "system": "t"}], "system", [None, "t", None, None]),
    "of a name of 5,000 digits": ([{"question": "9" * 5000, "system": "s"},
                                   {"question": "q0", "system": "t"}],
                                  "system", ["t", None, None, None]),
}  # fmt: skip


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", LABELS)
def test_labels_are_matched_by_question(name: str) -> None:
    rows, column, values = LABELS[name]
    label(rows, numbers="index" in rows[0])
    assert [*strata(column).values()] == values


def test_labels_are_read_from_csv() -> None:
    label([{"index": 0, "specialty": "x"}], numbers=True)
    Path("l.csv").write_text("index,specialty,subject\n0,Cardiology,\n2,Surgery,Anatomy\n")
    facts_of(*RUN, "--questions", "n.jsonl", "--labels", "l.csv")
    assert [*strata("specialty").values()] == ["Cardiology", None, "Surgery", None]
    assert [*strata("subject").values()] == [None, None, "Anatomy", None]


@pytest.mark.slow
def test_labels_apply_to_later_tables() -> None:
    label([{"question": "q0", "specialty": "x"}])
    assert rows_of("r", "accuracy by system") == []
    # the same run once more with labels asks nothing, and they stay without being named again
    outcome = label([{"question": f"q{n}", "system": "Renal"} for n in range(4)])
    assert outcome["calls"] == 0
    Path("l.jsonl").unlink()
    facts_of(*RUN, "--questions", "q.jsonl")
    assert {row["system"] for row in rows_of("r", "accuracy by system")} == {"Renal"}
    assert set(strata("system").values()) == {"Renal"}


def test_later_labels_are_added() -> None:
    label([{"question": id, "system": "Renal"} for id in ("q0", "another", "q1")])
    # those of questions that were not asked are not kept
    assert [{**row, "crc32": 0} for row in json_lines(Path("r/labels.jsonl"))] == [
        {"dataset": "q", "question": id, "system": "Renal", "crc32": 0} for id in ("q0", "q1")
    ]
    label([{"question": "q1", "specialty": "Surgery"}, {"question": "q2", "system": "Skin"}])
    label([{"question": "q0", "system": "Nerves"}])
    assert [*strata("system").values()] == ["Nerves", "Renal", "Skin", None]
    assert [*strata("specialty").values()] == [None, "Surgery", None, None]


def test_labels_of_two_sets_with_the_same_ids_stay_apart() -> None:
    for name, system in (("a", "Renal"), ("b", "Skin")):
        source = write_jsonl(Path(f"{name}.jsonl"), question_rows(2))
        labels = write_jsonl(Path("l.jsonl"), [{"question": "q0", "system": system}])
        facts_of(*RUN, "--labels", labels, "--questions", source)
    turns = pl.read_parquet("r/turns.parquet").filter(pl.col("question") == "q0")
    assert dict(turns.select("dataset", "system").unique().rows()) == {"a": "Renal", "b": "Skin"}


def test_generated_labels_are_used_and_missing_ones_skipped() -> None:
    facts_of("generate", "labels", "--model", "simulated/classifier", "--limit", "6",
             "-o", "s.jsonl", "--log-dir", "made")  # fmt: skip
    rows = json_lines(Path("s.jsonl"))
    del rows[2]["system"]
    rows[2]["missing"] = "no category"
    facts_of(*RUN, "--labels", write_jsonl(Path("s.jsonl"), rows), "--limit", "6")
    questions = [row["question"] for row in json_lines(Path("r/labels.jsonl"))]
    assert questions == [row["question"] for row in rows if "system" in row]


def test_a_spoilt_label_file_in_the_log_dir_is_named() -> None:
    label([{"question": "q1", "step": "step3"}])
    Path("r/labels.jsonl").write_text("{oops\n")
    again = (*RUN, "--labels", "l.jsonl", "--questions", "q.jsonl")
    for command in (("table", "r", "--table", "accuracy", "--by", "step"), again):
        line = refusal(*command)
        assert "labels.jsonl: cannot be read" in line
        assert "--labels FILE" in line


def test_labels_are_counted_and_every_bad_row_is_named() -> None:
    questions = write_jsonl(Path("q.jsonl"), question_rows(2))
    rows = [
        {"question": "q0", "system": "Renal", "step": "step1"},
        {"system": "Renal"},
        {"question": "q1", "sistem": "Renal"},
        {"question": "z9", "system": "Renal"},
    ]
    path = write_jsonl(Path("l.jsonl"), rows)
    report = facts_of("check", path, "--questions", questions, code=2)
    assert [(p["row"], p["field"]) for p in report["problems"]] == [(2, "question"), (3, "system")]
    assert (report["questions"], report["system"], report["step"]) == (2, 1, 1)
    run = holdfast("check", write_jsonl(Path("o.jsonl"), rows[3:]), "--questions", questions)
    assert run.returncode == 2
    assert "matches none of these questions" in run.stderr


@pytest.mark.slow
def test_systems_are_ordered_by_their_mean_degradation() -> None:
    facts_of("run", "followup", "--model", "simulated/sycophant", "--model",
             "simulated/claude-sonnet-4", "--log-dir", "r", "-T",
             "techniques=double-check,authority-prior,rag-style")  # fmt: skip
    changes: dict[str, dict[str, list[float]]] = {}
    for row in rows_of("r", "accuracy by system"):
        if row["arm"] == "family-average" and row["relative_change"] is not None:
            by_system = changes.setdefault(row["family"], {})
            by_system.setdefault(row["system"], []).append(row["relative_change"])
    assert sorted(changes) == ["context", "inc_letter", "rethink"]
    text = holdfast("table", "r", *of_table("accuracy by system")).stdout
    for family, systems in changes.items():
        assert len(systems) == 15
        block = text.partition(f"| **{family}")[2].partition("| **")[0]
        labels = [line.split(" | ")[0].strip("| ") for line in block.splitlines()[1:]]
        means = [mean(systems[name]) for name in labels if name in systems]
        assert len(means) == 15
        assert means == sorted(means, reverse=True)


@pytest.mark.rest_slow
@pytest.mark.parametrize("reading", ["stratum", "overall"])
def test_a_change_is_relative_to_the_first_answers_named(reading: str) -> None:
    facts_of("run", "followup", "--model", "simulated/claude-sonnet-4", "--log-dir", "r",
             "-T", "techniques=double-check,rag-style")  # fmt: skip
    first = pl.read_parquet("r/turns.parquet").filter(pl.col("arm") == "baseline")
    for row in rows_of("r", "accuracy by step", "--relative-to", reading):
        among = first if reading == "overall" else first.filter(step=row["step"])
        share = among.select(pl.col("correct").mean()).item()
        assert row["baseline"] == pytest.approx(share)
        assert row["relative_change"] == pytest.approx((row["accuracy"] - share) / share)


@pytest.mark.slow
def test_the_real_specialties_label_the_real_questions(resources: Path, medqa: str) -> None:
    source = resources / "data" / "medqa" / "us_test_specialties.jsonl"
    specialties = {
        f"{row['index']:04d}": row["specialty"]
        for row in map(json.loads, source.read_text("utf-8").splitlines())
    }
    facts_of(*RUN, "--labels", source, "--questions", medqa, "--limit", "200")
    labels = strata("specialty")
    assert len(labels) == 200
    assert labels == {id: specialties.get(id) for id in labels}
    rows = [row for row in rows_of("r", "accuracy by specialty") if row["arm"] == "baseline"]
    counts = Counter(specialties[id] for id in labels if id in specialties)
    assert {row["specialty"]: row["n"] for row in rows} == counts
