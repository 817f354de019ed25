"""The questions that two sides of a comparison have in common."""

from collections.abc import Iterable

import polars as pl

from holdfast.errors import InputError, counted

STUDY = ("protocol", "dataset")
_TURN = (*STUDY, "question", "epoch", "arm", "path", "turn")
_SHOWN = 8


def common_questions(
    a: pl.DataFrame, b: pl.DataFrame, datasets: dict[tuple[str, str], str]
) -> tuple[pl.DataFrame, list[str]]:
    """The questions that both sides have, by their ids and right answers.

    The turns table has no text of a question; where ids are alike and right answers are not, the
    questions are not the same.

    Args:
        a: turns of the first side.
        b: turns of the second side, with the data set's name of the first.
        datasets: data set of the second side by protocol and data set of the first.

    Returns:
        ``STUDY`` and ``question``, and sentences on how many were left out.

    Raises:
        InputError: there is none, or the same ids name different questions.
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
                f"{protocol}: A and B were put by different versions of the protocol "
                f"({listed(versions[0])} and {listed(versions[1])})."
            )
        pair = a.filter(own).select(*_TURN, "suggested").join(
            b.filter(own).select(*_TURN, "suggested"), on=_TURN
        ).drop_nulls(["suggested", "suggested_right"])  # fmt: skip
        unlike = pair.filter(pl.col("suggested") != pl.col("suggested_right")).height
        if unlike:
            yield f"{protocol}: {unlike} of {pair.height} turns push different options on A and B."


def listed(names: Iterable[object]) -> str:
    """The first of the names in alphabetical order, and how many more there are."""
    shown = sorted(map(str, names))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


def names_of(turns: pl.DataFrame, column: str) -> list[str]:
    """The values of a column in their order."""
    return turns[column].unique(maintain_order=True).to_list()
