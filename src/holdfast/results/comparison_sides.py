"""Sides of a comparison: the runs that are held against each other, on the same questions."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from holdfast.errors import InputError, counted, did_you_mean

from .first_answers import BASELINE, unattacked

STUDY = ("protocol", "dataset")
_TURN = (*STUDY, "question", "epoch", "arm", "path", "turn")
_SHOWN = 8


def common_questions(
    a: pl.DataFrame, b: pl.DataFrame, datasets: dict[tuple[str, str], str]
) -> tuple[pl.DataFrame, list[str]]:
    """The questions that both sides have, by their ids and right answers.

    The turns table has no text of a question; where ids are alike and right answers are not, the
    questions are not the same.

    Returns:
        ``STUDY`` and ``question``, and sentences on how many were left out.
    """
    on = [*STUDY, "question"]
    both = a.select(on).unique().join(b.select(on).unique(), on=on, how="inner")
    unlike = _unlike_questions(a, b)
    notes, none = [], []
    for (protocol, dataset), other in datasets.items():
        own = (pl.col("protocol") == protocol) & (pl.col("dataset") == dataset)
        here, differing = both.filter(own).height, unlike.filter(own).height
        if not here:
            none.append(f"{protocol} on {dataset}")
            continue
        if differing and (other != dataset or 2 * differing > here):
            raise InputError(
                f"{protocol}: the ids of {dataset} (A) and {other} (B) name different questions: "
                f"right answers differ at {differing} of {here}",
                remedy="Compare runs on the same questions",
            )
        alone = [turns.filter(own)["question"].n_unique() - here for turns in (a, b)]
        if differing:
            notes.append(
                f"{protocol} on {dataset}: {counted(differing, 'question')} left out, whose right "
                "answers differ between A and B."
            )
        if any(alone):
            notes.append(
                f"{protocol} on {dataset}: {counted(here - differing, 'question')} in common; "
                f"left out are {alone[0]} that only A has and {alone[1]} that only B has."
            )
    if len(none) == len(datasets):
        raise InputError("no question in common", remedy="Compare runs on the same questions")
    notes += [f"{where}: no question in common." for where in none]
    return both.join(unlike, on=on, how="anti"), notes


def _unlike_questions(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Questions with an id in common whose right answers differ: they are not the same."""
    on = [*STUDY, "question"]
    read = [*on, "arm", "path", "turn"]
    pair = a.select(*read, "gold").unique().join(b.select(*read, "gold").unique(), on=read)
    return pair.filter(pl.col("gold") != pl.col("gold_right")).select(on).unique()


def unlike_turns(a: pl.DataFrame, b: pl.DataFrame) -> Iterable[str]:
    """Sentences on what else differs: versions of a protocol, options that were pushed."""
    for protocol in names_of(a, "protocol"):
        own = pl.col("protocol") == protocol
        versions = [set(turns.filter(own)["protocol_version"]) for turns in (a, b)]
        if versions[0] != versions[1]:
            yield (
                f"{protocol}: A and B were asked by different versions of the protocol "
                f"({listed(versions[0])} and {listed(versions[1])})."
            )
        pair = a.filter(own).select(*_TURN, "suggested").join(
            b.filter(own).select(*_TURN, "suggested"), on=_TURN
        ).drop_nulls(["suggested", "suggested_right"])  # fmt: skip
        unlike = pair.filter(pl.col("suggested") != pl.col("suggested_right")).height
        if unlike:
            yield f"{protocol}: {unlike} of {pair.height} turns suggest different options."


def listed(names: Iterable[object]) -> str:
    """The first of the names in alphabetical order, and how many more there are."""
    shown = sorted(map(str, names))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


def names_of(turns: pl.DataFrame, column: str) -> list[str]:
    """The values of a column in their order."""
    return turns[column].unique(maintain_order=True).to_list()


SINGLE_TURN = "single-turn"
"""Protocol and arm of the biased questions, the only ones that are mitigated."""


@dataclass(frozen=True)
class Side:
    """What is to be compared of the turns of one side; all there is, unless told.

    Attributes:
        model: a model's name.
        run: id of a run.
        mitigation: of single-turn biases, those under this mitigation; without one, those that
            have none.
    """

    model: str | None = None
    run: str | None = None
    mitigation: str | None = None


