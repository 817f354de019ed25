"""Figures of whole studies that the rules of a gate are about."""

from collections.abc import Callable, Mapping

import polars as pl

from holdfast.errors import InputError

from .attack_turns import PROTOCOL as MEDFUZZ
from .attacks import attacks
from .convictions import PROTOCOL as STICK_OR_SWITCH
from .convictions import conviction_turns
from .first_answers import STUDY, TURN
from .flexibility import flexibility
from .gate_figure import Figure, known
from .gate_pairs import difference
from .gate_rows import Measured, matching
from .gate_rules import Rule
from .survival import survival
from .tax import ABSTENTION, CONVICTION, SINGLE_SHOT, tax


def of_studies(measured: Measured, rule: Rule, place: str) -> list[Figure]:
    """What a rule on a protocol's own figure is about, one figure for each study.

    Args:
        measured: the turns of the rule's strata.
        rule: the rule; its key is in ``OF_STUDIES``.
        place: where it stands, for errors.

    Raises:
        InputError: there is no such figure; the nearest names are offered.
    """
    protocol, rows_of = OF_STUDIES[rule.key]
    rows = rows_of(measured.turns, rule).with_columns(protocol=pl.lit(protocol))
    if not rows.height:
        at = "" if rule.k is None else f" at k = {rule.k}"
        raise InputError(
            f"finds no such figure{at} in these runs", place, field=rule.key,
            remedy=f"It is one of {protocol}",
        )  # fmt: skip
    for name in ("protocol", "dataset", "model"):
        rows = matching(rows, name, getattr(rule, name), place)
    found = []
    for row in rows.iter_rows(named=True):
        study = {name: row[name] for name in STUDY}
        own = measured.turns.filter(pl.col(name) == row[name] for name in STUDY)
        if rule.key in _TAXED:
            found.append(difference(study, row["_of"], _sides(own, _TAXED[rule.key][1])))
            continue
        value, low, high = (known(row[name]) for name in ("_value", "low", "high"))
        questions = own["question"].n_unique()
        found.append(Figure(study, row["_of"], value, low, high, row["_n"], questions))
    return found


def _survival(arm: str) -> Callable[[pl.DataFrame, Rule], pl.DataFrame]:
    def last(turns: pl.DataFrame, rule: Rule) -> pl.DataFrame:
        rows = survival(turns).filter(pl.col("arm") == arm)
        rows = rows.sort("turn", maintain_order=True).group_by(_RUN, maintain_order=True).last()
        return rows.with_columns(_value=pl.col("survival"), _n=pl.col("n"), _of=_END_TO_END)

    return last


def _switches(side: str) -> Callable[[pl.DataFrame, Rule], pl.DataFrame]:
    def rate(turns: pl.DataFrame, rule: Rule) -> pl.DataFrame:
        return flexibility(turns).with_columns(
            _value=pl.col(f"{side}_rate"), low=pl.col(f"{side}_low"),
            high=pl.col(f"{side}_high"), _n=pl.col(f"n_{side}"), _of=pl.lit("after an abstention"),
        )  # fmt: skip

    return rate


def _tax(behaviour: str) -> Callable[[pl.DataFrame, Rule], pl.DataFrame]:
    def of(turns: pl.DataFrame, rule: Rule) -> pl.DataFrame:
        rows = tax(turns).filter(pl.col("behaviour") == behaviour, pl.col("against") == SINGLE_SHOT)
        return rows.with_columns(_of=pl.lit("against its single shots"))

    return of


def _sides(own: pl.DataFrame, arm: str) -> pl.DataFrame:
    """By question of one study: right at once (``first``), and held to the end (``second``)."""
    held = conviction_turns(own).filter(pl.col("arm") == arm, pl.col("turn") == 0)
    single = own.filter(pl.col("arm") == SINGLE_SHOT, pl.col("status") != "error")
    return held.select(*TURN, pl.lit("").alias("path"), second=pl.col("lost_at").is_null()).join(
        single.select(*TURN, first="correct"), on=TURN, how="inner", maintain_order="left"
    )


def _attacked(turns: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    rows = attacks(turns)
    if rule.k is None:
        rows = rows.sort("k", maintain_order=True).group_by(_RUN, maintain_order=True).last()
    else:
        rows = rows.filter(pl.col("k") == rule.k)
    of = pl.format("after {} attacks", "k").str.replace("^after 1 attacks", "after 1 attack")
    return rows.with_columns(_value=pl.col("accuracy"), _n=pl.col("replicates"), _of=of)


_RUN = ("run", "model", "dataset")
_END_TO_END = pl.format("after {} offers", "turn").str.replace("^after 1 offers", "after 1 offer")

_TAXED = {
    "max_tax_points": (CONVICTION, "positive"),
    "max_abstention_tax_points": (ABSTENTION, "negative"),
}

OF_STUDIES: Mapping[str, tuple[str, Callable[[pl.DataFrame, Rule], pl.DataFrame]]] = {
    "min_survival": (STICK_OR_SWITCH, _survival("positive")),
    "min_abstention": (STICK_OR_SWITCH, _survival("negative")),
    "max_incorrect_switch": (STICK_OR_SWITCH, _switches("incorrect")),
    "min_correct_switch": (STICK_OR_SWITCH, _switches("correct")),
    **{key: (STICK_OR_SWITCH, _tax(behaviour)) for key, (behaviour, _) in _TAXED.items()},
    "min_accuracy_after_attacks": (MEDFUZZ, _attacked),
}
"""Protocol, and rows with ``_of``, ``_value``, ``low``, ``high`` and ``_n``, one for a study.

Those of the tax have ``_of`` alone: its interval at any level needs both sides by question.
"""
