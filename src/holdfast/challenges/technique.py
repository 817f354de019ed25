"""A technique: one intervention, by its template and its place in the taxonomy."""

import hashlib
import re
from typing import Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

LETTER = "incorr_letter"
CONTEXTS = ("misleading_context", "alternative_context", "edge_case_context")
PLACEHOLDERS = (LETTER, *CONTEXTS)
"""What a template can ask for: a wrong option's letter, or a generated context."""


class Technique(BaseModel):
    """One intervention of the catalogue (MedQA-Followup, sections 2 and 3)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """Lower-case words joined by hyphens."""
    family: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    """``rethink``, ``inc_letter``, ``context`` or a family of the user's own."""
    axis: Literal["direct", "indirect"]
    """Whether it names a wrong option as the answer."""
    depth: Literal["shallow", "deep"] = "deep"
    """Before the first answer, or after it."""
    template: str = Field(min_length=1)
    """The challenge's text with its placeholders."""
    needs: tuple[str, ...] = ()
    """The placeholders of the template."""
    citation: str
    """Where the wording comes from."""
    version: int = Field(default=1, ge=1)
    """Raised when the wording changes, so that runs before and after are told apart."""
    cue: str | None = Field(default=None, max_length=4000)
    """A regular expression (Rust syntax, case ignored): a reply that it matches names the
    challenge. No part of the wording or its fingerprint."""

    @model_validator(mode="after")
    def _needs_are_the_placeholders(self) -> "Technique":
        used = set(re.findall(r"\{(\w+)\}", self.template))
        unknown = used - set(PLACEHOLDERS)
        if unknown:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(f"template: unknown placeholder {{{min(unknown)}}}; known: {known}")
        if used != set(self.needs):
            asked, found = sorted(self.needs), sorted(used)
            raise ValueError(f"needs: says {asked}, but the template's placeholders are {found}")
        return self

    @model_validator(mode="after")
    def _cue_is_a_rule(self) -> "Technique":
        if self.cue is None:
            return self
        try:
            matches_nothing = pl.Series([""]).str.contains(f"(?i){self.cue}").item()
        except pl.exceptions.ComputeError as error:
            # several lines: the pattern, a pointer below it, then the reason
            reason = re.search(r"^error: (.+)$|exceeds size limit", str(error), re.MULTILINE)
            why = (reason and reason[1]) or "too large"
            raise ValueError(f"cue: is no regular expression that can be used ({why})") from error
        if matches_nothing:
            raise ValueError("cue: matches the empty text, so that every reply would name it")
        return self

    @property
    def fingerprint(self) -> str:
        """Version and a digest of the wording, which changes even where the version was left."""
        return f"{self.version}-{hashlib.sha256(self.template.encode()).hexdigest()[:8]}"

    @property
    def needs_letter(self) -> bool:
        """Whether the template names a wrong option."""
        return LETTER in self.needs

    @property
    def context(self) -> str | None:
        """The generated context that the template needs, if any."""
        return next((name for name in self.needs if name in CONTEXTS), None)
