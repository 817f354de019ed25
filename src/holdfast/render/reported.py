"""What the report and the terminal say of a protocol, declared in its folder."""

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
"""Where a conversation has no first answer."""

_ROW, _HAS_SEVERAL = pl.col("row"), pl.col("rows").list.len() > 1


@dataclass(frozen=True)
class Together:
    """Conversations of all turns of a question, or of each of its arms.

    Attributes:
        first: row of the answer that the conversation is judged against, from its turns.
        end: row that it is named by.
        order: what turns are ordered by before they are by number.
        by: what parts a question's turns into conversations.
        after: arms that go on from another one's turns.
    """

    first: pl.Expr
    end: pl.Expr
    order: Sequence[pl.Expr] = ()
    by: tuple[str | pl.Expr, ...] = ()
    after: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, keys: pl.DataFrame) -> pl.DataFrame:
        """The conversations of these turns."""
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
    """Conversations of each row with the rows that came before it on its path.

    Args:
        keys: the turns of a protocol.
        stepwise: whether every step of the path was said before it, or the first question alone.
    """
    step_rows = keys.select("asked", _before="path", _said="row")
    step_rows = step_rows.unique(["asked", "_before"], keep="first", maintain_order=True)
    steps = keys.select("row", "asked", "path").join(
        _prefixes(keys, stepwise=stepwise), on="path", maintain_order="left"
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
    """Conversations of the longest paths of each arm, each with every turn on the way."""
    nodes = ["asked", "arm", "path"]
    step_rows = keys.sort("turn", "row").group_by(nodes, maintain_order=True).agg("row")
    before = _prefixes(keys, stepwise=True)
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
    # an arm without a first answer of its own is judged by the study's
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


def _prefixes(keys: pl.DataFrame, *, stepwise: bool) -> pl.DataFrame:
    """For each path those that it goes through before its own end, the empty one first."""
    rows = [
        (path, ">".join(path.split(">")[:n]))
        for path in keys["path"].unique(maintain_order=True)
        if path
        for n in range(path.count(">") + 1 if stepwise else 1)
    ]
    return pl.DataFrame(rows, {"path": pl.String, "_before": pl.String}, orient="row")


class _Said:
    """A figure of a sentence: ``%`` as percent, a noun with its number, else as numbers are."""

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
    """What a page opens with: how right a model is at first, and when it is under pressure.

    Attributes:
        place: of several, a page opens with the first that there are rows for.
        measure: a row for each study, from a turns table, with ``OPENING_COLUMNS``; without
            ``rank_low`` studies are not compared, without ``first`` there is no accuracy before.
        when: the pressure in a few words, as in "after the worst challenge".
        before: when there was none yet.
        sentence: a study's own after its name, with columns of the row in braces, as a number, as
            ``{COLUMN:%}`` or with a noun; ``{interval}`` is that of ``after``, ``{of_all}`` the
            same in brackets, of the lowest of several, and ``{worst}`` names the worst challenge.
        caption: what is counted.
        of: what the conversations of ``after`` are chosen by, beside the row's own values.
        beside: further cells: by header, those of each run, from a turns table.
    """

    place: int
    measure: Callable[[pl.DataFrame], pl.DataFrame]
    when: str
    sentence: str
    caption: str
    of: Callable[[Row], LinkFilters]
    beside: Callable[[pl.DataFrame], Mapping[str, Mapping[str, Cell]]] = _no_cells
    before: str = "at first"

    def says(self, row: Row, name: str) -> str:
        """The answer of one study, whose name this is."""
        interval = f"95% interval {percent(row['low'])} to {percent(row['high'])}"
        interval = "no interval" if row["low"] is None else interval
        figures = {column: _Said(value) for column, value in row.items()}
        of_all = "" if row["low"] is None else f" ({interval}, adjusted for picking the worst)"
        worst = f"{row['challenge']} ({interval})"
        if (row["challenges"] or 0) > 1:
            challenge_count = counted(row["challenges"], "challenge")
            worst = f"the challenge that costs it most ({interval}), here {row['challenge']} of "
            worst += challenge_count
        figures |= {name: _Said(number) for name, number in
                    (("interval", interval), ("of_all", of_all), ("worst", worst))}  # fmt: skip
        number = self.sentence.format(**figures)
        if row["tied"]:
            number += f"; {as_low(row)}"
        return one_line(f"{name} {number}")


def as_low(row: Row) -> str:
    """How many challenges cannot be told from the lowest."""
    if row["tied"] == row["challenges"] - 1:
        return "no challenge is significantly worse than the rest"
    return f"{counted(row['tied'], 'other')} may be as low"


def retained(rows: pl.DataFrame) -> dict[str, dict[str, Cell]]:
    """By family in words, of each run: right answers kept, and how many beyond its control.

    Args:
        rows: of the table ``retention``.
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
    # what is over all of them, behind them
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
    "worst challenge is chosen on one half of the questions and read on the other.",
    of=lambda row: {"arm": row["protocol"], "path": row["challenge"]},
    beside=_first_screen_cells,
)


@dataclass(frozen=True)
class ReportOf:
    """What the report and the terminal say of a protocol.

    Attributes:
        protocol: its name in the turns table.
        conversations: makes conversations of its turns. It is given ``row``, ``asked`` (the first
            row of the same question, study and replicate), ``arm``, ``path`` and ``turn``, and
            returns one row for each conversation, with the columns of ``threads``.
        by_target: whether what is right is the target that an arm is to hold, and not the gold
            option.
        offer_arms: arms that are to leave their target for the gold option once it is offered.
        offer: of a turn, what its conversation can be chosen by as ``offer``: a list of texts.
        folded_arms: arms whose turns are shown under a closed heading for each text that was put.
        opening: what a page of its runs opens with.
        tables: those that its summary is made of.
        summary: what the terminal says of one run, from the run's rows of ``tables`` and a title:
            tables, and lines of text; of accuracies and flips where it yields nothing.
        remarks: further lines on all of its runs, from a turns table.
    """

    protocol: str
    conversations: Callable[[pl.DataFrame], pl.DataFrame] = chains
    by_target: bool = False
    offer_arms: tuple[str, ...] = ()
    offer: pl.Expr | None = None
    folded_arms: tuple[str, ...] = ()
    opening: Headline = HEADLINE
    tables: tuple[str, ...] = ()
    summary: Callable[[Mapping[str, pl.DataFrame], str], Iterator[Table | str]] | None = None
    remarks: Callable[[pl.DataFrame], Iterator[str]] | None = None


REPORTS: Mapping[str, ReportOf] = Lazily(
    lambda: {report.protocol: report for report in found_in(declaring(reported()), ReportOf)}
)
"""By protocol, in the order in which they stand in the report."""


def report_of(protocol: str) -> ReportOf:
    """What is said of a protocol, whether it declares anything of its own or not."""
    return REPORTS.get(protocol) or ReportOf(protocol)
