"""The catalogue of techniques: the 14 of MedQA-Followup, and the user's own."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from holdfast.errors import InputError, did_you_mean
from holdfast.files import named_path, text_of

from .technique import Technique

FAMILIES = ("rethink", "inc_letter", "context")
"""Families of the built-in catalogue in the order of Table 2."""

_INHERITED = ("family", "axis", "depth", "needs", "citation", "version", "cue")

Catalogue = Mapping[str, Technique]
"""Technique by id, in the order of Table 2; a user's additions come last."""

Chain = tuple[str, ...]
"""Technique ids in the order in which they are put to the model."""


@cache
def built_in() -> Catalogue:
    """The 14 techniques of MedQA-Followup, Table 2 and appendix B."""
    catalogue: dict[str, Technique] = {}
    for family in FAMILIES:
        text = files(__package__).joinpath("catalogue", f"{family}.toml").read_text("utf-8")
        catalogue |= _parse(text, f"{family}.toml")
    return catalogue


def load_catalogue(path: str | None = None) -> Catalogue:
    """The built-in catalogue with a user's file added to it.

    Args:
        path: a TOML file in the format of the built-in ones; a technique with a known id
            replaces the built-in one.

    Raises:
        InputError: the file is missing, is no TOML, or an entry is no technique.
    """
    if path is None:
        return built_in()
    text = text_of(named_path(path), "Check the path given to --challenges")
    return {**built_in(), **_parse(text, path)}


def fingerprint(techniques: Mapping[str, Any]) -> str:
    """SHA-256 (hex, 16 characters) over the wordings of techniques by id."""
    content = json.dumps([(id, technique.fingerprint) for id, technique in techniques.items()])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def choose(catalogue: Catalogue, names: str) -> tuple[Technique, ...]:
    """The techniques named in a comma-separated list of ids and families; ``all`` for all.

    Raises:
        InputError: a name is neither a technique nor a family (the nearest names are offered).
    """
    families = dict.fromkeys(technique.family for technique in catalogue.values())
    chosen: dict[str, Technique] = {}
    for name in _names(names):
        if name == "all":
            chosen |= catalogue
        elif name in families:
            chosen |= {t.id: t for t in catalogue.values() if t.family == name}
        elif name in catalogue:
            chosen[name] = catalogue[name]
        else:
            raise InputError(
                f"unknown technique '{name}'",
                field="techniques",
                remedy=did_you_mean(name, [*catalogue, *families, "all"]),
            )
    # catalogue order, whatever the order of the list: the same set, the same study
    return tuple(t for t in catalogue.values() if t.id in chosen)


def paper_chains() -> tuple[Chain, ...]:
    """The 14 compounding chains of MedQA-Followup, section 4.4."""
    authority, social = "authority-prior", "social-proof-prior"
    contexts = [t.id for t in built_in().values() if t.family == "context"]
    one_turn = [
        (first, then)
        for first, other in ((authority, social), (social, authority))
        for then in (other, *contexts)
    ]
    return (*one_turn, *((authority, social, context) for context in contexts))


def choose_chains(catalogue: Catalogue, names: str) -> tuple[Chain, ...]:
    """Chains such as ``authority-prior>rag-style``, comma-separated; ``paper`` for the 14.

    Raises:
        InputError: a part is no technique, or a chain has fewer than two parts.
    """
    chains: dict[Chain, None] = {}
    for name in _names(names):
        if name == "paper":
            chains |= dict.fromkeys(paper_chains())
            continue
        chain = tuple(part.strip() for part in name.split(">"))
        for part in chain:
            if part not in catalogue:
                raise InputError(
                    f"chain '{name}' has the unknown technique '{part}'",
                    field="chains",
                    remedy=did_you_mean(part, catalogue),
                )
        if len(chain) < 2:
            raise InputError(
                f"chain '{name}' has one technique",
                field="chains",
                remedy="Join two or more with '>', such as authority-prior>rag-style",
            )
        chains[chain] = None
    return tuple(chains)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip() not in ("", "none")]


def _parse(text: str, file: str) -> dict[str, Technique]:
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken TOML ({error})", file, remedy="Mend the file") from error
    entries = data.get("technique", [])
    unknown = set(data) - {"technique", *_INHERITED}
    if unknown:
        name = min(unknown)
        known = ("technique", *_INHERITED)
        raise InputError("unknown key", file, field=name, remedy=did_you_mean(name, known))
    if not isinstance(entries, list) or not entries:
        raise InputError("holds no [[technique]]", file, remedy="Add one with id and template")
    inherited = {name: data[name] for name in _INHERITED if name in data}
    techniques: dict[str, Technique] = {}
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise InputError("is no [[technique]] table", file, number, remedy="Mend the file")
        try:
            technique = Technique.model_validate({**inherited, **entry})
        except ValidationError as error:
            first = error.errors()[0]
            field, message = ".".join(map(str, first["loc"])), first["msg"]
            if not field and ": " in message:  # the validator of the whole names its field
                field, message = message.removeprefix("Value error, ").split(": ", 1)
            raise InputError(
                message, file, number, field, "See 'Writing your own technique' in the docs"
            ) from error
        if technique.id in ("all", "none"):
            raise InputError(
                f"'{technique.id}' cannot be an id", file, number, "id", "Choose another name"
            )
        if technique.id in techniques:
            raise InputError(
                f"id '{technique.id}' is used twice", file, number, "id", "Rename one of them"
            )
        techniques[technique.id] = technique
    return techniques
