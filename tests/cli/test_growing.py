"""A study that grows in its log dir: more is asked beside what is there, and it stays one run."""

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from benchmarks.server import Server
from tests.cli.commands import Facts, facts_of, json_lines, plan_of, refusal, rows_of, study_of
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.results.turns import turns_table

TURN = ["question", "epoch", "arm", "path", "turn"]
SYCOPHANT = ("--model", "simulated/sycophant")


def at(server: Server) -> tuple[str, ...]:
    return ("--model", "openai/bench", "--model-base-url", f"{server.url}/v1",
            "--allow-simulated-inputs", "--log-dir", "r")  # fmt: skip


def grow(server: Server, protocol: str, *settings: str) -> tuple[Facts, pl.DataFrame]:
    """The outcome of a run in the log dir, and its turns; nothing generated twice."""
    outcome, turns = study_of(protocol, *at(server), *settings)
    assert server.stats()["repeated"] == 0
    assert turns.filter(pl.struct(TURN).is_duplicated()).is_empty()
    assert turns["run"].n_unique() == 1
    return outcome, turns


def arms(turns: pl.DataFrame) -> dict[str, int]:
    return dict(turns.group_by("arm").len().sort("arm").rows())


def replies(turns: pl.DataFrame) -> dict[tuple[object, ...], str]:
    return {row[:-1]: row[-1] for row in turns.select(*TURN, "reply").rows()}


@pytest.fixture
def contexts() -> str:
    """Contexts of four questions, also at two lengths that no text of the study's own has."""
    facts_of("generate", "contexts", "--model", "simulated/generator", "--limit", "4",
             "--lengths", "1,20", "-o", "c.jsonl", "--log-dir", "made")  # fmt: skip
    return "c.jsonl"


FILE = "-T contexts=c.jsonl"
STEPS: dict[str, tuple[str, list[tuple[str, int]]]] = {
    # two controls, of chains four; five techniques, all fourteen, chains, then two lengths of four
    "follow-ups": ("followup", [
        (f"--limit 4 {FILE} -T techniques=rethink", 4 * 8),
        (f"--limit 4 {FILE}", 4 * 17),
        (f"--limit 4 {FILE} -T chains=paper", 4 * 33),
        (f"--limit 4 {FILE} -T chains=paper -T lengths=1", 4 * 37),
        (f"--limit 4 {FILE} -T chains=paper -T lengths=1,20", 4 * 41),
    ]),
    # baseline and its control, wrong options, biases
    "single turns": ("single-turn", [
        ("--limit 3 -T biases=recency,cultural", 3 * 5),
        ("--limit 3", 3 * 10),
        ("--limit 3 -T mitigations=education", 3 * 17),
        ("--limit 3 -T mitigations=all", 3 * 31),
    ]),
    "questions": ("followup", [
        ("--limit 2 -T techniques=rethink", 2 * 8), ("--limit 2 -T techniques=rethink", 2 * 8),
        ("--limit 5", 5 * 17),
    ]),
    "controls": ("followup", [
        ("--limit 3 -T techniques=rethink -T controls=false", 3 * 6),
        ("--limit 3 -T techniques=rethink", 3 * 8), ("--limit 3 -T techniques=rethink", 3 * 8),
    ]),
    "a smaller study": ("followup", [
        (f"--limit 4 {FILE} -T chains=paper -T lengths=1", 4 * 37),
        (f"--limit 4 {FILE}", 4 * 37),
        (f"--limit 1 {FILE} -T techniques=none", 4 * 37),
    ]),
    "contexts": ("followup", [
        ("--questions q.jsonl", 4 * 13), ("--questions q.jsonl -T contexts=of-q.jsonl", 4 * 17),
    ]),
    "epochs": ("followup", [
        ("--limit 3 -T techniques=none -T controls=false", 3),
        ("--limit 2 --epochs 3 -T techniques=none -T controls=false", 3 + 2 * 2),
        ("--limit 2 -T techniques=none -T controls=false", 7),
    ]),
}  # fmt: skip
"""By what is added: a protocol, and its settings with the turns of the table after each."""


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.usefixtures("contexts")
def test_only_the_addition_is_asked(name: str, server: Server) -> None:
    source = write_jsonl(Path("q.jsonl"), question_rows(4))
    facts_of("generate", "contexts", "--model", "simulated/generator", "--questions", source,
             "-o", "of-q.jsonl", "--log-dir", "of-q")  # fmt: skip
    protocol, steps = STEPS[name]
    before: dict[tuple[object, ...], str] = {}
    runs: set[str] = set()
    for settings, number in steps:
        _, turns = grow(server, protocol, *settings.split())
        assert turns.height == server.stats()["calls"] == number
        now = replies(turns)
        assert {key: now[key] for key in before} == before
        before, runs = now, runs | set(turns["run"])
    # what rests on simulated contexts is another model's
    assert len(runs) == (2 if name == "contexts" else 1)
    assert {row["run"] for row in rows_of("r")} == set(turns["run"])


