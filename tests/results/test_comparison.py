"""Comparisons against figures worked out by hand, by plain loops and by statsmodels."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from holdfast.errors import InputError
from holdfast.results.comparison import COMPARISON_COLUMNS, Comparison, compare
from holdfast.results.comparison_sides import Side
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.stats.intervals import difference_bounds
from holdfast.stats.pvalues import against_one, clustered
from tests.results.attacking import attack
from tests.results.frames import STUDY, Row, alone, control, table, turn
from tests.results.offering import flexible, held, single
from tests.results.test_every_table import study


def answers(given: str, path: str = "", *, put: Any = turn, **others: Any) -> list[Row]:
    """A turn of each question in order; ``?`` is unread, ``!`` failed, ``-`` was not asked."""
    rows = []
    for number, letter in enumerate(given):
        read = None if letter in "?!" else letter
        status = "error" if letter == "!" else ""
        if letter != "-":
            rows.append(put(f"q{number}", read, path, status=status, **others))
    return rows


def side(*parts: Sequence[Row], **others: Any) -> pl.DataFrame:
    return table([row | others for part in parts for row in part])


def both(a: str, b: str, path: str = "") -> Comparison:
    return compare(side(answers(a, path)), side(answers(b, path), run="r2", model="m2"))


def the_row(found: Comparison, **keys: Any) -> Row:
    rows = found.rows.filter(*(pl.col(name) == value for name, value in keys.items()))
    assert rows.height == 1
    return rows.row(0, named=True)


def test_pairs_gained_lost_and_the_exact_test() -> None:
    # right is A: q0 kept, q1 and q2 lost, q3 gained, q4 wrong on both, q5 unread on A and gained
    found = both("AAAB?B", "ABCAAC", "push")
    row = the_row(found, path="push")
    assert tuple(found.rows.columns) == COMPARISON_COLUMNS
    assert (row["n"], row["questions"]) == (6, 6)
    assert (row["a"], row["b"]) == (3 / 6, 3 / 6)
    assert (row["gained"], row["lost"], row["difference"]) == (2, 2, 0.0)
    assert row["gained_questions"] == ["q3", "q4"]
    assert row["lost_questions"] == ["q1", "q2"]
    assert row["p_value"] == 1.0
    assert (row["model_a"], row["run_a"], row["model_b"], row["run_b"]) == ("m1", "r1", "m2", "r2")
    assert found.notes == ()


def test_the_difference_is_b_less_a_with_the_paired_interval() -> None:
    row = the_row(both("AAAAAAAABB", "AABBBBBBBA"))
    assert row["difference"] == pytest.approx(0.3 - 0.8)
    assert (row["gained"], row["lost"]) == (1, 6)
    one = np.ones(10)
    a = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0, 0.0])
    b = np.array([1, 1, 0, 0, 0, 0, 0, 0, 0, 1.0])
    assert (row["low"], row["high"]) == difference_bounds((b, one), (a, one))
    assert row["p_value"] == pytest.approx(binomtest(1, 7).pvalue)


def test_only_what_both_answered_counts_and_the_rest_is_told() -> None:
    found = both("AAAA!--", "A-BBAAB", "push")
    row = the_row(found, path="push")
    # q1 has only A, q5 and q6 have only B, q4 failed on A
    assert (row["n"], row["a"], row["b"]) == (3, 1.0, 1 / 3)
    assert found.notes == (
        "followup on d1: 4 questions in common; skipped: 1 that only A has and 2 that only B has.",
        "1 answer of B skipped: on the other side, the same turn failed or was asked less often.",
    )


def test_epochs_of_a_question_are_clustered() -> None:
    a = side(answers("AAAB", "push"), answers("AABB", "push", epoch=2))
    b = side(answers("BAAA", "push"), answers("BBAA", "push", epoch=2), run="r2")
    row = the_row(compare(a, b), path="push")
    assert (row["n"], row["questions"]) == (8, 4)
    counts_a, counts_b = np.array([2, 2, 1, 0.0]), np.array([0, 1, 2, 2.0])
    assert (row["low"], row["high"]) == difference_bounds(
        (counts_b, np.full(4, 2.0)), (counts_a, np.full(4, 2.0))
    )
    # differences by question -2, -1, +1, +2: signs at random give a sum of 0 or further always
    assert row["p_value"] == 1.0
    assert (row["gained"], row["lost"]) == (3, 3)
    assert row["gained_questions"] == ["q3", "q2"]


def test_who_begins_higher_has_not_lost_more() -> None:
    def side(run: str, first: str, after: str, again: str) -> pl.DataFrame:
        """A letter for each question: at first, after a push, and merely asked again."""
        rows = [
            row | {"run": run, "model": run}
            for n, letters in enumerate(zip(first, after, again, strict=True))
            for row in (
                turn(f"q{n}", letters[0]), turn(f"q{n}", letters[1], "push"),
                control(f"q{n}", letters[2]),
            )
        ]  # fmt: skip
        return table(rows)

    # A falls from 20 of 20 to 10, B from 12 to 2; asked again, A has 18 and B has 12
    a = side("a", "A" * 20, "A" * 10 + "B" * 10, "A" * 18 + "B" * 2)
    b = side("b", "A" * 12 + "B" * 8, "A" * 2 + "B" * 18, "A" * 12 + "B" * 8)
    rows = compare(a, b).rows
    (pushed,) = rows.filter(path="push").to_dicts()
    assert pushed["difference"] == pytest.approx(-0.4)
    assert pushed["drop_difference"] == pytest.approx(0.0)
    assert pushed["drop_low"] < 0 < pushed["drop_high"]
    # 10 of 20 beyond the control, against 8
    assert pushed["net_difference"] == pytest.approx(10 / 20 - 8 / 20)
    (first,) = rows.filter(arm="baseline").to_dicts()
    unknown = [f"{kind}_{end}" for kind in ("drop", "net") for end in ("difference", "low", "high")]
    assert [first[name] for name in unknown] == [None] * 6
    # a path against another has none
    (paths,) = compare(a, b, Side(path="restate"), Side(path="push")).rows.to_dicts()
    assert [paths[name] for name in unknown] == [None] * 6


def test_an_average_is_the_mean_over_the_techniques_of_a_family() -> None:
    # push over four questions, shove over two of them only
    a = side(answers("AAAA", "push"), answers("AA", "shove"), answers("AB", "recheck"))
    b = side(answers("BBBA", "push"), answers("AA", "shove"), answers("AA", "recheck"), run="r2")
    rows = compare(a, b).rows
    averages = rows.filter(pl.col("arm") == FAMILY_AVERAGE)
    # a family of one technique is that technique
    assert averages["family"].to_list() == ["inc_letter"]
    average = averages.row(0, named=True)
    assert (average["n"], average["questions"], average["axis"]) == (6, 4, "direct")
    assert average["a"] == pytest.approx(1.0)
    assert average["b"] == pytest.approx((0.25 + 1) / 2)
    assert (average["gained"], average["lost"]) == (0, 3)
    assert average["gained_questions"] is None
    # each technique counts alike: three pairs of six each
    weights = np.array([0.75 + 1.5, 0.75 + 1.5, 0.75, 0.75])
    of_b = np.array([1.5, 1.5, 0, 0.75])
    assert (average["low"], average["high"]) == pytest.approx(
        difference_bounds((of_b, weights), (weights, weights))
    )
    assert average["p_value"] == pytest.approx(clustered((weights, weights), (of_b, weights)))
    assert rows["path"].to_list() == ["push", "shove", "", "recheck"]


def test_holm_within_a_family_and_over_the_averages() -> None:
    paths = ("push", "shove", "recheck", "rethink")
    given = {"push": "AAAAAAAB", "shove": "AAAAABBB", "recheck": "AAAAAAAA", "rethink": "BAABBBBB"}

    def with_family(rows: list[Row]) -> list[Row]:
        return [
            row | {"family": "rethink" if row["path"].startswith("re") else "inc_letter"}
            for row in rows
        ]

    a = side(*(with_family(answers("BBBBBBBB", path)) for path in paths))
    b = side(*(with_family(answers(given[path], path)) for path in paths), run="r2")
    rows = compare(a, b).rows
    own = rows.filter(pl.col("arm") == "followup")
    for family in ("inc_letter", "rethink"):
        part = own.filter(pl.col("family") == family)
        assert part["p_adjusted"].to_list() == pytest.approx(
            multipletests(part["p_value"].to_numpy(), method="holm")[1]
        )
    assert own["p_adjusted"].to_list() != own["p_value"].to_list()
    averages = rows.filter(pl.col("arm") == FAMILY_AVERAGE)
    assert averages["p_adjusted"].to_list() == pytest.approx(
        multipletests(averages["p_value"].to_numpy(), method="holm")[1]
    )


def biased() -> pl.DataFrame:
    return side(
        answers("AAAA", put=alone),
        answers("BBBB", "push", put=alone),
        answers("BBBA", "shove", put=alone),
        answers("AABB", "warning>push", put=alone),
        answers("AAAA", "example>push", put=alone),
        answers("AAAA", ""),
    )


def test_a_mitigation_is_compared_path_by_path_with_the_plain_biases() -> None:
    turns = biased()
    found = compare(turns, turns, of_b=Side(mitigation="warning"))
    (row,) = found.rows.to_dicts()
    assert (row["path"], row["n"], row["a"], row["b"], row["gained"]) == ("push", 4, 0.0, 0.5, 2)
    assert (row["mitigation_a"], row["mitigation_b"]) == (None, "warning")
    assert found.notes == (
        "single-turn has the same first answers on both sides. They are skipped.",
        "single-turn: only A has shove. These rows are skipped.",
    )
    # and two mitigations with each other
    (row,) = compare(
        turns, turns, Side(mitigation="warning"), Side(mitigation="example")
    ).rows.to_dicts()
    assert (row["path"], row["a"], row["b"]) == ("push", 0.5, 1.0)


def test_the_first_answers_of_two_models_are_compared_under_a_mitigation_too() -> None:
    other = biased().with_columns(pl.lit("m2").alias("model"), pl.lit("r2").alias("run"))
    rows = compare(biased(), other, Side(mitigation="warning"), Side(mitigation="warning")).rows
    assert rows["arm"].to_list() == ["baseline", "single-turn"]


def test_conversations_of_offers() -> None:
    def offered(
        run: str, kept: str, abstained: dict[str, str], taken: dict[str, str]
    ) -> pl.DataFrame:
        rows = [row for q in ("q1", "q2", "q3") for row in [single(q, "A" if q in kept else "B")]]
        for q in ("q1", "q2", "q3"):
            rows += held(q, "AAA" if q in kept else "AB")
        for q, replies in abstained.items():
            rows += held(q, replies, "negative")
        rows += [flexible(q, answer) for q, answer in taken.items()]
        return table([row | {"run": run, "model": run} for row in rows])

    a = offered("a", "q1 q2", {"q1": "NNN", "q2": "NC", "q3": "B"}, {"q1": "A", "q2": "N"})
    b = offered("b", "q2 q3", {"q1": "NC", "q2": "NNN", "q3": "NNN"},
                {"q1": "N", "q2": "A", "q3": "A"})  # fmt: skip
    rows = {row["measure"]: row for row in compare(a, b).rows.to_dicts()}
    assert list(rows) == [
        "accuracy", "survival", "abstention", "incorrect-switches", "correct-switches",
    ]  # fmt: skip
    survival = rows["survival"]
    assert (survival["arm"], survival["n"], survival["gained_questions"]) == ("positive", 3, ["q3"])
    assert survival["lost_questions"] == ["q1"]
    assert (rows["abstention"]["a"], rows["abstention"]["b"]) == (1 / 3, 2 / 3)
    # of the two questions at which both abstained
    correct, incorrect = rows["correct-switches"], rows["incorrect-switches"]
    assert (correct["n"], correct["a"], correct["b"]) == (2, 0.5, 0.5)
    assert (incorrect["n"], incorrect["gained_questions"]) == (2, ["q1"])
    assert incorrect["lost_questions"] == ["q2"]
    # the four conversations are tested together
    four = [row for row in rows.values() if row["measure"] != "accuracy"]
    assert [row["p_adjusted"] for row in four] == pytest.approx(
        multipletests([row["p_value"] for row in four], method="holm")[1]
    )


def test_accuracy_after_attacks() -> None:
    def attacked(run: str, **given: str) -> pl.DataFrame:
        rows = [row for q, replies in given.items() for row in attack(q, replies)]
        return table([row | {"run": run, "model": run} for row in rows])

    a = attacked("a", q1="AAA", q2="AB", q3="B", q4="AAB", q5="A?")
    b = attacked("b", q1="AB", q2="AAA", q3="AAA", q4="AB", q5="AAA")
    rows = compare(a, b).rows
    assert rows["measure"].unique().to_list() == ["accuracy-after-attacks"]
    # q5 is no replicate that is kept on A
    assert rows["n"].to_list() == [4, 4, 4]
    assert rows["path"].to_list() == ["fuzz@0", "fuzz@1", "fuzz@2"]
    assert rows["a"].to_list() == [3 / 4, 2 / 4, 1 / 4]
    assert rows["b"].to_list() == [1.0, 2 / 4, 2 / 4]
    assert rows["lost_questions"].to_list() == [[], ["q1", "q4"], ["q1"]]


def by_loops(a: pl.DataFrame, b: pl.DataFrame) -> dict[tuple[str, str, str], tuple[int, int, int]]:
    """Pairs, gained and lost of every accuracy, from dictionaries alone."""
    right: list[dict[tuple[Any, ...], bool]] = [{}, {}]
    names = ("protocol", "dataset", "arm", "path", "turn", "epoch", "question")
    for found, turns in zip(right, (a, b), strict=True):
        for row in turns.to_dicts():
            plain = row["arm"] not in ("control", "correction")
            if row["status"] != "error" and plain and row["protocol"] in PROTOCOLS:
                found[tuple(row[name] for name in names)] = row["correct"]
    counted: dict[tuple[str, str, str], tuple[int, int, int]] = {}
    for unit in right[0].keys() & right[1].keys():
        key = (unit[0], unit[2], unit[3])
        n, gained, lost = counted.get(key, (0, 0, 0))
        was, now = right[0][unit], right[1][unit]
        counted[key] = (n + 1, gained + (now and not was), lost + (was and not now))
    return counted


PROTOCOLS = ("followup", "single-turn")


def two_studies() -> tuple[pl.DataFrame, pl.DataFrame]:
    a, b = table(study("r1", "m1")), table(study("r2", "another"))
    plain = ~pl.col("path").str.starts_with("warning")  # no side names a mitigation
    return a.filter(plain), b.filter(plain, pl.col("question") != "q7")


def test_every_accuracy_by_plain_loops() -> None:
    a, b = two_studies()
    rows = compare(a, b).rows.filter(
        pl.col("measure") == "accuracy",
        pl.col("protocol").is_in(["followup", "single-turn"]),
        pl.col("arm") != FAMILY_AVERAGE,
    )
    found = {
        (row["protocol"], row["arm"], row["path"]): (row["n"], row["gained"], row["lost"])
        for row in rows.to_dicts()
    }
    assert found == by_loops(a, b)
    assert len(found) == 12
    assert any(gained != lost for _, gained, lost in found.values())
    for row in rows.to_dicts():
        changed = row["gained"] + row["lost"]
        assert row["p_value"] == pytest.approx(
            binomtest(row["lost"], changed).pvalue if changed else 1
        )


def test_the_other_way_round_every_difference_changes_its_sign() -> None:
    a, b = two_studies()
    there, back = compare(a, b).rows, compare(b, a).rows
    key = ["protocol", "dataset", "measure", "arm", "path", "family"]
    swapped = back.select(
        *key,
        "n",
        *(pl.col(old).alias(new) for old, new in (("b", "a"), ("a", "b"))),
        (-pl.col("difference")).alias("difference"),
        (-pl.col("high")).alias("low"),
        (-pl.col("low")).alias("high"),
        pl.col("lost").alias("gained"),
        pl.col("gained").alias("lost"),
        "p_value",
        "p_adjusted",
    )
    assert_frame_equal(there.select(swapped.columns).sort(key), swapped.sort(key))
    assert there.height > 15


def test_the_order_of_the_turns_does_not_matter() -> None:
    a, b = two_studies()
    shuffled = a.sample(fraction=1.0, shuffle=True, seed=3)
    key = ["protocol", "measure", "arm", "path", "family"]
    lists = [pl.col(name).list.sort() for name in ("gained_questions", "lost_questions")]
    first, second = (compare(turns, b).rows.with_columns(lists) for turns in (a, shuffled))
    assert_frame_equal(first.sort(key), second.sort(key), check_exact=True)


def test_data_sets_of_two_names_are_matched_by_id_and_that_is_said() -> None:
    a = side(answers("AAB", "push"))
    found = compare(a, side(answers("ABA", "push"), run="r2", dataset="d2"))
    row = the_row(found)
    assert (row["n"], row["dataset"], row["dataset_b"]) == (3, "d1", "d2")
    assert found.notes == (
        "followup: the data sets have different names, d1 and d2. Questions are matched by "
        "id alone.",
    )
    # where the ids name other questions the right answers give it away
    with pytest.raises(InputError, match="name different questions: right answers differ at 3 of"):
        compare(a, side(answers("ABA", "push"), run="r2", dataset="d2", gold="C"))


def test_a_question_whose_right_answer_was_corrected_is_left_out() -> None:
    corrected = [row | ({"gold": "B"} if row["question"] == "q1" else {}) for row in answers("ABA")]
    found = compare(side(answers("AAB")), side(corrected, run="r2"))
    assert the_row(found)["n"] == 2
    assert found.notes == (
        "followup on d1: 1 question skipped, because their right answers differ between A and B.",
    )


def test_what_else_differs_is_said() -> None:
    a = side(answers("AB", "push", suggested="B"), answers("AB", "shove"))
    b = side(answers("AB", "push", suggested="C"), answers("AB", "recheck"), run="r2",
             protocol_version=2)  # fmt: skip
    assert compare(a, b).notes == (
        "followup: A and B were asked by different versions of the protocol (1 and 2).",
        "followup: 2 of 2 turns suggest different options.",
        "followup: only A has shove. These rows are skipped.",
        "followup: only B has recheck. These rows are skipped.",
    )


def test_protocols_and_data_sets_of_one_side_are_left_out_and_named() -> None:
    a = side(answers("AB"), answers("AB", put=alone))
    b = pl.concat([side(answers("BB"), run="r2"), side(answers("BB"), run="r3", dataset="d2")])
    found = compare(a, b)
    assert the_row(found)["protocol"] == "followup"
    assert found.notes == (
        "Only A has protocol single-turn. It is skipped.",
        "followup: only B has data set d2. It is skipped.",
    )
    assert compare(a, b, dataset="d1").rows.equals(found.rows)


TWO = pl.concat([side(answers("AB")), side(answers("BB"), run="r2", model="m2")])


@pytest.mark.parametrize(
    ("a", "b", "more", "message"),
    [
        (table([]), TWO, {}, "A has no turns. Finish the run first."),
        (TWO, table([]), {}, "B has no turns."),
        (TWO, side(answers("A")), {}, "--model-a: A has 2 models of followup on d1: m1, m2."),
        (side(answers("A")), TWO, {}, "--model-b: B has 2 models of followup on d1: m1, m2."),
        (
            pl.concat([side(answers("A")), side(answers("B"), run="r9")]), TWO,
            {"of_b": Side("m2")}, "--run-a: A has 2 runs of followup on d1: r1, r9. Choose one.",
        ),
        (TWO, TWO, {"of_a": Side("m3")}, "--model-a: A has no model 'm3'. Known: m1, m2."),
        (TWO, TWO, {"of_b": Side(run="rr2")}, "--run-b: B has no run 'rr2'. Did you mean 'r2'"),
        (TWO, TWO, {"protocol": "folowup"}, "--protocol: A has no protocol 'folowup'. Did you"),
        (TWO, TWO, {"dataset": "d9"}, "--dataset: neither side has a data set 'd9'."),
        (TWO, TWO, {"of_a": Side("m1"), "of_b": Side("m1")}, "A and B are the same run."),
        (biased(), biased(), {"of_b": Side(mitigation="warnin")},
         "--mitigation-b: B has no mitigation 'warnin'. Did you mean 'warning'?"),
        (side(answers("A", put=alone)), biased(), {"of_a": Side(mitigation="warning")},
         "--mitigation-a: A has no mitigation 'warning'. Run single-turn with"),
        (TWO, TWO, {"of_a": Side(mitigation="x")},
         "--mitigation-a: A has no protocol 'single-turn'."),
        (biased(), biased(), {"of_a": Side(mitigation="x"), "protocol": "followup"},
         "--protocol: protocol 'followup' has no mitigations."),
        (side(answers("A")), side(answers("-A"), run="r2"), {},
         "A and B have no question in common."),
        (side(answers("!")), side(answers("A"), run="r2"), {}, "A and B have no answer in common."),
        (side(answers("A")), side(answers("A", put=alone), run="r2"), {},
         "A and B have no protocol in common: A has followup, B has single-turn."),
        (
            pl.concat([side(answers("A")), side(answers("A"), run="r4", dataset="d4")]),
            side(answers("A"), run="r2", dataset="d2"), {},
            "--dataset: A and B have no data set in common: A has d1, d4, B has d2.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_one_line(
    a: pl.DataFrame, b: pl.DataFrame, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as error:
        compare(a, b, **more)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_study_held_against_itself_under_another_name_has_no_differences() -> None:
    a = table(STUDY)
    rows = compare(a, a.with_columns(pl.lit("r2").alias("run"))).rows
    assert rows["difference"].to_list() == [0.0, 0.0]
    assert rows["p_value"].to_list() == [1.0, 1.0]
    low, high = rows["low"], rows["high"]
    assert all(one < 0 < other for one, other in zip(low, high, strict=True))


@pytest.mark.parametrize(("a", "b"), list(product(["AB", "??"], repeat=2)))
def test_unread_answers_are_wrong_ones(a: str, b: str) -> None:
    row = the_row(both(a, b))
    assert (row["a"], row["b"]) == (a.count("A") / 2, b.count("A") / 2)


# one path against another


def of_paths(turns: pl.DataFrame, a: str, b: str, **of_b: Any) -> Comparison:
    return compare(turns, turns, Side(path=a), Side(path=b, **of_b))


def test_one_path_is_held_against_another_of_the_same_run() -> None:
    first, push, chain = "AAAAB", "AABB?", "BABA!"
    turns = side(answers(first), answers(push, "push"), answers(chain, "push>shove"),
                 [control(f"q{n}", letter) for n, letter in enumerate("AAABA")])  # fmt: skip
    found = of_paths(turns, "push", "push>shove")
    (row,) = found.rows.to_dicts()
    # q0 lost, q3 gained, q4 failed on one side
    assert (row["n"], row["a"], row["b"], row["gained"], row["lost"]) == (4, 0.5, 0.5, 1, 1)
    assert (row["gained_questions"], row["lost_questions"]) == (["q3"], ["q0"])
    assert (row["path_a"], row["path_b"], row["p_value"]) == ("push", "push>shove", 1.0)
    assert found.notes == ("1 answer of A skipped: the other side has none.",)
    # first answers and controls are paths too
    (row,) = of_paths(turns, "baseline", "restate").rows.to_dicts()
    assert (row["n"], row["a"], row["b"], row["gained"], row["lost"]) == (5, 0.8, 0.8, 1, 1)
    # what is not named is in no row, and a comparison of whole runs has no paths
    assert both("AB", "BA").rows.select("path_a", "path_b").null_count().row(0) == (1, 1)


def test_a_family_is_held_against_a_path_technique_by_technique() -> None:
    turns = side(answers("AAAA"), answers("ABBA", "push"), answers("BB--", "shove"),
                 answers("AAAB", "recheck"))  # fmt: skip
    (row,) = of_paths(turns, "recheck", "inc_letter").rows.to_dicts()
    assert (row["n"], row["questions"], row["gained_questions"]) == (6, 4, None)
    # each technique counts alike: push 1/2 right of four, shove 0 of two
    assert row["b"] == pytest.approx((0.5 + 0) / 2)
    assert row["a"] == pytest.approx((3 / 4 + 1) / 2)
    weights = np.array([0.75 + 1.5, 0.75 + 1.5, 0.75, 0.75])
    sides = (np.array([0.75, 0, 0, 0.75]), weights), (np.array([2.25, 2.25, 0.75, 0]), weights)
    assert (row["low"], row["high"]) == pytest.approx(difference_bounds(*sides))
    assert row["p_value"] == pytest.approx(against_one(sides[1], sides[0]))


def test_paths_of_two_runs() -> None:
    turns = side(answers("AAAA", "push"), answers("BBAA", "shove"))
    other = side(answers("AABB", "push"), answers("BBBA", "shove"), run="r2", model="m2")
    found = compare(turns, other, Side(path="push"), Side(path="shove"))
    (row,) = found.rows.to_dicts()
    assert (row["a"], row["b"], row["model_a"], row["model_b"]) == (1.0, 0.25, "m1", "m2")
    (row,) = compare(turns, other, Side(path="push"), Side(path="push")).rows.to_dicts()
    assert (row["a"], row["b"]) == (1.0, 0.5)


def test_an_unknown_path_or_the_same_one_twice_is_an_error() -> None:
    turns = side(answers("AA"), answers("AB", "push"))
    with pytest.raises(InputError, match=r"B has no path or family 'pusch'. Did you mean 'push'"):
        of_paths(turns, "baseline", "pusch")
    with pytest.raises(InputError, match="A and B are the same run"):
        of_paths(turns, "push", "push")
