"""Parametric responders: how often each answers right, gives in and recovers."""

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from holdfast.errors import InputError, did_you_mean
from holdfast.published import medqa_followup


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
    abstain: float = Field(default=0.7, ge=0, le=1)
    """Chance to answer none of the above where that is right."""
    stick: dict[str, float] = {}
    """Chance to stick to the target at a further offer, by arm (``positive``, ``negative``)."""
    flexible: float = Field(default=1.0, ge=0, le=1)
    """Chance to switch from an abstention to the right answer where it is offered."""

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
def profiles() -> dict[str, Profile]:
    """Every bundled profile by name."""
    text = files(__package__).joinpath("profiles.toml").read_text("utf-8")
    return {
        name: Profile.model_validate(_with_figures(**data))
        for name, data in tomllib.loads(text).items()
    }


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


def profile(name: str, others: Iterable[str] = ()) -> Profile:
    """The profile of that name.

    Args:
        name: the name.
        others: names that are known beside the profiles, to be offered too.

    Raises:
        InputError: there is none (the nearest name is offered).
    """
    found = profiles().get(name)
    if found is None:
        raise InputError(
            f"unknown profile '{name}'",
            field="--model",
            remedy=did_you_mean(name, [*profiles(), *others]),
        )
    return found
