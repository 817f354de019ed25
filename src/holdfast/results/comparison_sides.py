"""Sides of a comparison: two sets of runs on the same questions."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from holdfast.errors import InputError, counted, did_you_mean

from .first_answers import BASELINE, apart

STUDY = ("protocol", "dataset")
_QUESTION = (*STUDY, "question")
_TURN = (*_QUESTION, "epoch", "arm", "path", "turn")
_MOST_SHOWN = 8


def questions_of_both(
    a: pl.DataFrame, b: pl.DataFrame, datasets: dict[tuple[str, str], str]
) -> tuple[pl.DataFrame, list[str]]:
    """Return the common questions of both sides, and notes on the number of skipped questions.

    The turns table has no question texts. Questions with the same id but different right answers
    are treated as different questions.
    """
    common_questions = a.select(_QUESTION).unique().join(b.select(_QUESTION).unique(), on=_QUESTION)
    turn_columns = [*_QUESTION, "arm", "path", "turn"]
    pair = (
        a.select(*turn_columns, "gold")
        .unique()
        .join(b.select(*turn_columns, "gold").unique(), on=turn_columns)
    )
    unlike = pair.filter(pl.col("gold") != pl.col("gold_right")).select(_QUESTION).unique()
    notes, empty_studies = [], []
    for (protocol, dataset), other_dataset in datasets.items():
        in_study = (pl.col("protocol") == protocol) & (pl.col("dataset") == dataset)
        common_count, differing = (
            common_questions.filter(in_study).height,
            unlike.filter(in_study).height,
        )
        if not common_count:
            empty_studies.append(f"{protocol} on {dataset}")
            continue
        if differing and (other_dataset != dataset or 2 * differing > common_count):
            raise InputError(
                f"{protocol}: the ids of {dataset} (A) and {other_dataset} (B) name different "
                "questions: "
                f"right answers differ at {differing} of {common_count}",
                remedy="Compare runs on the same questions",
            )
        alone = [turns.filter(in_study)["question"].n_unique() - common_count for turns in (a, b)]
        if differing:
            notes.append(
                f"{protocol} on {dataset}: {counted(differing, 'question')} skipped, because "
                "their right answers differ between A and B."
            )
        if any(alone):
            notes.append(
                f"{protocol} on {dataset}: {counted(common_count - differing, 'question')} in "
                f"common; skipped: {alone[0]} that only A has and {alone[1]} that only B has."
            )
    if len(empty_studies) == len(datasets):
        raise InputError(
            "A and B have no question in common", remedy="Compare runs on the same questions"
        )
    notes += [f"{where}: A and B have no question in common." for where in empty_studies]
    return common_questions.join(unlike, on=_QUESTION, how="anti"), notes


def unlike_turns(a: pl.DataFrame, b: pl.DataFrame) -> Iterable[str]:
    """Yield notes on other differences: protocol versions and suggested options."""
    for protocol in names_of(a, "protocol"):
        in_protocol = pl.col("protocol") == protocol
        versions = [set(turns.filter(in_protocol)["protocol_version"]) for turns in (a, b)]
        if versions[0] != versions[1]:
            yield (
                f"{protocol}: A and B were asked by different versions of the protocol "
                f"({listed(versions[0])} and {listed(versions[1])})."
            )
        of_a, of_b = (turns.filter(in_protocol).select(*_TURN, "suggested") for turns in (a, b))
        pair = of_a.join(of_b, on=_TURN).drop_nulls(["suggested", "suggested_right"])
        unlike = pair.filter(pl.col("suggested") != pl.col("suggested_right")).height
        if unlike:
            yield f"{protocol}: {unlike} of {pair.height} turns suggest different options."


def listed(names: Iterable[object]) -> str:
    """List the first names in alphabetical order, and the number of further names."""
    texts = sorted(map(str, names))
    more = f" and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else ""
    return ", ".join(texts[:_MOST_SHOWN]) + more


def names_of(turns: pl.DataFrame, column: str) -> list[str]:
    """Return the distinct values of a column in their order."""
    return turns[column].unique(maintain_order=True).to_list()


_SidePair = tuple[pl.DataFrame, pl.DataFrame]

SINGLE_TURN = "single-turn"
"""Protocol and arm of the biased questions; only these have mitigations."""


@dataclass(frozen=True)
class Side:
    """Selection of turns for one side: a model, a run, or all turns.

    Single-turn biases are selected by ``mitigation``. Without a mitigation, only unmitigated biases
    are selected. A ``path`` selects only answers after that challenge, chain or family.
    """

    model: str | None = None
    run: str | None = None
    mitigation: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class Sides:
    """Turns of both sides, with one run per side for each protocol and data set.

    Attributes:
        a: turns of the first side. Paths no longer contain mitigations.
        b: turns of the second side, with the data set names of the first side.
        questions: common questions.
        datasets: data set of the second side, by protocol and data set of the first side.
        notes: sentences about skipped data and differences between the sides.
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
    """Select one run per side for each protocol and data set, and the common questions."""
    has_mitigation = of_a.mitigation is not None or of_b.mitigation is not None
    if has_mitigation and protocol not in (None, SINGLE_TURN):
        remedy = f"Remove the mitigation, or compare {SINGLE_TURN}"
        raise InputError(
            f"protocol '{protocol}' has no mitigations", field="--protocol", remedy=remedy
        )
    only = SINGLE_TURN if has_mitigation else protocol
    side_pair = _select_turns(a, of_a, "a", only), _select_turns(b, of_b, "b", only)
    side_pair, notes = _protocols_of_both(*side_pair)
    if dataset is not None:
        side_pair = _select_dataset(*side_pair, dataset)
    side_pair, datasets, more = _same_datasets(*side_pair)
    for turns, name in zip(side_pair, "ab", strict=True):
        _check_one_run(turns, name)
    apart: list[str] = []
    if of_a.path == of_b.path:
        side_pair, apart = _drop_same_runs(*side_pair, of_a.mitigation == of_b.mitigation)
    questions, common = questions_of_both(*side_pair, datasets)
    of_both = (turns.join(questions, on=_QUESTION, how="semi") for turns in side_pair)
    notes = [*notes, *more, *apart, *common, *unlike_turns(*of_both)]
    return Sides(*side_pair, questions, datasets, tuple(notes))


