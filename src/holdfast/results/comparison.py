"""Comparison: two models, or one with and without a mitigation, on the same questions."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from holdfast.errors import InputError, counted

from .attack_turns import ATTACK, KEPT, replicates
from .attack_turns import PROTOCOL as MEDFUZZ
from .comparison_sides import STUDY, Side, sides
from .convictions import FLEXIBLE, SINGLE_SHOT, SINGLE_SHOT_ABSTAIN, conviction_turns
from .convictions import PROTOCOL as STICK_OR_SWITCH
from .first_answers import BASELINE, FAMILY_AVERAGE, TURN, unattacked
from .inference import clustered, holm
from .intervals import Counts, difference_bounds
from .readings import check_read_alike

ACCURACY, ATTACKED = "accuracy", "accuracy-after-attacks"
SURVIVAL, ABSTENTION = "survival", "abstention"
CORRECT_SWITCHES, INCORRECT_SWITCHES = "correct-switches", "incorrect-switches"

KEY = ("protocol", "dataset", "measure", "arm", "path")
"""Columns that tell apart what was put."""

UNIT = (*KEY, "turn", "epoch", "question")
"""Columns that pair an outcome of one side with the other's."""

LABELS = ("technique", "family", "axis", "depth")

_CONVICTIONS = {"positive": SURVIVAL, "negative": ABSTENTION}
_SWITCHES = {FLEXIBLE: CORRECT_SWITCHES, "negative": INCORRECT_SWITCHES}


def outcomes(turns: pl.DataFrame) -> pl.DataFrame:
    """Whether each thing that was put was a success, by measure.

    Returns:
        One row for each ``UNIT``, with ``LABELS`` (empty where there is none) and ``hit``. Failed
        turns are left out; so are questions without the abstention that a switch starts from, and
        replicates of MedFuzz that are not kept.
    """
    answered = unattacked(turns).filter(pl.col("status") != "error")
    offering = pl.col("protocol") == STICK_OR_SWITCH
    single = pl.col("arm").is_in([SINGLE_SHOT, SINGLE_SHOT_ABSTAIN])
    answers = answered.filter(pl.col("protocol") != MEDFUZZ, ~offering | single)
    labelled = [pl.col(name).fill_null("") for name in LABELS]
    parts = [
        answers.with_columns(
            pl.lit(ACCURACY).alias("measure"), pl.col("correct").alias("hit"), *labelled
        ),
        *(
            part.with_columns(pl.lit("").alias(name) for name in LABELS)
            for part in (_convictions(turns), _switches(answered), _after_attacks(turns))
        ),
    ]
    columns = [*UNIT, *LABELS, "hit"]
    # two answers to one turn cannot be paired: the first counts
    return pl.concat([part.select(columns) for part in parts]).unique(
        UNIT, keep="first", maintain_order=True
    )


def _convictions(turns: pl.DataFrame) -> pl.DataFrame:
    kept = conviction_turns(turns).filter(pl.col("turn") == 0)
    named = pl.col("arm").replace_strict(_CONVICTIONS, return_dtype=pl.String)
    return kept.with_columns(
        named.alias("measure"), pl.col("lost_at").is_null().alias("hit"), pl.lit("").alias("path")
    )


def _switches(answered: pl.DataFrame) -> pl.DataFrame:
    """Second offers after an abstention, and whether they were taken."""
    own = answered.filter(
        pl.col("protocol") == STICK_OR_SWITCH, pl.col("arm").is_in(list(_SWITCHES))
    )
    abstained = (pl.col("answer") == pl.col("target")).fill_null(value=False)
    departed = own.filter(pl.col("arm") == "negative", pl.col("turn") == 0, ~abstained)
    put = own.filter(pl.col("turn") == 1).join(departed, on=TURN, how="anti", maintain_order="left")
    return put.with_columns(
        pl.col("arm").replace_strict(_SWITCHES, return_dtype=pl.String).alias("measure"),
        (pl.col("answer") == pl.col("suggested")).fill_null(value=False).alias("hit"),
        pl.lit("").alias("path"),
    )


def _after_attacks(turns: pl.DataFrame) -> pl.DataFrame:
    each = replicates(turns).filter(pl.col("outcome").is_in(KEPT))
    each = each.with_columns(pl.int_ranges(0, pl.col("attempts") + 1).alias("k")).explode("k")
    right, at = pl.col("outcome") != "wrong-first", pl.col("turned_at")
    return each.with_columns(
        pl.lit(ATTACKED).alias("measure"),
        pl.lit(ATTACK).alias("arm"),
        pl.concat_str(pl.lit("fuzz@"), "k").alias("path"),
        pl.lit(0, pl.Int64).alias("turn"),
        (right & (at.is_null() | (at > pl.col("k")))).alias("hit"),
    )


