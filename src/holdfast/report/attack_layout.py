"""MedFuzz: accuracy after k attempts, outcomes, attacks ranked and tested, and faithfulness."""

import json
from collections.abc import Callable, Sequence

from holdfast.published import medfuzz

from .grid import Grid
from .listings import Column, count, listing
from .matrix import Figure, interval, matrix, percent
from .studies import Row, studies
from .tables import one_line


def attacks(rows: Sequence[Row]) -> list[Grid] | None:
    """Accuracy after k attempts, studies beside each other (Figure 2)."""
    columns = studies(rows)
    figures = [
        Figure(
            columns.of(row), "", "", count(row["k"]), _with_interval(row, "accuracy", ""), of=row
        )
        for row in rows
    ]
    kept = [
        f"{columns.headers[columns.of(row)]} {count(row['replicates'])} replicates of "
        f"{count(row['questions'])} questions"
        for row in rows
        if row["k"] == 0
    ]
    paper = medfuzz()
    notes = [
        "Share of the replicates, in percent, whose first answer was right and that no attempt up "
        "to k turned [95% Wilson interval]; model errors dropped.",
        f"Kept: {', '.join(kept)}.",
        f"People: {paper.human_accuracy} on average on {paper.human_examination} "
        f"({paper.citation}, Figure 2).",
        *columns.notes(),
    ]
    grid = matrix(figures, columns.headers, "Attempts k", notes)
    return None if grid is None else [grid]


def attack_summary(rows: Sequence[Row]) -> list[Grid] | None:
    """Outcomes and what they took, studies beside each other."""
    shown: list[tuple[str, list[Column]]] = [
        (
            "Replicates",
            [
                ("Questions", lambda row: count(row["questions"])),
                ("All replicates", lambda row: count(row["replicates"])),
                ("First answer wrong", lambda row: count(row["first_wrong"])),
                ("Attack failed", lambda row: count(row["failed"])),
                ("Attack succeeded", lambda row: count(row["succeeded"])),
                ("Model error", lambda row: count(row["model_errors"])),
                ("of which refused", lambda row: count(row["refused"])),
                ("of which filtered", lambda row: count(row["filtered"])),
                ("of which unread", lambda row: count(row["unread"])),
                ("Unfinished", lambda row: count(row["unfinished"])),
            ],
        ),
        (
            "Attacks",
            [
                ("Succeeded %", lambda row: _with_interval(row, "success_rate", "")),
                ("Attempts needed, mean", lambda row: _number(row["attempts_needed"], 2)),
                ("Tries of the attacker", lambda row: count(row["tries"])),
                ("Invalid tries", lambda row: count(row["invalid_tries"])),
                ("Attempts without a valid one", lambda row: count(row["invalid_attempts"])),
                ("Invalid for", _reasons),
            ],
        ),
        (
            "Cost",
            [
                ("Dollars", lambda row: _number(row["cost"], 4)),
                ("Dollars for a success", lambda row: _number(row["cost_per_success"], 4)),
                ("Generations without a price", lambda row: count(row["unpriced"])),
            ],
        ),
    ]
    columns = studies(rows)
    figures = [
        Figure(columns.of(row), block, "", label, show(row), of=row)
        for block, lines in shown
        for label, show in lines
        for row in rows
    ]
    notes = [
        "Succeeded: of the replicates attacked without a model error [95% Wilson interval]. "
        "Unfinished replicates are in no other line but the cost. The cost is that of attacker and "
        "model, without the judge's.",
        *columns.notes(),
    ]
    grid = matrix(figures, columns.headers, "", notes)
    return None if grid is None else [grid]


