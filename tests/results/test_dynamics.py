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
from tests.results.frames import Row, alone, row_of, table, turn
from tests.results.offering import drawn, flexible, held, single
from tests.studies import question_rows, study, turns_of, write_jsonl

MEASURES = ("turn-of-flip", "survival by path")

CHAIN = ("", "push", "push>shove", "push>shove>recheck")


def dialogue(question: str, answers: str, pushed: str = "BBB", epoch: int = 1) -> list[Row]:
    """A chain; ``?`` could not be read, ``!`` failed, ``-`` pushes nothing. The right one is A."""
    rows = [turn(question, _read(answers[0]), status=_status(answers[0]), epoch=epoch)]
    for path, answer, letter in zip(CHAIN[1:], answers[1:], pushed, strict=False):
        suggested = None if letter == "-" else letter
        rows.append(
            turn(question, _read(answer), path, status=_status(answer), suggested=suggested,
                 epoch=epoch)
        )  # fmt: skip
    return rows


def _read(answer: str) -> str | None:
    return None if answer in "?!" else answer


def _status(answer: str) -> str:
    return "error" if answer == "!" else ""


def put(*dialogues: list[Row]) -> pl.DataFrame:
    return table([row for own in dialogues for row in own])


HAND = put(
    dialogue("q1", "AAAA"),  # never
    dialogue("q2", "ABBA"),  # left at turn 1, and taken up again: 2 flips, 2 changes
    dialogue("q3", "ABCB"),  # left at turn 1: 1 flip, 3 changes
    dialogue("q4", "AA?A"),  # an unread reply at turn 2: 2 flips, no change of answer
    dialogue("q5", "CCAC"),  # wrong, right at turn 2, wrong: flip 0, 2 flips, 2 changes
    dialogue("q6", "BBBB"),  # its own wrong answer is pushed
    dialogue("q7", "?AAA"),  # unread at first: flip 0, 1 flip
    dialogue("q8", "AA!A"),  # failed: left out
)


def test_turn_and_number_of_flips_by_hand() -> None:
    row = row_of(turn_of_flip(HAND), CHAIN[-1])
    assert (row["arm"], row["turns"], row["n"]) == ("compound", 4, 7)
    flips, numbers = [4, 1, 1, 2, 0, 0, 0], [0, 2, 1, 2, 2, 0, 1]
    assert row["turn_of_flip"] == sum(flips) / 7
    assert row["number_of_flips"] == sum(numbers) / 7
    assert row["answer_changes"] == (0 + 2 + 3 + 0 + 2 + 0 + 0) / 7
    assert (row["never"], row["unread"]) == (1, 2)
    for bounds, values, most in (
        (("low", "high"), flips, 4),
        (("flips_low", "flips_high"), numbers, 3),
    ):
        expected = mean_bounds((np.array(values) / most, np.ones(7)))
        assert [row[name] for name in bounds] == pytest.approx([most * x for x in expected])


def test_what_a_chain_begins_with_by_hand() -> None:
    rows = turn_of_flip(HAND).sort("turns").select(
        "arm", "path", "turns", "n", "turn_of_flip", "never", "number_of_flips", "answer_changes",
        "unread",
    ).rows()  # fmt: skip
    assert rows[:-1] == [
        # q8 has not failed yet
        ("followup", "push", 2, 8, (2 + 1 + 1 + 2 + 0 + 0 + 0 + 2) / 8, 3, 3 / 8, 2 / 8, 1),
        ("compound", "push>shove", 3, 7, (3 + 1 + 1 + 2 + 0 + 0 + 0) / 7, 1, 5 / 7, 4 / 7, 2),
    ]
    assert rows[-1][:4] == ("compound", CHAIN[-1], 4, 7)


def test_resistance_by_hand() -> None:
    rows = resistance(HAND).filter(path=CHAIN[-1]).select(
        "first", "turn", "n", "resisted", "left", "left_to_suggested", "left_to_other",
        "left_unread",
    ).rows()  # fmt: skip
    assert rows == [
        # q1 to q5; q6 is pushed its own answer, the first answer of q7 cannot be read
        ("all", 1, 5, 3, 2, 2, 0, 0),
        ("all", 2, 5, 1, 2, 0, 1, 1),
        ("all", 3, 5, 1, 0, 0, 0, 0),
        ("right", 1, 4, 2, 2, 2, 0, 0),
        ("right", 2, 4, 1, 1, 0, 0, 1),
        ("right", 3, 4, 1, 0, 0, 0, 0),
        ("wrong", 1, 1, 1, 0, 0, 0, 0),
        ("wrong", 2, 1, 0, 1, 0, 1, 0),
        ("wrong", 3, 1, 0, 0, 0, 0, 0),
    ]
    # a chain that stops a turn earlier is of the same conversations up to there
    same = resistance(HAND).filter(pl.col("path") == CHAIN[-1], pl.col("turn") < 3).drop("path")
    assert resistance(HAND).filter(path=CHAIN[-2]).drop("path").equals(same)
    row = resistance(HAND).filter(path=CHAIN[-1], first="right", turn=1).row(0, named=True)
    low, high = wilson(np.array([2.0]), np.array([4.0]))
    assert (row["resistance"], row["low"], row["high"]) == (0.5, low[0], high[0])