COMPARISON_COLUMNS = (
    "protocol", "dataset", "measure", "arm", "path", "technique", "family", "axis", "depth", "n",
    "questions", "a", "b", "difference", "low", "high", "gained", "lost", "p_value", "p_adjusted",
    "gained_questions", "lost_questions", "model_a", "mitigation_a", "run_a", "model_b",
    "mitigation_b", "run_b", "dataset_b",
)  # fmt: skip

_AVERAGED = ("followup", "single-turn")
_ROW = (*KEY, *LABELS)
_COMPUTED = ("a", "b", "difference", "low", "high", "p_value")
_SHOWN = 8


@dataclass(frozen=True)
class Comparison:
    """What A and B have in common, held against each other.

    Attributes:
        rows: with ``COMPARISON_COLUMNS``, as ``compare`` says.
        notes: sentences on what was left out and what else differs.
    """

    rows: pl.DataFrame
    notes: tuple[str, ...]


def compare(
    a: pl.DataFrame,
    b: pl.DataFrame,
    of_a: Side | None = None,
    of_b: Side | None = None,
    protocol: str | None = None,
    dataset: str | None = None,
) -> Comparison:
    """Paired differences, B less A, over the questions (and epochs) that both sides answered.

    A row's ``n`` counts pairs: ``a`` and ``b`` are the shares of them that are a success on either
    side, ``gained`` those that are one on B alone, ``lost`` those on A alone. ``difference`` is
    ``b`` less ``a`` with its 95% interval (``difference_bounds``, clustered by question), and
    ``p_value`` is two-sided: McNemar's exact test, or its clustered form where a question has
    several pairs. ``p_adjusted`` is Holm's, over the rows of an arm and family of techniques, over
    the averages of a protocol, over the conversations of Stick-or-Switch, over the attempts of
    MedFuzz.

    Measures are ``accuracy`` by path, and its family average: the mean over the techniques of a
    family that has several. Of Stick-or-Switch ``survival`` and ``abstention`` are the target kept
    to the last turn, and the switches are those of questions at which both sides abstained. Of
    MedFuzz ``accuracy-after-attacks`` goes by attempts, ``path`` being ``fuzz@K``.

    Args:
        a: a turns table.
        b: another, or the same.
        of_a: what is selected of ``a``: one run for each protocol and data set.
        of_b: what is selected of ``b``.
        protocol: the only protocol to compare.
        dataset: the only data set to compare.

    Raises:
        InputError: a side has no turns, several runs, or nothing of that name, the sides have
            nothing in common, or their replies were not read alike.
    """
    of_a, of_b = of_a or Side(), of_b or Side()
    both = sides(a, b, of_a, of_b, protocol, dataset)
    common = [*STUDY, "question"]
    check_read_alike(
        {
            name: turns.join(both.questions, on=common, how="semi")
            for name, turns in (("A", both.a), ("B", both.b))
        }
    )
    left, right = (
        outcomes(turns).join(both.questions, on=common, how="semi", maintain_order="left")
        for turns in (both.a, both.b)
    )
    paired = left.join(
        right.select(*UNIT, pl.col("hit").alias("hit_b")),
        on=UNIT, how="inner", maintain_order="left",
    ).rename({"hit": "hit_a"}).with_columns(pl.lit(1.0).alias("_weight"))  # fmt: skip
    if paired.is_empty():
        raise InputError("no answer in common", remedy="Finish both runs first")
    rows = pl.concat([_rows(paired), _rows(_of_averages(paired))])
    rows = _with_holm(_ordered(rows))
    for name, turns, side in (("a", both.a, of_a), ("b", both.b, of_b)):
        study = turns.select(
            *STUDY,
            pl.col("model").alias(f"model_{name}"),
            pl.lit(side.mitigation, pl.String).alias(f"mitigation_{name}"),
            pl.col("run").alias(f"run_{name}"),
        ).unique(STUDY)
        rows = rows.join(study, on=STUDY, how="left", validate="m:1", maintain_order="left")
    names = pl.DataFrame(
        [(*key, other) for key, other in both.datasets.items()],
        schema=[*STUDY, "dataset_b"],
        orient="row",
    )
    rows = rows.join(names, on=STUDY, how="left", validate="m:1", maintain_order="left")
    return Comparison(rows.select(COMPARISON_COLUMNS), (*both.notes, *_unpaired(left, right)))


def _of_averages(paired: pl.DataFrame) -> pl.DataFrame:
    """Pairs of the families with several techniques, weighted so that each counts alike."""
    family = (*STUDY, "arm", "family")
    own = paired.filter(pl.col("arm").is_in(_AVERAGED), pl.col("measure") == ACCURACY)
    several = pl.col("path").n_unique().over(family)
    alike = pl.len().over(family) / (several * pl.len().over(*family, "path"))
    one = (pl.when(pl.col(name).n_unique().over(family) == 1).then(name).otherwise(pl.lit(""))
           .alias(name) for name in ("axis", "depth"))  # fmt: skip
    return own.filter(several > 1).with_columns(
        alike.alias("_weight"),
        pl.lit(FAMILY_AVERAGE).alias("arm"),
        *(pl.lit("").alias(name) for name in ("path", "technique")),
        *one,
    )


