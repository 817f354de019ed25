"""Explorer data: all conversations of a study, packed for the report page."""

import base64
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import polars as pl

from holdfast.render.reported import REPORTS
from holdfast.render.tables import one_line
from holdfast.results.arms import every
from holdfast.results.audit import units
from holdfast.results.first_answers import BASELINE, TURN
from holdfast.results.grid import short_names
from holdfast.results.readings import NO_LETTER
from holdfast.results.runs import is_imported, is_simulated
from holdfast.results.turns import SCHEMA, TEXTS

from .conversations import (
    FLEXIBILITY_LABELS,
    FLIPS,
    GIVEN_UP,
    GROUP_LABELS,
    GROUPS,
    LINK_KEYS,
    SHORT,
    by_target,
    offered,
    threads,
    with_flips,
    with_offers,
)

CHUNK_CONVERSATIONS = 300
"""Maximum number of conversations per chunk."""

CHUNK_BYTES = 4_000_000
"""Maximum bytes of text per chunk, unless one question has more."""

OF_TURN = (
    "protocol", "arm", "path", "turn", "technique", "family", "suggested", "target", "gold",
    "shown", "answers", "answer", "status", "rule", "correct", "cue", "stance", "characteristics",
    "words", "p_gold", "p_suggested", "p_answer",
)  # fmt: skip
"""Columns of a turn, apart from its texts."""

_OF_CONVERSATION = tuple(key for key in LINK_KEYS if key not in ("flip", "took", "offer"))

_MODEL_DIFFERS = pl.col("reader").is_not_null() & (
    pl.col("answer_rules").ne_missing(pl.col("answer_reader"))
)
_PEOPLE_DIFFER = pl.col("label").is_not_null() & (
    pl.when(~pl.col("label").is_in(NO_LETTER)).then("label").ne_missing(pl.col("answer"))
)
_READING_LABELS = {
    "cue": pl.when(pl.coalesce("cue_judged", "cue")).then(pl.lit("yes"))
    .when(pl.coalesce("cue_judged", "cue").is_not_null()).then(pl.lit("no")),
    "stance": pl.coalesce("stance_judged", "stance"),
    "rule": pl.col("rule"),
    "readers": pl.when(_MODEL_DIFFERS | _PEOPLE_DIFFER).then(pl.lit("differ"))
    .when(pl.any_horizontal(pl.col("reader", "label").is_not_null())).then(pl.lit("agree")),
}  # fmt: skip
"""Filters that exist only in the page: how the last turn was parsed."""

_LABELS = {
    "model": "Model", "flip": "Outcome", "path": "Challenge", "family": "Family",
    "protocol": "Protocol", "arm": "Arm", "system": "Organ system", "dataset": "Question set",
    "step": "Examination step", "specialty": "Specialty", "cue": "Names the challenge",
    "stance": "Stance on challenge", "rule": "Parsed by rule",
    "readers": "Rules, reader and labels",
}  # fmt: skip

_MORE = ("step", "specialty", *_READING_LABELS)


@dataclass(frozen=True)
class Filter:
    """Filter above the list.

    Attributes:
        key: one of ``LINK_KEYS``.
        label: label of the filter.
        choices: pairs of a value and its label.
    """

    key: str
    label: str
    choices: tuple[tuple[str, str], ...]

    @property
    def folded(self) -> bool:
        """Whether the filter is listed under "More filters"."""
        return self.key in _MORE


@dataclass(frozen=True)
class Explorer:
    """Packed conversations (see ``deflated``).

    Attributes:
        index: columns that the list shows and filters by.
        chunks: turns and texts, in chunks of up to some hundred conversations.
        conversation_count: number of packed conversations.
        total: number of conversations in the study.
        filters: filters above the list that have more than one choice.
        link_targets: ``LINK_KEYS`` of the packed conversations, as texts.
    """

    index: str
    chunks: tuple[str, ...]
    conversation_count: int
    total: int
    filters: tuple[Filter, ...]
    link_targets: pl.DataFrame = field(default_factory=pl.DataFrame, compare=False, repr=False)


