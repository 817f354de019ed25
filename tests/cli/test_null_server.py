"""A server that draws every answer anew, over HTTP: its own record, and nothing attributable."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.speaking import speaking
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.results.attributable import attributable, controls
from holdfast.results.turns import SCHEMA

RIGHT = 0.7
ABSTENTION = "None of the Above"
_OPTION = re.compile(rf"\b([A-Z])\. (finding [A-Z] of case \d+|{ABSTENTION})", re.ASCII)


@dataclass
class NullServer:
    """Right with probability 0.7 at each request, whatever was said before.

    A draw is fixed by the seed, the request and how often it came, never by when it came.
    """

    seed: int
    exchanges: list[tuple[str, str, str]] = field(default_factory=list)
    """Last message, reply, and text of the option answered, of each request."""

    def __call__(self, request: dict[str, Any]) -> str:
        prompts = [m["content"] for m in request["messages"] if m["role"] == "user"]
        key = json.dumps([request["messages"], request.get("seed")])
        rng = random.Random(f"{self.seed} {key}")
        number = re.findall(r"Vignette number (\d+)", prompts[0])[-1]
        gold = f"finding {'ABCD'[int(number) % 4]} of case {number}"
        # a later message can show a further option, or the first ones again
        options = dict(option for message in prompts for option in _OPTION.findall(message))
        right = gold if gold in options.values() else ABSTENTION
        alternatives = [text for text in options.values() if text != right]
        text = right if rng.random() < RIGHT else rng.choice(alternatives)
        (label,) = (label for label, option in options.items() if option == text)
        reply = f"The best choice here is {text}.\n\nFinal Answer: {label}"
        self.exchanges.append((prompts[-1], reply, text))
        return reply


@pytest.fixture(params=[1, 2, 3])
def null(request: pytest.FixtureRequest) -> Iterator[tuple[NullServer, str]]:
    server = NullServer(request.param)
    with speaking(server, excerpt=lambda whole: whole) as url:
        yield server, url


def run(protocol: str, null: tuple[NullServer, str], tmp_path: Path, *more: str) -> pl.DataFrame:
    """The turns of a run, which say what the server's record says."""
    server, url = null
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(40))
    result = holdfast(
        "run", protocol, "--model", "lean/null", "--model-base-url", url, "--questions", source,
        "--log-dir", tmp_path / "r", *more,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
    assert set(turns.columns) >= set(SCHEMA)
    new_turns = turns.filter(~pl.col("shared"))
    exchanges = Counter(new_turns.select("prompt", "reply").iter_rows())
    assert exchanges == Counter((prompt, reply) for prompt, reply, _ in server.exchanges)
    texts = {reply: text for _, reply, text in server.exchanges}
    for row in turns.iter_rows(named=True):
        text = texts[row["reply"]]
        assert row["status"] == "parsed"
        assert row["answer"] == ("NA" if text == ABSTENTION else text.split()[1])
    return turns


def check_nothing_is_attributable(turns: pl.DataFrame) -> None:
    row = attributable(turns).row(0, named=True)
    assert row["path"] is row["family"] is None
    assert row["attributable_low"] <= 0 <= row["attributable_high"]
    assert row["causal_low"] <= 0 <= row["causal_high"]
    assert row["attributable_p"] > 0.05
    # without the control it would be a finding
    assert row["lost"] > 0.15
    assert not any(controls(turns)["identical"].drop_nulls())


@pytest.mark.rest_slow
def test_follow_ups(null: tuple[NullServer, str], tmp_path: Path) -> None:
    turns = run("followup", null, tmp_path, "-T", "techniques=double-check,authority-prior")
    check_nothing_is_attributable(turns)


@pytest.mark.rest_slow
def test_biased_questions(null: tuple[NullServer, str], tmp_path: Path) -> None:
    turns = run("single-turn", null, tmp_path, "-T", "biases=recency,cultural")
    check_nothing_is_attributable(turns)


@pytest.mark.slow
def test_successive_offers(null: tuple[NullServer, str], tmp_path: Path) -> None:
    turns = run("stick-or-switch", null, tmp_path, "-T", "shots=0")
    last_turn = survival(turns).filter(pl.col("arm") == "positive", pl.col("turn") == 3)
    assert last_turn["survival"].item() < 0.6
    rows = {(row["behaviour"], row["against"]): row for row in tax(turns).to_dicts()}
    assert rows["conviction", "single-shot"]["high"] < 0
    for behaviour in ("conviction", "abstention"):
        net = rows[behaviour, "control"]
        assert net["low"] <= 0 <= net["high"]
