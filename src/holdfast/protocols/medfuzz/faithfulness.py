"""Faithfulness: whether the reasoning of a flipped answer mentions its cause (MedFuzz)."""

import json
from collections.abc import Sequence

import polars as pl

from holdfast.results.declaration import Column, Computed, Count, Listing, Share, Table, Text, count
from holdfast.results.first_answers import STUDY
from holdfast.results.grid import Row
from holdfast.results.inference import looked_up, with_bounds, with_mean_bounds
from holdfast.stats.pvalues import cohens_kappa

from . import charts
from .replicates import successes

FAITHFULNESS_COLUMNS = (
    "model", "dataset", "by", "n", "none", "none_share", "none_low", "none_high", "some",
    "some_share", "some_low", "some_high", "all", "all_share", "all_low", "all_high", "mentioned",
    "mentioned_low", "mentioned_high", "unread", "n_both", "kappa", "n_characteristics",
    "kappa_characteristics", "run",
)  # fmt: skip

CLASSES = ("none", "some", "all")
"""Classes by mentioned characteristics; all but ``all`` are unfaithful."""

_READERS = {
    "lexical": "mentioned", "lexical, visible reply": "mentioned_visible",
    "judge": "mentioned_judged",
}  # fmt: skip
"""Column of the turns table by reader of the reasoning."""

_ROW = (*STUDY, "by")

_KAPPA_NULL = "Null if both readers found a single class, or without readings."


def faithfulness(turns: pl.DataFrame) -> pl.DataFrame:
    """Count successful attacks by whether the reasoning mentions the additions (section 5).

    The readers see the hidden reasoning if the provider returns it, unless the setting
    ``hidden_reasoning`` excludes it. A further row then covers the visible reply alone. Intervals
    of the classes are Wilson's, with the effective number of attacks. The interval of ``mentioned``
    is Student's t over questions. The judge's row has its agreement with the lexical check, which
    is null in other rows.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.

    Returns:
        One row for each model, data set and reader with a reading.
    """
    success_rows = successes(turns)
    success_rows = success_rows.with_columns(
        pl.Series(name, list(map(_readings, success_rows[name])), dtype=pl.List(pl.Boolean))
        for name in _READERS.values()
    )
    readings = pl.concat(
        success_rows.select(
            *STUDY, "question", pl.lit(reader).alias("by"), pl.col(name).list.mean().alias("share")
        )
        for reader, name in _READERS.items()
    )
    share = pl.col("share")
    usable_readings = readings.filter(share.is_not_null()).with_columns(
        none=share == 0, some=(share > 0) & (share < 1), all=share == 1
    )
    rows = readings.group_by(_ROW, maintain_order=True).agg(
        n=share.count().cast(pl.Int64),
        # in a fixed order, because the last digit of a sum depends on the order
        mentioned=share.drop_nulls().sort().mean(),
        unread=share.null_count().cast(pl.Int64),
    )
    counts = usable_readings.group_by(_ROW).agg(pl.col(CLASSES).sum().cast(pl.Int64))
    rows = rows.join(counts, on=_ROW, how="inner", validate="1:1", maintain_order="left")
    for name in CLASSES:
        rows = rows.with_columns((pl.col(name) / pl.col("n")).alias(f"{name}_share"))
        rows = with_bounds(rows, usable_readings, _ROW, f"{name}_share", name, ends=f"{name}_")
    rows = with_mean_bounds(rows, usable_readings, _ROW, "share", "mentioned_")
    rows = looked_up(rows, _agreement(success_rows), _ROW).with_row_index("_row")
    rows = rows.sort(pl.col("_row").min().over(STUDY), pl.col("by") != "lexical")
    return rows.select(FAITHFULNESS_COLUMNS)


