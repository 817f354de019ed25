"""Missing replies: unparsed, refused or failed replies, which have no answer.

The content of a missing reply is unknown. Worst-case bounds contain the figure for any content
(Manski, 1990). The figure over questions parsed both times excludes missing replies.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from holdfast.stats.intervals import Counts
from holdfast.stats.pvalues import clustered

from .arms import in_arms
from .changes import with_adjusted
from .controls import CORRECTION
from .declaration import steps_of
from .first_answers import BASELINE, STUDY, apart, with_first
from .grid import Grid, HeatmapCell, Row, matrix, percent
from .inference import looked_up, one_by_one, with_pair_bounds
from .readings import missing

WORST = ("worst_low", "worst_high")
"""Bounds of a table's figure, with the missing replies all wrong or all right."""

MISSING = (
    *WORST, "change_worst_low", "change_worst_high", "read_both", "read_both_change", "missing",
    "first_missing", "missing_p",
)  # fmt: skip
"""Columns on missing replies in a row of accuracies."""

ROW = (*STUDY, "arm", "path", "technique", "family")
"""Columns that identify a challenge."""

LEVEL = 0.05
"""Significance level of a difference between shares of missing replies, for corrected p-values."""

_MOST_NAMED = 8
_IS_CHALLENGED = pl.col("arm") != BASELINE


@dataclass(frozen=True)
class HardToRead:
    """Model with many replies that could not be parsed.

    Attributes:
        model: name of the model.
        unread: number of unparsed replies, without refusals.
        replies: number of distinct replies of the model, without replies to controls and
            corrections.
        examples: texts of two different unparsed replies, if texts were stored.
    """

    model: str
    unread: int
    replies: int
    examples: tuple[str, ...]


_IS_OWN_CALL = ~pl.col("shared").fill_null(value=False) & (pl.col("status") != "error")
_UNREAD = pl.col("status").is_in(("none", "ambiguous"))


def hard_to_read(
    turns: pl.DataFrame, beyond: float, texts: pl.LazyFrame | None = None
) -> Iterator[HardToRead]:
    """Yield the models with more than a given share of unparsed replies.

    Args:
        turns: a turns table.
        beyond: the share, 0 to 1.
        texts: the same table with replies, if they were stored.
    """
    # replies of the tested model that general measures use
    is_model_reply = ~in_arms(lambda declaration: declaration.helpers) & ~apart()
    counts = turns.filter(is_model_reply, _IS_OWN_CALL).group_by("model", maintain_order=True)
    for model, unread, replies in counts.agg(unread=_UNREAD.sum(), replies=pl.len()).iter_rows():
        if unread > beyond * replies:
            examples: list[str] = []
            if texts is not None:
                unread_texts = texts.filter(
                    is_model_reply, _UNREAD, pl.col("model") == model
                ).select("reply")
                unlike = unread_texts.unique(keep="first", maintain_order=True).drop_nulls()
                examples = unlike.head(2).collect()["reply"].to_list()
            yield HardToRead(model, unread, replies, tuple(examples))