def test_contexts_cannot_be_removed(contexts: str) -> None:
    study = ("followup", *SYCOPHANT, "--limit", "2")
    study_of(*study, "-T", f"contexts={contexts}")
    assert "content of contexts" in refusal("run", *study, "-T", "contexts=synthetic")


@pytest.mark.slow
def test_a_judge_is_added_and_asks_the_model_nothing(server: Server) -> None:
    _, before = grow(server, "followup", "--limit", "3")
    judge = f"judge={{model: openai/judge, base_url: {server.url}/v1}}"
    outcome, turns = grow(server, "followup", "--limit", "3", "--model-role", judge)
    assert replies(turns) == replies(before)
    assert outcome["calls"] == server.stats()["calls"] - before.height > 0
    # this server's judgements cannot be read
    challenged_turns = turns.filter(pl.col("arm") != "baseline", pl.col("cue").is_not_null())
    assert challenged_turns["stance_judged"].unique().to_list() == ["unreadable"]


@pytest.mark.slow
def test_corrections_are_added_within_the_bounds_of_the_plan(server: Server, contexts: str) -> None:
    settings = ("--limit", "4", "-T", f"contexts={contexts}", "-T", "techniques=inc_letter")
    _, before = grow(server, "followup", *settings)
    more = (*settings, "-T", "corrections=true")
    (row,) = plan_of("followup", "--model", "simulated/steadfast", *more)
    _, turns = grow(server, "followup", *more)
    first = turns.filter(pl.col("arm") == "baseline")
    wrong = first.filter(~pl.col("correct"), pl.col("answer").is_not_null())
    assert 0 < wrong.height < 4
    assert arms(turns) == arms(before) | {"correction": 5 * wrong.height}
    assert set(turns.filter(arm="correction")["question"]) == set(wrong["question"])
    assert (row["at_least"], row["generations"], row["exact"]) == (4 * 8, 4 * 13, False)
    assert turns.height == 4 * 8 + 5 * wrong.height == server.stats()["calls"]


@pytest.mark.slow
def test_protocols_and_models_of_a_log_dir_are_separate_runs(server: Server) -> None:
    # two protocols share the plain question and its resample
    for protocol, calls in (("followup", 3 * 17), ("single-turn", 3 * (17 + 8))):
        study_of(protocol, *at(server), "--limit", "3")
        assert server.stats()["calls"] == calls
    _, turns = study_of("followup", *SYCOPHANT, "--limit", "3", "--log-dir", "r")
    turns = turns_table(["r"])
    counts = turns.group_by("model", "protocol").agg(pl.len(), pl.col("run").n_unique()).rows()
    assert sorted(counts) == [
        ("openai/bench", "followup", 51, 1), ("openai/bench", "single-turn", 30, 1),
        ("simulated/sycophant", "followup", 51, 1),
    ]  # fmt: skip
    assert turns["run"].n_unique() == 3


def techniques(name: str, **templates: str) -> str:
    """Settings of a file of techniques of one's own, by id."""
    entries = (
        f'[[technique]]\nid = "{id}"\ntemplate = "{text}"\n' for id, text in templates.items()
    )
    head = 'family = "own"\naxis = "indirect"\ncitation = "test"\n'
    Path(name).write_text(head + "".join(entries))
    return f"challenges={name}"


@pytest.mark.slow
def test_user_techniques_extend_the_run() -> None:
    first = techniques("own.toml", mine="Sure?")
    more = techniques("more.toml", mine="Sure?", yours="Quite sure?")
    runs = set()
    for settings in ((), ("-T", first), ("-T", more), ()):
        _, turns = study_of("followup", *SYCOPHANT, "--limit", "3", "--log-dir", "r", *settings)
        assert not turns.select(pl.struct(TURN).is_duplicated().any()).item()
        runs |= set(turns["run"])
    assert len(runs) == 1
    assert {"mine", "yours", "rethink"} < {*turns["path"], *turns["family"]}
    assert "Choose one" not in holdfast("compare", "r", "r").stderr


