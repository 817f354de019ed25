"""Write the precision of each reading rule on the labelled replies.

Usage: python -m benchmarks.rules [OUT]

A rule decides a reply if the reply gets its answer from it. Real replies are those of models in
../shared/data, labelled by other people. Written ones were written for holdfast: in ../shared/data,
and in tests/reading, where the rules were written with them in view.
"""

import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.extraction import DATA, load

from holdfast.reading.answers import ASIDE, FORM, MARKED, NAMED, RANKS, STATED, extract_answer
from holdfast.reading.decisions import read_decision
from holdfast.reading.extraction import Extraction

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks/rules.md"
REAL, WRITTEN = "real", "written"
FILES = {
    DATA / "labelled_answers/mmlu_replies.jsonl": REAL,
    DATA / "capitulations/claude_haiku.jsonl": REAL,
    DATA / "followup_remarks/replies.jsonl": WRITTEN,
}
RANK_NAMES = {MARKED: "marked", NAMED: "named", STATED: "stated", FORM: "form", ASIDE: "aside"}
HEAD = """# Precision of the reading rules

`python -m benchmarks.rules` made this page. It counts, for each rule that gives an answer, the
labelled replies that the rule decided. {real:,} real replies were labelled by other people.
{written:,} replies were written for holdfast, part of them while the rules were written, so expect
less for other replies. [How replies are parsed](../concepts/reading.md) explains the rules.

| Rule | Rank | Real replies | Right | Wrong | Precision | Written replies | Right | Wrong |
|---|---|---:|---:|---:|---:|---:|---:|---:|
"""


class Reading(NamedTuple):
    """Extraction of a labelled reply."""

    kind: str
    label: str | None
    extraction: Extraction


def readings() -> Iterator[Reading]:
    """Read all labelled replies."""
    for file, kind in FILES.items():
        for row in load(file):
            yield Reading(kind, row.label, extract_answer(row.reply, row.options))
    for name in ("answer_replies", "decision_replies", "minimal_pairs", "written_replies"):
        groups = tomllib.loads((ROOT / f"tests/reading/{name}.toml").read_text("utf-8"))
        settings = groups.pop("settings", None) or {
            key: {"options": options} for key, options in groups.pop("options").items()
        }
        for rows in groups.values():
            for setting, *rest in rows:
                sides = rest if isinstance(rest[0], list) else [rest]
                for label, reply in sides:
                    yield Reading(WRITTEN, label, _read(settings[setting], reply))


def _read(setting: Mapping[str, object], reply: str) -> Extraction:
    read = read_decision if "held_letter" in setting else extract_answer
    return read(reply, **setting)  # type: ignore[arg-type]


def page() -> str:
    """Return the page."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    sizes: Counter[str] = Counter()
    for reading in readings():
        sizes[reading.kind] += 1
        rule, _, _ = reading.extraction.rule.partition(":")
        answer = reading.extraction.answer
        if answer is not None:
            counts[rule, reading.kind, answer == reading.label] += 1
    totals = Counter({rule: 0 for rule, _, _ in counts})
    for (rule, _, _), n in counts.items():
        totals[rule] += n
    lines = []
    for rule, _ in totals.most_common():
        cells = []
        for kind in (REAL, WRITTEN):
            right, wrong = counts[rule, kind, True], counts[rule, kind, False]
            share = f"{right / (right + wrong):.1%}" if right + wrong else ""
            cells += [f"{right + wrong:,}", f"{right:,}", f"{wrong:,}"]
            cells += [share] if kind == REAL else []
        rank = RANK_NAMES.get(RANKS.get(rule, 0.0), "form")
        lines.append(f"| `{rule}` | {rank} | " + " | ".join(cells) + " |")
    return HEAD.format(real=sizes[REAL], written=sizes[WRITTEN]) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(page(), "utf-8")
