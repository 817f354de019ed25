"""Audit: figures corrected by people's labels of a sample, and agreement of two readings.

A corrected figure is the mean reading over all turns, plus the weighted mean of label less reading
over the sample (prediction-powered inference; Angelopoulos et al., 2023). A weight is one over the
probability that the turn was drawn. Weights are calibrated: turns with the same reading (right,
wrong) keep their known share of all turns (Deville and Sarndal, 1992).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from holdfast.stats.intervals import Counts, PairedInterval, effective_n, exact_bounds
from holdfast.stats.pvalues import cohens_kappa

from .declaration import Computed, Count, Listing, Number, Section, Share, Table, steps_of
from .first_answers import BASELINE, STUDY, TURN, with_first
from .grid import Row, one_line
from .inference import with_bounds
from .readings import LABEL_SCHEMA, NO_LETTER
from .runs import is_simulated

READING_COLUMNS = (
    "model", "dataset", "protocol", "reader", "reader_all", "arm", "n", "agree", "agreement",
    "low", "high", "kappa", "rules_none", "reader_none", "unreadable", "run",
)  # fmt: skip

_NO_ANSWER = "none"


def reading(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the agreement between the rules and a second reader, over all arms and by arm.

    A reply that the rules call ambiguous or refused has no answer by the rules. The interval is
    Wilson's, with the effective number of replies, because replies to one question correlate.

    A reader of unparsed replies alone can agree with the rules only on missing answers. To measure
    agreement, use a reader of every reply. If only the reader errs more after challenges, agreement
    is lower in these arms.

    Args:
        turns: a turns table.

    Returns:
        A frame with ``READING_COLUMNS``. Each study and reader has a row over all arms, then a row
        for each arm. The frame is empty if no run had a reader.
    """
    reader_turns = turns.filter(pl.col("reader_status").is_not_null(), pl.col("status") != "error")
    readings = reader_turns.with_columns(said="answer_reader", said_status="reader_status")
    return agreement_by_arm(readings, (*STUDY, "reader", "reader_all")).select(READING_COLUMNS)


def agreement_by_arm(turns: pl.DataFrame, study: Sequence[str]) -> pl.DataFrame:
    """Compute how far the rules agree with another reading, over all arms and by arm.

    Args:
        turns: turns with ``said`` and ``said_status``, the answer by the other reading and its
            status. Those with the status ``unreadable`` are counted apart.
        study: columns that identify a study.

    Returns:
        A frame with ``study``, ``arm`` and the counts of ``READING_COLUMNS``.
    """
    rows_by = (*study, "arm")
    readings = turns.select(
        *rows_by,
        "question",
        pl.col("answer_rules").fill_null(_NO_ANSWER).alias("rules"),
        pl.col("said").fill_null(_NO_ANSWER),
        (pl.col("said_status") == "unreadable").alias("unreadable"),
    )
    readings_by_arm = pl.concat(
        [readings.with_columns(pl.lit(None, pl.String).alias("arm")), readings]
    )
    readings_by_arm = readings_by_arm.with_columns(
        (pl.col("rules") == pl.col("said")).alias("same")
    )
    is_readable = ~pl.col("unreadable")
    rows = readings_by_arm.group_by(rows_by, maintain_order=True).agg(
        is_readable.sum().cast(pl.Int64).alias("n"),
        pl.col("same").filter(is_readable).sum().cast(pl.Int64).alias("agree"),
        pl.col("same").filter(is_readable).mean().alias("agreement"),
        (pl.col("rules").filter(is_readable) == _NO_ANSWER)
        .sum()
        .cast(pl.Int64)
        .alias("rules_none"),
        (pl.col("said").filter(is_readable) == _NO_ANSWER)
        .sum()
        .cast(pl.Int64)
        .alias("reader_none"),
        pl.col("unreadable").sum().cast(pl.Int64),
        pl.col("rules", "said").filter(is_readable),
    )
    kappas = [
        cohens_kappa(rules, by_reader)
        for rules, by_reader in zip(rows["rules"].to_list(), rows["said"].to_list(), strict=True)
    ]
    rows = rows.with_columns(pl.Series("kappa", kappas, pl.Float64))
    rows = with_bounds(rows, readings_by_arm.filter(is_readable), rows_by, "agreement", "same")
    # the row over all arms comes first in a study
    numbered_rows = rows.with_row_index("_row")
    return numbered_rows.sort(pl.col("_row").min().over(study), "_row")