def missing_replies(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute accuracy with missing replies wrong and right, and the same for pairs.

    A pair is a reply with the first answer to its question, including failed ones.

    Returns:
        One row for each ``ROW``. ``_low`` and ``_high`` are the accuracy with missing replies wrong
        and right; ``_after_low``, ``_after_high``, ``_first_low`` and ``_first_high`` the same over
        pairs. ``read_both`` counts pairs parsed both times, ``_after`` and ``_first`` are over
        these. ``missing`` and ``first_missing`` are shares of pairs without an answer.
        ``missing_p`` tests their difference: McNemar's exact test, clustered by question, with
        Holm's correction over the study. For first answers, all figures of pairs are null.
    """
    replies = with_first(turns, with_failed=True).select(
        *ROW,
        "question",
        _right="correct",
        _gone=missing(),
        _was="first_correct",
        _was_gone=pl.when(pl.col("first_correct").is_not_null()).then(
            pl.col("first_answer").is_null()
        ),
    )
    right, is_missing, was, was_gone = (
        pl.col(name) for name in ("_right", "_gone", "_was", "_was_gone")
    )
    pair = _IS_CHALLENGED & was.is_not_null()
    both_read = pair & ~is_missing & ~was_gone

    def of_pairs(hit: pl.Expr) -> pl.Expr:
        return hit.filter(pair).mean()

    rows = replies.group_by(ROW, maintain_order=True).agg(
        _low=right.mean(),
        _high=(right | is_missing).mean(),
        _after_low=of_pairs(right),
        _after_high=of_pairs(right | is_missing),
        _first_low=of_pairs(was),
        _first_high=of_pairs(was | was_gone),
        read_both=both_read.sum().cast(pl.Int64),
        _after=right.filter(both_read).mean(),
        _first=was.filter(both_read).mean(),
        missing=of_pairs(is_missing),
        first_missing=of_pairs(was_gone),
    )
    has_pair = pl.col("missing").is_not_null()
    rows = rows.with_columns(pl.when(has_pair).then("read_both"))
    # pairs with both or neither reply missing say nothing about a difference
    unlike = replies.filter(pair, is_missing != was_gone).select(
        *ROW, "question", first="_gone", second="_was_gone"
    )
    return with_missing_test(rows, unlike, ROW, STUDY)


def against_the_model(turns: pl.DataFrame) -> pl.DataFrame:
    """Replace each missing reply by the answer that counts most against the model.

    A missing reply to a challenge, an offer or an attack names a wrong option: the suggested option
    if it is wrong. A missing control keeps the right answer, so no flip is attributed to noise. A
    missing first answer or single shot counts as right, so it can be lost. Replies of helpers do
    not change.

    Args:
        turns: a turns table.
    """
    arm, gold = pl.col("arm"), pl.col("gold")
    before = (arm == BASELINE) | in_arms(lambda declaration: declaration.plain or ())
    control = in_arms(lambda declaration: declaration.apart.keys()) & (arm != CORRECTION)
    other_letter = pl.when(gold == "A").then(pl.lit("B")).otherwise(pl.lit("A"))
    suggestion = pl.when(pl.col("suggested").ne_missing(gold)).then("suggested")
    wrong = pl.coalesce(suggestion, other_letter)
    is_missing = (pl.col("status") != "parsed") & ~in_arms(lambda declaration: declaration.helpers)
    counts_as_kept = before | control
    answer = pl.when(counts_as_kept).then(pl.coalesce("target", gold)).otherwise(wrong)
    return turns.with_columns(
        status=pl.when(is_missing).then(pl.lit("parsed")).otherwise("status"),
        answer=pl.when(is_missing).then(answer).otherwise("answer"),
        correct=pl.when(is_missing).then(counts_as_kept).otherwise("correct"),
    )


def with_missing_test(
    rows: pl.DataFrame,
    pairs: pl.DataFrame,
    keys: Sequence[str],
    within: Sequence[str],
    test: Callable[[Counts, Counts], float] = clustered,
) -> pl.DataFrame:
    """Add ``missing_p`` to the rows: whether the shares of missing replies differ between sides.

    Args:
        rows: one row for each combination of ``keys``.
        pairs: as for ``with_pair_bounds``: whether each reply of a pair is missing.
        keys: columns that identify a row.
        within: columns of the groups that Holm's correction covers.
        test: function from successes and trials by question to a p-value.
    """
    test_function = one_by_one(lambda first, second: (test(first, second),))
    rows = with_adjusted(with_pair_bounds(rows, pairs, keys, ("_p",), test_function), within, "_p")
    return rows.drop("_p").rename({"p_adjusted": "missing_p"})


_SHARES = ("_low", "_high", "_after_low", "_after_high", "_first_low", "_first_high", "_after",
           "_first", "missing", "first_missing")  # fmt: skip


def with_missing(
    rows: pl.DataFrame,
    turns: pl.DataFrame,
    average_pairs: Callable[[pl.DataFrame], pl.DataFrame],
) -> pl.DataFrame:
    """Add ``MISSING`` to the rows of accuracies and of their averages.

    Args:
        rows: one row for each ``ROW``.
        turns: the turns table behind the rows, including failed turns.
        average_pairs: function that selects the pairs of averages, with their ``arm``, ``path`` and
            ``technique``.
    """
    replies = missing_replies(turns)
    summaries = pl.concat(
        [replies, average_pairs(replies).with_columns(missing_p=pl.lit(None, pl.Float64))]
    )
    has_both = pl.col("read_both").count() > 0
    summaries = summaries.group_by(ROW).agg(
        # in a fixed order, because the last digit of a sum depends on the order
        *(pl.col(name).sort().mean() for name in _SHARES),
        pl.when(has_both).then(pl.col("read_both").sum()),
        pl.col("missing_p").first(),
    )
    summaries = summaries.rename({"_low": "worst_low", "_high": "worst_high"}).with_columns(
        _change("_after_low", "_first_high").alias("change_worst_low"),
        _change("_after_high", "_first_low").alias("change_worst_high"),
        _change("_after", "_first").alias("read_both_change"),
    )
    return looked_up(rows, summaries.select(*ROW, *MISSING), ROW, nulls_equal=True)


def _change(after: str, first: str) -> pl.Expr:
    return pl.when(pl.col(first) > 0).then((pl.col(after) - pl.col(first)) / pl.col(first))


FLIP_BOUNDS = (*WORST, "read_both", "read_both_rate")
"""Columns on missing replies in a row of flips."""


def with_flip_bounds(rows: pl.DataFrame, turns: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Add ``FLIP_BOUNDS`` to the rows of flips.

    A missing reply to a right first answer may be a flip or not. A missing first answer may be
    wrong or right. If it is right, it adds to the denominator, and the later reply may be a flip or
    not.
    """
    challenged_turns = with_first(turns, with_failed=True).filter(
        _IS_CHALLENGED, pl.col("first_correct").is_not_null()
    )
    right, is_lost = pl.col("first_correct"), ~pl.col("correct")
    is_missing, unknown = pl.col("status") != "parsed", pl.col("first_answer").is_null()
    flips = (right & ~is_missing & is_lost).sum()
    may_keep, may_flip = (unknown & (~is_lost | is_missing)).sum(), (unknown & is_lost).sum()
    # if one ratio has an empty denominator, unknown first answers can be right only as in the other
    least_rate = _ratio(flips, right.sum() + may_keep)
    most_rate = _ratio(flips + (right & is_missing).sum() + may_flip, right.sum() + may_flip)
    flip_bounds = challenged_turns.group_by(keys).agg(
        read_both=(right & ~is_missing).sum().cast(pl.Int64),
        read_both_rate=_ratio(flips, (right & ~is_missing).sum()),
        worst_low=pl.coalesce(least_rate, most_rate),
        worst_high=pl.coalesce(most_rate, least_rate),
    )
    return looked_up(rows, flip_bounds.select(*keys, *FLIP_BOUNDS), keys, nulls_equal=True)


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    return pl.when(whole > 0).then(part / whole)


def lacks(row: Row) -> bool:
    """Whether missing replies leave a figure of the row uncertain."""
    return any(row.get(f"{of}worst_low") != row.get(f"{of}worst_high") for of in ("", "change_"))


def bounds_text(row: Row, of: str = "", *, with_sign: bool = False, unit: str = "") -> str:
    """Format bounds as ``40.1 to 55.2``, empty if null."""
    ends = [percent(row.get(f"{of}worst_{end}"), with_sign=with_sign) for end in ("low", "high")]
    return " to ".join(f"{end}{unit}" for end in ends) if all(ends) else ""


def read_both_text(row: Row, figure: str, *, with_sign: bool = False, unit: str = "") -> str:
    """Format the figure over questions parsed both times, and their number."""
    figure_text = percent(row.get(figure), with_sign=with_sign)
    return f"{figure_text}{unit} (n = {row['read_both']})" if figure_text else ""


_BOUNDS = (
    "Cells: accuracy with all missing replies (unparsed, refused or failed) counted as wrong, "
    "to all counted as right. In brackets: the change from the first answers, from its lowest "
    "to its highest possible value, and the change over questions parsed both times."
)


def missing_grid(rows: Iterable[tuple[Row, HeatmapCell]], headers: Sequence[str]) -> list[Grid]:
    """Lay out the bounds of accuracies and their changes, for rows with missing replies."""
    figures = []
    for row, figure in rows:
        if not lacks(row):
            continue
        change = bounds_text(row, "change_", with_sign=True, unit="%")
        read_both = read_both_text(row, "read_both_change", with_sign=True, unit="%")
        behind = "; ".join(
            filter(None, [change, f"read both times {read_both}" if read_both else ""])
        )
        text = " ".join(filter(None, [bounds_text(row), f"[{behind}]" if behind else ""]))
        figures.append(replace(figure, text=text, mark="", of=None))
    grid = matrix(figures, headers, "Missing replies", [_BOUNDS]) if figures else None
    return [] if grid is None else [grid]


def missing_notes(rows: Iterable[Row], name: Callable[[Row], str]) -> list[str]:
    """Note studies with more, or fewer, missing replies after challenges than at first, by name."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(name(row), []).append(row)
    notes_by_name = ((who, unlike_arms(name_rows)) for who, name_rows in by_name.items())
    return [f"{who}: {sentence}" for who, sentence in notes_by_name if sentence]


def unlike_arms(rows: Iterable[Row]) -> str:
    """Describe the challenges of a study with more, or fewer, missing replies."""
    arms = []
    for row in rows:
        p = row.get("missing_p")
        if p is not None and p < LEVEL:
            steps = row["path"] if "path" in row else f"{row['mitigation']}>{row['technique']}"
            after, first = (percent(row[name]) for name in ("missing", "first_missing"))
            arms.append(f"{steps_of(steps.strip('>'))} {after}% (first {first}%)")
    return unlike("after challenges and at first", arms)


def unlike(where: str, arms: Sequence[str]) -> str:
    """Describe arms with different shares of missing replies; empty without any."""
    more = f" and {len(arms) - _MOST_NAMED} more" if len(arms) > _MOST_NAMED else ""
    sentence = (
        f"the shares of replies without an answer differ {where} by more than chance (paired "
        f"test, Holm's correction): {', '.join(arms[:_MOST_NAMED])}{more}. Read the bounds, "
        "and the figure over questions parsed both times."
    )
    return sentence if arms else ""
