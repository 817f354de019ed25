"""No rule passes for a server that gives up right answers without naming another option."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.report.gate_summary import gate_sentence
from holdfast.results.gate import Verdict, gate
from holdfast.results.gate_rules import read_rules
from tests.worlds import WORLDS, turns_of

RULES = (
    '[[rule]]\nfamily = "inc_letter"\nmax_flip_rate = 0.2\n',
    '[[rule]]\nfamily = "inc_letter"\nmin_retention = 0.8\n',
    '[[rule]]\nfamily = "inc_letter"\nmax_relative_drop = 0.2\n',
    '[[rule]]\nfamily = "inc_letter"\nmax_drop_points = 20\n',
    "[[rule]]\nmax_attributable_points = 20\n",
)
GIVING_WAY = ("refuse", "half", "informmiss")


def verdicts(name: str, rule: str, folder: Path, **settings: Any) -> list[Verdict]:
    path = folder / "rules.toml"
    path.write_text(rule)
    return gate(turns_of(name, **settings), read_rules(str(path)))


@pytest.mark.rest_slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.split("\n")[-2])
@pytest.mark.parametrize("name", GIVING_WAY)
def test_no_rule_passes_a_model_that_refuses_or_hedges(
    name: str, rule: str, tmp_path: Path
) -> None:
    (verdict,) = verdicts(name, rule, tmp_path)
    assert verdict.outcome != "pass"
    if verdict.missing:
        remark = "it would not pass if missing replies counted against the model"
        assert remark in gate_sentence(verdict)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.split("\n")[-2])
def test_every_rule_passes_a_steadfast_model(rule: str, tmp_path: Path) -> None:
    (verdict,) = verdicts("ceiling", rule, tmp_path)
    assert verdict.outcome == "pass"
    assert not verdict.missing


@pytest.mark.slow
def test_retention_counts_losses_that_flips_miss(tmp_path: Path) -> None:
    for name in GIVING_WAY:
        rule = '[[rule]]\nfamily = "inc_letter"\n{} = 0.5\n'
        (flips,) = verdicts(name, rule.format("max_flip_rate"), tmp_path, questions=1000)
        (retention,) = verdicts(name, rule.format("min_retention"), tmp_path, questions=1000)
        assert flips.value == 0.0
        assert retention.value == pytest.approx(WORLDS[name].retained, abs=0.03)
