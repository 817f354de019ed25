"""Parametric responders: how often each answers right, gives in and recovers."""

import math
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from holdfast.errors import InputError, did_you_mean
from holdfast.published import medqa_followup, stick_or_switch

DATASETS = stick_or_switch().datasets
"""Columns of Stick-or-Switch, whose figures differ between data sets."""


class Profile(BaseModel):
    """The known truth behind a simulated model. Accuracies in percent, chances in 0 to 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: str
    """One line: what it does, and where its figures come from."""
    baseline: float = Field(ge=0, le=100)
    """Accuracy of the first answer."""
    accuracy: dict[str, float] = {}
    """Accuracy after one challenge (for single-turn techniques: to the biased question)."""
    abandon: dict[str, float] = {}
    """Chance to abandon a right answer, by technique or family, or ``default``."""
    recover: float = Field(default=0.05, ge=0, le=1)
    """Chance that a challenged wrong answer is mended, unless an accuracy asks for more."""
    follow: float = Field(default=0.9, ge=0, le=1)
    """Of the abandoned answers, the share that goes to the suggested option."""
    mitigated: float = Field(default=0.5, ge=0, le=1)
    """Of the answers that a bias would take, the share that a mitigation saves."""
    named: float = Field(default=0.5, ge=0, le=1)
    """Share of the challenged replies that name the challenge."""
    isolated: float | None = Field(default=None, ge=0, le=1)
    """Chance to choose the right one of two options; that of a right first answer if None."""
    abstain: float = Field(default=0.7, ge=0, le=1)
    """Chance to answer none of the above where that is right."""
    stick: dict[str, float] = {}
    """Chance to stick to the target at a further offer, by arm (``positive``, ``negative``)."""
    stick_on: dict[str, float] = {}
    """The same at the third turn and later, where it is another one."""
    flexible: float = Field(default=1.0, ge=0, le=1)
    """Chance to switch from an abstention to the right answer where it is offered."""
    swayed: float = Field(default=0.1, ge=0, le=1)
    """Chance of each MedFuzz attempt to turn a right answer; no source gives it."""
    mentions: float = Field(default=0.5, ge=0, le=1)
    """Of the characteristics that an attack adds, the share that the reasoning mentions."""
    fuzz_effect: float = Field(default=0.4, ge=0, le=1)
    """Fall of the right answer's probability by a text that sways; 0 ignores what is added."""
    fuzz_noise: float = Field(default=0.5, ge=0)
    """Standard deviation, in log-odds, between texts of one question whatever they add."""
    control_sway: float = Field(default=0.1, ge=0, le=1)
    """Share of the control fuzzes that sway."""

    def chances(self, technique: str, family: str) -> tuple[float, float]:
        """Chance to abandon a right answer, and chance to mend a wrong one.

        With competence c and recovery r, accuracy a after the challenge is
        ``c (1 - abandon) + (1 - c) r``; it is solved for ``abandon``, or, where more is mended
        than r allows, for r.
        """
        if technique not in self.accuracy:
            given = self.abandon
            return given.get(technique, given.get(family, given.get("default", 0.0))), self.recover
        competence, after = self.baseline / 100, self.accuracy[technique] / 100
        if after > competence + (1 - competence) * self.recover:
            return 0.0, (after - competence) / (1 - competence)
        # a low accuracy leaves no room for the full recovery
        recover = min(self.recover, after / (1 - competence)) if competence < 1 else 0.0
        if competence == 0:  # nothing to abandon
            return 0.0, recover
        return 1 - (after - (1 - competence) * recover) / competence, recover


@cache
def profiles(dataset: str = DATASETS[0]) -> dict[str, Profile]:
    """Every bundled profile by name.

    Args:
        dataset: the column of Stick-or-Switch whose figures its models have.
    """
    text = files(__package__).joinpath("profiles.toml").read_text("utf-8")
    ours = {
        name: Profile.model_validate(_with_figures(**data))
        for name, data in tomllib.loads(text).items()
    }
    return ours | {
        _slug(model): _of_stick_or_switch(model, dataset) for model in stick_or_switch().models
    }


def _slug(model: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", model.lower()).strip("-")


def _of_stick_or_switch(model: str, dataset: str) -> Profile:
    """The profile that gives back a model's cells of Tables A.1 to A.3, four options each.

    Not printed, and assumed: a right answer to all options at once is known or guessed, so the
    share right of two options follows from that of four; further offers find the same chance to
    stick. An abstention at turn 1 is as likely as the printed end needs.
    """
    figures = stick_or_switch()
    right, suggested = figures.conviction.cells[model][dataset], figures.flexibility.cells[model]
    at_once, held = float(right.single_shot) / 100, float(right.multi_turn) / 100
    isolated = (2 * at_once + 1) / 3
    refuses = 1 - float(suggested[dataset].incorrect) / 100
    to_the_end = float(figures.abstention.cells[model][dataset].multi_turn) / 100
    abstain = min(1.0, to_the_end / refuses**2)
    return Profile(
        about=f"{model} on {dataset}: {figures.short}, Tables A.1 to A.3",
        baseline=float(right.single_shot),
        isolated=isolated,
        abstain=abstain,
        stick={"positive": math.sqrt(held / isolated), "negative": refuses},
        # for Llama-3.1 (8B) on MedMCQA the two tables cannot both hold (decision 30)
        stick_on={"negative": min(1.0, to_the_end / (abstain * refuses))},
        flexible=float(suggested[dataset].correct) / 100,
    )


def _with_figures(published: str | None = None, **data: Any) -> dict[str, Any]:
    if published is None:
        return data
    baseline, accuracy = medqa_followup().accuracies("paper", published)
    return {"baseline": baseline, "accuracy": accuracy, **data}


@cache
def cue_names() -> dict[str, str]:
    """What each technique is called by a reply that names it."""
    text = files(__package__).joinpath("cues.toml").read_text("utf-8")
    return {id: str(name) for id, name in tomllib.loads(text).items()}


def profile(name: str, others: Iterable[str] = (), dataset: str = DATASETS[0]) -> Profile:
    """The profile of that name.

    Args:
        name: the name.
        dataset: as for ``profiles``.
        others: names that are known beside the profiles, to be offered too.

    Raises:
        InputError: there is none (the nearest name is offered).
    """
    if dataset not in DATASETS:
        raise InputError(
            f"no figures for '{dataset}'",
            field="-M dataset",
            remedy=did_you_mean(dataset, DATASETS),
        )
    found = profiles(dataset).get(name)
    if found is None:
        raise InputError(
            f"unknown profile '{name}'",
            field="--model",
            remedy=did_you_mean(name, [*profiles(), *others]),
        )
    return found
