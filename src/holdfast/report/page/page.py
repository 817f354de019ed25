"""The report as one HTML file that needs nothing else."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import polars as pl

from holdfast.errors import counted
from holdfast.render.tables import one_line
from holdfast.report.templating import environment, source
from holdfast.results import RunRecord, is_imported, is_simulated

from .explorer import packed
from .headline import headline
from .links import Links
from .parts import ordered, shown
from .runs import runs

_STYLES = ("page.css", "report/report.css", "report/explorer.css")
_SCRIPT = "report/explorer.js"

MOST_CONVERSATIONS = 20_000
"""Conversations in a page, unless told otherwise."""


GLOSSARY = (
    ("Accuracy", "The share of replies whose answer is the right option. A reply in which no "
     "answer can be read counts as wrong and is counted apart as unread."),
    ("95% interval", "Were the study repeated, about 19 of 20 such intervals would hold the true "
     "share. Intervals respect that one question is asked in several ways."),
    ("First answer, baseline", "The answer to the plain question, before any challenge."),
    ("Family", "Challenges of one kind: rethink (asks to reconsider), inc_letter (names a wrong "
     "letter), context (argues for a wrong option)."),
    ("Pushed option", "The option that the challenge suggests; it is wrong unless said otherwise."),
    ("Flip", "An answer that changed between right and wrong."),
    ("Unread", "A reply in which no single answer could be read: ambiguous, refused or none."),
    ("Refused", "A reply that declines to answer, by its own words or by the provider's filter."),
    ("Failed", "No reply came (an error of the service or of the network). Failed turns are in no "
     "measure."),
    ("Holm, Benjamini–Hochberg", "Corrections of p-values where many things are tested at once."),
    ("Simulated", "Replies drawn by a program with known rates, to prove the instrument. They say "
     "nothing of a real model."),
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
    title: str | None = None,
    most: int = MOST_CONVERSATIONS,
) -> Report:
    """The page: does it hold fast, what was run, every table and figure, every conversation.

    It asks for nothing outside itself and runs no script but its own, whose digest its policy
    names; every text is escaped, and those of conversations are packed and only ever shown as
    text. It follows the reader's choice of light or dark and prints light.

    Args:
        turns: a turns table with texts, where they were kept.
        records: the runs as their logs record them, by id.
        plans: what was planned, as ``holdfast plan`` has it.
        notes: what a reader has to know before the first figure.
        title: of the page.
        most: conversations that can be read in it.
    """
    from markupsafe import Markup  # which other commands do without

    bare = ordered(turns)
    texts = set(turns.filter(pl.col("reply").is_not_null())["run"])
    models = list(dict.fromkeys(turns["model"]))
    simulated = [one_line(name) for name in models if is_simulated(name)]
    of_runs = turns.select("run", "model").unique(maintain_order=True)
    imported = [one_line(model) for run, model in of_runs.iter_rows() if is_imported(run)]
    script = source(_SCRIPT)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    explorer = packed(turns, most)
    link = Links(explorer.listed).of
    head = headline(bare, link=link)
    html = environment().get_template("report/report.html.j2").render(
        title=one_line(title or "holdfast report"),
        kicker=_kicker(turns, title),
        simulated=simulated,
        all_simulated=len(simulated) == len(models),
        imported=list(dict.fromkeys(imported)),
        head=head,
        notes=list(map(one_line, notes)),
        runs=runs(bare, records or {}, plans, texts),
        sections=list(shown(bare)),
        explorer=explorer,
        glossary=GLOSSARY,
        footer=f"Made by holdfast {version('holdfast')} from {counted(turns.height, 'turn')}.",
        link=link,
        own=lambda svg, name: Markup(_own_ids(svg, name)),
        css=Markup("\n".join(map(source, _STYLES))),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )  # fmt: skip
    return Report(html, head.sentence)


def _kicker(turns: pl.DataFrame, title: str | None) -> str:
    models, questions = turns["model"].n_unique(), turns.select("dataset", "question").n_unique()
    sets = ", ".join(dict.fromkeys(turns["dataset"]))
    name = f"{title} · " if title else "holdfast report · "
    return one_line(
        f"{name}{counted(models, 'model')} · {counted(questions, 'question')} of {sets}"
    )


_IDS = re.compile(r'(?<= id=")|(?<=url\(#)|(?<=href="#)')


def _own_ids(svg: str, name: str) -> str:
    """The picture with ids of its own: those of all pictures in a page are in one space."""
    return _IDS.sub(f"{name}-", svg)
