"""Values of a record by the field that the mapping assigns them to."""

import json
import re
from collections.abc import Collection, Sequence
from collections.abc import Mapping as Map
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InputError, did_you_mean, printable
from holdfast.questions.loading import options_of
from holdfast.questions.question import LETTERS, Question
from holdfast.results.arms import turns_of

from .mapping import FieldSource, has_turn, of_turn

ABSTENTION = "NA"
"""The answer "None of the above" in the turns table."""

_WHOLE = ("input_tokens", "output_tokens")
NUMBERS = (*_WHOLE, "p_gold", "p_suggested", "p_answer", "cost", "latency")


@dataclass(slots=True)
class Cells:
    """Cells of a record by the field that they are mapped to.

    Attributes:
        sources: source of each field, in a first turn and in later turns.
        record: values by column.
        row: 1-based row of the record.
        file: file of the record.
        whole: whether every record has every column, as in a table.
        markers: texts that mean no response.
        question: question of the record, if a question set is joined. Set while the record is read.
        options: text of each option by letter, if known. Set while the record is read.
        protocol: protocol of every turn. Set while the record is read.
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
        """Return the value of a column."""
        if column in self.record:
            return self.record[column]
        value, near = at_path(self.record, column)
        if near is not None and not optional:
            problem = f"is missing, but the mapping reads '{field}' from it"
            raise self.error(problem, column, did_you_mean(column.rpartition(".")[2], near))
        return value

    def text(self, field: str, turn: int, *, raw: bool = False) -> str | None:
        """Return the text of a field, None if it is empty or not mapped."""
        source = self.source(field, turn)
        if source is None:
            return None
        if source.value is not None:
            return _format_number(source.value)
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
            matches = [re.search(source.match, part) if part else None for part in parts]
            parts = [match and match[1] for match in matches]
        if source.values:
            parts = [part and self._translate(part, source, field, turn) for part in parts]
        text = source.joined.join(part for part in parts if part)
        if not text and source.default is not None:
            return _format_number(source.default) or None
        return text or None

    def _columns(self, source: FieldSource, field: str, turn: int) -> Sequence[str]:
        if source.by is None:
            return source.named
        chosen_value = self._cell(source.by, field, turn, source)
        if chosen_value not in source.choose:
            problem = f"'{chosen_value or ''}' in '{source.by}' selects no column of 'choose'"
            raise self.refused(
                field, turn, problem, did_you_mean(chosen_value or "", source.choose)
            )
        return (source.choose[chosen_value],)

    def _cell(self, column: str, field: str, turn: int, source: FieldSource) -> str | None:
        optional = source.default is not None or (turn > 0 and has_turn(column) and not self.whole)
        value = self.value(of_turn(column, turn), field, optional=optional)
        if source.highest and value is not None:
            return self._highest(value, column)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return _format_number(value)
        remedy = "Name a column of texts, or a key inside the column after a dot"
        raise self.error("is neither text nor a number", column, remedy)

    def _highest(self, value: Any, column: str) -> str:
        """Return the position of the highest number in a list of numbers or of lists."""
        cells = json_or(value) if isinstance(value, str) else value
        try:
            firsts = [float(cell[0] if isinstance(cell, (list, tuple)) else cell) for cell in cells]
            return str(max(range(len(firsts)), key=firsts.__getitem__))
        except (TypeError, ValueError, IndexError):
            remedy = "Remove 'highest', or name a column of numbers"
            raise self.error("contains no list of numbers", column, remedy) from None

    def _translate(self, text: str, source: FieldSource, field: str, turn: int) -> str:
        if text in source.values:
            return source.values[text]
        if source.others == "keep" or (field == "answer" and text in self.markers):
            return text
        problem = f"'{text[:80]}' is not among the 'values' of the mapping"
        remedy = f'{did_you_mean(text, source.values)} Or set others = "keep"'
        raise self.refused(field, turn, problem, remedy)

    def letter(self, field: str, turn: int) -> str | None:
        """Return the letter of the option that a field names."""
        text = self.text(field, turn)
        if text is None:
            return None
        if text == ABSTENTION and turns_of(self.protocol).abstains:
            return text
        source = self.source(field, turn)
        letter = letter_in(text, self.options, source.base if source else None)
        if letter is None:
            letters_known = ", ".join(self.options) if self.options else "A to Z"
            problem = f"'{text[:40]}' is not one of the options {letters_known}"
            raise self.refused(field, turn, problem, "Correct it, or list it in 'values' as \"\"")
        return letter

    def number(self, field: str, turn: int) -> float | int | None:
        """Return the number in a field."""
        text = self.text(field, turn)
        if text is None:
            return None
        try:
            return int(text) if field in _WHOLE else float(text)
        except ValueError:
            problem, remedy = (
                f"'{text[:40]}' is not a number",
                "Correct it, or remove the field from the mapping",
            )
            raise self.refused(field, turn, problem, remedy) from None

    def source(self, field: str, turn: int = 0) -> FieldSource | None:
        """Return the source of a field, None if the mapping has none."""
        return self.sources[turn > 0].get(field)

    def refused(self, field: str, turn: int, problem: str, remedy: str) -> InputError:
        """Return an error that names the column of a field."""
        source = self.source(field, turn)
        column = of_turn(source.named[0], turn) if source and source.named else field
        return self.error(printable(problem), column, remedy)

    def error(self, problem: str, column: str, remedy: str) -> InputError:
        """Return an error that names a column."""
        return InputError(problem, self.file, self.row, column, remedy)


def _format_number(value: str | int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # some tools write integers with gaps as floats
    return str(value)


_STEP = re.compile(r"\[(-?\d+)\]|([^.\[\]]+)")


def steps_of(path: str) -> list[str | int]:
    """Return the keys and positions of a path such as ``rounds[0].text``."""
    return [int(place) if place else key for place, key in _STEP.findall(path)]


def at_path(record: Any, path: str) -> tuple[Any, list[str] | None]:
    """Return the value at a path and None, or None and the names known where the path fails."""
    value_at_path = record
    for step in steps_of(path):
        if isinstance(step, int) and isinstance(value_at_path, (list, tuple)):
            if not -len(value_at_path) <= step < len(value_at_path):
                return None, [f"[0] to [{len(value_at_path) - 1}]"] if value_at_path else [
                    "an empty list"
                ]
            value_at_path = value_at_path[step]
        elif isinstance(value_at_path, Map) and step in value_at_path:
            value_at_path = value_at_path[step]
        else:
            return None, list(map(str, value_at_path)) if isinstance(value_at_path, Map) else [
                type(value_at_path).__name__
            ]
    return value_at_path, None


def json_or(text: str) -> Any:
    """Return the value of a JSON text, or the text if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_ITEM = re.compile(r"(?m)^\s*\(?([A-Z])[.):]\s*")