def attack_list(rows: Sequence[Row]) -> list[Grid]:
    """Successful attacks in the order in which an expert may want to see them."""
    shown: list[Column] = [
        ("Question", lambda row: one_line(row["question"])),
        ("Replicate", lambda row: count(row["epoch"])),
        ("k", lambda row: count(row["k"])),
        ("Answer", lambda row: f"{one_line(row['gold'])} > {one_line(row['answer'])}"),
        ("Review", lambda row: count(row["review"])),
        ("Effect", lambda row: percent(row["effect"], signed=True)),
        ("p", lambda row: _number(row["p_value"], 3)),
        ("Adjusted", lambda row: _number(row["p_adjusted"], 3)),
        ("Words", lambda row: count(row["words"])),
        ("Added", lambda row: "; ".join(_texts(row["characteristics"]))),
    ]
    notes = [
        "Ranked by the judge's review, the drop of p(correct), the p-value, the attempts and the "
        "words added. Answer: the right one and the one given. Effect: of the attack on p(correct) "
        "in points. Empty: not tested, or not known.",
    ]
    return [listing(rows, "Rank", lambda row: count(row["rank"]), shown, notes)]


def permutation(rows: Sequence[Row]) -> list[Grid]:
    """Tested attacks with their p-values, a block for each run of the test."""
    shown: list[Column] = [
        ("Replicate", lambda row: count(row["epoch"])),
        ("k", lambda row: count(row["k"])),
        ("p0 %", lambda row: percent(row["p0"])),
        ("pa %", lambda row: percent(row["pa"])),
        ("Effect", lambda row: percent(row["effect"], signed=True)),
        ("b of M", lambda row: "" if row["b"] is None else f"{row['b']} of {row['m']}"),
        ("b / M", lambda row: _number(row["p_value"], 3)),
        ("(b + 1) / (M + 1)", lambda row: _number(row["p_plus_one"], 3)),
        ("Adjusted", lambda row: _number(row["p_adjusted"], 3)),
        ("Samples", lambda row: count(row["samples"])),
        ("By", lambda row: one_line(row["by"])),
        ("Invalid", lambda row: count(row["invalid"])),
        ("Failed", lambda row: count(row["failed"])),
        ("Unread", lambda row: count(row["unread"])),
    ]
    notes = [
        "p0 and pa: p(correct) of the original and of the attacked question. b: controls that "
        "change it at least as much, of M with an estimate. Adjusted: (b + 1) / (M + 1) after "
        "Benjamini and Hochberg over the attacks of the run. Invalid: controls that the attacker "
        "gave no valid text for; failed: others without an estimate. Unread: probes.",
    ]
    return [listing(rows, "Question", lambda row: one_line(row["question"]), shown, notes)]


def faithfulness(rows: Sequence[Row]) -> list[Grid]:
    """How much of what turned an answer its reasoning mentions (Figure 3)."""
    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        *(_class(name) for name in ("none", "some", "all")),
        ("Mentioned %", lambda row: _with_interval(row, "mentioned", "mentioned_")),
        ("Unread", lambda row: count(row["unread"])),
        ("Kappa", _kappa("kappa", "n_both")),
        ("of characteristics", _kappa("kappa_characteristics", "n_characteristics")),
    ]
    notes = [
        "Of the successful attacks with a reading, those whose reasoning mentions none, some or "
        "all of the characteristics that were added, in percent [95% interval], and the mean share "
        "mentioned. Kappa: agreement of the judge with the lexical check on the class, and on each "
        "characteristic (n that both read).",
    ]
    return [listing(rows, "By", lambda row: one_line(row["by"]), shown, notes)]


def _class(name: str) -> Column:
    def show(row: Row) -> str:
        return f"{count(row[name])}: {_with_interval(row, f'{name}_share', f'{name}_')}"

    return name.capitalize(), show


def _kappa(name: str, n: str) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        return f"{row[name]:.2f} ({row[n]})" if row[name] is not None else ""

    return show


def _reasons(row: Row) -> str:
    found = json.loads(row["reasons"])
    return ", ".join(f"{one_line(reason) or 'unnamed'} {n}" for reason, n in found.items())


def _texts(listed: str | None) -> list[str]:
    """Texts of a JSON list; what is none is shown as it is."""
    try:
        read = json.loads(listed or "[]")
    except (ValueError, RecursionError):
        read = listed
    return [one_line(str(text)) for text in (read if isinstance(read, list) else [read])]


def _with_interval(row: Row, name: str, prefix: str) -> str:
    bounds = interval({"low": row[f"{prefix}low"], "high": row[f"{prefix}high"]})
    return " ".join(filter(None, [percent(row[name]), bounds]))


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
