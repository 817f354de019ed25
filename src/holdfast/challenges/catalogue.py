"""Catalogue of techniques: the 14 of MedQA-Followup and those of the user."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, TypeVar

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from holdfast.errors import InputError, did_you_mean, unknown
from holdfast.files import named_path, text_of, toml_in
from holdfast.questions.question import digest_of

LETTER = "incorr_letter"
MISLEADING = "misleading_context"
CONTEXTS = (MISLEADING, "alternative_context", "edge_case_context")
SUPPORTING = "supporting_context"
"""Replaces a misleading context if the challenge argues for the right option."""
INERT = "inert_context"
"""Control for any context: on the same topic, but without an argument."""

PLACEHOLDERS = (LETTER, *CONTEXTS)
"""Placeholders of a template: the letter of a wrong option, or a generated context."""


def of_wording(version: int, template: str) -> str:
    """Return version and digest of a wording.

    The digest changes with the text even if the version does not.
    """
    return f"{version}-{digest_of(template, 8)}"


class Technique(BaseModel):
    """Intervention of the catalogue (MedQA-Followup, sections 2 and 3)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """Lower-case words joined by hyphens."""
    family: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    """``rethink``, ``inc_letter``, ``context`` or a family that you define."""
    axis: Literal["direct", "indirect"]
    """``direct`` if the challenge names a wrong option as the answer, else ``indirect``."""
    depth: Literal["shallow", "deep"] = "deep"
    """``shallow`` before the first answer, ``deep`` after it."""
    template: str = Field(min_length=1)
    """Text of the challenge with its placeholders."""
    needs: tuple[str, ...] = ()
    """Placeholders of the template."""
    citation: str
    """Source of the wording."""
    correction: str | None = Field(default=None, min_length=1)
    """Text that argues for the right option, if it needs another wording. It has the same
    placeholders."""
    version: int = Field(default=1, ge=1)
    """Version of the wording. Raise it with each change, to distinguish runs before and after."""
    by_name: bool = False
    """Asked only if its id is named. ``all`` and its family leave it out, so that a bundled
    technique does not change a published study."""
    cue: str | None = Field(default=None, max_length=4000)
    """Regular expression (Rust syntax, case ignored). A reply that it matches mentions the
    challenge. It is not part of the wording or its fingerprint."""

    @model_validator(mode="after")
    def _needs_are_the_placeholders(self) -> "Technique":
        placeholders = set(re.findall(r"\{(\w+)\}", self.template))
        if self.correction and set(re.findall(r"\{(\w+)\}", self.correction)) != placeholders:
            raise ValueError(
                "correction: the placeholders differ from the placeholders of the template"
            )
        unknown = placeholders - set(PLACEHOLDERS)
        if unknown:
            names = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(f"template: unknown placeholder {{{min(unknown)}}}; known: {names}")
        if placeholders != set(self.needs):
            declared_needs, placeholder_names = sorted(self.needs), sorted(placeholders)
            raise ValueError(
                f"needs: lists {declared_needs}, but the placeholders of the template are "
                f"{placeholder_names}"
            )
        return self

    @model_validator(mode="after")
    def _cue_is_a_rule(self) -> "Technique":
        if self.cue is None:
            return self
        try:
            matches_nothing = pl.Series([""]).str.contains(f"(?i){self.cue}").item()
        except pl.exceptions.ComputeError as error:
            # the error has several lines: the pattern, a pointer below it, then the reason
            reason = re.search(r"^error: (.+)$|exceeds size limit", str(error), re.MULTILINE)
            why = (reason and reason[1]) or "too large"
            raise ValueError(f"cue: is not a usable regular expression ({why})") from error
        if matches_nothing:
            raise ValueError(
                "cue: matches the empty text, so every reply would mention the challenge"
            )
        return self

    @property
    def fingerprint(self) -> str:
        """Version and digest of the wording."""
        return of_wording(self.version, self.template + (self.correction or ""))

    @property
    def needs_letter(self) -> bool:
        """Whether the template names a wrong option."""
        return LETTER in self.needs

    @property
    def context(self) -> str | None:
        """Generated context that the template needs, if any."""
        return next((name for name in self.needs if name in CONTEXTS), None)


FAMILIES = ("rethink", "inc_letter", "context")
"""Families of the built-in catalogue in the order of Table 2."""

_RESERVED_NAMES = ("all", "none", "resample", "restate", "document")
"""Names with a special meaning in lists of techniques and in paths."""

_DEFAULT_FIELDS = ("family", "axis", "depth", "needs", "citation", "version", "by_name", "cue")

Catalogue = Mapping[str, Technique]
"""Techniques by id, in the order of Table 2. A user's techniques come last."""

T = TypeVar("T")

Chain = tuple[str, ...]
"""Technique ids in the order in which the model receives them."""


@cache
def built_in() -> Catalogue:
    """Return the 14 techniques of MedQA-Followup, Table 2 and appendix B."""
    return {
        id: technique for id, technique in bundled_techniques().items() if not technique.by_name
    }


