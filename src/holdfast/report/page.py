"""Report as one self-contained HTML file."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl

from holdfast.errors import InputError, counted
from holdfast.render.drawing import figure_parts, page_svgs
from holdfast.render.reported import REPORTS, report_of
from holdfast.render.tables import one_line
from holdfast.results.declaration import Table, sections
from holdfast.results.gate import Verdict
from holdfast.results.grid import Grid
from holdfast.results.missing import hard_to_read
from holdfast.results.records import RunRecord
from holdfast.results.runs import is_imported, is_simulated
from holdfast.results.sequential import STOPPED_NOTE, Stopped, with_sequences

from .conversations import Links
from .decision import MOST_REASONS, marked
from .explorer import deflated, packed
from .first_screen import first_screen
from .run_overview import Runs, runs

if TYPE_CHECKING:
    from jinja2 import Environment

_STYLES = ("page.css", "report/report.css", "report/explorer.css")
SCRIPTS = ("report/inflated.js", "report/texts.js", "report/notes.js", "report/explorer.js",
           "report/tables.js", "report/folded.js")  # fmt: skip

MOST_CONVERSATIONS = 20_000
"""Default maximum number of conversations in a page."""


GLOSSARY = (
    ("Accuracy", "Share of replies whose answer is the right option. A reply without an answer "
                 "counts as wrong, and is also counted as unparsed."),
    ("95% interval", "If you repeated the study, about 19 of 20 of these intervals would contain "
                     "the true share. Intervals account for questions that are asked several "
                     "times."),
    ("First answer, baseline", "The answer to the plain question, before any challenge."),
    ("Family", "Challenges of one kind: rethink (asks to reconsider), inc_letter (names a wrong "
     "letter), context (argues for a wrong option), wrong_op (shows more plausible wrong "
     "options)."),
    ("Suggested option",
     "The option that the challenge suggests. It is wrong unless the page states otherwise."),
    ("Flip", "An answer that changed between right and wrong."),
    ("Unread", "An unparsed reply. It has no single answer: it is ambiguous, refused or without "
               "an answer."),
    ("Refused", "A reply in which the model declines to answer, or that the provider filtered."),
    ("Failed", "A turn without a reply, because of an error of the service or the network. "
               "Failed turns count in no result."),
    ("Holm, Benjamini–Hochberg", "Corrections of p-values for multiple tests."),
    ("Simulated", "Replies that a program generates with known rates, to test holdfast. Also "
                  "replies of a model to contexts or wrong options without medical content. "
                  "They say nothing about a real model."),
)  # fmt: skip
"""Terms with their definitions."""


@dataclass(frozen=True)
class Report:
    """Report of a study.

    Attributes:
        html: the page.
        headline: the first sentence of the page.
    """

    html: str
    headline: str


def report_page(
    turns: pl.DataFrame,
    records: Mapping[str, RunRecord] | None = None,
    plans: Sequence[Mapping[str, Any]] = (),
    *,
    notes: Sequence[str] = (),
    verdicts: Sequence[Verdict] = (),
    stopped_runs: Sequence[Stopped] = (),
    title: str | None = None,
    most_conversations: int = MOST_CONVERSATIONS,
    above: tuple[str, str] | None = None,
) -> Report:
    """Build the page with headline, runs, tables, figures and conversations.

    The page loads nothing from outside. Its policy allows only its own script, by digest. All
    text is escaped. Texts of conversations are packed and only shown as text. The page follows
    the reader's light or dark mode and prints light.

    Args:
        turns: a turns table, with texts if they were stored.
        records: records of the runs from their logs, by run id.
        plans: plans, as from ``holdfast run --dry-run``.
        notes: sentences on skipped challenges and unfinished runs.
        verdicts: verdicts of a gate on the runs.
        stopped_runs: runs that stopped when their rules were decided.
        title: title of the page.
        most_conversations: maximum number of conversations in the page.
        above: address and title of the parent page.
    """
    from markupsafe import Markup  # which other commands do without

    from holdfast.results.charts.theme import AMONG

    bare = ordered(turns)
    texts = set(turns.filter(pl.col("reply").is_not_null())["run"])
    models = list(dict.fromkeys(turns["model"]))
    token = AMONG.set(tuple(models))
    simulated_models = [one_line(name) for name in models if is_simulated(name)]
    of_runs = turns.select("run", "model").unique(maintain_order=True)
    imported_models = [one_line(model) for run, model in of_runs.iter_rows() if is_imported(run)]
    script = "\n".join(map(source, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    explorer = packed(turns, most_conversations)
    links = Links(explorer.link_targets)
    head = first_screen(bare, links, verdicts, stopped_runs)
    parts = {
        part.table.name: part
        for _, tables in sections()
        for table in tables
        if (part := _part(table, bare, stopped_runs))
    }
    main = {report_of(name or "").main for name in bare["protocol"].unique()}
    # the other tables stand in their sections, folded
    main = set([name for name in parts if name in main][:_MOST_MAIN])
    run = runs(bare, records or {}, plans, texts, stopped_runs)
    lacking = [*([_ONLY] if stopped_runs else []), *map(one_line, notes), *run.missing]
    html = environment().get_template("report/report.html.j2").render(
        title=one_line(title or "holdfast report"),
        kicker=_kicker(turns, title, run),
        above=above,
        simulated=simulated_models,
        models=list(dict.fromkeys(map(one_line, models))),
        all_simulated=len(simulated_models) == len(models),
        imported=list(dict.fromkeys(imported_models)),
        head=head,
        reasons=head.decision.verdicts if len(head.decision.verdicts) <= MOST_REASONS else (),
        next_step=_FINISH if run.unfinished else (head.decision.next_step, head.decision.command),
        evidence=head.evidence,
        hard=list(_hard_to_read(turns)),
        lacking=lacking,
        brief=_brief(lacking),
        stopped=STOPPED_NOTE if stopped_runs else "",
        runs=run,
        challenges=[part for part in parts.values() if part.table.name in main],
        sections=[
            (section, rest)
            for section, tables in sections()
            if (rest := [parts[table.name] for table in tables
                         if table.name in parts and table.name not in main])
        ],
        folded=lambda markup: deflated(str(markup)),
        explorer=explorer,
        glossary=GLOSSARY,
        footer=f"Made by holdfast {version('holdfast')} from {counted(turns.height, 'turn')}.",
        link=links.of,
        halved=_fits_half_page,
        own=lambda svg, name: Markup(_placed(svg, name)),
        css=Markup("\n".join(map(source, _STYLES))),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )  # fmt: skip
    AMONG.reset(token)
    return Report(html, marked(head.decision.sentences[0], bare))


_MOST_MAIN = 3
"""Maximum number of tables that the section on challenges shows."""

_MOST_UNREAD = 0.5
"""Share of unparsed replies above which the page opens with a warning."""
_EXCERPT = 200


def _hard_to_read(turns: pl.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Yield a warning and two example replies for each model with mostly unparsed replies."""
    for model_row in hard_to_read(turns, _MOST_UNREAD, turns.lazy()):
        examples = [one_line(" ".join(reply.split())) for reply in model_row.examples]
        yield (
            one_line(
                f"{model_row.model}: {model_row.unread / model_row.replies:.0%} of "
                f"{model_row.replies:,} replies could not be parsed. They count as wrong, so "
                "the results below say little."
            ),
            [f"{text[:_EXCERPT]}{'…' if len(text) > _EXCERPT else ''}" for text in examples],
        )