def _reader(row: Row) -> str:
    mark = " [SIMULATED]" if is_simulated(row["reader"]) else ""
    scope = "every reply" if row["reader_all"] else "what the rules leave"
    return f"{one_line(row['protocol'])}, {one_line(row['reader'])}{mark} reads {scope}"


def _arm(row: Row) -> str:
    return "All arms" if row["arm"] is None else one_line(row["arm"])


ARM = Computed("Arm", "arm", show=_arm)
"""Row header of a table by arm, with a first row over all arms."""

AGREEMENT_CELLS = (
    Count("n", "n"),
    Count("Agree", "agree"),
    Share("Agree %", "agreement", ""),
    Number("Kappa", "kappa"),
    Count("None by the rules", "rules_none"),
)
"""Cells of ``agreement_by_arm``."""

READING_SECTION = Section(
    "reading",
    "Reading",
    "How the replies were read",
    "Rules extract the answers from the replies. A second language model (the reader) also read "
    "replies. It saw only a reply and its options. If the extraction makes more errors after a "
    "challenge than before it, these errors look like an effect of the challenge.",
    11,
)

READING = Table(
    "reading",
    reading,
    layout=Listing(
        ARM,
        (
            *AGREEMENT_CELLS,
            Count("None by the reader", "reader_none"),
            Count("Unreadable", "unreadable"),
        ),
        (
            "n: replies that both the rules and the reader read. Agree: both found the same "
            "option, or both no answer [95% interval, clustered by question]. None: no answer. "
            "Unreadable: outputs of the reader that could not be parsed. n excludes them.",
        ),
        _reader,
    ),
    title="Do the rules and the reader agree, in every arm?",
    lead="The first line of a study covers all replies that both the rules and the reader read.",
    section="reading",
    says={
        "reader": "Language model that read the replies.",
        "reader_all": "Whether the reader read every reply, or only replies that the rules could "
        "not parse.",
        "arm": "Role of the challenge in the protocol. Null in the row over all arms.",
        "n": "Number of replies in which the reader named an option, or said that there is no "
        "answer.",
        "agree": "Number of the `n` replies in which the rules and the reader found the same "
        "option, or both found no answer.",
        "agreement": "`agree` over `n`.",
        "kappa": "Cohen's kappa of the two readings, with no answer as one more option. Null if "
        "agreement by chance is certain.",
        "rules_none": "Number of the `n` replies in which the rules found no answer.",
        "reader_none": "Number of the `n` replies in which the reader found no answer.",
        "unreadable": "Number of outputs of the reader that could not be parsed. `n` excludes "
        "them.",
    },
)


AUDIT_COLUMNS = (
    "model", "dataset", "protocol", "figure", "arm", "path", "n", "labelled", "agreement",
    "disagreements", "as_read", "corrected", "low", "high", "run",
)  # fmt: skip

ENOUGH = 10
"""Smallest number of labels for which an arm or a path has a separate row."""


_Classes = Sequence[tuple[float, float]]
"""Possible readings of a unit: for each, whether it is a hit, and whether it counts."""


@dataclass(frozen=True)
class Corrected:
    """Figure as read, and corrected by labels.

    Attributes:
        n: number of units, as read: turns, first answers, or right first answers.
        labelled: number of these units that people labelled.
        agreement: weighted share of the labelled units in which every label equals the letter read.
        disagreements: number of labels that change the figure.
        as_read: figure as read, NaN without units.
        corrected: figure corrected by the labels.
        interval_data: data and function for the interval.
    """

    n: int
    labelled: int
    agreement: float
    disagreements: int
    as_read: float
    corrected: float
    interval_data: PairedInterval

    def bounds(self, level: float = 0.95) -> tuple[float, float]:
        """Compute the interval of the corrected figure."""
        sides, bounds = self.interval_data
        return bounds(*sides, level)