@dataclass(frozen=True)
class Sides:
    """Turns of both sides, one run of each for a protocol and data set.

    Attributes:
        a: turns of the first side; mitigations are no longer in the paths.
        b: turns of the second side, with the data set's name of the first.
        questions: those in common, with ``STUDY`` and ``question``.
        datasets: data set of the second side by protocol and data set of the first.
        notes: what was left out, and what the sides do not share.
    """

    a: pl.DataFrame
    b: pl.DataFrame
    questions: pl.DataFrame
    datasets: dict[tuple[str, str], str]
    notes: tuple[str, ...]


def sides(
    a: pl.DataFrame,
    b: pl.DataFrame,
    of_a: Side,
    of_b: Side,
    protocol: str | None = None,
    dataset: str | None = None,
) -> Sides:
    """Select a run of each side for each protocol and data set, and the questions in common."""
    mitigated = of_a.mitigation is not None or of_b.mitigation is not None
    if mitigated and protocol not in (None, SINGLE_TURN):
        raise InputError(
            f"'{protocol}' has no mitigations",
            field="--protocol",
            remedy=f"Leave the mitigation out, or compare {SINGLE_TURN}",
        )
    only = SINGLE_TURN if mitigated else protocol
    left, right = (
        _selected(turns, side, name, only) for turns, side, name in ((a, of_a, "a"), (b, of_b, "b"))
    )
    left, right, notes = _common_protocols(left, right)
    if dataset is not None:
        left, right = _of_dataset(left, right, dataset)
    right, datasets, more = _same_datasets(left, right)
    wanted = pl.DataFrame(list(datasets), schema=list(STUDY), orient="row")
    left, right = (turns.join(wanted, on=STUDY, how="semi", maintain_order="left")
                   for turns in (left, right))  # fmt: skip
    _check_one_run(left, "a")
    _check_one_run(right, "b")
    left, right, apart = _apart(left, right, of_a.mitigation == of_b.mitigation)
    questions, common = common_questions(left, right, datasets)
    unlike = unlike_turns(*(turns.join(questions, on=[*STUDY, "question"], how="semi")
                       for turns in (left, right)))  # fmt: skip
    return Sides(left, right, questions, datasets, (*notes, *more, *apart, *common, *unlike))


def _selected(turns: pl.DataFrame, side: Side, name: str, protocol: str | None) -> pl.DataFrame:
    who = name.upper()
    if turns.is_empty():
        raise InputError(f"{who} has no turns", remedy="Finish the run first")
    turns = _only(turns, "model", side.model, f"--model-{name}", who)
    turns = _only(turns, "run", side.run, f"--run-{name}", who)
    option = "--protocol" if side.mitigation is None else f"--mitigation-{name}"
    turns = _only(turns, "protocol", protocol, option, who)
    # what attacks alone read is nothing that two models have in common
    known = unattacked(turns).select("protocol").unique()
    turns = turns.join(known, on="protocol", how="semi", maintain_order="left")
    step = pl.col("path").str.split(">")
    biased = pl.col("arm") == SINGLE_TURN
    under = pl.when(biased & (step.list.len() > 1)).then(step.list.first()).otherwise(pl.lit(""))
    turns = turns.with_columns(under.alias("_under"))
    if side.mitigation is not None:
        names = turns.filter(pl.col("_under") != "")["_under"].unique().to_list()
        if side.mitigation not in names:
            raise InputError(
                f"{who} has no mitigation '{side.mitigation}'",
                field=f"--mitigation-{name}",
                remedy=did_you_mean(side.mitigation, names)
                if names
                else "Run single-turn with -T mitigations=... first",
            )
    kept = ~biased | (pl.col("_under") == (side.mitigation or ""))
    if side.mitigation is not None:  # a bias without it is no part of this side
        kept &= biased | (pl.col("arm") == BASELINE)
    bare = pl.when(pl.col("_under") != "").then(step.list.slice(1).list.join(">"))
    return turns.filter(kept).with_columns(bare.otherwise("path").alias("path")).drop("_under")


def _only(
    turns: pl.DataFrame, column: str, value: str | None, option: str, who: str
) -> pl.DataFrame:
    if value is None:
        return turns
    names = names_of(turns, column)
    if value not in names:
        raise InputError(
            f"{who} has no {column} '{value}'", field=option, remedy=did_you_mean(value, names)
        )
    return turns.filter(pl.col(column) == value)


