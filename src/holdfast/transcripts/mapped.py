"""Mapped: the values of a record by the field that the mapping gives them to."""

from collections.abc import Collection, Sequence
from collections.abc import Mapping as Map
from typing import Any

from holdfast.errors import InputError, did_you_mean, printable

from .mapping import TURN, Source
from .options import ABSTENTION, letter_in

_WHOLE = ("input_tokens", "output_tokens")
NUMBERS = (*_WHOLE, "p_gold", "p_suggested", "p_answer", "cost", "latency")
_OFFERING = "stick-or-switch"


class Cells:
    """The cells of a record by the field that they are mapped to."""

    def __init__(
        self,
        sources: tuple[Map[str, Source], Map[str, Source]],
        record: Map[str, Any],
        row: int,
        file: str,
        *,
        whole: bool,
        markers: Collection[str] = (),
    ) -> None:
        """Nothing is read yet."""
        self._sources, self._record, self._whole = sources, record, whole
        self._markers = markers
        self._file, self.number_of_row = file, row

    def value(self, column: str, field: str, *, optional: bool = False) -> Any:
        """What a column holds."""
        if column in self._record:
            return self._record[column]
        found: Any = self._record
        for part in column.split("."):
            if not isinstance(found, Map) or part not in found:
                if optional:
                    return None
                raise InputError(
                    f"is missing, the mapping reads '{field}' from it", self._file,
                    self.number_of_row, column, did_you_mean(column, map(str, self._record)),
                )  # fmt: skip
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
            text = self._record.get(source.column)
            if isinstance(text, str) and text:  # by far the most frequent case
                return text if raw else text.strip() or None
        parts = [self._cell(column, field, turn, source) for column in self._columns(
            source, field, turn
        )]  # fmt: skip
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
            raise self.refused(
                field, turn, f"'{chosen or ''}' in '{source.by}' chooses no column",
                did_you_mean(chosen or "", source.choose),
            )  # fmt: skip
        return (source.choose[chosen],)

    def _cell(self, column: str, field: str, turn: int, source: Source) -> str | None:
        optional = source.default is not None or (turn > 0 and TURN in column and not self._whole)
        value = self.value(column.replace(TURN, str(turn)), field, optional=optional)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return _plain(value)
        raise InputError("is neither text nor a number", self._file, self.number_of_row, column,
                         "Name a column of texts, or a key inside it after a dot")  # fmt: skip

    def _called(self, text: str, source: Source, field: str, turn: int) -> str:
        if text in source.values:
            return source.values[text]
        if field == "answer" and text in self._markers:
            return text
        if source.others == "keep":
            return text
        raise self.refused(
            field, turn, f"'{text[:80]}' is none of the values that the mapping lists",
            f"{did_you_mean(text, source.values)} Or say others = \"keep\"",
        )  # fmt: skip

    def letter(
        self, field: str, turn: int, options: Map[str, str] | None, protocol: str
    ) -> str | None:
        """The option that a field names."""
        text = self.text(field, turn)
        if text is None:
            return None
        if text == ABSTENTION and protocol == _OFFERING:
            return text
        source = self.source(field, turn)
        letter = letter_in(text, options, source.base if source else None)
        if letter is None:
            known = ", ".join(options) if options else "A to Z"
            raise self.refused(
                field, turn, f"'{text[:40]}' is none of the options {known}",
                'Mend it, or list it in \'values\' as ""',
            )  # fmt: skip
        return letter

    def number(self, field: str, turn: int) -> float | int | None:
        """The number in a field."""
        text = self.text(field, turn)
        if text is None:
            return None
        try:
            return int(text) if field in _WHOLE else float(text)
        except ValueError:
            raise self.refused(
                field, turn, f"'{text[:40]}' is no number", "Mend it, or leave the field out"
            ) from None

    def source(self, field: str, turn: int = 0) -> Source | None:
        """Where a field comes from; None where the mapping is silent."""
        return self._sources[turn > 0].get(field)

    def refused(self, field: str, turn: int, what: str, remedy: str) -> InputError:
        """A refusal that names the column behind a field."""
        source = self.source(field, turn)
        column = source.named[0].replace(TURN, str(turn)) if source and source.named else field
        return InputError(printable(what), self._file, self.number_of_row, column, remedy)


def _plain(value: str | int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # as some tools write a column of whole numbers with a gap
    return str(value)
