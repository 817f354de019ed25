"""The mapping: the columns of foreign transcripts by the field that they fill."""

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
"""Placeholder for the 0-based number of a turn in the name of a column."""
LATER = "{later}"
"""Placeholder for the same number, counted from the second turn."""


def of_turn(column: str, turn: int) -> str:
    """Return the column of one turn."""
    return column.replace(TURN, str(turn)).replace(LATER, str(turn - 1))


def has_turn(column: str) -> bool:
    """Return whether the name of a column depends on the turn."""
    return TURN in column or LATER in column


class FieldSource(BaseModel):
    """Source of the value of a field. A name alone names a column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str | None = None
    """Column, or path into a JSON value: ``metadata.model``, ``rounds[0].text``."""
    columns: tuple[str, ...] = ()
    """Several columns, whose values are joined. Empty values are skipped."""
    joined: str = ">"
    """Text between the values of ``columns``."""
    match: str | None = None
    """Regular expression whose first group is the value. Without a match, the field is empty."""
    highest: bool = False
    """The cell is a list of numbers, or of lists that start with a number. The value is the 0-based
    position of the highest number."""
    by: str | None = None
    """Column whose value selects a column from ``choose``."""
    choose: dict[str, str] = Field(default_factory=dict)
    """Column to read, by value of ``by``."""
    value: str | int | float | None = None
    """The same value for every row."""
    values: dict[str, str] = Field(default_factory=dict)
    """Values of holdfast by the values in the file. An empty text means no value."""
    others: Literal["refuse", "keep"] = "refuse"
    """Action for a value that ``values`` does not list: ``refuse`` reports an error, ``keep`` uses
    the value unchanged."""
    default: str | int | float | None = None
    """Value for an empty or missing cell."""
    base: Literal[0, 1] | None = None
    """Number of the first option, or of the first question, if the value is a number."""
    numbered: bool = False
    """For ``epoch`` only: number the values from 1 in order of appearance."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> "FieldSource":
        sources = [self.column, self.columns or None, self.by, self.value]
        if sum(source is not None for source in sources) != 1:
            raise ValueError("give exactly one of column, columns, by and value")
        if bool(self.choose) != (self.by is not None):
            raise ValueError("give by and choose together")
        if self.match is not None:
            try:
                groups = re.compile(self.match).groups
            except re.error as error:
                raise ValueError(f"match: {error}") from error
            if groups != 1:
                raise ValueError("match: write exactly one group, which is the value")
        return self

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that this source reads."""
        columns_read = (self.column,) if self.column is not None else ()
        by = (self.by, *self.choose.values()) if self.by is not None else ()
        return (*columns_read, *self.columns, *by)


def _source(value: Any) -> Any:
    """Convert a text to a column, and a list to columns."""
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
"""Fields of a turn, named as in the turns table."""

Columns = Map[FieldName, Annotated[FieldSource, BeforeValidator(_source)]]
"""Sources of the fields of a turn."""


Texts = Annotated[tuple[str, ...], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]
"""One text or several texts."""


class JoinedFile(BaseModel):
    """File that is joined to the rows, as a column with the name you choose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    """File in the folder: JSONL, or one object as JSON or YAML."""
    by: str | None = None
    """Column that joins the rows of the file. Without it, the file is one object for all rows."""


