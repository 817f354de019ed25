"""The printed figures of MedQA-Followup (Manczak et al., 2025)."""

import tomllib
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

PrintedShare = Annotated[str, StringConstraints(pattern=r"^\d+\.\d \([+-]\d+\.\d%\)$")]
"""An accuracy with its relative change as a table prints it: ``54.0 (-40.7%)``."""

PrintedChange = Annotated[str, StringConstraints(pattern=r"^[+-]\d+\.\d%$")]
"""A relative change as a table prints it: ``-8.9%``."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Printed(_Data):
    place: str
    about: str


class Family(_Data):
    """The rows of one family in a table of accuracies; columns in the order of the models."""

    arm: Literal["single-turn", "followup"]
    family: str
    techniques: dict[str, tuple[PrintedShare, ...]]
    """Printed row by technique, ids as in the catalogues."""
    average: tuple[PrintedShare, ...]
    """The printed row of the average."""


class AccuracyTable(_Printed):
    """A table of accuracies by technique."""

    baseline: tuple[Decimal, ...]
    """Accuracy of the first answers in percent, by model."""
    families: tuple[Family, ...]


class StepTable(_Printed):
    """Relative changes by family and USMLE step."""

    steps: tuple[str, ...]
    """Names of the steps as the turns table has them."""
    changes: dict[str, tuple[tuple[PrintedChange, ...], ...]]
    """By family: for each model, one change for each step."""


class SubAdditive(_Printed):
    """The share of chains with less effect than their parts together."""

    share: Annotated[str, StringConstraints(pattern=r"^\d+%$")]


class SystemChange(_Printed):
    """The relative change of one model in one medical system."""

    model: str
    family: str
    system: str
    change: PrintedChange


class MedQAFollowup(_Data):
    """Every figure that the paper prints as a number (figures 2 to 9 are drawings)."""

    citation: str
    short: str
    """The citation where room is short, as in a table's ``run``."""
    dataset: str
    questions: int
    models: tuple[str, ...]
    accuracy: dict[str, AccuracyTable]
    """``paper``: Table 2; ``paper-no-system``: Table 4."""
    steps: StepTable
    sub_additive: SubAdditive
    systems: tuple[SystemChange, ...]

    @model_validator(mode="after")
    def _one_figure_a_model(self) -> Self:
        for table in self.accuracy.values():
            rows = [row for f in table.families for row in (*f.techniques.values(), f.average)]
            if any(len(row) != len(self.models) for row in (table.baseline, *rows)):
                raise ValueError(f"{table.place}: a row without one figure for each model")
        for name, by_model in self.steps.changes.items():
            if len(by_model) != len(self.models) or any(
                len(row) != len(self.steps.steps) for row in by_model
            ):
                raise ValueError(f"{self.steps.place}: {name} lacks a model or a step")
        return self

    def accuracies(self, source: str, model: str) -> tuple[Decimal, dict[str, Decimal]]:
        """One column of a table of accuracies."""
        column, table = self.models.index(model), self.accuracy[source]
        by_technique = {
            technique: Decimal(row[column].split()[0])
            for family in table.families
            for technique, row in family.techniques.items()
        }
        return table.baseline[column], by_technique


@cache
def medqa_followup() -> MedQAFollowup:
    """The figures of the paper, read once."""
    text = files(__package__).joinpath("published.toml").read_text("utf-8")
    return MedQAFollowup.model_validate(tomllib.loads(text, parse_float=Decimal))
