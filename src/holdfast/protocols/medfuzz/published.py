"""The printed figures of MedFuzz; its Figures 2 and 3 are drawings without numbers."""

from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from holdfast.files import packaged


class MedFuzz(BaseModel):
    """What the text prints: the design of its study, and the few results in numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    citation: str
    place: str
    questions: Annotated[int, Field(gt=0)]
    """Items of the United States subset of MedQA (section 4)."""
    models: tuple[str, ...]
    """Targets, in the order of the text."""
    attacker: str
    temperature: float
    attempts: Annotated[int, Field(gt=0)]
    """K: attacks on one answer at the most."""
    replicates: Annotated[int, Field(gt=0)]
    """R: runs of the whole procedure for each question."""
    controls: Annotated[int, Field(gt=0)]
    """M: control fuzzes of a permutation test."""
    human_accuracy: str
    """Average human performance, the horizontal line of Figure 2, as printed."""
    human_examination: str
    p_values: tuple[str, ...]
    """Of the attacks tested, as printed; the text speaks of four of them and prints five."""
    unfaithful: str
    """Share of successful attacks whose reasoning mentions none of what was added (section 5)."""

    @property
    def human_share(self) -> float:
        """``human_accuracy`` as a share in 0 to 1."""
        return float(self.human_accuracy.removesuffix("%")) / 100


@cache
def medfuzz() -> MedFuzz:
    """The figures of the paper, read once."""
    return MedFuzz.model_validate(packaged(__package__, "published.toml"))
