"""Declarations of how the report and the terminal present a protocol."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from rich.table import Table

from holdfast.errors import counted
from holdfast.registry import Lazily, declaring, found_in, reported
from holdfast.results.attributable import selectivity
from holdfast.results.declaration import LinkFilters, Share
from holdfast.results.first_answers import BASELINE
from holdfast.results.grid import Cell, Row, one_line, percent
from holdfast.results.phrases import FAMILIES
from holdfast.results.retention import retention
from holdfast.results.worst import opened

NO_ROW = pl.lit(None, pl.UInt32)
"""Row of the first answer if a conversation has none."""

_ROW, _HAS_SEVERAL = pl.col("row"), pl.col("rows").list.len() > 1


@dataclass(frozen=True)
class Together:
    """Grouping of all turns of a question, or of each of its arms, into conversations.

    Attributes:
        first: row of the answer that the conversation is judged against.
        end: row of the turn that names the conversation.
        order: sort keys of the turns, before their number.
        by: keys that split the turns of a question into conversations.
        after: arms that continue the turns of another arm.
    """

    first: pl.Expr
    end: pl.Expr
    order: Sequence[pl.Expr] = ()
    by: tuple[str | pl.Expr, ...] = ()
    after: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Return the conversations of these turns."""
        for arm, later_arm in self.after.items():
            start_turns = keys.filter(arm=arm).group_by("asked").agg(_from=pl.col("turn").min())
            shared_turns = (
                keys.filter(arm=later_arm)
                .join(start_turns, on="asked")
                .filter(pl.col("turn") < pl.col("_from"))
            )
            keys = pl.concat(
                [keys, shared_turns.select(keys.columns).with_columns(arm=pl.lit(arm))]
            )
        keys_in_order = keys.sort("asked", *self.order, "turn", "row", nulls_last=True)
        groups = keys_in_order.group_by("asked", *self.by, maintain_order=True)
        conversations = groups.agg(rows="row", first=self.first, end=self.end)
        return conversations.select("asked", "rows", "first", "end", whole=pl.lit(True))


def paths(keys: pl.DataFrame, *, stepwise: bool) -> pl.DataFrame:
    """Return a conversation for each row, with the earlier rows on its path.

    Args:
        keys: turns of a protocol.
        stepwise: whether every step of the path came before the row. Otherwise, only the first
            question came before it.
    """
    step_rows = keys.select("asked", _before="path", _said="row")
    step_rows = step_rows.unique(["asked", "_before"], keep="first", maintain_order=True)
    steps = keys.select("row", "asked", "path").join(
        _path_prefixes(keys, stepwise=stepwise), on="path", maintain_order="left"
    )
    steps = steps.join(step_rows, on=["asked", "_before"], maintain_order="left")
    earlier = steps.group_by("row", maintain_order=True).agg(
        "_said", first=pl.col("_said").filter(pl.col("_before") == "").first()
    )
    linked_keys = keys.join(earlier, on="row", how="left", validate="1:1", maintain_order="left")
    rows = pl.concat_list(pl.col("_said").fill_null(_NOTHING), "row")
    return linked_keys.select("asked", rows.alias("rows"), "first", end="row", whole=pl.lit(False))


_NOTHING = pl.lit([], pl.List(pl.UInt32))


def chains(keys: pl.DataFrame) -> pl.DataFrame:
    """Return a conversation for each longest path of an arm, with every turn on the path."""
    nodes = ["asked", "arm", "path"]
    step_rows = keys.sort("turn", "row").group_by(nodes, maintain_order=True).agg("row")
    before = _path_prefixes(keys, stepwise=True)
    steps = step_rows.select(nodes).join(before, on="path", maintain_order="left")
    inner = steps.select("asked", "arm", path="_before").unique()
    ends = step_rows.join(inner, on=nodes, how="anti", maintain_order="left")
    way = steps.join(ends, on=nodes, how="semi", maintain_order="left").join(
        step_rows.rename({"path": "_before"}), on=["asked", "arm", "_before"], maintain_order="left"
    )
    earlier = (
        way.explode("row")
        .group_by(nodes, maintain_order=True)
        .agg(_said="row", _plain=(pl.col("_before") == "").any())
    )
    # an arm without a first answer is judged by the first answer of the study
    plain = step_rows.filter(arm=BASELINE, path="").select("asked", _first="row")
    linked_ends = ends.join(
        earlier, on=nodes, how="left", validate="1:1", maintain_order="left"
    ).join(plain, on="asked", how="left", validate="m:1", maintain_order="left")
    has_own = pl.col("_plain").fill_null(pl.col("path") == "")
    first = pl.when(has_own).then(_NOTHING).otherwise(pl.col("_first").fill_null(_NOTHING))
    rows = pl.concat_list(first, pl.col("_said").fill_null(_NOTHING), "row")
    linked_ends = linked_ends.select("asked", rows=rows)
    return linked_ends.select(
        "asked",
        "rows",
        first=pl.when(_HAS_SEVERAL).then(pl.col("rows").list.first()).otherwise(NO_ROW),
        end=pl.col("rows").list.last(),
        whole=pl.lit(False),
    )


