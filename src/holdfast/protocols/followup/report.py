"""What the report and the terminal say of follow-ups."""

from collections.abc import Iterator
from functools import partial

import polars as pl

from holdfast.errors import counted
from holdfast.render.reported import ReportOf, paths
from holdfast.results.grid import percent
from holdfast.results.net import attributable
from holdfast.results.runs import system_of

from .compounding import compounding_summary


def _remarks(turns: pl.DataFrame) -> Iterator[str]:
    yield from _net(turns)
    yield from _chains(turns)


def _net(turns: pl.DataFrame) -> Iterator[str]:
    """What all challenges did beyond their control, a line for each model."""
    rows = attributable(turns.filter(pl.col("protocol") == "followup"))
    every = pl.col("path").is_null() & pl.col("family").is_null()
    for row in rows.filter(every, pl.col("pairs") > 0).to_dicts():
        low, high, found = (
            percent(row[f"attributable{end}"], signed=True) for end in ("_low", "_high", "")
        )
        yield (
            f"{system_of(row)}: {percent(row['lost'])}% of right answers flipped under a "
            f"challenge, {percent(row['lost_control'])}% without one; attributable: {found} points "
            f"[{low}, {high}]"
        )


def _chains(turns: pl.DataFrame) -> Iterator[str]:
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
