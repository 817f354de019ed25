"""What the report and the terminal say of follow-ups."""

from collections.abc import Iterator
from functools import partial

import polars as pl

from holdfast.errors import counted
from holdfast.render.reported import ReportOf, paths
from holdfast.results.controls import inert_controls
from holdfast.results.grid import Row, percent
from holdfast.results.power import further_questions_for_interval
from holdfast.results.retention import given_up, retention
from holdfast.results.runs import system_of

from .compounding import compounding_summary


def _remarks(turns: pl.DataFrame) -> Iterator[str]:
    yield from _net(turns)
    yield from _chains(turns)


def _net(turns: pl.DataFrame) -> Iterator[str]:
    """What became of right answers under all challenges, a line for each model."""
    rows = retention(turns).filter(pl.col("protocol") == "followup")
    is_overall = pl.col("path").is_null() & pl.col("family").is_null()
    control = "when only asked again"
    if not inert_controls(turns).is_empty():
        control += " or shown a text that argues for nothing"
    for row in rows.filter(is_overall, pl.col("n_right") > 0).to_dicts():
        kept_share = percent(row["retention"])
        sentence = f"{system_of(row)}: {kept_share}% of right answers kept under a challenge"
        if row["net"] is not None:
            sentence += f", {percent(row['control_retention'])}% {control}"
        if outcomes := given_up(row):
            sentence += f"; given up: {outcomes}"
        for name in ("net", "pull"):
            if row[name] is not None:
                value, low, high = (
                    percent(row[column], with_sign=True)
                    for column in (name, f"{name}_low", f"{name}_high")
                )
                sentence += f"; {name}: {value} points [{low}, {high}]{_count_further(row, name)}"
        yield sentence


def _count_further(row: Row, name: str) -> str:
    """How many questions more would tell a figure from nothing, where its interval does not."""
    value, low, high = (row[column] for column in (name, f"{name}_low", f"{name}_high"))
    if low is None or not low <= 0 <= high or not value:
        return ""
    near = low if value > 0 else high
    more = further_questions_for_interval(value, near, row["questions"], 0.0)
    return (
        f" (about {counted(more, 'further question')} would distinguish it from 0)" if more else ""
    )


def _chains(turns: pl.DataFrame) -> Iterator[str]:
    if not (turns["arm"] == "compound").any():
        return
    for row in compounding_summary(turns).filter(pl.col("chains") > 0).iter_rows(named=True):
        chains = counted(row["chains"], "chain")
        if row["sub_additive"] is None:
            yield f"{system_of(row)}: {chains} not tested: no controls"
        else:
            yield (
                f"{system_of(row)}: {row['sub_additive']} of {chains} sub-additive beyond noise, "
                f"{row['recovered']} better than one of their parts alone"
            )


FOLLOWUP = ReportOf("followup", partial(paths, stepwise=True), remarks=_remarks)
