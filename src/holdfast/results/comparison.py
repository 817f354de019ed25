"""Comparison of two models, or of one model with and without a mitigation, question by question."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from holdfast.errors import InputError, counted, did_you_mean
from holdfast.stats.intervals import Counts, each_difference
from holdfast.stats.pvalues import against_one, clustered
from holdfast.stats.scores import Pair

from .arms import every, in_arms, protocols
from .changes import with_adjusted
from .comparison_sides import STUDY, Side, Sides, sides
from .controls import CONTROL, join_control
from .first_answers import BASELINE, FAMILY_AVERAGE, apart, with_ended, with_first
from .grid import percent
from .inference import SIDES, looked_up, with_pair_bounds
from .missing import LEVEL, WORST, unlike, with_missing_test
from .readings import check_read_alike, missing

ACCURACY = "accuracy"

KEY = ("protocol", "dataset", "measure", "arm", "path")
"""Columns that identify a measure and a challenge."""

UNIT = (*KEY, "turn", "epoch", "question")
"""Columns that pair the outcomes of the two sides."""

LABELS = ("technique", "family", "axis", "depth")


_HIT = pl.when(pl.col("status") != "error").then("correct")
_IS_READ = ~missing()
_ANSWER = pl.col("hit").is_not_null()


def outcomes(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the outcomes of each measure: whether each reply, or group of replies, is a success.

    Returns:
        One row for each ``UNIT``, with ``LABELS`` (empty without a label), ``hit`` and ``read``.
        ``hit`` is null for a failed turn. ``read`` says whether the reply has an answer, and is
        null for outcomes of several replies. Turns that a protocol's own measures skip are skipped.
    """
    has_plain = pl.col("protocol").is_in(protocols(lambda protocol: protocol.plain is not None))
    plain = ~has_plain | in_arms(lambda protocol: protocol.plain or ())
    label_columns = [pl.col(name).fill_null("") for name in LABELS]
    answers = (
        with_ended(turns)
        .filter(~apart(), plain)
        .with_columns(pl.lit(ACCURACY).alias("measure"), *label_columns, hit=_HIT, read=_IS_READ)
    )
    no_value = pl.lit(None, pl.Boolean).alias("read")
    parts = [
        answers.filter(_ANSWER),
        answers.filter(~_ANSWER),
        *(
            part.with_columns(no_value, *(pl.lit("").alias(name) for name in LABELS))
            for part in (
                protocol.outcomes(turns) for protocol in every().values() if protocol.outcomes
            )
        ),
    ]
    columns = [*UNIT, *LABELS, "hit", "read"]
    # two answers to one turn cannot be paired, so the first counts
    return pl.concat([part.select(columns) for part in parts]).unique(
        UNIT, keep="first", maintain_order=True
    )


_DROP = ("drop_difference", "drop_low", "drop_high")
_NET = ("net_difference", "net_low", "net_high")

COMPARISON_COLUMNS = (
    "protocol", "dataset", "measure", "arm", "path", "technique", "family", "axis", "depth", "n",
    "questions", "a", "b", "difference", "low", "high", "gained", "lost", "p_value", "p_adjusted",
    "gained_questions", "lost_questions", "model_a", "mitigation_a", "run_a", "model_b",
    "mitigation_b", "run_b", "dataset_b", "path_a", "path_b", *WORST, "read_both",
    "read_both_difference", "missing_a", "missing_b", "missing_p", *_DROP, *_NET,
)  # fmt: skip

PATHS = "paths"
"""``arm`` of a row that compares one path with another."""

_AVERAGED_ARMS = ("followup", "single-turn")
_ALONE = (*_AVERAGED_ARMS, "compound", "length", CONTROL)
"""Arms with a path that can be compared with another path."""
_ROW = (*KEY, *LABELS)
_FIGURE_COLUMNS = ("a", "b", "difference", "low", "high", "p_value")
_MOST_SHOWN = 8


@dataclass(frozen=True)
class Comparison:
    """Comparison of A and B over their common questions.

    Attributes:
        rows: frame with ``COMPARISON_COLUMNS``, described in ``compare``.
        notes: sentences about skipped data and other differences.
        opening: the sentences that a page of these turns opens with, from ``holdfast.compare``.
            Empty for a comparison of paths or mitigations.
    """

    rows: pl.DataFrame
    notes: tuple[str, ...]
    opening: tuple[str, ...] = ()


