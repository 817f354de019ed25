"""The mapping: which column of somebody else's transcripts means what."""

import codecs
import re
from collections.abc import Mapping as Map
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    model_validator,
)

from holdfast.errors import InputError, did_you_mean
from holdfast.files import text_of, toml_in
from holdfast.questions.fields import Fields

TURN = "{turn}"
"""Stands for the number of a turn, from 0, in the name of a column."""
LATER = "{later}"
"""The same counted from the turn after the first."""


def of_turn(column: str, turn: int) -> str:
    """The column of one turn."""
    return column.replace(TURN, str(turn)).replace(LATER, str(turn - 1))


def has_turn(column: str) -> bool:
    """Whether a column is another one for each turn."""
    return TURN in column or LATER in column


class FieldSource(BaseModel):
    """Where the value of a field comes from; a name alone is that of a column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str | None = None
    """A column, or a path into a JSON value: ``metadata.model``, ``rounds[0].text``."""
    columns: tuple[str, ...] = ()
    """Several columns, joined; empty ones are left out."""
    joined: str = ">"
    """What stands between several columns."""
    match: str | None = None
    """A regular expression: its first group is the value, and there is none where it fails."""
    highest: bool = False
    """The cell is a list of numbers, or of lists that begin with one: the place of the highest."""
    by: str | None = None
    """A column that decides which one of ``choose`` is read."""
    choose: dict[str, str] = Field(default_factory=dict)
    """Column by value of ``by``."""
    value: str | int | float | None = None
    """The same for every row."""
    values: dict[str, str] = Field(default_factory=dict)
    """What the file's own values are called here; an empty text says that there is none."""
    others: Literal["refuse", "keep"] = "refuse"
    """What becomes of a value that ``values`` does not list."""
    default: str | int | float | None = None
    """In place of an empty or missing cell."""
    base: Literal[0, 1] | None = None
    """What the first option, or the first question, is called where the value is a number."""
    numbered: bool = False
    """Of an epoch: values are numbered from 1 in the order in which they appear."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> "FieldSource":
        sources = [self.column, self.columns or None, self.by, self.value]
        if sum(source is not None for source in sources) != 1:
            raise ValueError("give one of column, columns, by and value")
        if bool(self.choose) != (self.by is not None):
            raise ValueError("by and choose go together")
        if self.match is not None:
            try:
                groups = re.compile(self.match).groups
            except re.error as error:
                raise ValueError(f"match: {error}") from error
            if groups != 1:
                raise ValueError("match: write one group, which is the value")
        return self

    @property
    def named(self) -> tuple[str, ...]:
        """Every column that it reads."""
        columns_read = (self.column,) if self.column is not None else ()
        by = (self.by, *self.choose.values()) if self.by is not None else ()
        return (*columns_read, *self.columns, *by)


def _source(value: Any) -> Any:
    """A text names a column, a list several."""
    if isinstance(value, str):
        return {"column": value}
    return {"columns": value} if isinstance(value, list) else value


FieldName = Literal[
    "model", "dataset", "protocol", "question", "epoch", "arm", "path", "technique", "family",
    "axis", "depth", "suggested", "shown", "target", "gold", "prompt", "reply", "answer", "status",
    "p_gold", "p_suggested", "p_answer", "step", "system", "specialty", "subject", "input_tokens",
    "output_tokens", "cost", "latency",
]  # fmt: skip
FIELDS: tuple[FieldName, ...] = get_args(FieldName)
"""Fields of a turn, by the names of the turns table."""

Columns = Map[FieldName, Annotated[FieldSource, BeforeValidator(_source)]]
"""Where fields of a turn come from."""


Texts = Annotated[tuple[str, ...], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]
"""One text, or several."""


class JoinedFile(BaseModel):
    """A file beside those that are read, whose fields stand under a name of the mapping's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    """JSONL, or one object as JSON or YAML."""
    by: str | None = None
    """Column by which its rows are joined; None for one object for all rows."""


