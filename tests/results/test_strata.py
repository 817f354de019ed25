from typing import get_args

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from holdfast.errors import InputError
from holdfast.results.accuracy import RANKS, accuracy
from holdfast.results.declaration import TABLES
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE
from holdfast.results.missing import MISSING
from holdfast.results.strata import Stratum, strata, strata_columns
from tests.results.frames import STUDY, Row, alone, row_of, table, turn

STEPS = {"q1": "step2&3", "q2": "step2&3", "q3": "step1", "q4": "step1", "q5": None}
"""Of the first answers to them q1, q2, q3 and q5 are right: 4 of 5, 2 of 2, 1 of 2."""

STEPPED = [
    {**row, "step": STEPS[row["question"]]}
    for row in [
        turn("q1", "A"),
        turn("q2", "A"),
        turn("q3", "A"),
        turn("q4", "B"),
        turn("q5", "A"),
        turn("q1", "A", "push"),
        turn("q2", "B", "push"),
        turn("q3", "B", "push"),
        turn("q4", "B", "push"),
        turn("q5", "B", "push"),
        turn("q1", "B", "shove"),
        turn("q2", "B", "shove"),
        turn("q3", "A", "shove"),
        turn("q4", None, "shove", status="refused"),
        turn("q5", "A", "shove"),
    ]
]


def in_systems(model: str, **right: tuple[int, int]) -> list[Row]:
    """Four questions a system; how many are right first, and how many under the push."""
    return [
        turn(f"{system}{n}", "A" if n < numbers[n_turn] else "B", path, model=model, system=system)
        for system, numbers in right.items()
        for n in range(4)
        for n_turn, path in enumerate(("", "push"))
    ]


# --- steps ---


def test_each_step_has_the_rows_of_accuracy() -> None:
    measured = strata(table(STEPPED), "step")
    assert measured.columns == list(strata_columns("step"))
    for step in ("step1", "step2&3"):
        rows = [row for row in STEPPED if row["step"] == step]
        expected = accuracy(table(rows)).drop("axis", "depth", "n_all", "of_all", *MISSING, *RANKS)
        expected = expected.sort("arm", "path")
        found = measured.filter(pl.col("step") == step).sort("arm", "path")
        # Holm's correction is over the steps together
        assert_frame_equal(
            found.drop("step", "relative_to", "questions", "p_adjusted"),
            expected.drop("p_adjusted"),
        )


def test_steps_by_hand() -> None:
    measured = strata(table(STEPPED), "step")
    pushed = row_of(measured, "push", step="step2&3")
    assert (pushed["n"], pushed["correct"], pushed["accuracy"]) == (2, 1, 0.5)
    assert (pushed["baseline"], pushed["relative_change"]) == (1.0, -0.5)
    average = row_of(measured, "", FAMILY_AVERAGE, step="step1")
    # push 0 of 2, shove 1 of 2, first answers 1 of 2
    assert (average["accuracy"], average["baseline"]) == (0.25, 0.5)
    assert average["relative_change"] == -0.5
    assert (average["n"], average["unparsed"], average["refused"]) == (4, 1, 1)
    # two techniques of the same two questions
    assert (average["questions"], pushed["questions"]) == (2, 2)
    assert set(measured["relative_to"]) == {"stratum"}


def test_relative_to_the_overall_first_answers() -> None:
    measured = strata(table(STEPPED), "step", relative_to="overall")
    # 4 of 5, the question without a step among them
    assert set(measured["baseline"]) == {0.8}
    assert set(measured["relative_to"]) == {"overall"}
    changes = {
        (row["step"], row["arm"], row["path"]): row["relative_change"]
        for row in measured.iter_rows(named=True)
    }
    assert changes == {
        ("step1", BASELINE, ""): pytest.approx((0.5 - 0.8) / 0.8),
        ("step1", "followup", "push"): -1.0,
        ("step1", "followup", "shove"): pytest.approx((0.5 - 0.8) / 0.8),
        ("step1", FAMILY_AVERAGE, ""): pytest.approx((0.25 - 0.8) / 0.8),
        ("step2&3", BASELINE, ""): pytest.approx(0.25),
        ("step2&3", "followup", "push"): pytest.approx((0.5 - 0.8) / 0.8),
        ("step2&3", "followup", "shove"): -1.0,
        ("step2&3", FAMILY_AVERAGE, ""): pytest.approx((0.25 - 0.8) / 0.8),
    }


def test_each_model_has_an_overall_baseline_of_its_own() -> None:
    other = [{**row, "model": "m2", "run": "r2"} for row in STEPPED if row["question"] != "q4"]
    measured = strata(table([*STEPPED, *other]), "step", relative_to="overall")
    assert set(measured.filter(pl.col("model") == "m1")["baseline"]) == {0.8}
    assert set(measured.filter(pl.col("model") == "m2")["baseline"]) == {1.0}


def test_against_the_overall_baseline_every_turn_of_the_row_counts() -> None:
    rows = [
        turn("q1", "A", step="step1"),
        turn("q1", "A", "push", step="step1"),
        turn("q2", "B", "push", step="step1"),
        turn("q3", "B", "push", step="step2&3"),
    ]
    of_stratum = strata(table(rows), "step")
    assert row_of(of_stratum, "push", step="step1")["relative_change"] == 0.0
    overall = strata(table(rows), "step", relative_to="overall")
    assert row_of(overall, "push", step="step1")["relative_change"] == -0.5
    assert row_of(overall, "push", step="step2&3")["relative_change"] == -1.0


def test_an_unknown_baseline_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"'overal'.*Did you mean 'overall'"):
        strata(table(STEPPED), "step", relative_to="overal")  # type: ignore[arg-type]


