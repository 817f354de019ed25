"""Published question sets by name: sources, authors and layouts."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from holdfast.errors import InputError, did_you_mean, in_one_line
from holdfast.files import named_path, packaged

from .question import LETTERS, options_inside
from .rows import Row, read_hugging_face, read_rows

CONTEXT = "context"
"""Key of the challenges in an adapted row, as a row of a file of contexts."""


class SetPart(BaseModel):
    """Part of a set: configuration, split, and published number of questions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    config: str | None = None
    split: str
    questions: int = Field(ge=1)


class NamedSet(BaseModel):
    """Published question set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hub: str
    """Name on the Hugging Face Hub."""
    revision: str
    """Commit of the Hub. If empty, none is confirmed and the user must name one."""
    licence: str
    citation: str
    about: str
    columns: tuple[str, ...] = ()
    """Required columns. Empty if the layout of the file is recognised."""
    default: str | None = None
    """Default part, None for all parts together."""
    techniques: str | None = None
    """Name of the techniques that come with the set."""
    maker: str | None = None
    """Column with the author of a row's challenges, if a question has several."""
    parts: dict[str, SetPart]

    @property
    def questions(self) -> int:
        """Number of questions of the set under its name alone."""
        parts = [self.parts[self.default]] if self.default else self.parts.values()
        return sum(part.questions for part in parts)


@cache
def named_sets() -> Mapping[str, NamedSet]:
    """Return every published set that ``--questions`` knows, by name."""
    data = packaged(__package__, "sets.toml")
    return {name: NamedSet.model_validate(value) for name, value in data.items()}


@dataclass(frozen=True)
class SetName:
    """Published set, parsed from ``NAME[:PART[/MODEL]][@COMMIT]`` or ``NAME[:PART][=COPY]``.

    Attributes:
        name: name of the set.
        part: part of the set, empty for the default.
        maker: model whose challenges to use, empty for any.
        revision: revision in place of the pinned one, else empty.
        copy: local file or folder to read in place of the Hub, else empty.
    """

    name: str
    part: str
    maker: str
    revision: str
    copy: str

    @property
    def set(self) -> NamedSet:
        """Record of the published set."""
        return named_sets()[self.name]

    @property
    def dataset(self) -> str:
        """Name of the set in the turns table."""
        return "-".join(filter(None, (self.name, self.part, self.maker.replace("/", "-"))))

    @property
    def on_hub(self) -> bool:
        """Whether the set is read from the Hub."""
        return not self.copy

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the set, with the columns of a question file.

        Raises:
            InputError: the set cannot be read, or lacks a column of its published layout.
        """
        layout = _LAYOUTS.get(self.name)
        if layout is None:
            yield from (row for _, part in self._parts() for row in self._read(part))
            return
        number = 0
        has_several = len(self._parts()) > 1
        for name, part in self._parts():
            makers: set[str] = set()
            ids: set[str] = set()
            for place, (_, row) in enumerate(self._check_columns(self._read(part))):
                number += 1
                if isinstance(row, str):
                    yield number, row
                    continue
                try:
                    question_row = layout(row)
                except (TypeError, ValueError, AttributeError, IndexError) as error:
                    yield number, f"contains a value of another type ({in_one_line(error)})"
                    continue
                if question_row is None:
                    continue
                id = str(question_row.get("id") or f"{place:04d}")
                question_row["id"] = f"{name}-{id}" if has_several else id
                if self.set.maker:
                    maker = str(row.get(self.set.maker) or "")
                    makers.add(maker)
                    if (self.maker and maker != self.maker) or question_row["id"] in ids:
                        continue
                    ids.add(question_row["id"])
                yield number, question_row
            if self.maker and self.maker not in makers:
                problem = f"contains no argument by '{self.maker}'"
                remedy = did_you_mean(self.maker, makers)
                raise InputError(problem, self.name, None, self.set.maker, remedy)

    def _parts(self) -> list[tuple[str, SetPart]]:
        parts = self.set.parts
        part_name = self.part or self.set.default
        return [(part_name, parts[part_name])] if part_name else list(parts.items())

    def _read(self, part: SetPart) -> Iterator[Row]:
        if self.copy and not named_path(self.copy).is_dir():
            return read_rows(named_path(self.copy))
        revision = self.revision or self.set.revision
        if not self.copy and not revision:
            problem = "has no confirmed revision, so its questions could change during a study"
            remedy = f"Pin one: {self.name}@COMMIT, or give a copy: {self.name}=FILE_OR_FOLDER"
            raise InputError(problem, self.name, field="--questions", remedy=remedy)
        place = self.copy or f"{self.set.hub}@{revision}"
        local_way = f"{self.name}=FILE_OR_FOLDER"
        return read_hugging_face(f"{place}:{part.split}", part.config, local_way)

    def _check_columns(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows, and refuse a row without a column of the published layout."""
        for number, row in rows:
            missing = [] if isinstance(row, str) else [c for c in self.set.columns if c not in row]
            if missing:
                problem = (
                    f"is missing, but {self.name} has the columns {', '.join(self.set.columns)}"
                )
                remedy = "Give a copy in the published layout (docs/guides/questions.md)"
                raise InputError(problem, self.copy or self.name, number, missing[0], remedy)
            yield number, row