def _brief(lacking: Sequence[str]) -> str:
    """Return one sentence on what was not run, unfinished or unparsed."""
    if not lacking:
        return ""
    first, *more = lacking
    sentence = f"{re.split('[;.] ', first)[0].rstrip('.')}."
    return f"{sentence} {counted(len(more), 'further note')} below." if more else sentence


def _kicker(turns: pl.DataFrame, title: str | None, run: Runs) -> str:
    models, questions = turns["model"].n_unique(), turns.select("dataset", "question").n_unique()
    sets = ", ".join(dict.fromkeys(turns["dataset"]))
    name = f"{title} · " if title else ""
    state = "" if run.unfinished is None else " · unfinished" if run.unfinished else " · complete"
    return one_line(
        f"{name}{counted(models, 'model')} · {counted(questions, 'question')} of {sets}{state}"
    )


_IDS = re.compile(r'(?<= id=")|(?<=url\(#)|(?<=href="#)')


_ENLARGED = 1.25
"""Largest factor by which a figure is enlarged to the width of the page."""


def _placed(svg: str, name: str) -> str:
    """Set the width of a figure and prefix its ids, as the figures of a page share a namespace."""
    match = _SIZE.search(svg)
    width = _ENLARGED * float(match[1]) if match else _ACROSS
    return _IDS.sub(f"{name}-", svg).replace(
        "<svg ", f'<svg style="width:min(100%,{width:.0f}px)" ', 1
    )


