"""Verdicts of a gate for people and CI: sentences, Markdown and JUnit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from holdfast.errors import counted
from holdfast.render.tables import markdown_rows, markdown_text, one_line
from holdfast.results.gate import Verdict, overall
from holdfast.results.grid import percent
from holdfast.results.runs import is_imported, is_simulated
from holdfast.results.sequential import Looked

_MARKS = {"pass": "pass", "fail": "**fail**", "undecided": "_undecided_"}
_WORST = "missing replies count against the model"
_SIMULATED_NOTE = "simulated, not a measurement of a model"
_IS_SIMULATED = "SIMULATED: not a measurement of a model."


def gate_sentence(verdict: Verdict, *, origin: bool = True) -> str:
    """Return a verdict in one line: outcome, subject, value with interval, and requirement.

    Shares are in percent, differences in percentage points. Names come from files, so control
    characters in them are escaped.

    Args:
        verdict: verdict on one rule.
        origin: whether to mark simulated and imported replies.
    """
    main_clause = (
        f"{_subject(verdict)}: {_figure(verdict)}, {_comparison(verdict)} ({_sample_size(verdict)})"
    )
    clauses = [f"{_outcome(verdict)}: {main_clause}"]
    if verdict.outcome == "undecided":
        clauses.append(_would_decide(verdict))
    if verdict.left_out:
        unlike = counted(verdict.left_out, "question")
        clauses.append(f"{unlike} skipped, because the right answers differ between the runs")
    if verdict.rule.worst:
        clauses.append(_WORST)
    if origin and is_simulated(verdict.model):
        clauses.append(_SIMULATED_NOTE)
    if origin and is_imported(verdict.run):
        clauses.append("imported, not collected by holdfast")
    return one_line("; ".join(clauses))


def looked_sentence(look_result: Looked) -> str:
    """Return a sequential verdict in one line, with its confidence sequence and deciding look."""
    about, figure, interval, requirement, at = _look_parts(look_result)
    sentence = (
        f"{_outcome(look_result)}: {about}: {figure} {interval}, required: {requirement}; {at}"
    )
    if look_result.rule.worst:
        sentence += f"; {_WORST}"
    if is_simulated(look_result.model):
        sentence += f"; {_SIMULATED_NOTE}"
    return one_line(sentence)


def _look_parts(look_result: Looked) -> tuple[str, str, str, str, str]:
    """Return subject, value, confidence sequence, requirement and deciding look."""
    points = look_result.rule.condition.points
    value = "none" if look_result.value is None else _share(look_result.value, points)
    low, high = (_share(bound, points, unit=False) for bound in (look_result.low, look_result.high))
    return (
        _subject(look_result),
        f"{look_result.rule.condition.measure} {value}",
        f"[{low}, {high}]",
        f"at {look_result.rule.condition.sense} {_share(look_result.rule.threshold, points)}",
        f"not decided by {counted(look_result.questions, 'question')}{_questions_left(look_result)}"
        if look_result.at is None
        else f"decided by the first {counted(look_result.at, 'question')}",
    )


def _questions_left(look_result: Looked) -> str:
    """Return a clause on how many more questions would decide the rule."""
    if not look_result.questions:
        return ""
    if look_result.further is None:
        return ", and no number of questions would decide it if the value stays the same"
    return (
        f", and about {counted(look_result.further, 'further question')} would decide it if the "
        "value stays the same"
    )


def reason(verdict: Verdict | Looked) -> str:
    """Return the rule of a verdict by its name, with the value, its interval and the limit."""
    rule = f"rule \u201c{verdict.rule.title}\u201d"
    if isinstance(verdict, Looked):
        _, figure, interval, requirement, at = _look_parts(verdict)
        return f"{rule} ({verdict.of}): {figure} {interval}, required: {requirement}; {at}"
    text = f"{rule} ({verdict.of}): {_figure(verdict)}, {_comparison(verdict)}"
    return f"{text}; {_would_decide(verdict)}" if verdict.outcome == "undecided" else text


def looked_markdown(look_results: Sequence[Looked]) -> str:
    """Return sequential verdicts in Markdown, in the layout of ``gate_markdown``."""
    header = ["Outcome", "Rule", "About", "Value", "Confidence sequence", "Required", "Decided"]
    lines = [header, ["---"] * len(header)]
    lines += [
        [_MARKS[result.outcome], *map(markdown_text, (result.rule.title, *_look_parts(result)))]
        for result in look_results
    ]
    below = ["Confidence sequences are valid for all looks together."]
    if any(result.rule.worst for result in look_results):
        below.append(f"{_WORST[:1].upper()}{_WORST[1:]}.")
    if any(is_simulated(result.model) for result in look_results):
        below.append(_IS_SIMULATED)
    outcome = overall(look_results) if look_results else "undecided"
    return (
        f"## holdfast run --until: {outcome}\n\n{markdown_rows(lines)}\n"
        + "\n\n".join(below)
        + "\n"
    )


def looked_rows(look_results: Sequence[Looked]) -> list[Mapping[str, Any]]:
    """Return sequential verdicts as JSON rows, with shares from 0 to 1 and sentences."""
    return [
        {
            "rule": result.rule.title,
            "condition": result.rule.key,
            "outcome": result.outcome,
            "model": result.model,
            "dataset": result.dataset,
            "protocol": result.protocol,
            "of": result.of,
            **({"missing": "worst"} if result.rule.worst else {}),
            "value": result.value,
            "low": result.low,
            "high": result.high,
            "threshold": result.rule.threshold,
            "decided_at": result.at,
            "questions": result.questions,
            "further_questions": result.further,
            "n": result.n,
            "simulated": is_simulated(result.model),
            "run": result.run,
            "sentence": looked_sentence(result),
        }
        for result in look_results
    ]


def _share(value: float, points: bool, *, unit: bool = True) -> str:
    share_text = percent(value)
    return share_text if not unit else f"{share_text} points" if points else f"{share_text}%"


def gate_counts(verdicts: Sequence[Verdict]) -> str:
    """Return the outcome of the gate and the counts of verdicts in one line."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    counts_text = (
        f"{counts['pass']} passed, {counts['fail']} failed, {counts['undecided']} undecided"
    )
    return f"gate: {overall(verdicts)} ({counts_text})"


