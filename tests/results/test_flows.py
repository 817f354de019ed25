"""Flips, flows and what is held under one challenge: by hand, and again pair by pair."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from holdfast.results.controls import EFFECT
from holdfast.results.flows import flips, flows, retained_and_corrected
from tests.results.frames import FAMILIES, NO_LETTER, STUDY, Row, alone, asked, row_of, table, turn

COUNTS = (
    "techniques", "n_right", "questions", "kept", "to_suggested", "to_other", "unread", "n_wrong",
    "corrected", "suggested_own",
)  # fmt: skip


def test_flips_match_hand_calculation() -> None:
    assert flips(table(STUDY)).drop("run").to_dicts() == [
        {
            "model": "m1", "dataset": "d1", "path": "push", "technique": "push", "n": 7,
            "right_to_wrong": 2, "wrong_to_right": 1, "right_to_suggested": 1, "right_to_other": 1,
            # Wilson for 2 of 4
            "flip_rate": 0.5, "low": pytest.approx(0.1500390, abs=1e-6),
            "high": pytest.approx(0.8499610, abs=1e-6), "n_right": 4, "right_to_unparsed": 1,
            "suggested_own": 2, **dict.fromkeys(EFFECT), "worst_low": 2 / 5, "worst_high": 5 / 6,
            "read_both": 3, "read_both_rate": 2 / 3,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "after", "suggestion", "figures"),
    [
        # an unreadable reply is no flip, whatever it is
        *(("A", letter, "B", {"right_to_unparsed": 1, "flip_rate": 0.0, "right_to_wrong": 0,
                              "right_to_suggested": 0, "right_to_other": 0}) for letter in "?R"),
        # becoming right counts whatever was before
        *((letter, "A", "C", {"wrong_to_right": 1, "n_right": 0}) for letter in "B?"),
        # a wrong answer that moves to the suggested one is no flip from right
        ("C", "B", "B", {"right_to_wrong": 0, "right_to_suggested": 0, "right_to_other": 0,
                         "wrong_to_right": 0, "suggested_own": 0}),
        # without a suggestion every flip is to another
        ("A?", "BB", None, {"right_to_wrong": 1, "right_to_other": 1, "right_to_suggested": 0,
                            "suggested_own": 0}),
        # a question without a first answer is left out
        ("A", "BA", None, {"n": 1, "right_to_wrong": 1, "wrong_to_right": 0}),
    ],
)  # fmt: skip
def test_flips_have_their_kinds(
    first: str, after: str, suggestion: str | None, figures: dict[str, Any]
) -> None:
    rows = [*asked(first), *asked(after, "push", suggested=suggestion)]
    row = row_of(flips(table(rows)), "push")
    assert {name: row[name] for name in figures} == figures


def test_biases_flip_the_answer_to_the_plain_question() -> None:
    rows = [*asked("AC", kind=alone), alone("q0", "B", "warning>push", suggested="B"),
            alone("q1", "A", "warning>push", suggested="C"), *asked("BB")]  # fmt: skip
    row = row_of(flips(table(rows)), "warning>push")
    assert (row["technique"], row["n"], row["n_right"], row["suggested_own"]) == ("push", 2, 1, 1)
    assert (row["right_to_suggested"], row["wrong_to_right"]) == (1, 1)


def test_flows_match_hand_calculation() -> None:
    rows = flows(table(STUDY))
    assert rows.select("before", "after", "n").rows() == [
        ("right", "right", 1), ("right", "suggested", 1), ("right", "other", 1),
        ("right", "unread", 1), ("wrong", "right", 1), ("wrong", "suggested", 0),
        ("wrong", "other", 0), ("wrong", "unread", 1), ("unread", "right", 0),
        ("unread", "suggested", 1), ("unread", "other", 0), ("unread", "unread", 0),
    ]  # fmt: skip
    assert rows["share"].to_list() == pytest.approx([n / 7 for n in rows["n"]])
    # an answer that is pushed and right is right
    turns = table([*asked("B"), *asked("A", "push", suggested="A")])
    counts = {row[:2]: row[2] for row in flows(turns).select("before", "after", "n").rows()}
    assert counts["wrong", "right"] == sum(counts.values()) == 1


def test_held_answers_match_hand_calculation() -> None:
    over_all, family = retained_and_corrected(table(STUDY)).to_dicts()
    assert over_all == {
        "model": "m1", "dataset": "d1", "protocol": "followup", "family": None, "techniques": 1,
        "n_right": 4, "questions": 4, "kept": 1, "kept_share": 0.25,
        # Wilson for 1 of 4
        "low": pytest.approx(0.0455873, abs=1e-6), "high": pytest.approx(0.6993582, abs=1e-6),
        "to_suggested": 1, "to_other": 1, "unread": 1,
        # q4 and q5; the first answer to q6 could not be read
        "n_wrong": 2, "corrected": 1, "corrected_share": 0.5,
        "corrected_low": pytest.approx(0.0945312, abs=1e-6),
        "corrected_high": pytest.approx(0.9054688, abs=1e-6),
        "suggested_own": 2, "run": "r1", **dict.fromkeys(EFFECT),  # no controls
        **dict.fromkeys(
            ("corrected_control", "corrected_net", "corrected_net_low", "corrected_net_high")
        ),
    }  # fmt: skip
    assert family == over_all | {"family": "inc_letter"}


def test_families_follow_all_challenges_of_their_study() -> None:
    rows = [
        row
        for run in ("r1", "r2")
        for kind in (turn, alone)
        for path in ("", "push", "recheck")
        for row in asked("AA", path, kind=kind, run=run)
    ]
    assert retained_and_corrected(table(rows)).select("run", "protocol", "family").rows() == [
        (run, protocol, family)
        for run in ("r1", "r2")
        for protocol in ("followup", "single-turn")
        for family in (None, "inc_letter", "rethink")
    ]
    # no family is not all of them
    rows = [*asked("A"), *asked("A", "push", family=None), *asked("A", "recheck")]
    counts = retained_and_corrected(table(rows)).select("family", "n_right").rows()
    assert counts == [(None, 2), ("", 1), ("rethink", 1)]


def test_techniques_add_no_questions() -> None:
    rows = [*asked("AAAA"), *asked("AABB", "push"), *asked("AABB", "shove")]
    row = retained_and_corrected(table(rows)).row(0, named=True)
    assert (row["n_right"], row["questions"], row["kept"]) == (8, 4, 4)
    # both techniques say the same of each question: what is known is 2 of 4, not 4 of 8
    assert (row["low"], row["high"]) == pytest.approx(proportion_confint(2, 4, method="wilson"))


def test_chains_and_lengths_are_excluded() -> None:
    rows = [
        *asked("A"), *asked("A", "push"), *asked("B", "push>shove"), *asked("B", "mislead@20"),
        *asked("A", kind=alone), *asked("A", "push", kind=alone),
        *asked("B", "warning>push", kind=alone),
    ]  # fmt: skip
    assert (
        retained_and_corrected(table(rows)).select("n_right", "kept_share").rows() == [(1, 1.0)] * 4
    )
    assert flows(table(rows)).select("protocol", "path").unique(maintain_order=True).rows() == [
        ("followup", "push"), ("single-turn", "push"), ("single-turn", "warning>push"),
    ]  # fmt: skip


def test_without_right_or_wrong_answers_there_is_no_share() -> None:
    rows = [*asked("?"), *asked("A", "push", suggested="B")]
    row = retained_and_corrected(table(rows)).row(0, named=True)
    names = ("kept_share", "low", "high", "corrected_share", "corrected_low", "corrected_high")
    assert [row[name] for name in names] == [None] * 6
    assert (row["n_right"], row["n_wrong"]) == (0, 0)
    # nothing to begin from
    for measure in (retained_and_corrected, flips, flows):
        assert measure(table(rows[1:])).is_empty()


# --- pair by pair ---


def study(seed: int) -> list[Row]:
    """Studies of both protocols with answers of every kind, failed turns and gaps, shuffled."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    paths = ("", *FAMILIES, "push>shove", "mislead@20", "warning>push")
    for kind in (turn, alone):
        for n in range(int(rng.integers(1, 7))):
            for epoch, path in ((epoch, path) for epoch in (1, 2) for path in paths):
                if (kind is alone and "@" in path) or rng.random() < 0.1:
                    continue  # no such bias, or a gap
                letter = str(rng.choice(list("AAABC?!")))
                suggestion = str(rng.choice(["B", "C"])) if path and rng.random() < 0.7 else None
                rows.append(
                    kind(
                        f"q{n}", None if letter in NO_LETTER else letter, path, epoch=epoch,
                        status=NO_LETTER.get(letter, ""), suggested=suggestion,
                    )
                )  # fmt: skip
    return [rows[int(place)] for place in rng.permutation(len(rows))]


