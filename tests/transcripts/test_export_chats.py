"""Conversations as chats, and the table rebuilt from them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.results.frames import Row, turn
from tests.results.offering import drawn, flexible, held, single
from tests.studies import holdfast
from tests.transcripts.export_frames import lines, spoken, words

from holdfast.results.turns import SCHEMA
from holdfast.transcripts.export import export

TEXTS = ("prompt", "reply")
HOSTILE = [
    "two\nlines", "a\u2028b\u2029c\x85d\x0be", '"}], "x": {{prompt}} %s \\', "=HYPERLINK(1)", "",
    "\x00\x1b[31m\ufeff", "e\u0301 \U0001f9e0", "<script>alert(1)</script>", "x" * 1_000_000,
]  # fmt: skip


def rebuilt(chats: Sequence[Any]) -> pl.DataFrame:
    """The table of an export, from nothing but the format."""
    rows: dict[int, Row] = {}
    for chat in chats:
        assert chat["holdfast"]["version"] == 1
        assert len(chat["messages"]) == 2 * len(chat["holdfast"]["rows"])
        for n, row in enumerate(chat["holdfast"]["rows"]):
            user, model = chat["messages"][2 * n : 2 * n + 2]
            assert (user["role"], model["role"]) == ("user", "assistant")
            floats = {
                k: float(v) for k, v in row.items()
                if isinstance(v, str) and SCHEMA.get(k) == pl.Float64
            }  # fmt: skip
            whole = row | floats | {"prompt": user["content"], "reply": model["content"]}
            assert rows.setdefault(row["row"], whole) | {"p_gold": 0} == whole | {"p_gold": 0}
    ordered_rows = [rows[row] for row in range(len(rows))]
    return pl.DataFrame(ordered_rows, schema=SCHEMA, orient="row")


def numbers(rows: Sequence[Row]) -> list[list[int]]:
    """Row numbers of the conversations of an export."""
    chats = lines(export(spoken(rows), "openai-chat"))
    return [[row["row"] for row in chat["holdfast"]["rows"]] for chat in chats]


def test_every_conversation_has_its_first_answer() -> None:
    turns = spoken(
        [
            turn("q1", "A"),
            turn("q1", "B", "push", suggested="B"),
            turn("q1", "A", "recheck"),
            turn("q1", "C", "push>mislead"),
            turn("q2", "A"),
        ]
    )
    chats = lines(export(turns, "openai-chat"))
    # the push alone is the beginning of the chain, and no conversation of its own
    rows = [[row["row"] for row in chat["holdfast"]["rows"]] for chat in chats]
    assert rows == [[0, 2], [0, 1, 3], [4]]
    assert words(chats[1]["messages"]) == [
        ("user", "ask q1"),
        ("assistant", "say q1 0"),
        ("user", "ask q1 push B"),
        ("assistant", "say q1 1"),
        ("user", "ask q1 push>mislead"),
        ("assistant", "say q1 3"),
    ]
    row = chats[1]["holdfast"]["rows"][1]
    assert list(row) == ["row", *(name for name in SCHEMA if name not in TEXTS)]
    assert (row["path"], row["answer"], row["suggested"], row["cue"]) == ("push", "B", "B", None)


KEYS: list[Row] = [{}, {"model": "m2"}, {"run": "r2"}, {"epoch": 2}, {"dataset": "d2"}]
FUZZ: Row = {"protocol": "medfuzz", "turn": 0}
DEBATE: Row = {"path": "debate", "arm": "followup", "protocol": "imported"}


@pytest.mark.parametrize(
    ("rows", "conversations"),
    [
        # models, runs and epochs do not mix
        ([*(turn("q1", "A", **key) for key in KEYS),
          *(turn("q1", "B", "push", **key) for key in reversed(KEYS))],
         [[4, 5], [3, 6], [2, 7], [1, 8], [0, 9]]),
        # arms of stick-or-switch are apart
        ([*held("q1", "AA"), *held("q1", "NC", "negative"), flexible("q1", "A"),
          single("q1", "A")],
         [[0, 1], [2, 3], [2, 4], [5]]),
        # attempts of an attacker are one conversation, attacks are apart
        ([turn("q1", "A", **FUZZ),
          turn("q1", None, "fuzz@1", **FUZZ | {"arm": "attacker"}),
          turn("q1", None, "fuzz@1", **FUZZ | {"arm": "attacker", "turn": 1}),
          turn("q1", "A", "fuzz@1", **FUZZ | {"arm": "attack"}),
          turn("q1", None, "fuzz@2", **FUZZ | {"arm": "attacker", "turn": 2}),
          turn("q1", "B", "fuzz@2", **FUZZ | {"arm": "attack"})],
         [[0], [3], [1, 2, 4], [5]]),
        # a turn without its beginning
        ([turn("q1", "A"), turn("q1", "B", "push>mislead"), turn("q2", "A", "push")],
         [[0], [1], [2]]),
        # turns with one path
        ([turn("q1", "A", protocol="imported"),
          *(turn("q1", "A") | DEBATE | {"turn": n} for n in (1, 2, 3))],
         [[0, 1, 2, 3]]),
    ],
    ids=["keys", "arms", "attacks", "gap", "one-path"],
)  # fmt: skip
def test_a_table_becomes_conversations(rows: list[Row], conversations: list[list[int]]) -> None:
    assert numbers(rows) == conversations


def test_hostile_text_stays_text_on_its_line() -> None:
    rows = [turn("q1", "A", prompt=HOSTILE[-2], reply=HOSTILE[-1])]
    rows += [
        turn(text or "empty", "B", "push", epoch=2, prompt=text, reply=text[::-1])
        for text in HOSTILE
    ]
    turns = spoken(rows)
    chats = lines(export(turns, "openai-chat"))
    assert [chat["messages"][-2]["content"] for chat in chats] == turns["prompt"].to_list()
    assert_frame_equal(rebuilt(chats), turns)


def test_non_finite_numbers_and_nulls_are_restored() -> None:
    beliefs = [float("nan"), float("inf"), float("-inf"), -0.0, 1e-300, 0.1 + 0.2, None]
    rows = [
        turn(f"q{n}", None if n % 2 else "A", p_gold=p, cost=None, latency=p, cue=None, seed=n - 3)
        for n, p in enumerate(beliefs)
    ]
    turns = spoken(rows).with_columns(reply=pl.when(pl.col("epoch") > 0).then("prompt"))
    turns = turns.with_columns(prompt=pl.when(pl.col("question") != "q2").then("prompt"))
    assert_frame_equal(rebuilt(lines(export(turns, "openai-chat"))), turns, abs_tol=0, rel_tol=0)


@pytest.mark.parametrize("seed", range(4))
def test_any_table_is_rebuilt(seed: int) -> None:
    turns = spoken(drawn(seed))
    outcome = export(turns, "openai-chat")
    assert outcome.left_out == {}
    assert_frame_equal(rebuilt(lines(outcome)), turns)


def test_a_limit_counts_the_omitted_conversations() -> None:
    turns = spoken([turn(q, "A", path) for q in ("q1", "q2") for path in ("", "push", "recheck")])
    outcome = export(turns, "openai-chat", 3)
    assert len(lines(outcome)) == 3
    assert outcome.left_out == {"beyond the limit": 1}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every protocol, two models, chains, two epochs."""
    folder = tmp_path_factory.mktemp("study")
    run = holdfast(
        "run", "followup", "single-turn", "stick-or-switch", "medfuzz",
        "--model", "simulated/sycophant", "--model", "simulated/claude-sonnet-4",
        "--model-role", "attacker=simulated/attacker", "--epochs", "2", "--limit", "4",
        "-T", "chains=authority-prior>rag-style", "-T", "biases=recency",
        "-T", "beliefs=true", "-T", "attempts=2", "--log-dir", folder / "runs",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return folder / "runs"


@pytest.mark.slow
def test_a_reimported_export_is_the_same_table(study: Path, tmp_path: Path) -> None:
    chats, copy = tmp_path / "chats.jsonl", tmp_path / "copy.parquet"
    assert holdfast("export", study, "--format", "openai-chat", "-o", chats).returncode == 0
    result = holdfast("import", chats, "-o", copy)
    assert result.returncode == 0, result.stderr
    turns = pl.read_parquet(study / "turns.parquet")
    assert turns["protocol"].n_unique() == 4
    assert_frame_equal(pl.read_parquet(copy), turns)
    followup = turns.filter(pl.col("protocol") == "followup", pl.col("path") != "")
    chains = followup["path"].str.contains(">").sum()
    assert 0 < chains < followup.height
    whole = [json.loads(line) for line in chats.read_text("ascii").splitlines()]
    assert all(
        [row["turn"] for row in chat["holdfast"]["rows"]] == list(range(len(chat["messages"]) // 2))
        for chat in whole
    )
