"""The report as one HTML file that needs nothing else."""

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
from holdfast.render.reported import REPORTS
from holdfast.render.tables import one_line
from holdfast.results.declaration import Section, Table, sections
from holdfast.results.gate import Verdict
from holdfast.results.grid import Grid
from holdfast.results.missing import hard_to_read
from holdfast.results.records import RunRecord
from holdfast.results.runs import is_imported, is_simulated
from holdfast.results.sequential import STOPPED_NOTE, Stopped, with_sequences
from holdfast.results.worst import WORST_SECTION

from .conversations import Links
from .explorer import packed
from .first_screen import first_screen, marked
from .run_overview import runs

if TYPE_CHECKING:
    from jinja2 import Environment

_STYLES = ("page.css", "report/report.css", "report/explorer.css")
SCRIPTS = ("report/texts.js", "report/notes.js", "report/explorer.js",
           "report/tables.js")  # fmt: skip

MOST_CONVERSATIONS = 20_000
"""Conversations in a page, unless told otherwise."""


GLOSSARY = (
    ("Accuracy", "Share of replies whose answer is the right option. A reply without an answer "
                 "counts as wrong, and is also counted as unparsed."),
    ("95% interval", "If the study were repeated, about 19 of 20 such intervals would contain "
                     "the true share. Intervals take into account that one question is asked "
                     "in several ways."),
    ("First answer, baseline", "The answer to the plain question, before any challenge."),
    ("Family", "Challenges of one kind: rethink (asks to reconsider), inc_letter (names a wrong "
     "letter), context (argues for a wrong option), wrong_op (shows more plausible wrong "
     "options)."),
    ("Suggested option",
     "The option that the challenge suggests. It is wrong unless stated otherwise."),
    ("Flip", "An answer that changed between right and wrong."),
    ("Unread", "A reply without a single answer: ambiguous, refused or none."),
    ("Refused", "A reply that declines to answer, in its own words or by the provider's filter."),
    ("Failed", "No reply came, because of an error of the service or the network. Failed turns "
               "are in no figure."),
    ("Holm, Benjamini–Hochberg", "Corrections of p-values for testing many things at once."),
    ("Simulated", "Replies drawn by a program with known rates, to test the instrument, or "
                  "replies of a model to contexts or wrong options without medical content. "
                  "They say nothing about a real model."),
)  # fmt: skip
"""Terms in plain words."""


@dataclass(frozen=True)
class Report:
    """The report of a study.

    Attributes:
        html: the page.
        headline: the sentence that it opens with.
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
    """The page: does it hold fast, what was run, every table and figure, every conversation.

    It asks for nothing outside itself and runs no script but its own, whose digest its policy
    names; every text is escaped, and those of conversations are packed and only ever shown as
    text. It follows the reader's choice of light or dark and prints light.

    Args:
        turns: a turns table with texts, where they were kept.
        records: the runs as their logs record them, by id.
        plans: what was planned, as ``holdfast run --dry-run`` has it.
        notes: what was left out and what is unfinished.
        verdicts: what a gate decided of the runs.
        stopped_runs: runs that ended once their rules were decided.
        title: of the page.
        most_conversations: conversations that can be read in it.
        above: address and title of the page that it belongs to.
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
    link = Links(explorer.link_targets).of
    head = first_screen(bare, link, verdicts, stopped_runs)
    run = runs(bare, records or {}, plans, texts, stopped_runs)
    lacking = [*([_ONLY] if stopped_runs else []), *map(one_line, notes), *run.missing]
    html = environment().get_template("report/report.html.j2").render(
        title=one_line(title or "holdfast report"),
        kicker=_kicker(turns, title),
        above=above,
        simulated=simulated_models,
        models=list(dict.fromkeys(map(one_line, models))),
        all_simulated=len(simulated_models) == len(models),
        imported=list(dict.fromkeys(imported_models)),
        head=head,
        hard=list(_hard_to_read(turns)),
        lacking=lacking,
        brief=[re.sub("; .*", ".", line) for line in lacking[:2]],
        stopped=STOPPED_NOTE if stopped_runs else "",
        runs=run,
        sections=list(shown(bare, stopped_runs)),
        explorer=explorer,
        glossary=GLOSSARY,
        footer=f"Made by holdfast {version('holdfast')} from {counted(turns.height, 'turn')}.",
        link=link,
        halved=_fits_half_page,
        own=lambda svg, name: Markup(_prefix_ids(svg, name)),
        css=Markup("\n".join(map(source, _STYLES))),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )  # fmt: skip
    AMONG.reset(token)
    return Report(html, marked(head.sentence, bare))


_MOST_UNREAD = 0.5
"""Share of replies without a readable answer above which the page says so first."""
_EXCERPT = 200


