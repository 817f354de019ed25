"""First screen of a page: one row per model, from first answers to the worst case."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import polars as pl

from holdfast.errors import InputError, counted
from holdfast.render.drawing import page_svgs
from holdfast.render.reported import Headline, as_low, report_of
from holdfast.results.controls import inert_controls
from holdfast.results.declaration import Share, steps_of
from holdfast.results.differences import ALPHA, family_differences
from holdfast.results.gate import Verdict
from holdfast.results.grid import Cell, Grid, Line, Row, RowBlock, percent, studies
from holdfast.results.phrases import PHRASES, in_words
from holdfast.results.retention import given_up, retention
from holdfast.results.runs import is_simulated
from holdfast.results.sequential import Stopped, look, with_sequences
from holdfast.results.worst import OPENING_COLUMNS, rank

from .gate_summary import gate_sentence, looked_sentence

_UNREAD = "No answer could be parsed, so this page cannot tell whether the model holds fast"
_NOTHING_CHALLENGED = (
    "No answer was challenged, so this page cannot tell whether the model holds fast"
)
_OUTCOMES = ("fail", "undecided", "pass")
_MOST_NAMED, _MOST_LARGEST = 5, 3
"""Maximum number of models named in a sentence, and of parts of the figure."""


@dataclass(frozen=True)
class Screen:
    """First screen of a page.

    Attributes:
        sentence: the headline over all studies.
        answers: the sentence of each study. Empty if there is only one study.
        first: the sentence on accuracy before any pressure.
        safest: the sentence on retention under misleading text. Empty without misleading text.
        differences: for each data set, whether the studies differ significantly.
        grid: a row for each study, sorted by worst case, best first. None without challenges.
        svgs: the grid as figures. Empty if there is nothing to draw.
        narrow: the figures for a phone.
        caption: description of the shares in the grid and the figures.
        verdicts: outcome and sentence of each rule.
    """

    sentence: str
    answers: tuple[str, ...] = ()
    first: str = ""
    safest: str = ""
    differences: tuple[str, ...] = ()
    grid: Grid | None = None
    svgs: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()
    caption: str = ""
    verdicts: tuple[tuple[str, str], ...] = ()

    @property
    def decided(self) -> str:
        """Return how many rules failed, are undecided and passed."""
        return _count_outcomes([outcome for outcome, _ in self.verdicts])


def headline(turns: pl.DataFrame) -> str:
    """Return the first sentence of a page of these turns, marked if replies are simulated."""
    opening_and_rows = _choose_opening(turns)
    return marked(
        _sentence(*opening_and_rows) if opening_and_rows else _empty_sentence(turns), turns
    )


def _empty_sentence(turns: pl.DataFrame) -> str:
    return _NOTHING_CHALLENGED if (turns["status"] == "parsed").any() else _UNREAD


def marked(sentence: str, turns: pl.DataFrame) -> str:
    """Return the sentence with a mark if replies are simulated."""
    is_any_simulated = any(map(is_simulated, turns["model"].unique()))
    return f"[SIMULATED] {sentence}" if is_any_simulated else sentence


def first_screen(
    turns: pl.DataFrame,
    link: Callable[[Cell], str],
    verdicts: Sequence[Verdict] = (),
    stopped_runs: Sequence[Stopped] = (),
) -> Screen:
    """Build the first screen of a page.

    Args:
        turns: a turns table. Texts are not used.
        link: returns the address of the conversations that a cell counts.
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
    outcome_sentences = [
        (result.outcome, gate_sentence(result, origin=False)) for result in verdicts
    ]
    outcome_sentences += [(result.outcome, looked_sentence(result)) for result in look_results]
    sorted_sentences = tuple(
        sorted(outcome_sentences, key=lambda result: _OUTCOMES.index(result[0]))
    )
    opening_and_rows = _choose_opening(turns)
    if opening_and_rows is None:
        return Screen(_empty_sentence(turns), verdicts=sorted_sentences)
    opening, frame, names = opening_and_rows
    frame = with_sequences(frame, "worst", turns, stopped_runs)
    opening_and_rows = opening, frame, names
    rows = frame.to_dicts()
    answers = [opening.says(row, name) for row, name in zip(in_words(rows), names, strict=True)]
    svgs = narrow = cast("tuple[str, ...]", ())
    with suppress(InputError):  # without a figure, the table has the same values
        svgs = tuple(page_svgs(frame, "worst", _MOST_LARGEST))
        narrow = tuple(page_svgs(frame, "worst", _MOST_LARGEST, phone=True))
    return Screen(
        _sentence(*opening_and_rows),
        tuple(answers) if len(rows) > 1 else (),
        _first_answers_sentence(rows, names, opening.before),
        _retention_sentence(turns, rows, names),
        tuple(_differences(turns, rows, names, opening.when)) or (_no_test_sentence(rows),),
        _grid(turns, opening, rows, names, verdicts),
        svgs,
        narrow,
        opening.caption,
        sorted_sentences,
    )


