"""What the report and the terminal say of Stick-or-Switch."""

from collections.abc import Iterator, Mapping

import polars as pl
from rich.table import Table

from holdfast.errors import counted
from holdfast.render.reported import NO_ROW, Opening, ReportOf, Together
from holdfast.render.terminal import summary
from holdfast.results.declaration import Share
from holdfast.results.grid import Cell, Row, percent
from holdfast.results.inference import looked_up

from .convictions import (
    ABSTENTION,
    CONTROL,
    CONVICTION,
    CONVICTIONS,
    FLEXIBLE,
    PROTOCOL,
    SINGLE_SHOT,
    SINGLE_SHOT_ABSTAIN,
    TURNS,
    survival,
    tax,
)

_ARMS = {
    "positive": ("right answer held", (CONVICTION, SINGLE_SHOT)),
    "negative": ("abstention held", (ABSTENTION, SINGLE_SHOT_ABSTAIN)),
}
"""What each arm holds; the behaviour that this is, and what the behaviour is held against."""


def _summary(own: Mapping[str, pl.DataFrame], title: str) -> Iterator[Table | str]:
    """Targets held by turn, beside all options at once, and the conversation tax."""
    survival, tax = own["survival"], own["tax"]
    if survival.is_empty():
        return
    turns = sorted(set(survival["turn"]))
    against = {(row["behaviour"], row["against"]): row for row in tax.iter_rows(named=True)}

    def cells(arm: str, rows: pl.DataFrame) -> Iterator[str]:
        held = {row["turn"]: percent(row["survival"]) for row in rows.iter_rows(named=True)}
        name, behaviour = _ARMS[arm]
        tolled = against.get(behaviour)
        yield from (name, str(rows["n"].max()))
        yield percent(tolled["single_shot"]) if tolled else "n/a"
        yield from (held.get(turn, "") for turn in turns)
        yield percent(tolled["tax"], signed=True) if tolled else "n/a"
        ends = [percent(tolled[end], signed=True) for end in ("low", "high")] if tolled else []
        yield from (" to ".join(ends), str(rows["lost_unread"].sum()))

    yield summary(
        title,
        "In percent of the questions. Turn t: the target was answered at every turn up to t. Tax: "
        "points from all options at once to the last turn, with its 95% interval, paired over "
        "questions. Unread: replies with no readable answer.",
        ("n", "At once %", *(f"Turn {t} %" for t in turns), "Tax", "95% interval", "Unread"),
        (cells(arm, rows) for (arm,), rows in survival.group_by("arm", maintain_order=True)),
        label=("Target", 20),
    )
    yield from map(_flexibility, own["flexibility"].iter_rows(named=True))


def _flexibility(row: Row) -> str:
    """What became of abstentions to which a right and a wrong option were offered."""
    study = f"{row['model']} on {row['dataset']}"
    if not row["n_correct"] or not row["n_incorrect"]:
        return f"{study}: no abstention at turn 1"
    told = "; ".join(
        f"{row[f'{side}_switches']} of {counted(row[f'n_{side}'], 'abstention')} switched to {what}"
        f" ({percent(row[f'{side}_rate'])}%)"
        for side, what in (("correct", "the right answer"), ("incorrect", "a wrong option"))
    )
    blind = "no better than blind switching" if row["blind"] else "not blind switching"
    return (
        f"{study}: {told}: {blind}, "
        f"d' {row['d_prime']:.2f} [{row['d_prime_low']:.2f}, {row['d_prime_high']:.2f}]"
    )


def _opened(turns: pl.DataFrame) -> pl.DataFrame:
    """Single shot against the end of the conversation, where the right answer was to be held."""
    held = survival(turns).filter(pl.col("arm") == CONVICTIONS[0], pl.col("n") > 0)
    last = held.filter(pl.col("turn") == pl.col("turn").max().over("run"))
    at_once = tax(turns).filter(behaviour=CONVICTION, against=SINGLE_SHOT)
    return looked_up(last, at_once.select("run", first="single_shot"), ["run"]).select(
        "model", "dataset", "n", "first", "low", "high", "run",
        protocol=pl.lit(PROTOCOL),
        challenge=pl.format("{} turns", "turn"),
        asked="n",
        after="survival",
    )  # fmt: skip


def _net_tax(turns: pl.DataFrame) -> dict[str, dict[str, Cell]]:
    rows = tax(turns).filter(behaviour=CONVICTION, against=CONTROL).to_dicts()
    own = {row["run"]: Cell(Share("", "tax", "", signed=True).text(row)) for row in rows}
    return {"Tax net of its control, points": own} if own else {}


STICK_OR_SWITCH = ReportOf(
    PROTOCOL,
    Together(
        first=pl.when(pl.len() > 1).then(pl.col("row").first()).otherwise(NO_ROW),
        end=pl.col("row").last(),
        by=("arm",),
        after=TURNS.continues,
    ),
    by_target=True,
    offered=(FLEXIBLE,),
    opening=Opening(
        place=1,
        measure=_opened,
        when="when options come one after another",
        sentence="holds the right answer on {after:%} of the questions through {challenge} of one "
        "option after another ({interval}; {asked:question})",
        caption="The share of the questions whose right option was answered when all options "
        "were shown at once, and at every turn when they came one after another.",
        of=lambda row: {"arm": CONVICTIONS[0]},
        beside=_net_tax,
    ),
    tables=("survival", "tax", "flexibility"),
    summary=_summary,
)