@pytest.mark.rest_slow
@pytest.mark.parametrize("extension", [False, True])
def test_runs_with_different_wordings_are_not_mixed(extension: bool) -> None:
    for name, text in (("a", "Sure?"), ("b", "Really sure?")):
        catalogue = techniques(f"{name}.toml", mine=text)
        for settings in ((), ("-T", catalogue)) if extension else (("-T", catalogue),):
            study_of("followup", *SYCOPHANT, "--limit", "2", "--log-dir", name, *settings)
    if not extension:  # they began with their wordings and are two runs
        assert turns_table(["a", "b"])["run"].n_unique() == 2
        return
    for sources in (("a", "b"), ("a", "b/turns.parquet"), ("a/turns.parquet", "b/turns.parquet")):
        assert "'mine' has another wording than in" in refusal("table", *sources)


CHANGES: list[tuple[str, str, str, str]] = [
    ("run followup", "", "--seed 7", "seed was 42, now it is 7"),
    ("run followup", "", "-T system_prompt=none", "system_prompt was 'expert', now it is 'none'"),
    ("run followup", "-T challenges=own.toml", "-T challenges=reworded.toml",
     "content of techniques was {'mine': '1-"),
    ("run followup", "-T contexts=c.jsonl", "-T contexts=other.jsonl", "contexts"),
    ("run followup", "", "-T suggest=per-technique", "suggest"),
    ("run followup", "-T suggest=a.csv", "-T suggest=b.csv", "suggest"),
    ("run single-turn", "", "-T distractors=d.jsonl", "distractors"),
    ("run single-turn", "", "-T answers=first-character", "answers"),
    ("run single-turn", "-T suggest=a.csv", "-T suggest=b.csv", "suggest"),
    ("run stick-or-switch", "", "-T shots=1", "shots"),
    ("run stick-or-switch", "", "-T beliefs=true", "beliefs"),
    ("run followup", "--model-role reader=simulated/reader", "", "--model-role reader"),
    ("run followup", "--model-role reader=simulated/reader",
     "--model-role reader=simulated/reader-20", "--model-role reader"),
    ("run followup", "--model-role reader-all=simulated/reader",
     "--model-role reader=simulated/reader", "--model-role reader"),
    ("generate contexts", "", "--seed 7", "seed"),
    ("generate contexts", "", "--sentences 5", "sentences"),
    ("generate contexts", "", "--log-dir r2 --seed 8", "with other settings"),
    ("generate contexts", "", "--log-dir r2 --limit 1 --seed 8", "with other settings"),
]  # fmt: skip
"""A command, settings of its first run, those of its second, and what is named as changed."""


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: " ".join(row[:3]))
def test_a_changed_setting_is_named_and_nothing_is_asked(row: tuple[str, ...]) -> None:
    command, first, then, word = row
    techniques("own.toml", mine="Sure?")
    techniques("reworded.toml", mine="Really sure?", yours="Sure?")
    source = write_jsonl(Path("q.jsonl"), question_rows(2))
    for name, text in (("c.jsonl", "Misleading."), ("other.jsonl", "Misleading too.")):
        lines = [{"question": f"q{n}", "misleading_context": text} for n in range(2)]
        write_jsonl(Path(name), lines)
    write_jsonl(Path("d.jsonl"), [{"question": "q0", "distractors": {"B": "another finding"}}])
    for name, letter in (("a.csv", "C"), ("b.csv", "D")):
        Path(name).write_text(f"question,suggested\nq0,{letter}\nq1,{letter}\n")
    writer = command.startswith("generate")
    model = ("--model", f"simulated/{'generator' if writer else 'sycophant'}")
    study = (*command.split(), *model, "--questions", source, "--log-dir", "r",
             *(("-o", "made.jsonl") if writer else ()))  # fmt: skip
    facts_of(*study, *first.split())
    assert word in refusal(*study, *then.split())


def test_a_reader_of_all_replaces_a_reader_of_some() -> None:
    study = ("followup", *SYCOPHANT, "--limit", "2", "-T", "techniques=rethink", "--log-dir", "r")
    study_of(*study, "--model-role", "reader=simulated/reader")
    outcome, _ = study_of(*study, "--model-role", "reader-all=simulated/reader")
    assert outcome["calls"] > 0


# contexts and wrong options that a generator makes first


WRITER = ("--model-role", "generator=simulated/generator")


def generated(protocol: str, *settings: str) -> Facts:
    return study_of(protocol, *SYCOPHANT, "--log-dir", "r", *settings)[0]


