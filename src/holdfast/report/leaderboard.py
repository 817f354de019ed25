"""A site of many studies: a page with tables of models, and the report of each."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from holdfast.errors import counted
from holdfast.render.reported import report_of
from holdfast.results import (
    STOPPED,
    RunRecord,
    Stopped,
    is_imported,
    is_simulated,
    together,
    with_sequences,
)
from holdfast.results.declaration import Share
from holdfast.results.flows import CHALLENGED, MITIGATED
from holdfast.results.grid import Cell, Grid, Line, Row, RowBlock, one_line, studies
from holdfast.results.phrases import in_words
from holdfast.results.records import Unfinished
from holdfast.results.worst import rank

from .first_screen import family_cells, family_notes, measured, worst_named
from .page import environment, ordered, report_page, source

_INDEX, _TITLE = "index.html", "Leaderboard"
_MARK = '<meta name="generator" content="holdfast leaderboard">'
_PAGE = re.compile(r"models/[a-z0-9-]+\.html")
_SCRIPT = "report/tables.js"
_SHOWN = 5
"""Challenges that a note names."""


@dataclass(frozen=True)
class LeaderboardSource:
    """What one source holds.

    Attributes:
        turns: a turns table with texts, where they were kept.
        records: the runs as their logs record them, by id.
        plans: what was planned.
        unfinished: runs that lack questions.
        left_out: what the runs left out.
        stopped: runs that ended once their rules were decided.
    """

    turns: pl.DataFrame
    records: Mapping[str, RunRecord]
    plans: Sequence[Mapping[str, Any]]
    unfinished: Sequence[Unfinished]
    left_out: Sequence[str]
    stopped: Sequence[Stopped]


def is_leaderboard(folder: Path) -> bool:
    """Whether a folder holds a leaderboard and nothing else."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    index = folder / _INDEX
    if not index.is_file() or _MARK not in index.read_text("utf-8", "replace"):
        return False
    return all(_PAGE.fullmatch(name) for name in names - {_INDEX})


def leaderboard_pages(
    found: Sequence[LeaderboardSource], unread: Sequence[str], title: str | None, most: int
) -> Iterator[tuple[str | None, str, str]]:
    """The pages of the site: each needs nothing else, and links to others are relative.

    Args:
        found: what was read; a turn of several sources is that of the first.
        unread: what was wrong with each source that could not be read.
        title: of the first page.
        most: conversations that can be read in the report of a model.

    Returns:
        Model, file and content of each; of the first page the model is None.
    """
    turns = together(study.turns for study in found)
    stopped = [one for study in found for one in study.stopped]
    models = list(dict.fromkeys(ordered(turns)["model"]))
    records = {run: one for study in found for run, one in study.records.items()}
    yield None, _INDEX, _index(ordered(turns), stopped, unread, title, records)
    for model in models:
        own = turns.filter(model=model)
        runs = set(own["run"])
        there = [study for study in found if runs & set(study.turns["run"])]
        yield model, _page_of(model), report_page(
            own,
            {run: one for study in there for run, one in study.records.items() if run in runs},
            [plan for study in there for plan in study.plans],
            notes=[
                *(str(one) for study in there for one in study.unfinished if one.run in runs),
                *dict.fromkeys(line for study in there for line in study.left_out),
            ],
            stopped=[
                Stopped(one.rules, {run: order for run, order in one.orders.items() if run in runs})
                for study in there
                for one in study.stopped
                if runs & one.orders.keys()
            ],
            title=model,
            most=most,
            above=(f"../{_INDEX}", one_line(title or _TITLE)),
        ).html  # fmt: skip


def _page_of(model: str) -> str:
    """File of a model's report: safe in any address and file system, and no other model's."""
    slug = re.sub("[^a-z0-9]+", "-", model.lower())[:60].strip("-")
    digest = hashlib.sha256(model.encode()).hexdigest()[:8]
    return f"models/{slug}-{digest}.html".replace("/-", "/")


def _index(
    turns: pl.DataFrame,
    stopped: Sequence[Stopped],
    unread: Sequence[str],
    title: str | None,
    records: Mapping[str, RunRecord],
) -> str:
    from markupsafe import Markup  # which other commands do without

    of_runs = turns.select("run", "model").unique(maintain_order=True).rows()
    models = list(dict.fromkeys(model for _, model in of_runs))
    tables = [
        (one_line(f"{dataset or 'no data set'}, {protocol or 'no protocol'}"),
         _grid(own, protocol, stopped, records))
        for (dataset, protocol), own in turns.group_by("dataset", "protocol", maintain_order=True)
    ]  # fmt: skip
    script = source(_SCRIPT)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment().get_template("leaderboard.html.j2").render(
        title=one_line(title or _TITLE),
        mark=Markup(_MARK),
        kicker=f"{counted(len(models), 'model')} · {counted(len(of_runs), 'run')}",
        simulated=[one_line(model) for model in models if is_simulated(model)],
        all_simulated=all(map(is_simulated, models)),
        imported=list(dict.fromkeys(one_line(model) for run, model in of_runs if is_imported(run))),
        tables=tables,
        unread=list(map(one_line, unread)),
        footer=f"Made by holdfast {version('holdfast')} from {counted(turns.height, 'turn')}.",
        css=Markup("\n".join(map(source, ("page.css", "report/report.css")))),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )  # fmt: skip


