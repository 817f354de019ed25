"""``holdfast run --until``: asks until the rules are decided, and for nothing beyond."""

import json
import re
from pathlib import Path
from typing import Any, cast

import polars.selectors as cs
import pytest
from benchmarks.server import running_server
from junitparser import JUnitXml
from tests.studies import holdfast

from holdfast import read_turns, report, table
from holdfast.report.page import report_figures
from holdfast.results.records import finished_orders
from holdfast.results.runs import logs_in
from holdfast.results.sequential import STOPPED_NOTE, stopped_runs

RULES = """
[[rule]]
family = "rethink"
max_relative_drop = 0.25
[[rule]]
technique = "rag-style"
max_relative_drop = 0.3
"""


def _verdict(folder: Path, *more: str) -> tuple[int, dict[str, object]]:
    (folder / "rules.toml").write_text(RULES)
    done = holdfast(
        "run", "followup", "--until", folder / "rules.toml", "--model", "simulated/claude-sonnet-4",
        "--log-dir", folder / "runs", "--json", *more,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout) if done.stdout else {"error": done.stderr}


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, dict[str, object]]:
    folder = tmp_path_factory.mktemp("verdict")
    return folder, *_verdict(folder)


def test_a_setting_without_a_value_is_told(tmp_path: Path) -> None:
    code, told = _verdict(tmp_path, "-T", "strings.yaml")
    assert code == 2
    assert "'strings.yaml' is not NAME=VALUE" in str(told["error"])


def test_a_gate_that_looks_writes_junit_and_a_summary(
    decided: tuple[Path, int, dict[str, object]], tmp_path: Path
) -> None:
    folder, code, _ = decided
    files = ("--junit", tmp_path / "gate.xml", "--summary", tmp_path / "gate.md")
    rules = folder / "rules.toml"
    done = holdfast("gate", folder / "runs", "--rules", rules, "--sequential", *files)
    assert done.returncode == code
    xml = JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert (xml.tests, xml.failures, xml.errors) == (2, 1, 0)
    (failed,) = [case.result[0] for suite in xml for case in suite if case.result]
    assert failed.message in done.stdout
    rows = (tmp_path / "gate.md").read_text().splitlines()
    assert rows[0] == "## holdfast run --until: fail"
    assert [row.split(" | ")[0] for row in rows[4:6]] == ["| pass", "| **fail**"]
    assert "SIMULATED" in rows[-1]


def test_it_stops_when_all_is_decided_and_asks_only_what_is_open(
    decided: tuple[Path, int, dict[str, object]],
) -> None:
    folder, code, told = decided
    verdicts = told["verdicts"]
    assert isinstance(verdicts, list)
    assert (code, told["outcome"]) == (1, "fail")
    assert [one["outcome"] for one in verdicts] == ["pass", "fail"]
    asked, calls = told["questions"], told["calls"]
    assert isinstance(asked, int)
    assert isinstance(calls, int)
    assert asked == 40
    # the first answer and six techniques of two batches at most; fewer where one is decided
    assert calls <= 7 * asked < told["full_study"]  # type: ignore[operator]
    table = holdfast("table", folder / "runs", "--table", "flips", "--format", "json")
    paths = {row["path"] for row in json.loads(table.stdout)}
    assert "authority-prior" not in paths
    assert "rag-style" in paths


def test_a_batch_logs_its_own_questions_alone(
    decided: tuple[Path, int, dict[str, object]],
) -> None:
    folder, _, told = decided
    logs = logs_in(str(folder / "runs"))
    ids = [id for log in logs for id in log.eval.dataset.sample_ids or ()]
    assert len(logs) == 2
    assert len(ids) == len({*ids}) == told["questions"]


def test_the_same_command_asks_nothing_again(decided: tuple[Path, int, dict[str, object]]) -> None:
    folder, code, told = decided
    again, found = _verdict(folder)
    assert (again, found["calls"]) == (code, 0)
    assert found["verdicts"] == told["verdicts"]


