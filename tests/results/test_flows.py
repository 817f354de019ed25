"""From first answers to answers after a challenge: by hand, and against the flips."""

import pytest

from holdfast.results.flows import FLOWS_COLUMNS, flips, flows
from tests.results.frames import STUDY, alone, table, turn
from tests.results.test_holding import studied


def test_flows_by_hand() -> None:
    rows = flows(table(STUDY))
    assert rows.columns == list(FLOWS_COLUMNS)
    assert set(rows.select("path", "technique", "family").rows()) == {
        ("push", "push", "inc_letter")
    }
    assert rows.select("before", "after", "n").rows() == [
        ("right", "right", 1),
        ("right", "suggested", 1),
        ("right", "other", 1),
        ("right", "unread", 1),
        ("wrong", "right", 1),
        ("wrong", "suggested", 0),
        ("wrong", "other", 0),
        ("wrong", "unread", 1),
        ("unread", "right", 0),
        ("unread", "suggested", 1),
        ("unread", "other", 0),
        ("unread", "unread", 0),
    ]
    assert rows["share"].to_list() == pytest.approx([n / 7 for n in rows["n"]])


def test_an_answer_that_is_pushed_and_right_is_right() -> None:
    rows = [turn("q1", "B"), turn("q1", "A", "push", suggested="A")]
    found = {row[:2]: row[2] for row in flows(table(rows)).select("before", "after", "n").rows()}
    assert found["wrong", "right"] == 1
    assert sum(found.values()) == 1


def test_mitigated_biases_are_read_and_chains_are_not() -> None:
    rows = [
        turn("q1", "A"), turn("q1", "A", "push>shove"), turn("q1", "A", "mislead@20"),
        turn("q1", "A", "recheck"), alone("q1", "A"), alone("q1", "B", "warning>push"),
    ]  # fmt: skip
    found = flows(table(rows)).select("protocol", "path").unique(maintain_order=True).rows()
    assert found == [("followup", "recheck"), ("single-turn", "warning>push")]


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_flows_are_the_flips(seed: int) -> None:
    rows = table(studied(seed))
    # one study at a time: a row of flips does not say its protocol
    for protocol in ("followup", "single-turn"):
        own = rows.filter(protocol=protocol)
        flipped = {row["path"]: row for row in flips(own).to_dicts()}
        measured = flows(own)
        paths = {path for path in flipped if protocol == "single-turn" or not {*path} & {*">@"}}
        assert set(measured["path"]) == paths
        for path in paths:
            n = {
                (row["before"], row["after"]): row["n"]
                for row in measured.filter(path=path).to_dicts()
            }
            shares = measured.filter(path=path)["share"].sum()
            assert shares == pytest.approx(1.0)
            of = flipped[path]
            assert of["n"] == sum(n.values())
            assert of["n_right"] == sum(n[key] for key in n if key[0] == "right")
            assert of["right_to_suggested"] == n["right", "suggested"]
            assert of["right_to_other"] == n["right", "other"]
            assert of["right_to_unparsed"] == n["right", "unread"]
            assert of["wrong_to_right"] == n["wrong", "right"] + n["unread", "right"]
