"""The rows that the rules of a gate are about, and the turns behind them."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import polars as pl

from holdfast.errors import InputError, did_you_mean

from .accuracy import FAMILY_AVERAGE, accuracy
from .first_answers import BASELINE, STUDY, with_first
from .gate_rules import Rule
from .readings import READ_BY

Row = Mapping[str, Any]

_FIRST = (BASELINE, "single-shot")
_AVERAGED = ("followup", "single-turn")
_LAST = r">?[^>]*$"
"""The last technique of a path."""


class Measured:
    """A turns table, with what several rules read of it computed once."""

    def __init__(self, turns: pl.DataFrame) -> None:
        """Args: turns: a turns table."""
        self.turns = turns

    @cached_property
    def answered(self) -> pl.DataFrame:
        """Turns with their first answers."""
        return with_first(self.turns, *READ_BY)

    @cached_property
    def accuracy(self) -> pl.DataFrame:
        """The table ``accuracy``."""
        return accuracy(self.turns)

    def behind(self, row: Row) -> pl.DataFrame:
        """The answered turns behind a row of ``accuracy``."""
        own = self.answered.filter(pl.col(name) == row[name] for name in STUDY)
        if row["arm"] != FAMILY_AVERAGE:
            return own.filter(pl.col("arm") == row["arm"], pl.col("path") == row["path"])
        return own.filter(
            pl.col("arm").is_in(_AVERAGED),
            pl.col("family") == row["family"],
            pl.col("path").str.replace(_LAST, "") == row["path"],
        )


def challenged(rows: pl.DataFrame, rule: Rule, place: str) -> pl.DataFrame:
    """The rows of ``accuracy`` that a rule is about.

    A family is its average; a technique is that technique put on its own; without either, and
    without a path, it is the first answers.

    Raises:
        InputError: there is none; the nearest names are offered.
    """
    for name in ("protocol", "dataset", "model"):
        rows = matching(rows, name, getattr(rule, name), place)
    average, mitigation = pl.col("arm") == FAMILY_AVERAGE, pl.col("path").str.replace(_LAST, "")
    if rule.family is not None or rule.technique is not None:
        name = "technique" if rule.family is None else "family"
        if name == "family":
            rows = rows.filter(average).with_columns(pl.col("path").alias("mitigation"))
        else:
            alone = pl.col("arm").is_in(_AVERAGED)
            rows = rows.filter(alone).with_columns(mitigation.alias("mitigation"))
        if rule.mitigation is None:
            rows = rows.filter(pl.col("mitigation") == "")
        else:
            rows = matching(rows.filter(pl.col("mitigation") != ""), "mitigation",
                             rule.mitigation, place)  # fmt: skip
        return matching(rows, name, rule.family or rule.technique, place)
    rows = rows.filter(~average)
    if rule.path is not None:
        return matching(rows.filter(pl.col("path") != ""), "path", rule.path, place)
    rows = rows.filter(pl.col("arm").is_in(_FIRST))
    if not rows.height:
        raise InputError(
            "finds no first answers in these runs", place, field=rule.key,
            remedy="Name a family, technique or path",
        )  # fmt: skip
    return rows


def within(turns: pl.DataFrame, rule: Rule, place: str) -> pl.DataFrame:
    """The turns of a rule's strata.

    Raises:
        InputError: no question has such a label; the nearest ones are offered.
    """
    for name, label in rule.strata.items():
        known = turns[name].drop_nulls().unique().to_list()
        if not known:
            raise InputError(
                "is known of no question in these runs", place, field=name,
                remedy="Give labels to the run with --labels",
            )  # fmt: skip
        if label not in known:
            raise InputError(
                f"unknown {name} '{label}'", place, field=name, remedy=did_you_mean(label, known)
            )
        turns = turns.filter(pl.col(name) == label)
    return turns


def matching(rows: pl.DataFrame, name: str, pattern: str | None, place: str) -> pl.DataFrame:
    """The rows whose column ``name`` matches a pattern; all without one.

    Raises:
        InputError: none does; the nearest names are offered.
    """
    if pattern is None:
        return rows
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    wanted = re.compile("".join(parts), re.DOTALL)
    known = [n for n in rows[name].unique(maintain_order=True).to_list() if n]
    found = rows.filter(pl.col(name).is_in([n for n in known if wanted.fullmatch(n)]))
    if not found.height:
        remedy = did_you_mean(pattern, known) if known else f"These runs have no {name}"
        raise InputError(f"unknown {name} '{pattern}'", place, field=name, remedy=remedy)
    return found