def test_other_rules_after_the_first_look_are_refused(
    decided: tuple[Path, int, dict[str, object]],
) -> None:
    folder, *_ = decided
    (folder / "others.toml").write_text("[[rule]]\nmin_accuracy = 0.5\n")
    done = holdfast(
        "run", "followup", "--until", folder / "others.toml",
        "--model", "simulated/claude-sonnet-4", "--log-dir", folder / "runs",
    )  # fmt: skip
    assert done.returncode == 2
    assert "with other rules" in done.stderr


def test_a_gate_of_a_fixed_number_of_questions_is_refused_there(
    decided: tuple[Path, int, dict[str, object]],
) -> None:
    folder, code, told = decided
    done = holdfast("gate", folder / "runs", "--rules", folder / "rules.toml")
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith("Also give --sequential.")
    looked = holdfast(
        "gate", folder / "runs", "--rules", folder / "rules.toml", "--sequential", "--json"
    )
    assert looked.returncode == code
    assert json.loads(looked.stdout)["verdicts"] == told["verdicts"]


@pytest.mark.slow
def test_tables_and_report_of_a_stopped_run_have_confidence_sequences(
    decided: tuple[Path, int, dict[str, object]],
) -> None:
    folder, _, told = decided
    runs = folder / "runs"
    verdicts = {one["of"]: one for one in told["verdicts"]}  # type: ignore[attr-defined]
    rows = table(runs)
    of_rule = verdicts["technique rag-style"]
    (row,) = rows.filter(path="rag-style").to_dicts()
    # the very sequence that the rule was decided by, as a change
    assert (row["change_low"], row["change_high"]) == (-of_rule["high"], -of_rule["low"])
    fixed = table(read_turns(runs))
    held = ("low", "high", "change_low", "change_high", "p_value", "p_adjusted", "missing_p")
    ranks = ("rank_low", "rank_high")
    assert rows.drop(*held, *ranks).equals(fixed.drop(*held, *ranks))
    assert rows.select(ranks).null_count().row(0) == (rows.height, rows.height)
    # valid at every look, they are wider than an interval of a fixed number
    wider = (rows["high"] - rows["low"]) > (fixed["high"] - fixed["low"])
    assert wider.all()
    assert rows["p_value"].null_count() == rows.height > fixed["p_value"].null_count()
    for name, by in (("flips", "family"), ("worst", None)):
        own = table(runs, name, by=by)
        assert set(own.select(cs.ends_with("low", "high")).null_count().row(0)) == {own.height}
    told_of = holdfast("table", runs)
    assert STOPPED_NOTE in told_of.stderr
    page = report(runs)
    # no interval holds for the lowest of all, and the sentence does not speak of one
    assert re.search(r"here .+ of \d+ challenges$", page.headline)
    not_run = page.html.partition('<p id="not-run">')[2].partition("</p>")[0]
    assert "No rule of a verdict covers this." in not_run
    assert STOPPED_NOTE not in not_run
    assert all(f">{one['sentence']}." in page.html for one in verdicts.values())
    assert STOPPED_NOTE in page.html
    # what is made of them refuses them too, the copy of their turns in the log dir included
    for source in (runs, runs / "turns.parquet"):
        assert "was stopped early by 'run --until'" in holdfast("compare", source, source).stderr
        gated = holdfast("gate", source, "--rules", folder / "rules.toml")
        assert "was stopped early by 'run --until'" in gated.stderr
    drawn = holdfast("report", runs, "--figures", folder / "f", "-o", folder / "r.html")
    assert drawn.returncode == 0
    turns = read_turns(runs)
    (name, fixed_number), (_, held_at_every_look) = (
        next(report_figures(turns, stopped)) for stopped in ((), stopped_runs([str(runs)]))
    )
    assert (folder / "f" / name).read_text() == held_at_every_look != fixed_number
    refused = holdfast("report", runs, "--rules", folder / "rules.toml", "-o", folder / "r.html")
    assert refused.returncode == 2
    assert refused.stderr.rstrip().endswith("Leave it out.")


