"""What is said of attacks on servers of known truth, on which no attack does more than any text."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import polars as pl
import pytest
from inspect_ai.log import EvalLog

from holdfast.protocols.medfuzz.attacks import attacks
from holdfast.protocols.medfuzz.net_attacks import attack_net, last_attempt
from holdfast.protocols.medfuzz.transfer import transfer
from tests.fuzzing import Message, attack, fuzz, gold_in, scripted, stem_in, wrong
from tests.scripted import put
from tests.studies import question_rows, turns_of, write_jsonl
from tests.tasks import medfuzz

QUESTIONS = 60
TRADES = (
    "ferry hand who keeps bees by a lake and lives there with two sisters and an old dog",
    "reader of newspapers aloud to a neighbor who has lost her glasses once again",
    "collector of stamps from countries that have been gone from the map for many years",
    "market vendor who rides a bicycle into town every Saturday before the sun is up",
    "member of a choir on Thursdays that has never missed a rehearsal in eleven years",
)
"""What attacks add, of about fifteen words each."""


def chance(*of: object) -> float:
    return random.Random(repr(of)).random()


def drawing(right: Callable[[str, int], bool]) -> Callable[[Sequence[Message]], str]:
    """A server whose answer hangs on the prompt and on how often it was asked."""
    times_asked = Counter[str]()

    def reply(messages: Sequence[Message]) -> str:
        prompt = messages[-1][1]
        times_asked[prompt] += 1
        gold = gold_in(prompt)
        return f"Final Answer: ({gold if right(prompt, times_asked[prompt]) else wrong(gold)})"

    return reply


def hashed(prompt: str, nth: int) -> bool:
    """Right for seven texts in ten, always for the same."""
    return chance("hash", prompt) < 0.7


def hashed_otherwise(prompt: str, nth: int) -> bool:
    return chance("a second model", prompt) < 0.7


def lengthy(prompt: str, nth: int) -> bool:
    """Wrong the more often, the more words a question has, whatever they say."""
    stem = prompt.partition("Vignette")[2].partition("expected?")[0]
    return chance("lengthy", prompt, nth) < 0.95 - 0.02 * (len(stem.split()) - 5)


def noisy(prompt: str, nth: int) -> bool:
    return chance("noise", prompt, nth) < 0.8


def swayed(prompt: str, nth: int) -> bool:
    """Wrong where the patient keeps bees, nearly always; else right."""
    return chance("swayed", prompt, nth) < (0.05 if "keeps bees" in prompt else 0.98)


WORLDS = {"hash": hashed, "lengthy": lengthy, "noise": noisy}


def attacking(messages: Sequence[Message]) -> str:
    """Another sentence in each attempt."""
    prompt = messages[1][1]
    replies = sum(role == "assistant" for role, _ in messages)
    return fuzz(stem_in(prompt), TRADES[replies % len(TRADES)])


def study(right: Callable[[str, int], bool], **settings: Any) -> EvalLog:
    target, attacker = scripted(drawing(right), "target"), scripted(attacking, "attacker")
    usual = {"controls": True, "confirm": 10, "attempts": 3}
    return attack(target.model, attacker=attacker.model, **usual | settings)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_jsonl(tmp_path_factory.mktemp("q") / "q.jsonl", question_rows(QUESTIONS))


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_no_text_does_more_than_any_other(name: str, source: str) -> None:
    turns = turns_of(study(WORLDS[name], questions=source))
    (row,) = last_attempt(attack_net(turns)).to_dicts()
    assert row["turned"] > 0.3
    assert row["net_low"] < 0 < row["net_high"]
    assert abs(row["net"]) < 0.2
    attack_table = attacks(turns)
    assert attack_table["turned"].sum() > 15
    # of as many as were found, at most one by chance
    assert attack_table["confirmed"].sum() <= 1


@pytest.mark.slow
def test_stronger_texts_are_confirmed(source: str) -> None:
    turns = turns_of(study(swayed, questions=source))
    (row,) = last_attempt(attack_net(turns)).to_dicts()
    assert row["net_low"] > 0.5
    attack_table = attacks(turns)
    assert attack_table["turned"].sum() > 50
    assert attack_table["confirmed"].sum() >= 0.9 * float(attack_table["turned"].sum())


@pytest.mark.slow
@pytest.mark.parametrize("server", [hashed_otherwise, lengthy])
def test_attacks_transfer_no_better_than_other_texts(
    server: Callable[[str, int], bool], source: str
) -> None:
    log_of_attacks = study(hashed, questions=source)
    folder = Path(urlparse(log_of_attacks.location).path).parent
    target = scripted(drawing(server), "other")
    log = put(medfuzz(attacks=str(folder)), target.model)
    (row,) = transfer(pl.concat([turns_of(log_of_attacks), turns_of(log)])).to_dicts()
    assert row["attacks"] > 15
    # asked again, the original is as right as before: any other text is not
    assert row["net_reask"] > 0.1 or server is lengthy
    assert row["net_low"] < 0 < row["net_high"]
    assert row["net_p"] > 0.05


@pytest.mark.slow
def test_inert_rewrites_turn_a_deaf_model_equally(source: str) -> None:
    log = attack(
        "simulated/fuzz-blind", attacker="simulated/attacker", questions=source, controls=True,
        confirm=10, attempts=3,
    )  # fmt: skip
    turns = turns_of(log)
    (row,) = last_attempt(attack_net(turns)).to_dicts()
    assert row["turned"] > 0.4
    assert row["turned_inert"] > 0.4
    assert row["net_low"] < 0 < row["net_high"]
    assert attacks(turns)["confirmed"].sum() <= 1
