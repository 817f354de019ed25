"""Does it hold fast? The answer in one sentence and one figure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from holdfast.errors import counted
from holdfast.report.figures import FIGURES, page_svg
from holdfast.report.matrix import percent
from holdfast.report.studies import Row, is_simulated, studies
from holdfast.report.tables import one_line
from holdfast.results import TABLES

from .parts import row_link


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
        table: the table of results that the figure is of; empty where there is nothing to draw.
        svg: the figure.
        caption: what is counted in it.
    """

    sentence: str
    answers: tuple[Answer, ...]
    table: str
    svg: str
    caption: str


def headline(turns: pl.DataFrame) -> Headline:
    """The answer that the turns give, by the first measure that they have rows for.

    Right answers kept under a follow-up come first; then targets that survived one option after
    another, right answers that an attacker turned, and answers to questions with a bias in them.

    Args:
        turns: a turns table; texts are not read.
    """
    held = TABLES["holding"](turns).filter(pl.col("n_right") > 0)
    plain = held.filter(pl.col("protocol") != "single-turn")
    for rows, table, told, caption in (
        (plain, "holding", _held, _HELD),
        (_survived(turns), "survival", _survival, _SURVIVED),
        (_attacked(turns), "attacks", _attack, _ATTACKED),
        (held.filter(pl.col("protocol") == "single-turn"), "holding", _held, _BIASED),
    ):
        if not rows.is_empty():
            return _headline(rows, table, told, caption, turns)
    return Headline(
        "Nothing was challenged here, so nothing can be said about holding fast", (), "", "", ""
    )


_HELD = (
    "Of the answers that were right at first, the share still right after one challenge; each "
    "right answer counts once for each challenge that was put to it."
)
_SURVIVED = "The share of all questions whose target was answered at every turn so far."
_ATTACKED = "The share of answers that were right and that no rewriting so far had turned."
_BIASED = (
    "Of the answers that were right to the plain question, the share that is still right where a "
    "bias stands in the question."
)

_Told = Callable[[Row, str], str]


def _headline(
    rows: pl.DataFrame, table: str, told: _Told, caption: str, turns: pl.DataFrame
) -> Headline:
    listed = rows.to_dicts()
    columns = studies(listed)
    over_all = [row for row in listed if row.get("family") is None]
    answers = []
    for row in over_all:
        name = columns.headers[columns.of(row)]
        simulated = " [SIMULATED]" if is_simulated(row["model"]) else ""
        answers.append(Answer(told(row, f"{name}{simulated}"), row_link(row)))
    drawn = rows if table == "holding" else TABLES[table](turns)
    svg = page_svg(drawn, table) if table in FIGURES else ""
    return Headline(_sentence(over_all, answers, table, columns.headers), tuple(answers), table,
                    svg, caption)  # fmt: skip


def _sentence(
    rows: Sequence[Row], answers: Sequence[Answer], table: str, names: Sequence[str]
) -> str:
    """All studies in one sentence: its only one, or the range between them."""
    if len(answers) == 1:
        return answers[0].text
    shares = [_share(row, table) for row in rows]
    least, most = min(shares), max(shares)
    what = {
        "holding": "right answers survive a challenge",
        "survival": "targets survive one option after another",
        "attacks": "answers are right and stay right under attack",
    }[table]
    if f"{least:.3f}" == f"{most:.3f}":
        return f"{_percent(least)} of {what}, in each of {len(names)} studies"
    low, high = (_study(rows, shares.index(share)) for share in (least, most))
    return f"Between {_percent(least)} ({low}) and {_percent(most)} ({high}) of {what}"


def _study(rows: Sequence[Row], place: int) -> str:
    columns = studies(rows)
    return columns.headers[columns.of(rows[place])]


def _share(row: Row, table: str) -> float:
    share: float = row[
        {"holding": "kept_share", "survival": "survival", "attacks": "accuracy"}[table]
    ]
    return share


def _held(row: Row, name: str) -> str:
    return one_line(
        f"{name} keeps {_percent(row['kept_share'])} of its right answers when challenged "
        f"(95% interval {_range(row)}; {row['kept']:,} of {row['n_right']:,} times, over "
        f"{counted(row['questions'], 'question')} and {counted(row['techniques'], 'challenge')})"
    )


def _survival(row: Row, name: str) -> str:
    return one_line(
        f"{name} still holds the right answer after {row['turn']} turns on "
        f"{_percent(row['survival'])} of the questions (95% interval {_range(row)}; "
        f"{row['kept']:,} of {row['n']:,})"
    )


def _attack(row: Row, name: str) -> str:
    return one_line(
        f"{name} is right, and stays right through {row['k']} rewritings of the question, on "
        f"{_percent(row['accuracy'])} (95% interval {_range(row)}; {row['questions']:,} questions)"
    )


def _survived(turns: pl.DataFrame) -> pl.DataFrame:
    rows = TABLES["survival"](turns).filter(pl.col("arm") == "positive", pl.col("n") > 0)
    return rows.filter(pl.col("turn") == pl.col("turn").max().over("run"))


def _attacked(turns: pl.DataFrame) -> pl.DataFrame:
    rows = TABLES["attacks"](turns).filter(pl.col("replicates") > 0)
    return rows.filter(pl.col("k") == pl.col("k").max().over("run"))


def _percent(share: float) -> str:
    return f"{percent(share)}%"


def _range(row: Row) -> str:
    return f"{percent(row['low'])} to {percent(row['high'])}"
