"""Rules held against intervals: outcomes by hand, and how many questions would decide."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from holdfast.errors import InputError
from holdfast.results.accuracy import accuracy
from holdfast.results.declaration import TABLES
from holdfast.results.gate import overall
from holdfast.results.gate_figures import wilson_n
from holdfast.results.gate_rules import CONDITIONS, read_rules
from holdfast.results.strata import strata
from holdfast.stats.intervals import difference_bounds, exact_bounds
from tests.results.attacking import attack
from tests.results.frames import Row, alone, asked, control, row_of, table, turn
from tests.results.gating import (
    Rule,
    baseline_file,
    convictions,
    corrections,
    family,
    firsts,
    fuzzed,
    pushed,
    rules_file,
    technique,
    verdict,
    verdicts,
)


def exact(hits: int, n: int, level: float = 0.95) -> Any:
    """Clopper and Pearson's limits."""
    limits = binomtest(hits, n).proportion_ci(level, method="exact")
    return pytest.approx((float(limits.low), float(limits.high)))


# --- three outcomes, decided on the interval ---

UNREAD = asked("A" * 95 + "?" * 5)


@pytest.mark.parametrize(
    ("rows", "rule", "outcome"),
    [
        # 90 of 100 is 0.8238 to 0.9510 by Clopper and Pearson's exact limits
        (firsts(90, 100), {"min_accuracy": 0.82}, "pass"),
        (firsts(90, 100), {"min_accuracy": 0.83}, "undecided"),
        (firsts(90, 100), {"min_accuracy": 0.95}, "undecided"),
        (firsts(90, 100), {"min_accuracy": 0.952}, "fail"),
        # 5 of 100 unread: 0.0164 to 0.1128
        (UNREAD, {"max_unparsed": 0.01}, "fail"),
        (UNREAD, {"max_unparsed": 0.03}, "undecided"),
        (UNREAD, {"max_unparsed": 0.2}, "pass"),
    ],
)
def test_the_exact_interval_decides(
    rows: list[Row], rule: Rule, outcome: str, tmp_path: Path
) -> None:
    result = verdict(rows, tmp_path, rule)
    hits = 90 if "min_accuracy" in rule else 5
    assert (result.outcome, result.value) == (outcome, hits / 100)
    assert (result.n, result.questions) == (100, 100)
    assert (result.low, result.high) == exact(hits, 100)
    assert (result.further is None) == (outcome != "undecided")


@pytest.mark.parametrize("limit", [0.05, 0.055, 0.058, 0.062])
def test_one_unread_reply_decides_a_rule_of_none(limit: float, tmp_path: Path) -> None:
    # sixty questions in five epochs: none unread is at most 1 - 0.025^(1/60), 6.0%
    rows = [row for epoch in range(1, 6) for row in asked("A" * 60, epoch=epoch)]
    studies = (rows, [turn("q0", None, epoch=1), *rows[1:]])
    outcomes = {verdict(study, tmp_path, {"max_unparsed": limit}).outcome for study in studies}
    assert outcomes == {"undecided" if limit < 0.06 else "pass"}


def test_failure_outweighs_undecided_and_undecided_pass(tmp_path: Path) -> None:
    passes, open_verdict, fails = (
        verdict(firsts(90, 100), tmp_path, {"min_accuracy": limit}) for limit in (0.5, 0.88, 0.99)
    )
    assert overall([passes, passes]) == "pass"
    assert overall([passes, open_verdict]) == "undecided"
    assert overall([open_verdict, fails, passes]) == "fail"


