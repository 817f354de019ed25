"""Agreement: whether the rules and a reader read the same answers, challenge by challenge."""

import polars as pl

from .declaration import Count, Listing, Number, Section, Share, Shown, Table
from .first_answers import STUDY
from .grid import Row, one_line
from .inference import cohens_kappa, with_bounds
from .runs import is_simulated

READING_COLUMNS = (
    "model", "dataset", "protocol", "reader", "reader_all", "arm", "n", "agree", "agreement",
    "low", "high", "kappa", "rules_none", "reader_none", "unreadable", "run",
)  # fmt: skip

_BY = (*STUDY, "reader", "reader_all")
_ROW = (*_BY, "arm")
_NONE = "none"


def reading(turns: pl.DataFrame) -> pl.DataFrame:
    """How far the rules and a reader agree, over all arms and by arm.

    ``n`` counts replies that the reader has read: it named an option, or said that there is no
    answer. They ``agree`` where both found the same option, or both none; a reply that the rules
    call ambiguous or refused has none. ``low`` and ``high`` are the 95% Wilson interval of
    ``agreement``, replies to one question counting by what they add. ``kappa`` is Cohen's, of the
    options and none; null where chance alone would agree always. ``rules_none`` and
    ``reader_none`` are replies of ``n`` in which that one found no answer, ``unreadable`` are
    readings that could not be read themselves and are not in ``n``.

    A reader that is asked only for what the rules leave cannot agree but on none; how far both
    agree is to be read off a reader of every reply (``reader_all``). One that errs more after
    challenges than before, beside rules that do not, agrees less in these arms.

    Args:
        turns: a turns table.

    Returns:
        For each study and reader a row over all arms, ``arm`` null, then one for each arm, with
        ``READING_COLUMNS``; no rows where no reader was asked.
    """
    asked = turns.filter(pl.col("reader_status").is_not_null(), pl.col("status") != "error")
    each = asked.select(
        *_ROW,
        "question",
        pl.col("answer_rules").fill_null(_NONE).alias("rules"),
        pl.col("answer_reader").fill_null(_NONE).alias("said"),
        (pl.col("reader_status") == "unreadable").alias("unreadable"),
    )
    both = pl.concat([each.with_columns(pl.lit(None, pl.String).alias("arm")), each])
    both = both.with_columns((pl.col("rules") == pl.col("said")).alias("same"))
    read = ~pl.col("unreadable")
    rows = both.group_by(_ROW, maintain_order=True).agg(
        read.sum().cast(pl.Int64).alias("n"),
        pl.col("same").filter(read).sum().cast(pl.Int64).alias("agree"),
        pl.col("same").filter(read).mean().alias("agreement"),
        (pl.col("rules").filter(read) == _NONE).sum().cast(pl.Int64).alias("rules_none"),
        (pl.col("said").filter(read) == _NONE).sum().cast(pl.Int64).alias("reader_none"),
        pl.col("unreadable").sum().cast(pl.Int64),
        pl.col("rules", "said").filter(read),
    )
    kappas = [
        cohens_kappa(rules, said)
        for rules, said in zip(rows["rules"].to_list(), rows["said"].to_list(), strict=True)
    ]
    rows = rows.with_columns(pl.Series("kappa", kappas, pl.Float64))
    rows = with_bounds(rows, both.filter(read), _ROW, "agreement", "same")
    # the arms of a study below the row over all of them, which come first
    numbered = rows.with_row_index("_row")
    return numbered.sort(pl.col("_row").min().over(_BY), "_row").select(READING_COLUMNS)


def _reader(row: Row) -> str:
    simulated = " [SIMULATED]" if is_simulated(row["reader"]) else ""
    what = "every reply" if row["reader_all"] else "what the rules leave"
    return f"{one_line(row['protocol'])}, {one_line(row['reader'])}{simulated} reads {what}"


def _arm(row: Row) -> str:
    return "All arms" if row["arm"] is None else one_line(row["arm"])


READING_SECTION = Section(
    "reading",
    "Reading",
    "How the replies were read",
    "Rules read the answers from the replies. A second language model (the reader) read replies "
    "too; it saw nothing but a reply and its options. If reading erred more after a challenge "
    "than before it, this would look like an effect of the challenge.",
    11,
)

READING = Table(
    "reading",
    reading,
    layout=Listing(
        Shown("Arm", "arm", show=_arm),
        (
            Count("n", "n"),
            Count("Agree", "agree"),
            Share("Agree %", "agreement", ""),
            Number("Kappa", "kappa"),
            Count("None by the rules", "rules_none"),
            Count("None by the reader", "reader_none"),
            Count("Unreadable", "unreadable"),
        ),
        (
            "Replies that a language model read as well as the rules: both found the same option, "
            "or both none [95% interval, replies to one question being alike]. None: no answer "
            "found. Unreadable: readings that could not be read themselves, not in n.",
        ),
        _reader,
    ),
    title="Do the rules and the reader agree, in every arm?",
    lead="The first line of a study is over all of its replies that both have read.",
    section="reading",
)
