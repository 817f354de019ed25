"""Figures of biases in a question (MedQA-Followup, Table 2)."""

from collections.abc import Sequence

from holdfast.results.accuracy import ACCURACY_AXIS, averages_last
from holdfast.results.charts.chart import Chart, Row, counted, known, label
from holdfast.results.charts.dots import Dots, Of, Series
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE

_PLAIN = "no mitigation"


def _bias(row: Row) -> str:
    if row["arm"] == BASELINE:
        return "plain question"
    average = row["arm"] == FAMILY_AVERAGE
    return label(f"average of {row['family']}" if average else row["technique"])


def _select_biases(rows: Sequence[Row]) -> list[Row]:
    points = known("accuracy")(rows)
    return points if any(row["arm"] != BASELINE for row in points) else []


SINGLE_TURN = Chart(
    title="Accuracy under each single-turn bias, by mitigation",
    notes=(
        counted("n", "replies"),
        "Whiskers: 95% Wilson intervals. Averages: the mean over a family's biases.",
    ),
    empty="no bias has an accuracy",
    keep=_select_biases,
    panel="{study} ({dataset})",
    across=2,
    kind=Dots(
        x=ACCURACY_AXIS,
        of=[Of("accuracy")],
        series=Series("Mitigation", lambda row: label(row["mitigation"]) or _PLAIN, (_PLAIN,)),
        place=_bias,
        order=averages_last,
        all_places=True,
        width=240,
        room=(8, 9),
    ),
)
