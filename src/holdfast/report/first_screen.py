"""First screen of a page: the decision, one picture, three conversations; and the models' grid."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

import polars as pl

from holdfast.errors import InputError
from holdfast.render.drawing import page_svgs
from holdfast.render.reported import Headline, as_low
from holdfast.render.tables import one_line
from holdfast.results.controls import inert_controls
from holdfast.results.declaration import Share, steps_of
from holdfast.results.flows import CHALLENGED_ARMS
from holdfast.results.gate import Verdict
from holdfast.results.grid import Cell, Grid, Line, Row, RowBlock
from holdfast.results.phrases import in_words
from holdfast.results.remaining import remaining
from holdfast.results.retention import given_up, retention
from holdfast.results.sequential import Looked, Stopped, look, with_sequences
from holdfast.results.worst import rank

from .conversations import GROUPS, Links, conversations_link
from .decision import Finding, Recommendation, choose_opening, decide
from .gate_summary import gate_sentence, looked_sentence

_OUTCOMES = ("fail", "undecided", "pass")
_MOST_NAMED = 5
"""Maximum number of models named in a note."""


@dataclass(frozen=True)
class Screen:
    """First screen of a page, and the grid of all models.

    Attributes:
        decision: the sentences, the verdict on each model and the next step.
        svgs: the picture of the finding. Empty if there is nothing to draw.
        narrow: the picture for a phone.
        evidence: label and address of the conversations that show the finding.
        grid: a row for each study, sorted by worst case, best first. None without challenges.
        verdicts: outcome and sentence of each rule.
    """

    decision: Recommendation
    svgs: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    grid: Grid | None = None
    verdicts: tuple[tuple[str, str], ...] = ()

    @property
    def decided(self) -> str:
        """Return how many rules failed, are undecided and passed."""
        return _count_outcomes([outcome for outcome, _ in self.verdicts])


def first_screen(
    turns: pl.DataFrame,
    links: Links,
    verdicts: Sequence[Verdict] = (),
    stopped_runs: Sequence[Stopped] = (),
) -> Screen:
    """Build the first screen of a page.

    Args:
        turns: a turns table. Texts are not used.
        links: addresses of the conversations in the page.
        verdicts: verdicts of a gate.
        stopped_runs: runs that stopped when their rules were decided.
    """
    look_results = [
        result
        for stopped_run in stopped_runs
        for result in look(
            turns.filter(pl.col("run").is_in(list(stopped_run.orders))),
            stopped_run.rules,
            stopped_run.orders,
        )
    ]
    both: list[Verdict | Looked] = [*verdicts, *look_results]
    decision = decide(turns, both)
    sentences = [(result.outcome, gate_sentence(result, origin=False)) for result in verdicts]
    sentences += [(result.outcome, looked_sentence(result)) for result in look_results]
    sentences.sort(key=lambda result: _OUTCOMES.index(result[0]))
    chosen = choose_opening(turns)
    if chosen is None or decision.finding is None:
        return Screen(decision, verdicts=tuple(sentences))
    opening, frame, names = chosen
    frame = with_sequences(frame, "worst", turns, stopped_runs)
    svgs, narrow = _picture(turns, frame, decision.finding, stopped_runs)
    return Screen(
        decision,
        svgs,
        narrow,
        tuple(_evidence(links, decision.finding)),
        _grid(turns, opening, frame.to_dicts(), names, verdicts),
        tuple(sentences),
    )


def _picture(
    turns: pl.DataFrame, frame: pl.DataFrame, finding: Finding, stopped_runs: Sequence[Stopped]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the picture of the finding, for a desk and for a phone: one chart each."""
    rows = remaining(turns).filter(dataset=finding.dataset, protocol=finding.protocol)
    table = "remaining"
    if rows.is_empty():
        rows, table = frame, "worst"
    rows = with_sequences(rows, table, turns, stopped_runs)
    svgs: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()
    with suppress(InputError):  # without a picture, the tables have the same values
        svgs = tuple(page_svgs(rows, table, 1))
        narrow = tuple(page_svgs(rows, table, 1, phone=True)) or svgs
    return svgs, narrow


_GAVE_UP = GROUPS["given-up"]


