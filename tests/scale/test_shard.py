"""What a shard is: a share of questions and of a budget."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.dialogue.budget import Budget
from holdfast.errors import InputError
from holdfast.questions.loading import load_questions
from holdfast.running.shard import Shard, slots
from tests.studies import question_rows, write_jsonl


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_shares_add_up_and_differ_by_at_most_one(total: int, of: int) -> None:
    shares = [shard.share(total) for shard in Shard.all(of)]
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_every_slot_is_held_by_one_shard(slot: int, of: int) -> None:
    assert sum(shard.holds(slot) for shard in Shard.all(of)) == 1


def test_shards_share_the_remaining_budget() -> None:
    whole = Budget(call_limit=10, cost_limit=3.0, calls=3, cost=1.0)
    first, second = (shard.budget(whole) for shard in Shard.all(2))
    assert (first.call_limit, second.call_limit) == (4, 3)
    assert (first.token_limit, first.cost_limit, second.cost_limit) == (None, 1.0, 1.0)
    assert (first.calls, first.cost) == (0, 0.0)


def test_questions_that_read_alike_share_a_slot(tmp_path: Path) -> None:
    rows = question_rows(4)
    rows[2] = {**rows[0], "id": "again"}
    questions = load_questions(write_jsonl(tmp_path / "q.jsonl", rows))
    assert list(slots([questions, questions]).values()) == [0, 1, 2]


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3", "1.5/2"])
def test_a_text_that_names_no_shard_is_refused(text: str) -> None:
    assert Shard.parse("2/8") == Shard(8, 2)
    assert str(Shard(8, 2)) == "2/8"
    with pytest.raises(InputError, match="Write K/N"):
        Shard.parse(text)