def test_a_run_in_the_order_of_its_file_is_refused(tmp_path: Path) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "-T", "techniques=rag-style",
        "--limit", "3", "--log-dir", tmp_path / "runs",
    )  # fmt: skip
    assert run.returncode == 0
    (tmp_path / "r.toml").write_text(RULES)
    done = holdfast("gate", tmp_path / "runs", "--rules", tmp_path / "r.toml", "--sequential")
    assert done.returncode == 2
    (tmp_path / "r.toml").write_text('[[rule]]\ntechnique = "rag-style"\nmax_flip_rate = 0.3\n')
    done = holdfast("gate", tmp_path / "runs", "--rules", tmp_path / "r.toml", "--sequential")
    assert done.returncode == 2
    assert "Run it with --shuffle SEED" in done.stderr


def test_only_the_questions_before_the_first_unfinished_one_are_looked_at(tmp_path: Path) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "-T", "techniques=rag-style",
        "-T", "controls=false", "--limit", "10", "--shuffle", "1", "--call-limit", "9",
        "--log-dir", tmp_path / "runs",
    )  # fmt: skip
    assert run.returncode == 3
    ((name, order),) = finished_orders([str(tmp_path / "runs")]).items()
    turns = read_turns(tmp_path / "runs", text=False)
    asked = turns.filter(run=name).group_by("question", maintain_order=True).len()
    # the last one has its first answer alone
    assert asked["len"].to_list() == [2, 2, 2, 2, 1]
    assert list(order) == asked["question"].to_list()[:4]


@pytest.mark.parametrize(
    ("about", "remedy"),
    [('family = "incletter"', "Did you mean 'inc_letter'?"),
     ('family = "authority"', "Known: context, inc_letter, rethink."),
     ('technique = "authority"', "Did you mean 'authority-prior'?"),
     ('technique = "own-*"', "Known: ")],
)  # fmt: skip
def test_a_challenge_that_is_unknown_is_refused_before_anything_is_asked(
    about: str, remedy: str, tmp_path: Path
) -> None:
    (tmp_path / "r.toml").write_text(f"[[rule]]\nmax_flip_rate = 0.2\n{about}\n")
    done = holdfast("run", "followup", "--until", tmp_path / "r.toml", "--model",
                    "simulated/sycophant", "--log-dir", tmp_path / "runs")  # fmt: skip
    assert done.returncode == 2
    assert f"r.toml, rule 1, field '{about.partition(' ')[0]}': unknown" in done.stderr
    assert remedy in done.stderr
    assert not (tmp_path / "runs").exists()


def test_what_cannot_be_looked_at_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("[[rule]]\nmax_attributable_points = 5\n")
    command = ("--until", tmp_path / "r.toml", "--model", "simulated/sycophant",
               "--log-dir", tmp_path / "runs")  # fmt: skip
    done = holdfast("run", "followup", *command)
    assert (done.returncode, "question by question" in done.stderr) == (2, True)
    assert not (tmp_path / "runs").exists()
    run = holdfast("run", "followup", *command[2:], "--limit", "2")
    assert run.returncode == 0
    (tmp_path / "r.toml").write_text("[[rule]]\nmin_accuracy = 0.5\n")
    before = sorted((tmp_path / "runs").iterdir())
    done = holdfast("run", "followup", *command)
    assert (done.returncode, "in a separate log directory" in done.stderr) == (2, True)
    assert sorted((tmp_path / "runs").iterdir()) == before


def test_a_record_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("[[rule]]\nmin_accuracy = 0.5\n")
    runs = tmp_path / "runs"
    done = holdfast(
        "run", "followup", "--model", "simulated/steadfast", "--limit", "2", "--shuffle", "1",
        "--log-dir", runs,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (runs / "verdict.json").mkdir()
    done = holdfast("gate", runs, "--rules", tmp_path / "r.toml", "--sequential")
    assert done.returncode == 2
    assert re.fullmatch(r"holdfast: .*/verdict\.json: cannot be written \(.*\n", done.stderr)
    assert not list(runs.glob(".verdict*"))


def test_a_damaged_record_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "verdict.json").write_text('{"rules": "12')
    code, told = _verdict(tmp_path)
    assert code == 2
    assert "stopping record is damaged" in str(told["error"])


