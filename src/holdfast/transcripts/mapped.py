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

from .mapping import FieldSource, has_turn, of_turn

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

    sources: tuple[Map[str, FieldSource], Map[str, FieldSource]]
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
        found, near = at_path(self.record, column)
        if near is not None and not optional:
            what = f"is missing, the mapping reads '{field}' from it"
            raise self.error(what, column, did_you_mean(column.rpartition(".")[2], near))
        return found

    def text(self, field: str, turn: int, *, raw: bool = False) -> str | None:
        """The text of a field; None where it is empty or not mapped."""
        source = self.source(field, turn)
        if source is None:
            return None
        if source.value is not None:
            return _plain(source.value)
        plain = not (source.values or source.match or source.highest)
        if source.column is not None and plain and not has_turn(source.column):
            text = self.record.get(source.column)
            if isinstance(text, str) and text:  # by far the most frequent case
                return text if raw else text.strip() or None
        columns = self._columns(source, field, turn)
        parts = [self._cell(column, field, turn, source) for column in columns]
        if not raw:
            parts = [part and part.strip() for part in parts]
        if source.match:
            found = [re.search(source.match, part) if part else None for part in parts]
            parts = [one and one[1] for one in found]
        if source.values:
            parts = [part and self._called(part, source, field, turn) for part in parts]
        text = source.joined.join(part for part in parts if part)
        if not text and source.default is not None:
            return _plain(source.default) or None
        return text or None

    def _columns(self, source: FieldSource, field: str, turn: int) -> Sequence[str]:
        if source.by is None:
            return source.named
        chosen = self._cell(source.by, field, turn, source)
        if chosen not in source.choose:
            what = f"'{chosen or ''}' in '{source.by}' chooses no column"
            raise self.refused(field, turn, what, did_you_mean(chosen or "", source.choose))
        return (source.choose[chosen],)

    def _cell(self, column: str, field: str, turn: int, source: FieldSource) -> str | None:
        optional = source.default is not None or (turn > 0 and has_turn(column) and not self.whole)
        value = self.value(of_turn(column, turn), field, optional=optional)
        if source.highest and value is not None:
            return self._highest(value, column)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return _plain(value)
        remedy = "Name a column of texts, or a key inside it after a dot"
        raise self.error("is neither text nor a number", column, remedy)

    def _highest(self, value: Any, column: str) -> str:
        """The place of the highest of a list of numbers, or of lists that begin with one."""
        cells = json_or(value) if isinstance(value, str) else value
        try:
            firsts = [float(one[0] if isinstance(one, (list, tuple)) else one) for one in cells]
            return str(max(range(len(firsts)), key=firsts.__getitem__))
        except (TypeError, ValueError, IndexError):
            remedy = "Leave out highest, or name a column of numbers"
            raise self.error("holds no list of numbers", column, remedy) from None

    def _called(self, text: str, source: FieldSource, field: str, turn: int) -> str:
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

    def source(self, field: str, turn: int = 0) -> FieldSource | None:
        """Where a field comes from; None where the mapping is silent."""
        return self.sources[turn > 0].get(field)

    def refused(self, field: str, turn: int, what: str, remedy: str) -> InputError:
        """A refusal that names the column behind a field."""
        source = self.source(field, turn)
        column = of_turn(source.named[0], turn) if source and source.named else field
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


_STEP = re.compile(r"\[(-?\d+)\]|([^.\[\]]+)")


def steps_of(path: str) -> list[str | int]:
    """The keys and places of a path such as ``rounds[0].text``."""
    return [int(place) if place else key for place, key in _STEP.findall(path)]


def at_path(record: Any, path: str) -> tuple[Any, list[str] | None]:
    """What stands at a path, and None; or None, and the names that stand where it ends."""
    found = record
    for step in steps_of(path):
        if isinstance(step, int) and isinstance(found, (list, tuple)):
            if not -len(found) <= step < len(found):
                return None, [f"[0] to [{len(found) - 1}]"] if found else ["an empty list"]
            found = found[step]
        elif isinstance(found, Map) and step in found:
            found = found[step]
        else:
            return None, list(map(str, found)) if isinstance(found, Map) else [type(found).__name__]
    return found, None


def json_or(text: str) -> Any:
    """The value of a text of JSON; the text where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_ITEM = re.compile(r"(?m)^\s*\(?([A-Z])[.):]\s*")
_OWN_LETTER = re.compile(r"\s*\(?([A-Z])[.):]\s+")


def options_in(value: Any) -> dict[str, str] | None:
    """Letter to text of a cell with options; None where it holds none."""
    found, _ = options_of(_parsed(value) if isinstance(value, str) else value)
    own = {letter: _OWN_LETTER.match(text) for letter, text in found.items()}
    if all(mark and mark[1] == letter for letter, mark in own.items()):  # "A. Aspirin"
        found = {letter: found[letter][mark.end() :] for letter, mark in own.items() if mark}
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
