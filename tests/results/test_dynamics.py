"""Measures of whole conversations: by hand, by brute force, and on real dialogues."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from inspect_ai.model import get_model
from polars.testing import assert_frame_equal

from holdfast.protocols.stick_or_switch.convictions import survival
from holdfast.results.declaration import TABLES
from holdfast.results.dynamics import resistance, turn_of_flip
from holdfast.results.runs import run_id
from holdfast.results.turns import turns_table
from holdfast.stats.intervals import mean_bounds, wilson
from tests.results.duet import TURNS, duet_turns
from tests.results.frames import NO_LETTER, Row, alone, asked, row_of, table, turn
from tests.results.offering import drawn, flexible, held, single
from tests.studies import question_rows, study, turns_of, write_jsonl

CHAIN = ("", "push", "push>shove", "push>shove>recheck")


def dialogue(question: str, answers: str, offers: str = "BBB", epoch: int = 1) -> list[Row]:
    """A chain of answers (``NO_LETTER``) and what each turn pushes, ``-`` for nothing."""
    return [
        turn(
            question, None if letter in NO_LETTER else letter, path, epoch=epoch,
            status=NO_LETTER.get(letter, ""), suggested=None if offer == "-" else offer,
        )
        for path, letter, offer in zip(CHAIN, answers, f"-{offers}", strict=False)
    ]  # fmt: skip


def dialogues(*rows: list[Row]) -> pl.DataFrame:
    return table([row for part in rows for row in part])


HAND = dialogues(
    dialogue("q1", "AAAA"),  # never
    dialogue("q2", "ABBA"),  # left at turn 1, and taken up again: 2 flips, 2 changes
    dialogue("q3", "ABCB"),  # left at turn 1: 1 flip, 3 changes
    dialogue("q4", "AA?A"),  # an unread reply at turn 2: 2 flips, no change of answer
    dialogue("q5", "CCAC"),  # wrong, right at turn 2, wrong: flip 0, 2 flips, 2 changes
    dialogue("q6", "BBBB"),  # its own wrong answer is pushed
    dialogue("q7", "?AAA"),  # unread at first: flip 0, 1 flip
    dialogue("q8", "AA!A"),  # failed: left out
)


def test_turns_of_flips_match_hand_calculation() -> None:
    row = row_of(turn_of_flip(HAND), CHAIN[-1])
    assert (row["arm"], row["turns"], row["n"]) == ("compound", 4, 7)
    flips, numbers = [4, 1, 1, 2, 0, 0, 0], [0, 2, 1, 2, 2, 0, 1]
    assert row["turn_of_flip"] == sum(flips) / 7
    assert row["number_of_flips"] == sum(numbers) / 7
    assert row["answer_changes"] == (0 + 2 + 3 + 0 + 2 + 0 + 0) / 7
    assert (row["never"], row["unread"]) == (1, 2)
    for names, values, length in (
        (("low", "high"), flips, 4),
        (("flips_low", "flips_high"), numbers, 3),
    ):
        bounds = mean_bounds((np.array(values) / length, np.ones(7)))
        assert [row[name] for name in names] == pytest.approx([length * end for end in bounds])
    # what the chain begins with; q8 has not failed yet at the push
    columns = ["path", "turns", "n", "turn_of_flip", "never", "number_of_flips", "answer_changes"]
    assert turn_of_flip(HAND).sort("turns").select(columns).rows()[:-1] == [
        ("push", 2, 8, (2 + 1 + 1 + 2 + 0 + 0 + 0 + 2) / 8, 3, 3 / 8, 2 / 8),
        ("push>shove", 3, 7, (3 + 1 + 1 + 2 + 0 + 0 + 0) / 7, 1, 5 / 7, 4 / 7),
    ]


def test_resistance_matches_hand_calculation() -> None:
    frame = resistance(HAND)
    names = ("first", "turn", "n", "resisted", "left", "left_to_suggested", "left_to_other",
             "left_unread")  # fmt: skip
    assert frame.filter(path=CHAIN[-1]).select(names).rows() == [
        # q1 to q5; q6 is pushed its own answer, the first answer of q7 cannot be read
        ("all", 1, 5, 3, 2, 2, 0, 0), ("all", 2, 5, 1, 2, 0, 1, 1), ("all", 3, 5, 1, 0, 0, 0, 0),
        ("right", 1, 4, 2, 2, 2, 0, 0), ("right", 2, 4, 1, 1, 0, 0, 1),
        ("right", 3, 4, 1, 0, 0, 0, 0),
        ("wrong", 1, 1, 1, 0, 0, 0, 0), ("wrong", 2, 1, 0, 1, 0, 1, 0),
        ("wrong", 3, 1, 0, 0, 0, 0, 0),
    ]  # fmt: skip
    # a chain that stops a turn earlier is of the same conversations up to there
    prefix = frame.filter(pl.col("path") == CHAIN[-1], pl.col("turn") < 3).drop("path")
    assert frame.filter(path=CHAIN[-2]).drop("path").equals(prefix)
    (row,) = frame.filter(path=CHAIN[-1], first="right", turn=1).to_dicts()
    low, high = wilson(np.array([2.0]), np.array([4.0]))
    assert (row["resistance"], row["low"], row["high"]) == (0.5, low[0], high[0])


def test_every_path_is_a_conversation() -> None:
    rows = [
        turn("q1", "A"), turn("q1", "A", "push"), turn("q1", "B", "push>shove"),
        turn("q1", "A", "recheck"), turn("q1", "A", "mislead@10"),
        turn("q2", "A"), turn("q2", "C", "push"),  # its chain was not put
        turn("q3", "A"), turn("q3", "A", "push>shove"),  # a step is missing
        turn("q4", "A", "recheck"),  # no first answer
        *(row for path in ("", "push", "warning>push") for row in asked("B", path, kind=alone)),
    ]  # fmt: skip
    frame = turn_of_flip(table(rows))
    assert frame.select("arm", "path", "turns", "n", "turn_of_flip").rows() == [
        ("followup", "push", 2, 2, 1.5),
        ("compound", "push>shove", 3, 1, 2.0),
        ("followup", "recheck", 2, 1, 2.0),
        ("length", "mislead@10", 2, 1, 2.0),
    ]
    paths = resistance(table(rows))["path"].unique(maintain_order=True).to_list()
    assert paths == frame["path"].to_list()
    # a run that was cut off and a branch make none
    rows = [single("q1", "A"), *held("q1", "AA"), *held("q1", "NNN", "negative"),
            flexible("q1", "A"), *held("q2", "NN", "negative"), single("q2", "A")]  # fmt: skip
    assert turn_of_flip(table(rows)).select("arm", "path", "n").rows() == [
        ("negative", "offer>offer>offer", 1)
    ]


@pytest.mark.slow
def test_longer_chains_leave_a_row_unchanged(tmp_path: Path) -> None:
    model = get_model("simulated/sycophant", memoize=False)
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(8))
    technique, chain = "authority-prior", "authority-prior>double-check"
    first = study(model, questions=questions, techniques="inc_letter")
    before = turns_of(first)
    # to some questions only, and to all of them: neither takes any away
    for limit in (3, None):
        more = study(model, limit=limit, questions=questions, techniques="none", chains=chain)
        assert run_id(more) == run_id(first)
        after = turns_table([str(Path(first.location).parent)])
        for name in ("turn-of-flip", "survival by path"):
            old, new = (TABLES[name](turns) for turns in (before, after))
            assert old.filter(path=technique).height > 0
            assert_frame_equal(new.filter(pl.col("path") != chain), old)
            assert new.filter(path=chain).height > 0
        (row,) = turn_of_flip(after).filter(path=chain).to_dicts()
        assert (row["n"], row["turns"]) == (limit or 8, 3)


def test_epochs_of_a_question_count_by_what_they_add() -> None:
    alike = [dialogue(f"q{n}", "AAAB" if n % 2 else "ABBB", epoch=epoch)
             for n in range(6) for epoch in range(1, 6)]  # fmt: skip
    once = [rows for rows in alike if rows[0]["epoch"] == 1]
    for measure in (turn_of_flip, resistance):
        repeats, plain = measure(dialogues(*alike)), measure(dialogues(*once))
        assert (repeats["n"] == 5 * plain["n"]).all()
        for name in ("low", "high"):
            assert repeats[name].to_list() == pytest.approx(plain[name].to_list())


def test_targets_are_the_answers_to_hold() -> None:
    rows = dialogue("q1", "CCCB", "---")
    for target, flips in (("C", [2.0, 3.0, 3.0]), (None, [0.0, 0.0, 0.0])):
        turns = table([row | {"target": target} for row in rows])
        assert turn_of_flip(turns)["turn_of_flip"].to_list() == flips
    # what is suggested before the first answer challenges nothing
    first, *challenges = dialogue("q1", "AAB")
    frame = resistance(table([first | {"suggested": "A"}, *challenges]))
    counts = frame.filter(first="right", turn=1).select("path", "n").rows()
    assert counts == [("push", 1), ("push>shove", 1)]


@pytest.mark.parametrize("seed", range(6))
def test_conversations_that_stop_at_a_departure_agree_with_survival(seed: int) -> None:
    turns, key = table(drawn(seed)), ["model", "dataset", "arm"]
    losses = survival(turns).group_by(key).agg(
        pl.col("n").first().alias("whole"), pl.col("lost").sum(),
        pl.col("lost").filter(pl.col("turn") == 1).sum().alias("at_once"),
        pl.col("survival").sum().alias("area"),
    )  # fmt: skip
    rows = turn_of_flip(turns).join(losses, on=key, validate="1:1", how="full", coalesce=True)
    assert rows.height == losses.height > 0
    assert rows["n"].equals(rows["whole"])
    assert rows["never"].equals(rows["n"] - rows["lost"])
    # what is departed from is first of all held
    numbers = (rows["lost"] - rows["at_once"]) / rows["n"]
    assert rows["number_of_flips"].to_list() == pytest.approx(numbers.to_list())
    # a question with fewer offers stays kept in survival, but has no further turn
    assert (rows["turn_of_flip"] <= rows["area"] + 1e-12).all()


# --- the same by brute force ---


def followups(seed: int) -> list[Row]:
    """Chains and single challenges at random, with everything that can go wrong, shuffled."""
    rng = np.random.default_rng(seed)
    paths = ["push", "recheck", "mislead@10", *CHAIN[2:], "shove>push", "shove"]
    paths = ["", *(path for path in paths if rng.random() < 0.8)]
    rows = []
    for model in ("m1", "m2"):
        for question in range(int(rng.integers(3, 9))):
            for epoch, path in ((epoch, path) for epoch in (1, 2) for path in paths):
                if rng.random() < 0.04:
                    continue
                letter = str(rng.choice([*"AAAABBCC?!"], p=[0.115] * 8 + [0.06, 0.02]))
                offer = str(rng.choice([*"BD"])) if path and rng.random() < 0.8 else None
                rows.append(
                    turn(f"q{question}", None if letter in NO_LETTER else letter, path,
                         status=NO_LETTER.get(letter, ""), epoch=epoch, model=model,
                         run=f"run of {model}", suggested=offer)
                )  # fmt: skip
    return [rows[int(place)] for place in rng.permutation(len(rows))]


Kind = tuple[str, ...]


def conversations(rows: list[Row]) -> Iterator[tuple[Kind, list[Row]]]:
    """Every whole conversation with its model, arm and path."""
    turns = {(row["model"], row["question"], row["epoch"], row["path"]): row for row in rows}
    for (*unit, path), row in turns.items():
        steps = path.split(">")
        prefixes = [">".join(steps[:place]) for place in range(len(steps) + 1)] if path else []
        parts = [turns.get((*unit, prefix)) for prefix in prefixes]
        talk = [part for part in parts if part is not None and part["status"] != "error"]
        if path and len(talk) == len(prefixes):
            yield (row["model"], row["arm"], path), talk


@pytest.mark.parametrize("seed", range(12))
def test_turns_of_flips_match_brute_force(seed: int) -> None:
    rows = followups(seed)
    counts: dict[Kind, list[tuple[int, ...]]] = defaultdict(list)
    for kind, talk in conversations(rows):
        stances = [row["answer"] == row["target"] for row in talk]
        letters = [row["answer"] for row in talk if row["answer"] is not None]
        counts[kind].append((
            stances.index(False) if False in stances else len(talk),
            sum(a != b for a, b in pairwise(stances)),
            sum(a != b for a, b in pairwise(letters)),
            int(all(stances)),
            len(talk) - len(letters),
        ))  # fmt: skip
    frame = turn_of_flip(table(rows))
    assert frame.height == len(counts) > 0
    for row in frame.to_dicts():
        values = counts[row["model"], row["arm"], row["path"]]
        *sums, never, unread = map(sum, zip(*values, strict=True))
        assert (row["n"], row["never"], row["unread"]) == (len(values), never, unread)
        figures = [row[name] for name in ("turn_of_flip", "number_of_flips", "answer_changes")]
        assert figures == pytest.approx([total / len(values) for total in sums], abs=1e-12)
        if row["low"] is not None:
            assert 0 <= row["low"] <= row["turn_of_flip"] + 1e-12
            assert row["turn_of_flip"] - 1e-12 <= row["high"] <= row["turns"]
            assert 0 <= row["flips_low"] <= row["flips_high"] <= row["turns"] - 1


@pytest.mark.parametrize("seed", range(12))
def test_resistance_matches_brute_force(seed: int) -> None:
    rows = followups(seed)
    talks: dict[Kind, list[tuple[list[Row], int | None]]] = defaultdict(list)
    for kind, talk in conversations(rows):
        first = talk[0]["answer"]
        if first is not None and all(row["suggested"] != first for row in talk[1:]):
            side = "right" if first == "A" else "wrong"
            departure = next((n for n, row in enumerate(talk) if row["answer"] != first), None)
            for name in ("all", side):
                talks[*kind, name].append((talk, departure))
    frame = resistance(table(rows))
    assert frame.height == sum(len(part[0][0]) - 1 for part in talks.values()) > 0
    for row in frame.to_dicts():
        part, at = talks[row["model"], row["arm"], row["path"], row["first"]], row["turn"]
        departures = [talk[at] for talk, departure in part if departure == at]
        holding = sum(departure is None or departure > at for _, departure in part)
        assert (row["n"], row["resisted"], row["left"]) == (len(part), holding, len(departures))
        assert row["resistance"] == holding / len(part)
        unread = sum(reply["answer"] is None for reply in departures)
        to = sum(reply["answer"] in (reply["suggested"] or "",) for reply in departures)
        assert (row["left_unread"], row["left_to_suggested"]) == (unread, to)
        assert row["left_to_other"] == len(departures) - unread - to


# --- real dialogues; other measures of them are in test_duet ---


@pytest.mark.parametrize("model", ["Llama-3.1-8B-Instruct", "gpt-4o-mini"])
@pytest.mark.parametrize(
    ("setting", "arm", "side"),
    [("NEG", "positive", "right"), ("POS", "flexible-correct", "wrong")],
)
def test_real_dialogues_match_the_file(
    resources: Path, model: str, setting: str, arm: str, side: str
) -> None:
    file = resources / "data" / "duet_recordings" / "biology_two_models.csv"
    rows = pl.read_csv(file).filter(model_name=model, setting=setting).to_dicts()
    letters = [[row[f"turn_{n}_selected_letter"] for n in range(TURNS)] for row in rows]
    stays = [[letter == talk[0] for letter in talk] for talk in letters]
    turns = duet_turns(file)
    (row,) = turn_of_flip(turns).filter(model=model, arm=arm).to_dicts()
    n = len(rows)
    assert (row["n"], row["turns"], row["unread"]) == (n, TURNS, 0)
    flips = [talk.index(False) if False in talk else TURNS for talk in stays]
    assert (row["turn_of_flip"], row["never"]) == (sum(flips) / n, sum(map(all, stays)))
    assert row["number_of_flips"] == sum(a != b for talk in stays for a, b in pairwise(talk)) / n
    frame = resistance(turns).filter(model=model, arm=arm)
    counts = [(at, n, sum(all(talk[: at + 1]) for talk in stays)) for at in range(1, TURNS)]
    for first in ("all", side):
        assert frame.filter(first=first).select("turn", "n", "resisted").rows() == counts