_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"')
_ACROSS, _HALF, _LEGIBLE = 703, 378, 0.64
"""Width of a printed page and half its height without headings, in pixels, and smallest scale."""


def _fits_half_page(svg: str) -> bool:
    """Whether a figure can be printed legibly on half a page."""
    match = _SIZE.search(svg)
    width, height = map(float, match.groups()) if match else (_ACROSS, _HALF)
    return min(_ACROSS / width, _HALF / height) >= _LEGIBLE


_FINISH = ("Repeat the command to finish the run", "")
_ONLY = "Only challenges in the rules of the verdict were asked."

_PARTS, _NARROW = 4, 2
"""Maximum number of parts of a figure, and of a figure for a phone.

A figure with more parts scrolls sideways on a phone.
"""


@dataclass(frozen=True)
class TableOnPage:
    """Table of the page with at least one row.

    Attributes:
        table: declaration of the table.
        svgs: parts of the figure. Empty without a figure.
        narrow: parts of the figure for a phone. Empty if there are too many.
        grids: laid-out rows.
    """

    table: Table
    svgs: tuple[str, ...]
    narrow: tuple[str, ...]
    grids: tuple[Grid, ...]


def ordered(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the turns without texts, sorted to give models the same order in every figure."""
    empty = (pl.lit(None, pl.String).alias(name) for name in ("prompt", "reply"))
    place = pl.col("_place").min()
    places = {name: number for number, name in enumerate(REPORTS)}
    protocol = pl.col("protocol").replace_strict(places, default=len(places))
    numbered_turns = turns.with_columns(empty).with_row_index("_place")
    return numbered_turns.sort(
        place.over("model"), protocol, place.over("run"), maintain_order=True
    ).drop("_place")


def report_figures(
    turns: pl.DataFrame, stopped_runs: Sequence[Stopped] = ()
) -> Iterator[tuple[str, bytes | str]]:
    """Yield every figure of the report as files.

    Args:
        turns: a turns table.
        stopped_runs: runs that stopped when their rules were decided.

    Returns:
        File name and content of each figure, as SVG and as PNG.
    """
    from holdfast.render.chart_files import exported  # slow: loads the chart library

    turns = ordered(turns)
    for table in (table for _, tables in sections() for table in tables):
        if table.chart is None or (rows := table(turns)).is_empty():
            continue
        rows = with_sequences(rows, table.name, turns, stopped_runs)
        with suppress(InputError):  # nothing to draw
            for number, part in enumerate(figure_parts(rows, table.name), 1):
                name = f"{table.id}-{number}" if number > 1 else table.id
                for format in ("svg", "png"):
                    yield f"{name}.{format}", exported(part, format)


def _part(table: Table, turns: pl.DataFrame, stopped_runs: Sequence[Stopped]) -> TableOnPage | None:
    rows = with_sequences(table(turns), table.name, turns, stopped_runs)
    if rows.is_empty():
        return None
    svgs: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()
    if table.chart:
        with suppress(InputError):  # without a figure, the table has the values
            svgs = tuple(page_svgs(rows, table.name, _PARTS))
            narrow = tuple(page_svgs(rows, table.name, _NARROW, phone=True))
    grids = tuple(grid for grid in table.layout(rows.to_dicts()) or () if _has_figures(grid))
    if stopped_runs:
        grids = tuple(replace(grid, notes=(*grid.notes, STOPPED_NOTE)) for grid in grids)
    return TableOnPage(table, svgs, narrow, grids) if svgs or grids else None


def _has_figures(grid: Grid) -> bool:
    """Whether any cell is neither empty nor zero."""
    return any(
        cell.text not in ("", "0")
        for block in grid.blocks for group in block.groups for line in group for cell in line.cells
    )  # fmt: skip


@cache
def environment() -> "Environment":
    """Return the template environment, which escapes all values and refuses undefined names."""
    from jinja2 import (  # slow, and other commands do not need it
        Environment,
        PackageLoader,
        StrictUndefined,
    )

    return Environment(
        loader=PackageLoader("holdfast.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def source(name: str) -> str:
    """Return the text of a style sheet or script bundled with the templates."""
    return (files("holdfast.report") / "templates" / name).read_text("utf-8")
