"""Leaderboard site: a page with ranked models, and a report for each model."""

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
from holdfast.results.declaration import Share
from holdfast.results.flows import CHALLENGED_ARMS, IS_MITIGATED
from holdfast.results.grid import Cell, Grid, Line, Row, RowBlock, one_line, studies
from holdfast.results.phrases import in_words
from holdfast.results.records import RunRecord, Unfinished
from holdfast.results.runs import is_imported, is_simulated
from holdfast.results.sequential import STOPPED_NOTE, Stopped, with_sequences
from holdfast.results.turns import together
from holdfast.results.worst import rank

from .decision import measured
from .first_screen import family_cells, family_notes, worst_named
from .page import environment, ordered, report_page, source

_INDEX, _TITLE = "index.html", "Leaderboard"
_MARK = '<meta name="generator" content="holdfast leaderboard">'
_PAGE = re.compile(r"models/[a-z0-9-]+\.html")
_SCRIPT = "report/tables.js"
_MOST_PATHS = 5
"""Maximum number of challenges or settings that a note names."""


@dataclass(frozen=True)
class LeaderboardSource:
    """Content of one source.

    Attributes:
        turns: a turns table, with texts if they were stored.
        records: records of the runs from their logs, by run id.
        plans: plans of the runs.
        unfinished_runs: runs that lack questions.
        left_out: sentences on challenges that the runs skipped.
        stopped_runs: runs that stopped when their rules were decided.
    """

    turns: pl.DataFrame
    records: Mapping[str, RunRecord]
    plans: Sequence[Mapping[str, Any]]
    unfinished_runs: Sequence[Unfinished]
    left_out: Sequence[str]
    stopped_runs: Sequence[Stopped]


def is_leaderboard(folder: Path) -> bool:
    """Whether a folder contains a leaderboard and no other files."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    index = folder / _INDEX
    if not index.is_file() or _MARK not in index.read_text("utf-8", "replace"):
        return False
    return all(_PAGE.fullmatch(name) for name in names - {_INDEX})


def leaderboard_pages(
    sources: Sequence[LeaderboardSource],
    unread: Sequence[str],
    title: str | None,
    most_conversations: int,
) -> Iterator[tuple[str | None, str, str]]:
    """Yield the self-contained pages of the site, linked by relative addresses.

    Args:
        sources: the sources. If several contain the same turn, the first one counts.
        unread: error of each source that could not be read.
        title: title of the first page.
        most_conversations: maximum number of conversations in the report of a model.

    Returns:
        Model, file and content of each page. The model of the first page is None.
    """
    turns = together(study.turns for study in sources)
    stopped_runs = [item for study in sources for item in study.stopped_runs]
    models = list(dict.fromkeys(ordered(turns)["model"]))
    records = {run: item for study in sources for run, item in study.records.items()}
    yield None, _INDEX, _index(ordered(turns), stopped_runs, unread, title, records)
    for model in models:
        model_turns = turns.filter(model=model)
        runs = set(model_turns["run"])
        model_sources = [study for study in sources if runs & set(study.turns["run"])]
        yield (
            model,
            _page_of(model),
            report_page(
                model_turns,
                {
                    run: item
                    for study in model_sources
                    for run, item in study.records.items()
                    if run in runs
                },
                [plan for study in model_sources for plan in study.plans],
                notes=[
                    *(
                        str(item)
                        for study in model_sources
                        for item in study.unfinished_runs
                        if item.run in runs
                    ),
                    *dict.fromkeys(line for study in model_sources for line in study.left_out),
                ],
                stopped_runs=[
                    Stopped(
                        item.rules,
                        {run: order for run, order in item.orders.items() if run in runs},
                    )
                    for study in model_sources
                    for item in study.stopped_runs
                    if runs & item.orders.keys()
                ],
                title=model,
                most_conversations=most_conversations,
                above=(f"../{_INDEX}", one_line(title or _TITLE)),
            ).html,
        )


def _page_of(model: str) -> str:
    """Return a unique file name for a model's report, safe in any URL and file system."""
    slug = re.sub("[^a-z0-9]+", "-", model.lower())[:60].strip("-")
    digest = hashlib.sha256(model.encode()).hexdigest()[:8]
    return f"models/{slug}-{digest}.html".replace("/-", "/")


