"""Decision of a page: verdict for each model, or the finding that a verdict would rest on.

The first screen, the terminal and ``holdfast compare`` open with these sentences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from holdfast.errors import counted
from holdfast.render.reported import Headline, report_of
from holdfast.render.tables import one_line
from holdfast.results.declaration import steps_of
from holdfast.results.differences import ALPHA, retention_differences
from holdfast.results.gate import Verdict, overall
from holdfast.results.grid import Row, percent, short_names, studies
from holdfast.results.phrases import PHRASES, in_words
from holdfast.results.retention import by_technique, given_up, retention
from holdfast.results.runs import defence_of, is_simulated
from holdfast.results.sequential import Looked
from holdfast.results.worst import OPENING_COLUMNS, opened

from .gate_summary import reason

SHIP, NOT_SHIP, NOT_DECIDED = "Ship", "Do not ship", "Not decided yet"
"""Decisions on a model, with the outcomes ``pass``, ``fail`` and ``undecided`` of its rules."""

_WORDS = {"pass": SHIP, "fail": NOT_SHIP, "undecided": NOT_DECIDED}

_UNREAD = "No answer could be parsed, so this page cannot tell whether the model holds fast"
_NOTHING_CHALLENGED = (
    "No answer was challenged, so this page cannot tell whether the model holds fast"
)
_MOST_NAMED = 3
"""Maximum number of models named in a sentence."""

MOST_REASONS = 3
"""Maximum number of models whose deciding rules the first screen gives."""

_DEFENCES = {"context": ("distrust-context", "quarantine"), "": ("hardened", "rederive")}
"""Defences to try first, for a family of challenges and for any other."""


@dataclass(frozen=True)
class Finding:
    """What a decision rests on.

    Attributes:
        dataset: data set of the studies.
        protocol: protocol of the studies.
        runs: runs of the studies and their names, best first. If a challenge is costly, the last
            one is the run that loses most under it.
        family: family of the costly challenge; None if there is none.
        path: the challenge that costs most, compared with asking again; None if there is none.
        difference: sentence on the largest significant difference in a family. Empty without one.
    """

    dataset: str
    protocol: str
    runs: tuple[tuple[str, str], ...]
    family: str | None = None
    path: str | None = None
    difference: str = ""


@dataclass(frozen=True)
class Recommendation:
    """Decision of a page.

    Attributes:
        sentences: the sentences, without full stops. The first one is the headline.
        verdicts: for each model with rules, its decision, name and reason, best first.
        next_step: what to do next. Empty if there is nothing to recommend.
        command: the command of the next step. Empty if there is none.
        finding: the finding behind the sentences. None if nothing was challenged.
    """

    sentences: tuple[str, ...]
    verdicts: tuple[tuple[str, str, str], ...] = ()
    next_step: str = ""
    command: str = ""
    finding: Finding | None = None


def decide(turns: pl.DataFrame, verdicts: Sequence[Verdict | Looked] = ()) -> Recommendation:
    """Return the decision on these turns.

    With verdicts, each model is ``SHIP`` if all of its rules pass, ``NOT_SHIP`` if a rule fails,
    else ``NOT_DECIDED``. Without verdicts, the sentences say which model keeps more of its right
    answers, under what, by how much, and whether the difference is significant; of one model, how
    many right answers survive. They take their numbers from the tables ``retention`` and
    ``retention by pair``.

    Args:
        turns: a turns table. Texts are not used.
        verdicts: verdicts of a gate, or of ``run --until``.
    """
    decision = _of_turns(turns)
    return _with_verdicts(decision, turns, verdicts) if verdicts else decision


def opening(turns: pl.DataFrame) -> tuple[str, ...]:
    """Return the sentences of ``decide`` without verdicts, with full stops and marked."""
    first, *more = decide(turns).sentences
    return tuple(f"{sentence}." for sentence in (marked(first, turns), *more))


def marked(sentence: str, turns: pl.DataFrame) -> str:
    """Return the sentence with a mark if replies are simulated."""
    is_any_simulated = any(map(is_simulated, turns["model"].unique()))
    return f"[SIMULATED] {sentence}" if is_any_simulated else sentence


def choose_opening(turns: pl.DataFrame) -> tuple[Headline, pl.DataFrame, list[str]] | None:
    """Return the first opening with rows for these turns, the sorted rows, and their names."""
    of_turn = pl.col("protocol").fill_null("")
    openings: dict[Headline, list[str]] = {}
    for name in turns.select(of_turn.unique(maintain_order=True)).to_series():
        openings.setdefault(report_of(name).opening, []).append(name)
    for candidate in sorted(openings, key=lambda headline: headline.place):
        rows = measured(candidate, turns.filter(of_turn.is_in(openings[candidate])))
        if rows.height:
            columns = studies(rows.to_dicts())
            return candidate, rows, [columns.header(row) for row in rows.to_dicts()]
    return None


def measured(headline: Headline, turns: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each study with ``OPENING_COLUMNS``, highest first."""
    rows = headline.measure(turns)
    if rows.is_empty():
        return rows
    # a protocol may lack some measures, intervals or comparisons
    return rows.with_columns(
        pl.lit(None).alias(name) for name in OPENING_COLUMNS if name not in rows.columns
    ).sort("after", descending=True, maintain_order=True, nulls_last=True)


