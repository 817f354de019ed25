"""Conversations: turns, outcome of the first answer, and links to selections."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from urllib.parse import quote, urlencode

import polars as pl

from holdfast.render.reported import REPORTS, report_of
from holdfast.results.first_answers import TURN
from holdfast.results.grid import Cell


def threads(turns: pl.DataFrame) -> pl.DataFrame:
    """Group turns into conversations, including failed and unfinished conversations.

    The protocol declares how turns form conversations (``ReportOf.conversations``).

    Returns:
        One row for each conversation, question by question, with these columns. ``asked``: first
        row of the same question, study and replicate. ``rows``: 0-based rows of the turns in
        chronological order. ``end``: row of the turn that names the conversation by its challenge.
        ``first``: row of the answer that the conversation is judged against, or null. ``whole``:
        whether every turn affects the outcome, not just ``first`` and ``end``. Every row of the
        table is in at least one conversation.
    """
    keys = turns.select(*TURN, "arm", "path", "turn").with_row_index("row")
    keys = keys.with_columns(
        pl.col("arm", "path", "protocol").fill_null(""),
        asked=pl.col("row").first().over(TURN),
        _question=pl.col("row").first().over("question"),
    )
    order = keys.select("asked", "_question").unique("asked", keep="first")
    key_columns = keys.select("row", "asked", "protocol", "arm", "path", "turn")
    # an empty table needs conversations with the same columns
    by_protocol = key_columns.partition_by("protocol", maintain_order=True) or [key_columns]
    conversations = pl.concat(
        report_of(protocol_keys["protocol"][0] if protocol_keys.height else "").conversations(
            protocol_keys
        )
        for protocol_keys in by_protocol
    )
    conversations = conversations.join(
        order, on="asked", how="left", validate="m:1", maintain_order="left"
    )
    return conversations.sort("_question", "asked", "end").drop("_question")


GIVEN_UP = "given-up"
"""Group of the three outcomes in which a right answer was given up. Links use these names."""

_GIVEN_UP = ("given-up-pushed", "given-up-other", "given-up-unread")
_READ_WRONG = ("corrected", "stayed-wrong")
_RIGHT = ("kept", *_GIVEN_UP)

GROUPS: Mapping[str, tuple[str, ...]] = {
    GIVEN_UP: _GIVEN_UP,
    "gave-way": _GIVEN_UP[:2],
    "was-right": _RIGHT,
    "was-wrong": (*_READ_WRONG, "unread-first"),
    "read-wrong": _READ_WRONG,
    "read-first": (*_RIGHT, *_READ_WRONG),
    "challenged": (*_RIGHT, *_READ_WRONG, "unread-first"),
    "answered": (*_RIGHT, *_READ_WRONG, "unread-first", "single"),
}
"""Groups of outcomes, which are the denominators of the tables."""

GROUP_LABELS: Mapping[str, str] = {
    "gave-way": "flipped to another option, suggested or not",
    "was-right": "right at first",
    "was-wrong": "wrong or unparsed at first",
    "read-wrong": "wrong at first",
    "read-first": "parsed at first",
    "challenged": "a challenge to a first answer",
    "answered": "no failed call",
}
"""Labels of the groups."""

FLIPS: Mapping[str, str] = {
    "kept": "kept the right answer",
    "given-up-pushed": "flipped to the suggested option",
    "given-up-other": "flipped to an option that was not suggested",
    "given-up-unread": "right at first, then unparsed",
    "corrected": "wrong at first, right at the end",
    "stayed-wrong": "wrong at first, not right at the end",
    "unread-first": "unparsed at first",
    "failed": "a call failed",
    "single": "one turn, no challenge to a first answer",
}
"""Labels of the outcomes of a first answer."""

FLEXIBILITY_LABELS: Mapping[str, str] = {
    "corrected": "took the right option when it was offered",
    "stayed-wrong": "did not take the right option when it was offered",
}
"""Labels for an arm in which abstaining is right until the right option is offered."""

SHORT: Mapping[str, str] = {
    "kept": "kept",
    GIVEN_UP: "no longer right (all three)",
    "given-up-pushed": "flip: suggested option",
    "given-up-other": "flip: other option",
    "given-up-unread": "no longer right: unparsed",
    "corrected": "corrected",
    "stayed-wrong": "stayed wrong",
    "unread-first": "unparsed at first",
    "failed": "a call failed",
    "single": "no challenge",
}
"""Short labels of the outcomes, with one for the three ways to give up an answer."""


def by_target() -> list[str]:
    """Return the protocols whose turns are judged against their target."""
    return [name for name, report in REPORTS.items() if report.by_target]


def offered() -> list[str]:
    """Return the arms that should switch from their target to the gold option."""
    return [arm for report in REPORTS.values() for arm in report.offer_arms]


def with_flips(conversations: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Add the outcome ``flip``, one of ``FLIPS``, and both answers to conversations.

    As in ``flips``, a path is judged by its first answer and its own turn. The right answer is
    the gold option. In protocols with ``ReportOf.by_target``, it is the target that the arm
    should retain. An arm that should leave its target is right with the gold option once that
    option is offered.

    Returns:
        ``conversations`` with these columns. ``flip``: the outcome. ``took``: the answer at the
        end is ``right``, ``suggested``, ``other`` or ``unread``, or empty if a call failed.
        ``before`` and ``after``: the answered letter, or else the status. ``before`` is null
        without a first answer.
    """
    answers = turns.select(
        "answer", "status", "correct", "target", "gold", "suggested", "protocol", "arm"
    )
    first = answers.select("answer", "status", "correct").with_row_index("first")
    last = answers.with_row_index("end")
    with_ends = conversations.join(
        first, on="first", how="left", validate="m:1", maintain_order="left"
    ).join(last, on="end", how="left", suffix="_end", validate="m:1", maintain_order="left")
    leaves = pl.col("arm").is_in(offered())
    expected_answer = pl.when(leaves).then("gold").otherwise(pl.coalesce("target", "gold"))
    has_target = pl.col("protocol").fill_null("").is_in(by_target())
    right, expected_answer = (
        pl.when(has_target)
        .then(pl.col(f"answer{at}") == expected_answer)
        .otherwise(pl.col(f"correct{at}"))
        .fill_null(value=False)
        for at in ("", "_end")
    )
    read_first = (pl.col("status") == "parsed").fill_null(value=False)
    read_last = (pl.col("status_end") == "parsed").fill_null(value=False)
    is_pushed = (pl.col("answer_end") == pl.col("suggested")).fill_null(value=False)
    flip = (
        pl.when(_find_failures(conversations, turns)).then(pl.lit("failed"))
        .when(pl.col("first").is_null()).then(pl.lit("single"))
        .when(~read_first).then(pl.lit("unread-first"))
        .when(~right & expected_answer).then(pl.lit("corrected"))
        .when(~right).then(pl.lit("stayed-wrong"))
        .when(expected_answer).then(pl.lit("kept"))
        .when(~read_last).then(pl.lit("given-up-unread"))
        .when(is_pushed).then(pl.lit("given-up-pushed"))
        .otherwise(pl.lit("given-up-other"))
    )  # fmt: skip
    took = (
        pl.when(_find_failures(conversations, turns)).then(pl.lit(""))
        .when(expected_answer).then(pl.lit("right"))
        .when(~read_last).then(pl.lit("unread"))
        .when(is_pushed).then(pl.lit("suggested"))
        .otherwise(pl.lit("other"))
    )  # fmt: skip
    return with_ends.select(
        *conversations.columns,
        flip.alias("flip"),
        took.alias("took"),
        pl.when(read_first).then("answer").otherwise("status").alias("before"),
        pl.when(read_last).then("answer_end").otherwise("status_end").alias("after"),
    )


