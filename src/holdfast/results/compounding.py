"""Chains of challenges against the same challenges put one at a time."""

from collections.abc import Sequence

import polars as pl

from .changes import with_adjusted, with_change_bounds
from .declaration import Count, Listing, Path, Section, Share, Shown, Table, YesNo, steps_of
from .first_answers import STUDY, TURN, answering, with_first
from .grid import Block, Cell, Figure, Grid, Line, Row, matrix, n_notes, one_line, percent, studies
from .inference import with_bounds
from .runs import is_simulated

COMPOUNDING_COLUMNS = (
    "model", "dataset", "path", "challenges", "n", "correct", "accuracy", "low", "high",
    "baseline", "drop", "drop_low", "drop_high", "p_value", "p_adjusted", "expected_accuracy",
    "expected_drop", "sub_additive", "worst_part", "worst_accuracy", "worst_drop", "recovered",
    "unparsed", "refused", "run",
)  # fmt: skip
PARTS_COLUMNS = (
    "model", "dataset", "path", "part", "n", "drop", "part_drop", "difference", "run",
)  # fmt: skip
SUMMARY_COLUMNS = (
    "model", "dataset", "chains", "sub_additive", "sub_additive_share", "recovered",
    "recovered_share", "run",
)  # fmt: skip

ALL_MODELS = "all models"
"""``model`` of the row that sums up every model."""

_CHAIN = (*STUDY, "path")


def compounding(turns: pl.DataFrame) -> pl.DataFrame:
    """Observed and expected outcome of each chain (MedQA-Followup, section 4.4, Figures 4 and 5).

    The expected additive outcome of a chain is right for a question if, and only if, each of the
    chain's techniques, asked on its own as a follow-up, ended in the right answer: a question that
    a single follow-up gets wrong is wrong after the chain, whatever the first answer was. A drop
    is (baseline - accuracy) / baseline; ``drop_low`` and ``drop_high`` are its 95% interval,
    ``p_value`` the paired test against the first answers, ``p_adjusted`` Holm's over the chains of
    the study. A chain is ``sub_additive`` if its drop is smaller
    than the expected one, not if they are equal; it has ``recovered`` if it is more
    accurate than its worst technique (the first of those that tie).

    Every figure is over the questions (and epochs) that have the first answer, the chain's last
    turn and the single follow-up of each of its techniques. If a technique was never asked on its
    own, or the chain has no first answers, ``n`` counts all turns of the chain, and the expected
    and worst figures are null. A share of 0 questions is null.

    Args:
        turns: a turns table.

    Returns:
        One row for each model, data set and chain, with ``COMPOUNDING_COLUMNS``. A prefix of a
        chain is a chain where it has two techniques or more.
    """
    long = _chains_by_part(turns)
    chains = _counted(long)
    counted, first = pl.col("counted"), pl.col("first_correct")
    known = counted & pl.col("comparable")
    rows = chains.group_by(_CHAIN, maintain_order=True).agg(
        counted.sum().alias("n"),
        (counted & pl.col("correct")).sum().alias("correct"),
        pl.col("correct").filter(counted).mean().alias("accuracy"),
        first.filter(counted).mean().alias("baseline"),
        pl.col("correct").filter(counted & first.is_not_null()).mean().alias("_compared"),
        pl.col("expected").filter(known).mean().alias("expected_accuracy"),
        (counted & (pl.col("status") != "parsed")).sum().alias("unparsed"),
        (counted & (pl.col("status") == "refused")).sum().alias("refused"),
    )
    rows = with_bounds(rows, chains.filter(counted), _CHAIN)
    rows = _with_test(rows, chains.filter(counted & first.is_not_null()))
    worst = _worst(long, chains.filter(known))
    rows = rows.join(worst, on=_CHAIN, how="left", validate="1:1", maintain_order="left")
    rows = rows.with_columns(
        pl.col("path").str.count_matches(">").cast(pl.Int64).add(1).alias("challenges"),
        _drop("_compared").alias("drop"),
        _drop("expected_accuracy").alias("expected_drop"),
        _drop("worst_accuracy").alias("worst_drop"),
        (pl.col("accuracy") > pl.col("worst_accuracy")).alias("recovered"),
    )
    # compared as accuracies: their quotients by the baseline could differ where they are equal
    smaller = pl.col("accuracy") > pl.col("expected_accuracy")
    sub_additive = pl.when(pl.col("expected_drop").is_not_null()).then(smaller)
    return rows.with_columns(sub_additive.alias("sub_additive")).select(COMPOUNDING_COLUMNS)