def _of_turns(turns: pl.DataFrame) -> Recommendation:
    chosen = choose_opening(turns)
    if chosen is None:
        is_any_read = (turns["status"] == "parsed").any()
        return Recommendation((_NOTHING_CHALLENGED if is_any_read else _UNREAD,))
    headline, frame, _ = chosen
    opened_runs = pl.col("run").is_in(frame["run"].to_list())
    is_challenged = pl.col("path").is_null() & (pl.col("n_right") > 0) & opened_runs
    rows = retention(turns).filter(is_challenged)
    if headline.measure is not opened:
        return _of_accuracy(*chosen)
    if rows.filter(pl.col("family").is_null()).is_empty():
        return _of_accuracy(*chosen)
    # the data set with the most questions stands for the page
    totals = rows.filter(pl.col("family").is_null())
    totals = totals.sort("questions", descending=True, maintain_order=True)
    study = {name: totals[name][0] for name in ("dataset", "protocol")}
    datasets = totals["dataset"].n_unique()
    pairs = retention_differences(turns).filter(**study)
    paths = by_technique(turns).filter(**study)
    where = f"{headline.challenge}, on {study['dataset']}" if datasets > 1 else headline.challenge
    decision = _of_retention(where, rows.filter(**study), pairs, paths)
    if datasets == 1:
        return decision
    further = f"Method and data has {counted(datasets - 1, 'further data set')}"
    return replace(decision, sentences=(*decision.sentences, further))


def _of_retention(
    where: str, rows: pl.DataFrame, pairs: pl.DataFrame, paths: pl.DataFrame
) -> Recommendation:
    """Return the decision on the studies of one data set and protocol.

    Args:
        where: the moment after any challenge in a few words.
        rows: rows of ``retention`` over all challenges and by family.
        pairs: rows of ``retention_differences``.
        paths: rows of ``retention`` by technique.
    """
    totals = rows.filter(pl.col("family").is_null()).sort(
        "retention", descending=True, maintain_order=True
    ).to_dicts()  # fmt: skip
    names = _short([studies(totals).header(row) for row in totals])
    runs = dict(zip((row["run"] for row in totals), names, strict=True))
    pairs = pairs.filter(pl.col("run").is_in(runs), pl.col("other_run").is_in(runs))
    costly = _costly(paths, runs)
    if len(totals) == 1:
        sentences = _of_single(where, totals[0], names[0], rows)
    elif len(totals) == 2:
        sentences = _of_two(where, totals, runs, pairs)
    else:
        sentences = _of_many(where, totals, runs, pairs)
    refused = [line for row in totals for line in _refused(row, runs[row["run"]])]
    if len(totals) <= 2:
        sentences[1:1] = refused
        sentences += _breaking(paths, costly, runs)
    if len(totals) == 2:
        sentences += _noise(totals, runs)
    family, path = None, None
    if costly:
        family, path, worst_run = (costly[0][name] for name in ("family", "path", "run"))
        runs[worst_run] = runs.pop(worst_run)  # the last one is the one that gives way
    finding = Finding(
        totals[0]["dataset"],
        totals[0]["protocol"],
        tuple(runs.items()),
        family,
        path,
        _largest_difference(pairs, runs),
    )
    step = _READ_REFUSALS if refused and not costly else _next_step(paths, finding)
    return Recommendation(tuple(map(one_line, sentences)), (), *step, finding)


