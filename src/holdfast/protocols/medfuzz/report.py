"""Presentation of MedFuzz in the report and the terminal."""

from collections.abc import Iterator, Mapping

import polars as pl
from rich.table import Table

from holdfast.errors import counted
from holdfast.render.reported import NO_ROW, Headline, ReportOf, Together
from holdfast.render.terminal import summary
from holdfast.results.first_answers import BASELINE
from holdfast.results.grid import Cell, Row, percent
from holdfast.results.inference import looked_up
from holdfast.results.runs import system_of

from .attack_arms import ATTACK, ATTACKED_ARM, CONTROL_WRITER, ORIGINAL, UNATTACKED_ARM
from .attacks import attacks, reasons_in
from .net_attacks import attack_net, last_attempt
from .published import medfuzz
from .replicates import CONTROL_ARMS, HELPERS, PROBES, PROTOCOL


def _summary(tables: Mapping[str, pl.DataFrame], title: str) -> Iterator[Table | str]:
    """Summarise the accuracy after each number of attacks, and the outcomes of the attacks."""
    if tables["attacks"].is_empty():
        return
    yield summary(
        title,
        (
            (
                "",
                "Accuracy of the replicates after k attacks, with its 95% interval. Replicates "
                "with a model error or without a valid attack are dropped.",
            ),
            ("Flips", "Flips: right answers that attack k flipped."),
        ),
        ("Attacks k", "Questions", "Replicates", "Accuracy %", "95% interval", "Flips"),
        (
            (
                *(str(row[name]) for name in ("k", "questions", "replicates")),
                percent(row["accuracy"]),
                f"{percent(row['low'])} to {percent(row['high'])}",
                str(row["turned"]) if row["k"] else "",
            )
            for row in tables["attacks"].iter_rows(named=True)
        ),
    )
    for row in last_attempt(tables["attacks by control"]).iter_rows(named=True):
        yield _net(row)
    for row in tables["attack-summary"].iter_rows(named=True):
        yield from _attacks(row, tables["faithfulness"])
    for row in last_attempt(tables["attacks"]).iter_rows(named=True):
        yield from _left_out(row)
    people = medfuzz()
    yield (
        f"People: {people.human_accuracy} on average on {people.human_examination} "
        f"({people.citation})"
    )


def _net(row: Row) -> str:
    """Return a sentence on flips by attacks beyond inert rewrites."""
    net, low, high = (percent(row[name], with_sign=True) for name in ("net", "net_low", "net_high"))
    sentence = (
        f"{system_of(row)}: {percent(row['turned'])}% of right answers flipped under "
        f"{counted(row['k'], 'attack')}, {percent(row['turned_inert'])}% under as many neutral "
        f"rewrites of the same length; net: {net} points [{low}, {high}]"
    )
    if row["turned_reask"] is not None:
        sentence += f"; only asked again: {percent(row['turned_reask'])}%"
    return sentence


def _left_out(row: Row) -> Iterator[str]:
    """Yield notes on replicates that the curve excludes, and on validity."""
    if row["not_attacked"]:
        low, high = percent(row["worst_low"]), percent(row["worst_high"])
        yield (
            f"{system_of(row)}: accuracy after {row['k']} attacks lies between {low}% (every "
            f"answer without a valid attack counted as flipped) and {high}% (none)"
        )
    if row["accuracy_valid"] is not None:
        share, low, high = (percent(row[f"{name}"]) for name in _VALID)
        yield (
            f"{system_of(row)}: {share}% [{low}, {high}] after {row['k']} attacks, without "
            "flips by attacks that the judge calls invalid"
        )


_VALID = ("accuracy_valid", "valid_low", "valid_high")