@pytest.mark.parametrize("level", [0.8, 0.9, 0.99])
def test_the_files_level_sets_the_intervals(level: float, tmp_path: Path) -> None:
    result = verdict(firsts(90, 100), tmp_path, {"min_accuracy": 0.5}, level=level)
    assert (result.low, result.high) == exact(90, 100, level)
    # a family's interval, at the effective number of trials
    rows = pushed("==--", 15) + pushed("=---", 15, "shove", first=False)
    rule = {"family": "inc_letter", "min_accuracy": 0.5}
    low, usual = (verdict(rows, tmp_path, rule, level=at).low or 0.0 for at in (level, 0.95))
    assert (low > usual) == (level < 0.95)
    # a paired difference
    rule = {"technique": "push", "max_drop_points": 5}
    result = verdict(rows, tmp_path, rule, level=level)
    ones, after = np.ones(60), np.array([1.0, 1, 0, 0] * 15)
    bounds = difference_bounds((ones, ones), (after, ones), level)
    assert (result.low, result.high) == pytest.approx(bounds)


def test_a_figure_of_nothing_is_undecided(tmp_path: Path) -> None:
    wrong = pushed("....", 5)
    for rule in ({"max_relative_drop": 0.1}, {"max_flip_rate": 0.1}):
        result = verdict(wrong, tmp_path, {"technique": "push", **rule})
        assert (result.outcome, result.value, result.further) == ("undecided", None, None)


# --- figures are those of the tables; see also test_one_definition ---

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
def test_figures_are_those_of_the_row_of_accuracies(
    about: Rule, arm: str, path: str, tmp_path: Path
) -> None:
    row = row_of(accuracy(table(STUDY)), path, arm)
    n = wilson_n(row["accuracy"], row["low"], row["high"])
    right, points, unread = (
        verdict(STUDY, tmp_path, {**about, key: 0.1})
        for key in ("min_accuracy", "max_drop_points", "max_unparsed")
    )
    assert (right.value, right.n) == (row["accuracy"], row["n"])
    assert (right.low, right.high) == pytest.approx(exact_bounds(row["accuracy"] * n, n))
    assert points.value == pytest.approx(row["baseline"] - row["accuracy"])
    assert unread.value == pytest.approx(row["unparsed"] / row["n"])
    assert {result.questions for result in (right, points, unread)} == {60}


def test_the_flip_rate_of_a_family_is_the_mean_of_its_techniques(tmp_path: Path) -> None:
    result = verdict(STUDY, tmp_path, {"family": "inc_letter", "max_flip_rate": 0.5})
    # of 8 right first answers of ten, push loses 2 and shove 1
    assert result.value == pytest.approx((2 / 8 + 1 / 8) / 2)
    assert (result.n, result.questions) == (96, 60)


def test_a_rule_on_a_stratum_uses_its_row(tmp_path: Path) -> None:
    rows = [
        row | {"step": ("step1", "step2&3")[int(row["question"][1:]) % 2], "system": "Renal"}
        for row in STUDY
    ]
    for step in ("step1", "step2&3"):
        row = row_of(strata(table(rows), "step"), "push", step=step)
        rule = {"technique": "push", "step": step, "system": "Renal", "min_accuracy": 0.5}
        result = verdict(rows, tmp_path, rule)
        assert (result.value, result.n) == (row["accuracy"], row["n"])
        assert dict(result.rule.strata) == {"step": step, "system": "Renal"}


def test_accuracy_after_attacks_is_of_the_last_attempt_or_of_k(tmp_path: Path) -> None:
    studies = enumerate(("AAA", "AAB", "AB", "B", "AAA", "AAA"))
    rows = [row for n, answers in studies for row in attack(f"q{n}", answers)]
    for k, value, attempts in ((None, 3 / 6, "2 attacks"), (1, 4 / 6, "1 attack")):
        rule = {"min_accuracy_after_attacks": 0.5} | ({} if k is None else {"k": k})
        result = verdict(rows, tmp_path, rule)
        assert (result.value, result.of) == (value, f"after {attempts}")
    with pytest.raises(InputError, match=r"matches no figure at k = 7"):
        verdict(rows, tmp_path, {"min_accuracy_after_attacks": 0.5, "k": 7})