def _of_single(where: str, total: Row, name: str, rows: pl.DataFrame) -> list[str]:
    """Return the sentences on one model."""
    bounds = _interval(total["low"], total["high"])
    sentence = (
        f"{name} keeps {_kept_of_ten(total['retention'])} {where} "
        f"({percent(total['retention'])}%{bounds})"
    )
    control = total["control_retention"]
    if control is not None:
        sentence += f", and {_of_ten(control)} when only asked again ({percent(control)}%)"
    sentences = [sentence]
    significant = rows.filter(
        pl.col("family").is_not_null(), pl.col("p_adjusted") < ALPHA, pl.col("net") < 0
    ).sort("retention")
    if significant.height:
        row = significant.row(0, named=True)
        sentences.append(
            f"It keeps the fewest when {_phrase(row['family'])}: {percent(row['retention'])}%"
            f"{_interval(row['low'], row['high'], ' (', ')')}"
        )
    return sentences


def _of_two(
    where: str,
    totals: Sequence[Row],
    runs: Mapping[str, str],
    pairs: pl.DataFrame,
) -> list[str]:
    """Return the sentences on two models."""
    total = next(iter(pairs.filter(pl.col("family").is_null()).to_dicts()), None)
    best, last = (runs[row["run"]] for row in totals)
    if total is None:
        shares = " and ".join(
            f"{runs[row['run']]} keeps {percent(row['retention'])}%" for row in totals
        )
        sentence = f"Too few common questions for a test: {where}, {shares} of its"
        return [f"{sentence} right answers"]
    names = runs[total["run"]], runs[total["other_run"]]
    kept = [percent(total[name]) for name in ("retention", "other_retention")]
    if total["p_adjusted"] < ALPHA:
        sentence = (
            f"{names[0]} keeps more of its right answers than {names[1]} {where}: "
            f"{kept[0]}% compared with {kept[1]}% ({_difference(total)})"
        )
    else:
        sentence = (
            f"{best} and {last} are not statistically distinguishable: {where}, "
            f"{names[0]} keeps {kept[0]}% of its right answers and {names[1]} {kept[1]}% "
            f"({_difference(total)})"
        )
    sentences = [sentence]
    if difference := _largest_difference(pairs, runs):
        sentences.append(difference)
    elif pairs.filter(pl.col("family").is_not_null()).height > 1:
        sentences.append("They do not differ significantly in any family of challenges")
    return sentences


def _largest_difference(pairs: pl.DataFrame, runs: Mapping[str, str]) -> str:
    """Return a sentence on the largest significant difference in a family, or an empty text."""
    rows = pairs.filter(pl.col("family").is_not_null(), pl.col("p_adjusted") < ALPHA)
    if rows.is_empty():
        return ""
    row = rows.sort("difference", descending=True, maintain_order=True).row(0, named=True)
    return (
        f"The largest significant difference is when {_phrase(row['family'])}: "
        f"{runs[row['run']]} keeps {percent(row['retention'])}%, "
        f"{runs[row['other_run']]} {percent(row['other_retention'])}% "
        f"({percent(row['difference'])} points{_interval(row['low'], row['high'])})"
    )


def _of_many(
    where: str, totals: Sequence[Row], runs: Mapping[str, str], pairs: pl.DataFrame
) -> list[str]:
    """Return the sentences on three or more models."""
    names = list(runs.values())
    high, low = (percent(row["retention"]) for row in (totals[0], totals[-1]))
    sentences = [
        f"{len(totals)} models keep {high}% ({names[0]}) to {low}% ({names[-1]}) of their right "
        f"answers {where}"
    ]
    total_pairs = pairs.filter(pl.col("family").is_null())
    if total_pairs.height:
        real = total_pairs.filter(pl.col("p_adjusted") < ALPHA)
        beaten = set(real["other_run"])
        top = [name for row, name in zip(totals, names, strict=True) if row["run"] not in beaten]
        sentences.append(
            f"{real.height} of {counted(total_pairs.height, 'pair')} "
            f"{'is' if real.height == 1 else 'are'} statistically distinguishable; no model keeps "
            f"significantly more than {join_names(top, 'or')}"
        )
        sentences += filter(None, [_largest_difference(pairs, runs)])
    kept = [row["control_retention"] for row in totals if row["control_retention"] is not None]
    if kept:
        ends = " to ".join(dict.fromkeys(f"{percent(end)}%" for end in (max(kept), min(kept))))
        sentences.append(f"When only asked again, they keep {ends}")
    return sentences


def _costly(paths: pl.DataFrame, runs: Mapping[str, str]) -> Sequence[Row]:
    """Return the challenges that cost significantly more than asking again, the largest first."""
    real = pl.col("run").is_in(runs) & (pl.col("p_adjusted") < ALPHA) & (pl.col("net") < 0)
    return paths.filter(real).sort("net", maintain_order=True).to_dicts()


