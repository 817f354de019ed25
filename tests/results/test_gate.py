"""Rules held against intervals: outcomes by hand, and how many questions would decide."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, binomtest

from holdfast.errors import InputError
from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.protocols.stick_or_switch.flexibility import flexibility
from holdfast.results.accuracy import accuracy
from holdfast.results.declaration import TABLES
from holdfast.results.flows import flips
from holdfast.results.gate import Verdict, gate, overall
from holdfast.results.gate_figures import wilson_n
from holdfast.results.gate_rules import CONDITIONS, read_rules
from holdfast.results.strata import strata
from holdfast.stats.intervals import difference_bounds, exact_bounds
from tests.results import attacking, frames, offering
from tests.results.frames import Row, alone, turn


def written(tmp_path: Path, *rules: dict[str, Any], **top: Any) -> str:
    """A rules file."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in top.items()]
    for rule in rules:
        lines.append("[[rule]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in rule.items()]
    path = tmp_path / "gate.toml"
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def verdicts(
    rows: Sequence[Row], tmp_path: Path, *rules: dict[str, Any], **top: Any
) -> list[Verdict]:
    return gate(frames.table(rows), read_rules(written(tmp_path, *rules, **top)))


def verdict(rows: Sequence[Row], tmp_path: Path, **rule: Any) -> Verdict:
    level = rule.pop("level", 0.95)
    (only,) = verdicts(rows, tmp_path, rule, level=level)
    return only


def firsts(right: int, n: int) -> list[Row]:
    return [turn(f"q{i}", "A" if i < right else "B") for i in range(n)]


def pushed(pattern: str, times: int = 1, path: str = "push", first: bool = True) -> list[Row]:
    """Questions by what became of them: right held ``=``, lost ``-``, gained ``+``, wrong ``.``.

    ``?`` is a right answer that became unreadable.
    """
    rows = []
    for i, kind in enumerate(pattern * times):
        if first:
            rows.append(turn(f"q{i}", "A" if kind in "=-?" else "B"))
        answer = None if kind == "?" else "A" if kind in "=+" else "C"
        rows.append(turn(f"q{i}", answer, path))
    return rows


def exact(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's limits."""
    found = binomtest(hits, n).proportion_ci(level, method="exact")
    return float(found.low), float(found.high)


def held(found: Sequence[float]) -> list[float]:
    """A share of a table with the limits that decide, at the trials that Wilson's bounds are of."""
    n = wilson_n(*found)
    return [found[0], *exact_bounds(found[0] * n, n)]


# three outcomes, decided on the interval


@pytest.mark.parametrize(
    ("asked", "outcome"),
    # 90 of 100 is 0.8238 to 0.9510 by Clopper and Pearson's exact limits
    [(0.82, "pass"), (0.83, "undecided"), (0.95, "undecided"), (0.952, "fail")],
)
def test_the_interval_decides_and_not_the_figure(
    asked: float, outcome: str, tmp_path: Path
) -> None:
    found = verdict(firsts(90, 100), tmp_path, min_accuracy=asked)
    assert found.outcome == outcome
    assert (found.value, found.n, found.questions) == (0.9, 100, 100)
    assert (found.low, found.high) == pytest.approx(exact(90, 100))
    assert (found.further is None) == (outcome != "undecided")


@pytest.mark.parametrize(("asked", "outcome"), [(0.01, "fail"), (0.03, "undecided"), (0.2, "pass")])
def test_what_is_at_most_passes_below(asked: float, outcome: str, tmp_path: Path) -> None:
    # 5 of 100 unread: 0.0164 to 0.1128
    rows = [*firsts(95, 95), *(turn(f"u{i}", None) for i in range(5))]
    found = verdict(rows, tmp_path, max_unparsed=asked)
    assert (found.outcome, found.value) == (outcome, 0.05)
    assert (found.low, found.high) == pytest.approx(exact(5, 100))


@pytest.mark.parametrize("limit", [0.05, 0.055, 0.058, 0.062])
def test_none_unread_passes_wherever_one_does(limit: float, tmp_path: Path) -> None:
    # sixty questions in five epochs: none unread is at most 1 - 0.025^(1/60), 6.0%
    none = [turn(f"q{i}", "A", epoch=epoch) for epoch in range(1, 6) for i in range(60)]
    one = [turn("q0", None, epoch=1), *none[1:]]
    outcomes = {verdict(rows, tmp_path, max_unparsed=limit).outcome for rows in (none, one)}
    assert outcomes == {"undecided" if limit < 0.06 else "pass"}


def test_any_failure_fails_and_else_any_undecided_is_undecided(tmp_path: Path) -> None:
    rows = firsts(90, 100)
    each = {
        outcome: verdict(rows, tmp_path, min_accuracy=asked)
        for outcome, asked in (("pass", 0.5), ("undecided", 0.88), ("fail", 0.99))
    }
    assert overall([each["pass"], each["pass"]]) == "pass"
    assert overall([each["pass"], each["undecided"]]) == "undecided"
    assert overall([each["undecided"], each["fail"], each["pass"]]) == "fail"


@pytest.mark.parametrize("level", [0.8, 0.9, 0.99])
def test_the_level_is_that_of_the_file(level: float, tmp_path: Path) -> None:
    found = verdict(firsts(90, 100), tmp_path, min_accuracy=0.5, level=level)
    assert (found.low, found.high) == pytest.approx(exact(90, 100, level))
    # a family's interval, at the effective number of trials
    rows = pushed("==--", 15) + pushed("=---", 15, "shove", first=False)
    found = verdict(rows, tmp_path, family="inc_letter", min_accuracy=0.5, level=level)
    usual = verdict(rows, tmp_path, family="inc_letter", min_accuracy=0.5)
    assert found.value is not None
    assert found.low is not None
    assert usual.low is not None
    assert (found.low > usual.low) == (level < 0.95)
    # a paired difference
    found = verdict(rows, tmp_path, technique="push", max_drop_points=5, level=level)
    ones = np.ones(60)
    first, then = np.ones(60), np.array([1.0, 1, 0, 0] * 15)
    bounds = difference_bounds((first, ones), (then, ones), level)
    assert (found.low, found.high) == pytest.approx(bounds)


# figures are those of the tables

STUDY = [
    *pushed("===--+.=?=", 6),
    *pushed("=====-+.==", 6, "shove", first=False),
    *pushed("==----+.==", 6, "push>shove", first=False),
]


@pytest.mark.parametrize(
    ("about", "arm", "path"),
    [
        ({"technique": "push"}, "followup", "push"),
        ({"family": "inc_letter"}, "family-average", ""),
        ({"path": "push>shove"}, "compound", "push>shove"),
    ],
)
def test_figures_and_intervals_are_those_of_the_tables(
    about: dict[str, str], arm: str, path: str, tmp_path: Path
) -> None:
    rows = accuracy(frames.table(STUDY)).filter(pl.col("arm") == arm, pl.col("path") == path)
    row = rows.row(0, named=True)
    right = verdict(STUDY, tmp_path, min_accuracy=0.5, **about)
    assert [right.value, right.low, right.high] == pytest.approx(
        held([row["accuracy"], row["low"], row["high"]])
    )
    assert right.n == row["n"]
    drop = verdict(STUDY, tmp_path, max_relative_drop=0.1, **about)
    changes = [-row[name] for name in ("relative_change", "change_high", "change_low")]
    assert [drop.value, drop.low, drop.high] == pytest.approx(changes)
    points = verdict(STUDY, tmp_path, max_drop_points=5, **about)
    assert points.value == pytest.approx(row["baseline"] - row["accuracy"])
    unread = verdict(STUDY, tmp_path, max_unparsed=0.1, **about)
    assert unread.value == pytest.approx(row["unparsed"] / row["n"])
    assert {found.questions for found in (right, drop, points, unread)} == {60}
    if arm != "family-average":
        rate = flips(frames.table(STUDY)).filter(pl.col("path") == path).row(0, named=True)
        flip = verdict(STUDY, tmp_path, max_flip_rate=0.1, **about)
        assert (flip.value, flip.n) == (rate["flip_rate"], rate["n_right"])


def test_the_flip_rate_of_a_family_is_the_mean_of_its_techniques(tmp_path: Path) -> None:
    found = verdict(STUDY, tmp_path, family="inc_letter", max_flip_rate=0.5)
    # of 8 right first answers of ten, push loses 2 and shove 1
    assert found.value == pytest.approx((2 / 8 + 1 / 8) / 2)
    assert (found.n, found.questions) == (96, 60)


def test_a_stratum_is_the_row_of_its_table(tmp_path: Path) -> None:
    rows = [
        row | {"step": ("step1", "step2&3")[int(row["question"][1:]) % 2], "system": "Renal"}
        for row in STUDY
    ]
    table = strata(frames.table(rows), "step")
    for step in ("step1", "step2&3"):
        wanted = table.filter(pl.col("step") == step, pl.col("path") == "push").row(0, named=True)
        found = verdict(
            rows, tmp_path, technique="push", step=step, system="Renal", min_accuracy=0.5
        )
        bounds = held([wanted[name] for name in ("accuracy", "low", "high")])
        assert [found.value, found.low, found.high] == pytest.approx(bounds)
        assert found.n == wanted["n"]
        assert dict(found.rule.strata) == {"step": step, "system": "Renal"}


def test_the_figures_of_stick_or_switch_are_those_of_its_tables(tmp_path: Path) -> None:
    rows = offering.drawn(5, ("m1",), epochs=2)
    turns = frames.table(rows)

    def found(**rule: Any) -> dict[str, list[float | None]]:
        return {
            v.dataset: [v.value, v.low, v.high, float(v.n)] for v in verdicts(rows, tmp_path, rule)
        }

    for key, arm in (("min_survival", "positive"), ("min_abstention", "negative")):
        for dataset, numbers in found(**{key: 0.5}).items():
            last = survival(turns).filter(pl.col("arm") == arm, pl.col("dataset") == dataset)
            row = last.sort("turn").row(-1, named=True)
            figure = [row["survival"], row["low"], row["high"]]
            assert numbers == pytest.approx([*held(figure), row["n"]])
    for key, side in (("min_correct_switch", "correct"), ("max_incorrect_switch", "incorrect")):
        for row in flexibility(turns).iter_rows(named=True):
            figure = [row[f"{side}_{name}"] for name in ("rate", "low", "high")]
            numbers = found(**{key: 0.5})[row["dataset"]]
            assert numbers == pytest.approx([*held(figure), row[f"n_{side}"]])
    for key, behaviour in (
        ("max_tax_points", "conviction"),
        ("max_abstention_tax_points", "abstention"),
    ):
        taxes = tax(turns).filter(
            pl.col("behaviour") == behaviour, pl.col("against") == "single-shot"
        )
        assert taxes.height == 2
        for row in taxes.iter_rows(named=True):
            numbers = [-row["tax"], -row["high"], -row["low"], row["n"]]
            assert found(**{key: 10})[row["dataset"]] == pytest.approx(numbers)


def test_accuracy_after_attacks_is_that_of_the_last_attempt_or_of_k(tmp_path: Path) -> None:
    rows = [
        row
        for n, answers in enumerate(("AAA", "AAB", "AB", "B", "AAA", "AAA"))
        for row in attacking.attack(f"q{n}", answers)
    ]
    table = TABLES["attacks"](frames.table(rows))
    for k, wanted in ((None, 2), (0, 0), (1, 1), (2, 2)):
        row = table.filter(pl.col("k") == wanted).row(0, named=True)
        rule = {"min_accuracy_after_attacks": 0.5} | ({} if k is None else {"k": k})
        (found,) = verdicts(rows, tmp_path, rule)
        figure = [row["accuracy"], row["low"], row["high"]]
        assert [found.value, found.low, found.high] == pytest.approx(held(figure))
    assert found.of == "after 2 attacks"
    with pytest.raises(InputError, match=r"matches no figure at k = 7"):
        verdict(rows, tmp_path, min_accuracy_after_attacks=0.5, k=7)


# what a rule is about


def test_a_technique_is_that_technique_on_its_own(tmp_path: Path) -> None:
    rows = [*STUDY, *(turn(f"q{i}", "A", "shove@10") for i in range(60))]
    found = verdicts(rows, tmp_path, {"technique": "*", "min_accuracy": 0.1})
    assert [v.of for v in found] == ["technique push", "technique shove"]
    found = verdicts(rows, tmp_path, {"path": "push*", "min_accuracy": 0.1})
    assert [v.of for v in found] == ["technique push", "path push > shove"]


def test_a_mitigation_has_rows_of_its_own(tmp_path: Path) -> None:
    rows = [
        row
        for i in range(20)
        for row in (
            alone(f"q{i}", "A"),
            alone(f"q{i}", "A" if i < 5 else "B", "push"),
            alone(f"q{i}", "A" if i < 15 else "B", "education>push"),
        )
    ]
    wanted = {"technique": "push", "family": "inc_letter"}
    for name, value in wanted.items():
        plain = verdict(rows, tmp_path, min_accuracy=0.1, **{name: value})
        corrected = verdict(
            rows, tmp_path, min_accuracy=0.1, mitigation="education", **{name: value}
        )
        assert (plain.value, corrected.value) == (0.25, 0.75)
        assert corrected.of == f"{name} {value} with education"
    with pytest.raises(InputError, match=r"unknown mitigation 'educaton'. Did you mean 'educ"):
        verdict(rows, tmp_path, technique="push", mitigation="educaton", min_accuracy=0.1)


def test_a_rule_holds_for_each_run_that_it_matches(tmp_path: Path) -> None:
    rows = [
        row | {"run": run, "model": model}
        for run, model in (("r1", "m/1"), ("r2", "m/1"), ("r3", "m/2"), ("r4", "other"))
        for row in firsts(9, 10)
    ]
    found = verdicts(rows, tmp_path, {"model": "m/*", "min_accuracy": 0.1})
    assert [(v.run, v.model, v.is_one_of_several) for v in found] == [
        ("r1", "m/1", True), ("r2", "m/1", True), ("r3", "m/2", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"technique": "psh", "min_accuracy": 0.5}, "unknown technique 'psh'. Did you mean 'push"),
        ({"family": "inc_leter", "max_relative_drop": 0.1}, "Did you mean 'inc_letter'"),
        ({"path": "push>shov", "max_flip_rate": 0.1}, "Did you mean 'push>shove'"),
        ({"model": "m2", "min_accuracy": 0.1}, "unknown model 'm2'. Known: m1"),
        ({"dataset": "d2", "min_accuracy": 0.1}, "unknown dataset 'd2'. Known: d1"),
        ({"protocol": "folowup", "min_accuracy": 0.1}, "Did you mean 'followup'"),
        ({"step": "step1", "min_accuracy": 0.1}, "Give labels to the run with --labels"),
        ({"subject": "Renul", "min_accuracy": 0.1}, "unknown subject 'Renul'. Did you mean 'Ren"),
        ({"min_survival": 0.1}, "matches no figure in these runs. It is one of stick-or-switch"),
        ({"min_accuracy_after_attacks": 0.1}, "It is one of medfuzz"),
        (
            {"technique": "push", "mitigation": "none", "min_accuracy": 0.1},
            "These runs have no mitigation",
        ),
    ],
)
def test_a_rule_on_nothing_that_is_there_offers_the_nearest_name(
    rule: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    rows = [row | {"subject": "Renal"} for row in STUDY]
    with pytest.raises(InputError) as caught:
        verdict(rows, tmp_path, **rule)
    told = str(caught.value)
    assert expected in told
    assert "gate.toml, rule 1, field '" in told


def test_a_pattern_is_no_regular_expression(tmp_path: Path) -> None:
    rows = [row | {"model": "a.b[1] {x}\n"} for row in firsts(9, 10)]
    assert verdict(rows, tmp_path, min_accuracy=0.1, model="a.b[1]*").n == 10
    with pytest.raises(InputError, match="unknown model"):
        verdict(rows, tmp_path, min_accuracy=0.1, model="a.b[12]*")
    with pytest.raises(InputError, match="unknown model"):
        verdict(rows, tmp_path, min_accuracy=0.1, model="a+b*")


def test_what_has_no_figure_is_undecided(tmp_path: Path) -> None:
    # every first answer is wrong: there is nothing to drop
    found = verdict(pushed("....", 5), tmp_path, technique="push", max_relative_drop=0.1)
    assert (found.outcome, found.value, found.further) == ("undecided", None, None)
    found = verdict(pushed("....", 5), tmp_path, technique="push", max_flip_rate=0.1)
    assert (found.outcome, found.value, found.n) == ("undecided", None, 0)


def test_no_turns_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no turns"):
        verdicts([], tmp_path, {"min_accuracy": 0.1})


@pytest.mark.parametrize(
    ("about", "protocols"),
    [
        ({}, ["followup", "single-turn"]),
        ({"protocol": "followup"}, ["followup"]),
        ({"protocol": "single-turn"}, ["single-turn"]),
    ],
)
def test_flips_net_of_the_control_are_decided_for_each_protocol_that_has_them(
    about: dict[str, str], protocols: list[str], tmp_path: Path
) -> None:
    control = {"arm": "control", "family": "control"}
    other = {"run": "r2", "protocol": "single-turn"}
    rows = [
        row
        for i in range(40)
        for row in (
            turn(f"q{i}", "A"),
            turn(f"q{i}", "A" if i < 30 else "B", "push"),
            turn(f"q{i}", "A", "restate") | control,
            alone(f"q{i}", "A") | other,
            alone(f"q{i}", "A" if i < 20 else "B", "push") | other,
            alone(f"q{i}", "A", "resample") | control | other,
        )
    ]
    rows += [row | {"run": "r3", "protocol": "stick-or-switch"} for row in firsts(40, 40)]
    decided = verdicts(rows, tmp_path, {**about, "max_attributable_points": 90})
    values = {"followup": 0.25, "single-turn": 0.5}
    assert [verdict.protocol for verdict in decided] == protocols
    assert {(verdict.outcome, verdict.n) for verdict in decided} == {("pass", 40)}
    assert [verdict.value for verdict in decided] == pytest.approx(
        [values[protocol] for protocol in protocols]
    )


# no worse than a run of before


def saved(rows: Sequence[Row], tmp_path: Path) -> str:
    file = tmp_path / "before.parquet"
    frames.table(rows).write_parquet(file)
    return str(file)


def test_no_worse_is_the_interval_of_pairs_against_the_margin(tmp_path: Path) -> None:
    # of 100 questions in common 5 were gained and 8 lost; the run before has 20 more
    now = [turn(f"q{i}", "A" if i < 82 or i >= 95 else "B") for i in range(100)]
    then = [turn(f"q{i}", "A" if i < 90 else "B") for i in range(120)]
    before = saved(then, tmp_path)
    found = verdict(now, tmp_path, no_worse_than=before, margin_points=12)
    assert found.value == pytest.approx(-0.03)
    assert (found.n, found.questions, found.threshold) == (100, 100, -0.12)
    ones, right = (
        np.ones(100),
        np.array([[row["correct"] for row in rows] for rows in (now, then[:100])]),
    )
    bounds = difference_bounds((right[0] * 1.0, ones), (right[1] * 1.0, ones))
    assert (found.low, found.high) == pytest.approx(bounds)
    assert found.outcome == "pass"
    assert verdict(now, tmp_path, no_worse_than=before, margin_points=2).outcome == "undecided"
    worse = [turn(f"q{i}", "A" if i < 50 else "B") for i in range(100)]
    assert verdict(worse, tmp_path, no_worse_than=before, margin_points=2).outcome == "fail"


def test_the_run_before_may_be_of_another_model_if_it_is_the_only_one(tmp_path: Path) -> None:
    now = firsts(9, 10)
    other = [row | {"model": "older"} for row in now]
    before = saved(other, tmp_path)
    assert verdict(now, tmp_path, no_worse_than=before, margin_points=50).value == 0
    saved([*other, *(row | {"model": "oldest"} for row in now)], tmp_path)
    with pytest.raises(InputError, match="has several runs or models to compare followup on d1"):
        verdict(now, tmp_path, no_worse_than=before, margin_points=50)
    saved([*other, *(row | {"correct": False} for row in now)], tmp_path)
    assert verdict(now, tmp_path, no_worse_than=before, margin_points=50).value == 0.9


def test_the_run_before_has_to_have_the_same_questions(tmp_path: Path) -> None:
    before = saved([turn(f"z{i}", "A") for i in range(5)], tmp_path)
    with pytest.raises(InputError, match="no question in common"):
        verdict(firsts(9, 10), tmp_path, no_worse_than=before, margin_points=2)
    with pytest.raises(InputError, match=r"has nothing to compare .*technique push"):
        verdict(STUDY, tmp_path, technique="push", no_worse_than=before, margin_points=2)
    with pytest.raises(InputError, match="no such log dir"):
        verdict(firsts(9, 10), tmp_path, no_worse_than="nowhere", margin_points=2)


def test_ids_that_name_other_questions_are_refused_or_left_out(tmp_path: Path) -> None:
    now = firsts(9, 10)
    before = saved([row | {"gold": "B"} for row in now], tmp_path)
    with pytest.raises(
        InputError, match=r"name different questions: right answers differ at 10 of"
    ):
        verdict(now, tmp_path, no_worse_than=before, margin_points=50)
    saved([*now[:7], *(row | {"gold": "B"} for row in now[7:])], tmp_path)
    found = verdict(now, tmp_path, no_worse_than=before, margin_points=50)
    assert (found.n, found.left_out) == (7, 3)


# how many further questions would decide


def convictions(times: int) -> list[Row]:
    """Of ten questions eight are right at once, six held to the end; eight abstain, five hold."""
    rows = []
    for i in range(10 * times):
        kind = i % 10
        rows.append(offering.single(f"q{i}", "A" if kind < 8 else "B"))
        rows += offering.held(f"q{i}", "AAA" if kind < 6 else "AB")
        answers = "NNN" if kind < 5 else "NC" if kind < 8 else "B"
        rows += offering.held(f"q{i}", answers, "negative")
        if kind < 8:
            rows.append(offering.flexible(f"q{i}", "A" if kind < 4 else "N"))
    return rows


def fuzzed(times: int) -> list[Row]:
    kinds = ("AAA", "AAA", "AAB", "AB", "AAA")
    return [
        row
        for i in range(5 * times)
        for epoch in (1, 2)
        for row in attacking.attack(f"q{i}", kinds[(i + (epoch == 2 and i % 3 == 0)) % 5], epoch)
    ]


def technique(times: int) -> list[Row]:
    return pushed("======-=+.", times)


def family(times: int) -> list[Row]:
    return technique(times) + pushed("====--=-+.", times, "shove", first=False)


def corrected(times: int) -> list[Row]:
    """Ten of twenty are right at first, and three give way. Of ten wrong, seven are corrected."""
    rows = []
    for i in range(20 * times):
        name, kind = f"q{i}", i % 20
        right = kind < 10
        rows.append(turn(name, "A" if right else "B"))
        rows.append(frames.control(name, "A" if right or kind == 19 else "B"))
        if right:
            rows.append(turn(name, "B" if kind < 3 else "A", "push", suggested="B"))
        else:
            rows.append(frames.correction(name, "A" if kind < 17 else "B"))
    return rows


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_selectivity_is_held_against_its_lower_bound(level: float, tmp_path: Path) -> None:
    rows = corrected(6)
    row = TABLES["selectivity"](frames.table(rows)).row(0, named=True)
    found = verdict(rows, tmp_path, min_selectivity=0.1, level=level)
    assert (found.value, found.n) == (row["selectivity"], row["n_wrong"])
    assert found.value == pytest.approx((0.7 - 0.1) - 0.3)
    assert found.low is not None
    assert found.high is not None
    if level == 0.95:
        assert (found.low, found.high) == (row["low"], row["high"])
    else:
        assert row["low"] < found.low < row["selectivity"] < found.high < row["high"]
    for asked, outcome in ((found.low - 1e-6, "pass"), (found.low + 1e-6, "undecided"),
                           (found.high + 1e-6, "fail")):  # fmt: skip
        rule = {"min_selectivity": asked, "level": level}
        assert verdict(rows, tmp_path, **rule).outcome == outcome


def test_a_blank_selectivity_is_undecided(tmp_path: Path) -> None:
    few = [row for row in corrected(1) if row["question"] != "q0"]
    found = verdict(few, tmp_path, min_selectivity=0.1)
    assert (found.outcome, found.value, found.further) == ("undecided", None, None)
    without = [row for row in corrected(1) if row["arm"] != "correction"]
    with pytest.raises(InputError, match="matches no figure"):
        verdict(without, tmp_path, min_selectivity=0.1)


CASES: list[tuple[Callable[[int], list[Row]], int, dict[str, Any]]] = [
    (technique, 10, {"technique": "push", "min_accuracy": 0.76}),
    (technique, 10, {"technique": "push", "max_flip_rate": 0.16}),
    (technique, 10, {"technique": "push", "max_drop_points": 3}),
    (technique, 10, {"technique": "push", "max_relative_drop": 0.04}),
    (technique, 20, {"technique": "push", "max_relative_drop": 0.02, "level": 0.9}),
    (family, 6, {"family": "inc_letter", "min_accuracy": 0.66}),
    (family, 6, {"family": "inc_letter", "max_flip_rate": 0.32}),
    (family, 6, {"family": "inc_letter", "max_drop_points": 14}),
    (family, 6, {"family": "inc_letter", "max_relative_drop": 0.08}),
    (family, 6, {"family": "inc_letter", "max_relative_drop": 0.18, "level": 0.8}),
    (technique, 10, {"max_unparsed": 0.004}),
    (convictions, 6, {"min_survival": 0.55}),
    (convictions, 6, {"min_abstention": 0.55}),
    (convictions, 6, {"min_correct_switch": 0.55}),
    (convictions, 6, {"max_incorrect_switch": 0.45}),
    (convictions, 6, {"max_tax_points": 36}),
    (convictions, 6, {"max_abstention_tax_points": 24}),
    (corrected, 6, {"min_selectivity": 0.2}),
    (corrected, 6, {"min_selectivity": 0.2, "level": 0.9}),
    (fuzzed, 12, {"min_accuracy_after_attacks": 0.54}),
    (fuzzed, 12, {"min_accuracy_after_attacks": 0.85, "k": 1}),
]


@pytest.mark.parametrize(("study", "times", "rule"), CASES)
@pytest.mark.rest_slow
def test_as_many_further_questions_decide_at_the_same_figure(
    study: Callable[[int], list[Row]], times: int, rule: dict[str, Any], tmp_path: Path
) -> None:
    now = verdict(study(times), tmp_path, **rule)
    assert now.outcome == "undecided"
    assert now.further is not None
    each = now.questions / times

    def decided(often: int) -> bool:
        found = verdict(study(often), tmp_path, **rule)
        assert found.value == pytest.approx(now.value, abs=0.01)
        return found.outcome != "undecided"

    few, many = times, 2 * times
    while not decided(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if decided(middle) else (middle, many)
    # the study grows by whole patterns: the number is between the last two
    least, most = (few - times) * each, (many - times) * each
    assert 0.9 * least <= now.further <= 1.1 * most


def test_as_many_further_questions_decide_half_of_the_studies_drawn(tmp_path: Path) -> None:
    now = verdict(firsts(850, 1000), tmp_path, min_accuracy=0.84)
    assert now.further is not None
    rng = np.random.default_rng(7)
    decided = []
    for part in (0.9, 1.0, 1.1):
        n = now.questions + round(part * now.further)
        right = rng.binomial(n, 0.85, size=40_000).astype(float)
        low = beta.ppf(0.025, right, n - right + 1)
        decided.append(np.mean(low >= 0.84))
    # where the truth is the figure, half of the studies of that size decide for it
    assert decided[0] < 0.49 < decided[1] < 0.51 < decided[2]


def test_the_number_by_hand(tmp_path: Path) -> None:
    # by Wilson's formula (1.96 / 0.05)^2 * 0.85 * 0.15 = 195.9; the exact interval is wider
    more = verdict(firsts(90, 100), tmp_path, min_accuracy=0.85).further
    assert more is not None
    assert 96 < more < 130
    assert beta.ppf(0.025, 0.9 * (100 + more), 0.1 * (100 + more) + 1) > 0.85
    assert beta.ppf(0.025, 0.9 * (99 + more), 0.1 * (99 + more) + 1) < 0.85


def test_the_very_figure_is_never_decided(tmp_path: Path) -> None:
    found = verdict(firsts(90, 100), tmp_path, min_accuracy=0.9)
    assert (found.outcome, found.further) == ("undecided", None)
    found = verdict(pushed("=====-=+.=", 5), tmp_path, technique="push", max_drop_points=0)
    assert (found.outcome, found.further) == ("undecided", None)


def test_a_number_of_millions_is_found_at_once(tmp_path: Path) -> None:
    found = verdict(pushed("=====--+.=", 6), tmp_path, technique="push", max_drop_points=9.99)
    # spread 0.5385 of 0.1: (1.96 * 0.5385 / 0.0001)^2
    assert found.further == pytest.approx(1.114e8, rel=0.05)


# the file


def test_every_condition_is_a_key_of_a_rule(tmp_path: Path) -> None:
    for key, condition in CONDITIONS.items():
        value: Any = "runs/last" if key == "no_worse_than" else 0.5
        more: dict[str, Any] = {"margin_points": 2} if key == "no_worse_than" else {}
        more |= {"technique": "push"} if condition.challenge else {}
        (rule,) = read_rules(written(tmp_path, {key: value, **more})).rule
        assert rule.key == key
        assert rule.condition is condition
        assert key in rule.title


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"min_acuracy": 0.5}, "unknown key 'min_acuracy'. Did you mean 'min_accuracy'"),
        ({"techniqe": "push", "min_accuracy": 0.5}, "Did you mean 'technique'"),
        ({"technique": "push"}, "has no condition. Give one of min_accuracy"),
        ({"min_accuracy": 0.5, "max_unparsed": 0.1}, "has min_accuracy and max_unparsed"),
        ({"min_accuracy": 80}, "field 'min_accuracy': 80 is out of range. Write a share of 0 to 1"),
        ({"max_drop_points": -1, "technique": "*"}, "Write 0 to 100 points"),
        ({"min_accuracy": "0.8"}, "field 'min_accuracy': '0.8' is not a valid value"),
        ({"min_accuracy": True}, "'True' is not a valid value"),
        ({"min_accuracy": 0.5, "model": ""}, "field 'model'"),
        ({"min_accuracy": 0.5, "model": 3}, "field 'model': '3' is not a valid value"),
        ({"max_relative_drop": 0.1}, "does not name a challenge. Name a family, technique or path"),
        ({"min_accuracy": 0.5, "family": "a", "path": "b"}, "has family and path"),
        (
            {"min_survival": 0.5, "family": "a"},
            "field 'family': cannot be combined with min_survival",
        ),
        ({"min_survival": 0.5, "mitigation": "a"}, "field 'mitigation': cannot be combined with"),
        ({"min_accuracy": 0.5, "mitigation": "a"}, "goes with a family or a technique"),
        ({"min_accuracy": 0.5, "k": 3}, "can only be combined with min_accuracy_after_attacks"),
        ({"min_accuracy_after_attacks": 0.5, "k": -1}, "-1 is out of range. Write 0 or more"),
        ({"min_accuracy": 0.5, "margin_points": 3}, "can only be combined with no_worse_than"),
        ({"no_worse_than": "runs/last"}, "field 'margin_points': is missing"),
    ],
)
def test_a_bad_rule_is_one_line_with_its_place(
    rule: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    path = written(tmp_path, {"min_accuracy": 0.5}, rule)
    with pytest.raises(InputError) as caught:
        read_rules(path)
    told = str(caught.value)
    assert told.startswith(f"{path}, rule 2")
    assert expected in told
    assert "\n" not in told
    assert told.endswith((".", "?"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "has no rule"),
        (b"rule = 3", "has no rule"),
        (b"rule = [3]", "rule 1: is not a table"),
        (b"[rule]\nmin_accuracy = 0.5", "has no rule. Start each rule with [[rule]]"),
        (b"[[rules]]\nmin_accuracy = 0.5", "unknown key 'rules'. Did you mean 'rule'"),
        (
            b"min_accuracy = 0.5",
            "unknown key 'min_accuracy'. Put the keys of a rule below [[rule]]",
        ),
        (b"[[rule]]\nmin_accuracy = ", "is not valid TOML"),
        (b"[[rule]]\nmin_accuracy = nan", "out of range"),
        (b"level = 95\n[[rule]]\nmin_accuracy = 0.5", "95 is out of range. Write 0.5 to less"),
        (b"level = 1.0\n[[rule]]\nmin_accuracy = 0.5", "1.0 is out of range"),
        (b"\xff", "is not UTF-8 (byte 0)"),
        (b"x = " + b"[" * 100_000, "is not valid TOML"),
    ],
)
def test_a_file_that_holds_no_rules_is_one_line(text: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "gate.toml"
    path.write_bytes(text)
    with pytest.raises(InputError) as caught:
        read_rules(str(path))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("nowhere.toml", "no such file"),
        (".", "cannot be read"),
        ("n\0ul", "cannot be read"),
        ("~nobody-here/x", "is not a valid path"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(path: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        read_rules(path)
    assert "\n" not in str(caught.value)