class Mapping(BaseModel):
    """Rules that turn the rows of transcripts into turns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: str | None = None
    """Pattern of the files to read if you import a folder, such as ``followups/*.jsonl``. Each row
    gets the column ``file``: the path of its file in the folder, without the suffix."""
    joined_files: Map[str, JoinedFile] = Field(default_factory=dict)
    """Files of the folder to join to the rows, by the name of the new column."""
    each: Texts = ()
    """Columns of lists or objects, outermost first. Each element becomes a row and replaces the
    list in its column."""
    keep: Map[str, Texts] = Field(default_factory=dict)
    """Texts by column. Only rows whose column has one of its texts are read."""
    drop: Map[str, Texts] = Field(default_factory=dict)
    """Texts by column. Rows whose column has one of its texts are skipped."""
    messages: str | None = None
    """Column with a list of messages (``role`` and ``content``). Every reply in it is a turn."""
    turns: Annotated[int, Field(ge=1, le=1000)] | str | None = None
    """Number of turns in a row, if each turn has its own columns. Or the column of a list with one
    element for each turn. If you use ``{later}``, the list starts at the second turn."""
    options: str | tuple[str, ...] | None = None
    """Column of the options (object, list, JSON text, or lines ``A. …``), or one column for each
    option."""
    options_inside: str | None = None
    """Column of a text that contains the options (``A. …``, ``(A) …``), such as a prompt."""
    join: Literal["id", "index", "stem"] = "id"
    """Content of the field ``question``: the ``id``, the position (``index``) or the ``stem`` of a
    question in the file of ``--questions``."""
    question_fields: str | None = None
    """Columns of the file of ``--questions``, as in ``-T fields``."""
    answers: Literal["extracted", "first-character", "given"] = "extracted"
    """Extraction of answers: ``extracted`` by the rules of holdfast, ``first-character`` from the
    first character of the reply, ``given`` from the field ``answer`` alone. With ``given``, an
    empty ``answer`` is no answer."""
    without_gold: bool = False
    """The file has no right answers. The first answer of a conversation replaces the right answer:
    accuracy is then agreement with it, and a flip is a change from it."""
    non_response: tuple[str, ...] = ()
    """Texts in a cell of ``reply`` or ``answer`` that mean no response, such as ``NR``."""
    fold: bool = False
    """Merge turns that several conversations share into one row if their texts and answers are
    equal."""
    encoding: str = "utf-8"
    """Encoding of a text file."""
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    """Delimiter of a CSV file."""
    turn: Columns = Field(default_factory=dict)
    """Fields of every turn."""
    first: Columns = Field(default_factory=dict)
    """Fields of the first turn of a conversation. They override ``[turn]``."""
    later: Columns = Field(default_factory=dict)
    """Fields of all later turns. They override ``[turn]``."""

    @field_serializer("turn", "first", "later")
    def _every_field(self, columns: Columns) -> dict[str, FieldSource | None]:
        # the run of an import is a digest of this: name every field, mapped or not
        return {name: columns.get(name) for name in FIELDS}

    @model_validator(mode="after")
    def _check_mapping(self) -> "Mapping":
        if self.messages is not None and self.turns is not None:
            raise ValueError("give one of messages and turns, not both")
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
            raise ValueError("joined_files needs files: name the files of the folder to read")
        if self.options is not None and self.options_inside is not None:
            raise ValueError("give one of options and options_inside, not both")
        for section in (self.first, self.later):
            for name in ("question", "epoch", "model", "dataset", "protocol"):
                if name in section:
                    raise ValueError(
                        f"{name} is the same for a whole conversation: give it in [turn]"
                    )
        for section in (self.turn, self.first, self.later):
            for name, source in section.items():
                if source.numbered and name != "epoch":
                    raise ValueError(f"{name} cannot be numbered: only epoch can")
                if self.turns is None and any(map(has_turn, source.named)):
                    raise ValueError(
                        f"{name} has {TURN}: give the number of turns of a row in turns"
                    )
                if section is not self.later and any(LATER in column for column in source.named):
                    raise ValueError(f"{name} has {LATER}: give it in [later]")
        if not all(marker.strip() for marker in self.non_response):
            raise ValueError(
                "non_response contains an empty text: remove it, empty cells mean no answer"
            )
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise ValueError(f"encoding: {error}") from error
        return self

    @property
    def after_first(self) -> bool:
        """Whether the list of turns starts at the second turn."""
        return any(LATER in column for source in self.later.values() for column in source.named)

    def sources(self, turn: int) -> dict[str, FieldSource]:
        """Return the source of each field of a turn that the mapping names."""
        turn_sources = self.later if turn else self.first
        return {
            name: source
            for section in (self.turn, turn_sources)
            for name, source in section.items()
        }

    @cached_property
    def markers(self) -> frozenset[str]:
        """Texts of ``non_response`` without surrounding blanks."""
        return frozenset(marker.strip() for marker in self.non_response)

    @property
    def fields(self) -> Fields | None:
        """Columns of the question file, None to recognise them."""
        return Fields.parse(self.question_fields) if self.question_fields else None


def shipped() -> dict[str, str]:
    """Return the text of each mapping that comes with holdfast, by name."""
    entries = files(__package__).joinpath("mappings").iterdir()
    return {entry.name.removesuffix(".toml"): entry.read_text("utf-8") for entry in entries}


def read_mapping(path: Path) -> Mapping:
    """Read a mapping file, or a mapping that comes with holdfast by its name.

    Raises:
        InputError: the mapping is missing or unreadable, or a field is unknown or invalid.
    """
    file_name = str(path)
    mappings = {} if path.suffix or path.exists() else shipped()
    if mappings and file_name not in mappings:
        remedy = did_you_mean(file_name, mappings)
        raise InputError(f"unknown mapping '{file_name}'", field="--mapping", remedy=remedy)
    data = toml_in(mappings[file_name] if mappings else text_of(path), file_name)
    try:
        return Mapping.model_validate(data)
    except ValidationError as error:
        raise _make_refusal(error, file_name) from error


def _make_refusal(error: ValidationError, file_name: str) -> InputError:
    """Return the first fault as an error for the user."""
    fault = error.errors()[0]
    place = [str(part) for part in fault["loc"]]
    if place[:1] == ["turns"]:  # pydantic adds the member of the union that failed
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