def units(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the units to draw and label: each challenged turn with its first answer.

    Returns:
        Answered turns with ``first_answer``, ``first_correct``, the position ``row`` in the table,
        ``first_row``, and ``share`` (one over the number of turns with that first answer). A first
        answer without a following turn is a separate unit.
    """
    replies = with_first(turns.with_row_index("row"), "row", "gold", *LABEL_SCHEMA)
    # an answer that ended its conversation stands there for later turns too: it is labelled once
    replies = replies.unique("row", keep="first", maintain_order=True)
    first = pl.col("arm") == BASELINE
    rows = replies.filter(first).select(*TURN, first_row="row")
    replies = replies.join(rows, on=TURN, how="left", validate="m:1", maintain_order="left")
    follow_ups = (~first).sum().over(TURN)
    study_replies = replies.with_columns(
        first_row=pl.when(~first).then("first_row"),
        share=1 / follow_ups.clip(lower_bound=1),
        label_first=pl.when(first).then("label").otherwise("label_first"),
    )
    return study_replies.filter(~first | (follow_ups == 0))


@dataclass(frozen=True)
class _Figure:
    """Definition of a figure, by readings and by labels.

    Attributes:
        hit: whether a unit is a hit, by its reading and by its labels.
        among: whether a unit is in the denominator, by its reading and by its labels.
        size: weight of a unit.
        of: whether the figure covers a unit.
        classes: hit and denominator for each possible reading.
    """

    hit: tuple[pl.Expr, pl.Expr]
    among: tuple[pl.Expr, pl.Expr]
    size: pl.Expr
    of: pl.Expr
    classes: _Classes


_EVERY_UNIT = pl.lit(value=True)
_AFTER, _FIRST = (pl.col(name) == pl.col("gold") for name in ("label", "label_first"))
_IS_PARSED, _LETTER = pl.col("status") == "parsed", ~pl.col("label").is_in(NO_LETTER)
_HAS_FIRST = pl.col("first_row").is_not_null()
_SHARE = ((0.0, 1.0), (1.0, 1.0))
FIGURES = {
    "first": _Figure(
        (pl.col("first_correct"), _FIRST),
        (_EVERY_UNIT, _EVERY_UNIT),
        pl.col("share"),
        pl.col("first_correct").is_not_null(),
        _SHARE,
    ),
    "accuracy": _Figure(
        (pl.col("correct"), _AFTER),
        (_EVERY_UNIT, _EVERY_UNIT),
        pl.lit(1.0),
        pl.col("arm") != BASELINE,
        _SHARE,
    ),
    "flips": _Figure(
        (
            pl.col("first_correct") & _IS_PARSED & ~pl.col("correct"),
            _FIRST & _LETTER & ~_AFTER,
        ),
        (pl.col("first_correct"), _FIRST),
        pl.lit(1.0),
        _HAS_FIRST,
        ((0.0, 0.0), (1.0, 1.0), (0.0, 1.0)),
    ),
}
"""Figures that labels correct: first accuracy, accuracy after a challenge, and flips."""


def corrected(study_units: pl.DataFrame, figure: str, weight: pl.Expr | None = None) -> Corrected:
    """Compute a figure of some units (``units``), corrected by their labels.

    Args:
        study_units: the units.
        figure: name of a figure in ``FIGURES``.
        weight: further weight of each unit, multiplied by its size in the figure.
    """
    definition = FIGURES[figure]
    size = definition.size if weight is None else definition.size * weight
    is_same, first = (
        pl.when(~pl.col(label_column).is_in(NO_LETTER))
        .then(label_column)
        .eq_missing(pl.col(reading_column))
        for label_column, reading_column in (("label", "answer"), ("label_first", "first_answer"))
    )
    label = "label_first" if figure == "first" else "label"
    alike = {"first": first, "accuracy": is_same, "flips": first & is_same}[figure]
    unit_rows = study_units.filter(definition.of).select(
        "question",
        size=size,
        read_hit=definition.hit[0].cast(pl.Float64),
        read_among=definition.among[0].cast(pl.Float64),
        hit=definition.hit[1].cast(pl.Float64),
        among=definition.among[1].cast(pl.Float64),
        counted=definition.among[0] * definition.size,
        alike=alike,
        weight=pl.when(pl.col(label).is_not_null()).then(pl.col("label_weight") * size),
    )
    unit_rows = unit_rows.sort(pl.all())  # the last digit of a sum depends on the order
    labelled_units = unit_rows.filter(pl.col("weight").is_not_null())
    is_other = (pl.col("hit") != pl.col("read_hit")) | (pl.col("among") != pl.col("read_among"))
    read_hits, read_trials = unit_rows.select(
        (pl.col("read_hit", "read_among") * pl.col("size")).sum()
    ).row(0)
    sides = _sides(unit_rows, definition.classes)
    agreement = labelled_units.select(
        (pl.col("alike") * pl.col("weight")).sum() / pl.col("weight").sum()
    )
    return Corrected(
        n=round(unit_rows["counted"].sum()),
        labelled=labelled_units.height,
        agreement=agreement.item() if labelled_units.height else math.nan,
        disagreements=labelled_units.filter(is_other).height,
        as_read=read_hits / read_trials if read_trials else math.nan,
        corrected=_value(_rates(sides, definition.classes), len(definition.classes)),
        interval_data=(sides, partial(_bounds, definition.classes)),
    )


def _sides(unit_rows: pl.DataFrame, classes: _Classes) -> tuple[Counts, ...]:
    """Compute the rates of a figure, as successes and trials by question.

    First come shares from all units: each class but the last, among itself and all later classes.
    Then come rates from the labels of each class: hits among the units that count, and if these can
    vary, the units that count. Weights average 1 in each class, so the number of labels is kept.
    """
    parts: dict[str, pl.Expr] = {}
    for place, (hit, among) in enumerate(classes):
        in_class = (pl.col("read_hit") == hit) & (pl.col("read_among") == among)
        label_weights = pl.when(in_class).then("weight")
        weight = (label_weights / label_weights.mean()).fill_null(0.0)
        parts[f"units {place}"] = pl.when(in_class).then("size").fill_null(0.0)
        parts[f"labels {place}"] = weight
        counting = (weight * pl.col("among")).fill_null(0.0)
        parts[f"among {place}"] = counting
        parts[f"hits {place}"] = (counting * pl.col("hit")).fill_null(0.0)
    by_question = unit_rows.select("question", **parts).group_by("question")
    sums = by_question.agg(pl.all().sum()).sort("question")
    of = {name: sums[name].to_numpy() for name in parts}
    places = range(len(classes))
    remainders = [
        np.sum([of[f"units {after}"] for after in places[place:]], axis=0) for place in places
    ]
    shares = [(of[f"units {place}"], remainders[place]) for place in places[:-1]]
    hits = [(of[f"hits {place}"], of[f"among {place}"]) for place in places]
    counts = [(of[f"among {place}"], of[f"labels {place}"]) for place in places]
    return (*shares, *hits, *(counts if any(among != 1 for _, among in classes) else ()))


def _rates(sides: Sequence[Counts], classes: _Classes) -> list[float]:
    """Return the rates of ``_sides``, or the rates as read if there is no label."""
    hits, among = zip(*classes, strict=True)
    as_read = [0.0] * (len(classes) - 1) + [*hits, *among][: len(sides) - len(classes) + 1]
    return [
        float(successes.sum() / trials.sum()) if trials.any() else rate
        for (successes, trials), rate in zip(sides, as_read, strict=True)
    ]


def _value(rates: Sequence[float], k: int) -> float:
    """Compute the figure of k classes: hits over units that count."""
    shares, remainder = [], 1.0
    for part in rates[: k - 1]:
        shares.append(remainder * part)
        remainder *= 1 - part
    class_counts = np.array([*shares, remainder]) * (rates[2 * k - 1 :] or 1.0)
    total = float(class_counts.sum())
    return float(class_counts @ rates[k - 1 : 2 * k - 1]) / total if total else math.nan


def _bounds(classes: _Classes, *arguments: Any) -> tuple[float, float]:
    """Compute the interval of a corrected figure, from ``_sides`` and a level.

    Each rate is moved to its exact limits on its own. The resulting shifts of the figure are
    combined as independent errors (Zou and Donner, 2008). Labels of a question count by their
    effective number (``effective_n``). Without labels, the limits are 0 and 1.
    """
    *sides, level = arguments
    k, rates = len(classes), _rates(sides, classes)
    value = _value(rates, k)
    if math.isnan(value):
        return math.nan, math.nan
    limits = [_limits(rate, counts, level) for rate, counts in zip(rates, sides, strict=True)]
    below = above = 0.0
    for place, ends in enumerate(limits):
        moves = [{place: end} for end in ends]
        hits = place - k
        if place > 2 * k - 2 and not sides[hits][1].any():  # no hits are known here
            moves = [{place: end, hits: hit} for end in ends for hit in (0.0, 1.0)]
        shifts = [
            _value([move.get(at, rate) for at, rate in enumerate(rates)], k) - value
            for move in moves
        ]
        if any(map(math.isnan, shifts)):  # at a limit, no unit may count
            return 0.0, 1.0
        below += min(*shifts, 0.0) ** 2
        above += max(*shifts, 0.0) ** 2
    return max(value - math.sqrt(below), 0.0), min(value + math.sqrt(above), 1.0)


def _limits(rate: float, counts: Counts, level: float) -> tuple[float, float]:
    if not counts[1].any():
        return 0.0, 1.0
    n = effective_n(*counts)
    return exact_bounds(rate * n, n, level)


def audit(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute figures as read and as corrected by people's labels, by arm and by path.

    The interval combines exact limits of the error rates and of the share as read. Labels and turns
    of a question count by their effective number.

    Args:
        turns: a turns table.

    Returns:
        A frame with ``AUDIT_COLUMNS``. Each study with labels has the three figures over all arms,
        then accuracy and flips of each arm and path with 10 labels or more.
    """
    studies = turns.filter(pl.col("label").is_not_null()).select(STUDY).unique(maintain_order=True)
    audited_units = units(turns.join(studies, on=STUDY, how="semi", maintain_order="left"))
    rows: list[dict[str, Any]] = []
    for study in studies.iter_rows():
        study_units = audited_units.filter(
            pl.col(name) == of for name, of in zip(STUDY, study, strict=True)
        )
        parts: list[tuple[str | None, str | None, pl.DataFrame]] = [(None, None, study_units)]
        for (arm,), in_arm in study_units.group_by("arm", maintain_order=True):
            parts.append((str(arm), None, in_arm))
            paths = in_arm.group_by("path", maintain_order=True)
            parts += [(str(arm), str(path), part_units) for (path,), part_units in paths]
        for arm, path, part in parts:
            for figure in FIGURES if arm is None else ("accuracy", "flips"):
                correction = corrected(part, figure)
                if correction.labelled < (1 if arm is None else ENOUGH):
                    continue
                low, high = correction.bounds()
                about = dict(zip(STUDY, study, strict=True)) | {"arm": arm, "path": path}
                rows.append(
                    {**about, "figure": figure, **vars(correction), "low": low, "high": high}
                )
    types = {
        **dict.fromkeys(("n", "labelled", "disagreements"), pl.Int64()),
        **dict.fromkeys(("agreement", "as_read", "corrected", "low", "high"), pl.Float64()),
    }
    schema = {name: types.get(name, pl.String()) for name in AUDIT_COLUMNS}
    return pl.DataFrame(rows, schema, orient="row")


def pilot(turns: pl.DataFrame) -> list[tuple[str, tuple[float, float, float]]]:
    """Return the name and first ``label_widths`` arguments of each study with labels."""
    rates = []
    for _, study_turns in turns.group_by(STUDY, maintain_order=True):
        correction = corrected(units(study_turns), "accuracy")
        if correction.labelled:
            not_right, missed_share, right = _rates(correction.interval_data[0], _SHARE)
            model, dataset, protocol = study_turns.select(STUDY[1:]).row(0)
            name = f"{model} on {dataset}, {protocol}"
            rates.append((name, (1 - not_right, 1 - right, missed_share)))
    return rates


def label_widths(
    share: float, wrong: float, missed_share: float, labels: Sequence[int], level: float = 0.95
) -> list[tuple[float, float]]:
    """Compute interval widths for numbers of labels: of a corrected share, and from labels alone.

    Each kind of reading gets its expected number of labels. Neither width includes the uncertainty
    from the number of questions. It adds to the width of the corrected share.

    Args:
        share: share of turns read as right, in 0 to 1.
        wrong: share of the turns read as right that are not right, in 0 to 1.
        missed_share: share of the other turns that are right, in 0 to 1.
        labels: numbers of labels, 1 or more.
        level: coverage.
    """
    true = share * (1 - wrong) + (1 - share) * missed_share
    widths = []
    for n in labels:
        moves = [
            part * (limit - right)
            for part, right in ((share, 1 - wrong), (1 - share, missed_share))
            if part > 0
            for limit in exact_bounds(right * part * n, part * n, level)
        ]
        low, high = exact_bounds(true * n, n, level)
        ends = [math.hypot(*(move for move in moves if move * sign > 0)) for sign in (1, -1)]
        widths.append((sum(ends), high - low))
    return widths


def _name_figure(row: Row) -> str:
    name = {"first": "First answers", "accuracy": "Accuracy", "flips": "Flips"}[row["figure"]]
    place = one_line(row["arm"] or ("" if row["figure"] == "first" else "all arms"))
    return ", ".join(filter(None, [name, place, steps_of(row["path"] or "")]))


AUDIT_SECTION = Section(
    "audit",
    "Audit",
    "Labels by people",
    "People labelled a random sample of the replies without seeing the extracted answers. The "
    "figures are corrected for the differences between labels and extracted answers.",
    12,
)

AUDIT_TABLE = Table(
    "audit",
    audit,
    layout=Listing(
        Computed("Figure", "figure", show=_name_figure),
        (
            Count("n", "n"),
            Count("Labelled", "labelled"),
            Share("Agreement %", "agreement"),
            Count("Disagreements", "disagreements"),
            Share("As read %", "as_read"),
            Share("Corrected %", "corrected", ""),
        ),
        (
            "Corrected: the figure as read, plus the weighted mean of label less reading [95% "
            "interval, from exact limits of the error rates]. Agreement: estimated share of all "
            "replies that people would label with the letter read. Disagreements: labels that "
            "change the figure.",
        ),
        lambda row: one_line(row["protocol"]),
    ),
    title="What are the figures if people read the replies?",
    lead="If the share as read lies outside the interval, the extraction has systematic errors.",
    section="audit",
    says={
        "figure": "`first` (accuracy of the first answers), `accuracy` (after challenges) or "
        "`flips` (share of right first answers that change to another option).",
        "arm": "Role of the challenge in the protocol. Null in the rows over all arms.",
        "path": "Challenges after the first answer, joined by `>`. Null in rows over several "
        "paths.",
        "n": "Number of turns in the figure, as read: first answers, replies to challenges, or "
        "replies to challenges of right first answers.",
        "labelled": "Number of labelled rows of a sheet that correct the figure.",
        "agreement": "Estimated share of all turns that people would label with the letter read. "
        "For `flips`, the labels of the reply and of its first answer must both match.",
        "disagreements": "Number of labels that change the figure.",
        "as_read": "Figure without correction, as in every other table.",
        "corrected": "`as_read` plus the weighted mean of label less reading.",
    },
)
