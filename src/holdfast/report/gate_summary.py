"""What a gate decided, as people and CI read it: sentences, a summary, JUnit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from holdfast.errors import counted
from holdfast.render.tables import markdown_rows, markdown_text, one_line
from holdfast.results import Verdict, is_imported, is_simulated, overall
from holdfast.results.grid import percent
from holdfast.results.sequential import Looked

_MARKS = {"pass": "pass", "fail": "**fail**", "undecided": "_undecided_"}
_WORST = "missing replies counted against the model"
_SIMULATED = "simulated, not a measurement of a model"
_IS_SIMULATED = "SIMULATED: not a measurement of a model."


def gate_sentence(verdict: Verdict, *, origin: bool = True) -> str:
    """One line: outcome, what it is about, the figure with its interval, what it is held against.

    Shares are in percent, differences in percentage points. Names come from files: they are data,
    and controls in them are escaped.

    Args:
        verdict: on one rule at one figure.
        origin: whether simulated and imported replies are named as such.
    """
    held = f"{_about(verdict)}: {_figure(verdict)}, {_held_against(verdict)} ({_n(verdict)})"
    told = [f"{_outcome(verdict)}: {held}"]
    if verdict.outcome == "undecided":
        told.append(_would_decide(verdict))
    if verdict.left_out:
        unlike = counted(verdict.left_out, "question")
        told.append(f"{unlike} left out, whose right answers differ between the runs")
    if verdict.rule.worst:
        told.append(_WORST)
    if origin and is_simulated(verdict.model):
        told.append(_SIMULATED)
    if origin and is_imported(verdict.run):
        told.append("imported, not asked by holdfast")
    return one_line("; ".join(told))


def looked_sentence(looked: Looked) -> str:
    """One line: outcome, what it is about, the figure, its confidence sequence, what decided it."""
    about, figure, interval, asked, at = _looked_parts(looked)
    told = f"{_outcome(looked)}: {about}: {figure} {interval}, required: {asked}; {at}"
    if looked.rule.worst:
        told += f"; {_WORST}"
    if is_simulated(looked.model):
        told += f"; {_SIMULATED}"
    return one_line(told)


def _looked_parts(looked: Looked) -> tuple[str, str, str, str, str]:
    """What it is about, the figure, its confidence sequence, what is required, what decided it."""
    points = looked.rule.condition.points
    value = "none" if looked.value is None else _share(looked.value, points)
    low, high = (_share(bound, points, unit=False) for bound in (looked.low, looked.high))
    return (
        _about(looked),
        f"{looked.rule.condition.measure} {value}",
        f"[{low}, {high}]",
        f"at {looked.rule.condition.sense} {_share(looked.rule.threshold, points)}",
        f"not decided by {counted(looked.questions, 'question')}{_more(looked)}"
        if looked.at is None
        else f"decided by the first {counted(looked.at, 'question')}",
    )


def _more(looked: Looked) -> str:
    """How many questions more would decide it."""
    if not looked.questions:
        return ""
    if looked.further is None:
        return ", and no number of questions would decide this figure"
    return f", about {counted(looked.further, 'further question')} would, at the same figure"


def looked_markdown(looked: Sequence[Looked]) -> str:
    """What was looked at in Markdown, as ``gate_markdown`` has verdicts."""
    header = ["Outcome", "Rule", "About", "Figure", "Confidence sequence", "Required", "Decided"]
    lines = [header, ["---"] * len(header)]
    lines += [
        [_MARKS[one.outcome], *map(markdown_text, (one.rule.title, *_looked_parts(one)))]
        for one in looked
    ]
    below = ["Confidence sequences hold at every look at once."]
    if any(one.rule.worst for one in looked):
        below.append(f"{_WORST[:1].upper()}{_WORST[1:]}.")
    if any(is_simulated(one.model) for one in looked):
        below.append(_IS_SIMULATED)
    told = overall(looked) if looked else "undecided"
    return (
        f"## holdfast run --until: {told}\n\n{markdown_rows(lines)}\n" + "\n\n".join(below) + "\n"
    )


def looked_rows(looked: Sequence[Looked]) -> list[Mapping[str, Any]]:
    """The looks for machines: shares as numbers of 0 to 1, and each one's sentence."""
    return [
        {
            "rule": one.rule.title,
            "condition": one.rule.key,
            "outcome": one.outcome,
            "model": one.model,
            "dataset": one.dataset,
            "protocol": one.protocol,
            "of": one.of,
            **({"missing": "worst"} if one.rule.worst else {}),
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "threshold": one.rule.threshold,
            "decided_at": one.at,
            "questions": one.questions,
            "further_questions": one.further,
            "n": one.n,
            "simulated": is_simulated(one.model),
            "run": one.run,
            "sentence": looked_sentence(one),
        }
        for one in looked
    ]