def _select_turns(turns: pl.DataFrame, side: Side, name: str, protocol: str | None) -> pl.DataFrame:
    who = name.upper()
    if turns.is_empty():
        raise InputError(f"{who} has no turns", remedy="Finish the run first")
    turns = _select_value(turns, "model", side.model, f"--model-{name}", who)
    turns = _select_value(turns, "run", side.run, f"--run-{name}", who)
    option = "--protocol" if side.mitigation is None else f"--mitigation-{name}"
    turns = _select_value(turns, "protocol", protocol, option, who)
    # turns that only a protocol's own measures use cannot be compared between models
    protocols_known = turns.filter(~apart()).select("protocol").unique()
    turns = turns.join(protocols_known, on="protocol", how="semi", maintain_order="left")
    step = pl.col("path").str.split(">")
    is_biased = pl.col("arm") == SINGLE_TURN
    under = pl.when(is_biased & (step.list.len() > 1)).then(step.list.first()).otherwise(pl.lit(""))
    turns = turns.with_columns(under.alias("_under"))
    is_selected = ~is_biased | (pl.col("_under") == (side.mitigation or ""))
    if side.mitigation is not None:
        names = turns.filter(pl.col("_under") != "")["_under"].unique().to_list()
        if side.mitigation not in names:
            no_mitigation = "Run single-turn with -T mitigations=... first"
            remedy = did_you_mean(side.mitigation, names) if names else no_mitigation
            problem = f"{who} has no mitigation '{side.mitigation}'"
            raise InputError(problem, field=option, remedy=remedy)
        # this side excludes biases without the mitigation
        is_selected &= is_biased | (pl.col("arm") == BASELINE)
    bare = pl.when(pl.col("_under") != "").then(step.list.slice(1).list.join(">"))
    return (
        turns.filter(is_selected).with_columns(bare.otherwise("path").alias("path")).drop("_under")
    )


def _select_value(
    turns: pl.DataFrame, column: str, value: str | None, option: str, who: str
) -> pl.DataFrame:
    if value is None:
        return turns
    names = names_of(turns, column)
    if value not in names:
        remedy = did_you_mean(value, names)
        raise InputError(f"{who} has no {column} '{value}'", field=option, remedy=remedy)
    return turns.filter(pl.col(column) == value)


def _protocols_of_both(a: pl.DataFrame, b: pl.DataFrame) -> tuple[_SidePair, list[str]]:
    of_a, of_b = names_of(a, "protocol"), names_of(b, "protocol")
    common_protocols = [name for name in of_a if name in of_b]
    if not common_protocols:
        raise InputError(
            "A and B have no protocol in common: "
            f"A has {', '.join(of_a) or 'none that can be compared'}, "
            f"B has {', '.join(of_b) or 'none that can be compared'}",
            remedy="Compare runs of the same protocol",
        )
    notes = [f"Only {who} has protocol {name}. It is skipped." for who, name in _lone(of_a, of_b)]
    is_common = pl.col("protocol").is_in(common_protocols)
    return (a.filter(is_common), b.filter(is_common)), notes


