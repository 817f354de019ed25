"""Turns of flip, resistance by turn and the sticky incorrect ratio as people read them."""

from collections.abc import Sequence

from .grid import Grid
from .listings import Column, count, listing, path_label
from .matrix import percent
from .studies import Row
from .tables import one_line


def turn_of_flip(rows: Sequence[Row]) -> list[Grid]:
    """Turn and number of flips, a block for each study and arm."""
    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        ("Answers", lambda row: count(row["turns"])),
        ("Turn of flip", lambda row: _number(row, "turn_of_flip", "low", "high")),
        ("Never", lambda row: count(row["never"])),
        ("Flips", lambda row: _number(row, "number_of_flips", "flips_low", "flips_high")),
        ("Changes", lambda row: _number(row, "answer_changes")),
        ("Unread", lambda row: count(row["unread"])),
    ]
    notes = [
        "Turn of flip: mean turn of the first answer that is not the target, the first answer "
        "being turn 0; the number of answers where that is never [95% interval]. Flips: mean "
        "number of times that the target is left or taken up again. Changes: mean number of times "
        "that the answer is another one than before. Unread: replies, which are not the target.",
    ]
    return [listing(rows, "Challenges", path_label, shown, notes, _arm)]


def resistance(rows: Sequence[Row]) -> list[Grid]:
    """Resistance with a column for each turn, a block for each study and arm."""
    by_turn: dict[tuple[str, ...], dict[int, Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("run", "model", "dataset", "arm", "path", "first"))
        by_turn.setdefault(key, {})[row["turn"]] = row

    def at(turn: int) -> Column:
        def show(row: Row) -> str:
            own = row["by_turn"].get(turn)
            return "" if own is None else _share(own, "resistance", "low", "high")

        return f"t = {turn}, %", show

    shown: list[Column] = [
        ("First answers", lambda row: one_line(row["first"])),
        ("n", lambda row: count(row["n"])),
        *(at(turn) for turn in sorted({row["turn"] for row in rows})),
    ]
    lines = [{**next(iter(own.values())), "by_turn": own} for own in by_turn.values()]
    notes = [
        "Share of the conversations whose first answer was repeated at every turn up to t [95% "
        "interval], of all of them and of those with a right and a wrong first answer.",
    ]
    return [listing(lines, "Challenges", path_label, shown, notes, _arm)]


def sticky_incorrect(rows: Sequence[Row]) -> list[Grid]:
    """Flips by what the first answer was, a block for each study and arm."""
    shown: list[Column] = [
        ("Right first", lambda row: count(row["n_right"])),
        ("flipped %", lambda row: _share(row, "right_flip_rate", "right_low", "right_high")),
        ("Wrong first", lambda row: count(row["n_wrong"])),
        ("flipped % ", lambda row: _share(row, "wrong_flip_rate", "wrong_low", "wrong_high")),
        ("Difference", _difference),
        ("Ratio", lambda row: _number(row, "ratio", "ratio_low", "ratio_high")),
        ("Own pushed", lambda row: count(row["suggested_own"])),
        ("First unread", lambda row: count(row["first_unread"])),
    ]
    notes = [
        "Flipped: first answers that some later turn leaves. Difference: flips of right less those "
        "of wrong first answers in percentage points. Ratio: share of wrong first answers kept "
        "over that of right ones; above 1 right answers move more easily [95% intervals]. Not "
        "counted: conversations that push the model's own first answer, and those whose first "
        "answer could not be read.",
    ]
    return [listing(rows, "Challenges", path_label, shown, notes, _arm)]


def _arm(row: Row) -> str:
    return one_line(row["arm"])


def _difference(row: Row) -> str:
    return _share(row, "difference", "difference_low", "difference_high", signed=True)


def _share(row: Row, *names: str, signed: bool = False) -> str:
    """A share in percent with its interval, as ``54.0 [51.2, 56.7]``."""
    share, low, high = (percent(row[name], signed=signed) for name in names)
    return f"{share} [{low}, {high}]" if low and high else share


def _number(row: Row, name: str, *bounds: str) -> str:
    """A number with its interval if it has one, as ``1.20 [0.95, 1.45]``."""
    if row[name] is None:
        return ""
    known = [f"{row[bound]:.2f}" if row[bound] is not None else "" for bound in bounds]
    return f"{row[name]:.2f} [{', '.join(known)}]" if any(known) else f"{row[name]:.2f}"
