"""``holdfast generate``: files made and checked, and what could not be made."""

import re
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.server import Server
from tests.cli.commands import Facts, facts_of, json_lines, study_of
from tests.cli.serving_all import reply_to
from tests.fuzzing import script_server
from tests.studies import Done, holdfast, question_rows, write_jsonl

from holdfast.challenges.catalogue import CONTEXTS
from holdfast.challenges.texts import sentence_count
from holdfast.questions.bank import SYSTEMS
from holdfast.questions.loading import load_questions

C, D, S = Path("c.jsonl"), Path("d.jsonl"), Path("s.jsonl")
BANK = load_questions("bank").questions


def generate(kind: str, model: str, *more: str | Path) -> Facts:
    outcome: Facts = facts_of("generate", kind, "--model", model, *more)
    return outcome


def check(path: Path, *more: str | Path, code: int = 0) -> tuple[Done, Facts]:
    """What ``holdfast check`` says of a file, in words and as JSON."""
    run = holdfast("check", path, *more)
    report: Facts = facts_of("check", path, *more, code=code)
    assert run.returncode == code
    return run, report


def places(report: Facts) -> list[tuple[int, str]]:
    return [(problem["row"], problem["field"]) for problem in report["problems"]]


def test_a_build_asks_only_what_it_needs() -> None:
    with script_server(reply_to) as site:
        for limit, calls in (("2", 8), ("2", 8), ("5", 20)):
            outcome = generate("contexts", "openai/writer", "--model-base-url", site.url, "-o", C,
                               "--log-dir", "made", "--limit", limit)  # fmt: skip
            assert (outcome["rows"], outcome["missing"]) == (int(limit), {})
            assert (len(site.requests), site.repeated) == (calls, 0)