def test_selectivity_is_compared_with_its_bounds(tmp_path: Path) -> None:
    rows = corrections(6)
    row = TABLES["selectivity"](table(rows)).row(0, named=True)
    result = verdict(rows, tmp_path, {"min_selectivity": row["low"] - 1e-6})
    assert (result.outcome, result.value, result.n) == ("pass", row["selectivity"], row["n_wrong"])
    assert result.value == pytest.approx((0.7 - 0.1) - 0.3)
    assert (result.low, result.high) == (row["low"], row["high"])
    wider = verdict(rows, tmp_path, {"min_selectivity": row["low"] - 1e-6}, level=0.99)
    assert wider.outcome == "undecided"
    rows = [row for row in corrections(1) if row["question"] != "q0"]
    result = verdict(rows, tmp_path, {"min_selectivity": 0.1})
    assert (result.outcome, result.value, result.further) == ("undecided", None, None)


# --- what a rule is about ---


@pytest.mark.parametrize(
    ("about", "names"),
    [
        ({"technique": "*"}, ["technique push", "technique shove"]),
        ({"path": "push*"}, ["technique push", "path push > shove"]),
    ],
)
def test_a_pattern_chooses_techniques_or_paths(
    about: Rule, names: list[str], tmp_path: Path
) -> None:
    rows = [*STUDY, *asked("A" * 60, "shove@10")]
    results = verdicts(rows, tmp_path, {**about, "min_accuracy": 0.1})
    assert [result.of for result in results] == names


@pytest.mark.parametrize("about", [{"technique": "push"}, {"family": "inc_letter"}])
def test_mitigations_have_their_own_rows(about: Rule, tmp_path: Path) -> None:
    rows = asked("A" * 20, kind=alone)
    rows += asked("A" * 5 + "B" * 15, "push", kind=alone)
    rows += asked("A" * 15 + "B" * 5, "education>push", kind=alone)
    plain, treatment = (
        verdict(rows, tmp_path, {**about, **mitigation, "min_accuracy": 0.1})
        for mitigation in ({}, {"mitigation": "education"})
    )
    assert (plain.value, treatment.value) == (0.25, 0.75)
    assert treatment.of == f"{plain.of} with education"


def test_a_rule_holds_for_each_run_that_it_matches(tmp_path: Path) -> None:
    rows = [
        row | {"run": run, "model": model}
        for run, model in (("r1", "m/1"), ("r2", "m/1"), ("r3", "m/2"), ("r4", "other"))
        for row in firsts(9, 10)
    ]
    results = verdicts(rows, tmp_path, {"model": "m/*", "min_accuracy": 0.1})
    assert [(result.run, result.model, result.is_one_of_several) for result in results] == [
        ("r1", "m/1", True), ("r2", "m/1", True), ("r3", "m/2", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"technique": "psh"}, "unknown technique 'psh'. Did you mean 'push"),
        ({"family": "inc_leter"}, "Did you mean 'inc_letter'"),
        ({"path": "push>shov"}, "Did you mean 'push>shove'"),
        ({"model": "m2"}, "unknown model 'm2'. Known: m1"),
        ({"model": "m[12]*"}, "unknown model"),
        ({"model": "m+*"}, "unknown model"),
        ({"dataset": "d2"}, "unknown dataset 'd2'. Known: d1"),
        ({"protocol": "folowup"}, "Did you mean 'followup'"),
        ({"step": "step1"}, "--labels"),
        ({"subject": "Renul"}, "unknown subject 'Renul'. Did you mean 'Ren"),
        ({"technique": "push", "mitigation": "none"}, "have no mitigation"),
        ({"min_survival": 0.1}, "It is one of stick-or-switch"),
        ({"min_accuracy_after_attacks": 0.1}, "It is one of medfuzz"),
        ({"min_selectivity": 0.1}, "matches no figure"),
    ],
)
def test_a_rule_on_nothing_offers_the_nearest_name(
    rule: Rule, message: str, tmp_path: Path
) -> None:
    rows = [row | {"subject": "Renal"} for row in STUDY]
    condition = {} if any(key.startswith("min_") for key in rule) else {"min_accuracy": 0.1}
    with pytest.raises(InputError) as error:
        verdict(rows, tmp_path, rule | condition)
    assert message in str(error.value)
    assert "gate.toml, rule 1, field '" in str(error.value)