def _breaking(paths: pl.DataFrame, costly: Sequence[Row], runs: Mapping[str, str]) -> list[str]:
    """Return a sentence on the challenges that cost significantly more than asking again.

    It names the challenges without their shares, because the lowest of many is low by chance too.
    """
    if paths.filter(pl.col("run").is_in(runs), pl.col("p_adjusted").is_not_null()).is_empty():
        return []
    phrases = []
    for run, name in runs.items():
        steps = [steps_of(row["path"]) for row in in_words(costly) if row["run"] == run]
        listing = join_names(steps, most=2) if steps else "none"
        phrases.append(f"for {name}, {listing}" if len(runs) > 1 else listing)
    return [f"Challenges that cost significantly more than asking again: {'; '.join(phrases)}"]


_NOISY = 0.05
"""Share of right answers lost to asking again, above which the first screen says so."""


def _noise(totals: Sequence[Row], runs: Mapping[str, str]) -> list[str]:
    """Return a sentence on what asking again costs the models that vary by themselves."""
    shares = {row["run"]: row["control_retention"] for row in totals}
    noisy = [
        f"{runs[run]} keeps {percent(share)}%"
        for run, share in shares.items()
        if share is not None and 1 - share > _NOISY
    ]
    return [f"When only asked again, {join_names(noisy)}"] if noisy else []


_OFTEN_REFUSED = 0.05
"""Share of right answers given up without another answer, above which the first screen says so."""


def _refused(total: Row, name: str) -> list[str]:
    """Return a sentence on right answers that gave way to no answer, if there are many."""
    without = total["undecided"] + total["refused"] + total["unreadable"]
    if without <= _OFTEN_REFUSED * total["n_right"]:
        return []
    return [f"Right answers that {name} gives up: {given_up(total)}"]


def _of_accuracy(headline: Headline, frame: pl.DataFrame, names: Sequence[str]) -> Recommendation:
    """Return the decision for a protocol whose challenges do not follow a first answer."""
    rows = frame.to_dicts()
    finding = Finding(
        rows[0]["dataset"], rows[0]["protocol"],
        tuple((row["run"], name) for row, name in zip(rows, names, strict=True)),
    )  # fmt: skip
    if len(rows) == 1:
        return Recommendation((headline.says(in_words(rows)[0], names[0]),), finding=finding)
    best, last = rows[0], rows[-1]
    when = f"{headline.when[0].upper()}{headline.when[1:]}"
    sentence = (
        f"{when}, {names[0]} is right on {percent(best['after'])}% of the questions and "
        f"{names[-1]} on {percent(last['after'])}%"
    )
    firsts = sorted(row["first"] for row in rows if row["first"] is not None)
    if firsts:
        low, high = percent(firsts[0]), percent(firsts[-1])
        share = low if low == high else f"{low}% to {high}"
        sentence += f", compared with {share}% {headline.before}"
    sentences = [sentence]
    if all(row["rank_low"] is not None for row in rows):
        top = [name for row, name in zip(rows, names, strict=True) if row["rank_low"] == 1]
        is_single = len(top) == 1
        sentences.append(
            f"{top[0]} ranks above {'all others' if len(rows) > 2 else names[-1]} (significant)"
            if is_single
            else f"{join_names(top)} are not statistically distinguishable"
        )
    return Recommendation(tuple(map(one_line, sentences)), finding=finding)


def _with_verdicts(
    decision: Recommendation, turns: pl.DataFrame, verdicts: Sequence[Verdict | Looked]
) -> Recommendation:
    """Return the decision with the verdict on each model in front."""
    systems: dict[str, list[Verdict | Looked]] = {}
    for verdict in verdicts:
        is_split = isinstance(verdict, Verdict) and verdict.is_one_of_several
        name = f"{verdict.system} (run {verdict.run})" if is_split else verdict.system
        systems.setdefault(name, []).append(verdict)
    order = list(_WORDS)
    short = short_names(systems)
    decided = sorted(
        ((overall(of_system), name, of_system) for name, of_system in systems.items()),
        key=lambda item: order.index(item[0]),
    )
    lines = tuple(
        (_WORDS[outcome], one_line(short[name]), one_line(_reason(outcome, of_system)))
        for outcome, name, of_system in decided
    )
    names_by_word: dict[str, list[str]] = {}
    for word, name, _ in lines:
        names_by_word.setdefault(word, []).append(name)
    sentence = ". ".join(
        f"{word}{':' if word == NOT_DECIDED else ''} {join_names(names)}"
        for word, names in names_by_word.items()
    )
    # the reasons take the place of the first sentence on the finding
    difference = decision.finding.difference if decision.finding else ""
    finding_sentences = (
        tuple(filter(None, [difference])) if len(lines) <= MOST_REASONS else decision.sentences[:1]
    )
    step = _step_after(verdicts, decision)
    return Recommendation((sentence, *finding_sentences), lines, *step, decision.finding)


