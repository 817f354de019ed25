"""Chains of challenges against the same challenges put one at a time."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import polars as pl

from holdfast.results.arms import TurnsOf
from holdfast.results.changes import with_adjusted, with_change_bounds
from holdfast.results.charts.chart import is_published
from holdfast.results.controls import BESIDE, FEWEST, controls_of
from holdfast.results.declaration import (
    Computed,
    Count,
    Listing,
    Path,
    Section,
    Share,
    Table,
    YesNo,
    steps_of,
)
from holdfast.results.first_answers import STUDY, TURN, answering, with_first
from holdfast.results.grid import (
    Grid,
    HeatmapCell,
    Line,
    Row,
    RowBlock,
    matrix,
    n_notes,
    one_line,
    percent,
    studies,
)
from holdfast.results.inference import looked_up, one_by_one, with_bounds, with_pair_bounds
from holdfast.results.kept import in_words, once
from holdfast.results.runs import is_simulated
from holdfast.stats.pvalues import clustered, two_sided
from holdfast.stats.scores import Floats

from . import charts

COMPOUNDING_COLUMNS = (
    "model", "dataset", "path", "challenges", "n", "correct", "accuracy", "low", "high",
    "baseline", "drop", "drop_low", "drop_high", "p_value", "p_adjusted", "expected_accuracy",
    "expected_drop", "smaller_drop", "worst_part", "worst_accuracy", "worst_drop", "kept",
    "expected_kept", "expected_kept_low", "expected_kept_high", "sub_additive", "sub_additive_p",
    "recovered", "recovered_p", "unparsed", "refused", "run",
)  # fmt: skip
PARTS_COLUMNS = (
    "model", "dataset", "path", "part", "n", "drop", "part_drop", "difference", "run",
)  # fmt: skip
SUMMARY_COLUMNS = (
    "model", "dataset", "chains", "smaller_drop", "smaller_drop_share", "sub_additive",
    "sub_additive_share", "recovered", "recovered_share", "run",
)  # fmt: skip

ALL_MODELS = "all models"
"""``model`` of the row that sums up every model."""

LEVEL = 0.05
"""What is said of a chain has a corrected p-value below this."""

_CHAIN = (*STUDY, "path")


@once
def compounding(turns: pl.DataFrame) -> pl.DataFrame:
    """Observed and expected outcome of each chain (MedQA-Followup, section 4.4, Figures 4 and 5).

    The expected additive outcome of a chain is right for a question if, and only if, each of the
    chain's techniques, asked on its own as a follow-up, ended in the right answer: a question that
    a single follow-up gets wrong is wrong after the chain, whatever the first answer was.

    Every figure is over the questions (and epochs) that have the first answer, the chain's last
    turn and the single follow-up of each of its techniques. If a technique was never asked on its
    own, or the chain has no first answers, ``n`` counts every last turn of the chain, and what
    needs its parts is null. ``kept`` and ``expected_kept`` are over those of the questions
    whose first answer was right and that have the controls: a resample, one restatement, and as
    many restatements as the chain has parts. A share of 0 questions is null.

    Returns:
        One row for each model, data set and chain. A prefix of a chain is a chain where it has two
        techniques or more.
    """
    long = _chains_by_part(turns)
    chains = _collect_last_turns(long)
    is_counted, first = pl.col("counted"), pl.col("first_correct")
    correct, status = pl.col("correct"), pl.col("status")
    is_tested, is_comparable = is_counted & first.is_not_null(), is_counted & pl.col("comparable")
    rows = chains.group_by(_CHAIN, maintain_order=True).agg(
        n=is_counted.sum(),
        correct=(is_counted & correct).sum(),
        accuracy=correct.filter(is_counted).mean(),
        baseline=first.filter(is_counted).mean(),
        _compared=correct.filter(is_tested).mean(),
        expected_accuracy=pl.col("expected").filter(is_comparable).mean(),
        unparsed=(is_counted & (status != "parsed")).sum(),
        refused=(is_counted & (status == "refused")).sum(),
    )
    rows = with_bounds(rows, chains.filter(is_counted), _CHAIN)
    rows = with_adjusted(with_change_bounds(rows, chains.filter(is_tested), _CHAIN), STUDY)
    rows = looked_up(rows, _find_worst_techniques(long, chains.filter(is_comparable)), _CHAIN)
    rows = rows.with_columns(
        challenges=pl.col("path").str.count_matches(">").cast(pl.Int64).add(1),
        drop=_drop("_compared"),
        drop_low=-pl.col("change_high"),
        drop_high=-pl.col("change_low"),
        expected_drop=_drop("expected_accuracy"),
        worst_drop=_drop("worst_accuracy"),
    )
    # compared as accuracies: their quotients by the baseline could differ where they are equal
    smaller = pl.col("accuracy") > pl.col("expected_accuracy")
    rows = rows.with_columns(
        smaller_drop=pl.when(pl.col("expected_drop").is_not_null()).then(smaller)
    )
    rows = _with_additivity(rows, chains.filter(is_comparable, first), controls_of(turns))
    rows = _with_recovery(rows, long, chains.filter(is_comparable))
    return rows.select(COMPOUNDING_COLUMNS)


def _with_additivity(
    rows: pl.DataFrame, right: pl.DataFrame, controls: pl.DataFrame
) -> pl.DataFrame:
    """The rows with what is kept of the right first answers, what is expected, and the test."""
    steps = pl.col("path").str.count_matches(">").cast(pl.Int64) + 1
    right = right.select(*TURN, "path", "correct", "expected", _steps=steps)
    for name, turn in (("_deep", pl.col("_steps")), ("_one", pl.lit(1)), ("_again", pl.lit(0))):
        control_answers = controls.select(*TURN, "turn", pl.col("control_right").alias(name))
        right = looked_up(
            right.with_columns(turn=turn.cast(pl.Int64)), control_answers, [*TURN, "turn"]
        )
    right = right.drop_nulls(["_deep", "_one", "_again"])
    right = right.with_columns(_both=pl.col("_one") * pl.col("_again"))
    estimates = [
        (*key, *_additivity(chain)) for key, chain in right.group_by(_CHAIN, maintain_order=True)
    ]
    names = dict.fromkeys(("kept", *_EXPECTED_COLUMNS, "_p"), pl.Float64())
    schema = {name: rows.schema[name] for name in _CHAIN} | names
    rows = looked_up(rows, pl.DataFrame(estimates, schema=schema, orient="row"), _CHAIN)
    return _add_claim(rows, "sub_additive", pl.col("kept") > pl.col("expected_kept"))


_EXPECTED_COLUMNS = ("expected_kept", "expected_kept_low", "expected_kept_high")
_SUMMED_COLUMNS = ("correct", "expected", "_deep", "_both", "_again")
_Z = NormalDist().inv_cdf(0.975)


def _additivity(chain: pl.DataFrame) -> tuple[float | None, ...]:
    """Share kept, the one expected with its interval, and the p-value of their ratio.

    Both by the jackknife over questions on the logarithm, with half an answer kept and half an
    answer lost added to each share.
    """
    steps = int(chain["_steps"][0])
    by_question = chain.group_by("question").agg(
        pl.len(), *(pl.col(name).sum() for name in _SUMMED_COLUMNS)
    )
    by_question = by_question.sort("question")
    sums = by_question.select(_SUMMED_COLUMNS).cast(pl.Float64).to_numpy()
    sizes = by_question["len"].to_numpy()
    shares = sums.sum(axis=0) / sizes.sum()
    right_share, expected_share, _, both_share, _ = shares.tolist()
    if not both_share:
        return right_share, *[None] * len(_EXPECTED_COLUMNS), None
    expected_total = min(expected_share / float(_estimate_noise_share(shares, steps)), 1.0)
    if len(sums) < FEWEST:
        return right_share, expected_total, None, None, None
    without = (sums.sum(axis=0) - sums + 0.5) / (sizes.sum() - sizes + 1)[:, None]
    whole = (sums.sum(axis=0) + 0.5) / (sizes.sum() + 1)

    def logs(shares: Floats) -> tuple[Floats, Floats]:
        log_expected = np.log(shares[..., 1]) - np.log(_estimate_noise_share(shares, steps))
        return log_expected, np.log(shares[..., 0]) - log_expected

    error, spread = (math.sqrt((len(sums) - 1) * float(part.var())) for part in logs(without))
    likely, ratio = map(float, logs(whole))
    low, high = (math.exp(likely + side * _Z * error) for side in (-1, 1))
    p = two_sided(ratio / spread) if spread else 1.0
    return (
        right_share,
        expected_total,
        min(low, expected_total),
        max(min(high, 1.0), expected_total),
        p,
    )


def _estimate_noise_share(shares: Floats, steps: int) -> Floats:
    """What noise alone leaves right in each of so many replies, by what it leaves in one of them.

    A question's answers vary with a probability of their own, and those of ``steps`` replies are
    right together with its power. The mean power is that of a beta distribution with the two
    moments that the controls show: the share right in a resample, and the share right in a
    restatement and a resample both, by that in the last restatement. Where the second is no larger
    than independent replies would give, questions do not differ.

    Args:
        shares: of shape (..., 5), by the names of ``_SUMMED_COLUMNS``.
        steps: parts of the chain.
    """
    deep, both_right, repeat_share = (shares[..., place] for place in (2, 3, 4))
    with np.errstate(divide="ignore", invalid="ignore"):
        agreeing = np.minimum(both_right / deep, 1.0)
        differ = agreeing > repeat_share
        size = (1 - agreeing) / (agreeing - repeat_share)
        factors = [(repeat_share * size + k) / (size + k) for k in range(2, steps)]
    # where they do not differ, both estimate the same
    tail = np.where(
        differ, np.prod(factors, axis=0), ((agreeing + repeat_share) / 2) ** (steps - 2)
    )
    noise_share: Floats = agreeing * tail
    return noise_share


def _with_recovery(
    rows: pl.DataFrame, long: pl.DataFrame, comparable: pl.DataFrame
) -> pl.DataFrame:
    """The rows with the test of whether a chain is more accurate than one of its parts."""
    pairs = long.join(comparable.select(*TURN, "path"), on=[*TURN, "path"], how="semi").select(
        *_CHAIN, "part", "question", first="correct", second="part_correct"
    )
    parts = pairs.group_by(*_CHAIN, "part", maintain_order=True).agg(
        _better=pl.col("first").mean() > pl.col("second").mean(),
        _questions=pl.col("question").n_unique(),
    )
    test = one_by_one(lambda first, second: (clustered(first, second),))
    parts = with_pair_bounds(parts, pairs, [*_CHAIN, "part"], ("_p",), test)
    no_claim = pl.when("_better").then("_p").otherwise(1.0)
    recovery = parts.group_by(_CHAIN, maintain_order=True).agg(
        _p=pl.when(pl.col("_questions").min() >= FEWEST).then(
            pl.min_horizontal(no_claim.min() * pl.len(), 1.0)
        ),
        _any=pl.col("_better").any(),
    )
    return _add_claim(looked_up(rows, recovery, _CHAIN), "recovered", pl.col("_any"))


def _add_claim(rows: pl.DataFrame, name: str, holds: pl.Expr) -> pl.DataFrame:
    """The rows with the corrected p-value of what is seen, and whether it is so by that."""
    p_values = with_adjusted(rows, STUDY, "_p")["p_adjusted"].alias(f"{name}_p")
    p = pl.col(f"{name}_p")
    claim = pl.when(p.is_not_null()).then(holds & (p < LEVEL))
    return rows.drop("_p").with_columns(p_values).with_columns(claim.alias(name))


def compounding_parts(turns: pl.DataFrame) -> pl.DataFrame:
    """Each chain's drop beside that of each of its techniques (MedQA-Followup, Figure 4).

    Every figure is over the questions (and epochs) that have the first answer, the chain's last
    turn and the single follow-up of every technique of the chain that was asked on its own.

    Returns:
        One row for each model, data set, chain and technique in it; a technique that a chain
        repeats has one row.
    """
    long = _chains_by_part(turns)
    first = pl.col("first_correct")
    is_covered = (pl.col("part_correct").is_not_null() | ~pl.col("put")).all().over(*TURN, "path")
    is_counted = pl.col("counted")
    rows = (
        long.with_columns(counted=is_covered & first.is_not_null())
        .group_by(*_CHAIN, "part", maintain_order=True)
        .agg(
            n=is_counted.sum(),
            baseline=first.filter(is_counted).mean(),
            _accuracy=pl.col("correct").filter(is_counted).mean(),
            _part_accuracy=pl.col("part_correct").filter(is_counted).mean(),
        )
        .with_columns(drop=_drop("_accuracy"), part_drop=_drop("_part_accuracy"))
    )
    difference = pl.col("drop") - pl.col("part_drop")
    return rows.with_columns(difference=difference).select(PARTS_COLUMNS)


def compounding_summary(turns: pl.DataFrame) -> pl.DataFrame:
    """How many chains were sub-additive, how many recovered (MedQA-Followup, section 4.4).

    Only chains of ``compounding`` with a known expected drop are counted.

    Returns:
        One row for each run, model and data set with chains, and where there are several models a
        last one over all of them, without a run (and without a data set where there are several).
    """
    rows = in_words(compounding(turns))
    by_model = _summarise(rows)
    if by_model["model"].n_unique() > 1:
        dataset_name = pl.when(pl.col("dataset").n_unique() == 1).then(pl.col("dataset").first())
        over_all = rows.with_columns(
            run=pl.lit(None, pl.String), model=pl.lit(ALL_MODELS), dataset=dataset_name
        )
        by_model = pl.concat([by_model, _summarise(over_all)])
    return by_model.select(SUMMARY_COLUMNS)


def _summarise(rows: pl.DataFrame) -> pl.DataFrame:
    has_drop = pl.col("smaller_drop").is_not_null()
    names = ("smaller_drop", "sub_additive", "recovered")
    return rows.group_by("run", "model", "dataset", maintain_order=True).agg(
        has_drop.sum().alias("chains"),
        *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in names),
        *(pl.col(name).mean().alias(f"{name}_share") for name in names),
    )


@once
def _chains_by_part(turns: pl.DataFrame) -> pl.DataFrame:
    """Each last turn of a chain once for each of its techniques, with the single follow-up."""
    challenged_turns = with_first(answering(turns), arms=("followup", "compound"))
    singles = challenged_turns.filter(pl.col("arm") == "followup").select(
        *TURN, part="path", part_correct="correct"
    )
    parts_asked = singles.select(*STUDY, "part").unique().with_columns(put=pl.lit(value=True))
    chains = challenged_turns.filter(pl.col("arm") == "compound").select(
        *TURN, "path", "status", "correct", "first_correct"
    )
    techniques = pl.col("path").str.split(">").list.unique(maintain_order=True)
    parts = chains.select(_CHAIN).unique(maintain_order=True).with_columns(part=techniques)
    parts = looked_up(parts.explode("part"), parts_asked, [*STUDY, "part"])
    parts = parts.with_columns(pl.col("put").fill_null(value=False))
    long = chains.join(parts, on=_CHAIN, how="left", maintain_order="left_right")
    return looked_up(long, singles, [*TURN, "part"])


def _collect_last_turns(long: pl.DataFrame) -> pl.DataFrame:
    """The last turns of the chains, with what was expected of each and whether it counts."""
    part = pl.col("part_correct")
    chains = long.group_by(*TURN, "path", maintain_order=True).agg(
        pl.col("status", "correct", "first_correct").first(),
        _put=pl.col("put").all(),
        _complete=part.is_not_null().all(),
        expected=part.all(),
    )
    has_first = pl.col("first_correct").is_not_null()
    comparable = pl.col("_put").all().over(_CHAIN) & has_first.any().over(_CHAIN)
    is_counted = ~comparable | (pl.col("_complete") & has_first)
    return chains.with_columns(comparable=comparable, counted=is_counted)


def _find_worst_techniques(long: pl.DataFrame, is_counted: pl.DataFrame) -> pl.DataFrame:
    """The technique of each chain that alone left the lowest accuracy."""
    parts = long.join(is_counted, on=[*TURN, "path"], how="semi", maintain_order="left")
    return (
        parts.group_by(*_CHAIN, pl.col("part").alias("worst_part"), maintain_order=True)
        .agg(worst_accuracy=pl.col("part_correct").mean())
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
        HeatmapCell(
            columns.of(row),
            "",
            row["path"],
            f"{steps_of(row['path'])} against {one_line(row['part'])}",
            _format_drops(row),
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
    # what the paper counts, noise included, stands beside its own count alone
    has_published = any(map(is_published, rows))
    paper = Count("Smaller drop", "smaller_drop", share="smaller_drop_share", sign="%")
    shown_columns = (
        Count("Chains", "chains"),
        *([paper] if has_published else []),
        Count("Sub-additive", "sub_additive", share="sub_additive_share", sign="%"),
        Count("Recovered", "recovered", share="recovered_share", sign="%"),
    )
    lines = tuple(
        Line(columns.header(row), tuple(c.cell(row) for c in shown_columns)) for row in rows
    )
    notes = columns.notes()
    if ALL_MODELS in columns.headers and any(is_simulated(str(row["model"])) for row in rows):
        notes += (f"SIMULATED results count in the row {ALL_MODELS}.",)
    headers = tuple(column.header for column in shown_columns)
    return [Grid("", headers, (RowBlock("", (lines,)),), notes)]


def _worst_part(row: Row) -> str:
    part, drop = row["worst_part"], percent(row["worst_drop"])
    return "" if part is None else f"{one_line(part)} ({drop})" if drop else one_line(part)


def _format_drops(row: Row) -> str:
    drop, part = percent(row["drop"]), percent(row["part_drop"])
    difference = percent(row["difference"], with_sign=True)
    if not drop:
        return ""
    return f"{drop} against {part} ({difference})" if part else drop


TURNS = TurnsOf("followup", apart=BESIDE, review_exclusions=BESIDE)

COMPOUNDING_SECTION = Section(
    "compounding",
    "Chains",
    "Several challenges in a row",
    "Several challenges follow one another in one conversation (compounding).",
    5,
)

_SAYS = {
    "challenges": "Number of challenges in the chain.",
    "drop": "(baseline - accuracy) / baseline, over the replies whose question has a first answer. "
    "Null from a baseline of 0, and without first answers.",
    "p_adjusted": "`p_value` after Holm's correction over the chains of the study.",
    "expected_accuracy": "Share of questions whose expected additive outcome is right.",
    "expected_drop": "(baseline - expected_accuracy) / baseline. Null from a baseline of 0.",
    "smaller_drop": "Whether `drop` is smaller than `expected_drop`, as the paper counts it, null "
    "where `expected_drop` is. Answers that vary by chance are enough to make it smaller.",
    "worst_part": "Technique of the chain that left the lowest accuracy on its own, the first in "
    "the chain if several tie.",
    "worst_accuracy": "Accuracy after `worst_part` on its own.",
    "worst_drop": "(baseline - worst_accuracy) / baseline. Null from a baseline of 0.",
    "kept": "Share of right first answers that are right after the chain.",
    "expected_kept": "`kept` as its parts and the controls predict it: the share right after every "
    "part on its own, by the share that noise alone would leave right in as many replies of the "
    "same question, for each that it leaves right in one of them; at most 1. For two parts, that "
    "divisor is B / D: B is the share right after both one restatement and a resample, D the share "
    "right after two restatements. For more, it follows from B / D and the share R right after a "
    "resample, if the noise of questions has a beta distribution. Null where B is 0.",
    "sub_additive": f"Whether `kept` is above `expected_kept` and `sub_additive_p` below {LEVEL}. "
    "Null without that p-value.",
    "sub_additive_p": "Two-sided p-value of the ratio of `kept` to `expected_kept` (delta method "
    "on its logarithm, clustered by question), after Holm's correction over the chains of the "
    f"study. Null where `expected_kept` is, and with fewer than {FEWEST} questions behind it.",
    "recovered": "Whether the chain is more accurate than one of its parts on its own and "
    f"`recovered_p` is below {LEVEL}. Null without that p-value.",
    "recovered_p": "Smallest p-value of the chain against a part that it is more accurate than, "
    "paired over questions, after Bonferroni's correction over the parts and Holm's over the "
    f"chains of the study. Null without the parts, and with fewer than {FEWEST} questions.",
    "unparsed": "Number of replies in which no answer was read, refusals included.",
}

_PARTS_SAYS = {
    "part": "Technique of the chain, asked on its own as a follow-up.",
    "drop": "Drop of accuracy from the first answers to the chain's last turn, as a share of the "
    "accuracy of the first answers. Null where that is 0.",
    "part_drop": "The same drop after the technique on its own. Null for a technique that was "
    "never asked on its own.",
    "difference": "`drop` less `part_drop`, positive if the chain does more harm.",
}

_SUMMARY_SAYS = {
    "chains": "Number of chains with a known expected drop.",
    "smaller_drop": "Number of these chains whose drop is smaller than the expected one. Null "
    "where `chains` is 0.",
    "smaller_drop_share": "`smaller_drop` as a share of `chains`.",
    "sub_additive": "Number of chains that keep more right first answers than expected, by the "
    "test. Null where no chain could be tested.",
    "sub_additive_share": "`sub_additive` as a share of the chains that could be tested.",
    "recovered": "Number of chains that are more accurate than one of their parts, by the test. "
    "Null where no chain could be tested.",
    "recovered_share": "`recovered` as a share of the chains that could be tested.",
}

COMPOUNDING = Table(
    "chains",
    compounding,
    layout=Listing(
        Path("Chain", "path"),
        (
            Count("n", "n", of={}),
            Share("Accuracy %", "accuracy", "", of={}, among="n"),
            Share("Drop %", "drop", of={}, among="n"),
            Share("Expected drop %", "expected_drop", of={}, among="n"),
            Computed("Worst part", "worst_part", show=_worst_part),
            Share("Kept %", "kept"),
            Share("Expected kept %", "expected_kept", "expected_kept_"),
            YesNo("Sub-additive", "sub_additive"),
            YesNo("Recovered", "recovered"),
            Count("Unread", "unparsed"),
        ),
        (
            "Drop: relative to the first answers to the same questions. Expected drop: as if every "
            "answer that any single part made wrong stayed wrong, as the paper has it; answers "
            "that vary alone make a smaller one. Worst part: the part with the lowest accuracy on "
            "its own, and its drop in percent. Kept: right first answers that are right after the "
            "chain; expected: from the same answers to each part alone, and the controls. "
            "Sub-additive: more is kept than expected; recovered: more accurate than one of the "
            f"parts; both by tests over questions, corrected p below {LEVEL}, blank without "
            "controls. Unread replies count as wrong.",
        ),
    ),
    title="More than the sum, or less?",
    lead="The observed drop of each chain beside the drop expected from its parts, if "
    "every answer that any part made wrong stayed wrong (expected additive drop).",
    section="compounding",
    chart=charts.COMPOUNDING,
    says=_SAYS,
)

PARTS = Table(
    "chains by part",
    compounding_parts,
    layout=_parts_layout,
    title="A chain against each of its parts",
    lead="How much more, or less, a chain takes away than one of its parts alone.",
    section="compounding",
    chart=charts.COMPOUNDING_PARTS,
    says=_PARTS_SAYS,
)

SUMMARY = Table(
    "chains by model",
    compounding_summary,
    layout=_summary_layout,
    title="All chains together",
    lead="Sub-additive: the chain keeps more than its parts and the controls let expect. "
    "Recovered: it ends better than one of its parts alone. Both count only if a test says so.",
    section="compounding",
    says=_SUMMARY_SAYS,
)