def _evidence(links: Links, finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield label and address of up to three conversations.

    Questions are ordered by a digest of their ids, which no outcome affects. With two or more
    models, the first question counts on which the best model keeps its right answer and the last
    one gives it up under the same challenge. Both of its conversations are included. With one
    model, the first conversation of each outcome counts. The last conversation is the first one of
    the next question, whatever its outcome.
    """
    listed = links.listed.filter(dataset=finding.dataset, protocol=finding.protocol)
    if listed["arm"].is_in(CHALLENGED_ARMS).any():
        listed = listed.filter(pl.col("arm").is_in(CHALLENGED_ARMS))
    if finding.path:
        listed = listed.filter(path=finding.path)
    ids = listed["question"].unique()
    digests = pl.DataFrame(
        {"question": ids, "_digest": [sha256(id.encode()).hexdigest() for id in ids]},
        {"question": pl.String, "_digest": pl.String},
    )
    rows = listed.join(digests, on="question").sort("_digest", "epoch", maintain_order=True)
    (first_run, first_name), (last_run, last_name) = finding.runs[0], finding.runs[-1]
    kept = rows.filter(pl.col("run") == first_run, pl.col("flip") == "kept")
    gave_up = rows.filter(pl.col("run") == last_run, pl.col("flip").is_in(_GAVE_UP))
    if first_run != last_run:
        key = ["question", "epoch", "arm", "path"]
        on_both = gave_up.join(kept.select(key), on=key, how="semi", maintain_order="left")
        if on_both.height:
            gave_up = on_both
            kept = kept.join(on_both.head(1).select(key), on=key, how="semi")
    any_row = rows.filter(pl.col("run") == last_run)
    is_pair = kept.height and gave_up.height and first_run != last_run
    under = f" under {steps_of(finding.path)}" if finding.path else ""
    choices = [
        (f"{last_name} gives up its right answer{under}", gave_up),
        (f"{first_name} keeps {'it' if is_pair else 'its right answer'}", kept),
        ("The next question", any_row),
    ]
    shown = rows.clear()
    for label, candidates in choices:
        new = candidates.join(shown.select("question"), on="question", how="anti")
        new = candidates if label == choices[1][0] else new
        if new.height:
            chosen = new.head(1)
            shown = pl.concat([shown, chosen])
            row = chosen.row(0, named=True)
            keys = ("protocol", "run", "arm", "path", "question", "epoch")
            filters = {name: row[name] for name in keys if row[name]}
            yield one_line(label), conversations_link(**filters)


def _grid(
    turns: pl.DataFrame,
    opening: Headline,
    rows: Sequence[Row],
    names: Sequence[str],
    verdicts: Sequence[Verdict],
) -> Grid:
    runs = {row["run"] for row in rows}
    beside = family_cells(opening, turns.filter(pl.col("run").is_in(runs)), runs)
    outcomes_by_run: dict[str, list[str]] = {
        verdict.run: [] for verdict in verdicts if verdict.run in runs
    }
    for verdict in verdicts:
        outcomes_by_run.get(verdict.run, []).append(verdict.outcome)
    has_ranks = any(map(rank, rows))
    has_first = any(row["first"] is not None for row in rows)
    lines = []
    for row, words, name in zip(rows, in_words(rows), names, strict=True):
        first, after = (
            Share("", name, ends).text(row).replace(", ", ",\u00a0")
            for name, ends in (("first", "first_"), ("after", ""))
        )
        link_filters = {**row, **opening.of(row)}
        cells = [Cell(first)] if has_first else []
        cells += [Cell(after), Cell(worst_named(words), of=link_filters, n=row["asked"])]
        cells += [column_cells.get(row["run"], Cell("")) for column_cells in beside.values()]
        cells += [Cell(rank(row))] if has_ranks else []
        cells += (
            [Cell(_count_outcomes(outcomes_by_run.get(row["run"], [])))] if outcomes_by_run else []
        )
        lines.append(Line(name, tuple(cells)))
    headers = (
        *([f"Right {opening.before} %"] if has_first else []),
        f"Right {opening.when} %",
        "Which",
        *beside,
        *(["Rank"] if has_ranks else []),
        *(["Rules"] if outcomes_by_run else []),
    )
    notes = [
        opening.caption,
        *family_notes(beside, turns),
        *_given_up_notes(turns, runs, rows, names),
    ]
    if has_ranks:
        notes.append(
            "Rank: range of ranks that the model can have, at 95% for all models together."
        )
    return Grid("Model", headers, (RowBlock("", (tuple(lines),)),), tuple(notes))


def _given_up_notes(
    turns: pl.DataFrame, runs: Container[str], rows: Sequence[Row], names: Sequence[str]
) -> Iterator[str]:
    """Yield a note on the right answers that each model gave up under challenge."""
    run_outcomes = {
        row["run"]: given_up(row)
        for row in retention(turns).to_dicts()
        if row["path"] is None and row["family"] is None and row["n_right"] and row["run"] in runs
    }
    phrases = [
        f"{name} {run_outcomes[row['run']]}"
        for row, name in zip(rows, names, strict=True)
        if run_outcomes.get(row["run"])
    ]
    if phrases:
        more = len(phrases) - _MOST_NAMED
        listing = "; ".join([*phrases[:_MOST_NAMED], f"and {more} more"] if more > 0 else phrases)
        yield f"Right answers that models gave up under any challenge: {listing}."


def family_cells(
    opening: Headline, turns: pl.DataFrame, runs: Container[str]
) -> dict[str, Mapping[str, Cell]]:
    """Return the further, non-empty cells of these runs by header (``Headline.beside``)."""
    return {
        head: cells
        for head, cells in opening.beside(turns).items()
        if any(run in runs for run in cells)
    }


def family_notes(beside: Mapping[str, Mapping[str, Cell]], turns: pl.DataFrame) -> Iterator[str]:
    """Yield a note that explains the numbers in brackets."""
    if any("(" in cell.text for cells in beside.values() for cell in cells.values()):
        of_texts = " (for texts: after a neutral text)"
        yield (
            "Columns for kinds of challenge: share of right first answers that the model "
            "retains. In brackets: difference in percentage points from merely repeating the "
            f"question{'' if inert_controls(turns).is_empty() else of_texts}. Pull: how much more "
            "often the model answers an option because it was suggested, in points."
        )


def worst_named(row: Row) -> str:
    """Return the challenge with the lowest accuracy, and how many others may be as low."""
    steps = steps_of(row["challenge"])
    if row["challenges"]:
        steps += f", lowest of {row['challenges']}"
    return f"{steps} ({as_low(row)})" if row["tied"] else steps


def _count_outcomes(outcomes: Sequence[str]) -> str:
    counts = {word: outcomes.count(word) for word in _OUTCOMES}
    return ", ".join(f"{n}\u00a0{word}" for word, n in counts.items() if n)