def _share(value: float, points: bool, *, unit: bool = True) -> str:
    shown = percent(value)
    return shown if not unit else f"{shown} points" if points else f"{shown}%"


def gate_counts(verdicts: Sequence[Verdict]) -> str:
    """One line: how many passed, failed and are undecided, and what that makes of the gate."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    told = f"{counts['pass']} passed, {counts['fail']} failed, {counts['undecided']} undecided"
    return f"gate: {overall(verdicts)} ({told})"


def gate_markdown(verdicts: Sequence[Verdict], level: float) -> str:
    """A summary in Markdown, as ``$GITHUB_STEP_SUMMARY`` shows it; names are escaped.

    Args:
        verdicts: in their order.
        level: coverage of their intervals.
    """
    header = ["Outcome", "Rule", "About", "Figure", "Interval", "Required", "n", "Further"]
    lines = [header, ["---"] * len(header)]
    for verdict in verdicts:
        value, interval = _parts(verdict)
        texts = [
            verdict.rule.title,
            _about(verdict),
            f"{verdict.rule.condition.measure} {value}" + f"; {_WORST}" * verdict.rule.worst,
            interval,
            _asked(verdict),
            _n(verdict),
            "" if verdict.further is None else f"about {verdict.further:,} questions",
        ]
        lines.append([_MARKS[verdict.outcome], *map(markdown_text, texts)])
    below = [f"Intervals of {100 * level:g}%. {_READING}"]
    if any(is_simulated(verdict.model) for verdict in verdicts):
        below.append(_IS_SIMULATED)
    if any(is_imported(verdict.run) for verdict in verdicts):
        below.append("IMPORTED: not asked by holdfast.")
    head = markdown_text(gate_counts(verdicts))
    return f"## holdfast {head}\n\n{markdown_rows(lines)}\n" + "\n\n".join(below) + "\n"


def gate_rows(verdicts: Sequence[Verdict]) -> list[Mapping[str, Any]]:
    """The verdicts for machines: shares as numbers of 0 to 1, and each one's sentence."""
    return [
        {
            "rule": verdict.rule.title,
            "condition": verdict.rule.key,
            "outcome": verdict.outcome,
            "model": verdict.model,
            "dataset": verdict.dataset,
            "protocol": verdict.protocol,
            "of": verdict.of,
            **verdict.rule.strata,
            **({"missing": "worst"} if verdict.rule.worst else {}),
            "value": verdict.value,
            "low": verdict.low,
            "high": verdict.high,
            "threshold": verdict.threshold,
            "no_worse_than": verdict.rule.no_worse_than,
            "n": verdict.n,
            "questions": verdict.questions,
            "further_questions": verdict.further,
            "simulated": is_simulated(verdict.model),
            "imported": is_imported(verdict.run),
            "run": verdict.run,
            "sentence": gate_sentence(verdict),
        }
        for verdict in verdicts
    ]


_READING = (
    "A rule passes if the whole interval meets it, fails if no part of the interval does, and is "
    "undecided otherwise."
)


def _outcome(verdict: Verdict | Looked) -> str:
    """The outcome, with the rule's name where it has one."""
    name = verdict.rule.name
    return f"{verdict.outcome} ({name})" if name else verdict.outcome


def _about(verdict: Verdict | Looked) -> str:
    parts = [f"{verdict.system} on {verdict.dataset}", verdict.protocol, *_parts_of_run(verdict)]
    return ", ".join(parts)


def _parts_of_run(verdict: Verdict | Looked) -> list[str]:
    """What of its run a verdict is about."""
    labels = [f"{name} {label}" for name, label in verdict.rule.strata.items()]
    several = isinstance(verdict, Verdict) and verdict.several
    return [verdict.of, *labels, *([f"run {verdict.run}"] if several else [])]