def compare(
    a: pl.DataFrame,
    b: pl.DataFrame,
    of_a: Side | None = None,
    of_b: Side | None = None,
    protocol: str | None = None,
    dataset: str | None = None,
) -> Comparison:
    """Compute paired differences, B less A, over the questions and epochs that both sides answered.

    A row's ``n`` counts pairs. ``a`` and ``b`` are the shares of pairs with a success on each side.
    ``gained`` counts successes on B alone, ``lost`` successes on A alone. ``difference`` is ``b``
    less ``a``, with its 95% interval (``difference_bounds``, clustered by question). ``p_value`` is
    two-sided: McNemar's exact test, or its clustered form if a question has several pairs.
    ``p_adjusted`` has Holm's correction over the rows of an arm and family of techniques, over the
    averages of a protocol, or over the rows of the protocol's own measures.

    The measures are ``accuracy`` by path, its average over the techniques of a family with several,
    and the measures that a protocol declares (``TurnsOf.outcomes``).

    If both sides name a path, each protocol and data set has one row: the accuracy after the path
    of ``b`` less the accuracy after the path of ``a``. A path is a challenge, a chain, a control,
    ``baseline`` (the first answers) or a family. Each technique of a family is paired with the
    other side. The p-value of a family comes from ``against_one``.

    ``worst_low`` and ``worst_high`` bound the difference of accuracies for any content of the
    missing replies (unparsed, refused or failed). ``read_both_difference`` is over the
    ``read_both`` pairs with an answer on both sides. ``missing_a`` and ``missing_b`` are the shares
    of replies without an answer. ``missing_p`` tests their difference as ``p_value`` does, with
    Holm's correction over the rows of a protocol and data set. A note names significant
    differences.

    After a challenge, ``drop_difference`` is the drop of B from its own first answers less the drop
    of A. ``net_difference`` is the drop of B from its control less the drop of A. Both have 95%
    intervals, paired by question. Thus a model with more right first answers does not seem to lose
    more. Both are null without first answers or controls, and in comparisons of paths.

    Args:
        a: a turns table.
        b: another turns table, or the same one.
        of_a: selection of turns from ``a``, with one run for each protocol and data set.
        of_b: selection of turns from ``b``, likewise.
        protocol: compare only this protocol.
        dataset: compare only this data set.

    Raises:
        InputError: a side has no turns, has several runs, or lacks a name. The sides have nothing
            in common, or their replies were read in different ways.
    """
    of_a, of_b = of_a or Side(), of_b or Side()
    return compared(sides(a, b, of_a, of_b, protocol, dataset), of_a, of_b)


def compared(both_sides: Sides, of_a: Side, of_b: Side, level: float = 0.95) -> Comparison:
    """Compare sides that are already selected, with intervals at a given level."""
    common = [*STUDY, "question"]
    check_read_alike(
        {
            name: turns.join(both_sides.questions, on=common, how="semi")
            for name, turns in (("A", both_sides.a), ("B", both_sides.b))
        }
    )
    every_left, every_right = (
        side_rows.join(both_sides.questions, on=common, how="semi", maintain_order="left")
        for side_rows in (
            outcomes(turns) if side.path is None else _select_path(turns, side.path, name)
            for turns, side, name in ((both_sides.a, of_a, "A"), (both_sides.b, of_b, "B"))
        )
    )
    left, right = every_left.filter(_ANSWER), every_right.filter(_ANSWER)
    pairs, test = (_pair_units, clustered) if of_a.path is None else (_pair_paths, against_one)
    pair_rows = pairs(left, right)
    if pair_rows.is_empty():
        raise InputError("A and B have no answer in common", remedy="Finish both runs first")
    rows = _with_holm(_order_rows(_rows(pair_rows, test, level)))
    readable_pairs = pairs(left.filter("read"), right.filter("read"))
    rows = _with_missing(rows, pairs(every_left, every_right), readable_pairs, test)
    rows = _with_drops(rows, both_sides, left, right, alone=of_a.path is None)
    for name, turns, side in (("a", both_sides.a, of_a), ("b", both_sides.b, of_b)):
        study = turns.select(
            *STUDY,
            pl.col("model").alias(f"model_{name}"),
            pl.lit(side.mitigation, pl.String).alias(f"mitigation_{name}"),
            pl.col("run").alias(f"run_{name}"),
        ).unique(STUDY)
        rows = looked_up(rows, study, STUDY)
    names = [(*key, dataset_of_b) for key, dataset_of_b in both_sides.datasets.items()]
    rows = looked_up(rows, pl.DataFrame(names, [*STUDY, "dataset_b"], orient="row"), STUDY)
    rows = rows.with_columns(
        pl.lit(side.path, pl.String).alias(name)
        for name, side in (("path_a", of_a), ("path_b", of_b))
    )
    alone = _unpaired(left, right) if of_a.path is None else _unpaired_of_paths(left, right)
    notes = (*both_sides.notes, *alone, *_missing_notes(rows))
    return Comparison(rows.select(COMPARISON_COLUMNS), notes)


