"""Scale: conviction, abstention and flexibility against the size of the model."""

from collections.abc import Mapping

import polars as pl

from .first_answers import STUDY
from .flexibility import flexibility
from .sizes import Size, size_of, sizes
from .survival import survival
from .tax import ABSTENTION, CONVICTION, SINGLE_SHOT, SINGLE_SHOT_ABSTAIN, tax

SCALE_COLUMNS = (
    "model", "family", "parameters", "dataset", "single_shot", "isolated", "conviction", "tax",
    "single_shot_abstention", "isolated_abstention", "abstention", "abstention_tax",
    "correct_rate", "incorrect_rate", "run",
)  # fmt: skip

_STUDY = tuple(name for name in STUDY if name != "protocol")


def scale(turns: pl.DataFrame, models: str | None = None) -> pl.DataFrame:
    """The measures of Stick-or-Switch by parameter count (Stick-or-Switch, Figures 2 to 6).

    ``conviction`` and ``abstention`` are S(T), the last row of ``survival``; ``tax`` and
    ``abstention_tax`` those of ``tax`` against single-shot accuracy; the rates those of
    ``flexibility``. ``single_shot`` and ``isolated`` (accuracy with all options, and of the binary
    choice, Figure 2) and the same for abstention (Figure 4) are those of ``tax`` too.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.
        models: a CSV file of sizes to add to the bundled ones, see ``sizes``.

    Returns:
        One row for each model and data set with ``SCALE_COLUMNS``; ``family`` and ``parameters``
        (billions) are null where they are not known. Families in the order of the first turn,
        within one from small to large; models of unknown size last.

    Raises:
        InputError: the file of sizes cannot be used.
    """
    known = sizes(models)
    survived, taxes = survival(turns), tax(turns)
    names = {"positive": "conviction", "negative": "abstention"}
    last = survived.group_by(*_STUDY, "arm", maintain_order=True).agg(pl.col("survival").last())
    rows = survived.select(_STUDY).unique(maintain_order=True)
    for arm, name in names.items():
        held = last.filter(pl.col("arm") == arm).select(*_STUDY, pl.col("survival").alias(name))
        rows = _joined(rows, held)
    for behaviour, against, columns in (
        (CONVICTION, SINGLE_SHOT, ("single_shot", "isolated", "tax")),
        (ABSTENTION, SINGLE_SHOT, ("", "isolated_abstention", "abstention_tax")),
        (ABSTENTION, SINGLE_SHOT_ABSTAIN, ("single_shot_abstention", "", "")),
    ):
        of = taxes.filter(pl.col("behaviour") == behaviour, pl.col("against") == against)
        named = zip(("single_shot", "isolated", "tax"), columns, strict=True)
        rows = _joined(rows, of.select(*_STUDY, *(pl.col(a).alias(b) for a, b in named if b)))
    switches = flexibility(turns).select(*_STUDY, "correct_rate", "incorrect_rate")
    rows = _joined(rows, switches)
    return with_sizes(rows, known).select(SCALE_COLUMNS)


def with_sizes(rows: pl.DataFrame, known: Mapping[str, Size]) -> pl.DataFrame:
    """The rows with ``family`` and ``parameters``, in the order of both.

    Args:
        rows: rows with ``model``.
        known: from ``sizes``.
    """
    found = [size_of(model, known) for model in rows["model"]]
    rows = rows.with_columns(
        pl.Series("family", [size.family if size else None for size in found], pl.String),
        pl.Series("parameters", [size.billions if size else None for size in found], pl.Float64),
    ).with_row_index("_row")
    place = pl.when(pl.col("family").is_not_null()).then(pl.col("_row").min().over("family"))
    rows = rows.with_columns(place.alias("_family"))
    return rows.sort("_family", "parameters", "_row", nulls_last=True).drop("_family", "_row")


def _joined(rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    return rows.join(others, on=_STUDY, how="left", validate="1:1", maintain_order="left")