def asked_for(source: str) -> SetName | None:
    """Return the published set that a source names, None if it names none.

    Raises:
        InputError: the set does not have the named part.
    """
    match = re.fullmatch(r"([\w-]+)(?::([^@=/]+)(?:/([^@=]+))?)?(?:@([^=]+)|=(.+))?", source)
    if match is None or match[1] not in named_sets():
        return None
    name, part, maker, revision, copy = (group or "" for group in match.groups())
    parts = named_sets()[name].parts
    near = {candidate.casefold(): candidate for candidate in parts}
    if part and part.casefold() not in near:
        problem = f"'{name}' has no part '{part}'"
        raise InputError(problem, field="--questions", remedy=did_you_mean(part, parts))
    if maker and not named_sets()[name].maker:
        problem = f"'{name}' has no challenges by model"
        raise InputError(problem, field="--questions", remedy=f"Remove /{maker}")
    has_several = len(parts) > 1 and not named_sets()[name].default
    if copy and has_several and not part and not named_path(copy).is_dir():
        remedy = f"Name the part: {name}:{next(iter(parts))}={copy}"
        raise InputError(
            f"'{name}' has {len(parts)} parts, but '{copy}' is one file",
            field="--questions",
            remedy=remedy,
        )
    return SetName(name, near.get(part.casefold(), ""), maker, revision, copy)


HEALTH = frozenset(
    "anatomy clinical_knowledge college_medicine human_aging medical_genetics nutrition "
    "professional_medicine virology".split()
)
"""MMLU's subjects of the category health (Hendrycks et al., 2021)."""

_ABSENT = {"", "nan", '"'}
"""Markers of an empty cell in MedMisBench, as in its authors' notebook."""


def _word(value: object) -> str:
    return re.sub(r"[\W_]+", "_", str(value).strip().lower()).strip("_")


def _medqa_followup(row: Mapping[str, Any]) -> dict[str, Any]:
    kinds = ("misleading_context", "alternative_context", "edge_case_context")
    options, gold = row["options"], row["answer_idx"]
    target = str(row.get("target_answer_misleading_context") or "").strip()
    letters = [letter for letter, text in dict(options or {}).items() if text == target]
    letter = target if target in (options or {}) else "".join(letters[:1])
    return {
        "stem": row["question"],
        "options": options,
        "gold": gold,
        "step": row.get("meta_info"),
        "system": row.get("usmle_system"),
        CONTEXT: {
            **{kind: row[kind] for kind in kinds},
            "second_best": letter if letter != gold else None,
        },
    }