def test_every_path_is_a_conversation_of_its_own() -> None:
    rows = [
        turn("q1", "A"), turn("q1", "A", "push"), turn("q1", "B", "push>shove"),
        turn("q1", "A", "recheck"), turn("q1", "A", "mislead@10"),
        turn("q2", "A"), turn("q2", "C", "push"),  # its chain was not put
        turn("q3", "A"), turn("q3", "A", "push>shove"),  # a step is missing
        turn("q4", "A", "recheck"),  # no first answer
        alone("q1", "A"), alone("q1", "B", "push"), alone("q1", "B", "warning>push"),
    ]  # fmt: skip
    measured = turn_of_flip(table(rows))
    assert measured.select("arm", "path", "turns", "n", "turn_of_flip").rows() == [
        ("followup", "push", 2, 2, 1.5),
        ("compound", "push>shove", 3, 1, 2.0),
        ("followup", "recheck", 2, 1, 2.0),
        ("length", "mislead@10", 2, 1, 2.0),
    ]
    paths = resistance(table(rows))["path"].unique(maintain_order=True).to_list()
    assert paths == measured["path"].to_list()


@pytest.mark.slow
def test_a_row_is_the_same_once_chains_that_begin_with_it_are_put(tmp_path: Path) -> None:
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
        for name in MEASURES:
            old, new = (TABLES[name](turns) for turns in (before, after))
            assert set(old.filter(path=technique)["run"]) == {run_id(first)}, name
            assert_frame_equal(new.filter(path=technique), old.filter(path=technique))
            # nor is any other row changed, and those of the chain are added
            assert_frame_equal(new.filter(pl.col("path") != chain), old)
            assert new.filter(path=chain).height > 0
        (row,) = turn_of_flip(after).filter(path=chain).to_dicts()
        assert (row["n"], row["turns"]) == (limit or 8, 3)
    assert turn_of_flip(before).filter(path=technique)["n"].to_list() == [8]


def test_epochs_of_a_question_count_by_what_they_add() -> None:
    alike = [dialogue(f"q{n}", "AAAB" if n % 2 else "ABBB", epoch=e)
             for n in range(6) for e in range(1, 6)]  # fmt: skip
    once = [own for own in alike if own[0]["epoch"] == 1]
    for measure, bounds in ((turn_of_flip, ["low", "high"]), (resistance, ["low", "high"])):
        many, few = measure(put(*alike)), measure(put(*once))
        assert (many["n"] == 5 * few["n"]).all()
        for name in bounds:
            assert many[name].to_list() == pytest.approx(few[name].to_list())


def test_what_is_pushed_before_the_first_answer_challenges_nothing() -> None:
    first, *others = dialogue("q1", "AAB")
    own = table([first | {"suggested": "A"}, *others])
    counted = resistance(own).filter(first="right", turn=1).select("path", "n").rows()
    assert counted == [("push", 1), ("push>shove", 1)]


def test_a_target_is_what_is_to_be_held_and_gold_where_there_is_none() -> None:
    rows = dialogue("q1", "CCCB", "---")
    for target, expected in (("C", [2.0, 3.0, 3.0]), (None, [0.0, 0.0, 0.0])):
        own = table([row | {"target": target} for row in rows])
        assert turn_of_flip(own)["turn_of_flip"].to_list() == expected


@pytest.mark.parametrize("seed", range(6))
def test_conversations_that_stop_at_a_departure(seed: int) -> None:
    turns, key = table(drawn(seed)), ["model", "dataset", "arm"]
    measured = turn_of_flip(turns)
    lost = survival(turns).group_by(key).agg(
        pl.col("n").first().alias("whole"), pl.col("lost").sum(),
        pl.col("lost").filter(pl.col("turn") == 1).sum().alias("at_once"),
        pl.col("survival").sum().alias("area"),
    )  # fmt: skip
    both = measured.join(lost, on=key, validate="1:1")
    assert both.height == measured.height == lost.height > 0
    assert both["n"].equals(both["whole"])
    assert both["never"].equals(both["n"] - both["lost"])
    # what is departed from is first of all held
    expected = (both["lost"] - both["at_once"]) / both["n"]
    assert both["number_of_flips"].to_list() == pytest.approx(expected.to_list())
    # a question with fewer offers stays kept in survival, but has no further turn
    assert (both["turn_of_flip"] <= both["area"] + 1e-12).all()


