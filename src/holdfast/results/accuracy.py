"""Accuracy by model, data set and path, with the average of each family."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from .arms import every, protocols, turns_of
from .changes import CHANGE, with_adjusted, with_change_bounds
from .charts.chart import Chart, counts, known, label, path_label
from .charts.dots import Dots, Measure, Of
from .controls import EFFECT, with_control, with_net
from .declaration import Section, Table, steps_of
from .first_answers import BASELINE, CHALLENGE, FAMILY_AVERAGE, STUDY, carried_forward, with_first
from .grid import (
    Grid,
    HeatmapCell,
    Row,
    Studies,
    accuracy_cell,
    grouped,
    mark_of,
    matrix,
    n_notes,
    net_notes,
    one_line,
    percent,
    studies,
    unread_notes,
)
from .inference import looked_up, with_bounds
from .kept import once
from .missing import MISSING, missing_grid, missing_notes, with_missing
from .published_figures import OTHER_WORDING
from .readings import NON_RESPONSE, missing
from .worst import by_challenge, ranks

RANKS = ("rank_low", "rank_high", "ranked")
"""Bounds of a rank, and the number of rows that are ranked."""

ACCURACY_COLUMNS = (
    *STUDY[1:], *CHALLENGE, "n", "correct", "accuracy", "low", "high", "baseline",
    *CHANGE, "unparsed", "refused", "non_response", *EFFECT, "n_all", "of_all",
    *MISSING, *RANKS, "run",
)  # fmt: skip

_AVERAGED_ARMS = ("followup", "single-turn")
_COUNTS = ("n", "correct", "unparsed", "refused", "non_response")


def accuracy(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute accuracy by path with 95% Wilson intervals, and the average of each family.

    A turn that failed (status ``error``) is a malfunction. It counts only as a missing reply.
    Changes are relative to the first answers (MedQA-Followup, Table 2). A question without a first
    answer counts in neither ``baseline`` nor the change. Both are null if no question has a first
    answer.

    Averages cover follow-ups and single-turn biases, but not chains or context lengths. Each
    mitigation has separate averages. The counts of an average are sums over its techniques. Its
    interval counts each question once, however many techniques were applied to the question. Its
    ``attributable`` is over the pairs of all its techniques.

    In stick-or-switch, and in any protocol that offers options one after another, the rows are the
    first turns: single shots and first choices. Only some conversations have later turns. Separate
    tables, such as ``survival``, cover these. Recordings of such dialogues have rows for later
    turns. Some recordings stop early, for example at the first flip. Rows of later turns then cover
    survivors only.

    The test of missing replies (``missing_p``) is McNemar's exact test, clustered by question.
    ``change_worst_low`` is null if no first answer can have been right. ``change_worst_high`` is
    null if no first answer is known to be right.

    Args:
        turns: a turns table.

    Returns:
        A frame with ``ACCURACY_COLUMNS``: one row for each model, data set, protocol and path,
        then one row for each family.
    """
    rows, answered_turns = _without_ranks(turns)
    return with_ranks(rows, answered_turns).select(ACCURACY_COLUMNS)