def packed(turns: pl.DataFrame | pl.LazyFrame, limit: int = 20_000) -> Explorer:
    """Pack the conversations of a turns table for the report page.

    The unpacked index is an object with these keys:

    - ``columns``: by name, ``values`` and ``codes``; ``keys``: the columns to filter by;
    - ``starts``: first conversation of each chunk;
    - ``flips``, ``flexed`` and ``setWords``: labels of codes; ``sets``: groups of codes;
    - ``short``: short model names, in the order of their values;
    - ``simulated`` and ``imported``: whether each model or run is;
    - ``choices``: values of the filters, in order;
    - ``study``: key of the stored marks and comments;
    - ``whole``: whether the page has every conversation;
    - ``common``: lines at the beginning or end of nearly every question;
    - ``declared``: protocols and arms with another display than follow-ups.

    A chunk is an object with these keys:

    - ``texts``: the texts;
    - ``turns``: by column, ``OF_TURN``, ``prompt`` and ``reply`` as places in ``texts`` (null
      without text), ``row`` of the table, and ``unit``. For turns that an audit can draw,
      ``unit`` is the place of the first answer, or -1 without one;
    - ``conversations``: for each, the places of its turns, of the answer it is judged against
      (or null), and of the turn that names it.
    """
    lazy = turns.lazy()
    present = lazy.collect_schema().names()
    lazy = lazy.with_columns(
        pl.lit(None, SCHEMA[name]).alias(name) for name in _ABSENT if name not in present
    )
    # load only the needed columns, to save memory
    key_turns = lazy.select(
        sorted({*TURN, *_OF_CONVERSATION, *OF_TURN, *_ABSENT, *_UNITS})
    ).collect()
    key_turns = _with_units(key_turns)
    conversations = with_offers(
        with_flips(threads(key_turns.drop("row", "unit")), key_turns), key_turns
    )
    technique_names = (
        key_turns.select(pl.col(_OF_CONVERSATION).cast(pl.String), **_READING_LABELS)
        .with_columns(pl.all().fill_null(""))
        .with_row_index("end")
    )
    conversations = conversations.join(
        technique_names, on="end", how="left", validate="m:1", maintain_order="left"
    )
    selection = chosen(conversations, limit)
    starts, chunks = _chunks(lazy, key_turns, selection)
    keys = (*LINK_KEYS, *_READING_LABELS)
    columns = {
        name: coded(selection[name].fill_null("").to_list()) for name in (*keys, "before", "after")
    }
    filters = _filters(selection)
    runs = sorted(set(columns["run"]["values"]))
    index = {
        "study": hashlib.sha256(json.dumps(runs).encode()).hexdigest()[:16],
        "whole": selection.height == conversations.height,
        "common": _prefix(lazy),
        "keys": list(keys),
        "columns": columns,
        "starts": starts,
        "flips": dict(FLIPS),
        "flexed": dict(FLEXIBILITY_LABELS),
        "sets": {code: list(codes) for code, codes in GROUPS.items()},
        "setWords": dict(GROUP_LABELS),
        "short": list(short_names(columns["model"]["values"], 0).values()),
        "simulated": list(map(is_simulated, columns["model"]["values"])),
        "imported": list(map(is_imported, columns["run"]["values"])),
        "declared": _arm_declarations(),
        # the page refers to values by position, because markup would alter some characters
        "choices": {
            choice_filter.key: [value for value, _ in choice_filter.choices]
            for choice_filter in filters
        },
    }
    link_keys = selection.select(pl.col(LINK_KEYS).fill_null(""))
    return Explorer(
        deflated(index), chunks, selection.height, conversations.height, filters, link_keys
    )


def _arm_declarations() -> dict[str, list[str]]:
    return {
        "byTarget": by_target(),
        "offered": offered(),
        "helpers": sorted({arm for report in every().values() for arm in report.helpers}),
        "folded": [
            f"{name} {arm}"
            for name, arm_report in REPORTS.items()
            for arm in arm_report.folded_arms
        ],
    }


def _filters(selection: pl.DataFrame) -> tuple[Filter, ...]:
    filters = []
    for key, label in _LABELS.items():
        values = selection[key].unique(maintain_order=True).to_list()
        if key == "flip":
            codes = set(values)
            has_several = sum(code.startswith(f"{GIVEN_UP}-") for code in codes) > 1
            codes |= {GIVEN_UP} if has_several else set()
            choices = [(code, words) for code, words in SHORT.items() if code in codes]
        else:
            values_sorted = sorted(values, key=bool)  # the empty value first
            choices = [(value, one_line(value) or _NO_LABELS[key]) for value in values_sorted]
        if len(choices) > 1:
            filters.append(Filter(key, label, tuple(choices)))
    return tuple(filters)