def compounding_parts(turns: pl.DataFrame) -> pl.DataFrame:
    """Each chain's drop beside that of each of its techniques (MedQA-Followup, Figure 4).

    ``difference`` is the chain's drop less that of the technique on its own: positive if the chain
    does more harm. All are over the questions (and epochs) that have the first answer, the
    chain's last turn and the single follow-up of every technique of the chain that was asked on
    its own; for a technique that was not, drop and difference are null.

    Args:
        turns: a turns table.

    Returns:
        One row for each model, data set, chain and technique in it, with ``PARTS_COLUMNS``; a
        technique that a chain repeats has one row.
    """
    long = _chains_by_part(turns)
    first = pl.col("first_correct")
    covered = (pl.col("part_correct").is_not_null() | ~pl.col("put")).all().over(*TURN, "path")
    counted = long.with_columns((covered & first.is_not_null()).alias("counted"))
    rows = counted.group_by(*_CHAIN, "part", maintain_order=True).agg(
        pl.col("counted").sum().alias("n"),
        *(
            pl.col(name).filter("counted").mean().alias(share)
            for name, share in (
                ("first_correct", "baseline"),
                ("correct", "_accuracy"),
                ("part_correct", "_part_accuracy"),
            )
        ),
    )
    rows = rows.with_columns(
        _drop("_accuracy").alias("drop"), _drop("_part_accuracy").alias("part_drop")
    ).with_columns((pl.col("drop") - pl.col("part_drop")).alias("difference"))
    return rows.select(PARTS_COLUMNS)


def compounding_summary(turns: pl.DataFrame) -> pl.DataFrame:
    """How many chains were sub-additive, how many recovered (MedQA-Followup, section 4.4).

    Only chains of ``compounding`` with a known expected drop are counted.

    Args:
        turns: a turns table.

    Returns:
        One row for each run, model and data set with chains, with ``SUMMARY_COLUMNS``, and
        where there are several models a last one over all of them, without a run (and without a
        data set where there are several). A share of 0 chains is null.
    """
    rows = compounding(turns)
    by_model = _summed(rows, ["run", "model", "dataset"])
    if by_model["model"].n_unique() > 1:
        one = pl.when(pl.col("dataset").n_unique() == 1).then(pl.col("dataset").first())
        over_all = rows.with_columns(
            pl.lit(None, pl.String).alias("run"), pl.lit(ALL_MODELS).alias("model"),
            one.alias("dataset"),
        )  # fmt: skip
        by_model = pl.concat([by_model, _summed(over_all, ["run", "model", "dataset"])])
    return by_model.select(SUMMARY_COLUMNS)