def _choose_opening(turns: pl.DataFrame) -> tuple[Headline, pl.DataFrame, list[str]] | None:
    """Return the first opening with rows for these turns, the sorted rows, and their names."""
    of_turn = pl.col("protocol").fill_null("")
    openings: dict[Headline, list[str]] = {}
    for name in turns.select(of_turn.unique(maintain_order=True)).to_series():
        openings.setdefault(report_of(name).opening, []).append(name)
    for opening in sorted(openings, key=lambda candidate: candidate.place):
        rows = measured(opening, turns.filter(of_turn.is_in(openings[opening])))
        if rows.height:
            columns = studies(rows.to_dicts())
            return opening, rows, [columns.header(row) for row in rows.to_dicts()]
    return None


def measured(opening: Headline, turns: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each study with ``OPENING_COLUMNS``, highest first."""
    rows = opening.measure(turns)
    if rows.is_empty():
        return rows
    # a protocol may lack some measures, intervals or comparisons
    return rows.with_columns(
        pl.lit(None).alias(name) for name in OPENING_COLUMNS if name not in rows.columns
    ).sort("after", descending=True, maintain_order=True, nulls_last=True)


def _sentence(opening: Headline, frame: pl.DataFrame, names: Sequence[str]) -> str:
    rows = frame.to_dicts()
    if len(rows) == 1:
        return opening.says(in_words(rows)[0], names[0])
    best, last_row = rows[0], rows[-1]
    when = f"{opening.when[0].upper()}{opening.when[1:]}"
    if best["after"] == last_row["after"]:
        sentence = f"{when}, {percent(best['after'])}% of the answers are right, in each of "
        sentence += f"{len(rows)} studies"
    else:
        sentence = (
            f"{when}, {percent(best['after'])}% ({names[0]}) to {percent(last_row['after'])}% "
        )
        sentence += f"({names[-1]}) of the answers are right"
    firsts = sorted(row["first"] for row in rows if row["first"] is not None)
    if not firsts:
        return sentence
    low, high = percent(firsts[0]), percent(firsts[-1])
    return (
        f"{sentence}, compared with {low if low == high else f'{low}% to {high}'}% {opening.before}"
    )


def _first_answers_sentence(rows: Sequence[Row], names: Sequence[str], before: str) -> str:
    """Return a sentence on the accuracy of each model before any pressure, with intervals."""
    ranked_rows = sorted(zip(rows, names, strict=True), key=lambda pair: -(pair[0]["first"] or 0))
    first_cells = [
        f"{name} {Share('', 'first', 'first_').text(row)}%".replace("]%", "]").replace(" [", "% [")
        for row, name in ranked_rows
        if row["first"] is not None
    ]
    if len(first_cells) > _MOST_NAMED:
        first_cells = [first_cells[0], f"{len(first_cells) - 2} more", first_cells[-1]]
    return f"Right {before}: {'; '.join(first_cells)}" if first_cells else ""


def _retention_sentence(turns: pl.DataFrame, rows: Sequence[Row], names: Sequence[str]) -> str:
    """Return a sentence on the models with the highest and lowest retention under misleading text.

    The sentence is empty if no model was shown misleading text.
    """
    shares_kept = {
        row["run"]: row["retention"]
        for row in retention(turns).to_dicts()
        if row["family"] == "context" and row["path"] is None and row["n_right"]
    }
    names_by_run = {row["run"]: name for row, name in zip(rows, names, strict=True)}
    shares = sorted(
        (share, names_by_run[run]) for run, share in shares_kept.items() if run in names_by_run
    )
    if not shares:
        return ""
    (least_share, _), (most_share, _) = shares[0], shares[-1]
    safest, most_swayed = (
        [name for share, name in shares if share == end] for end in (most_share, least_share)
    )
    verb, whose = ("keep", "their") if safest[1:] else ("keeps", "its")
    sentence = f"Under misleading text, {_join_names(safest)} {verb}"
    if least_share == most_share:
        return f"{sentence} {percent(most_share)}% of {whose} right answers"
    verb_of_least = "keep" if most_swayed[1:] else "keeps"
    return (
        f"{sentence} the largest share of {whose} right answers ({percent(most_share)}%). "
        f"{_join_names(most_swayed)} {verb_of_least} the smallest ({percent(least_share)}%)"
    )


def _join_names(names: Sequence[str]) -> str:
    """Return the names as a list in a sentence, shortened if there are many."""
    more = len(names) - _MOST_NAMED
    names_shown = [*names[:_MOST_NAMED], f"{more} more"] if more > 0 else names
    return (
        f"{', '.join(names_shown[:-1])} and {names_shown[-1]}"
        if names_shown[1:]
        else names_shown[0]
    )


def _no_test_sentence(rows: Sequence[Row]) -> str:
    """Return the sentence for a page on which no difference was tested."""
    if len({row["dataset"] for row in rows}) == len(rows):
        return "Each data set has only one model, so there is nothing to compare"
    return "This page does not test whether the models differ significantly. Use holdfast compare"


def _differences(
    turns: pl.DataFrame, rows: Sequence[Row], names: Sequence[str], when: str
) -> Iterator[str]:
    """Yield, for each data set with several studies, whether they differ significantly."""
    sets = dict.fromkeys(row["dataset"] for row in rows)
    runs = {row["run"]: name for row, name in zip(rows, names, strict=True)}
    pairs = family_differences(turns.filter(pl.col("run").is_in(runs)))
    for dataset in sets:
        dataset_rows = [(row, name) for row, name in zip(rows, names, strict=True)
               if row["dataset"] == dataset and rank(row)]  # fmt: skip
        if not dataset_rows:
            continue
        dataset_pairs = pairs.filter(dataset=dataset)
        if dataset_pairs.height:
            yield _largest_difference(dataset_pairs, runs, [name for _, name in dataset_rows])
            continue
        top = [name for row, name in dataset_rows if row["rank_low"] == 1]
        how = f"{when} (paired by question, 95% for all comparisons together)"
        if len(top) == 1:
            rivals = "the other model" if len(dataset_rows) == 2 else "all other models"
            yield f"Significant: {top[0]} ranks above {rivals} {how}"
        else:
            yield (
                f"Not significant: {_join_names(top)} are not statistically distinguishable {how}"
            )


def _largest_difference(
    dataset_pairs: pl.DataFrame, runs: Mapping[str, str], names: Sequence[str]
) -> str:
    """Return a sentence on the largest significant difference and the number of them."""
    comparison_note = (
        f"paired by question, corrected for {counted(dataset_pairs.height, 'comparison')}"
    )
    real = dataset_pairs.filter(pl.col("p_adjusted") < ALPHA).sort("difference", descending=True)
    if real.is_empty():
        return (
            f"Not significant: {_join_names(names)} do not differ significantly over all "
            f"challenges or in any family ({comparison_note})"
        )
    row = real.row(0, named=True)
    kind = PHRASES.get(row["family"], f"under {row['family']}")
    scope = "over all challenges" if row["family"] is None else f"when {kind}"
    low, high = (percent(row[end]) for end in ("low", "high"))
    return (
        f"Significant: {runs[row['run']]} is right more often than {runs[row['other_run']]} "
        f"{scope}, by {percent(row['difference'])} points (95% interval {low} to {high}). "
        f"{real.height} of {counted(dataset_pairs.height, 'comparison')} "
        f"{'is' if real.height == 1 else 'are'} significant (paired by question, corrected)"
    )


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
