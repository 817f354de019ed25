"""The verdicts of a gate as JUnit XML, which CI systems show as tests."""

from collections.abc import Sequence
from xml.etree import ElementTree

from holdfast.results import Verdict

from .gate_summary import gate_sentence
from .tables import one_line


def junit_xml(verdicts: Sequence[Verdict]) -> str:
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
        named = [verdict.rule.title, verdict.of]
        named += [f"{name} {label}" for name, label in verdict.rule.strata.items()]
        named += [f"run {verdict.run}"] if verdict.several else []
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {
                "classname": one_line(f"{verdict.model} on {verdict.dataset}, {verdict.protocol}"),
                "name": one_line(", ".join(named)),
                "time": "0",
            },
        )
        sentence = gate_sentence(verdict)
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