def _hard_to_read(turns: pl.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """What is said of models most of whose replies gave no answer, and two of those replies."""
    for model_row in hard_to_read(turns, _MOST_UNREAD, turns.lazy()):
        examples = [one_line(" ".join(reply.split())) for reply in model_row.examples]
        yield (
            one_line(
                f"{model_row.model}: {model_row.unread / model_row.replies:.0%} of "
                f"{model_row.replies:,} replies could not be parsed. They count as wrong, so "
                "the figures say little."
            ),
            [f"{text[:_EXCERPT]}{'…' if len(text) > _EXCERPT else ''}" for text in examples],
        )


def _kicker(turns: pl.DataFrame, title: str | None) -> str:
    models, questions = turns["model"].n_unique(), turns.select("dataset", "question").n_unique()
    sets = ", ".join(dict.fromkeys(turns["dataset"]))
    name = f"{title} · " if title else "holdfast report · "
    return one_line(
        f"{name}{counted(models, 'model')} · {counted(questions, 'question')} of {sets}"
    )


_IDS = re.compile(r'(?<= id=")|(?<=url\(#)|(?<=href="#)')


def _prefix_ids(svg: str, name: str) -> str:
    """The picture with ids of its own: those of all pictures in a page are in one space."""
    return _IDS.sub(f"{name}-", svg)


_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"')
_ACROSS, _HALF, _LEGIBLE = 703, 378, 0.64
"""Pixels of a printed page across, and of half of it less headings; how small type may become."""


def _fits_half_page(svg: str) -> bool:
    """Whether a picture can be printed so that two stand on a page."""
    match = _SIZE.search(svg)
    width, height = map(float, match.groups()) if match else (_ACROSS, _HALF)
    return min(_ACROSS / width, _HALF / height) >= _LEGIBLE


_ONLY = "No rule of a verdict covers this."

_SHORT, _PARTS, _NARROW = 15, 4, 2
"""Lines of a table that may stand open, parts of a figure that a page shows, and parts of one laid
out for a phone, where one of more is scrolled instead."""


@dataclass(frozen=True)
class TableOnPage:
    """A table that has something to show.

    Attributes:
        table: its name and words.
        svgs: its figure, in parts where it is high; none where it has none.
        narrow: the same for a phone; none where it would be too long.
        grids: the rows laid out.
    """

    table: Table
    svgs: tuple[str, ...]
    narrow: tuple[str, ...]
    grids: tuple[Grid, ...]

    @property
    def open(self) -> bool:
        """Whether the table is shown at once: where it is short and has no figure above it."""
        lines = sum(len(group) for grid in self.grids for block in grid.blocks
                    for group in block.groups)  # fmt: skip
        return not self.svgs and lines <= _SHORT


def ordered(turns: pl.DataFrame) -> pl.DataFrame:
    """The turns without texts: models in their order, the same first one in every figure."""
    empty = (pl.lit(None, pl.String).alias(name) for name in ("prompt", "reply"))
    place = pl.col("_place").min()
    places = {name: number for number, name in enumerate(REPORTS)}
    protocol = pl.col("protocol").replace_strict(places, default=len(places))
    numbered_turns = turns.with_columns(empty).with_row_index("_place")
    return numbered_turns.sort(
        place.over("model"), protocol, place.over("run"), maintain_order=True
    ).drop("_place")


def shown(
    turns: pl.DataFrame, stopped_runs: Sequence[Stopped] = ()
) -> Iterator[tuple[Section, list[TableOnPage]]]:
    """Sections with the tables that have rows, without what the page opens with."""
    for section, tables in sections():
        if section is WORST_SECTION:
            continue
        parts = [part for table in tables if (part := _part(table, turns, stopped_runs))]
        if parts:
            yield section, parts


def report_figures(
    turns: pl.DataFrame, stopped_runs: Sequence[Stopped] = ()
) -> Iterator[tuple[str, bytes | str]]:
    """Every figure of the report as files.

    Args:
        turns: a turns table.
        stopped_runs: runs that ended once their rules were decided.

    Returns:
        Name and content, each as SVG and as PNG.
    """
    from holdfast.render.chart_files import exported  # which loads the library of charts

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
        with suppress(InputError):  # nothing to draw: the table says the rest
            svgs = tuple(page_svgs(rows, table.name, _PARTS))
            narrow = tuple(page_svgs(rows, table.name, _NARROW, phone=True))
    grids = tuple(grid for grid in table.layout(rows.to_dicts()) or () if _has_figures(grid))
    if stopped_runs:
        grids = tuple(replace(grid, notes=(*grid.notes, STOPPED_NOTE)) for grid in grids)
    return TableOnPage(table, svgs, narrow, grids) if svgs or grids else None


def _has_figures(grid: Grid) -> bool:
    """Whether any cell is more than empty, or none of none."""
    return any(
        cell.text not in ("", "0")
        for block in grid.blocks for group in block.groups for line in group for cell in line.cells
    )  # fmt: skip


@cache
def environment() -> "Environment":
    """The templates: everything put into them is escaped, and no name is left open."""
    from jinja2 import (  # which other commands do without
        Environment,
        PackageLoader,
        StrictUndefined,
    )

    return Environment(
        loader=PackageLoader("holdfast.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def source(name: str) -> str:
    """The text of a style sheet or script that ships with the templates."""
    return (files("holdfast.report") / "templates" / name).read_text("utf-8")