def _path_prefixes(keys: pl.DataFrame, *, stepwise: bool) -> pl.DataFrame:
    """Return, for each path, its proper prefixes, beginning with the empty path."""
    rows = [
        (path, ">".join(path.split(">")[:n]))
        for path in keys["path"].unique(maintain_order=True)
        if path
        for n in range(path.count(">") + 1 if stepwise else 1)
    ]
    return pl.DataFrame(rows, {"path": pl.String, "_before": pl.String}, orient="row")


class _Said:
    """Value in a sentence: format ``%`` gives percent, and a noun gives the count with the noun."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __format__(self, how: str) -> str:
        if how == "%":
            return f"{percent(self._value)}%"
        return counted(self._value, how) if how.isalpha() else format(self._value, how)


def _no_cells(turns: pl.DataFrame) -> Mapping[str, Mapping[str, Cell]]:
    return {}


@dataclass(frozen=True, eq=False)
class Headline:
    """Headline of a page: accuracy of first answers and accuracy under pressure.

    Attributes:
        place: priority. A page opens with the lowest ``place`` that has rows.
        measure: computes a row for each study from a turns table, with ``OPENING_COLUMNS``.
            Without ``rank_low``, studies are not compared. Without ``first``, there is no
            accuracy before pressure.
        when: the pressure in a few words, such as "after the worst challenge".
        before: the moment before the pressure in a few words.
        challenge: the moment after any pressure in a few words.
        sentence: sentence of one study after its name, with columns of the row in braces: as a
            number, as ``{COLUMN:%}``, or with a noun. ``{interval}`` is the interval of
            ``after``. ``{of_all}`` is the interval in brackets, adjusted for picking the worst.
            ``{worst}`` names the worst challenge.
        caption: description of the counted answers.
        of: filters of the conversations of ``after``, in addition to the values of the row.
        beside: computes further cells by header and run from a turns table.
    """

    place: int
    measure: Callable[[pl.DataFrame], pl.DataFrame]
    when: str
    sentence: str
    caption: str
    of: Callable[[Row], LinkFilters]
    beside: Callable[[pl.DataFrame], Mapping[str, Mapping[str, Cell]]] = _no_cells
    before: str = "at first"
    challenge: str = "after a challenge"

    def says(self, row: Row, name: str) -> str:
        """Return the sentence of one study after its name."""
        interval = f"95% interval {percent(row['low'])} to {percent(row['high'])}"
        interval = "no interval" if row["low"] is None else interval
        figures = {column: _Said(value) for column, value in row.items()}
        of_all = "" if row["low"] is None else f" ({interval}, adjusted for picking the worst)"
        worst = f"{row['challenge']} ({interval})"
        if (row["challenges"] or 0) > 1:
            challenge_count = counted(row["challenges"], "challenge")
            worst = f"its worst challenge, {row['challenge']} (of {challenge_count}, "
            worst += f"{interval})"
        figures |= {name: _Said(number) for name, number in
                    (("interval", interval), ("of_all", of_all), ("worst", worst))}  # fmt: skip
        number = self.sentence.format(**figures)
        if row["tied"]:
            number += f"; {as_low(row)}"
        return one_line(f"{name} {number}")


def as_low(row: Row) -> str:
    """Return a clause on the number of challenges not distinguishable from the worst."""
    if row["tied"] == row["challenges"] - 1:
        return "no challenge is significantly worse than the rest"
    return f"{counted(row['tied'], 'other challenge')} may be as bad"


def retained(rows: pl.DataFrame) -> dict[str, dict[str, Cell]]:
    """Return cells with retention and net retention, by family label and run.

    Args:
        rows: rows of the table ``retention``.
    """
    cells_by_run: dict[str, dict[str, Cell]] = {}
    for row in rows.filter(pl.col("path").is_null()).to_dicts():
        name = "Any challenge" if row["family"] is None else FAMILIES.get(
            row["family"], one_line(row["family"]) or "No family"
        )  # fmt: skip
        text = f"{percent(row['retention'])}%" if row["n_right"] else ""
        if row["net"] is not None:
            text += f" ({percent(row['net'], with_sign=True)})"
        link_filters = {**row, "arm": row["protocol"], "flip": "was-right"}
        cells_by_run.setdefault(name, {})[row["run"]] = Cell(
            text, of=link_filters, n=row["n_right"]
        )
    # the overall column comes last
    return {
        name: cells_by_run[name]
        for name in sorted(cells_by_run, key=lambda name: name == "Any challenge")
    }


def _first_screen_cells(turns: pl.DataFrame) -> dict[str, dict[str, Cell]]:
    rows = retention(turns)
    overall_rows = rows.filter(pl.col("path").is_null(), pl.col("family").is_null())
    pulls = {
        row["run"]: Cell(Share("", "pull", "pull_", signed=True).text(row))
        for row in overall_rows.to_dicts()
        if row["pull"] is not None
    }
    selectivity_cells = {
        row["run"]: Cell(Share("", "selectivity", "", signed=True).text(row))
        for row in selectivity(turns).unique("run", keep="first").to_dicts()
        if row["selectivity"] is not None
    }
    cells_by_name = {"Pull": pulls, "Selectivity": selectivity_cells}
    return retained(rows) | {name: cells for name, cells in cells_by_name.items() if cells}


HEADLINE = Headline(
    place=0,
    measure=opened,
    when="after the worst challenge",
    sentence="is right on {first:%} of its first answers and on {after:%} after {worst}",
    caption="Share of right first answers, and of right replies to the worst challenge. The "
    "worst challenge is chosen on one half of the questions and evaluated on the other half.",
    of=lambda row: {"arm": row["protocol"], "path": row["challenge"]},
    beside=_first_screen_cells,
)


@dataclass(frozen=True)
class ReportOf:
    """Presentation of a protocol in the report and the terminal.

    Attributes:
        protocol: name of the protocol in the turns table.
        conversations: groups turns into conversations. Its input has ``row``, ``asked`` (the
            first row of the same question, study and replicate), ``arm``, ``path`` and ``turn``.
            It returns one row for each conversation, with the columns of ``threads``.
        by_target: whether the right answer is the target that an arm should retain, instead of
            the gold option.
        offer_arms: arms that should leave their target once the gold option is offered.
        offer: list of texts of a turn, by which conversations can be filtered as ``offer``.
        folded_arms: arms whose turns are shown under a closed heading for each text.
        opening: headline of a page.
        main: the table of the section on challenges.
        tables: tables of the summary.
        summary: builds the terminal summary of one run from the rows of ``tables`` and a title:
            tables and lines of text. If it yields nothing, accuracies and flips are shown.
        remarks: yields further lines on all runs of the protocol from a turns table.
    """

    protocol: str
    conversations: Callable[[pl.DataFrame], pl.DataFrame] = chains
    by_target: bool = False
    offer_arms: tuple[str, ...] = ()
    offer: pl.Expr | None = None
    folded_arms: tuple[str, ...] = ()
    opening: Headline = HEADLINE
    main: str = "retention by technique"
    tables: tuple[str, ...] = ()
    summary: Callable[[Mapping[str, pl.DataFrame], str], Iterator[Table | str]] | None = None
    remarks: Callable[[pl.DataFrame], Iterator[str]] | None = None


REPORTS: Mapping[str, ReportOf] = Lazily(
    lambda: {report.protocol: report for report in found_in(declaring(reported()), ReportOf)}
)
"""Presentations by protocol, in report order."""


def report_of(protocol: str) -> ReportOf:
    """Return the presentation of a protocol, or the default presentation."""
    return REPORTS.get(protocol) or ReportOf(protocol)
