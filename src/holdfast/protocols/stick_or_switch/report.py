"""Presentation of Stick-or-Switch in the report and the terminal."""

from collections.abc import Iterator, Mapping

import polars as pl
from rich.table import Table

from holdfast.errors import counted
from holdfast.render.reported import NO_ROW, Headline, ReportOf, Together
from holdfast.render.terminal import summary
from holdfast.results.declaration import Share
from holdfast.results.first_answers import STUDY
from holdfast.results.grid import Cell, Row, percent
from holdfast.results.inference import looked_up, with_bounds
from holdfast.results.runs import system_of
from holdfast.results.worst import rank_bounds

from .convictions import (
    ABSTENTION,
    CONTROL,
    CONVICTION,
    CONVICTIONS,
    FLEXIBLE,
    OFFER,
    PROTOCOL,
    SINGLE_SHOT,
    SINGLE_SHOT_ABSTAIN,
    TURNS,
    conviction_turns,
    single_shots,
    survival,
    tax,
)
from .flexibility import BLIND, NOT_BLIND, UNDETERMINED_VERDICT

_ARMS = {
    "positive": ("right answer kept", CONVICTION, SINGLE_SHOT),
    "negative": ("abstention held", ABSTENTION, SINGLE_SHOT_ABSTAIN),
}
"""Label of each arm, its behaviour, and the baseline of the behaviour."""


def _summary(tables: Mapping[str, pl.DataFrame], title: str) -> Iterator[Table | str]:
    """Summarise targets retained by turn, single shots, and the conversation tax."""
    survival, tax = tables["survival"], tables["tax"]
    if survival.is_empty():
        return
    turns = sorted(set(survival["turn"]))
    turns_shown = turns if len(turns) <= _MOST_TURNS else [*turns[: _MOST_TURNS - 1], turns[-1]]
    against = {(row["behaviour"], row["against"]): row for row in tax.iter_rows(named=True)}
    net = any(baseline == CONTROL for _, baseline in against)

    def cells(arm: str, rows: pl.DataFrame) -> Iterator[str]:
        by_turn = {row["turn"]: percent(row["survival"]) for row in rows.iter_rows(named=True)}
        name, behaviour, baseline = _ARMS[arm]
        single = against.get((behaviour, baseline))
        yield from (name, str(rows["n"].max()))
        yield percent(single["single_shot"]) if single else "n/a"
        # an arm with fewer turns than another keeps its last value
        yield from (by_turn.get(turn, by_turn[max(by_turn)]) for turn in turns_shown)
        yield _tax(against.get((behaviour, CONTROL)) if net else single, rows["n"].max())
        yield str(rows["lost_unread"].sum())

    yield summary(
        title,
        (
            (
                "",
                "In percent of the questions. Turn t: the target was answered at every turn up to "
                "t.",
            ),
            (
                _NET if net else "Tax",
                "Net tax: the last turn less as many turns without an offer, in points [95% "
                "interval, paired by question]. A negative value is a cost of the offers."
                if net
                else "Tax: the last turn less turn 1, in points [95% interval, paired by "
                "question].",
            ),
            ("Unread", "Unread: unparsed replies, which have no answer."),
        ),
        ("n", "At once %", *(f"Turn {t} %" for t in turns_shown), _NET if net else "Tax", "Unread"),
        (cells(arm, rows) for (arm,), rows in survival.group_by("arm", maintain_order=True)),
        label=("Target", 20),
    )
    yield from map(_flexibility, tables["flexibility"].iter_rows(named=True))


_NET = "Net tax"

_MOST_TURNS = 3
"""Maximum number of turns in a summary: of more, the first ones and the last."""


def _tax(row: Row | None, n: object = None) -> str:
    """Format a tax with its interval, and its number of questions if it differs from ``n``."""
    if row is None:
        return "n/a"
    tax, low, high = (percent(row[name], with_sign=True) for name in ("tax", "low", "high"))
    return f"{tax} [{low}, {high}]" + (f" (n = {row['n']})" if row["n"] != n else "")


