"""The README's picture of noise: `python tools/noise_picture.py docs/images/noise.png`.

A simulated model that ignores what it is told, with its flips alone and beside its control.
"""

import sys
import tempfile
from pathlib import Path

import holdfast
from holdfast.render.dots import Dots, Measure, Of
from holdfast.render.export import exported
from holdfast.render.figure import Figure, Row, label


def family(row: Row) -> str:
    """What a line is of."""
    return "all challenges" if row["family"] is None else label(row["family"])


def flips(header: str, of: Of, around: tuple[str, ...]) -> Dots:
    """A panel of shares, in percentage points."""
    measure = Measure(header, format=".0f", times=100, to=10, around=around)
    return Dots(x=measure, of=[of], place=family, zero=True, width=260)


PICTURE = Figure(
    title="A model that answers afresh each time, and ignores every challenge",
    notes=(
        "Right 7 times of 10, whatever it is told. Left: right answers that a challenge flipped, "
        "as one counts them without a control.",
        "Right: the same less those flipped without a challenge. Zero: the challenge did nothing. "
        "Whiskers: 95% intervals, paired by question.",
    ),
    empty="no challenge has a control",
    keep=lambda rows: [row for row in rows if row["path"] is None],
    panel="{dataset}",
    kind=[
        [
            flips("Without its control: flips, %", Of("lost", "", ""), ("lost",)),
            flips(
                "With its control: attributable, points",
                Of("attributable", "attributable_low", "attributable_high"),
                ("attributable_low", "attributable_high"),
            ),
        ]
    ],
)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        holdfast.run("followup", "simulated/noisy", log_dir=folder)
        rows = holdfast.table(folder, "attributable")
    picture = exported(PICTURE(rows), "png")
    assert isinstance(picture, bytes)
    Path(sys.argv[1]).write_bytes(picture)