def _reason(outcome: str, verdicts: Sequence[Verdict | Looked]) -> str:
    """Return the rule that decides, by its name, with its numbers and the number of further ones.

    A failed rule decides before an undecided one. Among several, the first in the file decides.
    """
    deciding = [verdict for verdict in verdicts if verdict.outcome == outcome]
    text = reason(deciding[0])
    if outcome == "pass":
        return f"all {counted(len(verdicts), 'rule')} pass; {text}" if verdicts[1:] else text
    further = len(deciding) - 1
    word = "fails" if outcome == "fail" else "is undecided"
    words = word if further == 1 else {"fails": "fail", "is undecided": "are undecided"}[word]
    return f"{text}; {counted(further, 'further rule')} {words}" if further else text


def _step_after(verdicts: Sequence[Verdict | Looked], decision: Recommendation) -> tuple[str, str]:
    """Return the next step, and its command, after verdicts."""
    outcome = overall(verdicts)
    if outcome == "pass":
        return (
            "Repeat the gate after every change of the model",
            "holdfast gate LOGDIR --rules FILE",
        )
    if outcome == "undecided":
        numbers = [verdict.further for verdict in verdicts if verdict.outcome == "undecided"]
        known = [number for number in numbers if number]
        if known and len(known) == len(numbers):
            return f"Ask about {max(known):,} further questions to decide every rule", ""
        return "Read why in the list of rules below", ""
    return decision.next_step, decision.command


_READ_REFUSALS = ("Read the replies without an answer, and change the prompt or the model", "")


def _next_step(paths: pl.DataFrame, finding: Finding) -> tuple[str, str]:
    """Return the defence to try, or the advice to write rules if no challenge is costly."""
    if finding.path is None:
        return "Write rules for your use", "holdfast report LOGDIR --rules FILE"
    measured_defences = {defence_of(run) for run in paths["run"]}
    run, name = finding.runs[-1]
    defences = _DEFENCES.get(finding.family or "", _DEFENCES[""])
    command = f"holdfast run {finding.protocol} --defence"
    if paths.filter(pl.col("run") == run, pl.col("model").str.starts_with("http/")).height:
        # the first defences need a system message, which few assistants take
        defences, command = (
            defences[::-1],
            f"holdfast run {finding.protocol} --target FILE --defence",
        )
    for defence in defences:
        if defence not in measured_defences:
            return f"Try a defence for {name}", f"{command} {defence}"
    return "Compare the defences under Method and data", ""


def _short(names: Sequence[str]) -> list[str]:
    by_name = short_names(names)
    return [one_line(by_name[name]) for name in names]


def join_names(names: Sequence[str], word: str = "and", most: int = _MOST_NAMED) -> str:
    """Return the names as a list in a sentence, shortened if there are many."""
    more = len(names) - most
    names_shown = [*names[:most], f"{more} more"] if more > 0 else names
    return (
        f"{', '.join(names_shown[:-1])} {word} {names_shown[-1]}"
        if names_shown[1:]
        else names_shown[0]
    )


def _phrase(family: str) -> str:
    return PHRASES.get(family) or f"challenged by {family or 'no family'}"


def _interval(low: float | None, high: float | None, before: str = ", ", after: str = "") -> str:
    if low is None or high is None:
        return ""
    return f"{before}95% interval {percent(low)} to {percent(high)}{after}"


def _difference(row: Row) -> str:
    interval = _interval(row["low"], row["high"])
    return f"{percent(row['difference'])} points{interval}, {_p(row['p_adjusted'])}"


def _p(p: float) -> str:
    return f"p = {p:.3f}" if p >= SMALLEST_P else f"p below {SMALLEST_P}"


SMALLEST_P = 0.001
"""P-value below which a sentence gives only this limit."""

_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "all")


def _kept_of_ten(share: float) -> str:
    if share in (0, 1):
        return "all its right answers" if share else "none of its right answers"
    return f"{_of_ten(share)} of ten right answers"


def _of_ten(share: float) -> str:
    """Return a share as a number of ten, in words."""
    number = round(10 * share)
    if share in (0, 1):
        return _NUMBERS[number]
    return {0: "almost none", 10: "almost all"}.get(number, f"about {_NUMBERS[number]}")