def test_a_pattern_is_not_a_regular_expression(tmp_path: Path) -> None:
    rows = [row | {"model": "a.b[1] {x}\n"} for row in firsts(9, 10)]
    assert verdict(rows, tmp_path, {"min_accuracy": 0.1, "model": "a.b[1]*"}).n == 10
    with pytest.raises(InputError, match="unknown model"):
        verdict(rows, tmp_path, {"min_accuracy": 0.1, "model": "a.b[12]*"})
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
def test_flips_net_of_the_control_are_decided_by_protocol(
    about: Rule, protocols: list[str], tmp_path: Path
) -> None:
    second = {"run": "r2", "protocol": "single-turn"}
    rows = asked("A" * 40) + asked("A" * 30 + "B" * 10, "push")
    rows += asked("A" * 40, "restate", kind=control)
    rows += [row | second for row in asked("A" * 40, kind=alone)]
    rows += [row | second for row in asked("A" * 20 + "B" * 20, "push", kind=alone)]
    rows += [row | second for row in asked("A" * 40, "resample", kind=control)]
    rows += [row | {"run": "r3", "protocol": "stick-or-switch"} for row in firsts(40, 40)]
    results = verdicts(rows, tmp_path, {**about, "max_attributable_points": 90})
    values = {"followup": 0.25, "single-turn": 0.5}
    assert [result.protocol for result in results] == protocols
    assert {(result.outcome, result.n) for result in results} == {("pass", 40)}
    figures = pytest.approx([values[protocol] for protocol in protocols])
    assert [result.value for result in results] == figures


# --- no worse than a run of before ---


def test_no_worse_compares_the_paired_interval_with_the_margin(tmp_path: Path) -> None:
    # of 100 questions in common 5 were gained and 8 lost; the run before has 20 more
    now, before = asked("A" * 82 + "B" * 13 + "A" * 5), firsts(90, 120)
    rule = {"no_worse_than": baseline_file(before, tmp_path), "margin_points": 12}
    result = verdict(now, tmp_path, rule)
    assert result.value == pytest.approx(-0.03)
    assert (result.n, result.questions, result.threshold) == (100, 100, -0.12)
    ones = np.ones(100)
    right = [np.array([float(row["correct"]) for row in rows]) for rows in (now, before[:100])]
    bounds = difference_bounds((right[0], ones), (right[1], ones))
    assert (result.low, result.high) == pytest.approx(bounds)
    assert result.outcome == "pass"
    rule["margin_points"] = 2
    assert verdict(now, tmp_path, rule).outcome == "undecided"
    assert verdict(firsts(50, 100), tmp_path, rule).outcome == "fail"


def test_the_previous_run_may_be_of_another_model(tmp_path: Path) -> None:
    now = firsts(9, 10)
    older = [row | {"model": "older"} for row in now]
    rule = {"no_worse_than": baseline_file(older, tmp_path), "margin_points": 50}
    assert verdict(now, tmp_path, rule).value == 0
    # of several the one of the same model counts, and without it none does
    baseline_file([*older, *(row | {"correct": False} for row in now)], tmp_path)
    assert verdict(now, tmp_path, rule).value == 0.9
    baseline_file([*older, *(row | {"model": "oldest"} for row in now)], tmp_path)
    with pytest.raises(InputError, match="several runs or models to compare followup on d1"):
        verdict(now, tmp_path, rule)