def test_steps_come_in_their_natural_order() -> None:
    names = ["step10", "step2", "step1", "step2&3"]
    rows = [turn(f"q{n}", "A", path, step=names[n]) for n in range(4) for path in ("", "push")]
    measured = strata(table(rows), "step").filter(pl.col("path") == "push")
    assert measured["step"].to_list() == ["step1", "step2", "step2&3", "step10"]


def test_steps_are_in_no_order_of_degradation() -> None:
    rows = [
        turn(name, answer, path, step=name)
        for path, answers in (("", "AA"), ("push", "BA"))
        for name, answer in zip(("step1", "step2"), answers, strict=True)
    ]
    measured = strata(table(rows), "step")
    pushed = measured.filter(pl.col("arm") == FAMILY_AVERAGE)
    assert pushed.select("step", "relative_change").rows() == [("step1", -1.0), ("step2", 0.0)]


def test_the_rows_of_a_family_stand_together_and_those_of_a_step_within() -> None:
    second = [{**row, "model": "m0", "run": "r0"} for row in STEPPED]
    measured = strata(table([*STEPPED, *second]), "step")
    assert measured.select("family", "step", "arm", "path", "model").rows() == [
        (family, step, arm, path, model)
        for family, arms in (
            ("", [(BASELINE, "")]),
            ("inc_letter", [("followup", "push"), ("followup", "shove"), (FAMILY_AVERAGE, "")]),
        )
        for step in ("step1", "step2&3")
        for arm, path, model in _rows(arms)
    ]


def _rows(arms: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Models by arm, the averages last, as in accuracy."""
    techniques = [(arm, path) for arm, path in arms if arm != FAMILY_AVERAGE]
    averages = [(arm, path) for arm, path in arms if arm == FAMILY_AVERAGE]
    return [(*row, model) for part in (techniques, averages) for model in ("m1", "m0")
            for row in part]  # fmt: skip


# --- systems ---


def test_systems_come_from_the_least_to_the_most_degraded() -> None:
    rows = in_systems("m1", heart=(4, 2), lung=(4, 4), eye=(4, 0))
    measured = strata(table(rows), "system").filter(pl.col("path") == "push")
    assert measured["system"].to_list() == ["lung", "heart", "eye"]


def test_the_order_of_systems_is_of_the_mean_over_models() -> None:
    rows = in_systems("m1", heart=(4, 3), lung=(4, 2))
    assert _systems(rows) == ["heart", "lung"]
    # heart -0.25 and -1, lung -0.5 and -0.5: the means turn the order round
    both = [*rows, *in_systems("m2", heart=(4, 0), lung=(4, 2))]
    assert _systems(both) == ["lung", "heart"]


def test_each_family_has_an_order_of_its_own() -> None:
    rows = in_systems("m1", heart=(4, 2), lung=(4, 4))
    rechecked = [
        {**turn(row["question"], "A" if row["system"] == "heart" else "B", "recheck"),
         "system": row["system"]}
        for row in rows if not row["path"]
    ]  # fmt: skip
    assert _systems([*rows, *rechecked]) == ["lung", "heart"]
    assert _systems([*rows, *rechecked], "rethink") == ["heart", "lung"]


def test_systems_without_a_change_come_last() -> None:
    rows = in_systems("m1", heart=(4, 0), abdomen=(0, 4), lung=(4, 2))
    assert _systems(rows) == ["lung", "heart", "abdomen"]


def test_the_order_does_not_depend_on_what_the_change_is_relative_to_alone() -> None:
    # heart falls from 4 to 2, lung from 2 to 2: overall baseline is 6 of 8, both end at 2 of 4
    rows = in_systems("m1", heart=(4, 2), lung=(2, 2))
    assert _systems(rows) == ["lung", "heart"]
    tied = strata(table(rows), "system", relative_to="overall")
    # a tie falls to the natural order
    assert tied.filter(pl.col("path") == "push")["system"].to_list() == ["heart", "lung"]


def _systems(rows: list[Row], family: str = "inc_letter") -> list[str]:
    measured = strata(table(rows), "system")
    averages = measured.filter(pl.col("arm") == FAMILY_AVERAGE, pl.col("family") == family)
    return averages["system"].unique(maintain_order=True).to_list()


def test_mitigations_do_not_order_systems() -> None:
    answers = {"": "AA", "push": "AB", "warning>push": "BA", "example>push": "BA"}
    rows = [
        alone(system, answer, path, system=system)
        for path, given in answers.items()
        for system, answer in zip(("lung", "heart"), given, strict=True)
    ]
    assert _systems(rows) == ["lung", "heart"]


# --- any stratum ---


@pytest.mark.parametrize("by", get_args(Stratum))
def test_turns_without_a_stratum_are_in_no_row(by: Stratum) -> None:
    assert strata(table(STUDY), by).height == 0
    assert strata(table(STUDY), by, relative_to="overall").height == 0


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("accuracy by step", "step"),
        ("accuracy by system", "system"),
        ("accuracy by specialty", "specialty"),
        ("accuracy by subject", "subject"),
    ],
)
def test_tables_of_strata_take_a_baseline(name: str, by: Stratum) -> None:
    rows = table([{**row, by: "one"} for row in STUDY])
    assert_frame_equal(TABLES[name](rows), strata(rows, by))
    overall = TABLES[name](rows, relative_to="overall")
    assert_frame_equal(overall, strata(rows, by, relative_to="overall"))


def test_without_first_answers_a_stratum_has_accuracies_only() -> None:
    rows = table([turn("q1", "A", "push", step="step1")])
    for relative_to in ("stratum", "overall"):
        row = row_of(TABLES["accuracy by step"](rows, relative_to=relative_to), "push")
        assert row["accuracy"] == 1.0
        assert row["baseline"] is row["relative_change"] is None
