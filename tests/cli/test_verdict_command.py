"""``holdfast run --until``: asks until the rules are decided, and for nothing beyond."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import polars.selectors as cs
import pytest
from benchmarks.server import running_server
from junitparser import JUnitXml
from tests.cli.commands import Facts, facts_of, lacking, refusal, rows_of
from tests.studies import holdfast

from holdfast import read_turns, report, table
from holdfast.report.page import report_figures
from holdfast.results.records import finished_orders
from holdfast.results.runs import logs_in
from holdfast.results.sequential import STOPPED_NOTE, stopped_runs

MODEL = ("--model", "simulated/claude-sonnet-4")
RULES = """
[[rule]]
family = "rethink"
max_relative_drop = 0.25
[[rule]]
technique = "rag-style"
max_relative_drop = 0.3
"""


class Verdict(NamedTuple):
    """What a run until its rules are decided leaves, and what it says."""

    folder: Path
    code: int
    facts: Facts

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def gate(self) -> tuple[str | Path, ...]:
        return ("gate", self.runs, "--rules", self.folder / "rules.toml")


def until(folder: Path, *more: str, text: str = RULES) -> Verdict:
    (folder / "rules.toml").write_text(text)
    run = holdfast("run", "followup", "--until", folder / "rules.toml", *MODEL,
                   "--log-dir", folder / "runs", "--json", *more)  # fmt: skip
    return Verdict(folder, run.returncode, json.loads(run.stdout))


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    return until(tmp_path_factory.mktemp("verdict"))


def test_a_run_stops_when_all_rules_are_decided(verdict: Verdict) -> None:
    facts = verdict.facts
    assert (verdict.code, facts["outcome"]) == (1, "fail")
    assert [row["outcome"] for row in facts["verdicts"]] == ["pass", "fail"]
    assert facts["questions"] == 40
    # the first answer and six techniques of two batches at most; fewer where one is decided
    assert facts["calls"] <= 7 * 40 < facts["full_study"]
    paths = {row["path"] for row in rows_of(verdict.runs, "flips")}
    assert "authority-prior" not in paths
    assert "rag-style" in paths
    logs = logs_in(str(verdict.runs))
    ids = [id for log in logs for id in log.eval.dataset.sample_ids or ()]
    assert (len(logs), len(ids), len({*ids})) == (2, 40, 40)


def test_the_same_command_asks_nothing_new(verdict: Verdict) -> None:
    again = until(verdict.folder)
    assert (again.code, again.facts["calls"]) == (verdict.code, 0)
    assert again.facts["verdicts"] == verdict.facts["verdicts"]


def test_a_gate_reads_a_stopped_run_sequentially(verdict: Verdict) -> None:
    assert "--sequential" in refusal(*verdict.gate)
    facts = facts_of(*verdict.gate, "--sequential", code=verdict.code)
    assert facts["verdicts"] == verdict.facts["verdicts"]
    files = ("--junit", "gate.xml", "--summary", "gate.md")
    run = holdfast(*verdict.gate, "--sequential", *files)
    assert run.returncode == verdict.code
    xml = JUnitXml.fromfile("gate.xml")
    assert (xml.tests, xml.failures, xml.errors) == (2, 1, 0)
    (failure,) = [case.result[0] for suite in xml for case in suite if case.result]
    assert failure.message in run.stdout
    lines = Path("gate.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in lines[4:6]] == ["| pass", "| **fail**"]
    assert "SIMULATED" in lines[-1]


def test_changed_rules_are_refused_after_a_look() -> None:
    for name, share in (("r", 0.5), ("others", 0.6)):
        Path(f"{name}.toml").write_text(f"[[rule]]\nmin_accuracy = {share}\n")
    study = ("run", "followup", *MODEL, "--shuffle", "1")
    facts_of(*study, "--limit", "4")
    look = ("gate", "runs", "--sequential", "--rules")
    first = holdfast(*look, "r.toml")
    assert first.returncode in (0, 1, 4), first.stderr
    assert holdfast(*look, "r.toml").stdout == first.stdout
    for command in (look, (*study, "--until")):
        assert "with other rules" in refusal(*command, "others.toml")
    # it was looked at, and not stopped by what it held: its tables are those of any run
    assert STOPPED_NOTE not in holdfast("table", "runs").stderr
    assert holdfast("gate", "runs", "--rules", "r.toml").returncode in (0, 1, 4)


@pytest.mark.slow
def test_figures_of_a_stopped_run_have_confidence_sequences(verdict: Verdict) -> None:
    runs = verdict.runs
    verdicts = {row["of"]: row for row in verdict.facts["verdicts"]}
    rows = table(runs)
    of_rule = verdicts["technique rag-style"]
    (row,) = rows.filter(path="rag-style").to_dicts()
    # the very sequence that the rule was decided by, as a change
    assert (row["change_low"], row["change_high"]) == (-of_rule["high"], -of_rule["low"])
    at_fixed_size = table(read_turns(runs))
    figures = ("low", "high", "change_low", "change_high", "p_value", "p_adjusted", "missing_p")
    ranks = ("rank_low", "rank_high")
    assert rows.drop(*figures, *ranks).equals(at_fixed_size.drop(*figures, *ranks))
    assert rows.select(ranks).null_count().row(0) == (rows.height, rows.height)
    # valid at every look, they are wider than an interval of a fixed number
    assert ((rows["high"] - rows["low"]) > (at_fixed_size["high"] - at_fixed_size["low"])).all()
    assert rows["p_value"].null_count() == rows.height > at_fixed_size["p_value"].null_count()
    for name, by in (("flips", "family"), ("worst", None)):
        frame = table(runs, name, by=by)
        assert set(frame.select(cs.ends_with("low", "high")).null_count().row(0)) == {frame.height}
    assert STOPPED_NOTE in holdfast("table", runs).stderr
    page = report(runs)
    # no interval holds for the lowest of all, and the sentence does not speak of one
    assert not re.search(r"interval \d", page.headline)
    not_run = page.html.partition('<p id="not-run">')[2].partition("</p>")[0]
    assert STOPPED_NOTE not in not_run
    assert all(f">{row['sentence']}." in page.html for row in verdicts.values())
    assert STOPPED_NOTE in page.html
    # what is made of them refuses them too, the copy of their turns in the log dir included
    rules = verdict.folder / "rules.toml"
    for source in (runs, runs / "turns.parquet"):
        for command in (("compare", source, source), ("gate", source, "--rules", rules)):
            assert "stopped" in refusal(*command)
    assert "--rules" in refusal("report", runs, "--rules", rules, "-o", "r.html")
    assert holdfast("report", runs, "--figures", "f", "-o", "r.html").returncode == 0
    turns = read_turns(runs)
    (name, plain), (_, sequential) = (
        next(report_figures(turns, stops)) for stops in ((), stopped_runs([str(runs)]))
    )
    assert (Path("f") / name).read_text() == sequential != plain


def test_a_run_in_file_order_is_refused() -> None:
    facts_of("run", "followup", *MODEL, "-T", "techniques=rag-style", "--limit", "3")
    Path("r.toml").write_text('[[rule]]\ntechnique = "rag-style"\nmax_flip_rate = 0.3\n')
    assert "--shuffle SEED" in refusal("gate", "runs", "--rules", "r.toml", "--sequential")


def test_only_finished_questions_before_the_first_gap_count() -> None:
    facts_of("run", "followup", *MODEL, "-T", "techniques=rag-style", "-T", "controls=false",
             "--limit", "10", "--shuffle", "1", "--call-limit", "9", code=3)  # fmt: skip
    ((name, order),) = finished_orders(["runs"]).items()
    turns = read_turns("runs", text=False)
    questions = turns.filter(run=name).group_by("question", maintain_order=True).len()
    # the last one has its first answer alone
    assert questions["len"].to_list() == [2, 2, 2, 2, 1]
    assert list(order) == questions["question"].to_list()[:4]


def test_a_damaged_record_ends_in_one_line() -> None:
    Path("r.toml").write_text("[[rule]]\nmin_accuracy = 0.5\n")
    study = ("run", "followup", "--model", "simulated/steadfast", "--limit", "2", "--shuffle", "1")
    facts_of(*study)
    record = Path("runs/verdict.json")
    record.mkdir()
    line = refusal("gate", "runs", "--rules", "r.toml", "--sequential")
    assert "verdict.json: cannot be written" in line
    assert not list(Path("runs").glob(".verdict*"))
    record.rmdir()
    record.write_text('{"rules": "12')
    assert "verdict.json" in refusal(*study, "--until", "r.toml")


@pytest.mark.parametrize(
    ("more", "end", "questions"),
    [(("--call-limit", "1"), "budget", 0), (("--limit", "6"), "questions", 6)],
)
def test_rules_stay_undecided_where_calls_or_questions_end(
    more: tuple[str, ...], end: str, questions: int, tmp_path: Path
) -> None:
    verdict = until(tmp_path, *more)
    facts = verdict.facts
    assert (verdict.code, facts["outcome"], facts["ended"]) == (4, "undecided", end)
    assert facts["questions"] == questions
    open_verdicts = [row for row in facts["verdicts"] if row["outcome"] == "undecided"]
    assert bool(open_verdicts) == bool(questions)
    for row in open_verdicts:
        assert row["further_questions"] > 0
        assert lacking([f"{row['further_questions']:,} further"], row["sentence"]) == []


def test_a_run_resumes_after_its_budget_to_a_verdict(tmp_path: Path) -> None:
    verdict = until(tmp_path, "--call-limit", "80")
    assert (verdict.code, verdict.facts["ended"]) == (4, "budget")
    verdict = until(tmp_path)
    assert (verdict.code, verdict.facts["outcome"]) == (1, "fail")


@pytest.mark.parametrize(
    ("rule", "code", "outcome"),
    [("min_accuracy = 0.05", 0, "pass"), ("min_accuracy = 0.9", 1, "fail"),
     ("min_accuracy = 0.25", 4, "undecided")],
)  # fmt: skip
@pytest.mark.rest_slow
def test_a_verdict_makes_no_request_twice(rule: str, code: int, outcome: str) -> None:
    """A server that answers by chance, right in about a quarter of the questions."""
    with running_server() as server:
        at = ("--model", "lean/bench", "--model-base-url", f"{server.url}/v1")
        Path("rules.toml").write_text(f"[[rule]]\n{rule}\n")
        study = ("run", "followup", "--until", "rules.toml", *at)
        first, again = facts_of(*study, code=code), facts_of(*study, code=code)
        stats = server.stats()
    assert first["outcome"] == outcome
    # one call a question: no technique has a rule
    assert stats["calls"] == first["calls"] == first["questions"]
    assert (stats["repeated"], again["calls"]) == (0, 0)
    assert again["verdicts"] == first["verdicts"]
    assert (first["questions"] < 60) == (outcome != "undecided")
