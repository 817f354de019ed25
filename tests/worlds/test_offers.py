"""What the conversation tax says of servers of known truth."""

import polars as pl
import pytest

from holdfast.protocols.stick_or_switch.convictions import tax
from holdfast.results.gate import gate
from holdfast.results.gate_rules import rules_of
from tests.worlds.offers import SERVERS, offered_turns

STUDIES = 200
COVERAGE_BOUND = 0.94 - 2.58 * (0.94 * 0.06 / STUDIES) ** 0.5
"""Of so many studies, the share that hold the truth where 94% do, less chance (99%)."""


def taxes(name: str, against: str, **settings: int) -> pl.DataFrame:
    return tax(offered_turns(name, **settings)).filter(behaviour="conviction", against=against)


@pytest.mark.rest_slow
@pytest.mark.parametrize(("options", "epochs"), [(4, 1), (4, 3), (3, 1), (5, 1)])
@pytest.mark.parametrize("name", SERVERS)
def test_intervals_of_both_taxes_cover_the_truth(name: str, options: int, epochs: int) -> None:
    truths = {
        "single-shot": SERVERS[name].tax(options - 1),
        "control": SERVERS[name].net(options - 1),
    }
    for against, truth in truths.items():
        rows = taxes(name, against, studies=STUDIES, questions=60, options=options, epochs=epochs)
        assert rows.height == STUDIES
        share = ((rows["low"] <= truth + 1e-9) & (truth - 1e-9 <= rows["high"])).mean()
        assert share >= COVERAGE_BOUND
        assert rows["tax"].mean() == pytest.approx(truth, abs=0.02)
        assert rows.filter(~pl.col("tax").is_between("low", "high")).is_empty()


@pytest.mark.parametrize("name", ["sosguess", "sosknow"])
def test_guessing_and_sticking_gains_nothing(name: str) -> None:
    (row,) = taxes(name, "single-shot", studies=1, questions=400).to_dicts()
    # the paper's own tax credits a guess between two
    assert row["raw_tax"] > 0.05
    assert row["low"] < 0 < row["high"]


@pytest.mark.slow
def test_a_rule_blames_only_models_that_leave() -> None:
    rules = rules_of({"rule": [{"max_tax_points": 15}, {"max_net_tax_points": 15}]}, "rules.toml")
    outcomes = {
        name: [verdict.outcome for verdict in gate(offered_turns(name, 1, 400), rules)]
        for name in SERVERS
    }
    assert outcomes == {
        "sosguess": ["pass", "pass"],
        "sosknow": ["pass", "pass"],
        "sosall": ["pass", "pass"],
        "soshalf": ["fail", "fail"],
        # what any further turn costs is no cost of the offers
        "sosnoise": ["fail", "pass"],
    }