def _common_protocols(
    a: pl.DataFrame, b: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    of_a, of_b = names_of(a, "protocol"), names_of(b, "protocol")
    both = [name for name in of_a if name in of_b]
    if not both:
        raise InputError(
            f"no protocol in common: A has {', '.join(of_a) or 'none that can be compared'}, "
            f"B has {', '.join(of_b) or 'none that can be compared'}",
            remedy="Compare runs of one protocol",
        )
    notes = [
        f"Only {who} has protocol {name}, which is left out."
        for who, names in (("A", of_a), ("B", of_b))
        for name in names
        if name not in both
    ]
    kept = pl.col("protocol").is_in(both)
    return a.filter(kept), b.filter(kept), notes


def _of_dataset(
    a: pl.DataFrame, b: pl.DataFrame, dataset: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = [*names_of(a, "dataset"), *names_of(b, "dataset")]
    if dataset not in names:
        raise InputError(
            f"no data set '{dataset}'", field="--dataset", remedy=did_you_mean(dataset, {*names})
        )

    def only(turns: pl.DataFrame) -> pl.DataFrame:
        # a side that lacks the name may hold the same questions under another one
        has = (pl.col("dataset") == dataset).any().over("protocol")
        return turns.filter((pl.col("dataset") == dataset) | ~has)

    return only(a), only(b)


def _same_datasets(
    a: pl.DataFrame, b: pl.DataFrame
) -> tuple[pl.DataFrame, dict[tuple[str, str], str], list[str]]:
    """``b`` with the data sets' names of ``a``, and which is which."""
    found: dict[tuple[str, str], str] = {}
    notes: list[str] = []
    for protocol in names_of(a, "protocol"):
        own = pl.col("protocol") == protocol
        of_a, of_b = names_of(a.filter(own), "dataset"), names_of(b.filter(own), "dataset")
        both = [name for name in of_a if name in of_b]
        found |= {(protocol, name): name for name in both}
        if not both and len(of_a) == len(of_b) == 1:
            found[protocol, of_a[0]] = of_b[0]
            notes.append(
                f"{protocol}: the data sets have two names, {of_a[0]} and {of_b[0]}; questions "
                "are matched by their ids alone."
            )
            continue
        notes += [
            f"{protocol}: only {who} has data set {name}, which is left out."
            for who, names in (("A", of_a), ("B", of_b))
            for name in names
            if name not in both
        ]
    if not found:
        raise InputError(
            f"no data set in common: A has {listed(names_of(a, 'dataset'))}, "
            f"B has {listed(names_of(b, 'dataset'))}",
            field="--dataset",
            remedy="Compare runs on the same questions",
        )
    renamed = pl.DataFrame(
        [(protocol, of_b, of_a) for (protocol, of_a), of_b in found.items()],
        schema=[*STUDY, "_name"],
        orient="row",
    )
    named = b.join(renamed, on=STUDY, how="inner", maintain_order="left")
    return named.with_columns(pl.col("_name").alias("dataset")).drop("_name"), found, notes


def _check_one_run(turns: pl.DataFrame, name: str) -> None:
    for (protocol, dataset), own in turns.group_by(STUDY, maintain_order=True):
        for column in ("model", "run"):
            names = names_of(own, column)
            if len(names) > 1:
                raise InputError(
                    f"{name.upper()} has {len(names)} {column}s of {protocol} on {dataset}: "
                    f"{listed(names)}",
                    field=f"--{column}-{name}",
                    remedy="Choose one",
                )


def _apart(
    a: pl.DataFrame, b: pl.DataFrame, alike: bool
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The sides without what is the very same on both: a run, or its first answers."""
    runs = (*STUDY, "run", "model")
    same = a.select(runs).unique(maintain_order=True).join(
        b.select(runs).unique(), on=runs, how="semi", maintain_order="left"
    )  # fmt: skip
    if same.is_empty():
        return a, b, []

    def without(turns: pl.DataFrame) -> pl.DataFrame:
        shared = turns if alike else turns.filter(pl.col("arm") == BASELINE)
        own = shared.join(same, on=runs, how="semi").select(*runs, "arm").unique()
        return turns.join(own, on=[*runs, "arm"], how="anti", maintain_order="left")

    left, right = without(a), without(b)
    if left.is_empty() or right.is_empty():
        raise InputError(
            "A and B are the same run",
            remedy="Choose two with --model-a and --model-b, or a --mitigation-b",
        )
    what = "is one run on both sides and" if alike else "has the same first answers on both sides:"
    left_out = "is left out" if alike else "they are left out"
    names = names_of(same, "protocol")
    return left, right, [f"{name} {what} {left_out}." for name in names]
