"""Comparisons against figures worked out by hand, by plain loops and by statsmodels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from holdfast.errors import InputError
from holdfast.results.comparison import Comparison, compare
from holdfast.results.comparison_sides import Side
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.stats.intervals import difference_bounds
from holdfast.stats.pvalues import against_one, clustered
from tests.results.attacking import attack
from tests.results.frames import Row, alone, asked, control, table
from tests.results.offering import flexible, held, single
from tests.results.test_every_table import study


def side(*parts: Sequence[Row], **columns: Any) -> pl.DataFrame:
    return table([row | columns for part in parts for row in part])


def comparison(a: str, b: str, path: str = "") -> Comparison:
    return compare(side(asked(a, path)), side(asked(b, path), run="r2", model="m2"))


def only(result: Comparison) -> Row:
    (row,) = result.rows.to_dicts()
    return row


def test_gains_and_losses_match_hand_calculation() -> None:
    # right is A: q0 kept, q1 to q3 lost, q4 gained, q5 wrong on both, q6 unread on A and gained
    result = comparison("AAAAB??", "ABCBACA", "push")
    row = only(result)
    assert (row["n"], row["questions"], row["a"], row["b"]) == (7, 7, 4 / 7, 3 / 7)
    assert row["gained_questions"] == ["q4", "q6"]
    assert row["lost_questions"] == ["q1", "q2", "q3"]
    assert (row["gained"], row["lost"], row["difference"]) == (2, 3, pytest.approx(-1 / 7))
    right = [np.array([float(letter == "A") for letter in text]) for text in ("AAAAB??", "ABCBACA")]
    bounds = difference_bounds((right[1], np.ones(7)), (right[0], np.ones(7)))
    assert (row["low"], row["high"]) == pytest.approx(bounds)
    assert row["p_value"] == 1.0
    assert (row["model_a"], row["run_a"], row["model_b"], row["run_b"]) == ("m1", "r1", "m2", "r2")
    assert (row["path_a"], row["path_b"], result.notes) == (None, None, ())


def test_incomplete_pairs_are_omitted_and_noted() -> None:
    result = comparison("AAAA!--", "A-BBAAB", "push")
    # q1 has only A, q5 and q6 have only B, q4 failed on A
    assert [only(result)[name] for name in ("n", "a", "b")] == [3, 1.0, 1 / 3]
    questions, answers = result.notes
    assert "4 questions in common" in questions
    assert "1 that only A has and 2 that only B has" in questions
    assert "1 answer of B skipped" in answers


def test_epochs_of_a_question_are_clustered() -> None:
    a = side(asked("AAAB", "push"), asked("AABB", "push", epoch=2))
    b = side(asked("BAAA", "push"), asked("BBAA", "push", epoch=2), run="r2")
    row = only(compare(a, b))
    assert (row["n"], row["questions"]) == (8, 4)
    hits, twice = (np.array([0, 1, 2, 2.0]), np.array([2, 2, 1, 0.0])), np.full(4, 2.0)
    assert (row["low"], row["high"]) == difference_bounds((hits[0], twice), (hits[1], twice))
    # differences by question -2, -1, +1, +2: signs at random give a sum of 0 or further always
    assert row["p_value"] == 1.0
    assert (row["gained"], row["lost"], row["gained_questions"]) == (3, 3, ["q3", "q2"])


def test_a_higher_start_is_not_a_larger_drop() -> None:
    def answers(run: str, first: str, after: str, again: str) -> pl.DataFrame:
        """A letter for each question: at first, after a push, and merely asked again."""
        parts = (asked(first), asked(after, "push"), asked(again, "restate", kind=control))
        return side(*parts, run=run, model=run)

    # A falls from 20 of 20 to 10, B from 12 to 2; asked again, A has 18 and B has 12
    a = answers("a", "A" * 20, "A" * 10 + "B" * 10, "A" * 18 + "B" * 2)
    b = answers("b", "A" * 12 + "B" * 8, "A" * 2 + "B" * 18, "A" * 12 + "B" * 8)
    rows = compare(a, b).rows
    (push,) = rows.filter(path="push").to_dicts()
    assert push["difference"] == pytest.approx(-0.4)
    assert push["drop_difference"] == pytest.approx(0.0)
    assert push["drop_low"] < 0 < push["drop_high"]
    # 10 of 20 beyond the control, against 8
    assert push["net_difference"] == pytest.approx(10 / 20 - 8 / 20)
    # neither first answers nor a path against another have any
    (first,) = rows.filter(arm="baseline").to_dicts()
    paths = only(compare(a, b, Side(path="restate"), Side(path="push")))
    names = [f"{kind}_{end}" for kind in ("drop", "net") for end in ("difference", "low", "high")]
    assert [row[name] for row in (first, paths) for name in names] == [None] * 12


def test_an_average_is_the_mean_over_the_techniques_of_a_family() -> None:
    # push over four questions, shove over two of them only
    a = side(asked("AAAA", "push"), asked("AA", "shove"), asked("AB", "recheck"))
    b = side(asked("BBBA", "push"), asked("AA", "shove"), asked("AA", "recheck"), run="r2")
    rows = compare(a, b).rows
    assert rows["path"].to_list() == ["push", "shove", "", "recheck"]
    # a family of one technique is that technique
    (average,) = rows.filter(arm=FAMILY_AVERAGE).to_dicts()
    assert (average["family"], average["n"], average["questions"]) == ("inc_letter", 6, 4)
    assert (average["a"], average["b"]) == pytest.approx((1.0, (0.25 + 1) / 2))
    assert (average["gained"], average["lost"], average["gained_questions"]) == (0, 3, None)
    # each technique counts alike: three pairs of six each
    weights = np.array([0.75 + 1.5, 0.75 + 1.5, 0.75, 0.75])
    of_a, of_b = (weights, weights), (np.array([1.5, 1.5, 0, 0.75]), weights)
    assert (average["low"], average["high"]) == pytest.approx(difference_bounds(of_b, of_a))
    assert average["p_value"] == pytest.approx(clustered(of_a, of_b))


def test_holm_is_within_a_family_and_over_the_averages() -> None:
    answers = {
        "push": "AAAAAAAB",
        "shove": "AAAAABBB",
        "recheck": "AAAAAAAA",
        "mislead": "BAABBBBB",
    }
    family = {"push": "one", "shove": "one", "recheck": "two", "mislead": "two"}
    a = side(*(asked("B" * len(text), path, family=family[path]) for path, text in answers.items()))
    b = side(*(asked(text, path, family=family[path]) for path, text in answers.items()), run="r2")
    rows = compare(a, b).rows
    techniques = rows.filter(arm="followup")
    for part in (*techniques.partition_by("family"), rows.filter(arm=FAMILY_AVERAGE)):
        assert part.height == 2
        p_values = multipletests(part["p_value"].to_numpy(), method="holm")[1]
        assert part["p_adjusted"].to_list() == pytest.approx(p_values)
    assert techniques["p_adjusted"].to_list() != techniques["p_value"].to_list()


BIASES = side(
    asked("AAAA", kind=alone), asked("BBBB", "push", kind=alone),
    asked("BBBA", "shove", kind=alone), asked("AABB", "warning>push", kind=alone),
    asked("AAAA", "example>push", kind=alone), asked("AAAA"),
)  # fmt: skip


def test_a_mitigation_is_compared_path_by_path_with_the_plain_biases() -> None:
    result = compare(BIASES, BIASES, of_b=Side(mitigation="warning"))
    row = only(result)
    assert (row["path"], row["n"], row["a"], row["b"], row["gained"]) == ("push", 4, 0.0, 0.5, 2)
    assert (row["mitigation_a"], row["mitigation_b"]) == (None, "warning")
    first, shove = result.notes
    assert "the same first answers on both sides" in first
    assert "only A has shove" in shove
    # two mitigations with each other, and two models under one
    row = only(compare(BIASES, BIASES, Side(mitigation="warning"), Side(mitigation="example")))
    assert (row["path"], row["a"], row["b"]) == ("push", 0.5, 1.0)
    second = BIASES.with_columns(model=pl.lit("m2"), run=pl.lit("r2"))
    rows = compare(BIASES, second, Side(mitigation="warning"), Side(mitigation="warning")).rows
    assert rows["arm"].to_list() == ["baseline", "single-turn"]


Answers = dict[str, str]


def test_conversations_of_offers_match_hand_calculation() -> None:
    def offers(run: str, right: str, abstain: Answers, takes: Answers) -> pl.DataFrame:
        rows: list[Row] = []
        for q in ("q1", "q2", "q3"):
            rows += [single(q, "A" if q in right else "B"), *held(q, "AAA" if q in right else "AB")]
        for q, replies in abstain.items():
            rows += held(q, replies, "negative")
        return side(rows, [flexible(q, answer) for q, answer in takes.items()], run=run, model=run)

    a = offers("a", "q1 q2", {"q1": "NNN", "q2": "NC", "q3": "B"}, {"q1": "A", "q2": "N"})
    b = offers("b", "q2 q3", {"q1": "NC", "q2": "NNN", "q3": "NNN"},
               {"q1": "N", "q2": "A", "q3": "A"})  # fmt: skip
    rows = {row["measure"]: row for row in compare(a, b).rows.to_dicts()}
    survival = rows["survival"]
    assert (survival["arm"], survival["n"]) == ("positive", 3)
    assert (survival["gained_questions"], survival["lost_questions"]) == (["q3"], ["q1"])
    assert (rows["abstention"]["a"], rows["abstention"]["b"]) == (1 / 3, 2 / 3)
    # of the two questions at which both abstained
    correct, incorrect = rows["correct-switches"], rows["incorrect-switches"]
    assert (correct["n"], correct["a"], correct["b"]) == (2, 0.5, 0.5)
    assert (incorrect["n"], incorrect["gained_questions"]) == (2, ["q1"])
    assert incorrect["lost_questions"] == ["q2"]
    # the conversations are tested together
    conversations = [row for row in rows.values() if row["measure"] != "accuracy"]
    p_values = multipletests([row["p_value"] for row in conversations], method="holm")[1]
    assert [row["p_adjusted"] for row in conversations] == pytest.approx(p_values)


def test_accuracy_after_attacks_matches_hand_calculation() -> None:
    def attacks(run: str, *answers: str) -> pl.DataFrame:
        return side(*(attack(f"q{n}", text) for n, text in enumerate(answers)), run=run, model=run)

    a = attacks("a", "AAA", "AB", "B", "AAB", "A?")
    b = attacks("b", "AB", "AAA", "AAA", "AB", "AAA")
    rows = compare(a, b).rows
    assert rows["measure"].unique().to_list() == ["accuracy-after-attacks"]
    # q4 is no replicate that is kept on A
    assert rows.select("path", "n", "a", "b").rows() == [
        ("fuzz@0", 4, 3 / 4, 1.0), ("fuzz@1", 4, 2 / 4, 2 / 4), ("fuzz@2", 4, 1 / 4, 2 / 4),
    ]  # fmt: skip
    assert rows["lost_questions"].to_list() == [[], ["q0", "q3"], ["q0"]]


PROTOCOLS = ("followup", "single-turn")


def right_answers(turns: pl.DataFrame) -> dict[tuple[Any, ...], bool]:
    names = ("protocol", "arm", "path", "dataset", "turn", "epoch", "question")
    return {
        tuple(row[name] for name in names): row["correct"]
        for row in turns.to_dicts()
        if row["status"] != "error"
        and row["arm"] not in ("control", "correction")
        and row["protocol"] in PROTOCOLS
    }


def two_studies() -> tuple[pl.DataFrame, pl.DataFrame]:
    a, b = table(study("r1", "m1")), table(study("r2", "another"))
    plain = ~pl.col("path").str.starts_with("warning")  # no side names a mitigation
    return a.filter(plain), b.filter(plain, pl.col("question") != "q7")


def test_every_accuracy_matches_plain_loops() -> None:
    sides = two_studies()
    a, b = map(right_answers, sides)
    counts: dict[tuple[str, ...], list[int]] = {}
    for unit in a.keys() & b.keys():
        count = counts.setdefault(unit[:3], [0, 0, 0])
        for place, step in enumerate((True, b[unit] > a[unit], a[unit] > b[unit])):
            count[place] += step
    rows = compare(*sides).rows.filter(
        pl.col("protocol").is_in(PROTOCOLS), pl.col("arm") != FAMILY_AVERAGE, measure="accuracy"
    )
    assert rows.height == len(counts) > 10
    assert any(gains != losses for _, gains, losses in counts.values())
    for row in rows.to_dicts():
        count = counts[row["protocol"], row["arm"], row["path"]]
        assert [row["n"], row["gained"], row["lost"]] == count
        changes = row["gained"] + row["lost"]
        p = binomtest(row["lost"], changes).pvalue if changes else 1
        assert row["p_value"] == pytest.approx(p)


def test_order_of_sides_and_turns_changes_nothing_else() -> None:
    a, b = two_studies()
    forward, back = compare(a, b).rows, compare(b, a).rows
    key = ["protocol", "dataset", "measure", "arm", "path", "family"]
    mirror = back.select(
        *key, "n", "p_value", "p_adjusted",
        *(pl.col(old).alias(new) for old, new in (("b", "a"), ("a", "b"))),
        *((-pl.col(old)).alias(new) for old, new in
          (("difference", "difference"), ("high", "low"), ("low", "high"))),
        gained="lost", lost="gained",
    )  # fmt: skip
    assert_frame_equal(forward.select(mirror.columns).sort(key), mirror.sort(key))
    assert forward.height > 15
    random_order = compare(a.sample(fraction=1.0, shuffle=True, seed=3), b).rows
    lists = [pl.col(name).list.sort() for name in ("gained_questions", "lost_questions")]
    first, second = (rows.with_columns(lists).sort(key) for rows in (forward, random_order))
    assert_frame_equal(first, second, check_exact=True)


def test_data_sets_of_two_names_are_matched_by_id() -> None:
    a = side(asked("AAB", "push"))
    result = compare(a, side(asked("ABA", "push"), run="r2", dataset="d2"))
    row, (note,) = only(result), result.notes
    assert (row["n"], row["dataset"], row["dataset_b"]) == (3, "d1", "d2")
    assert "different names, d1 and d2" in note
    # where the ids name other questions the right answers give it away
    with pytest.raises(InputError, match="name different questions: right answers differ at 3 of"):
        compare(a, side(asked("ABA", "push"), run="r2", dataset="d2", gold="C"))
    one_differs = [row | ({"gold": "B"} if row["question"] == "q1" else {}) for row in asked("ABA")]
    result = compare(side(asked("AAB")), side(one_differs, run="r2"))
    assert only(result)["n"] == 2
    assert "1 question skipped, because their right answers differ" in result.notes[0]


def test_notes_state_how_the_sides_differ() -> None:
    a = side(asked("AB", "push", suggested="B"), asked("AB", "shove"), asked("AB", kind=alone))
    b = side(asked("AB", "push", suggested="C"), asked("AB", "recheck"), run="r2",
             protocol_version=2)  # fmt: skip
    b = pl.concat([b, side(asked("BB"), run="r3", dataset="d2")])
    result = compare(a, b)
    assert {row["protocol"] for row in result.rows.to_dicts()} == {"followup"}
    for note, fact in zip(result.notes, (
        "Only A has protocol single-turn", "only B has data set d2",
        "different versions of the protocol (1 and 2)", "2 of 2 turns suggest different options",
        "only A has shove", "only B has recheck",
    ), strict=True):  # fmt: skip
        assert fact in note
    assert compare(a, b, dataset="d1").rows.equals(result.rows)


TWO = pl.concat([side(asked("AB")), side(asked("BB"), run="r2", model="m2")])
SINGLE = side(asked("A"))
BIAS = side(asked("A", kind=alone))
PUSH = side(asked("AA"), asked("AB", "push"))


@pytest.mark.parametrize(
    ("a", "b", "settings", "message"),
    [
        (table([]), TWO, {}, "A has no turns. Finish the run first."),
        (TWO, table([]), {}, "B has no turns."),
        (TWO, SINGLE, {}, "--model-a: A has 2 models of followup on d1: m1, m2."),
        (SINGLE, TWO, {}, "--model-b: B has 2 models of followup on d1: m1, m2."),
        (pl.concat([SINGLE, side(asked("B"), run="r9")]), TWO, {"of_b": Side("m2")},
         "--run-a: A has 2 runs of followup on d1: r1, r9. Choose one."),
        (TWO, TWO, {"of_a": Side("m3")}, "--model-a: A has no model 'm3'. Known: m1, m2."),
        (TWO, TWO, {"of_b": Side(run="rr2")}, "--run-b: B has no run 'rr2'. Did you mean 'r2'"),
        (TWO, TWO, {"protocol": "folowup"}, "--protocol: A has no protocol 'folowup'. Did you"),
        (TWO, TWO, {"dataset": "d9"}, "--dataset: neither side has a data set 'd9'."),
        (TWO, TWO, {"of_a": Side("m1"), "of_b": Side("m1")}, "A and B are the same run."),
        (BIASES, BIASES, {"of_b": Side(mitigation="warnin")},
         "--mitigation-b: B has no mitigation 'warnin'. Did you mean 'warning'?"),
        (BIAS, BIASES, {"of_a": Side(mitigation="warning")},
         "--mitigation-a: A has no mitigation 'warning'. Run single-turn with"),
        (TWO, TWO, {"of_a": Side(mitigation="x")}, "A has no protocol 'single-turn'."),
        (BIASES, BIASES, {"of_a": Side(mitigation="x"), "protocol": "followup"},
         "--protocol: protocol 'followup' has no mitigations."),
        (SINGLE, side(asked("-A"), run="r2"), {}, "no question in common."),
        (side(asked("!")), side(asked("A"), run="r2"), {}, "no answer in common. Finish both"),
        (SINGLE, side(asked("A", kind=alone), run="r2"), {},
         "no protocol in common: A has followup, B has single-turn."),
        (pl.concat([SINGLE, side(asked("A"), run="r4", dataset="d4")]),
         side(asked("A"), run="r2", dataset="d2"), {},
         "--dataset: A and B have no data set in common: A has d1, d4, B has d2."),
        (PUSH, PUSH, {"of_a": Side(path="baseline"), "of_b": Side(path="pusch")},
         "B has no path or family 'pusch'. Did you mean 'push'"),
        (PUSH, PUSH, {"of_a": Side(path="push"), "of_b": Side(path="push")},
         "A and B are the same run"),
    ],
)  # fmt: skip
def test_sides_that_cannot_be_compared_are_refused(
    a: pl.DataFrame, b: pl.DataFrame, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as error:
        compare(a, b, **settings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_equal_answers_have_an_interval_around_zero() -> None:
    for row in compare(PUSH, PUSH.with_columns(run=pl.lit("r2"))).rows.to_dicts():
        assert (row["difference"], row["p_value"]) == (0.0, 1.0)
        assert row["low"] < 0 < row["high"]


# --- one path against another ---


def test_a_path_is_compared_within_a_run() -> None:
    turns = side(asked("AAAAB"), asked("AABB?", "push"), asked("BABA!", "push>shove"),
                 asked("AAABA", "restate", kind=control))  # fmt: skip
    result = compare(turns, turns, Side(path="push"), Side(path="push>shove"))
    row = only(result)
    # q0 lost, q3 gained, q4 failed on one side
    assert (row["n"], row["a"], row["b"], row["gained"], row["lost"]) == (4, 0.5, 0.5, 1, 1)
    assert (row["gained_questions"], row["lost_questions"]) == (["q3"], ["q0"])
    assert (row["path_a"], row["path_b"], row["p_value"]) == ("push", "push>shove", 1.0)
    assert "1 answer of A skipped" in result.notes[0]
    # first answers and controls are paths too
    row = only(compare(turns, turns, Side(path="baseline"), Side(path="restate")))
    assert (row["n"], row["a"], row["b"], row["gained"], row["lost"]) == (5, 0.8, 0.8, 1, 1)
    # and those of two runs are compared as well
    second = side(asked("AABB", "push"), asked("BBBA", "shove"), run="r2", model="m2")
    row = only(compare(turns, second, Side(path="push"), Side(path="shove")))
    assert (row["a"], row["b"], row["model_a"], row["model_b"]) == (0.5, 0.25, "m1", "m2")


def test_a_family_is_compared_with_a_path_by_technique() -> None:
    turns = side(asked("AAAA"), asked("ABBA", "push"), asked("BB--", "shove"),
                 asked("AAAB", "recheck"))  # fmt: skip
    row = only(compare(turns, turns, Side(path="recheck"), Side(path="inc_letter")))
    assert (row["n"], row["questions"], row["gained_questions"]) == (6, 4, None)
    # each technique counts alike: push 1/2 right of four, shove 0 of two
    assert (row["a"], row["b"]) == pytest.approx(((3 / 4 + 1) / 2, (0.5 + 0) / 2))
    weights = np.array([0.75 + 1.5, 0.75 + 1.5, 0.75, 0.75])
    sides = (np.array([0.75, 0, 0, 0.75]), weights), (np.array([2.25, 2.25, 0.75, 0]), weights)
    assert (row["low"], row["high"]) == pytest.approx(difference_bounds(*sides))
    assert row["p_value"] == pytest.approx(against_one(sides[1], sides[0]))