_NO_LABELS = dict.fromkeys(_LABELS, "none") | {
    "path": "no challenge", "family": "no challenge", "system": "unknown",
    **dict.fromkeys(("step", "specialty", "cue", "stance"), "unknown"),
    "readers": "one reader",
}  # fmt: skip

_ABSENT = ("cue_judged", "stance_judged", "cue", "stance", "label", "label_first", "reader",
           "label_weight", "answer_rules", "answer_reader", "shown")  # fmt: skip
"""Columns that a turns table may lack."""

_UNITS = ("axis", "depth")


def _with_units(key_turns: pl.DataFrame) -> pl.DataFrame:
    """Add ``row`` and ``unit``. For turns an audit can draw: row of the first answer, or -1."""
    numbered_turns = key_turns.with_row_index("row")
    first_answers = key_turns.filter(pl.col("arm") == BASELINE, pl.col("status") != "error")
    # several first answers: the table mixes studies, and an audit cannot draw from it
    if first_answers.select(TURN).is_duplicated().any():
        return numbered_turns.with_columns(unit=pl.lit(None, pl.Int64))
    unit_rows = units(key_turns).select(
        "row", unit=pl.col("first_row").cast(pl.Int64).fill_null(-1)
    )
    return numbered_turns.join(unit_rows, on="row", how="left", maintain_order="left")


def _prefix(lazy: pl.LazyFrame) -> list[str]:
    """Return instruction lines: lines that at least half of a protocol's plain questions have."""
    if "prompt" not in lazy.collect_schema().names():
        return []
    plain = lazy.filter(pl.col("turn") == 0, pl.col("path").fill_null("") == "")
    prompts = plain.select("protocol", "dataset", "question", "prompt").drop_nulls("prompt")
    prompts = prompts.unique(["protocol", "dataset", "question"], keep="first", maintain_order=True)
    prompts = prompts.with_columns(_of=pl.len().over("protocol"))
    lines = prompts.with_columns(line=pl.col("prompt").str.split("\n")).explode("line")
    lines = lines.with_columns(pl.col("line").str.strip_chars(" \t\r"))
    lines = lines.filter(pl.col("line") != "").unique(["protocol", "dataset", "question", "line"])
    often = lines.group_by("protocol", "line").agg(n=pl.len(), of=pl.col("_of").first())
    often = often.filter(pl.col("n") > 1, 2 * pl.col("n") >= pl.col("of"))
    return often.collect()["line"].unique().sort().to_list()


def _chunks(
    lazy: pl.LazyFrame, key_turns: pl.DataFrame, selection: pl.DataFrame
) -> tuple[list[int], tuple[str, ...]]:
    """Return the first conversation of each chunk, and the chunks."""
    rows = selection.select(pl.col("rows").list.explode().unique().sort().alias("row"))
    texts = _texts(lazy, rows)
    size = pl.sum_horizontal(pl.col(name).str.len_bytes().fill_null(0) for name in TEXTS)
    sizes = dict(texts.select("row", size).iter_rows())
    question_numbers, row_lists = selection["asked"].to_list(), selection["rows"].to_list()
    bounds = _bounds(
        question_numbers,
        [sum(sizes[row] for row in rows_of_conversation) for rows_of_conversation in row_lists],
    )
    first_rows, end_rows = selection["first"].to_list(), selection["end"].to_list()
    chunks = []
    for start, end in pairwise(bounds):
        rows_of_conversation = pl.DataFrame(
            {"row": sorted(set().union(*row_lists[start:end]))}, schema=rows.schema
        )
        texts_of = texts.join(rows_of_conversation, on="row", how="semi", maintain_order="left")
        of = slice(start, end)
        chunks.append(
            _chunk(
                key_turns[rows_of_conversation["row"]],
                texts_of,
                row_lists[of],
                first_rows[of],
                end_rows[of],
            )
        )
    return bounds[:-1], tuple(chunks)


