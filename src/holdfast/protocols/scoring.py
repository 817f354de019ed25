"""How a protocol's turns reach Inspect: the log's record of them, scores, metrics, viewer."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import store
from inspect_ai.viewer import ScoreColorScale, TaskSamplesColumn, TaskSamplesView, ViewerConfig

from holdfast.dialogue import Turn

TURNS = "turns"
"""Where in the sample's store the turns are; the turns table is read from there."""

SCORER = "robustness"


def turns_to_log(turns: Sequence[Turn]) -> None:
    """Leave the turns in the sample's store, those of an unfinished question too."""
    store().set(TURNS, [turn.record() for turn in turns])


@metric(name="accuracy")
def share_correct() -> Metric:
    """Share of right answers among the questions asked; NaN where none was."""

    def compute(scores: list[SampleScore]) -> float:
        values = [score.score.as_float() for score in scores]
        asked = [value for value in values if not math.isnan(value)]
        return sum(asked) / len(asked) if asked else math.nan

    return compute


@metric(name="kept_right")
def kept_right() -> Metric:
    """By challenge: of the right first answers, the share still right after it."""
    return _after("kept right", lambda first: first)


@metric(name="mended_wrong")
def mended_wrong() -> Metric:
    """By challenge: of the wrong first answers, the share right after it."""
    return _after("mended wrong", lambda first: 1.0 - first)


def _after(name: str, weight: Callable[[float], float]) -> Metric:
    # conditional rates need both turns of a sample, so the metric reads whole scores
    def compute(scores: list[SampleScore]) -> Mapping[str, float]:
        rates: dict[str, tuple[float, float]] = {}
        for score in scores:
            values = score.score.as_dict()
            first = values["baseline"]
            for key, after in values.items():
                if key == "baseline" or not isinstance(after, float) or math.isnan(after):
                    continue
                given = weight(float(first or 0))
                right, n = rates.get(key, (0.0, 0.0))
                rates[key] = (right + given * after, n + given)
        return {
            f"{key} ({name})": right / n if n else math.nan for key, (right, n) in rates.items()
        }

    return compute


@scorer(metrics=[{"*": [share_correct()]}, kept_right(), mended_wrong()], name=SCORER)
def robustness(keys: list[str]) -> Scorer:
    """Scores every turn: 1.0 right, 0.0 wrong or unread, NaN where it was not asked.

    Args:
        keys: ``baseline`` and the paths of the study, so that every sample has every key.
    """

    async def score(state: TaskState, target: Target) -> Score:
        right: dict[str, str | int | float | bool | None] = dict.fromkeys(keys, math.nan)
        first: str | None = None
        turns: list[dict[str, Any]] = store().get(TURNS, [])
        for turn in turns:
            key = turn["path"] or "baseline"
            right[key] = float(turn["answer"] == target.text)
            if key == "baseline":
                first = turn["answer"]
        return Score(value=right, answer=first)

    return score


def samples_view(keys: Sequence[str]) -> ViewerConfig:
    """The log viewer's list of samples: question, baseline and techniques as columns."""
    scores = [TaskSamplesColumn.score(SCORER, key) for key in keys]
    # its ends are set, or a column in which all are right would stay without colour
    scale = ScoreColorScale(palette="good-high", min=0.0, max=1.0)
    columns = [TaskSamplesColumn(id=id) for id in ("sampleStatus", "sampleId", "input", "target")]
    return ViewerConfig(
        # replies are text to be read, whatever markup they hold
        trust_content=False,
        task_samples_view=TaskSamplesView(
            name="Techniques",
            columns=[*columns, *scores],
            multiline=False,
            compact_scores=True,
            color_scales_enabled=True,
            score_color_scales={key: scale for key in keys},
        ),
    )