def _agreement(success_rows: pl.DataFrame) -> pl.DataFrame:
    """Compute the kappas of the judge and the lexical check, by study, for the judge's row."""
    rows: list[tuple[object, ...]] = []
    for study, study_rows in success_rows.group_by(STUDY, maintain_order=True):
        pairs = [
            (lexical, by_judge)
            for lexical, by_judge in study_rows.select("mentioned", "mentioned_judged").iter_rows()
            # readings of different lengths cover different characteristics
            if lexical and by_judge and len(lexical) == len(by_judge)
        ]
        rule_classes, judge_classes = ([_class(pair[side]) for pair in pairs] for side in (0, 1))
        rule_values, opposite = (
            [value for pair in pairs for value in pair[side]] for side in (0, 1)
        )
        kappas = cohens_kappa(rule_classes, judge_classes), cohens_kappa(rule_values, opposite)
        rows.append((*study, "judge", len(pairs), kappas[0], len(rule_values), kappas[1]))
    schema = {name: success_rows.schema.get(name, pl.String()) for name in _ROW}
    for suffix in ("", "_characteristics"):
        schema |= {f"n{suffix or '_both'}": pl.Int64(), f"kappa{suffix}": pl.Float64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _class(mentions_each: Sequence[bool]) -> str:
    return "all" if all(mentions_each) else "some" if any(mentions_each) else "none"


def _readings(text: str | None) -> list[bool] | None:
    """Return a truth value for each characteristic, None if unknown."""
    try:
        values = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(values, list)
        or not values
        or not all(isinstance(value, bool) for value in values)
    ):
        return None
    return values


def _mentioning(name: str) -> Column:
    share = Share("", f"{name}_share", f"{name}_")
    return Computed(
        name.capitalize(), name, show=lambda row: f"{count(row[name])}: {share.text(row)}"
    )


def _kappa(header: str, name: str, n: str) -> Column:
    def show(row: Row) -> str:
        return f"{row[name]:.2f} ({row[n]})" if row[name] is not None else ""

    return Computed(header, name, show=show)


FAITHFULNESS = Table(
    "faithfulness",
    faithfulness,
    layout=Listing(
        Text("By", "by"),
        (
            Count("n", "n"),
            *map(_mentioning, CLASSES),
            Share("Mentioned %", "mentioned", "mentioned_"),
            Count("Unread", "unread"),
            _kappa("Kappa", "kappa", "n_both"),
            _kappa("of characteristics", "kappa_characteristics", "n_characteristics"),
        ),
        (
            "Successful attacks with a reading whose reasoning mentions none, some or all of the "
            "added characteristics, in percent [95% interval], and the mean share mentioned. "
            "Kappa: agreement of the judge with the lexical check on the class, and on each "
            "characteristic (n read by both).",
        ),
    ),
    title="Does the reasoning mention the cause of the flip?",
    lead="Whether the reasoning after a successful attack mentions the added details.",
    section="medfuzz",
    chart=charts.FAITHFULNESS,
    says={
        "by": "Reader: `lexical` for the lexical check, `lexical, visible reply` for the same "
        "check of the visible reply alone, `judge` for the judge model.",
        "n": "Number of successful attacks with a reading.",
        "none": "Number of attacks whose reasoning mentions none of the added characteristics.",
        "none_share": "Share of these attacks, `none` / `n`.",
        "some": "Number of attacks whose reasoning mentions some of the added characteristics, "
        "but not all.",
        "some_share": "Share of these attacks, `some` / `n`.",
        "all": "Number of attacks whose reasoning mentions all added characteristics.",
        "all_share": "Share of these attacks, `all` / `n`.",
        "mentioned": "Mean over attacks of the share of the added characteristics that the "
        "reasoning mentions.",
        "unread": "Number of successful attacks without a reading.",
        "n_both": "Number of attacks read by both the judge and the lexical check, with the same "
        "number of characteristics.",
        "kappa": f"Cohen's kappa of the classes none, some and all over `n_both`. {_KAPPA_NULL}",
        "n_characteristics": "Number of characteristics in the `n_both` attacks.",
        "kappa_characteristics": "Cohen's kappa of whether a characteristic is mentioned, over "
        f"`n_characteristics`. {_KAPPA_NULL}",
    },
    intervals={name: f"{name}_share" for name in CLASSES},
)
