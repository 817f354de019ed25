"""``holdfast run``, ``plan``, ``table`` and ``demo`` as a user meets them."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from benchmarks.server import Server
from tests.studies import holdfast, question_rows, write_jsonl


def bench(server: Server, *more: str | Path) -> list[str | Path]:
    return [
        "run", "followup", "--model", "openai/bench", "--model-base-url", f"{server.url}/v1",
        "--json", *more,
    ]  # fmt: skip


def test_over_http_a_study_makes_exactly_fifteen_calls_a_question(
    server: Server,
    tmp_path: Path,
) -> None:
    run = holdfast(*bench(server, "--limit", "8", "--log-dir", tmp_path / "r"))
    assert run.returncode == 0, run.stderr
    outcome = json.loads(run.stdout)
    assert (outcome["calls"], outcome["cached"], outcome["complete"]) == (136, 0, True)
    stats = server.stats()
    assert (stats["calls"], stats["repeated"]) == (136, 0)
    assert pl.read_parquet(outcome["turns"]).height == 136


@pytest.mark.slow
def test_a_finished_run_is_not_asked_again_and_a_longer_one_asks_only_what_is_new(
    server: Server,
    tmp_path: Path,
) -> None:
    place = ("--log-dir", tmp_path / "r")
    for limit, calls in (("2", 34), ("2", 34), ("5", 85)):
        run = holdfast(*bench(server, "--limit", limit, *place))
        assert run.returncode == 0, run.stderr
        assert server.stats()["calls"] == calls
    more = holdfast(*bench(server, "--limit", "5", "-T", "chains=paper", *place))
    assert more.returncode == 0, more.stderr
    assert server.stats()["calls"] == 5 * 33
    assert server.stats()["repeated"] == 0


def test_plan_says_how_many_generations_a_run_makes(
    server: Server,
    tmp_path: Path,
) -> None:
    settings = ("--limit", "3", "-T", "chains=paper,double-check>rag-style")
    planned = holdfast(
        "run", "--dry-run", "followup", "--model", "simulated/sycophant", *settings, "--json"
    )
    (row,) = json.loads(planned.stdout)
    assert row["exact"] is True
    run = holdfast(*bench(server, *settings, "--log-dir", tmp_path / "r"))
    assert run.returncode == 0, run.stderr
    assert server.stats()["calls"] == row["generations"] == 3 * 34


def test_plan_prices_a_study_by_the_users_prices(tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"simulated/sycophant": {"input": 2.0, "output": 8.0}}')
    planned = holdfast(
        "run",
        "--dry-run",
        "followup",
        "--model",
        "simulated/sycophant",
        "--prices",
        prices,
        "--json",
    )
    (row,) = json.loads(planned.stdout)
    assert row["cost"] == pytest.approx((row["input_tokens"] * 2 + row["output_tokens"] * 8) / 1e6)


@pytest.mark.slow
def test_a_budget_stops_a_run_that_the_same_command_goes_on_with(
    server: Server,
    tmp_path: Path,
) -> None:
    command = bench(server, "--limit", "4", "--log-dir", tmp_path / "r", "--call-limit", "25")
    codes, calls = [], []
    for _ in range(3):
        run = holdfast(*command)
        codes.append(run.returncode)
        calls.append(server.stats()["calls"])
    assert codes == [3, 3, 0]
    assert calls == [25, 50, 68]
    assert server.stats()["repeated"] == 0


def test_the_message_of_an_incomplete_run_is_one_line_with_what_is_missing(
    tmp_path: Path,
) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "4",
        "--log-dir", tmp_path / "r", "--call-limit", "20",
    )  # fmt: skip
    assert run.returncode == 3
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("holdfast: ")
    assert "questions unfinished" in last
    assert "The budget is spent: 20 of 20 calls" in last
    assert last.endswith("Repeat the command to resume.")


def test_another_setting_in_the_same_log_dir_is_refused_by_name(
    tmp_path: Path,
) -> None:
    command = ("run", "followup", "--model", "simulated/sycophant", "--limit", "1",
               "--log-dir", tmp_path / "r", "-T", "techniques=rethink")  # fmt: skip
    assert holdfast(*command).returncode == 0
    before = sorted(path.name for path in (tmp_path / "r").iterdir())
    for changed, name in (
        (("--seed", "7"), "seed"),
        (("-T", "system_prompt=none"), "system_prompt"),
    ):
        run = holdfast(*command, *changed)
        assert run.returncode == 2
        assert name in run.stderr
        assert "another --log-dir" in run.stderr
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == before


def test_json_is_all_there_is_on_standard_output(
    tmp_path: Path,
) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--model", "simulated/steadfast",
        "--limit", "2", "--log-dir", tmp_path / "r", "--json",
    )  # fmt: skip
    outcome = json.loads(run.stdout)
    assert {row["model"] for row in outcome["accuracy"]} == {
        "simulated/sycophant",
        "simulated/steadfast",
    }
    assert "Traceback" not in run.stderr


def test_text_can_be_left_out_of_the_turns_table(
    tmp_path: Path,
) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "1",
        "--log-dir", tmp_path / "r", "--json", "--no-text",
    )  # fmt: skip
    turns = pl.read_parquet(json.loads(run.stdout)["turns"])
    assert turns["prompt"].null_count() == turns["reply"].null_count() == turns.height == 17


@pytest.mark.slow
def test_the_summary_names_the_study_says_simulated_and_where_the_turns_are(
    tmp_path: Path,
) -> None:
    run = holdfast("demo", "--log-dir", tmp_path / "demo")
    assert run.returncode == 0, run.stderr
    assert "simulated/claude-sonnet-4 on bank" in run.stdout
    assert "SIMULATED" in run.stdout
    assert "rag-style" in run.stdout
    headline, following, report = run.stdout.rstrip().splitlines()[-3:]
    assert "[SIMULATED] After the worst challenge, 90.0%" in headline
    assert following == f"Next:  holdfast report {tmp_path}/demo"
    assert report == f"Report: {tmp_path}/demo/report.html (open it in a browser)"
    table = holdfast("table", tmp_path / "demo" / "turns.parquet", "--format", "csv")
    # a follow-up study with three averages and chains, single turns with two averages, the
    # choices of stick-or-switch, and what medfuzz attacks
    assert table.stdout.count("\n") == 1 + 2 * (15 + 3 + 14 + 9 + 2 + 4 + 1)


def test_a_run_prints_its_own_results_alone_in_the_order_asked(tmp_path: Path) -> None:
    place = ("--limit", "2", "--log-dir", tmp_path / "r")
    first = holdfast("run", "single-turn", "--model", "simulated/noisy", *place)
    assert "simulated/noisy on bank" in first.stdout
    protocols = ("single-turn", "stick-or-switch")
    names = [f"simulated/{name}" for name in ("steadfast", "claude-sonnet-4", "sycophant")]
    asked = [part for name in names for part in ("--model", name)]
    run = holdfast("run", *protocols, *asked, *place)
    assert run.returncode == 0, run.stderr
    titles = re.findall(r"^(\S+) on bank: ([\w-]+)  \[SIM", run.stdout, re.MULTILINE)
    assert titles == [(name, protocol) for name in names for protocol in protocols]
    assert "noisy" not in run.stdout
    again = holdfast("run", *protocols, *asked, *place, "--json")
    told = json.loads(again.stdout)
    assert {row["model"] for row in told["accuracy"]} == set(names)
    table = holdfast("table", tmp_path / "r", "--format", "json")
    order = dict.fromkeys((row["model"], row["protocol"]) for row in json.loads(table.stdout))
    assert [*order] == [("simulated/noisy", "single-turn"), *titles]


def test_questions_left_out_of_a_technique_are_counted_in_the_summary(
    tmp_path: Path,
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--questions", source,
        "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "4 of 14 techniques skipped: no contexts for q." in run.stdout


def test_tables_come_in_every_format(
    tmp_path: Path,
) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "2",
        "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for format, start in (("md", "| Challenge |"), ("csv", "model,"), ("latex", "% Needs ")):
        printed = holdfast("table", tmp_path / "r", "--table", "flips", "--format", format)
        assert printed.returncode == 0, printed.stderr
        assert printed.stdout.startswith(start)
    rows = json.loads(
        holdfast("table", tmp_path / "r", "--table", "flips", "--format", "json").stdout
    )
    assert list(rows[0])[:10] == [
        "model", "dataset", "path", "technique", "n", "right_to_wrong", "wrong_to_right",
        "right_to_suggested", "right_to_other", "flip_rate",
    ]  # fmt: skip


def test_plan_needs_neither_key_nor_package_and_says_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    planned = holdfast(
        "run", "--dry-run", "followup", "--model", "openai/gpt-4.1", "--questions", source, "--json"
    )
    assert planned.returncode == 0, planned.stderr
    (row,) = json.loads(planned.stdout)
    assert row["generations"] == 3 * 13
    assert "4 of 14 techniques skipped: no contexts for q." in planned.stderr


def test_a_budget_of_tokens_is_overspent_by_little(tmp_path: Path) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "20",
        "--log-dir", tmp_path / "r", "--token-limit", "5000", "--json",
    )  # fmt: skip
    assert run.returncode == 3
    assert 5000 <= json.loads(run.stdout)["tokens"] < 6500


def test_a_recording_of_simulated_turns_is_still_labelled_simulated(tmp_path: Path) -> None:
    common = ("run", "followup", "--limit", "2", "--log-dir")
    first = holdfast(*common, tmp_path / "a", "--model", "simulated/sycophant")
    assert first.returncode == 0, first.stderr
    recording = f"recorded/{tmp_path}/a/turns.parquet"
    replayed = holdfast(*common, tmp_path / "b", "--model", recording)
    assert replayed.returncode == 0, replayed.stderr
    assert "[simulated]" in replayed.stdout
    assert "SIMULATED" in replayed.stdout


def test_a_reworded_technique_does_not_pass_for_the_one_that_was_run(tmp_path: Path) -> None:
    catalogue = tmp_path / "own.toml"
    entry = 'family = "own"\naxis = "indirect"\ncitation = "test"\n[[technique]]\nid = "mine"\n'
    command = (
        "run", "followup", "--model", "simulated/sycophant", "--limit", "1",
        "-T", f"challenges={catalogue}", "-T", "techniques=mine", "--log-dir", tmp_path / "r",
    )  # fmt: skip
    catalogue.write_text(f'{entry}template = "Sure?"\n')
    assert holdfast(*command).returncode == 0
    catalogue.write_text(f'{entry}template = "Really sure?"\n')
    run = holdfast(*command)
    assert run.returncode == 2
    assert "content of techniques" in run.stderr


def test_a_record_in_two_sources_counts_once(tmp_path: Path) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "2",
        "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    once = holdfast("table", tmp_path / "r", "--format", "json").stdout
    twice = holdfast("table", tmp_path / "r", tmp_path / "r" / "turns.parquet", "--format", "json")
    assert json.loads(twice.stdout) == json.loads(once)


def test_another_server_under_the_same_name_is_refused(server: Server, tmp_path: Path) -> None:
    command = bench(server, "--limit", "1", "--log-dir", tmp_path / "r", "-T", "techniques=none")
    assert holdfast(*command).returncode == 0
    command[command.index("--model-base-url") + 1] = "http://127.0.0.1:9/v1"
    run = holdfast(*command)
    assert run.returncode == 2
    assert "--model-base-url" in run.stderr


@pytest.mark.slow
def test_a_run_of_fewer_questions_or_epochs_throws_nothing_away(tmp_path: Path) -> None:
    for limit, epochs in (("4", "1"), ("2", "3"), ("2", "1")):
        run = holdfast(
            "run", "followup", "--model", "simulated/sycophant", "--limit", limit,
            "--epochs", epochs, "-T", "techniques=none", "-T", "controls=false",
            "--log-dir", tmp_path / "r",
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    assert turns["epoch"].to_list() == [1, 2, 3, 1, 2, 3, 1, 1]


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b"])
def test_a_log_dir_that_logs_cannot_have_is_refused(name: str, tmp_path: Path) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "1",
        "--log-dir", tmp_path / name,
    )  # fmt: skip
    assert run.returncode == 2
    assert "--log-dir" in run.stderr


def test_a_log_dir_that_is_a_file_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "1",
        "--log-dir", tmp_path / "file",
    )  # fmt: skip
    assert run.returncode == 2
    assert "cannot be written" in run.stderr


def test_a_run_that_a_subfolder_already_holds_is_refused_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    def command(log_dir: Path) -> tuple[str | Path, ...]:
        return (
            "run", "followup", "--model", "simulated/sycophant", "--limit", "1",
            "-T", "techniques=none", "--log-dir", log_dir,
        )  # fmt: skip

    assert holdfast(*command(tmp_path / "r" / "sub")).returncode == 0
    run = holdfast(*command(tmp_path / "r"))
    assert run.returncode == 2
    assert "another --log-dir" in run.stderr
    assert not (tmp_path / "r" / "turns.parquet").exists()
