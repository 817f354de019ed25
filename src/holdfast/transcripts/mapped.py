"""Mapped: the values of a record by the field that the mapping gives them to."""

import json
import re
from collections.abc import Collection, Sequence
from collections.abc import Mapping as Map
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InputError, did_you_mean, printable
from holdfast.questions import LETTERS, Question, options_of
from holdfast.results import turns_of

from .mapping import TURN, Source

ABSTENTION = "NA"
"""None of the above, in the turns table."""

_WHOLE = ("input_tokens", "output_tokens")
NUMBERS = (*_WHOLE, "p_gold", "p_suggested", "p_answer", "cost", "latency")


@dataclass(slots=True)
class Cells:
    """The cells of a record by the field that they are mapped to.

    Attributes:
        sources: where each field comes from, in a first turn and in later ones.
        record: the values by column.
        row: where the record stands.
        file: the same.
        whole: whether every record has every column, as in a table.
        markers: what stands for no response.
        question: what was asked, where a question set is joined; read from the record itself.
        options: letter to text, where they are known; the same.
        protocol: of every turn; the same.
    """

    sources: tuple[Map[str, Source], Map[str, Source]]
    record: Map[str, Any]
    row: int
    file: str
    whole: bool
    markers: Collection[str]
    question: Question | None = None
    options: Map[str, str] | None = None
    protocol: str = ""

    def value(self, column: str, field: str, *, optional: bool = False) -> Any:
        """What a column holds."""
        if column in self.record:
            return self.record[column]
        found: Any = self.record
        for part in column.split("."):
            if not isinstance(found, Map) or part not in found:
                if optional:
                    return None
                what = f"is missing, the mapping reads '{field}' from it"
                raise self.error(what, column, did_you_mean(column, map(str, self.record)))
            found = found[part]
        return found

    def text(self, field: str, turn: int, *, raw: bool = False) -> str | None:
        """The text of a field; None where it is empty or not mapped."""
        source = self.source(field, turn)
        if source is None:
            return None
        if source.value is not None:
            return _plain(source.value)
        if source.column is not None and not source.values and TURN not in source.column:
            text = self.record.get(source.column)
            if isinstance(text, str) and text:  # by far the most frequent case
                return text if raw else text.strip() or None
        columns = self._columns(source, field, turn)
        parts = [self._cell(column, field, turn, source) for column in columns]
        if not raw:
            parts = [part and part.strip() for part in parts]
        if source.values:
            parts = [part and self._called(part, source, field, turn) for part in parts]
        text = ">".join(part for part in parts if part)
        if not text and source.default is not None:
            return _plain(source.default)
        return text or None

    def _columns(self, source: Source, field: str, turn: int) -> Sequence[str]:
        if source.by is None:
            return source.named
        chosen = self._cell(source.by, field, turn, source)
        if chosen not in source.choose:
            what = f"'{chosen or ''}' in '{source.by}' chooses no column"
            raise self.refused(field, turn, what, did_you_mean(chosen or "", source.choose))
        return (source.choose[chosen],)

    def _cell(self, column: str, field: str, turn: int, source: Source) -> str | None:
        optional = source.default is not None or (turn > 0 and TURN in column and not self.whole)
        value = self.value(column.replace(TURN, str(turn)), field, optional=optional)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return _plain(value)
        remedy = "Name a column of texts, or a key inside it after a dot"
        raise self.error("is neither text nor a number", column, remedy)

    def _called(self, text: str, source: Source, field: str, turn: int) -> str:
        if text in source.values:
            return source.values[text]
        if source.others == "keep" or (field == "answer" and text in self.markers):
            return text
        what = f"'{text[:80]}' is none of the values that the mapping lists"
        remedy = f'{did_you_mean(text, source.values)} Or say others = "keep"'
        raise self.refused(field, turn, what, remedy)

    def letter(self, field: str, turn: int) -> str | None:
        """The option that a field names."""
        text = self.text(field, turn)
        if text is None:
            return None
        if text == ABSTENTION and turns_of(self.protocol).abstains:
            return text
        source = self.source(field, turn)
        letter = letter_in(text, self.options, source.base if source else None)
        if letter is None:
            known = ", ".join(self.options) if self.options else "A to Z"
            what = f"'{text[:40]}' is none of the options {known}"
            raise self.refused(field, turn, what, "Fix it, or list it in 'values' as \"\"")
        return letter

    def number(self, field: str, turn: int) -> float | int | None:
        """The number in a field."""
        text = self.text(field, turn)
        if text is None:
            return None
        try:
            return int(text) if field in _WHOLE else float(text)
        except ValueError:
            what, remedy = f"'{text[:40]}' is no number", "Fix it, or leave the field out"
            raise self.refused(field, turn, what, remedy) from None

    def source(self, field: str, turn: int = 0) -> Source | None:
        """Where a field comes from; None where the mapping is silent."""
        return self.sources[turn > 0].get(field)

    def refused(self, field: str, turn: int, what: str, remedy: str) -> InputError:
        """A refusal that names the column behind a field."""
        source = self.source(field, turn)
        column = source.named[0].replace(TURN, str(turn)) if source and source.named else field
        return self.error(printable(what), column, remedy)

    def error(self, what: str, column: str, remedy: str) -> InputError:
        """A refusal of what stands in a column."""
        return InputError(what, self.file, self.row, column, remedy)


def _plain(value: str | int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # as some tools write a column of whole numbers with a gap
    return str(value)


_ITEM = re.compile(r"(?m)^\s*\(?([A-Z])[.):]\s*")


def options_in(value: Any) -> dict[str, str] | None:
    """Letter to text of a cell with options; None where it holds none."""
    found, _ = options_of(_parsed(value) if isinstance(value, str) else value)
    lettered = len(found) > 1 and list(found) == list(LETTERS[: len(found)])
    return found if lettered else None


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    starts: list[re.Match[str]] = []
    for item in _ITEM.finditer(text):
        # another letter begins a line within an option
        if item[1] == LETTERS[len(starts) : len(starts) + 1]:
            starts.append(item)
    ends = [*(item.start() for item in starts[1:]), len(text)]
    return {
        item[1]: text[item.end() : end].strip() for item, end in zip(starts, ends, strict=False)
    }


def letter_in(text: str, options: Map[str, str] | None, base: int | None) -> str | None:
    """The option that a cell names: by its letter, its number or its text; None if it is none."""
    text = text.strip()
    known = options or dict.fromkeys(LETTERS, "")
    if base is not None:
        number = text.removesuffix(".0")
        if number.isascii() and number.isdecimal() and len(number) < 3:
            place = int(number) - base
            return list(known)[place] if 0 <= place < len(known) else None
    if text in known:
        return text
    bare = text.strip("().:").upper()
    if bare in known:
        return bare
    same = [letter for letter, option in known.items() if option.strip() == text and text]
    return same[0] if len(same) == 1 else None
