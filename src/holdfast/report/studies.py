"""The studies behind a long table, each with a header that tells it from the others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.results import is_imported, is_simulated

from .tables import one_line

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Studies:
    """Columns of a table for people: one for each model, or for each of its runs and datasets.

    A model's single-turn study and its follow-up study share a column, as in the papers, where it
    has one of each. Where it has several of one protocol, each run has a column.
    """

    headers: tuple[str, ...]
    datasets: tuple[str, ...]
    place: Mapping[tuple[Any, ...], int]
    split: frozenset[tuple[Any, ...]]
    runs: tuple[tuple[str, ...], ...]
    """Runs of each column."""

    def of(self, row: Row) -> int:
        """Number of the row's column."""
        return self.place[_key(row, self.split)]

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the columns: data set, where replies come from."""
        notes = [f"Questions: {self.datasets[0]}."] if len(self.datasets) == 1 else []
        simulated = [name for name in self.headers if is_simulated(name)]
        if simulated:
            notes.append(f"SIMULATED replies, of no real model: {', '.join(simulated)}.")
        columns = zip(self.headers, self.runs, strict=True)
        imported = [name for name, runs in columns if any(map(is_imported, runs))]
        if imported:
            notes.append(f"IMPORTED, not asked by holdfast: {', '.join(imported)}.")
        printed: dict[str, list[str]] = {}
        for name, runs in zip(self.headers, self.runs, strict=True):
            if "[published]" in name:
                printed.setdefault("; ".join(runs), []).append(name)
        notes += [f"As printed in {place}: {', '.join(names)}." for place, names in printed.items()]
        return tuple(notes)


def studies(rows: Sequence[Row]) -> Studies:
    """The studies of a long table, in the order of its rows."""
    runs: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        known = runs.setdefault((row["model"], row["dataset"], row.get("protocol")), [])
        if row["run"] not in known:
            known.append(row["run"])
    split = frozenset(study[:2] for study, known in runs.items() if len(known) > 1)
    place: dict[tuple[Any, ...], int] = {}
    of_column: dict[int, list[str]] = {}
    for row in rows:
        column = place.setdefault(_key(row, split), len(place))
        run = one_line(str(row["run"] or ""))
        if run and run not in of_column.setdefault(column, []):
            of_column[column].append(run)
    datasets = list(dict.fromkeys(one_line(str(row["dataset"] or "")) for row in rows))
    named = [_header(key, several=len(datasets) > 1, split=split) for key in place]
    return Studies(
        tuple(_distinct(named)),
        tuple(datasets),
        place,
        split,
        tuple(tuple(of_column.get(column, ())) for column in place.values()),
    )


def _key(row: Row, split: frozenset[tuple[Any, ...]]) -> tuple[Any, ...]:
    study = (row["model"], row["dataset"])
    return (*study, row["run"] if study in split else None)


def _header(key: tuple[Any, ...], *, several: bool, split: frozenset[tuple[Any, ...]]) -> str:
    model, dataset, run = key
    more = [str(dataset)] if several else []
    more += [f"run {run or 'unnamed'}"] if (model, dataset) in split else []
    return one_line(f"{model} ({', '.join(more)})" if more else str(model))


def _distinct(names: Iterable[str]) -> list[str]:
    # two names can differ in what is not shown, such as a line break
    names, seen = list(names), Counter[str]()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return distinct