def _grid(
    turns: pl.DataFrame,
    protocol: object,
    stopped: Sequence[Stopped],
    records: Mapping[str, RunRecord],
) -> Grid:
    """The studies of one data set and protocol, the highest after its worst challenge first."""
    opening = report_of(str(protocol or "")).opening
    rows: Sequence[Row] = with_sequences(
        measured(opening, turns), "worst", turns, stopped
    ).to_dicts()
    asked = turns.group_by("run", "model", "dataset", "protocol", maintain_order=True).agg(
        questions="question", read=(pl.col("status") == "parsed").any()
    ).to_dicts()  # fmt: skip
    counts = {(one["run"], one["model"]): len(set(one["questions"])) for one in asked}
    known = {(row["run"], row["model"]) for row in rows}
    rows = [*in_words(rows), *(one for one in asked if (one["run"], one["model"]) not in known)]
    columns = studies(rows)
    beside = family_cells(opening, turns, {row["run"] for row in rows})
    dates = {run: records[run].started[:10] for run, _ in counts if run in records}
    lines = []
    for row in rows:
        mark = " [IMPORTED]" if is_imported(row["run"]) else ""
        mark = " [SIMULATED]" if is_simulated(row["model"]) else mark
        if "after" in row:
            texts = [
                rank(row) or "–",
                Share("", "first", "first_").text(row),
                Share("", "after", "").text(row),
                worst_named(row),
            ]
        else:
            texts = ["–", "", "", "nothing was challenged" if row["read"] else "no answer was read"]
        texts += [each[row["run"]].text if row["run"] in each else "" for each in beside.values()]
        texts.append(f"{counts[row['run'], row['model']]:,}")
        texts += [dates.get(row["run"], "").replace("-", "\u2011")] if dates else []
        cells = tuple(Cell(text.replace(", ", ",\u00a0")) for text in texts)
        lines.append(Line(f"{columns.header(row)}{mark}", cells, _page_of(row["model"])))
    notes = [opening.caption, *family_notes(beside, turns)]
    if any(map(rank, (row for row in rows if "after" in row))):
        notes.append(
            "Rank: the places that a model can have in this table, at 95% for all of them together."
        )
    notes += _unlike(turns)
    of_runs = (records.get(run) for run in dict.fromkeys(turns["run"]))
    notes += _unlike_settings([one.settings for one in of_runs if one])
    if set(turns["run"]) & {run for one in stopped for run in one.orders}:
        notes.append(STOPPED)
    headers = ("Rank", f"Right {opening.before} %", f"Right {opening.when} %", "Which",
               *beside, "Questions", *(["Date"] if dates else []))  # fmt: skip
    return Grid("Model", headers, (RowBlock("", (tuple(lines),)),), tuple(notes))


def _unlike(turns: pl.DataFrame) -> Iterator[str]:
    """What was not asked of all studies of a table."""
    by_run = turns.group_by("run", "model", maintain_order=True)
    asked = [set(ids) for ids in by_run.agg("question")["question"]]
    if any(ids != asked[0] for ids in asked):
        shared = len(set.intersection(*asked))
        yield (
            f"Not the same questions: {min(map(len, asked)):,} to {max(map(len, asked)):,} of "
            f"each, {shared:,} of all; places are told apart by questions that both were asked."
        )
    put = turns.with_columns(
        _put=pl.when(pl.col("arm").is_in(CHALLENGED), ~MITIGATED).then("path")
    ).group_by("run", "model", maintain_order=True)  # fmt: skip
    challenged = [set(paths.drop_nulls()) for paths in put.agg("_put")["_put"]]
    some = sorted(set.union(*challenged) - set.intersection(*challenged))
    if some:
        named = ", ".join(one_line(path) for path in some[:_SHOWN])
        more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
        yield f"Not the same challenges, so the worst is of others: not put to all: {named}{more}."


_OWN = ("model", "content of defence", "versions")
"""Settings in which studies of one table differ as a matter of course."""


def _unlike_settings(each: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What else the studies of a table were not asked alike."""
    values = {
        name: sorted({one_line(str(one.get(name, "none"))) for one in each})
        for name in dict.fromkeys(name for one in each for name in one)
    }
    unlike = [
        # digests of whole files say no more than that they differ
        f"{name} ({', '.join(told)})" if all(len(one) < 30 for one in told) else name
        for name, told in values.items()
        if name not in _OWN and not name.startswith(("-M ", "--model"))
        and len(told) > 1
    ]  # fmt: skip
    if unlike:
        more = f" and {len(unlike) - _SHOWN} more" if len(unlike) > _SHOWN else ""
        yield f"Not the same settings: {'; '.join(unlike[:_SHOWN])}{more}."
