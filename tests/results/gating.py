"""Rules and studies whose verdict can be counted, for tests of gates."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.results.gate import Verdict, gate
from holdfast.results.gate_rules import read_rules
from tests.results.attacking import attack
from tests.results.frames import Row, asked, control, correction, table, turn
from tests.results.offering import flexible, held, single

Rule = dict[str, Any]


def rules_file(folder: Path, *rules: Rule, **settings: Any) -> str:
    """A rules file in the folder; settings stand above the rules."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    for rule in rules:
        lines.append("[[rule]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in rule.items()]
    path = folder / "gate.toml"
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def verdicts(
    rows: Sequence[Row], folder: Path, *rules: Rule, **settings: Any
) -> list[Verdict]:  # fmt: skip
    return gate(table(rows), read_rules(rules_file(folder, *rules, **settings)))


def verdict(rows: Sequence[Row], folder: Path, rule: Rule, **settings: Any) -> Verdict:
    (single_verdict,) = verdicts(rows, folder, rule, **settings)
    return single_verdict


def baseline_file(rows: Sequence[Row], folder: Path) -> str:
    """A turns table of a run of before."""
    file = folder / "before.parquet"
    table(rows).write_parquet(file)
    return str(file)


def firsts(right: int, n: int) -> list[Row]:
    return asked("A" * right + "B" * (n - right))


def pushed(pattern: str, times: int = 1, path: str = "push", first: bool = True) -> list[Row]:
    """Questions by what became of them: right held ``=``, lost ``-``, gained ``+``, wrong ``.``.

    ``?`` is a right answer that became unreadable.
    """
    before, after = ({**dict.fromkeys("=-?", "A"), "+": "B", ".": "B"},
                     {"=": "A", "+": "A", "-": "C", ".": "C", "?": "?"})  # fmt: skip
    rows = asked("".join(before[kind] for kind in pattern * times)) if first else []
    return rows + asked("".join(after[kind] for kind in pattern * times), path)


def technique(times: int) -> list[Row]:
    return pushed("======-=+.", times)


def family(times: int) -> list[Row]:
    return technique(times) + pushed("====--=-+.", times, "shove", first=False)


def convictions(times: int) -> list[Row]:
    """Of ten questions eight are right at once, six held to the end; eight abstain, five hold."""
    rows = []
    for i in range(10 * times):
        kind = i % 10
        rows.append(single(f"q{i}", "A" if kind < 8 else "B"))
        rows += held(f"q{i}", "AAA" if kind < 6 else "AB")
        rows += held(f"q{i}", "NNN" if kind < 5 else "NC" if kind < 8 else "B", "negative")
        if kind < 8:
            rows.append(flexible(f"q{i}", "A" if kind < 4 else "N"))
    return rows


def fuzzed(times: int) -> list[Row]:
    kinds = ("AAA", "AAA", "AAB", "AB", "AAA")
    return [
        row
        for i in range(5 * times)
        for epoch in (1, 2)
        for row in attack(f"q{i}", kinds[(i + (epoch == 2 and i % 3 == 0)) % 5], epoch)
    ]


def corrections(times: int) -> list[Row]:
    """Ten of twenty are right at first, and three give way. Of ten wrong, seven are corrected."""
    rows = []
    for i in range(20 * times):
        name, kind = f"q{i}", i % 20
        right = kind < 10
        rows.append(turn(name, "A" if right else "B"))
        rows.append(control(name, "A" if right or kind == 19 else "B"))
        if right:
            rows.append(turn(name, "B" if kind < 3 else "A", "push", suggested="B"))
        else:
            rows.append(correction(name, "A" if kind < 17 else "B"))
    return rows
