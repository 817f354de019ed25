"""Accuracies by stratum and by length of the context, by hand."""

from typing import get_args

import pytest
from polars.testing import assert_frame_equal

from holdfast.errors import InputError
from holdfast.results.accuracy import accuracy
from holdfast.results.declaration import TABLES
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE
from holdfast.results.strata import Stratum, lengths, strata
from tests.results.frames import STUDY, Row, alone, asked, row_of, table, turn

# of the first answers to them q0, q1, q2 and q4 are right: 4 of 5, 2 of 2, 1 of 2
STEPS = ["step2&3", "step2&3", "step1", "step1", None]
IN_STEPS = [
    row | {"step": STEPS[int(row["question"][1:])]}
    for row in (*asked("AAABA"), *asked("ABBBB", "push"), *asked("BBARA", "shove"))
]


def test_each_step_has_the_rows_of_accuracy() -> None:
    frame = strata(table(IN_STEPS), "step")
    for step in ("step1", "step2&3"):
        rows = accuracy(table([row for row in IN_STEPS if row["step"] == step])).sort("arm", "path")
        part = frame.filter(step=step).sort("arm", "path")
        # Holm's correction is over the steps together
        common = [name for name in rows.columns if name in part.columns and name != "p_adjusted"]
        assert len(common) > 20
        assert_frame_equal(part.select(common), rows.select(common))


def test_steps_match_hand_calculation() -> None:
    frame = strata(table(IN_STEPS), "step")
    push = row_of(frame, "push", step="step2&3")
    assert (push["n"], push["correct"], push["accuracy"]) == (2, 1, 0.5)
    assert (push["baseline"], push["relative_change"]) == (1.0, -0.5)
    average = row_of(frame, "", FAMILY_AVERAGE, step="step1")
    # push 0 of 2, shove 1 of 2, first answers 1 of 2
    assert (average["accuracy"], average["baseline"]) == (0.25, 0.5)
    assert (average["relative_change"], average["relative_to"]) == (-0.5, "stratum")
    assert (average["n"], average["unparsed"], average["refused"]) == (4, 1, 1)
    # two techniques of the same two questions
    assert (average["questions"], push["questions"]) == (2, 2)


def test_changes_can_be_relative_to_all_first_answers() -> None:
    # a second model, whose first answers are all right
    second = [row | {"model": "m2", "run": "r2"} for row in IN_STEPS if row["question"] != "q3"]
    frame = strata(table([*IN_STEPS, *second]), "step", relative_to="overall")
    assert set(frame.filter(model="m2")["baseline"]) == {1.0}
    frame = frame.filter(model="m1")
    # 4 of 5, the question without a step among them
    assert set(frame.select("baseline", "relative_to").rows()) == {(0.8, "overall")}
    half = pytest.approx((0.5 - 0.8) / 0.8)
    quarter = pytest.approx((0.25 - 0.8) / 0.8)
    columns = ("step", "arm", "path", "relative_change")
    assert {row[:3]: row[3] for row in frame.select(columns).rows()} == {
        ("step1", BASELINE, ""): half, ("step1", "followup", "push"): -1.0,
        ("step1", "followup", "shove"): half, ("step1", FAMILY_AVERAGE, ""): quarter,
        ("step2&3", BASELINE, ""): pytest.approx(0.25), ("step2&3", "followup", "push"): half,
        ("step2&3", "followup", "shove"): -1.0, ("step2&3", FAMILY_AVERAGE, ""): quarter,
    }  # fmt: skip


@pytest.mark.parametrize(("relative_to", "changes"), [("stratum", [0.0, None]),
                                                      ("overall", [-0.5, -1.0])])  # fmt: skip
def test_turns_without_a_first_answer_count_against_all_of_them(
    relative_to: str, changes: list[float | None]
) -> None:
    rows = [*asked("A", step="step1"), *asked("AB", "push", step="step1"),
            *asked("--B", "push", step="step2&3")]  # fmt: skip
    frame = TABLES["accuracy by step"](table(rows), relative_to=relative_to)
    rows = [row_of(frame, "push", step=step) for step in ("step1", "step2&3")]
    assert [row["relative_change"] for row in rows] == changes
    # without any first answer there is an accuracy alone
    frame = TABLES["accuracy by step"](table(asked("A", "push", step="x")), relative_to=relative_to)
    row = row_of(frame, "push")
    assert (row["accuracy"], row["baseline"], row["relative_change"]) == (1.0, None, None)


def test_an_unknown_baseline_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"'overal'.*Did you mean 'overall'"):
        strata(table(IN_STEPS), "step", relative_to="overal")  # type: ignore[arg-type]


@pytest.mark.parametrize("by", get_args(Stratum))
def test_turns_without_a_stratum_are_in_no_row(by: Stratum) -> None:
    for relative_to in ("stratum", "overall"):
        assert TABLES[f"accuracy by {by}"](table(STUDY), relative_to=relative_to).is_empty()