def _figure(verdict: Verdict) -> str:
    value, interval = _parts(verdict)
    measure = verdict.rule.condition.measure
    if verdict.value is None:
        return f"no {measure}"
    source = f" from {verdict.rule.no_worse_than}" if verdict.rule.no_worse_than else ""
    return f"{measure} {value}{source} {interval or '[no interval]'}"


def _parts(verdict: Verdict) -> tuple[str, str]:
    """The figure and its interval."""
    if verdict.value is None:
        return "n/a", ""
    points = verdict.rule.condition.points
    signed = "+" if verdict.rule.no_worse_than else ""
    value = f"{_number(verdict.value, signed)}{' points' if points else '%'}"
    if verdict.low is None or verdict.high is None:
        return value, ""
    return value, f"[{_number(verdict.low, signed)}, {_number(verdict.high, signed)}]"


def _number(share: float, signed: str = "") -> str:
    # adding zero takes the sign off a zero that rounding has left
    return f"{round(100 * share, 1) + 0.0:{signed}.1f}"


def _asked(verdict: Verdict) -> str:
    """What the rule asks for."""
    limit = f"{abs(100 * verdict.threshold):g}"
    if verdict.rule.no_worse_than:
        return f"at most {limit} points worse than {verdict.rule.no_worse_than}"
    unit = " points" if verdict.rule.condition.points else "%"
    return f"at {verdict.rule.condition.sense} {limit}{unit}"


def _held_against(verdict: Verdict) -> str:
    if verdict.outcome == "undecided":
        return f"required: {_asked(verdict)}"
    if verdict.outcome == "pass":
        return _asked(verdict)
    at, wrong = {"least": ("at least", "less than"), "most": ("at most", "more than")}[
        "most" if verdict.rule.no_worse_than else verdict.rule.condition.sense
    ]
    return _asked(verdict).replace(at, wrong, 1)


def _n(verdict: Verdict) -> str:
    over = (
        "" if verdict.n == verdict.questions else f" over {counted(verdict.questions, 'question')}"
    )
    return f"n = {verdict.n}{over}"


def _would_decide(verdict: Verdict) -> str:
    if verdict.unfinished:
        return "the run is unfinished"
    if verdict.missing:
        return "it would not pass with missing replies counted against the model"
    if verdict.value is None or verdict.low is None:
        return "there is nothing to decide on"
    if verdict.further is None:
        return "no number of questions decides at the same figure"
    return f"about {verdict.further:,} further questions would decide at the same figure"


def junit_xml(verdicts: Sequence[Verdict | Looked]) -> str:
    r"""A test suite with a test case for each verdict.

    One that failed holds a ``failure``. One that is undecided holds an ``error``: CI systems show
    it beside the failures and apart from them, where a skipped test would look like one that did
    no harm, and the command ends with a code that is not 0 either way. Both carry the sentence;
    that of one that passed is its standard output. What XML 1.0 has no character for is escaped as
    ``\u`` and its number.

    Args:
        verdicts: in their order.

    Returns:
        The document with its declaration, UTF-8.
    """
    outcomes = [verdict.outcome for verdict in verdicts]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("fail")),
        "errors": str(outcomes.count("undecided")),
        "skipped": "0",
        "time": "0",
    }
    suites = ElementTree.Element("testsuites", {"name": "holdfast", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "holdfast gate", **counts})
    for verdict in verdicts:
        named = [verdict.rule.title, *_parts_of_run(verdict)]
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {
                "classname": one_line(f"{verdict.system} on {verdict.dataset}, {verdict.protocol}"),
                "name": one_line(", ".join(named)),
                "time": "0",
            },
        )
        sentence = (
            looked_sentence(verdict) if isinstance(verdict, Looked) else gate_sentence(verdict)
        )
        match verdict.outcome:
            case "fail":
                kind = {"type": verdict.rule.key, "message": sentence}
                ElementTree.SubElement(case, "failure", kind).text = sentence
            case "undecided":
                kind = {"type": "undecided", "message": sentence}
                ElementTree.SubElement(case, "error", kind).text = sentence
            case "pass":
                ElementTree.SubElement(case, "system-out").text = sentence
    ElementTree.indent(suites)
    body = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