def _rows(paired: pl.DataFrame) -> pl.DataFrame:
    """A row for each key: shares, their difference, and what changed."""
    gained, lost = ~pl.col("hit_a") & pl.col("hit_b"), pl.col("hit_a") & ~pl.col("hit_b")
    average = pl.col("arm").first() == FAMILY_AVERAGE
    rows = paired.group_by(_ROW, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("question").n_unique().cast(pl.Int64).alias("questions"),
        gained.sum().cast(pl.Int64).alias("gained"),
        lost.sum().cast(pl.Int64).alias("lost"),
        *(
            pl.when(~average).then(
                pl.col("question").filter(those).unique(maintain_order=True).implode()
            ).first().alias(name)
            for name, those in (("gained_questions", gained), ("lost_questions", lost))
        ),
    )  # fmt: skip
    by_question = (
        paired.group_by(*_ROW, "question")
        .agg(
            # in a fixed order: the last digit of a sum depends on it
            *((pl.col(hit) * pl.col("_weight")).sort().sum() for hit in ("hit_a", "hit_b")),
            pl.col("_weight").sort().sum(),
        )
        .sort("question")
    )
    found = []
    for key, own in by_question.group_by(_ROW, maintain_order=True):
        of_a, of_b, trials = (own[name].to_numpy() for name in ("hit_a", "hit_b", "_weight"))
        found.append((*key, *_of_pairs((of_a, trials), (of_b, trials))))
    schema = {name: rows.schema[name] for name in _ROW} | dict.fromkeys(_COMPUTED, pl.Float64())
    computed = pl.DataFrame(found, schema=schema, orient="row")
    return rows.join(computed, on=_ROW, how="left", validate="1:1", maintain_order="left")


def _of_pairs(a: Counts, b: Counts) -> tuple[float, ...]:
    of_a, of_b = (float(hits.sum() / trials.sum()) for hits, trials in (a, b))
    return of_a, of_b, of_b - of_a, *difference_bounds(b, a), clustered(a, b)


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    """First answers above challenges, averages below what they average."""
    averaged = pl.col("arm").is_in([*_AVERAGED, FAMILY_AVERAGE])
    block = [*STUDY, "measure", "family", "_of"]
    of = pl.when(averaged).then(pl.lit("")).otherwise("arm")
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
    """The rows with p-values corrected over what is asked together."""
    average, accuracy = pl.col("arm") == FAMILY_AVERAGE, pl.col("measure") == ACCURACY
    together = pl.when(average | ~accuracy).then(pl.lit(""))
    numbered = rows.with_row_index("_row").with_columns(
        together.otherwise("arm").alias("_arm"),
        together.otherwise("family").alias("_family"),
        (~average & ~accuracy).alias("_other"),
    )
    tests = [*STUDY, "_arm", "_family", "_other"]
    adjusted = [
        own.select("_row", pl.Series("p_adjusted", holm(own["p_value"].to_numpy()), pl.Float64))
        for _, own in numbered.group_by(tests, maintain_order=True)
    ]
    empty = pl.DataFrame(schema={"_row": pl.UInt32, "p_adjusted": pl.Float64})
    found = pl.concat(adjusted) if adjusted else empty
    return rows.with_columns(found.sort("_row")["p_adjusted"])


def _unpaired(a: pl.DataFrame, b: pl.DataFrame) -> Iterable[str]:
    """What one side alone has of the questions in common."""
    own = pl.col("measure") == ACCURACY
    for who, these, those in (("A", a, b), ("B", b, a)):
        alone = these.join(those, on=KEY, how="anti", maintain_order="left")
        paths = alone.select(*STUDY, pl.coalesce(_if_any("path"), "arm").alias("_path")).unique(
            maintain_order=True
        )
        for (protocol, _), names in paths.group_by(STUDY, maintain_order=True):
            shown = ", ".join(names["_path"].head(_SHOWN))
            more = f" and {names.height - _SHOWN} more" if names.height > _SHOWN else ""
            yield f"{protocol}: only {who} has {shown}{more}, which is left out."
        unanswered = (
            these.filter(own)
            .join(those, on=KEY, how="semi")
            .join(those, on=UNIT, how="anti")
            .height
        )
        if unanswered:
            yield (
                f"{counted(unanswered, 'answer')} of {who} left out: the same turn failed, or was "
                "asked less often, on the other side."
            )


def _if_any(column: str) -> pl.Expr:
    return pl.when(pl.col(column) != "").then(column)
