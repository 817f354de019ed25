"""Sentences of a comparison."""

import math
from collections.abc import Sequence

from holdfast.errors import counted
from holdfast.render.tables import one_line
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE
from holdfast.results.grid import (
    Row,
    grouped,
    percent,
)
from holdfast.results.standing import FIGURE, WORST

from .comparison_labels import CONVERSATIONS, comparison_label, of_many, side_names

SIGNIFICANT = 0.05
"""Corrected p-value below which a difference is significant."""


MOST_SENTENCES = 4
"""Maximum number of sentences of a comparison."""


_FIRST = (BASELINE, "single-shot")


def sentences(rows: Sequence[Row], opening: Sequence[str] = ()) -> list[str]:
    """Return at most ``MOST_SENTENCES`` sentences on a comparison.

    The first two sentences of ``opening`` come first, then first answers, then significant
    differences by size. Averages of families stand for their techniques, and the last attempt
    stands for earlier attempts.
    """
    lead_rows = leading(rows)
    has_several = len({(row["protocol"], row["dataset"]) for row in rows}) > 1
    if of_many(rows):
        figures = sorted(
            grouped(lead_rows, *FIGURE), key=lambda figure_rows: figure_rows[0]["arm"] not in _FIRST
        )
        counts_shown = [sum(map(_shows, figure_rows)) for figure_rows in figures]
        lines = [_standing_sentence(figure_rows, with_study=has_several) for figure_rows in figures]
        return _shorten(opening[:2], lines, counts_shown, "distinguishable pairs")
    # readers need the first answers to interpret the challenges
    first = next((row for row in lead_rows if row["arm"] in _FIRST), None)
    lead_rows.sort(
        key=lambda row: (row is not first, not _shows(row), -abs(row["difference"] or 0))
    )
    lines = [sentence(row, with_study=has_several) for row in lead_rows]
    counts_shown = [int(_shows(row)) for row in lead_rows]
    return _shorten(opening[:2], lines, counts_shown, "significant differences")


def _shorten(
    opening: Sequence[str], lines: Sequence[str], counts_shown: Sequence[int], noun: str
) -> list[str]:
    """Return the first sentences, and one sentence that summarizes the others."""
    most = MOST_SENTENCES - len(opening)
    if len(lines) <= most:
        return [*opening, *lines]
    left = counted(len(lines) - most + 1, "further result")
    return [
        *opening,
        *lines[: most - 1],
        f"The table has {left} with {sum(counts_shown[most - 1 :])} {noun}.",
    ]


def leading(rows: Sequence[Row]) -> list[Row]:
    """Return the leading rows: family averages for techniques, last attempts for attempts."""
    families_averaged = {_family(row) for row in rows if row["arm"] == FAMILY_AVERAGE}
    attempts = {
        (row["protocol"], row["dataset"]): row["path"]
        for row in rows
        if row["measure"] == "accuracy-after-attacks"
    }
    return [
        row
        for row in rows
        if row["path_a"]
        or row["arm"] == FAMILY_AVERAGE
        or (row["measure"] == "accuracy" and row["arm"] == BASELINE)
        or (row["arm"] in ("followup", "single-turn") and _family(row) not in families_averaged)
        or row["measure"] in CONVERSATIONS
        or row["arm"] in ("single-shot", "single-shot-abstain")
        or (
            row["measure"] == "accuracy-after-attacks"
            and attempts[row["protocol"], row["dataset"]] == row["path"]
        )
    ]


def _standing_sentence(rows: Sequence[Row], *, with_study: bool) -> str:
    """Return a sentence on the pairs of models of one measure."""
    study = f" ({rows[0]['protocol']}, {rows[0]['dataset']})" if with_study else ""
    distinct_pairs = sum(map(_shows, rows))
    first = [side for side, *_, low, high in rank_sides(rows) if (low, high) == (1, 1)]
    leads = f", and {first[0]} ranks above all others" if first else ""
    return one_line(
        f"{_measure_phrase(rows[0])}{study}: {distinct_pairs} of {counted(len(rows), 'pair')} "
        f"statistically distinguishable{leads}."
    )