def _index(
    turns: pl.DataFrame,
    stopped_runs: Sequence[Stopped],
    unread: Sequence[str],
    title: str | None,
    records: Mapping[str, RunRecord],
) -> str:
    from markupsafe import Markup  # slow, and other commands do not need it

    of_runs = turns.select("run", "model").unique(maintain_order=True).rows()
    models = list(dict.fromkeys(model for _, model in of_runs))
    tables = [
        (one_line(f"{dataset or 'no data set'}, {protocol or 'no protocol'}"),
         _grid(group, protocol, stopped_runs, records))
        for (dataset, protocol), group in turns.group_by("dataset", "protocol", maintain_order=True)
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
    stopped_runs: Sequence[Stopped],
    records: Mapping[str, RunRecord],
) -> Grid:
    """Return the studies of one data set and protocol, sorted by worst case, best first."""
    opening = report_of(str(protocol or "")).opening
    rows: Sequence[Row] = with_sequences(
        measured(opening, turns), "worst", turns, stopped_runs
    ).to_dicts()
    question_lists = turns.group_by("run", "model", "dataset", "protocol", maintain_order=True).agg(
        questions="question", read=(pl.col("status") == "parsed").any()
    ).to_dicts()  # fmt: skip
    counts = {(item["run"], item["model"]): len(set(item["questions"])) for item in question_lists}
    runs_with_rows = {(row["run"], row["model"]) for row in rows}
    rows = [
        *in_words(rows),
        *(item for item in question_lists if (item["run"], item["model"]) not in runs_with_rows),
    ]
    columns = studies(rows)
    beside = family_cells(opening, turns, {row["run"] for row in rows})
    dates = {run: records[run].start[:10] for run, _ in counts if run in records}
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
            texts = ["–", "", "", "no challenge" if row["read"] else "no parsed answer"]
        texts += [
            cells_by_run[row["run"]].text if row["run"] in cells_by_run else ""
            for cells_by_run in beside.values()
        ]
        texts.append(f"{counts[row['run'], row['model']]:,}")
        texts += [dates.get(row["run"], "").replace("-", "\u2011")] if dates else []
        cells = tuple(Cell(text.replace(", ", ",\u00a0")) for text in texts)
        lines.append(Line(f"{columns.header(row)}{mark}", cells, _page_of(row["model"])))
    notes = [opening.caption, *family_notes(beside, turns)]
    if any(map(rank, (row for row in rows if "after" in row))):
        notes.append(
            "Rank: range of ranks that a model can have in this table, at 95% for all models "
            "together."
        )
    notes += _unlike(turns)
    of_runs = (records.get(run) for run in dict.fromkeys(turns["run"]))
    notes += _unlike_settings([item.settings for item in of_runs if item])
    if set(turns["run"]) & {run for item in stopped_runs for run in item.orders}:
        notes.append(STOPPED_NOTE)
    headers = ("Rank", f"Right {opening.before} %", f"Right {opening.when} %", "Which",
               *beside, "Questions", *(["Date"] if dates else []))  # fmt: skip
    return Grid("Model", headers, (RowBlock("", (tuple(lines),)),), tuple(notes))


def _unlike(turns: pl.DataFrame) -> Iterator[str]:
    """Yield notes on questions and challenges that only some models of a table were asked."""
    by_run = turns.group_by("run", "model", maintain_order=True)
    question_sets = [set(ids) for ids in by_run.agg("question")["question"]]
    if any(ids != question_sets[0] for ids in question_sets):
        shared_count = len(set.intersection(*question_sets))
        yield (
            f"The models were asked different questions: {min(map(len, question_sets)):,} to "
            f"{max(map(len, question_sets)):,} per model, {shared_count:,} in common. Ranks "
            "use the questions that both models of a pair were asked."
        )
    turns_put = turns.with_columns(
        _put=pl.when(pl.col("arm").is_in(CHALLENGED_ARMS), ~IS_MITIGATED).then("path")
    ).group_by("run", "model", maintain_order=True)  # fmt: skip
    path_sets = [set(paths.drop_nulls()) for paths in turns_put.agg("_put")["_put"]]
    differing = sorted(set.union(*path_sets) - set.intersection(*path_sets))
    if differing:
        path_names = ", ".join(one_line(path) for path in differing[:_MOST_PATHS])
        more = f" and {len(differing) - _MOST_PATHS} more" if len(differing) > _MOST_PATHS else ""
        yield (
            f"The models faced different challenges. Missing for some models: {path_names}{more}."
        )


_MODEL_SETTINGS = ("model", "content of defence", "versions")
"""Settings that always differ between the studies of a table."""


def _unlike_settings(settings_of_runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a note on settings that differ between the studies of a table."""
    values = {
        name: sorted(
            {one_line(str(run_settings.get(name, "none"))) for run_settings in settings_of_runs}
        )
        for name in dict.fromkeys(
            name for run_settings in settings_of_runs for name in run_settings
        )
    }
    unlike = [
        # a digest of a file tells readers only that the files differ
        f"{name} ({', '.join(setting_values)})"
        if all(len(run_settings) < 30 for run_settings in setting_values)
        else name
        for name, setting_values in values.items()
        if name not in _MODEL_SETTINGS
        and not name.startswith(("-M ", "--model"))
        and len(setting_values) > 1
    ]
    if unlike:
        more = f" and {len(unlike) - _MOST_PATHS} more" if len(unlike) > _MOST_PATHS else ""
        yield f"The models ran with different settings: {'; '.join(unlike[:_MOST_PATHS])}{more}."