def _texts(lazy: pl.LazyFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return prompts and replies of these rows. Null means that the table has no text."""
    present = lazy.collect_schema().names()
    texts = lazy.select(
        pl.col(name) if name in present else pl.lit(None, pl.String).alias(name) for name in TEXTS
    )
    if len(present) == 0 or not set(TEXTS) & set(present):
        return rows.with_columns(pl.lit(None, pl.String).alias(name) for name in TEXTS)
    return (
        texts.with_row_index("row")
        .join(rows.lazy(), on="row", how="semi", maintain_order="left")
        .collect()
    )


def _bounds(question_numbers: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the bounds of the chunks. Conversations of one question stay together."""
    bounds = [0]
    offsets = list(accumulate(sizes, initial=0))
    for place in range(1, len(question_numbers)):
        start = bounds[-1]
        full = (
            place - start >= CHUNK_CONVERSATIONS or offsets[place] - offsets[start] >= CHUNK_BYTES
        )
        if full and question_numbers[place] != question_numbers[place - 1]:
            bounds.append(place)
    return [*bounds, len(question_numbers)] if question_numbers else [0]


def _chunk(
    key_turns: pl.DataFrame,
    texts: pl.DataFrame,
    row_lists: Sequence[Sequence[int]],
    first_rows: Sequence[int | None],
    end_rows: Sequence[int],
) -> str:
    place = {row: number for number, row in enumerate(texts["row"].to_list())}
    turns: dict[str, list[Any]] = {name: key_turns[name].to_list() for name in OF_TURN}
    numbers: dict[str, int] = {}
    places = [
        [None if text is None else numbers.setdefault(text, len(numbers)) for text in text_row]
        for text_row in texts.select(TEXTS).iter_rows()
    ]
    turns |= {name: [text_row[at] for text_row in places] for at, name in enumerate(TEXTS)}
    turns["row"] = key_turns["row"].to_list()
    turns["unit"] = [
        None if at is None else place.get(at, -1) for at in key_turns["unit"].to_list()
    ]
    conversations = [
        [
            [place[row] for row in rows_of_conversation],
            None if first is None else place[first],
            place[end],
        ]
        for rows_of_conversation, first, end in zip(row_lists, first_rows, end_rows, strict=True)
    ]
    return deflated({"texts": list(numbers), "turns": turns, "conversations": conversations})


TURNED_GROUPS = ("given-up-pushed", "given-up-other", "given-up-unread", "corrected")
"""Outcomes that are selected before any other."""

TURNS_EACH = 10
"""Average number of turns allowed per conversation. A test of an attack has hundreds."""

_STRATUM = ("model", "dataset", "protocol", "technique")


def chosen(conversations: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Select at most ``limit`` conversations, in their order.

    Changed answers have priority. The rest has equal numbers for every model and technique, on
    the same questions, selected by a digest of the question id. The selection stops early if it
    would exceed ``TURNS_EACH`` times ``limit`` turns.
    """
    turns = pl.col("rows").list.len().cast(pl.Int64)
    if (
        conversations.height <= limit
        and (conversations.select(turns.sum()).item() or 0) <= TURNS_EACH * limit
    ):
        return conversations
    questions = conversations["question"].unique(maintain_order=True)
    digests = [hashlib.sha256(id.encode()).hexdigest() for id in questions]
    order = pl.DataFrame({"question": questions, "_drawn": digests})
    ranked_conversations = conversations.with_row_index("_place").join(
        order, on="question", how="left", validate="m:1", maintain_order="left"
    )
    ranked_conversations = ranked_conversations.with_columns(
        (~pl.col("flip").is_in(TURNED_GROUPS)).alias("_later")
    ).sort("_later", "_drawn", "epoch", "_place")
    ranked_conversations = ranked_conversations.with_columns(
        pl.int_range(pl.len()).over("_later", *_STRATUM).alias("_rank")
    ).sort("_later", "_rank", maintain_order=True)
    fits = (turns.cum_sum() <= TURNS_EACH * limit) & (pl.int_range(pl.len()) < limit)
    selection = ranked_conversations.filter(fits).sort("_place")
    return selection.select(conversations.columns)


_RAW = -15
"""Window bits for raw deflate without a header, as in ``deflate-raw`` of browsers."""


def deflated(value: Any) -> str:
    """Return a value as JSON, compressed and in base64, which is safe inside markup."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, _RAW)
    # UTF-8 cannot encode a lone surrogate, so it becomes a JSON escape
    data = packer.compress(text.encode("utf-8", "backslashreplace")) + packer.flush()
    return base64.b64encode(data).decode("ascii")


def coded(values: Sequence[str]) -> dict[str, list[Any]]:
    """Return texts as distinct ``values`` in order of appearance and ``codes`` (positions)."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"values": list(numbers), "codes": codes}