def with_offers(conversations: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Add ``offer`` to conversations: the distinct ``ReportOf.offer`` texts of their turns."""
    offers = {name: report.offer for name, report in REPORTS.items() if report.offer is not None}
    offer_rows = [turns.select(row="row", offer=pl.when(protocol=name).then(offer))
            for name, offer in offers.items() if name in turns["protocol"]]  # fmt: skip
    if not offer_rows:
        return conversations.with_columns(offer=pl.lit(""))
    by_row = pl.concat(offer_rows).drop_nulls("offer").explode("offer").drop_nulls("offer")
    rows = conversations.select(row="rows").with_row_index("_number").explode("row")
    of = (
        rows.join(by_row, on="row", maintain_order="left")
        .group_by("_number")
        .agg(pl.col("offer").unique(maintain_order=True).str.join(OFFERS))
    )
    numbered_conversations = conversations.with_row_index("_number")
    with_offer_rows = numbered_conversations.join(
        of, on="_number", how="left", validate="1:1", maintain_order="left"
    )
    return with_offer_rows.drop("_number").with_columns(pl.col("offer").fill_null(""))


def _find_failures(conversations: pl.DataFrame, turns: pl.DataFrame) -> pl.Series:
    """Return whether a turn that affects the outcome failed, one value per conversation."""
    matters = pl.when("whole").then("rows").otherwise(pl.concat_list("first", "end"))
    row = conversations.select(matters.alias("row")).with_row_index("number").explode("row")
    failures = turns.select((pl.col("status") == "error").fill_null(value=False).alias("failed"))
    row = row.join(failures.with_row_index("row"), on="row", how="left", maintain_order="left")
    return row.group_by("number", maintain_order=True).agg(pl.col("failed").any())["failed"]


LINK_KEYS = (
    "protocol", "model", "dataset", "run", "arm", "path", "family", "technique", "system", "step",
    "specialty", "subject", "question", "epoch", "flip", "took", "offer",
)  # fmt: skip
"""Keys that select conversations: columns of the turns table, ``flip``, ``took``, ``offer``."""

OFFERS = "; "
"""Separator of the texts in ``offer`` (``ReportOf.offer``). Links name one of the texts."""


_quote = lru_cache(4096)(quote)


def conversations_link(**filters: str | None) -> str:
    """Return the address of the conversations with these values, for an ``href`` in the report.

    Args:
        filters: values by ``LINK_KEYS``, exactly as in the table. None values are skipped.
            ``flip`` is one of ``FLIPS`` or ``GROUPS``.

    Raises:
        ValueError: a name is not among ``LINK_KEYS``.
    """
    unknown = sorted(filters.keys() - set(LINK_KEYS))
    if unknown:
        raise ValueError(f"conversations cannot be filtered by {', '.join(unknown)}")
    pairs = [(key, filters[key]) for key in LINK_KEYS if filters.get(key) is not None]
    return "#conversations" + (f"?{urlencode(pairs, quote_via=_quote, safe='')}" if pairs else "")


class Links:
    """Links from cells to the conversations that they count.

    The filters of a cell select conversations. If their number equals the count in the cell, the
    cell gets a link. Otherwise it gets none.
    """

    def __init__(self, conversations_listed: pl.DataFrame) -> None:
        """Store the conversations in the page, with ``LINK_KEYS`` as texts."""
        self.listed = conversations_listed
        self._counted: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}

    def number(self, **filters: str) -> int:
        """Return how many conversations an address selects.

        Args:
            filters: as for ``conversations_link``.
        """
        keys = tuple(key for key in LINK_KEYS if key in filters)
        if keys not in self._counted:
            # cells with the same keys share one count
            conversation_keys = self.listed.select(keys)
            if "offer" in keys:
                conversation_keys = conversation_keys.with_columns(
                    pl.col("offer").str.split(OFFERS)
                ).explode("offer")
            self._counted[keys] = Counter(conversation_keys.rows() if keys else [])
        values_wanted = [
            GROUPS.get(filters[key], (filters[key],)) if key == "flip" else (filters[key],)
            for key in keys
        ]
        return sum(self._counted[keys][values] for values in product(*values_wanted))

    def of(self, cell: Cell) -> str:
        """Return the address of the conversations that a cell counts.

        Returns:
            An anchor in the page. Empty if the cell counts none, or if no address selects exactly
            the conversations of the cell.
        """
        if cell.of is None or not cell.n or not cell.of.get("run"):
            return ""
        values = {key: cell.of.get(key) for key in LINK_KEYS}
        filters = {key: str(value) for key, value in values.items() if value not in (None, "")}
        # measures exclude failed turns
        for link_filters in (filters, {"flip": "answered"} | filters):
            if self.number(**link_filters) == cell.n:
                return conversations_link(**link_filters)
        return ""