def _flexibility(row: Row) -> str:
    """Describe the outcomes of abstentions after right and wrong offers."""
    study = f"{system_of(row)} on {row['dataset']}"
    sentence = "; ".join(
        f"{row[f'{side}_switches']} of {counted(row[f'n_{side}'], 'abstention')} switched to "
        f"{phrase}"
        f" ({percent(row[f'{side}_rate'])}%)"
        for side, phrase in (("correct", "the right answer"), ("incorrect", "a wrong option"))
        if row[f"n_{side}"]
    )
    if row["switching"] is None:
        return f"{study}: {sentence or 'no abstention at turn 1'}"
    return (
        f"{study}: {sentence}: {_SWITCHING[row['switching']]}, "
        f"d' {row['d_prime']:.2f} [{row['d_prime_low']:.2f}, {row['d_prime_high']:.2f}]"
    )


def _compare_first_and_last(turns: pl.DataFrame) -> pl.DataFrame:
    """Compare single shots with the end of the conversation, if the right answer is the target."""
    rows = survival(turns).filter(pl.col("arm") == CONVICTIONS[0], pl.col("n") > 0)
    last = rows.filter(pl.col("turn") == pl.col("turn").max().over("run"))
    single = single_shots(turns)
    at_once = single.group_by("run", maintain_order=True).agg(first=pl.col("single").mean())
    at_once = with_bounds(at_once, single, ["run"], "first", "single", "first_")
    to_the_end = conviction_turns(turns).filter(arm=CONVICTIONS[0], turn=0).select(
        *STUDY, "question", path=pl.lit(""), correct=pl.col("lost_at").is_null()
    )  # fmt: skip
    alone = to_the_end.select(*STUDY, challenge="path").unique()
    places = rank_bounds(to_the_end, alone).drop("tied", "model", "dataset", "protocol")
    return looked_up(looked_up(last, at_once, ["run"]), places, ["run"]).select(
        "model", "dataset", "n", "first", "first_low", "first_high", "low", "high", "run",
        "rank_low", "rank_high", "ranked",
        protocol=pl.lit(PROTOCOL),
        challenge=pl.lit("the last offer"),
        asked="n",
        after="survival",
    )  # fmt: skip


def _net_tax(turns: pl.DataFrame) -> dict[str, dict[str, Cell]]:
    rows = tax(turns).filter(behaviour=CONVICTION, against=CONTROL).to_dicts()
    cells = {row["run"]: Cell(Share("", "tax", "", signed=True).text(row)) for row in rows}
    return {"Tax net of its control, points": cells} if cells else {}


_SWITCHING = {
    BLIND: "blind switching",
    NOT_BLIND: "not blind",
    UNDETERMINED_VERDICT: "blindness undetermined",
}
"""Description of the verdict on switches in the summary."""


STICK_OR_SWITCH = ReportOf(
    PROTOCOL,
    Together(
        first=pl.when(pl.len() > 1).then(pl.col("row").first()).otherwise(NO_ROW),
        end=pl.col("row").last(),
        by=("arm",),
        after=TURNS.continues,
    ),
    by_target=True,
    offer_arms=(FLEXIBLE,),
    offer=OFFER,
    opening=Headline(
        place=1,
        before="with all options shown at once",
        measure=_compare_first_and_last,
        when="with options shown one after another",
        sentence="still gives the right answer after {challenge} on {after:%} of the questions "
        "({interval}; {asked:question})",
        caption="Share of questions answered right with all options shown at once, and at "
        "every turn with options shown one after another.",
        of=lambda row: {"arm": CONVICTIONS[0]},
        beside=_net_tax,
    ),
    main="survival",
    tables=("survival", "tax", "flexibility"),
    summary=_summary,
)