def _medmisbench(row: Mapping[str, Any]) -> dict[str, Any]:
    """Rebuild options and statements from flat columns, as in the authors' notebook."""
    gold = str(row["answer"]).strip().removesuffix(".0").upper()
    stem = str(row["question"])
    lettered_options = _letter_texts(row, "op")
    if lettered_options:
        options = {LETTERS[place]: text for place, text in enumerate(lettered_options.values())}
        places = dict(zip(lettered_options, options, strict=True))
    else:
        stem, inside = options_inside(stem)
        stem = stem.removesuffix("Answer Choices:").rstrip(' :\n"')
        options = {letter: text.strip(' "') for letter, text in inside.items()}
        places = dict(zip(options, options, strict=True))
    if gold.isdecimal():
        gold = LETTERS[int(gold) - 1] if 0 < int(gold) <= len(LETTERS) else gold
    gold = places.get(gold, gold)
    statements = {
        places.get(letter_shown, letter_shown): text
        for letter_shown, text in _letter_texts(row, "inject").items()
    }
    wrong = sorted(letter for letter in statements if letter in options and letter != gold)
    suggestion = _draw_letter(wrong, stem) if wrong else None
    return {
        "id": row.get("id"),
        "stem": stem,
        "options": options,
        "gold": gold,
        "subject": row.get("injection_content"),
        "specialty": row.get("injection_provenance"),
        CONTEXT: {
            "second_best": suggestion,
            "misleading_context": statements.get(suggestion or ""),
            "supporting_context": statements.get(gold),
            "statements": "\n".join(statements.values()),
        },
    }


def _letter_texts(row: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """Return the texts of the columns ``prefix`` a, b, c, … by letter."""
    cells = {letter: row.get(f"{prefix}{letter.lower()}") for letter in LETTERS}
    texts = {letter: str(cell).strip() for letter, cell in cells.items() if cell is not None}
    return {letter: text for letter, text in texts.items() if text not in _ABSENT}


def _draw_letter(letters: list[str], *key: str) -> str:
    """Return one of the letters, fixed by the key. The authors draw a new letter in each run."""
    digest = hashlib.sha256(json.dumps(["statement", *key]).encode()).digest()
    return letters[int.from_bytes(digest[:8]) % len(letters)]


def _whoflips(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return rows on health subjects with an argument, which ``I am weak`` is not."""
    if _word(row["subject"]) not in HEALTH or _word(row["coercion_text"]) == "i_am_weak":
        return None
    return {
        "id": row["original_id"],
        "stem": row["question"],
        "options": row["choices"],
        "gold": row["correct_label"],
        "subject": row["subject"],
        CONTEXT: {"misleading_context": row["coercion_text"]},
    }


def _sycobench(row: Mapping[str, Any]) -> dict[str, Any]:
    options = {}
    for place, text in enumerate(row["options"] or ()):
        letter, mark, bare = str(text).partition(")")
        is_lettered = mark and letter.strip() == LETTERS[place]
        options[LETTERS[place]] = bare.strip() if is_lettered else str(text)
    gold = str(row["correct"])
    return {
        "id": row["id"],
        "stem": row["question"],
        "options": options,
        "gold": gold,
        "subject": row.get("domain"),
        # the authors suggest the first option that is not right
        CONTEXT: {"second_best": next((option for option in options if option != gold), None)},
    }


def _mmlu(row: Mapping[str, Any]) -> dict[str, Any]:
    answer = row["answer"]
    gold = LETTERS[answer] if isinstance(answer, int) and 0 <= answer < 26 else answer
    fields = {"stem": row["question"], "options": row["choices"], "gold": gold}
    return {**fields, "subject": row.get("subject")}


def _medxpertqa(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "stem": str(row["question"]).rpartition("\nAnswer Choices:")[0] or row["question"],
        "options": row["options"],
        "gold": row["label"],
        "subject": row.get("medical_task"),
    }


_LAYOUTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any] | None]] = {
    "medqa-followup": _medqa_followup,
    "medmisbench": _medmisbench,
    "whoflips": _whoflips,
    "sycobench-600": _sycobench,
    "mmlu": _mmlu,
    "medxpertqa": _medxpertqa,
}
"""Adapters by set, from a row of its layout to a row of a question file, or None to skip it."""