def gate_markdown(verdicts: Sequence[Verdict], level: float) -> str:
    """Return a summary in Markdown for ``$GITHUB_STEP_SUMMARY``, with names escaped.

    Args:
        verdicts: verdicts in their order.
        level: coverage of their intervals.
    """
    header = ["Outcome", "Rule", "About", "Value", "Interval", "Required", "n", "Further"]
    lines = [header, ["---"] * len(header)]
    for verdict in verdicts:
        value, interval = _parts(verdict)
        texts = [
            verdict.rule.title,
            _subject(verdict),
            f"{verdict.rule.condition.measure} {value}" + f"; {_WORST}" * verdict.rule.worst,
            interval,
            _requirement(verdict),
            _sample_size(verdict),
            "" if verdict.further is None else f"about {verdict.further:,} questions",
        ]
        lines.append([_MARKS[verdict.outcome], *map(markdown_text, texts)])
    below = [f"Intervals of {100 * level:g}%. {_READING}"]
    if any(is_simulated(verdict.model) for verdict in verdicts):
        below.append(_IS_SIMULATED)
    if any(is_imported(verdict.run) for verdict in verdicts):
        below.append("IMPORTED: not collected by holdfast.")
    head = markdown_text(gate_counts(verdicts))
    return f"## holdfast {head}\n\n{markdown_rows(lines)}\n" + "\n\n".join(below) + "\n"


def gate_rows(verdicts: Sequence[Verdict]) -> list[Mapping[str, Any]]:
    """Return verdicts as JSON rows, with shares from 0 to 1 and sentences."""
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
    "A rule passes if the whole interval meets it. It fails if no part of the interval meets it. "
    "Otherwise it is undecided."
)


def _outcome(verdict: Verdict | Looked) -> str:
    """Return the outcome, with the name of the rule if it has one."""
    name = verdict.rule.name
    return f"{verdict.outcome} ({name})" if name else verdict.outcome


