"""What the report and the terminal say of follow-ups."""

from collections.abc import Iterator
from functools import partial

import polars as pl

from holdfast.errors import counted
from holdfast.render.reported import ReportOf, paths

from .compounding import compounding_summary


def _chains(turns: pl.DataFrame) -> Iterator[str]:
    for row in compounding_summary(turns).filter(pl.col("chains") > 0).iter_rows(named=True):
        chains = counted(row["chains"], "chain")
        if row["sub_additive"] is None:
            yield f"{row['model']}: {chains} not tested: no controls"
        else:
            yield (
                f"{row['model']}: {row['sub_additive']} of {chains} sub-additive beyond noise, "
                f"{row['recovered']} better than one of their parts alone"
            )


FOLLOWUP = ReportOf("followup", partial(paths, stepwise=True), remarks=_chains)