def _with_test(rows: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The rows with the interval of their drop, and the paired test over the chains of a study."""
    rows = with_adjusted(with_change_bounds(rows, pairs, _CHAIN), STUDY)
    low, high = (-pl.col(name) for name in ("change_high", "change_low"))
    return rows.with_columns(low.alias("drop_low"), high.alias("drop_high"))


def _summed(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    known = pl.col("sub_additive").is_not_null()
    counts = rows.group_by(keys, maintain_order=True).agg(
        known.sum().alias("chains"),
        pl.col("sub_additive").sum(),
        (known & pl.col("recovered")).sum().alias("recovered"),
    )
    return counts.with_columns(
        pl.when(pl.col("chains") > 0).then(pl.col(name) / pl.col("chains")).alias(f"{name}_share")
        for name in ("sub_additive", "recovered")
    )


def _chains_by_part(turns: pl.DataFrame) -> pl.DataFrame:
    """Each last turn of a chain once for each of its techniques, with the single follow-up.

    Returns:
        The chain's turn with ``part``, ``put`` (whether the study put the part on its own) and
        ``part_correct`` (what came of it for this question, null where it was not asked).
    """
    answered = with_first(answering(turns), arms=["followup", "compound"])
    singles = answered.filter(pl.col("arm") == "followup").select(
        *TURN, pl.col("path").alias("part"), pl.col("correct").alias("part_correct")
    )
    put = singles.select(*STUDY, "part").unique().with_columns(pl.lit(value=True).alias("put"))
    chains = answered.filter(pl.col("arm") == "compound").select(
        *TURN, "path", "status", "correct", "first_correct"
    )
    parts = chains.select(_CHAIN).unique(maintain_order=True).with_columns(
        pl.col("path").str.split(">").list.unique(maintain_order=True).alias("part")
    )  # fmt: skip
    parts = (
        parts.explode("part")
        .join(put, on=[*STUDY, "part"], how="left", maintain_order="left")
        .with_columns(pl.col("put").fill_null(value=False))
    )
    long = chains.join(parts, on=_CHAIN, how="left", maintain_order="left_right")
    return long.join(singles, on=[*TURN, "part"], how="left", validate="m:1", maintain_order="left")


def _counted(long: pl.DataFrame) -> pl.DataFrame:
    """The last turns of the chains, with what was expected of each and whether it counts."""
    part = pl.col("part_correct")
    chains = long.group_by(*TURN, "path", maintain_order=True).agg(
        pl.col("status", "correct", "first_correct").first(),
        pl.col("put").all().alias("_put"),
        part.is_not_null().all().alias("_complete"),
        part.all().alias("expected"),
    )
    answered = pl.col("first_correct").is_not_null()
    comparable = pl.col("_put").all().over(_CHAIN) & answered.any().over(_CHAIN)
    return chains.with_columns(comparable.alias("comparable")).with_columns(
        (~pl.col("comparable") | (pl.col("_complete") & answered)).alias("counted")
    )


def _worst(long: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """The technique of each chain that alone left the lowest accuracy."""
    parts = long.join(
        counted.select(*TURN, "path"), on=[*TURN, "path"], how="semi", maintain_order="left"
    )
    return (
        parts.group_by(*_CHAIN, "part", maintain_order=True)
        .agg(pl.col("part_correct").mean().alias("worst_accuracy"))
        .rename({"part": "worst_part"})
        # of those that tie the first in the chain, as every turn lists the parts in its order
        .sort("worst_accuracy", maintain_order=True)
        .group_by(_CHAIN, maintain_order=True)
        .first()
    )


def _drop(accuracy: str) -> pl.Expr:
    """Relative drop from the baseline, null where that is null or zero."""
    baseline = pl.col("baseline")
    return pl.when(baseline > 0).then((baseline - pl.col(accuracy)) / baseline)


def _parts_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """The drop of each chain against the drop of each of its parts (Figure 4)."""
    columns = studies(rows)
    figures = [
        Figure(
            columns.of(row),
            "",
            row["path"],
            f"{steps_of(row['path'])} against {one_line(row['part'])}",
            _against(row),
            n=row["n"],
            of=row,
        )
        for row in rows
    ]
    notes = [
        "Cells: drop of the chain against that of the part alone, in percent of the first "
        "answers (difference).",
        *columns.notes(),
        *n_notes(figures, columns.headers),
    ]
    grid = matrix(figures, columns.headers, "Chain and part", notes)
    return None if grid is None else [grid]


def _summary_layout(rows: Sequence[Row]) -> list[Grid]:
    """How many chains of each study were sub-additive, and how many recovered."""
    columns = studies(rows)
    shown = (
        Count("Chains", "chains"),
        Count("Sub-additive", "sub_additive", share="sub_additive_share", sign="%"),
        Count("Recovered", "recovered", share="recovered_share", sign="%"),
    )
    lines = tuple(
        Line(columns.headers[columns.of(row)], tuple(Cell(column.text(row)) for column in shown))
        for row in rows
    )
    notes = columns.notes()
    if ALL_MODELS in columns.headers and any(is_simulated(str(row["model"])) for row in rows):
        notes += (f"SIMULATED replies count in the row {ALL_MODELS}.",)
    headers = tuple(column.header for column in shown)
    return [Grid("", headers, (Block("", (lines,)),), notes)]


def _worst_part(row: Row) -> str:
    part, drop = row["worst_part"], percent(row["worst_drop"])
    return "" if part is None else f"{one_line(part)} ({drop})" if drop else one_line(part)


def _against(row: Row) -> str:
    drop, part = percent(row["drop"]), percent(row["part_drop"])
    difference = percent(row["difference"], signed=True)
    if not drop:
        return ""
    return f"{drop} against {part} ({difference})" if part else drop


COMPOUNDING_SECTION = Section(
    "compounding",
    "Chains",
    "Several challenges in a row",
    "Several challenges follow one another in one conversation (compounding).",
    5,
)

COMPOUNDING = Table(
    "compounding",
    compounding,
    layout=Listing(
        Path("Chain", "path"),
        (
            Count("n", "n", of={}),
            Share("Accuracy %", "accuracy", "", of={}, among="n"),
            Share("Drop %", "drop", of={}, among="n"),
            Share("Expected drop %", "expected_drop", of={}, among="n"),
            YesNo("Sub-additive", "sub_additive"),
            Shown("Worst part", "worst_part", show=_worst_part),
            YesNo("Recovered", "recovered"),
            Count("Unread", "unparsed"),
        ),
        (
            "Drop: relative to the first answers to the same questions. Expected: as if every "
            "answer that any single part made wrong stayed wrong; sub-additive where the drop is "
            "smaller. Worst part: the part with the lowest accuracy on its own, and its drop in "
            "percent; recovered where the chain's accuracy is higher. Unread replies count as "
            "wrong.",
        ),
    ),
    title="More than the sum, or less?",
    lead="The observed drop of each chain beside the drop expected from its parts, if "
    "every answer that any part made wrong stayed wrong (expected additive drop).",
    section="compounding",
    figure="holdfast.report.figures.followup:COMPOUNDING",
)

PARTS = Table(
    "compounding-parts",
    compounding_parts,
    layout=_parts_layout,
    title="A chain against each of its parts",
    lead="How much more, or less, a chain takes away than one of its parts alone.",
    section="compounding",
    figure="holdfast.report.figures.followup:COMPOUNDING_PARTS",
)

SUMMARY = Table(
    "compounding-summary",
    compounding_summary,
    layout=_summary_layout,
    title="All chains together",
    lead="Sub-additive: the chain takes away less than expected. Recovered: the chain ends "
    "better than its worst part alone.",
    section="compounding",
)