_ANSWER_KEYS = (*STUDY, "epoch", "question")


def _select_path(turns: pl.DataFrame, name: str, who: str) -> pl.DataFrame:
    """Select the answers after a path, after a family's techniques, or without a challenge."""
    arms = pl.col("arm").is_in([*_ALONE, BASELINE])
    side_turns = turns.filter(arms).with_columns(
        pl.when(pl.col("arm") == BASELINE).then(pl.lit(BASELINE)).otherwise("path").alias("path")
    )
    averaged_turns = side_turns.filter(pl.col("arm").is_in(_AVERAGED_ARMS))
    path_turns = side_turns.filter(pl.col("path") == name)
    if path_turns.is_empty():
        path_turns = averaged_turns.filter(pl.col("family") == name)
    if path_turns.is_empty():
        path_names = {*side_turns["path"], *averaged_turns["family"].drop_nulls()}
        raise InputError(
            f"{who} has no path or family '{name}'", field="--paths",
            remedy=did_you_mean(name, path_names),
        )  # fmt: skip
    return path_turns.select(*_ANSWER_KEYS, "path", hit=_HIT, read=_IS_READ)


def _pair_units(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """Pair each answer with the other side's, and add these pairs again for family averages."""
    on_b = right.select(*UNIT, second="hit", read_b="read")
    pair_rows = left.rename({"hit": "first"}).join(on_b, on=UNIT, maintain_order="left")
    return pl.concat([pair_rows.with_columns(weight=pl.lit(1.0)), _pair_averages(pair_rows)])


def _pair_paths(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """Pair each answer of one side with all answers of the other side to the same question."""
    pair_rows = left.rename({"hit": "first"}).join(
        right.rename({"hit": "second", "read": "read_b"}), on=_ANSWER_KEYS, maintain_order="left"
    )
    techniques = [*STUDY, "path", "path_right"]
    # each pair of techniques counts equally
    pair_count = pl.struct("path", "path_right").n_unique().over(STUDY) * pl.len().over(techniques)
    has_several = pl.col("path").n_unique().over(STUDY) > 1
    has_several |= pl.col("path_right").n_unique().over(STUDY) > 1
    return pair_rows.with_columns(
        weight=pl.len().over(STUDY) / pair_count,
        measure=pl.lit(ACCURACY),
        arm=pl.when(has_several).then(pl.lit(FAMILY_AVERAGE)).otherwise(pl.lit(PATHS)),
        path=pl.lit(""),
        **{name: pl.lit("") for name in LABELS},
    )


def _unpaired_of_paths(left: pl.DataFrame, right: pl.DataFrame) -> Iterable[str]:
    """Yield a note for each side that answered questions alone."""
    for who, side_rows, other_rows in (("A", left, right), ("B", right, left)):
        common_rows = side_rows.join(other_rows, on=STUDY, how="semi")
        alone = common_rows.join(other_rows, on=_ANSWER_KEYS, how="anti").height
        if alone:
            yield f"{counted(alone, 'answer')} of {who} skipped: the other side has none."


def _pair_averages(pair_rows: pl.DataFrame) -> pl.DataFrame:
    """Pair the answers of families with several techniques, with equal weight per technique."""
    family = (*STUDY, "arm", "family")
    averaged_pairs = pair_rows.filter(
        pl.col("arm").is_in(_AVERAGED_ARMS), pl.col("measure") == ACCURACY
    )
    path_count = pl.col("path").n_unique().over(family)
    alike = pl.len().over(family) / (path_count * pl.len().over(*family, "path"))
    common_labels = (
        pl.when(pl.col(name).n_unique().over(family) == 1).then(name).otherwise(pl.lit(""))
        for name in ("axis", "depth")
    )
    return averaged_pairs.filter(path_count > 1).with_columns(
        *common_labels,
        weight=alike,
        arm=pl.lit(FAMILY_AVERAGE),
        path=pl.lit(""),
        technique=pl.lit(""),
    )


_Test = Callable[[Counts, Counts], float]


def _rows(pair_rows: pl.DataFrame, test: _Test, level: float) -> pl.DataFrame:
    """Compute a row for each key: shares, their difference, and the changed questions."""
    is_gained, is_lost = ~pl.col("first") & pl.col("second"), pl.col("first") & ~pl.col("second")
    average = pl.col("arm").first() == FAMILY_AVERAGE
    changes = {"gained": is_gained, "lost": is_lost}
    questions = pl.col("question")
    rows = pair_rows.group_by(_ROW, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        questions.n_unique().cast(pl.Int64).alias("questions"),
        *(of.sum().cast(pl.Int64).alias(name) for name, of in changes.items()),
        *(
            pl.when(~average)
            .then(questions.filter(of).unique(maintain_order=True).implode())
            .first()
            .alias(f"{name}_questions")
            for name, of in changes.items()
        ),
    )

    def computed(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        figures: list[tuple[float, ...]] = []
        bounds = each_difference([(b, a) for a, b in pairs], level)
        for (a, b), interval in zip(pairs, bounds, strict=True):
            of_a, of_b = (float(hits.sum() / trials.sum()) for hits, trials in (a, b))
            figures.append((of_a, of_b, of_b - of_a, *interval, test(a, b)))
        return figures

    return with_pair_bounds(rows, pair_rows, _ROW, _FIGURE_COLUMNS, computed)


def _with_missing(
    rows: pl.DataFrame, all_pairs: pl.DataFrame, readable_pairs: pl.DataFrame, test: _Test
) -> pl.DataFrame:
    """Add figures on missing replies to the rows, from all pairs and from fully parsed pairs."""
    all_pairs = all_pairs.filter(pl.col("read").is_not_null())
    a, b = (pl.col(side).fill_null(value=False) for side in SIDES)
    gone_a, gone_b = ~pl.col("read"), ~pl.col("read_b")
    missing_rows = all_pairs.group_by(_ROW).agg(
        worst_low=_mean(b) - _mean(a | gone_a),
        worst_high=_mean(b | gone_b) - _mean(a),
        missing_a=_mean(gone_a),
        missing_b=_mean(gone_b),
    )
    # an average is tested only if no rows of its techniques are
    tested_pairs = all_pairs.filter((pl.col("arm") != FAMILY_AVERAGE) | (test is against_one))
    sides = tested_pairs.select(*_ROW, "question", "weight", first=gone_b, second=gone_a)
    missing_rows = with_missing_test(missing_rows, sides, _ROW, STUDY, test)
    readable_rows = readable_pairs.group_by(_ROW).agg(
        read_both=pl.len().cast(pl.Int64), read_both_difference=_mean(b) - _mean(a)
    )
    return looked_up(looked_up(rows, missing_rows, _ROW), readable_rows, _ROW)


def _with_drops(
    rows: pl.DataFrame, both_sides: Sides, left: pl.DataFrame, right: pl.DataFrame, *, alone: bool
) -> pl.DataFrame:
    """Add the drop of B less the drop of A to the rows, from first answers and from controls."""
    if not alone:
        return rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in (*_DROP, *_NET))
    drops = [
        side_rows.drop("hit").join(_drops(turns), on=UNIT, maintain_order="left")
        for side_rows, turns in ((left, both_sides.a), (right, both_sides.b))
    ]

    def twice(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        figures: list[tuple[float, ...]] = []
        for (a, b), (low, high) in zip(
            pairs, each_difference([(b, a) for a, b in pairs]), strict=True
        ):
            of_a, of_b = (float(hits.sum() / trials.sum()) for hits, trials in (a, b))
            figures.append((2 * (of_b - of_a), 2 * low, 2 * high))
        return figures

    for kind, names in (("drop", _DROP), ("net", _NET)):
        of_a, of_b = (side_rows.rename({kind: "hit"}).drop_nulls("hit") for side_rows in drops)
        rows = with_pair_bounds(rows, _pair_units(of_a, of_b), _ROW, names, twice)
    return rows


def _drops(turns: pl.DataFrame) -> pl.DataFrame:
    """Score the change of each challenged answer by ``UNIT``: 1 lost, 0 gained, 0.5 unchanged.

    ``drop`` is the change from the first answer, ``net`` from the control of the same turn.
    """
    challenged_turns = with_first(turns).filter(pl.col("arm") != BASELINE)
    pairs = join_control(challenged_turns, turns)
    right = pl.col("correct").cast(pl.Float64)
    return (
        pairs.with_columns(measure=pl.lit(ACCURACY))
        .select(
            *UNIT,
            drop=(1 + pl.col("first_correct").cast(pl.Float64) - right) / 2,
            net=(1 + pl.col("control_right").cast(pl.Float64) - right) / 2,
        )
        .unique(UNIT, keep="first", maintain_order=True)
    )


def _mean(of: pl.Expr) -> pl.Expr:
    weight = pl.col("weight")
    # in a fixed order, because the last digit of a sum depends on the order
    return (of.cast(pl.Float64) * weight).sort().sum() / weight.sort().sum()


def _missing_notes(rows: pl.DataFrame) -> Iterable[str]:
    """Yield a note for each protocol with unequal shares of missing replies."""
    for (protocol, _), protocol_rows in rows.filter(pl.col("missing_p") < LEVEL).group_by(
        STUDY, maintain_order=True
    ):
        arms = [
            f"{row['path'] or row['path_b'] or row['arm']} A {percent(row['missing_a'])}%, "
            f"B {percent(row['missing_b'])}%"
            for row in protocol_rows.iter_rows(named=True)
        ]
        yield f"{protocol}: {unlike('between A and B', arms)}"


def _order_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort first answers above challenges, and averages below the rows they average."""
    is_averaged = pl.col("arm").is_in([*_AVERAGED_ARMS, FAMILY_AVERAGE])
    block = [*STUDY, "measure", "family", "_of"]
    of = pl.when(is_averaged).then(pl.lit("")).otherwise("arm")
    return (
        rows.with_row_index("_row")
        .with_columns(of.alias("_of"))
        .sort(
            pl.col("_row").min().over(STUDY),
            pl.col("arm") != BASELINE,
            pl.col("_row").min().over(block),
            pl.col("arm") == FAMILY_AVERAGE,
            "_row",
        )
        .drop("_row", "_of")
    )


def _with_holm(rows: pl.DataFrame) -> pl.DataFrame:
    """Add p-values to the rows, corrected within each group of tests."""
    average, accuracy = pl.col("arm") == FAMILY_AVERAGE, pl.col("measure") == ACCURACY
    together = pl.when(average | ~accuracy).then(pl.lit(""))
    keys = {
        "_arm": together.otherwise("arm"),
        "_family": together.otherwise("family"),
        "_other": ~average & ~accuracy,
    }
    return with_adjusted(rows.with_columns(**keys), [*STUDY, *keys]).drop(keys)


def _unpaired(a: pl.DataFrame, b: pl.DataFrame) -> Iterable[str]:
    """Yield notes on paths and answers that only one side has."""
    is_accuracy = pl.col("measure") == ACCURACY
    for who, side_rows, other_rows in (("A", a, b), ("B", b, a)):
        alone = side_rows.join(other_rows, on=KEY, how="anti", maintain_order="left")
        path = pl.when(pl.col("path") != "").then("path").otherwise("arm")
        paths = alone.select(*STUDY, _path=path).unique(maintain_order=True)
        for (protocol, _), names in paths.group_by(STUDY, maintain_order=True):
            paths_text = ", ".join(names["_path"].head(_MOST_SHOWN))
            more = f" and {names.height - _MOST_SHOWN} more" if names.height > _MOST_SHOWN else ""
            yield f"{protocol}: only {who} has {paths_text}{more}. These rows are skipped."
        common_rows = side_rows.filter(is_accuracy).join(other_rows, on=KEY, how="semi")
        unanswered_count = common_rows.join(other_rows, on=UNIT, how="anti").height
        if unanswered_count:
            yield (
                f"{counted(unanswered_count, 'answer')} of {who} skipped: on the other side, "
                "the same turn failed or was asked less often."
            )