GENERATED_INPUTS = {
    "contexts": ("followup", [("--limit 3", 3 * (4 + 17)), ("--limit 3", 0),
                              ("--limit 7", 4 * (4 + 17)), ("--limit 2", 0)]),
    # none of these questions has a text of its own that is so long: three kinds, four techniques
    "lengths": ("followup", [("--limit 3", 3 * (4 + 17)),
                             ("--limit 3 -T lengths=1,20", 3 * 2 * (3 + 4))]),
    "wrong options": ("single-turn", [("--limit 3 -T biases=recency", 3 * 5),
                                      ("--limit 3 -T biases=recency", 0)]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATED_INPUTS)
def test_a_generator_writes_each_text_once(name: str) -> None:
    protocol, steps = GENERATED_INPUTS[name]
    file = Path("r") / ("distractors.jsonl" if protocol == "single-turn" else "contexts.jsonl")
    before = ""
    for settings, calls in steps:
        outcome = generated(protocol, *settings.split(), *WRITER)
        assert outcome["calls"] == calls
        (preparation,) = outcome["prepared"]
        assert (Path(preparation["file"]), preparation["missing"]) == (file, {})
        assert name == "lengths" or file.read_text().startswith(before)
        before = file.read_text()
    turns = turns_table(["r"])
    assert turns["run"].n_unique() == 1
    if name == "wrong options":
        prompts = turns.filter(pl.col("path") == "wrong-option")["prompt"]
        assert prompts.str.contains("[simulated]", literal=True).all()
        return
    texts = {(row["question"], row["length"]): row["misleading_context"]
             for row in json_lines(file)}  # fmt: skip
    misled_turns = turns.filter(pl.col("path").str.starts_with("misleading-context"))
    for question, path, prompt in misled_turns.select("question", "path", "prompt").rows():
        length = path.partition("@")[2]
        assert texts[question, int(length) if length else None] in prompt
    assert misled_turns["question"].n_unique() == (7 if name == "contexts" else 3)


def test_a_second_generator_overwrites_nothing() -> None:
    generated("followup", "--limit", "3", *WRITER)
    names = ("contexts.jsonl", "turns.parquet")
    before = [(Path("r") / name).read_bytes() for name in names]
    run = holdfast("run", "followup", *SYCOPHANT, "--limit", "3", "--log-dir", "r",
                   "--model-role", "generator=simulated/faulty-generator")  # fmt: skip
    assert run.returncode == 2
    assert "contexts.jsonl, field 'model'" in run.stderr.strip().splitlines()[-1]
    assert [(Path("r") / name).read_bytes() for name in names] == before


@pytest.mark.slow
def test_missing_texts_drop_the_techniques_that_need_them() -> None:
    role = ("--limit", "12", "--model-role", "generator=simulated/faulty-generator")
    outcome = generated("followup", *role)
    (preparation,) = outcome["prepared"]
    rows = json_lines(Path("r/contexts.jsonl"))
    assert len(rows) == preparation["rows"] == 12
    faults = [(kind, why) for row in rows for kind, why in row["missing"].items()]
    assert sum(preparation["missing"].values()) == len(faults) > 0
    for path in ("misleading-context", "rag-style", "alternative-context", "edge-case-context"):
        kind = "misleading_context" if path == "rag-style" else path.replace("-", "_")
        reasons = Counter(f"{kind} could not be generated ({why})"
                          for name, why in faults if name == kind)  # fmt: skip
        assert outcome["left_out"].get(path, {}) == reasons
    output = holdfast("run", "followup", *SYCOPHANT, "--log-dir", "r", *role).stdout
    assert all(fault in output for fault in preparation["missing"])
    turns = turns_table(["r"])
    assert turns["question"].n_unique() == 12
    assert turns.height == 12 * 17 - sum(sum(r.values()) for r in outcome["left_out"].values())


def test_the_model_is_not_asked_once_the_budget_is_spent() -> None:
    study = ("run", "followup", *SYCOPHANT, "--limit", "3", *WRITER, "--log-dir", "r")
    run = holdfast(*study, "--call-limit", "5")
    assert run.returncode == 3
    last = run.stderr.strip().splitlines()[-1]
    assert "contexts.jsonl" in last
    assert "5 of 5 calls" in last
    assert not Path("r/turns.parquet").exists()


def test_a_file_replaces_the_generator(contexts: str) -> None:
    outcome = generated("followup", "--limit", "3", "-T", f"contexts={contexts}", *WRITER)
    assert (outcome["prepared"], outcome["calls"]) == ([], 3 * 17)
    assert not Path("r/contexts.jsonl").exists()