def _lone(a: list[str], b: list[str]) -> list[tuple[str, str]]:
    """Return the names that only one side has, each with that side."""
    return [("A", name) for name in a if name not in b] + [("B", n) for n in b if n not in a]


def _select_dataset(a: pl.DataFrame, b: pl.DataFrame, dataset: str) -> _SidePair:
    names = [*names_of(a, "dataset"), *names_of(b, "dataset")]
    if dataset not in names:
        remedy = did_you_mean(dataset, {*names})
        raise InputError(
            f"neither side has a data set '{dataset}'", field="--dataset", remedy=remedy
        )

    def only(turns: pl.DataFrame) -> pl.DataFrame:
        # a side without this name may have the same questions under another name
        has = (pl.col("dataset") == dataset).any().over("protocol")
        return turns.filter((pl.col("dataset") == dataset) | ~has)

    return only(a), only(b)


def _same_datasets(
    a: pl.DataFrame, b: pl.DataFrame
) -> tuple[_SidePair, dict[tuple[str, str], str], list[str]]:
    """Select the common data sets of both sides, with the names of ``a`` and a map of names."""
    dataset_names: dict[tuple[str, str], str] = {}
    notes: list[str] = []
    for protocol in names_of(a, "protocol"):
        of_a, of_b = (
            names_of(turns.filter(pl.col("protocol") == protocol), "dataset") for turns in (a, b)
        )
        common_datasets = [name for name in of_a if name in of_b]
        dataset_names |= {(protocol, name): name for name in common_datasets}
        if not common_datasets and len(of_a) == len(of_b) == 1:
            dataset_names[protocol, of_a[0]] = of_b[0]
            notes.append(
                f"{protocol}: the data sets have different names, {of_a[0]} and {of_b[0]}. "
                "Questions are matched by id alone."
            )
            continue
        notes += [
            f"{protocol}: only {who} has data set {name}. It is skipped."
            for who, name in _lone(of_a, of_b)
        ]
    if not dataset_names:
        raise InputError(
            f"A and B have no data set in common: A has {listed(names_of(a, 'dataset'))}, "
            f"B has {listed(names_of(b, 'dataset'))}",
            field="--dataset",
            remedy="Compare runs on the same questions",
        )
    names = [(protocol, of_b, of_a) for (protocol, of_a), of_b in dataset_names.items()]
    common = pl.DataFrame(names, schema=["protocol", "_name", "dataset"], orient="row")
    ours = a.join(common, on=STUDY, how="semi", maintain_order="left")
    theirs = b.rename({"dataset": "_name"}).join(
        common, on=["protocol", "_name"], how="inner", maintain_order="left"
    )
    return (ours, theirs.select(b.columns)), dataset_names, notes


def _check_one_run(turns: pl.DataFrame, name: str) -> None:
    for (protocol, dataset), study_turns in turns.group_by(STUDY, maintain_order=True):
        for column in ("model", "run"):
            names = names_of(study_turns, column)
            if len(names) > 1:
                problem = f"{name.upper()} has {len(names)} {column}s of {protocol} on {dataset}"
                field = f"--{column}-{name}"
                raise InputError(f"{problem}: {listed(names)}", field=field, remedy="Choose one")


def _drop_same_runs(a: pl.DataFrame, b: pl.DataFrame, alike: bool) -> tuple[_SidePair, list[str]]:
    """Drop identical data from both sides: a shared run, or its first answers."""
    runs = (*STUDY, "run", "model")
    of_a = a.select(runs).unique(maintain_order=True)
    same_runs = of_a.join(b.select(runs), on=runs, how="semi", maintain_order="left")
    if same_runs.is_empty():
        return (a, b), []

    def without(turns: pl.DataFrame) -> pl.DataFrame:
        shared_turns = turns if alike else turns.filter(pl.col("arm") == BASELINE)
        shared_arms = (
            shared_turns.join(same_runs, on=runs, how="semi").select(*runs, "arm").unique()
        )
        return turns.join(shared_arms, on=[*runs, "arm"], how="anti", maintain_order="left")

    left, right = without(a), without(b)
    if left.is_empty() or right.is_empty():
        remedy = (
            "Choose two models with --model-a and --model-b, set --mitigation-b, or give two paths "
            "with --paths"
        )
        raise InputError("A and B are the same run", remedy=remedy)
    problem = (
        "is the same run on both sides"
        if alike
        else "has the same first answers on both sides. They are"
    )
    names = names_of(same_runs, "protocol")
    return (left, right), [
        f"{name} {problem}{'. It is' if alike else ''} skipped." for name in names
    ]