def test_the_previous_run_needs_the_same_questions(tmp_path: Path) -> None:
    now = firsts(9, 10)
    before = baseline_file([turn(f"z{i}", "A") for i in range(5)], tmp_path)
    refusals: list[tuple[list[Row], Rule, str]] = [
        (now, {"no_worse_than": before}, "no question in common"),
        (STUDY, {"no_worse_than": before, "technique": "push"}, "has nothing to compare .*push"),
        (now, {"no_worse_than": "nowhere"}, "no such log dir"),
    ]
    for rows, rule, message in refusals:
        with pytest.raises(InputError, match=message):
            verdict(rows, tmp_path, {"margin_points": 2, **rule})
    # ids that name different questions are refused or left out
    with_margin = {"no_worse_than": before, "margin_points": 50}
    baseline_file([row | {"gold": "B"} for row in now], tmp_path)
    with pytest.raises(InputError, match="right answers differ at 10 of"):
        verdict(now, tmp_path, with_margin)
    baseline_file([*now[:7], *(row | {"gold": "B"} for row in now[7:])], tmp_path)
    result = verdict(now, tmp_path, with_margin)
    assert (result.n, result.left_out) == (7, 3)


# --- how many further questions would decide ---

CASES: list[tuple[Callable[[int], list[Row]], int, Rule]] = [
    (technique, 10, {"technique": "push", "min_accuracy": 0.76}),
    (technique, 10, {"technique": "push", "max_flip_rate": 0.16}),
    (technique, 10, {"technique": "push", "max_drop_points": 3}),
    (technique, 20, {"technique": "push", "max_relative_drop": 0.02, "level": 0.9}),
    (family, 6, {"family": "inc_letter", "min_accuracy": 0.66}),
    (family, 6, {"family": "inc_letter", "max_flip_rate": 0.32}),
    (family, 6, {"family": "inc_letter", "max_drop_points": 14}),
    (family, 6, {"family": "inc_letter", "max_relative_drop": 0.18, "level": 0.8}),
    (technique, 10, {"max_unparsed": 0.004}),
    (convictions, 6, {"min_survival": 0.55}),
    (convictions, 6, {"max_incorrect_switch": 0.45}),
    (convictions, 6, {"max_tax_points": 36}),
    (convictions, 6, {"max_abstention_tax_points": 24}),
    (corrections, 6, {"min_selectivity": 0.2, "level": 0.9}),
    (fuzzed, 12, {"min_accuracy_after_attacks": 0.54}),
    (fuzzed, 12, {"min_accuracy_after_attacks": 0.85, "k": 1}),
]


@pytest.mark.parametrize(("study", "times", "rule"), CASES)
@pytest.mark.slow
def test_the_further_questions_decide_at_the_same_figure(
    study: Callable[[int], list[Row]], times: int, rule: Rule, tmp_path: Path
) -> None:
    level = rule.get("level", 0.95)
    rule = {name: value for name, value in rule.items() if name != "level"}
    now = verdict(study(times), tmp_path, rule, level=level)
    assert (now.outcome, now.further is None) == ("undecided", False)

    def decides(repeats: int) -> bool:
        result = verdict(study(repeats), tmp_path, rule, level=level)
        assert result.value == pytest.approx(now.value, abs=0.01)
        return result.outcome != "undecided"

    low, high = times, 2 * times
    while not decides(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    # the study grows by whole patterns: the number is between the last two
    size = now.questions / times
    assert 0.9 * (low - times) * size <= (now.further or 0) <= 1.1 * (high - times) * size


def test_further_questions_match_hand_calculation(tmp_path: Path) -> None:
    # by Wilson's formula (1.96 / 0.05)^2 * 0.85 * 0.15 = 195.9; the exact interval is wider
    more = verdict(firsts(90, 100), tmp_path, {"min_accuracy": 0.85}).further or 0
    assert 96 < more < 130
    assert beta.ppf(0.025, 0.9 * (100 + more), 0.1 * (100 + more) + 1) > 0.85
    assert beta.ppf(0.025, 0.9 * (99 + more), 0.1 * (99 + more) + 1) < 0.85
    # spread 0.5385 of 0.1: (1.96 * 0.5385 / 0.0001)^2
    rows = pushed("=====--+.=", 6)
    millions = verdict(rows, tmp_path, {"technique": "push", "max_drop_points": 9.99})
    assert millions.further == pytest.approx(1.114e8, rel=0.05)


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (firsts(90, 100), {"min_accuracy": 0.9}),
        (pushed("=====-=+.=", 5), {"technique": "push", "max_drop_points": 0}),
    ],
)
def test_a_figure_at_its_limit_is_never_decided(
    rows: list[Row], rule: Rule, tmp_path: Path
) -> None:
    result = verdict(rows, tmp_path, rule)
    assert (result.outcome, result.further) == ("undecided", None)