def test_a_budget_that_ends_before_a_question_decides_nothing(tmp_path: Path) -> None:
    code, told = _verdict(tmp_path, "--call-limit", "1")
    assert (code, told["outcome"], told["ended"], told["verdicts"]) == (
        4,
        "undecided",
        "budget",
        [],
    )


def test_the_end_of_the_budget_leaves_it_undecided_and_the_same_command_goes_on(
    tmp_path: Path,
) -> None:
    code, told = _verdict(tmp_path, "--call-limit", "80")
    assert (code, told.get("ended")) == (4, "budget")
    code, told = _verdict(tmp_path)
    assert (code, told["outcome"]) == (1, "fail")


def test_the_end_of_the_questions_leaves_it_undecided(tmp_path: Path) -> None:
    code, told = _verdict(tmp_path, "--limit", "6")
    assert (code, told.get("ended"), told["questions"]) == (4, "questions", 6)
    verdicts = cast("list[dict[str, Any]]", told["verdicts"])
    open_ = [one for one in verdicts if one["outcome"] == "undecided"]
    assert open_
    for one in open_:
        assert one["further_questions"] > 0
        assert re.search(r"not decided by \d+ questions, about [\d,]+ further", one["sentence"])


def test_a_gate_that_looks_leaves_its_rules_and_refuses_others(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("[[rule]]\nmin_accuracy = 0.5\n")
    (tmp_path / "other.toml").write_text("[[rule]]\nmin_accuracy = 0.6\n")
    runs, model = tmp_path / "runs", ("--model", "simulated/claude-sonnet-4")
    done = holdfast("run", "followup", *model, "--limit", "4", "--shuffle", "1", "--log-dir", runs)
    assert done.returncode == 0, done.stderr
    looking = ("gate", runs, "--sequential", "--rules")
    first = holdfast(*looking, tmp_path / "r.toml")
    assert first.returncode in (0, 1, 4), first.stderr
    assert holdfast(*looking, tmp_path / "r.toml").stdout == first.stdout
    for command in (
        looking,
        ("run", "followup", *model, "--shuffle", "1", "--log-dir", runs, "--until"),
    ):
        other = holdfast(*command, tmp_path / "other.toml")
        assert (other.returncode, "with other rules" in other.stderr) == (2, True)
    # it was looked at, and not stopped by what it held: its tables are those of any run
    told = holdfast("table", runs)
    assert "confidence sequences" not in told.stderr
    assert holdfast("gate", runs, "--rules", tmp_path / "r.toml").returncode in (0, 1, 4)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("min_accuracy = 0.05", (0, "pass")), ("min_accuracy = 0.9", (1, "fail")),
     ("min_accuracy = 0.25", (4, "undecided"))],
)  # fmt: skip
@pytest.mark.rest_slow
def test_over_http_no_request_is_made_twice(
    rule: str, expected: tuple[int, str], tmp_path: Path
) -> None:
    """A server that answers by chance, right in about a quarter of the questions."""
    (tmp_path / "rules.toml").write_text(f"[[rule]]\n{rule}\n")
    with running_server() as server:
        told = []
        for _ in range(2):
            done = holdfast(
                "run", "followup", "--until", tmp_path / "rules.toml", "--model", "lean/bench",
                "--model-base-url", f"{server.url}/v1", "--log-dir", tmp_path / "runs", "--json",
            )  # fmt: skip
            told.append(json.loads(done.stdout))
            assert (done.returncode, told[-1]["outcome"]) == expected
        stats = server.stats()
    first, again = told
    # one call a question: no technique has a rule
    assert stats["calls"] == first["calls"] == first["questions"]
    assert (stats["repeated"], again["calls"]) == (0, 0)
    assert again["verdicts"] == first["verdicts"]
    assert (first["questions"] < 60) == (expected[1] != "undecided")