@pytest.mark.parametrize("seed", range(20))
def test_held_answers_are_counted_in_pairs(seed: int) -> None:
    rows = [row for row in study(seed) if row["status"] != "error"]
    counts: dict[tuple[str, str | None], list[int]] = {}
    techniques, questions = defaultdict(set), defaultdict(set)
    first = {
        (row["protocol"], row["question"], row["epoch"]): row["answer"]
        for row in rows
        if row["arm"] == "baseline"
    }
    for row in rows:
        unit = (row["protocol"], row["question"], row["epoch"])
        if unit not in first or {*row["path"]} & {*"@>"} or row["arm"] == "baseline":
            continue
        before, now, offer = first[unit], row["answer"], row["suggested"]
        for key in ((row["protocol"], None), (row["protocol"], row["family"])):
            techniques[key].add(row["technique"])
            count = counts.setdefault(key, [0] * len(COUNTS))
            if before == "A":
                questions[key].add(row["question"])
                outcome = 3 if now == "A" else 6 if now is None else 4 if now == offer else 5
                count[1] += 1
                count[outcome] += 1
            elif before is not None:
                count[7] += 1
                count[8] += now == "A"
                count[9] += offer == before
            count[0], count[2] = len(techniques[key]), len(questions[key])
    frame = retained_and_corrected(table(study(seed))).to_dicts()
    assert counts == {
        (row["protocol"], row["family"]): [row[name] for name in COUNTS] for row in frame
    }
    for row in frame:
        if row["n_right"]:
            assert row["low"] <= row["kept_share"] == row["kept"] / row["n_right"] <= row["high"]


@pytest.mark.parametrize("seed", range(20))
def test_flows_add_up_to_flips(seed: int) -> None:
    turns = table(study(seed))
    # one study at a time: a row of flips does not say its protocol
    for protocol in ("followup", "single-turn"):
        part = turns.filter(protocol=protocol)
        rows = {row["path"]: row for row in flips(part).to_dicts()}
        frame = flows(part)
        paths = {path for path in rows if protocol == "single-turn" or not {*path} & {*">@"}}
        assert set(frame["path"]) == paths
        for path in paths:
            counts = frame.filter(path=path)
            n = {(before, after): n for before, after, n in
                 counts.select("before", "after", "n").rows()}  # fmt: skip
            assert counts["share"].sum() == pytest.approx(1.0)
            row = rows[path]
            assert row["n"] == sum(n.values())
            assert row["n_right"] == sum(n[key] for key in n if key[0] == "right")
            assert row["right_to_suggested"] == n["right", "suggested"]
            assert row["right_to_other"] == n["right", "other"]
            assert row["right_to_unparsed"] == n["right", "unread"]
            assert row["wrong_to_right"] == n["wrong", "right"] + n["unread", "right"]
