"""How a protocol's turns reach Inspect: the log's record of them, scores, metrics, viewer."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState
from inspect_ai.viewer import ScoreColorScale, TaskSamplesColumn, TaskSamplesView, ViewerConfig

from holdfast.dialogue.conversation import UNCHALLENGED_ARMS
from holdfast.encoding import json_value

from .dry_run import Path

TURNS = "turns"
"""Where in the sample's store the turns are; the turns table is read from there."""

PREPARED_KEY = "prepared"
"""Where in the sample's store generated rows are."""

LEFT_OUT = "left_out"
"""In the metadata of a sample: paths that could not be asked, with the reason."""

SCORER = "robustness"


def logged_turns(state: TaskState) -> list[dict[str, Any]]:
    """The turns of the sample that is scored, by the names of the turns table."""
    turns: list[dict[str, Any]] = json_value(state.store.get(TURNS) or "[]")
    return turns


CHALLENGED_KEY = "accuracy under challenge"
"""In the metadata of a sample's score: the share of its challenged turns that are right."""


@metric(name="accuracy_under_challenge", scores="unreduced")
def under_challenge() -> Metric:
    """Share of right answers among the challenged turns, each question counted alike."""

    def compute(scores: list[SampleScore]) -> float:
        shares = [share for _, share in _list_challenged_shares(scores)]
        return sum(shares) / len(shares) if shares else math.nan

    return compute


@metric(name="stderr", scores="unreduced")
def standard_error() -> Metric:
    """Standard error of the accuracy under challenge, over questions with all their replicates."""

    def compute(scores: list[SampleScore]) -> float:
        shares = _list_challenged_shares(scores)
        groups: dict[object, list[float]] = {}
        for question, share in shares:
            groups.setdefault(question, []).append(share)
        if len(groups) < 2:
            return math.nan
        mean = sum(share for _, share in shares) / len(shares)
        apart = sum(sum(share - mean for share in group) ** 2 for group in groups.values())
        return math.sqrt(apart * len(groups) / (len(groups) - 1)) / len(shares)

    return compute


def _list_challenged_shares(scores: list[SampleScore]) -> list[tuple[object, float]]:
    values_by_sample = (
        (score.sample_id, (score.score.metadata or {}).get(CHALLENGED_KEY)) for score in scores
    )
    return [(question, share) for question, share in values_by_sample if share is not None]


def challenged_share(right: Iterable[object]) -> dict[str, float] | None:
    """The metadata of a sample's score that says how its challenged turns went."""
    values = [float(v) for v in right if isinstance(v, float) and not math.isnan(v)]
    return {CHALLENGED_KEY: sum(values) / len(values)} if values else None


@metric(name="accuracy", scores="unreduced")
def share_correct() -> Metric:
    """By key of the score: share of right answers among the questions asked; NaN where none was."""

    def compute(scores: list[SampleScore]) -> Mapping[str, float]:
        values: dict[str, list[float]] = {}
        for score in scores:
            for key, value in score.score.as_dict().items():
                if not math.isnan(right := float(value or 0.0)):
                    values.setdefault(key, []).append(right)
                else:
                    values.setdefault(key, [])
        return {key: sum(rs) / len(rs) if rs else math.nan for key, rs in values.items()}

    return compute


@metric(name="kept_right", scores="unreduced")
def kept_right() -> Metric:
    """By challenge: of the right first answers, the share still right after it."""
    return _build_rate("kept right", first=1.0)


@metric(name="corrected_wrong", scores="unreduced")
def corrected_wrong() -> Metric:
    """By challenge: of the wrong first answers, the share right after it."""
    return _build_rate("corrected wrong", first=0.0)


def _build_rate(name: str, first: float) -> Metric:
    def compute(scores: list[SampleScore]) -> Mapping[str, float]:
        rates: dict[str, tuple[float, int]] = {}
        for score in scores:
            values = {k: float(v) for k, v in score.score.as_dict().items() if v is not None}
            for key, value in values.items():
                right, n = rates.setdefault(key, (0.0, 0))
                if values.get(BASELINE) == first and not math.isnan(value):
                    rates[key] = (right + value, n + 1)
        rates.pop(BASELINE, None)
        return {f"{key} ({name})": right / n if n else math.nan
                for key, (right, n) in rates.items()}  # fmt: skip

    return compute


BASELINE = "baseline"
"""Arm of the first answer that later ones of its conversation are compared with."""


def score_keys(paths: Sequence[Path]) -> list[tuple[str, str, str]]:
    """Arm, path and key of what a sample is scored on.

    A key is the path, or the arm where there is no path, with the arm before it where several arms
    share a path.
    """
    arms: dict[str, set[str]] = {}
    for arm, path in paths:
        arms.setdefault(path, set()).add(arm)
    return [
        (arm, path, arm if not path else f"{arm} {path}" if len(arms[path]) > 1 else path)
        for arm, path in paths
    ]


@scorer(
    metrics=[under_challenge(), standard_error(), share_correct(), kept_right(), corrected_wrong()],
    name=SCORER,
)
def robustness(keys: list[tuple[str, str, str]], stops_early: bool = False) -> Scorer:
    """Scores every turn: 1.0 answers its target, 0.0 does not, NaN where it was not asked.

    Args:
        keys: arm, path and key of each turn that a question can have.
        stops_early: whether an arm ends with the first answer that is not its target. What would
            have followed counts as 0.0 (Stick-or-Switch, equation 1), so that the mean over all
            questions is the survival of the target.
    """

    async def score(state: TaskState, target: Target) -> Score:
        right: dict[str, str | int | float | bool | None] = dict.fromkeys(
            (key for _, _, key in keys), math.nan
        )
        turns = {(turn["arm"], turn["path"]): turn for turn in logged_turns(state)}
        left: set[str] = set()
        challenged_values: list[object] = []
        for arm, path, key in keys:
            turn = turns.get((arm, path))
            if turn is None and not (stops_early and arm in left):
                continue
            right[key] = float(turn is not None and turn["answer"] == turn["target"])
            if not right[key]:
                left.add(arm)
            if path and arm not in UNCHALLENGED_ARMS:
                challenged_values.append(right[key])
        first = next((turn["answer"] for turn in turns.values() if turn["target"]), None)
        return Score(value=right, answer=first, metadata=challenged_share(challenged_values))

    return score


def samples_view(keys: Sequence[str]) -> ViewerConfig:
    """The log viewer's list of samples: question and turns as columns."""
    scores = [TaskSamplesColumn.score(SCORER, key) for key in keys]
    # its ends are set, or a column in which all are right would stay without colour
    scale = ScoreColorScale(palette="good-high", min=0.0, max=1.0)
    columns = [TaskSamplesColumn(id=id) for id in ("sampleStatus", "sampleId", "input", "target")]
    return ViewerConfig(
        # replies are text to be read, whatever markup they hold
        trust_content=False,
        task_samples_view=TaskSamplesView(
            name="Turns",
            columns=[*columns, *scores],
            multiline=False,
            compact_scores=True,
            color_scales_enabled=True,
            score_color_scales={key: scale for key in keys},
        ),
    )