_OWN_LETTER = re.compile(r"\s*\(?([A-Z])[.):]\s+")


def options_in(value: Any) -> dict[str, str] | None:
    """Return the options of a cell by letter, None if it contains none."""
    options, _ = options_of(_parse_options(value) if isinstance(value, str) else value)
    own_letters = {letter: _OWN_LETTER.match(text) for letter, text in options.items()}
    if all(mark and mark[1] == letter for letter, mark in own_letters.items()):  # "A. Aspirin"
        options = {
            letter: options[letter][mark.end() :] for letter, mark in own_letters.items() if mark
        }
    is_lettered = len(options) > 1 and list(options) == list(LETTERS[: len(options)])
    return options if is_lettered else None


def _parse_options(text: str) -> Any:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    starts: list[re.Match[str]] = []
    for item in _ITEM.finditer(text):
        # a line within an option can start with another letter
        if item[1] == LETTERS[len(starts) : len(starts) + 1]:
            starts.append(item)
    ends = [*(item.start() for item in starts[1:]), len(text)]
    return {
        item[1]: text[item.end() : end].strip() for item, end in zip(starts, ends, strict=False)
    }


def letter_in(text: str, options: Map[str, str] | None, base: int | None) -> str | None:
    """Return the option that a cell names by letter, number or text, else None."""
    text = text.strip()
    letters = options or dict.fromkeys(LETTERS, "")
    if base is not None:
        number = text.removesuffix(".0")
        if number.isascii() and number.isdecimal() and len(number) < 3:
            place = int(number) - base
            return list(letters)[place] if 0 <= place < len(letters) else None
    if text in letters:
        return text
    bare = text.strip("().:").upper()
    if bare in letters:
        return bare
    same_letters = [letter for letter, option in letters.items() if option.strip() == text and text]
    return same_letters[0] if len(same_letters) == 1 else None