def test_survival_adds_up_to_the_turn_of_flip_where_all_have_as_many_offers() -> None:
    own = [("q1", "AAA"), ("q2", "AAB"), ("q3", "B"), ("q4", "A?"), ("q5", "A!")]
    turns = table([row for question, answers in own for row in held(question, answers)])
    (row,) = turn_of_flip(turns).to_dicts()
    assert (row["n"], row["turn_of_flip"]) == (4, (3 + 2 + 0 + 1) / 4)
    assert row["turn_of_flip"] == survival(turns)["survival"].sum()
    # a departure at the very first turn is none from what was held
    assert row["number_of_flips"] == 2 / 4
    # and nothing was pressed there
    assert resistance(turns).filter(first="all").select("n", "resisted").rows() == [(3, 2), (3, 1)]


def test_a_run_that_was_cut_off_and_a_branch_make_no_conversation() -> None:
    rows = [single("q1", "A"), *held("q1", "AA"), *held("q1", "NNN", "negative"),
            flexible("q1", "A"), *held("q2", "NN", "negative"), single("q2", "A")]  # fmt: skip
    assert turn_of_flip(table(rows)).select("arm", "path", "n").rows() == [
        ("negative", "offer>offer>offer", 1)
    ]


# the same by brute force


def followups(seed: int) -> list[Row]:
    """Chains and single challenges at random, with everything that can go wrong, shuffled."""
    rng = np.random.default_rng(seed)
    paths = ["push", "recheck", "mislead@10", *CHAIN[2:], "shove>push", "shove"]
    put_here = [path for path in paths if rng.random() < 0.8]
    rows = []
    for model in ("m1", "m2"):
        for question in range(int(rng.integers(3, 9))):
            for epoch in (1, 2):
                for path in ["", *put_here]:
                    if rng.random() < 0.04:
                        continue
                    answer = str(rng.choice([*"AAAABBCC?!"], p=[0.115] * 8 + [0.06, 0.02]))
                    suggested = str(rng.choice([*"BD"])) if rng.random() < 0.8 else None
                    rows.append(
                        turn(f"q{question}", _read(answer), path, status=_status(answer),
                             epoch=epoch, model=model, run=f"run of {model}",
                             suggested=suggested if path else None)
                    )  # fmt: skip
    return [rows[int(place)] for place in rng.permutation(len(rows))]


Kind = tuple[str, str, str]


def told(rows: list[Row]) -> Iterator[tuple[Kind, list[Row]]]:
    """Every conversation with its model, arm and path."""
    known = {
        (row["model"], row["question"], row["epoch"], row["path"]): row
        for row in rows
        if row["protocol"] == "followup"
    }
    for (model, question, epoch, path), row in known.items():
        if not path:
            continue
        steps = path.split(">")
        keys = [
            (model, question, epoch, ">".join(steps[:place])) for place in range(len(steps) + 1)
        ]
        own = [known.get(key) for key in keys]
        found = [one for one in own if one is not None and one["status"] != "error"]
        if len(found) == len(keys):
            yield (model, row["arm"], path), found


def lost_at(own: list[Row]) -> int | None:
    return next((n for n, row in enumerate(own) if row["answer"] != own[0]["answer"]), None)


def is_pressed(own: list[Row]) -> bool:
    first = own[0]["answer"]
    return first is not None and all(row["suggested"] != first for row in own[1:])


@pytest.mark.parametrize("seed", range(12))
def test_turn_of_flip_by_brute_force(seed: int) -> None:
    rows = followups(seed)
    expected: dict[Kind, list[tuple[int, int, int, int, int]]] = defaultdict(list)
    for kind, own in told(rows):
        aligned = [row["answer"] == row["target"] for row in own]
        read = [row["answer"] for row in own if row["answer"] is not None]
        expected[kind].append((
            aligned.index(False) if False in aligned else len(own),
            int(all(aligned)),
            sum(a != b for a, b in pairwise(aligned)),
            sum(a != b for a, b in pairwise(read)),
            len(own) - len(read),
        ))  # fmt: skip
    measured = turn_of_flip(table(rows))
    assert measured.height == len(expected) > 0
    for row in measured.to_dicts():
        own_values = expected[row["model"], row["arm"], row["path"]]
        flips, never, reversals, changes, unread = (list(v) for v in zip(*own_values, strict=True))
        n = len(own_values)
        assert (row["n"], row["never"], row["unread"]) == (n, sum(never), sum(unread))
        assert row["turn_of_flip"] == pytest.approx(sum(flips) / n, abs=1e-12)
        assert row["number_of_flips"] == pytest.approx(sum(reversals) / n, abs=1e-12)
        assert row["answer_changes"] == pytest.approx(sum(changes) / n, abs=1e-12)
        if row["low"] is not None:
            assert 0 <= row["low"] <= row["turn_of_flip"] + 1e-12
            assert row["turn_of_flip"] - 1e-12 <= row["high"] <= row["turns"]
            assert 0 <= row["flips_low"] <= row["flips_high"] <= row["turns"] - 1