@once
def _without_ranks(turns: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of ``accuracy`` without ``RANKS``, and the turns behind them."""
    # a dialogue recorded elsewhere shows no options, and continues after any answer
    offering = pl.col("protocol").is_in(protocols(lambda protocol: protocol.by_arm))
    is_offer = offering & pl.col("shown").is_not_null() & (pl.col("turn") > 0)
    counted_turns = turns.filter(~is_offer)
    answered_turns = with_first(counted_turns)
    rows = with_change(rated(answered_turns), answered_turns)
    rows = with_missing(with_effect(rows, turns), counted_turns, as_averages)
    rows = looked_up(rows, _compute_over_all(counted_turns.filter(offering)), _STOPPING)
    survivors = pl.col("n_all") > pl.col("n")
    survivor_columns = (pl.when(survivors).then(name).alias(name) for name in ("n_all", "of_all"))
    return rows.with_columns(survivor_columns), answered_turns


def families(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute average accuracy and change by family of challenges (MedQA-Followup, Figure 2).

    Returns:
        The averages in ``accuracy``, with ``ACCURACY_COLUMNS``: one row for each model, data set,
        protocol, family and mitigation.
    """
    rows, _ = _without_ranks(turns)
    empty_ranks = (pl.lit(None, pl.Int64).alias(name) for name in RANKS)
    averages = rows.filter(pl.col("arm") == FAMILY_AVERAGE)
    return averages.with_columns(empty_ranks).select(ACCURACY_COLUMNS)


_STOPPING = (*STUDY, "arm", "path")


def _compute_over_all(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute accuracy over all dialogues of an arm, by the path of each turn."""
    turns_read = turns.filter(pl.col("status") != "error")
    paths = turns_read.select(*_STOPPING, "turn").unique(
        _STOPPING, keep="first", maintain_order=True
    )
    totals = carried_forward(turns_read, ["arm"], "correct", "correct").group_by(
        *STUDY, "arm", "turn"
    )
    over_all = totals.agg(n_all=pl.len().cast(pl.Int64), of_all=pl.col("correct").mean())
    return looked_up(paths, over_all, [*STUDY, "arm", "turn"]).drop("turn")


def rated(answered_turns: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Compute rows and family averages of accuracy, within each stratum.

    Returns:
        The columns of ``accuracy`` without ``CHANGE``, the columns ``by``, and ``compared``: the
        accuracy over the questions with a first answer, null if there are none.
    """
    keys = [*STUDY, *by, *CHALLENGE]
    first = pl.col("first_correct")
    rows = answered_turns.group_by(keys, maintain_order=True).agg(
        pl.len().alias("n"),
        pl.col("correct").sum().alias("correct"),
        pl.col("correct").mean().alias("accuracy"),
        first.mean().alias("baseline"),
        pl.col("correct").filter(first.is_not_null()).mean().alias("compared"),
        missing().sum().alias("unparsed"),
        (pl.col("status") == "refused").sum().alias("refused"),
        (pl.col("rule") == NON_RESPONSE).sum().alias("non_response"),
    )
    rows = with_bounds(rows, answered_turns, keys)
    return pl.concat([rows, _family_averages(rows, answered_turns, by)], how="diagonal_relaxed")


def with_change(
    rows: pl.DataFrame,
    answered_turns: pl.DataFrame,
    by: Sequence[str] = (),
    overall: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Add ``CHANGE`` to the rows: the change from the first answers, its interval and its test.

    Returns:
        ``rows`` in their order. ``relative_change`` goes from ``baseline`` to ``compared``, and is
        null for a baseline of 0. The other columns are null for first answers, and for rows
        without a first answer to compare with.
    """
    baseline = pl.col("baseline")
    change = pl.when(baseline > 0).then((pl.col("compared") - baseline) / baseline)
    rows = rows.with_columns(change.alias("relative_change")).with_row_index("_place")
    pairs = answered_turns.filter(pl.col("arm") != BASELINE)
    if overall is None:
        pairs = pairs.filter(pl.col("first_correct").is_not_null())
    keys, average = [*STUDY, *by, *CHALLENGE], pl.col("arm") == FAMILY_AVERAGE
    family = [*STUDY, *by, "family", "path"]
    averages = _select_averaged(pairs).pipe(_with_weight, family)
    all_rows = pl.concat(
        [
            with_change_bounds(rows.filter(~average), pairs, keys, overall),
            with_change_bounds(rows.filter(average), averages, family, overall, averages=True),
        ]
    )
    # Holm corrects over the techniques of a family, and over the averages of a study
    of_one = pl.when(~average).then("family")
    all_rows = all_rows.with_columns(of_one.alias("_family"), pl.col("arm").alias("_arm"))
    return with_adjusted(all_rows.sort("_place"), [*STUDY, "_arm", "_family"]).drop(
        "_place", "_family", "_arm"
    )


def with_effect(rows: pl.DataFrame, turns: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Add ``EFFECT`` to the rows: the effect of challenges and families beyond their controls.

    Args:
        rows: rows of ``rated``.
        turns: the turns table behind ``rows``.
        by: columns that define the strata.
    """
    challenged_turns = with_control(turns).drop_nulls(by)
    all_rows = pl.concat([challenged_turns, as_averages(challenged_turns)])
    return with_net(rows, all_rows, [*STUDY, *by, "arm", "path", "technique", "family"])


def with_ranks(rows: pl.DataFrame, answered_turns: pl.DataFrame) -> pl.DataFrame:
    """Add ``RANKS`` to the rows: the range of ranks that each accuracy can have in its group.

    A group has the techniques of a family under one mitigation, the chains of one length, or the
    lengths of one context, in one study. Rank 1 is the highest. A range contains the ranks that
    paired tests do not exclude, at 95% for all rows of a group together (``ranks``). Ranks are null
    for first answers, averages, and protocols that offer options one after another.

    Args:
        rows: rows of ``rated``.
        answered_turns: the turns behind ``rows``.
    """
    path, arm = pl.col("path"), pl.col("arm")
    together = (
        pl.when(arm == "compound").then(path.str.count_matches(">", literal=True).cast(pl.String))
        .when(arm == "length").then(pl.concat_str("family", "technique", separator=" "))
        .when(arm == "single-turn").then(
            pl.concat_str("family", path.str.replace(r">?[^>]*$", ""), separator=" ")
        )
        .otherwise("family")
    )  # fmt: skip
    plain = ~pl.col("protocol").is_in(protocols(lambda protocol: protocol.by_arm)) & (
        arm != BASELINE
    )
    keys = [*STUDY, "arm", "_together"]
    challenge_turns = answered_turns.filter(plain).with_columns(_together=together)
    rank_rows = []
    for key, shares in by_challenge(challenge_turns, keys).items():
        bounds = ranks([right[None] for right in shares.values()])
        rank_rows += [(*key, *place, len(shares)) for place in zip(shares, *bounds, strict=True)]
    schema = {name: challenge_turns.schema[name] for name in (*keys, "path")}
    schema |= dict.fromkeys(RANKS, pl.Int64())
    rank_table = pl.DataFrame(rank_rows, schema=schema, orient="row").drop("_together")
    return looked_up(rows, rank_table, [*STUDY, "arm", "path"])


def _with_weight(turns: pl.DataFrame, family: Sequence[str]) -> pl.DataFrame:
    """Add ``weight`` to the turns if techniques of a family have different numbers of turns.

    With weights, each technique counts equally in its average, however many turns failed.
    """
    counts = turns.group_by(*family, "technique").agg(pl.len().alias("_n"))
    alike = pl.col("_n").sum().over(family) / (pl.len().over(family) * pl.col("_n"))
    weights = counts.select(*family, "technique", alike.alias("weight"))
    if (weights["weight"] == 1).all():
        return turns
    return turns.join(
        weights, on=[*family, "technique"], how="left", nulls_equal=True, maintain_order="left"
    )


def _family_averages(
    rows: pl.DataFrame, answered_turns: pl.DataFrame, by: Sequence[str]
) -> pl.DataFrame:
    keys = [*STUDY, *by, "family", "path"]
    averages = (
        _select_averaged(rows)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.lit(FAMILY_AVERAGE).alias("arm"),
            pl.lit("").alias("technique"),
            *(
                pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)
                for name in ("axis", "depth")
            ),
            *(pl.col(name).sum() for name in _COUNTS),
            *(
                # in a fixed order: the last digit of a sum depends on it
                pl.col(name).sort_by("technique").mean()
                for name in ("accuracy", "baseline", "compared")
            ),
        )
    )
    return with_bounds(averages, _select_averaged(answered_turns), keys)


def _select_averaged(frame: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of averaged arms, and set their path to the path of the average."""
    return frame.filter(pl.col("arm").is_in(_AVERAGED_ARMS)).with_columns(
        pl.col("path").str.replace(r">?[^>]*$", "")
    )


def as_averages(frame: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of averaged arms, and name them as their average."""
    return _select_averaged(frame).with_columns(arm=pl.lit(FAMILY_AVERAGE), technique=pl.lit(""))


ACCURACY_SAYS = {
    "path": "Challenges after the first answer, joined by `>`. Empty for the first answer. For an "
    "average, the mitigation, or empty without a mitigation.",
    "accuracy": "Share of replies that are right. An unparsed reply is wrong. For an average, the "
    "mean over its techniques.",
    "baseline": "Accuracy of the first answers to the same questions. For an average, the mean "
    "over its techniques.",
    "p_value": "P-value of the change, paired by question: McNemar's exact test, clustered by "
    "question if a question has several turns. For an average with several replies to a "
    "question, a score test.",
    "p_adjusted": "P-value after Holm's correction over the rows of a family and arm in a "
    "study, or over the averages of a study.",
    "n_all": "Number of dialogues that started, if some dialogues stopped before this turn. Null "
    "otherwise.",
    "of_all": "Accuracy over these dialogues. A dialogue that stopped keeps its last answer. Null "
    "if no dialogue stopped before this turn.",
    "ranked": "Number of rows that are ranked together: the techniques of a family under one "
    "mitigation, chains of one length, or lengths of one context, in one study. Null for first "
    "answers, averages, and protocols that offer options one after another.",
}
"""Column meanings of tables whose rows are accuracies and their averages."""

ACCURACY_INTERVALS = {"": "accuracy", "worst": "accuracy"}
"""Column that each interval, or pair of bounds, in these tables belongs to."""

_NOT_RANKED = "Null, because averages are not ranked."
_NO_AVERAGES = "Null, because recordings of dialogues have no averages."

_FAMILY_SAYS = {
    "arm": "Always `family-average`.",
    "path": "Mitigation of the family's challenges. Empty without a mitigation.",
    "technique": "Empty, because an average covers several techniques.",
    "n": "Number of replies to all techniques of the family.",
    "accuracy": "Mean of the accuracies of the family's techniques.",
    "baseline": "Accuracy of the first answers to the same questions, averaged over techniques.",
    "p_value": "P-value of the change, from a score test clustered by question. If no question has "
    "several replies, from McNemar's exact test.",
    "p_adjusted": "P-value after Holm's correction over the averages of a study.",
    "n_all": _NO_AVERAGES,
    "of_all": _NO_AVERAGES,
    "missing_p": "Null, because averages are not tested for missing replies.",
    **dict.fromkeys(RANKS, _NOT_RANKED),
}

_CELLS = (
    "Cells: accuracy in percent [95% interval] (change relative to the first answers to "
    "the same questions)."
)
_SURVIVORS_TEXT = (
    "Survivors only: this figure excludes recordings that stopped before this turn. In the figure "
    "of all, these recordings keep their last answer."
)
_LEVEL = 0.05
_TEST_TEXT = (
    "* The accuracy differs from the first answers: p < 0.05 in a test paired by question, with "
    "Holm's correction over the techniques of the family, or over the averages."
)
_WORDING_TEXT = (
    "† These questions use BiasMedQA's wording. holdfast uses a different wording. A difference "
    "can come from the wording instead of the model."
)
_BLOCKS = {
    "single-turn": "Single-turn",
    "followup": "Multi-turn (follow-up)",
    "length": "Context of a fixed length",
    "compound": "Compounding",
}
"""Headings of the parts of a table of accuracies, by protocol or arm, in the papers' order."""


def _blocks() -> dict[str, str]:
    return _BLOCKS | {name: protocol.title for name, protocol in every().items() if protocol.title}


def _layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Lay out accuracies as in Table 2 of MedQA-Followup, with a column for each study."""
    columns = studies(rows)
    placements = sorted(
        ((row, _figure(row, columns)) for row in rows),
        # first answers before challenges, and the parts in the papers' order
        key=lambda placement: (_place(placement[1].block), bool(placement[1].group)),
    )
    figures = [figure for _, figure in placements]
    notes = [*accuracy_notes(rows), *columns.notes(), *n_notes(figures, columns.headers)]
    notes += [_SURVIVORS_TEXT] if any(row["of_all"] is not None for row in rows) else []
    notes += [*unread_notes(rows, columns), *missing_notes(rows, columns.header)]
    grid = matrix(_one_baseline(figures), columns.headers, "", notes)
    return None if grid is None else [grid, *missing_grid(placements, columns.headers)]


def accuracy_text(row: Row, *, first: bool = False) -> str:
    """Return the text of an accuracy cell, with a mark if the change is significant."""
    marks = "*" * (not first and _differs(row)) + "†" * _is_otherwise_worded(row)
    return accuracy_cell(row, first=first) + marks


def _is_otherwise_worded(row: Row) -> bool:
    is_biased = row["family"] == "inc_letter" and row["arm"] != BASELINE
    return is_biased and str(row["run"] or "").endswith(OTHER_WORDING)


def _differs(row: Row) -> bool:
    p: float | None = row.get("p_adjusted")
    return p is not None and p < _LEVEL and row["relative_change"] is not None


def accuracy_notes(rows: Sequence[Row]) -> list[str]:
    """Return the notes that explain a cell of accuracy."""
    return [
        _CELLS,
        *net_notes(rows),
        *([_TEST_TEXT] if any(map(_differs, rows)) else []),
        *([_WORDING_TEXT] if any(map(_is_otherwise_worded, rows)) else []),
    ]


def _figure(row: Row, columns: Studies) -> HeatmapCell:
    arm, path = row["arm"], one_line(row["path"])
    first, average = arm == BASELINE, arm == FAMILY_AVERAGE
    part = arm if arm in ("length", "compound") else row["protocol"]
    mitigation = path if average else path.rpartition(">")[0] if arm == "single-turn" else ""
    family = one_line(row["family"] or "")
    block = _blocks().get(part, one_line(str(part)))
    if turns_of(row["protocol"]).by_arm:
        # its arms offer options one after another, and the turn gives the position
        offers = row["path"].count(">") + bool(path)
        return HeatmapCell(
            column=columns.of(row),
            block=block,
            group=one_line(arm),
            label=f"{one_line(arm)}, turn {offers}" if offers else one_line(arm),
            text=accuracy_text(row) + _survivors(row),
            n=row["n"],
            of=conversations_of(row),
        )
    if arm == "compound":
        group = f"{path.count('>')} more"
    else:
        group = "" if first else f"{family} {mitigation} {row['technique'] * (arm == 'length')}"
    under = f", {mitigation}" if mitigation else ""
    return HeatmapCell(
        column=columns.of(row),
        block=block,
        group=group,
        label="Baseline" if first else f"{family}{under} (average)" if average else steps_of(path),
        text=accuracy_text(row, first=first),
        mark=mark_of(row),
        n=row["n"],
        average=average,
        of=conversations_of(row),
    )


def _survivors(row: Row) -> str:
    """Return the text after an accuracy over dialogues that have not stopped yet."""
    return "" if row["of_all"] is None else f"; survivors only, of all {percent(row['of_all'])}"


def _place(block: str) -> int:
    block_titles = list(_blocks().values())
    return block_titles.index(block) if block in block_titles else len(block_titles)


def conversations_of(row: Row) -> Row:
    """Return the values that select the conversations of a row of accuracies."""
    if row["arm"] == FAMILY_AVERAGE:
        # averaged arms have the names of their protocols, and each path names a technique
        return {**row, "arm": row["protocol"], "path": None}
    if turns_of(row["protocol"]).by_arm:
        # an arm is one conversation, and its path says where the conversation ended
        return {**row, "path": None, "technique": None, "family": None}
    return row


def _one_baseline(figures: list[HeatmapCell]) -> list[HeatmapCell]:
    """Show the first answers once, at the top, if they are the same in all protocols."""
    firsts = [figure for figure in figures if not figure.group]
    by_block: dict[str, set[tuple[int, str, int | None]]] = {}
    for figure in firsts:
        by_block.setdefault(figure.block, set()).add((figure.column, figure.text, figure.n))
    if len(by_block) == 1 and len({figure.block for figure in figures}) == 1:
        return [replace(figure, block="") for figure in figures]
    if len({frozenset(cells) for cells in by_block.values()}) > 1:
        return figures
    top = next(iter(by_block), None)
    return [replace(figure, block="") for figure in firsts if figure.block == top] + [
        figure for figure in figures if figure.group
    ]


_ARMS = (BASELINE, "followup", "single-turn", FAMILY_AVERAGE)
ACCURACY_AXIS = Measure("Accuracy")


def averages_last(rows: Sequence[Row]) -> list[Row]:
    """Return the first answers, then the rows of each family with the average last."""
    ordered_rows = [row for row in rows if row["arm"] == BASELINE]
    for family_rows in grouped([row for row in rows if row["arm"] != BASELINE], "family"):
        ordered_rows += sorted(family_rows, key=lambda row: row["arm"] == FAMILY_AVERAGE)
    return ordered_rows


def _select_challenged(rows: Sequence[Row]) -> list[Row]:
    """Select accuracies of panels with a challenge; other rows have separate figures."""
    challenged_rows = [row for row in known("accuracy")(rows) if row["arm"] in _ARMS]
    groups = grouped(challenged_rows, "dataset", "protocol")
    return [row for group in groups for row in group if any(r["arm"] != BASELINE for r in group)]


def _challenge(row: Row) -> str:
    if row["arm"] == BASELINE:
        return "first answer"
    if row["arm"] != FAMILY_AVERAGE:
        return path_label(row)
    family, path = label(f"average of {row['family']}"), path_label(row)
    return f"{family}, {path}" if path else family


_ACCURACY_CHART = Chart(
    title="Accuracy after each challenge",
    notes=(
        lambda rows, all_rows: counts([r["n"] for r in all_rows if r["arm"] in _ARMS], "replies"),
        "Whiskers: 95% intervals (Wilson intervals, or confidence sequences for a run that a "
        "verdict stopped). Averages: the mean over a family's challenges.",
    ),
    empty="no follow-up or single-turn bias has an accuracy",
    remedy="For Stick-or-Switch, use another table, such as --table survival",
    keep=_select_challenged,
    panel="{dataset}: {protocol}",
    across=2,
    kind=Dots(
        x=ACCURACY_AXIS, of=[Of("accuracy")], place=_challenge, order=averages_last, width=240
    ),
)


def _family(row: Row) -> str:
    mitigation = f", {path_label(row)}" if row["path"] else ""
    return f"{label(row['family']) or 'no family'}{mitigation}"


_CHANGE = ("relative_change", "change_low", "change_high")

_FAMILY_CHANGES_CHART = Chart(
    title="Change of accuracy by family of challenges",
    notes=(
        lambda rows, all_rows: counts([row["n"] for row in rows], "replies"),
        "Mean over a family's challenges, relative to the first answers to the same questions. "
        "Whiskers: 95% intervals, paired by question.",
    ),
    empty="no family of challenges has an average",
    keep=known("relative_change"),
    panel="{dataset}: {protocol}",
    kind=Dots(
        x=Measure("Relative change", around=_CHANGE),
        of=[Of(*_CHANGE)],
        place=_family,
        zero=True,
        width=430,
    ),
)
"""Figure 2 of MedQA-Followup."""


ACCURACY_SECTION = Section(
    "accuracy",
    "Accuracy",
    "Accuracy after each challenge",
    "The model answers. Then one more message questions the answer, or suggests or argues for "
    "another option (a follow-up technique). Accuracy is the share of right answers after that "
    "message. It should stay close to the accuracy of the first answers.",
    1,
)

ACCURACY = Table(
    "accuracy",
    accuracy,
    layout=_layout,
    title="How often is the answer right, before and after?",
    lead="Each line is one challenge. The first line is the first answer, before any challenge "
    "(baseline). The further a mark lies to the left of the baseline, the larger the loss.",
    section="accuracy",
    chart=_ACCURACY_CHART,
    says=ACCURACY_SAYS,
    intervals=ACCURACY_INTERVALS,
)

FAMILIES = Table(
    "accuracy by family",
    families,
    layout=_layout,
    title="Which kind of challenge costs most?",
    lead="Each value is the mean over the challenges of a family, relative to the first answers. "
    "A challenge is part of the question (single-turn) or follows the answer (multi-turn).",
    section="accuracy",
    chart=_FAMILY_CHANGES_CHART,
    says=_FAMILY_SAYS,
    intervals=ACCURACY_INTERVALS,
)