class Mapping(BaseModel):
    """How the rows of a file of transcripts become turns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: str | None = None
    """Where a folder is imported: the files in it, such as ``followups/*.jsonl``. Each row has
    ``file``, the file's path in the folder without its suffix."""
    joined_files: Map[str, JoinedFile] = Field(default_factory=dict)
    """Files of the folder that rows are joined with, by the name of the column that holds them."""
    each: Texts = ()
    """Columns of lists or objects, outer first, each element of which is a row of its own; the
    element then stands in the column's place."""
    keep: Map[str, Texts] = Field(default_factory=dict)
    """Only rows with one of these texts in the column are read."""
    drop: Map[str, Texts] = Field(default_factory=dict)
    """Rows with one of these texts in the column are not read."""
    messages: str | None = None
    """Column of a list of messages with ``role`` and ``content``: every reply in it is a turn."""
    turns: Annotated[int, Field(ge=1, le=1000)] | str | None = None
    """Where every turn has columns of its own: how many turns a row has, or the column of a list
    with an element for each turn, or for each turn after the first where ``{later}`` is used."""
    options: str | tuple[str, ...] | None = None
    """Column of the options (object, list, JSON text, or lines ``A. …``), or a column for each."""
    options_inside: str | None = None
    """Column of a text, such as a prompt, in which the options stand (``A. …``, ``(A) …``)."""
    join: Literal["id", "index", "stem"] = "id"
    """What ``question`` names in the file of ``--questions``: an id, a position, or the stem."""
    question_fields: str | None = None
    """Columns of the file of ``--questions``, as in ``-T fields``."""
    answers: Literal["extracted", "first-character", "given"] = "extracted"
    """How an answer is read out of a reply; ``given``: not at all, an empty ``answer`` is none."""
    without_gold: bool = False
    """The file has no right answers: a conversation's first answer stands for one, so that
    accuracies are agreement with it, and flips are changes of it."""
    non_response: tuple[str, ...] = ()
    """What stands in a cell of reply or answer where the model gave no response, such as ``NR``."""
    fold: bool = False
    """Whether turns that several conversations share are one row where they say the same."""
    encoding: str = "utf-8"
    """Of a text file."""
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    """Of a CSV file."""
    turn: Columns = Field(default_factory=dict)
    """Fields of every turn."""
    first: Columns = Field(default_factory=dict)
    """Fields that are others in the first turn of a conversation."""
    later: Columns = Field(default_factory=dict)
    """Fields that are others in the turns after it."""

    @field_serializer("turn", "first", "later")
    def _every_field(self, columns: Columns) -> dict[str, FieldSource | None]:
        # the run of an import is known by this: it names every field, given or not
        return {name: columns.get(name) for name in FIELDS}

    @model_validator(mode="after")
    def _check_mapping(self) -> "Mapping":
        if self.messages is not None and self.turns is not None:
            raise ValueError("give one of messages and turns")
        if self.without_gold and self.messages is None and self.turns is None:
            raise ValueError("without_gold needs whole conversations: give messages or turns")
        file_patterns = [
            self.files or ".",
            *(joined_file.file for joined_file in self.joined_files.values()),
        ]
        if self.files == "" or any(
            pattern.startswith("/") or ".." in pattern for pattern in file_patterns
        ):
            raise ValueError("files and joined_files: name files inside the folder")
        if self.joined_files and self.files is None:
            raise ValueError("joined_files goes with files: say which files of the folder are read")
        if self.options is not None and self.options_inside is not None:
            raise ValueError("give one of options and options_inside")
        for section in (self.first, self.later):
            for name in ("question", "epoch", "model", "dataset", "protocol"):
                if name in section:
                    raise ValueError(f"{name} is one for a conversation: give it in [turn]")
        for section in (self.turn, self.first, self.later):
            for name, source in section.items():
                if source.numbered and name != "epoch":
                    raise ValueError(f"{name} cannot be numbered, only epoch can")
                if self.turns is None and any(map(has_turn, source.named)):
                    raise ValueError(f"{name} has {TURN}: say how many turns a row has")
                if section is not self.later and any(LATER in column for column in source.named):
                    raise ValueError(f"{name} has {LATER}: give it in [later]")
        if not all(marker.strip() for marker in self.non_response):
            raise ValueError("non_response holds an empty text: an empty cell is no answer already")
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise ValueError(f"encoding: {error}") from error
        return self

    @property
    def after_first(self) -> bool:
        """Whether the list of turns holds those after the first."""
        return any(LATER in column for source in self.later.values() for column in source.named)

    def sources(self, turn: int) -> dict[str, FieldSource]:
        """Where each field of a turn comes from that the mapping does not leave out."""
        turn_sources = self.later if turn else self.first
        return {
            name: source
            for section in (self.turn, turn_sources)
            for name, source in section.items()
        }

    @cached_property
    def markers(self) -> frozenset[str]:
        """What ``non_response`` lists, without blanks around it."""
        return frozenset(marker.strip() for marker in self.non_response)

    @property
    def fields(self) -> Fields | None:
        """Columns of the question file, None where they are to be recognised."""
        return Fields.parse(self.question_fields) if self.question_fields else None


def shipped() -> dict[str, str]:
    """Text of each mapping that comes with holdfast, by name."""
    entries = files(__package__).joinpath("mappings").iterdir()
    return {entry.name.removesuffix(".toml"): entry.read_text("utf-8") for entry in entries}


def read_mapping(path: Path) -> Mapping:
    """Read a mapping file, or one that comes with holdfast, by its name.

    Raises:
        InputError: it cannot be read, or holds a field that is unknown or of the wrong kind.
    """
    file_name = str(path)
    mappings = {} if path.suffix or path.exists() else shipped()
    if mappings and file_name not in mappings:
        remedy = did_you_mean(file_name, mappings)
        raise InputError(f"no such mapping '{file_name}'", field="--mapping", remedy=remedy)
    data = toml_in(mappings[file_name] if mappings else text_of(path), file_name)
    try:
        return Mapping.model_validate(data)
    except ValidationError as error:
        raise _make_refusal(error, file_name) from error


def _make_refusal(error: ValidationError, file_name: str) -> InputError:
    """The first fault as a line for a user."""
    fault = error.errors()[0]
    place = [str(part) for part in fault["loc"]]
    if place[:1] == ["turns"]:  # a number or a column: which of them failed is no place
        del place[1:]
    field = ".".join(place) or None
    of_turn = place[2:] == ["[key]"]
    if of_turn or fault["type"] == "extra_forbidden":
        del place[2 if of_turn else len(place) :]
        inner = JoinedFile.model_fields if place[0] == "joined_files" else FieldSource.model_fields
        names = [Mapping.model_fields, FIELDS, inner][len(place) - 1]
        remedy = did_you_mean(place[-1], names)
        return InputError(
            f"unknown field '{place[-1]}'", file_name, field=".".join(place), remedy=remedy
        )
    message = fault["msg"].removeprefix("Value error, ")
    return InputError(
        message[:1].lower() + message[1:],
        file_name,
        field=field,
        remedy="See docs/guides/transcripts.md",
    )