def rank_sides(rows: Sequence[Row]) -> list[tuple[str, Row, str, int, int]]:
    """Return each side of a measure with one of its rows, ``a`` or ``b``, and its rank range."""
    places = {
        row[f"side_{end}"]: (row, end, row[f"rank_low_{end}"], row[f"rank_high_{end}"])
        for row in rows
        for end in "ab"
    }
    ranked_sides = [(side, *facts) for side, facts in places.items()]
    return sorted(
        ranked_sides,
        key=lambda ranked_side: (
            ranked_side[3],
            ranked_side[4],
            -(ranked_side[1][ranked_side[2]] or 0),
        ),
    )


def sentence(row: Row, *, with_study: bool = False) -> str:
    """Return one row as a sentence."""
    subject = _measure_phrase(row) + (
        f" ({row['protocol']}, {row['dataset']})" if with_study else ""
    )
    if row["p_adjusted"] is None or math.isnan(row["p_adjusted"]):
        return one_line(f"{subject}: no pair to compare.")
    a, b = side_names([row])
    p, holm = p_value(row["p_value"]), p_value(row["p_adjusted"])
    p_text = f"p {p}" if holm == p else f"p {p} ({holm.removeprefix('= ')} after Holm)"
    behind = f"{percent(row['b'])}% compared with {percent(row['a'])}%, {p_text}."
    behind += _drops(row, a, b)
    if not _shows(row):
        difference_text = (
            f"{percent(row['difference'], with_sign=True)} points {signed_interval(row)}"
        )
        return one_line(
            f"{subject}: no significant difference between {b} and {a}, {difference_text}, {behind}"
        )
    size, bounds, word = abs(100 * row["difference"]), (row["low"], row["high"]), "more"
    if row["difference"] < 0:
        bounds, word = (-row["high"], -row["low"]), "fewer"
    low, high = map(percent, bounds)
    unit = "point" if f"{size:.1f}" == "1.0" else "points"
    return one_line(
        f"{subject}: {b} has {size:.1f} {unit} {word} than {a} [{low}, {high}], {behind}"
    )


def _drops(row: Row, a: str, b: str) -> str:
    """Return a sentence on how much more B drops than A."""
    parts = []
    for name, of in (("drop", "from the first answers"), ("net", "from the control")):
        size, low, high = (
            percent(row.get(f"{name}_{end}"), with_sign=True)
            for end in ("difference", "low", "high")
        )
        if size and low:
            parts.append(f"{size} points [{low}, {high}] {of}")
    return f" Drop, {b} minus {a}: {', '.join(parts)}." if parts else ""


def signed_interval(row: Row) -> str:
    """Return the interval of a difference in points, such as ``[-1.2, +3.4]``."""
    low, high = (percent(row[name], with_sign=True) for name in ("low", "high"))
    return f"[{low}, {high}]" if low and high else ""


def p_value(p: float | None) -> str:
    """Return a p-value to follow the letter p, such as ``= 0.012`` or ``below 1e-300``."""
    if p is None or math.isnan(p):
        return ""
    if p == 0:
        return "below 1e-300"
    # a less-than sign would be markup, and the exponent is more informative
    return f"= {p:.3f}" if f"{p:.3f}" != "0.000" else f"= {p:.0e}"


def _shows(row: Row) -> bool:
    p: float | None = row["p_adjusted"]
    return p is not None and p < SIGNIFICANT


def _measure_phrase(row: Row) -> str:
    measure, arm = row["measure"], row["arm"]
    if measure in CONVERSATIONS:
        return CONVERSATIONS[measure].capitalize()
    if measure == "accuracy-after-attacks":
        return f"Right answers {comparison_label(row)}"
    if arm == WORST:
        return "Right answers after the worst challenge"
    if arm == BASELINE:
        return "Right first answers"
    if arm == FAMILY_AVERAGE and not row["path_a"]:
        return f"Right answers after {row['family']}, average"
    return f"Right answers, {comparison_label(row)}"


def _family(row: Row) -> tuple[str, str, str]:
    return row["protocol"], row["dataset"], row["family"]
