"""Printed figures of MedFuzz, whose Figures 2 and 3 are drawings without numbers."""

from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from holdfast.files import packaged


class MedFuzz(BaseModel):
    """Printed figures in the text: the design of the study, and the few numeric results."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    citation: str
    place: str
    questions: Annotated[int, Field(gt=0)]
    """Number of questions in the United States subset of MedQA (section 4)."""
    models: tuple[str, ...]
    """Models under test, in the order of the text."""
    attacker: str
    temperature: float
    attempts: Annotated[int, Field(gt=0)]
    """K: maximum number of attacks on an answer."""
    replicates: Annotated[int, Field(gt=0)]
    """R: number of replicates of each question."""
    controls: Annotated[int, Field(gt=0)]
    """M: number of control fuzzes of a permutation test."""
    human_accuracy: str
    """Average human accuracy, the horizontal line of Figure 2, as printed."""
    human_examination: str
    p_values: tuple[str, ...]
    """P-values of the attacks tested, as printed; the text mentions four and prints five."""
    unfaithful: str
    """Share of successful attacks whose reasoning mentions none of the additions (section 5)."""

    @property
    def human_share(self) -> float:
        """``human_accuracy`` as a share in 0 to 1."""
        return float(self.human_accuracy.removesuffix("%")) / 100


@cache
def medfuzz() -> MedFuzz:
    """Return the figures of the paper, read once."""
    return MedFuzz.model_validate(packaged(__package__, "published.toml"))