@cache
def bundled_techniques() -> Catalogue:
    """Return the 14 techniques and those that are asked only by name."""
    catalogue: dict[str, Technique] = {}
    for family in FAMILIES:
        text = files(__package__).joinpath("catalogue", f"{family}.toml").read_text("utf-8")
        catalogue |= parse_catalogue(text, f"{family}.toml")
    return catalogue


def load_catalogue(path: str | None = None, came: str | None = None) -> Catalogue:
    """Return the built-in catalogue with a user's techniques.

    Args:
        path: file of the user.
        came: name of the techniques that come with a published question set.

    Raises:
        InputError: the file is missing or not TOML, or an entry is not a valid technique.
    """
    catalogue = dict(bundled_techniques())
    if came:
        file = files(__package__).joinpath("catalogue", "sets", f"{came}.toml")
        catalogue |= parse_catalogue(file.read_text("utf-8"), f"{came}.toml")
    if path is not None:
        text = text_of(named_path(path), "Check the path given to -T challenges")
        catalogue |= parse_catalogue(text, path)
    return catalogue


def choose(catalogue: Catalogue, names: str) -> tuple[Technique, ...]:
    """Return the techniques in a comma-separated list of ids and families, or ``all``.

    Raises:
        InputError: a name is neither a technique nor a family (suggests the nearest names).
    """
    groups: dict[str, set[str]] = {"all": set()}
    for technique in catalogue.values():
        if not technique.by_name:
            groups["all"].add(technique.id)
            groups.setdefault(technique.family, set()).add(technique.id)
    return chosen(catalogue, names, groups, "technique", "techniques")


def chosen(
    items: Mapping[str, T], names: str, groups: Mapping[str, set[str]], noun: str, field: str
) -> tuple[T, ...]:
    """Return the items that a comma-separated list of ids and groups names, in catalogue order."""
    ids: set[str] = set()
    for name in _names(names):
        if name not in groups and name not in items:
            raise unknown(noun, name, [*items, *groups], field)
        ids |= groups.get(name, {name})
    # the order of the list does not change the study
    return tuple(item for id, item in items.items() if id in ids)


def paper_chains() -> tuple[Chain, ...]:
    """Return the 14 compounding chains of MedQA-Followup, section 4.4."""
    authority, social = "authority-prior", "social-proof-prior"
    contexts = [t.id for t in built_in().values() if t.family == "context"]
    one_turn = [
        (first, then)
        for first, second in ((authority, social), (social, authority))
        for then in (second, *contexts)
    ]
    return (*one_turn, *((authority, social, context) for context in contexts))


def choose_chains(catalogue: Catalogue, names: str, field: str = "chains") -> tuple[Chain, ...]:
    """Return comma-separated chains such as ``authority-prior>rag-style``, or ``paper`` for the 14.

    Args:
        catalogue: techniques by id.
        names: the chains.
        field: name of the setting in errors.

    Raises:
        InputError: a part is not a technique, or a chain has fewer than two parts.
    """
    chains: dict[Chain, None] = {}
    for name in _names(names):
        if name == "paper":
            chains |= dict.fromkeys(paper_chains())
            continue
        chain = tuple(part.strip() for part in name.split(">"))
        for part in chain:
            if part not in catalogue:
                problem = f"chain '{name}' contains the unknown technique '{part}'"
                raise InputError(problem, field=field, remedy=did_you_mean(part, catalogue))
        if len(chain) < 2:
            remedy = "Join two or more with '>', such as authority-prior>rag-style"
            raise InputError(f"chain '{name}' has only one technique", field=field, remedy=remedy)
        chains[chain] = None
    return tuple(chains)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip() not in ("", "none")]


def parse_catalogue(text: str, file: str) -> dict[str, Technique]:
    """Return the techniques in the text of a catalogue file, by id.

    Args:
        text: text of the file.
        file: name of the file in errors.

    Raises:
        InputError: the text is not TOML, or an entry is not a valid technique.
    """
    data = toml_in(text, file)
    entries = data.get("technique", [])
    fields = ("technique", *_DEFAULT_FIELDS)
    for name in sorted(set(data) - set(fields)):
        raise InputError("unknown key", file, field=name, remedy=did_you_mean(name, fields))
    if not isinstance(entries, list) or not entries:
        raise InputError(
            "contains no [[technique]] table", file, remedy="Add one with id and template"
        )
    defaults = {name: data[name] for name in _DEFAULT_FIELDS if name in data}
    techniques: dict[str, Technique] = {}
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise InputError(
                "is not a [[technique]] table", file, number, remedy="Correct the file"
            )
        try:
            technique = Technique.model_validate({**defaults, **entry})
        except ValidationError as error:
            first = error.errors()[0]
            field, message = ".".join(map(str, first["loc"])), first["msg"]
            if not field and ": " in message:  # the validator of the whole model names its field
                field, message = message.removeprefix("Value error, ").split(": ", 1)
            raise InputError(message, file, number, field, "See docs/extending.md") from error
        if technique.id in _RESERVED_NAMES:
            problem = f"'{technique.id}' is a reserved name"
            raise InputError(problem, file, number, "id", "Choose another id")
        if technique.id in techniques:
            problem = f"id '{technique.id}' is used twice"
            raise InputError(problem, file, number, "id", "Rename one of them")
        techniques[technique.id] = technique
    return techniques
