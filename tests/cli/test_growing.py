"""A study that grows in its log dir: more is asked beside what is there, and it stays one run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.server import Server
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.results.turns import turns_table

Row = dict[str, Any]
TURN = ["question", "epoch", "arm", "path", "turn"]


def grown(
    server: Server, log_dir: Path, *settings: str | Path, protocol: str = "followup"
) -> tuple[Row, pl.DataFrame]:
    """The outcome of a run in the log dir, and its turns; nothing generated twice."""
    run = holdfast(
        "run", protocol, "--model", "openai/bench", "--model-base-url", f"{server.url}/v1",
        "--allow-simulated-inputs",
        "--json", "--log-dir", log_dir, *settings,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    outcome: Row = json.loads(run.stdout)
    assert server.stats()["repeated"] == 0
    turns = pl.read_parquet(outcome["turns"])
    assert turns.filter(pl.struct(TURN).is_duplicated()).is_empty()
    assert turns["run"].n_unique() == 1
    return outcome, turns


def arms(turns: pl.DataFrame) -> dict[str, int]:
    return dict(turns.group_by("arm").len().sort("arm").rows())


@pytest.fixture
def contexts(tmp_path: Path) -> str:
    """Contexts of four questions, also at two lengths that no text of the study's own has."""
    built = holdfast(
        "generate", "contexts", "--model", "simulated/generator", "--limit", "4",
        "--lengths", "1,20", "-o", tmp_path / "c.jsonl", "--log-dir", tmp_path / "made",
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return str(tmp_path / "c.jsonl")


@pytest.mark.slow
def test_techniques_chains_lengths_and_a_judge_are_added_to_one_run(
    server: Server, tmp_path: Path, contexts: str
) -> None:
    place, common = tmp_path / "r", ("--limit", "4", "-T", f"contexts={contexts}")
    judge = ("--model-role", f"judge={{model: openai/judge, base_url: {server.url}/v1}}")
    rethink = ("-T", "techniques=rethink")
    # two controls, of chains four; five techniques, then all fourteen, then chains, then two
    # lengths of four techniques
    steps: Sequence[tuple[tuple[str, ...], int]] = [
        (rethink, 8),
        ((), 17),
        (("-T", "chains=paper"), 33),
        (("-T", "chains=paper", "-T", "lengths=1"), 37),
        (("-T", "chains=paper", "-T", "lengths=1,20"), 41),
    ]
    before: dict[tuple[Any, ...], str] = {}
    runs: set[str] = set()
    for settings, turns_each in steps:
        _, turns = grown(server, place, *common, *settings)
        assert turns.height == server.stats()["calls"] == 4 * turns_each
        replies = {row[:-1]: row[-1] for row in turns.select(*TURN, "reply").rows()}
        # what was there stays as it was
        assert {key: replies[key] for key in before} == before
        before, runs = replies, runs | set(turns["run"])
    full = ("-T", "chains=paper", "-T", "lengths=1,20")
    outcome, turns = grown(server, place, *common, *full, *judge)
    assert turns.height == 4 * 41
    assert outcome["calls"] == server.stats()["calls"] - 4 * 41 > 0  # the judge's alone
    challenged = turns.filter(pl.col("arm") != "baseline", pl.col("cue").is_not_null())
    assert challenged.height > 0
    # this server's judgements cannot be read
    assert challenged["stance_judged"].unique().to_list() == ["unreadable"]
    assert len(runs | set(turns["run"])) == 1
    assert arms(turns) == {
        "baseline": 4,
        "compound": 56,
        "control": 16,
        "followup": 56,
        "length": 32,
    }
    table = json.loads(holdfast("table", place, "--format", "json").stdout)
    assert {row["run"] for row in table} == set(turns["run"])


@pytest.mark.slow
def test_a_smaller_study_afterwards_throws_nothing_away(
    server: Server, tmp_path: Path, contexts: str
) -> None:
    common = ("--limit", "4", "-T", f"contexts={contexts}")
    _, full = grown(server, tmp_path / "r", *common, "-T", "chains=paper", "-T", "lengths=1")
    calls = server.stats()["calls"]
    for smaller in ([], ["-T", "techniques=context"], ["-T", "techniques=none", "--limit", "1"]):
        _, turns = grown(server, tmp_path / "r", *common, *smaller)
        assert server.stats()["calls"] == calls
        assert arms(turns) == arms(full)
        same = full.drop("latency", "shared").sort(TURN)
        assert turns.drop("latency", "shared").sort(TURN).equals(same)


def test_more_questions_and_more_techniques_at_once_are_one_run(
    server: Server, tmp_path: Path
) -> None:
    grown(server, tmp_path / "r", "--limit", "2", "-T", "techniques=rethink")
    _, turns = grown(server, tmp_path / "r", "--limit", "5")
    assert turns.height == server.stats()["calls"] == 5 * 17


@pytest.mark.slow
def test_biases_and_mitigations_are_added_to_a_single_turn_run(
    server: Server, tmp_path: Path
) -> None:
    # baseline and its control, wrong options, biases
    steps = (
        (("-T", "biases=recency,cultural"), 2 + 1 + 2),
        ((), 2 + 1 + 7),
        (("-T", "mitigations=education"), 2 + 1 + 14),
        (("-T", "mitigations=all"), 2 + 1 + 28),
    )
    for settings, each in steps:
        _, turns = grown(server, tmp_path / "r", "--limit", "3", *settings, protocol="single-turn")
        assert turns.height == server.stats()["calls"] == 3 * each


def test_a_run_without_controls_gets_them_and_nothing_of_it_is_asked_again(
    server: Server, tmp_path: Path
) -> None:
    common = ("--limit", "3", "-T", "techniques=rethink")
    _, bare = grown(server, tmp_path / "r", *common, "-T", "controls=false")
    assert (bare.height, arms(bare)) == (3 * 6, {"baseline": 3, "followup": 15})
    for _ in range(2):  # the second time all is there
        outcome, turns = grown(server, tmp_path / "r", *common)
        assert turns.height == server.stats()["calls"] == 3 * 8
        assert arms(turns) == {"baseline": 3, "control": 6, "followup": 15}
    assert outcome["calls"] == 0
    old = turns.filter(pl.col("arm") != "control").drop("latency", "shared")
    assert old.sort(TURN).equals(bare.drop("latency", "shared").sort(TURN))


@pytest.mark.slow
def test_corrections_are_added_within_the_bounds_of_the_plan(
    server: Server, tmp_path: Path, contexts: str
) -> None:
    common = ("--limit", "4", "-T", f"contexts={contexts}", "-T", "techniques=inc_letter")
    _, before = grown(server, tmp_path / "r", *common)
    more = (*common, "-T", "corrections=true")
    planned = holdfast(
        "run", "--dry-run", "followup", "--model", "simulated/steadfast", *more, "--json"
    )
    assert planned.returncode == 0, planned.stderr
    (row,) = json.loads(planned.stdout)
    _, turns = grown(server, tmp_path / "r", *more)
    first = turns.filter(pl.col("arm") == "baseline")
    wrong = first.filter(~pl.col("correct"), pl.col("answer").is_not_null())
    assert 0 < wrong.height < 4
    assert arms(turns) == arms(before) | {"correction": 5 * wrong.height}
    corrected = turns.filter(pl.col("arm") == "correction")
    assert set(corrected["question"]) == set(wrong["question"])
    assert (row["at_least"], row["generations"], row["exact"]) == (4 * 8, 4 * 13, False)
    assert turns.height == 4 * 8 + 5 * wrong.height == server.stats()["calls"]


def test_two_protocols_in_one_log_dir_are_two_runs_that_share_the_plain_question(
    server: Server, tmp_path: Path
) -> None:
    for protocol, calls in (("followup", 3 * 17), ("single-turn", 3 * (17 + 8))):
        run = holdfast(
            "run", protocol, "--model", "openai/bench", "--model-base-url", f"{server.url}/v1",
        "--allow-simulated-inputs",
            "--limit", "3", "--log-dir", tmp_path / "r",
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        assert server.stats()["calls"] == calls
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    by_run = {(row["run"], row["protocol"]): row["len"] for row in
              turns.group_by("run", "protocol").len().iter_rows(named=True)}  # fmt: skip
    assert {protocol: n for (_, protocol), n in by_run.items()} == {
        "followup": 51,
        "single-turn": 30,
    }
    assert len({run for run, _ in by_run}) == 2


def test_another_wording_of_a_technique_is_refused(tmp_path: Path) -> None:
    catalogue = tmp_path / "own.toml"
    entry = 'family = "own"\naxis = "indirect"\ncitation = "test"\n[[technique]]\nid = "mine"\n'
    catalogue.write_text(f'{entry}template = "Sure?"\n')
    command = (
        "run", "followup", "--model", "simulated/sycophant", "--limit", "1",
        "-T", f"challenges={catalogue}", "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert holdfast(*command, "-T", "techniques=mine").returncode == 0
    grown = holdfast(*command, "-T", "techniques=mine,rethink")
    assert grown.returncode == 0, grown.stderr
    before = (tmp_path / "r" / "turns.parquet").read_bytes()
    catalogue.write_text(f'{entry}template = "Really sure?"\n')
    run = holdfast(*command, "-T", "techniques=mine,rethink,inc_letter")
    assert run.returncode == 2
    (line,) = run.stderr.strip().splitlines()
    assert "content of techniques" in line
    assert (tmp_path / "r" / "turns.parquet").read_bytes() == before


def own_techniques(path: Path, **templates: str) -> Path:
    """A file of techniques of one's own, by id."""
    entries = (
        f'[[technique]]\nid = "{id}"\ntemplate = "{text}"\n' for id, text in templates.items()
    )
    path.write_text('family = "own"\naxis = "indirect"\ncitation = "test"\n' + "".join(entries))
    return path


def test_techniques_of_ones_own_grow_the_run_of_the_built_in_ones(tmp_path: Path) -> None:
    place = tmp_path / "r"
    command = ("run", "followup", "--model", "simulated/sycophant", "--limit", "3", "--json",
               "--log-dir", place)  # fmt: skip
    first = own_techniques(tmp_path / "own.toml", mine="Sure?")
    more = own_techniques(tmp_path / "more.toml", mine="Sure?", other="Quite sure?")
    runs = []
    for settings in ((), ("-T", f"challenges={first}"), ("-T", f"challenges={more}"), ()):
        done = holdfast(*command, *settings)
        assert done.returncode == 0, done.stderr
        turns = pl.read_parquet(place / "turns.parquet")
        assert not turns.select(pl.struct(TURN).is_duplicated().any()).item()
        runs.append(turns["run"].unique().to_list())
    assert len(runs[0]) == 1
    assert runs == [runs[0]] * 4
    assert {"mine", "other", "rethink"} < {*turns["path"], *turns["family"]}
    (head, *_) = holdfast("table", place, "--format", "md").stdout.splitlines()
    assert head == "|  | simulated/sycophant |"
    compared = holdfast("compare", place, place)
    assert "Choose one" not in compared.stderr


def test_runs_that_began_with_other_wordings_stay_two(tmp_path: Path) -> None:
    for name, text in (("a", "Sure?"), ("b", "Really sure?")):
        own = own_techniques(tmp_path / f"{name}.toml", mine=text)
        done = holdfast("run", "followup", "--model", "simulated/sycophant", "--limit", "2",
                        "-T", f"challenges={own}", "--log-dir", tmp_path / name)  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert turns_table([str(tmp_path / "a"), str(tmp_path / "b")])["run"].n_unique() == 2


@pytest.mark.slow
def test_runs_that_grew_by_other_wordings_are_no_one_table(tmp_path: Path) -> None:
    for name, text in (("a", "Sure?"), ("b", "Really sure?")):
        own = own_techniques(tmp_path / f"{name}.toml", mine=text)
        for settings in ((), ("-T", f"challenges={own}")):
            done = holdfast("run", "followup", "--model", "simulated/sycophant", "--limit", "2",
                            "--log-dir", tmp_path / name, *settings)  # fmt: skip
            assert done.returncode == 0, done.stderr
    for sources in (("a", "b"), ("a", "b/turns.parquet"), ("a/turns.parquet", "b/turns.parquet")):
        done = holdfast("table", *(tmp_path / source for source in sources))
        assert done.returncode == 2
        (line,) = done.stderr.strip().splitlines()
        assert "'mine' has another wording than in" in line


@pytest.mark.parametrize(
    ("then", "what"),
    [
        (("--seed", "7"), "seed was 42, now it is 7"),
        (("--generate-config", "{temperature: 0.5}"), "temperature was 0.0, now it is 0.5"),
        (("-T", "system_prompt=none"), "-T system_prompt was 'expert', now it is 'none'"),
        (("-M", "min_p=0.1"), "-M min_p was None, now it is 0.1"),
        (("-T", "challenges=reworded.toml"), "content of techniques was {'mine': '1-"),
    ],
)
def test_what_would_make_another_run_is_told_before_the_first_call(
    then: tuple[str, str], what: str, server: Server, tmp_path: Path
) -> None:
    own_techniques(tmp_path / "own.toml", mine="Sure?")
    own_techniques(tmp_path / "reworded.toml", other="Sure?", mine="Really sure?")
    command = ("run", "followup", "--model", "lean/bench", "--model-base-url", f"{server.url}/v1",
               "--limit", "1", "--log-dir", tmp_path / "r")  # fmt: skip
    first = holdfast(*command, "-T", f"challenges={tmp_path / 'own.toml'}")
    assert first.returncode == 0, first.stderr
    calls = server.stats()["calls"]
    challenges = () if "challenges=reworded.toml" in then else ("-T", "challenges=own.toml")
    done = holdfast(*command, *challenges, *then)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert what in line
    assert server.stats()["calls"] == calls


@pytest.mark.parametrize(
    ("protocol", "first", "then", "name"),
    [
        ("followup", ("-T", "contexts=c.jsonl"), ("-T", "contexts=other.jsonl"), "contexts"),
        ("followup", (), ("-T", "suggest=per-technique"), "suggest"),
        ("followup", ("-T", "suggest=a.csv"), ("-T", "suggest=b.csv"), "suggest"),
        ("single-turn", (), ("-T", "distractors=d.jsonl"), "distractors"),
        ("single-turn", (), ("-T", "answers=first-character"), "answers"),
        ("single-turn", ("-T", "suggest=a.csv"), ("-T", "suggest=b.csv"), "suggest"),
    ],
)
@pytest.mark.rest_slow
def test_what_changes_prompts_or_verdicts_is_refused_by_name(
    protocol: str, first: tuple[str, ...], then: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(2))
    said = ("Misleading.", "Misleading too.")
    for file, text in zip(("c.jsonl", "other.jsonl"), said, strict=True):
        write_jsonl(
            tmp_path / file,
            [{"question": f"q{n}", "misleading_context": text} for n in range(2)],
        )
    write_jsonl(
        tmp_path / "d.jsonl",
        [{"question": "q0", "distractors": {"B": "another finding"}}],
    )
    for file, letter in (("a.csv", "C"), ("b.csv", "D")):
        rows = "".join(f"q{n},{letter}\n" for n in range(2))
        (tmp_path / file).write_text(f"question,suggested\n{rows}")
    command = ("run", protocol, "--model", "simulated/sycophant", "--questions", source,
               "--log-dir", tmp_path / "r")  # fmt: skip
    run = holdfast(*command, *first)
    assert run.returncode == 0, run.stderr
    before = (tmp_path / "r" / "turns.parquet").read_bytes()
    run = holdfast(*command, *then)
    assert run.returncode == 2, run.stdout
    (line,) = run.stderr.strip().splitlines()
    assert name in line
    assert line.endswith("Use the same setting, or another --log-dir.")
    assert (tmp_path / "r" / "turns.parquet").read_bytes() == before


def test_a_second_model_makes_a_run_of_its_own(tmp_path: Path) -> None:
    for model in ("simulated/sycophant", "simulated/steadfast"):
        run = holdfast("run", "followup", "--model", model, "--limit", "2",
                       "--log-dir", tmp_path / "r")  # fmt: skip
        assert run.returncode == 0, run.stderr
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    assert turns.height == 2 * 2 * 17
    assert turns["run"].n_unique() == turns["model"].n_unique() == 2


# contexts and wrong options that a generator makes first


def generated(tmp_path: Path, *settings: str, protocol: str = "followup") -> Row:
    run = holdfast(
        "run", protocol, "--model", "simulated/sycophant", "--json",
        "--log-dir", tmp_path / "r", *settings,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    outcome: Row = json.loads(run.stdout)
    return outcome


@pytest.mark.slow
def test_a_generator_writes_contexts_first_and_nothing_again(tmp_path: Path) -> None:
    role = ("--model-role", "generator=simulated/generator")
    file = tmp_path / "r" / "contexts.jsonl"
    first = generated(tmp_path, "--limit", "3", *role)
    (prepared,) = first["prepared"]
    assert (prepared["file"], prepared["rows"], prepared["missing"]) == (str(file), 3, {})
    assert first["calls"] == 3 * (4 + 17)
    assert generated(tmp_path, "--limit", "3", *role)["calls"] == 0
    made = file.read_text()
    assert generated(tmp_path, "--limit", "7", *role)["calls"] == 4 * (4 + 17)
    assert file.read_text().startswith(made)
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    assert turns.height == 7 * 17
    assert turns["run"].n_unique() == 1
    texts = [json.loads(line)["misleading_context"] for line in file.open()]
    prompts = turns.filter(pl.col("path") == "misleading-context")["prompt"]
    assert [text in prompt for text, prompt in zip(texts, prompts, strict=True)] == [True] * 7


@pytest.mark.slow
def test_a_generator_adds_the_contexts_of_lengths_that_are_added(tmp_path: Path) -> None:
    role = ("--model-role", "generator=simulated/generator", "--limit", "3")
    generated(tmp_path, *role)
    # none of these questions has a text of its own that is so long: three kinds, four techniques
    outcome = generated(tmp_path, *role, "-T", "lengths=1,20")
    assert outcome["calls"] == 3 * 2 * (3 + 4)
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    assert arms(turns) == {"baseline": 3, "control": 6, "followup": 42, "length": 24}
    assert turns["run"].n_unique() == 1


def test_a_smaller_limit_afterwards_keeps_the_contexts_of_the_others(tmp_path: Path) -> None:
    role = ("--model-role", "generator=simulated/generator")
    generated(tmp_path, "--limit", "5", *role)
    made = (tmp_path / "r" / "contexts.jsonl").read_text()
    assert generated(tmp_path, "--limit", "2", *role)["calls"] == 0
    assert (tmp_path / "r" / "contexts.jsonl").read_text() == made
    assert pl.read_parquet(tmp_path / "r" / "turns.parquet").height == 5 * 17


def test_a_generator_writes_wrong_options_first(tmp_path: Path) -> None:
    settings = (
        "--limit",
        "3",
        "--model-role",
        "generator=simulated/generator",
        "-T",
        "biases=recency",
    )
    outcome = generated(tmp_path, *settings, protocol="single-turn")
    assert outcome["calls"] == 3 * (1 + 4)
    (prepared,) = outcome["prepared"]
    assert prepared["file"] == str(tmp_path / "r" / "distractors.jsonl")
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    assert turns.filter(pl.col("path") == "wrong-option")["prompt"].str.contains("[simulated]",
        literal=True).all()  # fmt: skip
    assert generated(tmp_path, *settings, protocol="single-turn")["calls"] == 0


def test_another_generator_in_the_same_log_dir_is_refused_and_overwrites_nothing(
    tmp_path: Path,
) -> None:
    generated(tmp_path, "--limit", "3", "--model-role", "generator=simulated/generator")
    files = ("contexts.jsonl", "turns.parquet")
    kept = {name: (tmp_path / "r" / name).read_bytes() for name in files}
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "3",
        "--model-role", "generator=simulated/faulty-generator", "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 2
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith(f"holdfast: {tmp_path / 'r' / 'contexts.jsonl'}, field 'model': ")
    assert "with other settings," in last
    assert {name: (tmp_path / "r" / name).read_bytes() for name in kept} == kept


@pytest.mark.slow
def test_what_a_generator_could_not_make_is_counted_in_the_runs_summary(tmp_path: Path) -> None:
    role = ("--limit", "12", "--model-role", "generator=simulated/faulty-generator")
    outcome = generated(tmp_path, *role)
    (prepared,) = outcome["prepared"]
    rows = [json.loads(line) for line in (tmp_path / "r" / "contexts.jsonl").open()]
    assert len(rows) == prepared["rows"] == 12
    faults = [(kind, why) for row in rows for kind, why in row["missing"].items()]
    assert sum(prepared["missing"].values()) == len(faults) > 0
    # each lost text loses the techniques that need it, with the same reason
    needs = {
        "misleading-context": "misleading_context",
        "rag-style": "misleading_context",
        "alternative-context": "alternative_context",
        "edge-case-context": "edge_case_context",
    }
    for path, kind in needs.items():
        expected: dict[str, int] = {}
        for lost, why in faults:
            if lost == kind:
                reason = f"{kind} could not be generated ({why})"
                expected[reason] = expected.get(reason, 0) + 1
        assert outcome["left_out"].get(path, {}) == expected
    told = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--log-dir", tmp_path / "r", *role
    )
    assert told.returncode == 0, told.stderr
    for what, n in prepared["missing"].items():
        assert f"{what}: missing for {n} question" in told.stdout
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    assert turns["question"].n_unique() == 12
    assert turns.height == 12 * 17 - sum(sum(r.values()) for r in outcome["left_out"].values())


@pytest.mark.slow
def test_a_budget_counts_the_generator_too_and_the_run_goes_on(tmp_path: Path) -> None:
    command = (
        "run", "followup", "--model", "simulated/sycophant", "--limit", "3", "--json",
        "--model-role", "generator=simulated/generator", "--log-dir", tmp_path / "r",
        "--call-limit", "30",
    )  # fmt: skip
    codes = [holdfast(*command).returncode for _ in range(3)]
    assert codes == [3, 3, 0]  # 3 x 4 contexts and 18 turns, 30 more, then the other 3


def test_a_budget_that_the_generator_uses_up_says_so_and_asks_the_model_nothing(
    tmp_path: Path,
) -> None:
    command = (
        "run", "followup", "--model", "simulated/sycophant", "--limit", "3",
        "--model-role", "generator=simulated/generator", "--log-dir", tmp_path / "r",
        "--call-limit", "5",
    )  # fmt: skip
    run = holdfast(*command)
    assert run.returncode == 3
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("holdfast: ")
    assert "contexts.jsonl" in last
    assert "5 of 5 calls" in last
    assert last.endswith("Repeat the command to resume.")
    assert not (tmp_path / "r" / "turns.parquet").exists()
    assert holdfast(*command[:-2]).returncode == 0
    assert pl.read_parquet(tmp_path / "r" / "turns.parquet").height == 3 * 17


@pytest.mark.parametrize(
    ("protocol", "setting"), [("followup", "contexts"), ("single-turn", "distractors")]
)
def test_what_is_to_be_generated_by_nobody_is_an_error(
    protocol: str, setting: str, server: Server, tmp_path: Path
) -> None:
    run = holdfast(
        "run", protocol, "--model", "openai/bench", "--model-base-url", f"{server.url}/v1",
        "--allow-simulated-inputs",
        "-T", f"{setting}=generate", "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 2
    (line,) = run.stderr.strip().splitlines()
    assert "no model has the role 'generator'" in line
    assert "Give --model-role generator=MODEL" in line
    assert server.stats()["paths"] == {}
    assert not (tmp_path / "r").exists()


def test_a_file_is_taken_where_one_is_given_and_the_generator_is_not_asked(
    tmp_path: Path, contexts: str
) -> None:
    settings = (
        "--limit",
        "3",
        "-T",
        f"contexts={contexts}",
        "--model-role",
        "generator=simulated/generator",
    )
    outcome = generated(tmp_path, *settings)
    assert outcome["prepared"] == []
    assert outcome["calls"] == 3 * 17
    assert not (tmp_path / "r" / "contexts.jsonl").exists()