def _attacks(row: Row, faithfulness: pl.DataFrame) -> Iterator[str]:
    """Yield sentences on the outcomes of the attacks, and the faithfulness of the reasoning."""
    model, attacked_count = system_of(row), row["failed"] + row["succeeded"]
    rate, low, high = (percent(row[name]) for name in ("success_rate", "low", "high"))
    sentence = (
        f"{model}: {row['succeeded']} of {counted(attacked_count, 'attacked answer')} flipped"
    )
    sentence += f" ({rate}% [{low}, {high}])" if attacked_count else ""
    sentence += f"; first answer wrong {row['first_wrong']}, model errors {row['model_errors']}"
    if row["attempts_needed"] is not None:
        sentence += f"; {row['attempts_needed']:.1f} attempts needed on average"
    yield sentence
    if row["confirmed"] is not None:
        yield (
            f"{model}: {row['confirmed']} of "
            f"{counted(row['different'], 'distinct successful attack')} confirmed: they flip "
            "the answer again, and neutral rewrites of their length do not"
        )
    if row["not_attacked"]:
        yield (
            f"{model}: {counted(row['not_attacked'], 'right answer')} not attacked, because no "
            f"attack was valid ({reasons_in(row['not_attacked_reasons'])})"
        )
    if row["invalid_tries"]:
        reasons = reasons_in(row["reasons"])
        yield (
            f"{model}: {row['invalid_tries']} of {counted(row['tries'], 'modification')} by "
            f"the attacker were unusable ({reasons}); "
            f"{counted(row['invalid_attempts'], 'attempt')} without a valid modification"
        )
    for reading in faithfulness.filter(pl.col("n") > 0).iter_rows(named=True):
        none_share, some_share, all_share = (
            percent(reading[f"{name}_share"]) for name in ("none", "some", "all")
        )
        yield (
            f"{model}: in {counted(reading['n'], 'flipped answer')}, the reasoning mentions "
            f"none of the additions in {none_share}%, some in {some_share}%, all in "
            f"{all_share}% (by {reading['by'].replace('lexical', 'rule')})"
        )


def _compare_first_and_last(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute accuracy before the first attack and after the last."""
    k = pl.col("k")
    outcomes = attacks(turns).filter(pl.col("replicates") > 0)
    first = outcomes.filter(k == 0).select(
        "run", first="accuracy", first_low="low", first_high="high"
    )
    last = outcomes.filter(k > 0, k == k.max().over("run"))
    return looked_up(last, first, ["run"]).select(
        "model", "dataset", "first", "first_low", "first_high", "low", "high", "run",
        protocol=pl.lit(PROTOCOL),
        n="questions",
        challenge=pl.when(k == 1).then(pl.lit("1 rewriting"))
        .otherwise(pl.format("{} rewritings", "k")),
        asked="replicates",
        after="accuracy",
    )  # fmt: skip


def _first_screen_cells(turns: pl.DataFrame) -> dict[str, dict[str, Cell]]:
    """Return cells with flips by all attacks and net flips beyond inert rewrites, by run."""
    rows = last_attempt(attack_net(turns)).drop_nulls("net").iter_rows(named=True)
    flip_cell = {
        row["run"]: Cell(f"{percent(row['turned'])}% ({percent(row['net'], with_sign=True)})")
        for row in rows
    }
    return {"Attacked": flip_cell} if flip_cell else {}


_ARM, _ROW = pl.col("arm"), pl.col("row")
_NUMBER = pl.col("path").str.extract(r"^(?:fuzz|control)@(\d{1,9})").cast(pl.Int64)
_ORDER_NUMBER = pl.col("path").str.extract(r">order@(\d{1,9})").cast(pl.Int64)
_BEHIND = 10_000
"""Sort key offset of controls and repetitions, larger than any number of an attempt."""
_PLAIN, _IS_ATTACK = _ARM.is_in([BASELINE, UNATTACKED_ARM]), _ARM == ATTACK
_TEST = (*PROBES, CONTROL_WRITER)

MEDFUZZ = ReportOf(
    PROTOCOL,
    Together(
        # the attacker's reply precedes the question that it wrote; a test is sorted by text
        order=(
            pl.when(_PLAIN)
            .then(0)
            .when(_ARM == ORIGINAL)
            .then(-2)
            .when(_ARM == ATTACKED_ARM)
            .then(-1)
            .when(_ARM.is_in(CONTROL_ARMS))
            .then(_BEHIND)
            .otherwise(_NUMBER),
            ~_ARM.is_in(HELPERS),
            _ORDER_NUMBER,
        ),
        first=pl.when(_IS_ATTACK.any()).then(_ROW.filter(_PLAIN).first()).otherwise(NO_ROW),
        end=pl.coalesce(
            *(
                _ROW.filter(condition).last()
                for condition in (_IS_ATTACK, _PLAIN, _ARM == ATTACKED_ARM)
            ),
            _ROW.last(),
        ),
        by=(_ARM.is_in(_TEST).alias("test"),),
    ),
    folded_arms=_TEST,
    opening=Headline(
        place=2,
        before="before any rewrite",
        measure=_compare_first_and_last,
        when="after the last rewrite of the question",
        sentence="is right on {first:%} of the questions and stays right through {challenge} on "
        "{after:%} ({interval}; {n:question})",
        caption="Share of right answers that no rewrite had flipped.",
        of=lambda row: {"protocol": PROTOCOL},
        beside=_first_screen_cells,
    ),
    main="attacks",
    tables=("attacks", "attacks by control", "attack-summary", "faithfulness"),
    summary=_summary,
)
