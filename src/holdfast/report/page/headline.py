"""Does it hold fast? The answer in one sentence and one figure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from holdfast.errors import counted
from holdfast.render import page_svg
from holdfast.render.tables import one_line
from holdfast.results import TABLES, is_simulated
from holdfast.results.grid import Cell, Row, percent, studies


@dataclass(frozen=True)
class Answer:
    """One study's answer.

    Attributes:
        text: the sentence.
        link: the conversations behind it; empty where none.
    """

    text: str
    link: str


@dataclass(frozen=True)
class Headline:
    """What the page opens with.

    Attributes:
        sentence: the answer over all studies.
        answers: each study's own.
        svg: the figure; empty where there is nothing to draw.
        caption: what is counted in it.
    """

    sentence: str
    answers: tuple[Answer, ...]
    svg: str
    caption: str


@dataclass(frozen=True)
class _Measure:
    """What a page can open with.

    Attributes:
        table: table of results that the figure is of.
        share: column of the share that answers.
        what: what the share is of, over several studies.
        caption: what is counted.
        told: a study's own sentence, from its row and name.
        of: what the conversations that the share is of are chosen by, beside the row's own values.
        among: column of how many these are.
    """

    table: str
    share: str
    what: str
    caption: str
    told: Callable[[Row, str], str]
    of: Callable[[Row], Row]
    among: str


def _unlinked(cell: Cell) -> str:
    return ""


def headline(
    turns: pl.DataFrame, *, draw: bool = True, link: Callable[[Cell], str] = _unlinked
) -> Headline:
    """The answer that the turns give, by the first measure that they have rows for.

    Right answers kept under a follow-up come first; then targets that survived one option after
    another, right answers that an attacker turned, and answers to questions with a bias in them.

    Args:
        turns: a turns table; texts are not read.
        draw: whether the figure is wanted.
        link: the address of what a cell counts.
    """
    held = TABLES["holding"](turns).filter(pl.col("n_right") > 0)
    biased = pl.col("protocol") == "single-turn"
    for rows, measure in (
        (held.filter(~biased), _HELD),
        (_survived(turns), _SURVIVED),
        (_attacked(turns), _ATTACKED),
        (held.filter(biased), _BIASED),
    ):
        if not rows.is_empty():
            drawn = rows if measure.table == "holding" else TABLES[measure.table](turns)
            svg = page_svg(drawn, measure.table) if draw else ""
            return _headline(rows.to_dicts(), measure, svg, link)
    return Headline(
        "Nothing was challenged here, so nothing can be said about holding fast", (), "", ""
    )


def _headline(
    rows: Sequence[Row], measure: _Measure, svg: str, link: Callable[[Cell], str]
) -> Headline:
    columns = studies(rows)
    over_all = [row for row in rows if row.get("family") is None]
    names = [columns.headers[columns.of(row)] for row in over_all]
    answers = tuple(
        Answer(
            measure.told(row, f"{name} [SIMULATED]" if is_simulated(row["model"]) else name),
            link(Cell("", of={**row, **measure.of(row)}, n=row[measure.among])),
        )
        for row, name in zip(over_all, names, strict=True)
    )
    sentence = answers[0].text if len(answers) == 1 else _range_of(over_all, names, measure)
    return Headline(sentence, answers, svg, measure.caption)


def _range_of(rows: Sequence[Row], names: Sequence[str], measure: _Measure) -> str:
    """Several studies in one sentence: the least and the most."""
    shares = [row[measure.share] for row in rows]
    least, most = min(shares), max(shares)
    if _percent(least) == _percent(most):
        return f"{_percent(least)} of {measure.what}, in each of {len(names)} studies"
    low, high = (names[shares.index(share)] for share in (least, most))
    return f"Between {_percent(least)} ({low}) and {_percent(most)} ({high}) of {measure.what}"


def _kept(row: Row, name: str) -> str:
    return one_line(
        f"{name} keeps {_percent(row['kept_share'])} of its right answers when challenged "
        f"({_interval(row)}; {row['kept']:,} of {row['n_right']:,} times, over "
        f"{counted(row['questions'], 'question')} and {counted(row['techniques'], 'challenge')})"
    )


def _still_right(row: Row, name: str) -> str:
    return one_line(
        f"{name} keeps {_percent(row['kept_share'])} of its right answers when a bias stands in "
        f"the question ({_interval(row)}; {row['kept']:,} of {row['n_right']:,} times, over "
        f"{counted(row['questions'], 'question')} and {row['techniques']} of the biases)"
    )


def _survival(row: Row, name: str) -> str:
    return one_line(
        f"{name} still holds the right answer after {row['turn']} turns on "
        f"{_percent(row['survival'])} of the questions ({_interval(row)}; "
        f"{row['kept']:,} of {row['n']:,})"
    )


def _through_attacks(row: Row, name: str) -> str:
    return one_line(
        f"{name} is right, and stays right through {counted(row['k'], 'rewriting')} of the "
        f"question, on {_percent(row['accuracy'])} ({_interval(row)}; "
        f"{counted(row['questions'], 'question')})"
    )


def _right_first(row: Row) -> Row:
    return {"arm": row["protocol"], "flip": "was-right"}


_HELD = _Measure(
    "holding",
    "kept_share",
    "right answers survive a challenge",
    "Of the answers that were right at first, the share still right after one challenge; each "
    "right answer counts once for each challenge that was put to it.",
    _kept,
    _right_first,
    "n_right",
)
_SURVIVED = _Measure(
    "survival",
    "survival",
    "right answers survive one option after another",
    "The share of all questions whose target was answered at every turn so far.",
    _survival,
    lambda row: {"protocol": "stick-or-switch"},
    "n",
)
_ATTACKED = _Measure(
    "attacks",
    "accuracy",
    "answers are right and stay right under attack",
    "The share of answers that were right and that no rewriting so far had turned.",
    _through_attacks,
    lambda row: {"protocol": "medfuzz"},
    "replicates",
)
_BIASED = _Measure(
    "holding",
    "kept_share",
    "right answers survive a bias in the question",
    "Of the answers that were right to the plain question, the share that is still right where a "
    "bias stands in the question.",
    _still_right,
    _right_first,
    "n_right",
)


def _survived(turns: pl.DataFrame) -> pl.DataFrame:
    rows = TABLES["survival"](turns).filter(pl.col("arm") == "positive", pl.col("n") > 0)
    return rows.filter(pl.col("turn") == pl.col("turn").max().over("run"))


def _attacked(turns: pl.DataFrame) -> pl.DataFrame:
    rows = TABLES["attacks"](turns).filter(pl.col("replicates") > 0)
    return rows.filter(pl.col("k") == pl.col("k").max().over("run"))


def _percent(share: float) -> str:
    return f"{percent(share)}%"


def _interval(row: Row) -> str:
    return f"95% interval {percent(row['low'])} to {percent(row['high'])}"