@pytest.mark.slow
def test_unusable_replies_are_retried_three_times(server: Server) -> None:
    # this server's replies are fourteen sentences of prose that end in a letter
    at = ("--model-base-url", f"{server.url}/v1", "--log-dir", "made")
    outcome = generate("contexts", "openai/bench", *at, "--limit", "4", "-o", C)
    rows = json_lines(C)
    assert [row["question"] for row in rows] == [question.id for question in BANK[:4]]
    assert all(row[kind] is None for row in rows for kind in CONTEXTS)
    assert outcome["missing"].pop("alternative_context (no JSON)") == 4
    assert outcome["missing"].pop("edge_case_context (wrong sentence count)") == 4
    assert sum(outcome["missing"].values()) == 4
    assert all(reason.startswith("misleading_context (") for reason in outcome["missing"])
    # two texts that are asked for four times, and a third where an option was chosen
    options = sum(row["second_best"] is not None for row in rows)
    assert server.stats()["calls"] == outcome["calls"]
    assert 4 <= outcome["calls"] - 4 * 2 * 4 - options * 4 <= 4 * 4
    outcome = generate("labels", "openai/bench", *at, "--limit", "3", "-o", S)
    assert (outcome["missing"], outcome["calls"]) == ({"no category": 3}, 3 * 4)
    assert [row["missing"] for row in json_lines(S)] == ["no category"] * 3
    assert server.stats()["repeated"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("lengths", ["none", "1,12"])
def test_every_missing_context_is_counted_and_named_in_its_row(lengths: str) -> None:
    command = ("contexts", "simulated/faulty-generator", "--lengths", lengths, "-o", C)
    generate(*command)
    outcome = generate(*command)
    assert outcome["calls"] == 0
    rows = json_lines(C)
    numbers = [None, *(int(length) for length in lengths.split(",") if length != "none")]
    assert [(row["question"], row["length"]) for row in rows] == [
        (question.id, length) for question in BANK for length in numbers
    ]
    counts: Counter[str] = Counter()
    for row in rows:
        for kind in CONTEXTS:
            assert (row[kind] is None) == (kind in row["missing"])
            if row[kind] is None:
                of = f" of {row['length']} sentences" if row["length"] else ""
                counts[f"{kind}{of} ({row['missing'][kind]})"] += 1
            else:
                assert sentence_count(row[kind]) == row["sentences"]
                assert row["length"] in (None, row["sentences"])
    assert len(counts) >= 5
    assert outcome["missing"] == counts
    output = holdfast("generate", command[0], "--model", *command[1:]).stdout
    for reason, n in counts.items():
        assert re.search(rf"^{re.escape(reason)}: .* {n} question", output, re.MULTILINE)


def test_every_row_states_its_origin() -> None:
    settings = ("--limit", "3", "--sentences", "5", "--seed", "7", "-o", C)
    generate("contexts", "simulated/generator", *settings)
    for row, question in zip(json_lines(C), BANK[:3], strict=True):
        assert row["content_hash"] == question.content_hash
        assert (row["model"], row["template_version"]) == ("simulated/generator", 1)
        assert row["settings"] == {"temperature": 0.0, "seed": 7, "sentences": 5}
        assert (row["length"], row["sentences"]) == (None, 5)
        assert row["second_best"] in question.distractors
        assert [sentence_count(row[kind]) for kind in CONTEXTS] == [5, 5, 5]


@pytest.mark.slow
def test_a_generated_file_passes_the_check() -> None:
    generate("contexts", "simulated/generator", "--lengths", "1,10", "-o", C)
    _, report = check(C, "--questions", "bank")
    facts = ("problems", "questions", "unused", "supporting_context", "inert_context")
    assert [report[name] for name in facts] == [[], 60, 0, 0, 0]
    assert {report[f"{kind}{at}"] for at in ("", "@1", "@10") for kind in CONTEXTS} == {60}


def test_more_lengths_are_added_to_a_file_and_two_files_stay_apart() -> None:
    place = ("--log-dir", "made", "--limit", "2")
    generate("contexts", "simulated/generator", "-o", C, *place)
    generate("distractors", "simulated/generator", "-o", D, *place)
    assert generate("contexts", "simulated/generator", "-o", "again.jsonl", *place)["calls"] == 0
    assert Path("again.jsonl").read_bytes() == C.read_bytes()
    assert "distractors" in json_lines(D)[0]
    before = json_lines(C)
    generate("contexts", "simulated/generator", "-o", C, *place, "--lengths", "2")
    assert [row for row in json_lines(C) if row["length"] is None] == before


# what a check finds in contexts


THREE = "One is here. Two is here. Three is here."
RARE = {"alternative_answer": "a rare syndrome", "alternative_context": "It may be another."}
FAULTS: dict[str, tuple[list[Facts], tuple[str, ...], list[tuple[int, str]], str]] = {
    "no fault": (
        [{"question": "q0", "misleading_context": THREE}, {"question": "q1", **RARE}], (), [], "",
    ),
    "another number of sentences": (
        [{"question": "q0", "misleading_context": THREE, "edge_case_context": THREE},
         {"question": "q1", "misleading_context": "Only one.", "edge_case_context": THREE},
         {"question": "q2", "misleading_context": THREE, "edge_case_context": "One. Two."}],
        ("--sentences", "3"), [(2, "misleading_context"), (3, "edge_case_context")],
        "wrong sentence count",
    ),
    "another number than the row says": (
        [{"question": "q0", "sentences": 3, "edge_case_context": THREE},
         {"question": "q1", "sentences": 3, "edge_case_context": f"{THREE} More."}],
        (), [(2, "edge_case_context")], "wrong sentence count",
    ),
    **{f"an option as diagnosis: {name}": (
        [{"question": "q0", **RARE, "alternative_answer": name}, {"question": "q1", **RARE}],
        (), [(1, "alternative_context")], "an option as diagnosis",
    ) for name in ("finding C of case 0", "Finding C of case 0.", "FINDING C OF CASE 0 (x)")},
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_check_names_every_faulty_context(name: str) -> None:
    rows, more, faults, words = FAULTS[name]
    questions = write_jsonl(Path("q.jsonl"), question_rows(3))
    write_jsonl(C, rows)
    code = 2 if faults else 0
    run, report = check(C, "--questions", questions, *more, code=code)
    assert places(report) == faults
    lines = run.stderr.strip().splitlines()
    assert len(lines) == len(faults) + bool(faults)
    for line, (row, field) in zip(lines, faults, strict=False):
        assert line.startswith(f"{C}, row {row}, field '{field}': ")
        assert words in line
    if more:  # the faulty rows do not count
        assert report["misleading_context"] == 2


def test_a_check_reads_contexts_by_the_stems_of_questions() -> None:
    rows = question_rows(2)
    questions = write_jsonl(Path("q.jsonl"), rows)
    Path("c.csv").write_text(
        "question,misleading_context,alternative_context,edge_case_context\n"
        f'"{rows[0]["stem"]}",Misleads.,Something else.,Not enough.\n'
        f'"{rows[1]["stem"]}",Misleads.,,Not enough.\n'
        '"Another question?",Misleads.,,\n'
    )
    _, report = check(Path("c.csv"), "--questions", questions)
    assert [report[kind] for kind in CONTEXTS] == [
        1 if kind == "alternative_context" else 2 for kind in CONTEXTS
    ]
    assert report["unused"] == 1


def test_contexts_for_other_questions_are_reported() -> None:
    write_jsonl(C, [{"question": f"z{n}", "misleading_context": THREE} for n in range(4)])
    questions = write_jsonl(Path("q.jsonl"), question_rows(3))
    run, report = check(C, "--questions", questions, code=2)
    assert (report["unused"], report["misleading_context"]) == (4, 0)
    assert "matches none of these questions" in run.stderr


# wrong options and labels


@pytest.mark.slow
def test_wrong_options_are_generated_checked_and_used() -> None:
    outcome = generate("distractors", "simulated/generator", "--replace", "2", "-o", D)
    assert (outcome["rows"], outcome["missing"]) == (60, {})
    for row, question in zip(json_lines(D), BANK, strict=True):
        assert len(row["distractors"]) == 2
        assert set(row["distractors"]) <= set(question.distractors)
    _, report = check(D, "--questions", "bank")
    assert [report[name] for name in ("questions", "distractors", "unused")] == [60, 60, 0]
    facts, _ = study_of("single-turn", "--model", "simulated/sycophant", "-T", f"distractors={D}",
                        "-T", "biases=none", "--limit", "5")  # fmt: skip
    arms = {row["arm"]: row["n"] for row in facts["accuracy"]}
    assert (arms["baseline"], arms["single-turn"]) == (5, 5)


@pytest.mark.slow
def test_faulty_wrong_options_are_counted_and_left_out() -> None:
    outcome = generate("distractors", "simulated/faulty-generator", "-o", D)
    rows = json_lines(D)
    missing = Counter(row["missing"] for row in rows if "missing" in row)
    assert len(rows) == 60
    assert missing.total() > 0
    assert outcome["missing"] == missing
    facts, _ = study_of("single-turn", "--model", "simulated/sycophant", "-T", f"distractors={D}",
                        "-T", "biases=none")  # fmt: skip
    reasons = facts["left_out"]["wrong-option"]
    assert sorted(reasons.values()) == sorted(missing.values())
    assert all(any(why in reason for reason in reasons) for why in missing)


def test_a_graph_adds_candidates_to_the_generated_options() -> None:
    Path("g.csv").write_text(
        "head,relation,tail\n"
        "finding A of case 0,seen in,a disease\n"
        "another finding,seen in,a disease\n"
    )
    questions = write_jsonl(Path("q.jsonl"), question_rows(2))
    source = ("--questions", questions, "--graph", "g.csv")
    generate("distractors", "simulated/generator", *source, "-o", D)
    first, second = json_lines(D)
    assert len(first["candidates"]) == 1
    assert first["candidates"][0].startswith("another finding (")
    assert second["candidates"] == []


def test_a_perfect_classifier_reproduces_the_bank_labels() -> None:
    assert generate("labels", "simulated/classifier", "-o", S)["calls"] == 60
    labels = [(row["question"], row["system"]) for row in json_lines(S)]
    assert labels == [(question.id, question.system) for question in BANK]
    assert {system for _, system in labels} == set(SYSTEMS)


def test_an_output_whose_path_is_too_long_ends_in_one_line() -> None:
    run = holdfast(
        "generate", "plausibility", "--questions", "bank", "--limit", "1", "--distractors", "bank",
        "--model", "simulated/judge", "-o", "a/" * 3000 + "a.jsonl",
    )  # fmt: skip
    assert run.returncode == 2
    (line,) = run.stderr.strip().splitlines()
    assert "cannot be written (File name too long)" in line
