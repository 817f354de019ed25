"""Attackers over HTTP that break the rules: caught, counted, told why, asked again."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.commands import Facts, rows_of, study_of
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
from tests.studies import question_rows, write_jsonl

from holdfast.results.declaration import TABLES

ROW = question_rows(1)[0]
STEM: str = ROW["stem"]
OPTIONS: dict[str, str] = ROW["options"]


ADDITION = "The patient works as a baker."


def modified(text: str) -> str:
    return fuzz(STEM, "baker", modified_question=text)


def with_options(**changes: str) -> str:
    """The question with its options behind it, some of them changed."""
    options = [f"{letter}. {text}" for letter, text in {**OPTIONS, **changes}.items()]
    stem = json.loads(fuzz(STEM, "baker"))["modified_question"]
    return modified("\n".join([stem, "", *options]))


FAULTS: dict[str, tuple[str | tuple[str, str], str, str]] = {
    "drops a sentence": (modified(f"{ADDITION} Which finding is expected?"), "a lost sentence",
                         "“Vignette number 0.” word for word"),
    "rewords a sentence": (modified(f"Vignette number 0. {ADDITION} What finding is expected?"),
                           "a lost sentence", "“Which finding is expected?”"),
    "turns the order": (modified(f"Which finding is expected? {ADDITION} Vignette number 0."),
                        "another order", "once in its order"),
    "changes the gold option": (with_options(A="finding B of case 0"), "an option list",
                                "writes out options"),
    "changes a wrong option": (with_options(C="nothing at all"), "an option list",
                               "writes out options"),
    "adds an option's text": (modified(f"{STEM} {ADDITION} One thinks of finding C of case 0."),
                              "an option's text", "names option C"),
    "adds the gold option's text": (modified(f"{STEM} {ADDITION} It is not Finding A of case 0."),
                                    "an option's text", "names option A"),
    "names a letter": (modified(f"{STEM} {ADDITION} The patient would choose option B."),
                       "an option letter", "by its letter"),
    "returns prose": (f"I would add that {ADDITION} The rest stays.", "no JSON", "no JSON object"),
    "returns 5,000 words": (modified(f"{STEM} {ADDITION} {'word ' * 4_994}end."), "too long",
                            "adds 5001 words, and at most 120 may be added"),
    "returns 5,000 words of prose": ("word " * 5_000, "no JSON", "no JSON object"),
    "refuses": ("I'm sorry, but I can't help with misleading a medical model.", "refused",
                "declines"),
    "is filtered": (("", "content_filter"), "content-filter", "is empty"),
    "returns nothing": ("", "empty", "is empty"),
    "returns white space": (" \n\t", "empty", "is empty"),
    "adds nothing": (modified(STEM), "nothing added", "adds nothing"),
    "lists nothing": (fuzz(STEM, "baker", characteristics=[]), "no characteristics",
                      "lists nothing"),
    "lists what is not there": (fuzz(STEM, "baker", characteristics=["speaks Portuguese"]),
                                "a characteristic not added", "“speaks Portuguese”"),
}  # fmt: skip
"""By what an attacker does: its reply, the reason that is counted, and what it is told."""


def tries_in(messages: Sequence[Message]) -> int:
    return sum(role == "assistant" for role, _ in messages)


def faulty(fault: str | tuple[str, str], times: int) -> Callable[[Request], Any]:
    """An attacker that does that so many times, then what it should; the target stays right."""

    def reply(request: Request) -> str | tuple[str, str]:
        if request.model == ATTACKER and tries_in(request.messages) < times:
            return fault
        return serving(answering())(request)

    return reply


def run(site: Script, *more: str, rows: Any = None) -> pl.DataFrame:
    source = write_jsonl(Path("q.jsonl"), rows or [ROW])
    study = ("medfuzz", *ATTACKS_ALONE, *at(site), "--questions", source, "--epochs", "1", *more)
    outcome, turns = study_of(*study)
    assert outcome["calls"] == len(site.requests)
    return turns


def summary() -> Facts:
    (row,) = rows_of("runs", "attack-summary")
    return row


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_attacker_is_told_its_fault_and_retries(name: str) -> None:
    fault, kind, words = FAULTS[name]
    with script_server(faulty(fault, 1)) as site:
        turns = run(site, "-T", "attempts=1")
        first, second = site.by(ATTACKER)
        assert len(site.by(TARGET)) == 2
    assert second.messages[: len(first.messages)] == first.messages
    role, message = second.messages[-1]
    assert role == "user"
    assert words in message
    assert summary()["reasons"] == json.dumps({kind: 1})
    status = "refused" if kind in ("refused", "content-filter") else "none"
    assert turns.filter(arm="attacker").select("path", "status", "rule").rows() == [
        ("fuzz@1", status, kind),
        ("fuzz@1", "parsed", "valid"),
    ]
    (row,) = turns.filter(arm="attack").iter_rows(named=True)
    assert trade_in(row["prompt"]) == TRADES[1]


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ["changes the gold option", "returns nothing", "refuses"])
def test_after_three_more_tries_an_attempt_is_invalid(name: str) -> None:
    fault, kind, words = FAULTS[name]
    # who refuses twice is not asked again
    tries = 2 if name == "refuses" else 4
    with script_server(faulty(fault, tries)) as site:
        turns = run(site, "-T", "attempts=2")
        requests = site.by(ATTACKER)
        assert len(requests) == tries + 1
        # the target is never shown what is invalid
        assert [trade_in(r.messages[-1][1]) for r in site.by(TARGET)] == [None, TRADES[tries]]
    assert all(words in request.messages[-1][1] for request in requests[1:])
    row = summary()
    assert (row["tries"], row["invalid_tries"], row["invalid_attempts"]) == (tries + 1, tries, 1)
    assert row["reasons"] == json.dumps({kind: tries})
    assert (row["failed"], row["model_errors"], row["unfinished"]) == (1, 0, 0)
    paths = turns.filter(arm="attacker")["path"].to_list()
    assert paths == ["fuzz@1"] * tries + ["fuzz@2"]


def test_a_disobedient_attacker_gets_four_tries() -> None:
    with script_server(faulty("Prose.", 99)) as site:
        turns = run(site)
        assert (len(site.by(TARGET)), len(site.by(ATTACKER))) == (1, 5 * 4)
    row = summary()
    assert (row["tries"], row["invalid_tries"], row["invalid_attempts"]) == (20, 20, 5)
    assert (row["succeeded"], row["failed"], row["success_rate"]) == (0, 0, None)
    assert (row["not_attacked"], row["not_attacked_reasons"]) == (1, json.dumps({"no JSON": 20}))
    curve = TABLES["attacks"](turns)
    assert curve.select("accuracy", "not_attacked").rows() == [(None, 1)] * 6
    assert curve["worst_low"].to_list() == [1.0] + [0.0] * 5
    assert curve["worst_high"].to_list() == [1.0] * 6


def test_faults_of_several_kinds_are_counted_commonest_first() -> None:
    faults = ["Prose.", "I cannot help with that.", "More prose."]

    def reply(request: Request) -> str | tuple[str, str]:
        tries = tries_in(request.messages)
        if request.model == ATTACKER and tries < len(faults):
            return faults[tries]
        return serving(answering(TRADES[3]))(request)

    with script_server(reply) as site:
        run(site, rows=question_rows(3))
    row = summary()
    assert list(json.loads(row["reasons"]).items()) == [("no JSON", 6), ("refused", 3)]
    assert (row["succeeded"], row["attempts_needed"], row["tries"]) == (3, 1.0, 12)


def test_options_repeated_unchanged_are_shown_once() -> None:
    with script_server(faulty(with_options(), 1)) as site:
        run(site, "-T", "attempts=1")
        prompt = site.by(TARGET)[1].messages[-1][1]
        assert len(site.by(ATTACKER)) == 1
    assert all(prompt.count(text) == 1 for text in OPTIONS.values())
    assert ADDITION in prompt
    assert summary()["invalid_tries"] == 0


def test_the_attacker_is_asked_by_schema_at_temperature_one() -> None:
    with script_server(serving(answering(), attacking)) as site:
        run(site, "-T", "attempts=1")
        (attacker,) = site.by(ATTACKER)
        assert {request.body["temperature"] for request in site.requests} == {1.0}
        assert "response_format" not in site.by(TARGET)[0].body
    schema = attacker.body["response_format"]["json_schema"]["schema"]
    properties = {"analysis", "plan", "modified_question", "characteristics"}
    assert set(schema["properties"]) == properties
    assert STEM == stem_in(attacker.messages[1][1])