@pytest.mark.parametrize("seed", range(12))
def test_resistance_by_brute_force(seed: int) -> None:
    rows = followups(seed)
    expected: dict[tuple[str, ...], list[tuple[list[Row], int | None]]] = defaultdict(list)
    for kind, own in told(rows):
        if is_pressed(own):
            side = "right" if own[0]["answer"] == "A" else "wrong"
            for first in ("all", side):
                expected[*kind, first].append((own, lost_at(own)))
    measured = resistance(table(rows))
    assert measured.height == sum(len(own[0][0]) - 1 for own in expected.values()) > 0
    for row in measured.to_dicts():
        both = expected[row["model"], row["arm"], row["path"], row["first"]]
        at, here = row["turn"], [own for own, left in both if left == row["turn"]]
        resisted = sum(left is None or left > at for _, left in both)
        assert (row["n"], row["resisted"], row["left"]) == (len(both), resisted, len(here))
        assert row["resistance"] == resisted / len(both)
        unread = sum(own[at]["answer"] is None for own in here)
        to = sum(own[at]["answer"] is not None and own[at]["answer"] == own[at]["suggested"]
                 for own in here)  # fmt: skip
        assert (row["left_unread"], row["left_to_suggested"]) == (unread, to)
        assert row["left_to_other"] == len(here) - unread - to


# real dialogues


@pytest.fixture(scope="module")
def recordings(shared: Path) -> Path:
    return shared / "data" / "duet_recordings" / "biology_two_models.csv"


MODELS = ("Llama-3.1-8B-Instruct", "gpt-4o-mini")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("setting", "arm"), [("NEG", "positive"), ("POS", "flexible-correct")])
def test_real_dialogues_exactly_as_the_file_has_them(
    recordings: Path, model: str, setting: str, arm: str
) -> None:
    file = pl.read_csv(recordings).filter(model_name=model, setting=setting).to_dicts()
    letters = [[row[f"turn_{n}_selected_letter"] for n in range(TURNS)] for row in file]
    turns = duet_turns(recordings)
    row = turn_of_flip(turns).filter(model=model, arm=arm).row(0, named=True)
    kept = [[letter == own[0] for letter in own] for own in letters]
    first_left = [own.index(False) if False in own else TURNS for own in kept]
    assert (row["n"], row["turns"], row["unread"]) == (len(file), TURNS, 0)
    assert row["turn_of_flip"] == sum(first_left) / len(file)
    assert row["never"] == sum(all(own) for own in kept)
    by_pairs = [pairwise(own) for own in kept]
    assert row["number_of_flips"] == sum(a != b for own in by_pairs for a, b in own) / len(file)
    if setting == "NEG":  # what the file itself says of right and wrong
        right = [[bool(own[f"turn_{n}_correct"]) for n in range(TURNS)] for own in file]
        assert right == kept
    measured = resistance(turns).filter(model=model, arm=arm, first="all")
    assert measured.select("turn", "n", "resisted").rows() == [
        (n, len(file), sum(all(own[: n + 1]) for own in kept)) for n in range(1, TURNS)
    ]
    side = "right" if setting == "NEG" else "wrong"
    same = resistance(turns).filter(model=model, arm=arm, first=side)
    assert same.drop("first").equals(measured.drop("first"))


@pytest.mark.parametrize("model", MODELS)
def test_right_and_wrong_first_answers_of_real_dialogues(recordings: Path, model: str) -> None:
    file = pl.read_csv(recordings).filter(model_name=model)
    imported = duet_turns(recordings).with_columns(
        pl.lit("imported").alias("protocol"), pl.lit("push").alias("arm")
    )
    measured = resistance(imported).filter(model=model)
    assert measured["path"].n_unique() == TURNS - 1
    for pushes in range(1, TURNS):
        left = pl.any_horizontal(
            pl.col(f"turn_{n}_selected_letter") != pl.col("turn_0_selected_letter")
            for n in range(1, pushes + 1)
        )
        rows = measured.filter(path=">".join(["push"] * pushes), turn=pushes)
        for side, right in (("right", 1), ("wrong", 0)):
            own = file.filter(turn_0_correct=right)
            kept = own.height - own.select(left.sum()).item()
            (row,) = rows.filter(first=side).to_dicts()
            assert (row["n"], row["resisted"]) == (own.height, kept)
