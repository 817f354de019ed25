"""How a protocol's turns reach Inspect: the log's record of them, scores, metrics, viewer."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState
from inspect_ai.viewer import ScoreColorScale, TaskSamplesColumn, TaskSamplesView, ViewerConfig

from holdfast.dialogue import Turn

TURNS = "turns"
"""Where in the sample's store the turns are; the turns table is read from there."""

SCORER = "robustness"


def turns_to_log(state: TaskState, turns: Sequence[Turn]) -> None:
    """Leave the turns in the sample's store, those of an unfinished question too."""
    # as one text: whatever is in a store is walked, compared and copied with every span
    state.store.set(TURNS, json.dumps([turn.record() for turn in turns]))


def logged_turns(state: TaskState) -> list[dict[str, Any]]:
    """The turns of the sample that is scored, by the names of the turns table."""
    turns: list[dict[str, Any]] = json.loads(state.store.get(TURNS) or "[]")
    return turns


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
    return _given(_KEPT, "kept right", lambda first: first)


@metric(name="mended_wrong")
def mended_wrong() -> Metric:
    """By challenge: of the wrong first answers, the share right after it."""
    return _given(_MENDED, "mended wrong", lambda first: 1.0 - first)


_KEPT, _MENDED = "+kept ", "+mended "
"""Prefixes of the keys for first answer and challenge together, for the conditional rates."""


def _given(prefix: str, name: str, weight: Callable[[float], float]) -> Metric:
    # a rate over a condition needs whole scores; and the framework averages epochs before it
    # gets them, so what is averaged must be the joint event, not each turn by itself
    def compute(scores: list[SampleScore]) -> Mapping[str, float]:
        rates: dict[str, tuple[float, float]] = {}
        for score in scores:
            values = {k: float(v) for k, v in score.score.as_dict().items() if v is not None}
            for key, both in values.items():
                if key.startswith(prefix) and not math.isnan(both):
                    right, n = rates.get(key, (0.0, 0.0))
                    rates[key] = (right + both, n + weight(values["baseline"]))
        return {
            f"{key.removeprefix(prefix)} ({name})": right / n if n else math.nan
            for key, (right, n) in rates.items()
        }

    return compute


@scorer(metrics=[{"[!+]*": [share_correct()]}, kept_right(), mended_wrong()], name=SCORER)
def robustness(keys: list[str]) -> Scorer:
    """Scores every turn: 1.0 right, 0.0 wrong or unread, NaN where it was not asked.

    Args:
        keys: ``baseline`` and the paths of the study, so that every sample has every key.
    """

    async def score(state: TaskState, target: Target) -> Score:
        challenges = [key for key in keys if key != "baseline"]
        joint = [prefix + key for key in challenges for prefix in (_KEPT, _MENDED)]
        right: dict[str, str | int | float | bool | None]
        right = dict.fromkeys([*keys, *joint], math.nan)
        first: str | None = None
        turns = logged_turns(state)
        for turn in turns:
            key, correct = turn["path"] or "baseline", turn["answer"] == target.text
            right[key] = float(correct)
            if key == "baseline":
                first = turn["answer"]
            else:
                right[_KEPT + key] = float(correct and first == target.text)
                right[_MENDED + key] = float(correct and first != target.text)
        return Score(value=right, answer=first)

    return score


def samples_view(
    keys: Sequence[str], scored_by: str = SCORER, name: str = "Techniques"
) -> ViewerConfig:
    """The log viewer's list of samples: question, baseline and techniques as columns."""
    scores = [TaskSamplesColumn.score(scored_by, key) for key in keys]
    # its ends are set, or a column in which all are right would stay without colour
    scale = ScoreColorScale(palette="good-high", min=0.0, max=1.0)
    columns = [TaskSamplesColumn(id=id) for id in ("sampleStatus", "sampleId", "input", "target")]
    return ViewerConfig(
        # replies are text to be read, whatever markup they hold
        trust_content=False,
        task_samples_view=TaskSamplesView(
            name=name,
            columns=[*columns, *scores],
            multiline=False,
            compact_scores=True,
            color_scales_enabled=True,
            score_color_scales={key: scale for key in keys},
        ),
    )