# --- the file ---


@pytest.mark.parametrize("key", CONDITIONS)
def test_every_condition_is_a_key_of_a_rule(key: str, tmp_path: Path) -> None:
    condition = CONDITIONS[key]
    rule: Rule = {key: 0.5}
    if key == "no_worse_than":
        rule = {key: "runs/last", "margin_points": 2}
    rule |= {"technique": "push"} if condition.challenge else {}
    (parsed_rule,) = read_rules(rules_file(tmp_path, rule)).rule
    assert parsed_rule.key == key
    assert parsed_rule.condition is condition
    assert key in parsed_rule.title


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"min_acuracy": 0.5}, "unknown key 'min_acuracy'. Did you mean 'min_accuracy'"),
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
        ({"min_accuracy": 0.5, "missing": "best"}, "'best' is unknown. Write 'usual' or 'worst'"),
        ({"min_accuracy": 0.5, "missing": 1}, "'1' is unknown. Write 'usual' or 'worst'"),
    ],
)
def test_a_bad_rule_is_located_in_the_message(rule: Rule, message: str, tmp_path: Path) -> None:
    path = rules_file(tmp_path, {"min_accuracy": 0.5}, rule)
    with pytest.raises(InputError) as error:
        read_rules(path)
    assert str(error.value).startswith(f"{path}, rule 2")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.remedy or str(error.value).endswith((".", "?"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "has no rule"),
        (b"rule = 3", "has no rule"),
        (b"rule = [3]", "rule 1: is not a table"),
        (b"[rule]\nmin_accuracy = 0.5", "has no rule. Start each rule with [[rule]]"),
        (b"[[rules]]\nmin_accuracy = 0.5", "unknown key 'rules'. Did you mean 'rule'"),
        (b"min_accuracy = 0.5", "'min_accuracy'. Put the keys of a rule below [[rule]]"),
        (b"[[rule]]\nmin_accuracy = ", "is not valid TOML"),
        (b"[[rule]]\nmin_accuracy = nan", "out of range"),
        (b"level = 95\n[[rule]]\nmin_accuracy = 0.5", "95 is out of range. Write 0.5 to less"),
        (b"level = 1.0\n[[rule]]\nmin_accuracy = 0.5", "1.0 is out of range"),
        (b"missing = 1\n[[rule]]\nmin_accuracy = 0.5", "Write 'usual' or 'worst'"),
        (b"\xff", "is not UTF-8 (byte 0)"),
        (b"x = " + b"[" * 100_000, "is not valid TOML"),
        ("nowhere.toml", "no such file"),
        (".", "cannot be read"),
        ("n\0ul", "cannot be read"),
        ("~nobody-here/x", "is not a valid path"),
    ],
)
def test_a_file_without_rules_is_refused(text: bytes | str, message: str, tmp_path: Path) -> None:
    path = text
    if isinstance(path, bytes):
        (tmp_path / "gate.toml").write_bytes(path)
        path = str(tmp_path / "gate.toml")
    with pytest.raises(InputError) as error:
        read_rules(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
