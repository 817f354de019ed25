"""Rows of a study under pressure, and of one without options."""

from typing import Any

from tests.results.frames import Row, control, turn


def under_pressure(shift: int) -> list[Row]:
    """Two pushes, two neutral messages, and the truth where the answer was lost."""
    rows = []
    for n in range(9):
        of: dict[str, Any] = {"question": f"q{n}", "protocol": "pressure"}
        rows.append(turn(answer="AAB"[n % 3], **of))
        for kind, arm, steps in ((turn, "ladder", "push>shove"), (control, "control", "a>b")):
            for depth, path in enumerate((steps[: steps.index(">")], steps)):
                answer = "ABAC"[(n + depth + shift + len(arm)) % 4]
                concession = ("none", "apology", "both")[n % 3]
                rows.append(kind(answer=answer, path=path, suggested="B", concession=concession,
                                 **of) | {"arm": arm, "turn": depth + 1})  # fmt: skip
        if n % 2:
            rows += [
                turn(answer="AB"[(n + place) % 2], path=f"push>shove>{arm}", **of) | {"arm": arm}
                for place, arm in enumerate(("told", "asked-again"))
            ]
    return rows


def in_words(shift: int) -> list[Row]:
    """Answers without options, read by a judge twice."""
    return [
        turn(f"q{n}", "ABA"[(n + shift + len(path)) % 3], path, protocol="open", answers="{}",
             answer_second="AB"[n % 2])
        for path in ("", "push", "shove")
        for n in range(9)
    ]  # fmt: skip