def _subject(verdict: Verdict | Looked) -> str:
    parts = [f"{verdict.system} on {verdict.dataset}", verdict.protocol, *_parts_of_run(verdict)]
    return ", ".join(parts)


def _parts_of_run(verdict: Verdict | Looked) -> list[str]:
    """Return the parts of the run that a verdict is about."""
    labels = [f"{name} {label}" for name, label in verdict.rule.strata.items()]
    has_several = isinstance(verdict, Verdict) and verdict.is_one_of_several
    return [verdict.of, *labels, *([f"run {verdict.run}"] if has_several else [])]


def _figure(verdict: Verdict) -> str:
    value, interval = _parts(verdict)
    measure = verdict.rule.condition.measure
    if verdict.value is None:
        return f"no {measure}"
    source = f" from {verdict.rule.no_worse_than}" if verdict.rule.no_worse_than else ""
    return f"{measure} {value}{source} {interval or '[no interval]'}"


def _parts(verdict: Verdict) -> tuple[str, str]:
    """Return the value and its interval."""
    if verdict.value is None:
        return "n/a", ""
    points = verdict.rule.condition.points
    sign = "+" if verdict.rule.no_worse_than else ""
    value = f"{_number(verdict.value, sign)}{' points' if points else '%'}"
    if verdict.low is None or verdict.high is None:
        return value, ""
    return value, f"[{_number(verdict.low, sign)}, {_number(verdict.high, sign)}]"


def _number(share: float, sign: str = "") -> str:
    # adding zero turns -0.0 into 0.0
    return f"{round(100 * share, 1) + 0.0:{sign}.1f}"


def _requirement(verdict: Verdict) -> str:
    """Return the requirement of the rule."""
    limit = f"{abs(100 * verdict.threshold):g}"
    if verdict.rule.no_worse_than:
        return f"at most {limit} points worse than {verdict.rule.no_worse_than}"
    unit = " points" if verdict.rule.condition.points else "%"
    return f"at {verdict.rule.condition.sense} {limit}{unit}"


def _comparison(verdict: Verdict) -> str:
    if verdict.outcome == "undecided":
        return f"required: {_requirement(verdict)}"
    if verdict.outcome == "pass":
        return _requirement(verdict)
    at, wrong = {"least": ("at least", "less than"), "most": ("at most", "more than")}[
        "most" if verdict.rule.no_worse_than else verdict.rule.condition.sense
    ]
    return _requirement(verdict).replace(at, wrong, 1)


def _sample_size(verdict: Verdict) -> str:
    over = (
        "" if verdict.n == verdict.questions else f" over {counted(verdict.questions, 'question')}"
    )
    return f"n = {verdict.n}{over}"


def _would_decide(verdict: Verdict) -> str:
    if verdict.is_unfinished:
        return "the run is unfinished"
    if verdict.missing:
        return "it would not pass if missing replies counted against the model"
    if verdict.value is None or verdict.low is None:
        return "there is no value to decide on"
    if verdict.further is None:
        return "no number of questions would decide it if the value stays the same"
    return (
        f"about {verdict.further:,} further questions would decide it if the value stays the same"
    )


def junit_xml(verdicts: Sequence[Verdict | Looked]) -> str:
    r"""Return a JUnit test suite with a test case for each verdict.

    A failed rule has a ``failure``. An undecided rule has an ``error``, because CI systems list
    errors next to failures, while a skipped test would look harmless. The exit code is not 0 in
    both cases. Both carry the sentence. A passed rule has its sentence as standard output.
    Characters that XML 1.0 does not allow are escaped as ``\u`` and a number.

    Args:
        verdicts: verdicts in their order.

    Returns:
        The XML document with its declaration, UTF-8.
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
        name_parts = [verdict.rule.title, *_parts_of_run(verdict)]
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {
                "classname": one_line(f"{verdict.system} on {verdict.dataset}, {verdict.protocol}"),
                "name": one_line(", ".join(name_parts)),
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