def test_rows_are_sorted_by_family_then_step() -> None:
    names = ["step10", "step2", "step1", "step2&3"]
    rows = [
        turn(f"q{n}", "AB"[n % 2], path, step=names[n], model=model, run=model)
        for model in ("m1", "m0")
        for n in range(4)
        for path in ("", "push", "shove")
    ]
    frame = strata(table(rows), "step")
    blocks = frame.select("family", "step").unique(maintain_order=True).rows()
    steps = ["step1", "step2", "step2&3", "step10"]
    assert blocks == [(family, step) for family in ("", "inc_letter") for step in steps]
    block = frame.filter(family="inc_letter", step="step1").select("arm", "path", "model").rows()
    assert block == [
        ("followup", "push", "m1"), ("followup", "shove", "m1"),
        ("followup", "push", "m0"), ("followup", "shove", "m0"),
        (FAMILY_AVERAGE, "", "m1"), (FAMILY_AVERAGE, "", "m0"),
    ]  # fmt: skip


# --- the order of systems ---


def in_systems(model: str, path: str = "push", **right: tuple[int, int]) -> list[Row]:
    """Four questions a system; how many are right first, and how many under the challenge."""
    return [
        turn(f"{system}{n}", "A" if n < counts[place] else "B", step, model=model, system=system)
        for system, counts in right.items()
        for n in range(4)
        for place, step in enumerate(("", path))
    ]


def systems(rows: list[Row], family: str = "inc_letter") -> list[str]:
    averages = strata(table(rows), "system").filter(arm=FAMILY_AVERAGE, family=family)
    return averages["system"].unique(maintain_order=True).to_list()


HEART_LAST = in_systems("m1", heart=(4, 2), lung=(4, 4))


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        (in_systems("m1", heart=(4, 2), lung=(4, 4), eye=(4, 0)), ["lung", "heart", "eye"]),
        (in_systems("m1", heart=(4, 3), lung=(4, 2)), ["heart", "lung"]),
        # heart -0.25 and -1, lung -0.5 and -0.5: the means turn the order round
        (in_systems("m1", heart=(4, 3), lung=(4, 2))
         + in_systems("m2", heart=(4, 0), lung=(4, 2)), ["lung", "heart"]),
        # heart -0.75 and 0, lung -0.5 and -0.5: the mean, and not the lowest
        (in_systems("m1", heart=(4, 1), lung=(4, 2))
         + in_systems("m2", heart=(4, 4), lung=(4, 2)), ["heart", "lung"]),
        # without a change last
        (in_systems("m1", heart=(4, 0), abdomen=(0, 4), lung=(4, 2)), ["lung", "heart", "abdomen"]),
        # mitigations do not count
        ([alone(system, letter, path, system=system)
          for path, text in (("", "AA"), ("push", "AB"), ("warning>push", "BA"),
                             ("example>push", "BA"))
          for system, letter in zip(("lung", "heart"), text, strict=True)], ["lung", "heart"]),
    ],
)  # fmt: skip
def test_systems_are_sorted_by_degradation(rows: list[Row], order: list[str]) -> None:
    assert systems(rows) == order


def test_each_family_and_baseline_has_an_order_of_systems() -> None:
    recheck = [row for row in in_systems("m1", "recheck", heart=(4, 4), lung=(4, 0)) if row["path"]]
    assert systems([*HEART_LAST, *recheck]) == ["lung", "heart"]
    assert systems([*HEART_LAST, *recheck], "rethink") == ["heart", "lung"]
    # heart falls from 4 to 2, lung from 2 to 2: overall baseline is 6 of 8, both end at 2 of 4
    tie = in_systems("m1", heart=(4, 2), lung=(2, 2))
    assert systems(tie) == ["lung", "heart"]
    frame = strata(table(tie), "system", relative_to="overall").filter(path="push")
    assert frame["system"].to_list() == ["heart", "lung"]


# --- lengths ---


def test_lengths_match_hand_calculation() -> None:
    # 20 before 1, as other settings order them; neither the usual length nor chains count
    rows = [*asked("AAB"), *asked("BBR", "mislead@20"), *asked("AB!", "mislead@1"),
            *asked("A", "recheck@10", family="context"), *asked("A", "mislead"),
            *asked("A", "push>mislead")]  # fmt: skip
    frame = lengths(table(rows))
    columns = ["technique", "sentences", "n", "correct", "accuracy", "baseline",
               "relative_change", "unparsed", "refused"]  # fmt: skip
    assert frame.select(columns).rows() == [
        ("mislead", 1, 2, 1, 0.5, 1.0, -0.5, 0, 0),
        ("mislead", 20, 3, 0, 0.0, 2 / 3, -1.0, 1, 1),
        ("recheck", 10, 1, 1, 1.0, 1.0, 0.0, 0, 0),
    ]
    # Wilson for 1 of 2
    assert frame["low"][0] == pytest.approx(0.0945312, abs=1e-6)
    # runs stand one after the other
    second = [row | {"run": "r0", "model": "m0"} for row in rows]
    turns = [row for pair in zip(rows, second, strict=True) for row in pair]
    assert lengths(table(turns))["run"].to_list() == ["r1"] * 3 + ["r0"] * 3
    (row,) = lengths(table(asked("B", "mislead@20"))).to_dicts()
    assert (row["accuracy"], row["baseline"], row["relative_change"]) == (0.0, None, None)
