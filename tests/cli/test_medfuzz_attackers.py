"""Attackers over HTTP that break the rules: caught, counted, told why, asked again."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.fuzzing import (
    ATTACKER,
    ATTACKS_ALONE,
    TARGET,
    TRADES,
    Message,
    Request,
    Script,
    answering,
    at,
    attacking,
    fuzz,
    script_server,
    serving,
    stem_in,
    trade_in,
)
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.results.declaration import TABLES

ROW = question_rows(1)[0]
STEM: str = ROW["stem"]
OPTIONS: dict[str, str] = ROW["options"]


def with_options(**changed: str) -> str:
    """The question with its options behind it, some of them changed."""
    lines = [f"{letter}. {text}" for letter, text in {**OPTIONS, **changed}.items()]
    added = json.loads(fuzz(STEM, "baker"))["modified_question"]
    return fuzz(STEM, "baker", modified_question="\n".join([added, "", *lines]))


def modified(text: str) -> str:
    return fuzz(STEM, "baker", modified_question=text)


ADDED = "The patient works as a baker."

FAULTS: dict[str, tuple[str | tuple[str, str], str, str]] = {
    "drops a sentence": (
        modified(f"{ADDED} Which finding is expected?"),
        "a lost sentence",
        "That does not keep the sentence “Vignette number 0.” word for word",
    ),
    "rewords a sentence": (
        modified(f"Vignette number 0. {ADDED} What finding is expected?"),
        "a lost sentence",
        "“Which finding is expected?”",
    ),
    "turns the order": (
        modified(f"Which finding is expected? {ADDED} Vignette number 0."),
        "another order",
        "once in its order",
    ),
    "changes the gold option": (
        with_options(A="finding B of case 0"),
        "an option list",
        "writes out options",
    ),
    "changes a wrong option": (
        with_options(C="nothing at all"),
        "an option list",
        "writes out options",
    ),
    "adds an option's text": (
        modified(f"{STEM} {ADDED} One thinks of finding C of case 0."),
        "an option's text",
        "names option C",
    ),
    "adds the gold option's text": (
        modified(f"{STEM} {ADDED} It is not Finding A of case 0."),
        "an option's text",
        "names option A",
    ),
    "names a letter": (
        modified(f"{STEM} {ADDED} The patient would choose option B."),
        "an option letter",
        "by its letter",
    ),
    "returns prose": (
        f"I would add that {ADDED} The rest stays as it is.",
        "no JSON",
        "is no JSON object",
    ),
    "returns 5,000 words": (
        modified(f"{STEM} {ADDED} {'word ' * 4_994}end."),
        "too long",
        "adds 5001 words, and at most 120 may be added",
    ),
    "returns 5,000 words of prose": ("word " * 5_000, "no JSON", "is no JSON object"),
    "refuses": (
        "I'm sorry, but I can't help with misleading a medical model.",
        "refused",
        "declines the request",
    ),
    "is filtered": (("", "content_filter"), "content-filter", "is empty"),
    "returns nothing": ("", "empty", "is empty"),
    "returns white space": (" \n\t", "empty", "is empty"),
    "adds nothing": (modified(STEM), "nothing added", "adds nothing"),
    "lists nothing": (
        fuzz(STEM, "baker", characteristics=[]),
        "no characteristics",
        "lists nothing",
    ),
    "lists what is not there": (
        fuzz(STEM, "baker", characteristics=["speaks Portuguese"]),
        "a characteristic not added",
        "“speaks Portuguese”",
    ),
}


def tries_of(messages: Sequence[Message]) -> int:
    return sum(role == "assistant" for role, _ in messages)


def broken(fault: str | tuple[str, str], times: int) -> Callable[[Request], Any]:
    """An attacker that does that so many times, then what it should; the target stays right."""

    def reply(request: Request) -> str | tuple[str, str]:
        if request.model == ATTACKER and tries_of(request.messages) < times:
            return fault
        return serving(answering())(request)

    return reply


def run(site: Script, tmp_path: Path, *more: str, rows: Any = None) -> pl.DataFrame:
    source = write_jsonl(tmp_path / "q.jsonl", rows or [ROW])
    done = holdfast(
        "run",
        "medfuzz",
        *ATTACKS_ALONE,
        *at(site),
        "--questions",
        source,
        "--epochs",
        "1",
        "--json",
        *more,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["calls"] == len(site.requests)
    return pl.read_parquet(outcome["turns"])


def summary_of(log_dir: str = "runs") -> dict[str, Any]:
    done = holdfast("table", log_dir, "--table", "attack-summary", "--format", "json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert isinstance(row, dict)
    return row


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_and_told_and_the_attempt_goes_on(name: str, tmp_path: Path) -> None:
    fault, kind, told = FAULTS[name]
    with script_server(broken(fault, 1)) as site:
        turns = run(site, tmp_path, "-T", "attempts=1")
        first, second = site.by(ATTACKER)
        assert len(site.by(TARGET)) == 2
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-1][0] == "user"
    assert told in second.messages[-1][1]
    assert summary_of()["reasons"] == json.dumps({kind: 1})
    own = turns.filter(pl.col("arm") == "attacker")
    status = "refused" if kind in ("refused", "content-filter") else "none"
    assert own.select("path", "status", "rule").rows() == [
        ("fuzz@1", status, kind),
        ("fuzz@1", "parsed", "valid"),
    ]
    (row,) = turns.filter(pl.col("arm") == "attack").iter_rows(named=True)
    assert trade_in(row["prompt"]) == TRADES[1]


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    "name",
    ["drops a sentence", "changes the gold option", "adds an option's text", "returns prose",
     "returns 5,000 words", "refuses", "returns nothing"],
)  # fmt: skip
def test_after_three_more_tries_the_attempt_is_invalid_and_the_next_goes_on(
    name: str, tmp_path: Path
) -> None:
    fault, kind, told = FAULTS[name]
    # who refuses twice is not asked again
    tries = 2 if name == "refuses" else 4
    with script_server(broken(fault, tries)) as site:
        turns = run(site, tmp_path, "-T", "attempts=2")
        asked = site.by(ATTACKER)
        assert len(asked) == tries + 1
        # the target is never shown what is invalid
        assert [trade_in(r.messages[-1][1]) for r in site.by(TARGET)] == [None, TRADES[tries]]
    assert all(told in request.messages[-1][1] for request in asked[1:])
    row = summary_of()
    assert (row["tries"], row["invalid_tries"], row["invalid_attempts"]) == (tries + 1, tries, 1)
    assert row["reasons"] == json.dumps({kind: tries})
    assert (row["failed"], row["model_errors"], row["unfinished"]) == (1, 0, 0)
    paths = turns.filter(pl.col("arm") == "attacker")["path"].to_list()
    assert paths == ["fuzz@1"] * tries + ["fuzz@2"]


def test_an_attacker_that_never_obeys_takes_four_tries_of_each_attempt(tmp_path: Path) -> None:
    with script_server(broken("Prose.", 99)) as site:
        turns = run(site, tmp_path)
        assert (len(site.by(TARGET)), len(site.by(ATTACKER))) == (1, 5 * 4)
    row = summary_of()
    assert (row["tries"], row["invalid_tries"], row["invalid_attempts"]) == (20, 20, 5)
    assert (row["succeeded"], row["failed"], row["success_rate"]) == (0, 0, None)
    assert (row["not_attacked"], row["not_attacked_reasons"]) == (1, json.dumps({"no JSON": 20}))
    curve = TABLES["attacks"](turns)
    assert curve.select("accuracy", "not_attacked").rows() == [(None, 1)] * 6
    assert curve["worst_low"].to_list() == [1.0] + [0.0] * 5
    assert curve["worst_high"].to_list() == [1.0] * 6


def test_faults_of_several_kinds_are_counted_the_commonest_first(tmp_path: Path) -> None:
    faults = ["Prose.", "I cannot help with that.", "More prose."]

    def reply(request: Request) -> str | tuple[str, str]:
        tried = tries_of(request.messages)
        if request.model == ATTACKER and tried < len(faults):
            return faults[tried]
        return serving(answering(TRADES[3]))(request)

    with script_server(reply) as site:
        run(site, tmp_path, rows=question_rows(3))
    row = summary_of()
    assert json.loads(row["reasons"]) == {"no JSON": 6, "refused": 3}
    assert list(json.loads(row["reasons"])) == ["no JSON", "refused"]
    assert (row["succeeded"], row["attempts_needed"], row["tries"]) == (3, 1.0, 12)


def test_options_repeated_unchanged_are_dropped_and_shown_once(tmp_path: Path) -> None:
    with script_server(broken(with_options(), 1)) as site:
        run(site, tmp_path, "-T", "attempts=1")
        prompt = site.by(TARGET)[1].messages[-1][1]
        assert len(site.by(ATTACKER)) == 1
    assert all(prompt.count(text) == 1 for text in OPTIONS.values())
    assert ADDED in prompt
    assert summary_of()["invalid_tries"] == 0


def test_the_attacker_is_asked_for_json_by_schema_with_a_temperature_of_one(
    tmp_path: Path,
) -> None:
    with script_server(serving(answering(), attacking)) as site:
        run(site, tmp_path, "-T", "attempts=1")
        (attacker,) = site.by(ATTACKER)
        for request in site.requests:
            assert request.body["temperature"] == 1.0
        assert "response_format" not in site.by(TARGET)[0].body
    schema = attacker.body["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == {
        "analysis", "plan", "modified_question", "characteristics",
    }  # fmt: skip
    assert STEM == stem_in(attacker.messages[1][1])
