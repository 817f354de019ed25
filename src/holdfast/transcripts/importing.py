"""Import of transcripts from elsewhere as a turns table."""

import hashlib
import os
import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

from holdfast.errors import InputError, did_you_mean
from holdfast.files import is_valid_text
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import digest_of
from holdfast.questions.rows import check_file
from holdfast.results.runs import IMPORTED_PREFIX
from holdfast.results.turns import SCHEMA

from .joined_files import files_of, with_joined
from .mapping import Mapping, of_turn
from .reimport import read_exported
from .transcript_reader import TranscriptReader
from .transcript_rows import Record, each_of, fields_of, read_records

VERSION = 1
"""``protocol_version`` of imported turns. Raise it if a file is read differently."""

_RECORDS_AT_ONCE = 1_000
_CHARACTERS_AT_ONCE = 4_000_000
_LARGE = 16_000_000
"""Bytes from which several processes read a file."""

_PLACE = ("model", "dataset", "protocol", "question", "epoch", "arm", "path", "turn")
"""Columns that identify an imported turn."""


@dataclass(frozen=True)
class Imported:
    """Turns table of an import.

    Attributes:
        turns: columns as in ``SCHEMA``, rows in the order of the file.
        conversations: number of rows of the file that became turns.
        passed_over: counts of what the table lacks, by kind.
    """

    turns: pl.DataFrame
    conversations: int
    passed_over: Counter[str] = field(default_factory=Counter)


def import_transcripts(
    path: Path,
    mapping: Mapping | None = None,
    questions: QuestionSet | None = None,
    *,
    processes: int = 1,
    skip_bad: bool = False,
) -> Imported:
    """Read transcripts from elsewhere as a turns table.

    Args:
        path: the transcripts, or the folder with the files that the mapping names.
        mapping: columns by field, None for an export of holdfast.
        questions: questions to join to the rows, as the mapping says.
        processes: number of processes that read a large file.
        skip_bad: whether to skip and count rows that cannot be read.

    Returns:
        The turns. Each ``run`` begins with ``IMPORTED_PREFIX``, except that an export of holdfast
        keeps its runs.

    Raises:
        InputError: the mapping cannot read the file or a row, or two rows are the same turn.
    """
    if mapping is None:
        turns = read_exported(path)
        conversation_count = turns.select(
            "run", "model", "question", "epoch", "arm", "path"
        ).n_unique()
        return Imported(turns, conversation_count)
    dataset = questions.name if questions else path.stem
    sources = files_of(path, mapping)
    frames: list[pl.DataFrame] = []
    passed_over: Counter[str] = Counter()
    conversations = 0
    for source in sources:
        whole = source.suffix.lower() in (".csv", ".tsv", ".parquet")
        reading = TranscriptReader(mapping, questions, str(source), dataset, whole, skip_bad)
        columns_seen: set[str] = set()
        for frame, count, left, columns_of_part in _read_pieces(path, source, reading, processes):
            if frame.height:
                frames.append(frame)
            conversations += count
            passed_over.update(left)
            columns_seen |= columns_of_part
        _check_turn_columns(reading, columns_seen)
        passed_over.update(
            f"column of a later turn ('{column}')" for column in sorted(reading.columns_beyond)
        )
    if not frames:
        bad = "; ".join(f"{n} × {kind}" for kind, n in passed_over.items())
        problem = f"contains no readable row ({bad})" if bad else "contains no row"
        raise InputError(problem, str(path), remedy="Give a file with at least one row")
    turns = _number_epochs(pl.concat(frames))
    frames.clear()
    turns = _drop_repeats(turns, str(path), passed_over, fold=mapping.fold)
    return Imported(
        _with_run(turns, _digest(sources, mapping, questions)), conversations, passed_over
    )


def _check_turn_columns(reading: TranscriptReader, columns_seen: set[str]) -> None:
    """Refuse turn columns that no row has: the mapping would read too few turns."""
    turns = reading.mapping.turns
    if reading.whole or not isinstance(turns, int) or not columns_seen:
        return
    for name, column in reading.turn_columns:
        for turn in range(1, turns):
            if of_turn(column, turn) not in columns_seen:
                problem = f"is in no row, but the mapping reads '{name}' of turn {turn} from it"
                remedy = did_you_mean(of_turn(column, turn), columns_seen)
                raise InputError(problem, reading.file, None, of_turn(column, turn), remedy)


Piece = tuple[pl.DataFrame, int, Counter[str], set[str]]


def _read_pieces(
    path: Path, source: Path, reading: TranscriptReader, processes: int
) -> Iterator[Piece]:
    check_file(source)
    mapping = reading.mapping
    records = read_records(source, mapping.encoding, mapping.delimiter)
    if mapping.each:
        records = _split_elements(records, reading)
    if path.is_dir():
        records = with_joined(records, path, source, mapping, skip_bad=reading.skip_bad)
    pieces = _pieces(_check_table_columns(records, reading))
    if processes < 2 or source.stat().st_size < _LARGE:
        yield from (_piece(reading, piece) for piece in pieces)
        return
    # extraction takes most of the time and uses one core in a process
    context = get_context("spawn")
    with context.Pool(processes, _begin, (reading,)) as pool:
        waiting = []
        for piece in pieces:  # imap would read the whole file ahead
            waiting.append(pool.apply_async(_work, (piece,)))
            if len(waiting) > 2 * processes:
                yield waiting.pop(0).get()
        for result in waiting:
            yield result.get()


def _split_elements(records: Iterable[Record], reading: TranscriptReader) -> Iterator[Record]:
    """Yield the elements that ``each`` names, numbered through the file."""
    number = 0
    for record in records:
        try:
            fields = fields_of(record, reading.file)
            for part in each_of(fields, reading.mapping.each, reading.file, record[0]):
                number += 1
                yield number, part
        except InputError as error:
            if not reading.skip_bad:
                raise
            yield record[0], error


def _check_table_columns(records: Iterable[Record], reading: TranscriptReader) -> Iterator[Record]:
    """Yield the records, after a check that a table has the columns of the mapping."""
    for place, record in enumerate(records):
        if place == 0 and reading.whole:
            for field_name, column in _columns(reading.mapping):
                if column not in record[1]:
                    problem = f"is missing, but the mapping reads '{field_name}' from it"
                    remedy = did_you_mean(column, record[1])
                    raise InputError(problem, reading.file, None, column, remedy)
            for column in _find_columns_beyond(reading.mapping, record[1]):
                reading.columns_beyond.add(column)
        yield record


def _find_columns_beyond(mapping: Mapping, record: Any) -> Iterator[str]:
    """Yield columns of turns after the last turn that the mapping reads."""
    if isinstance(mapping.turns, int):
        for name, source in mapping.sources(1).items():
            if name in ("reply", "answer"):
                after = {of_turn(column, mapping.turns) for column in source.named}
                yield from sorted(after & record.keys() - set(source.named))


def _columns(mapping: Mapping) -> Iterator[tuple[str, str]]:
    """Yield each column that a table must have, with its field."""
    options = (mapping.options,) if isinstance(mapping.options, str) else mapping.options or ()
    yield from (("options", column) for column in options)
    if mapping.options_inside:
        yield "options_inside", mapping.options_inside
    if mapping.messages:
        yield "messages", mapping.messages
    has_turn_list = isinstance(mapping.turns, str)
    if isinstance(mapping.turns, str):
        yield "turns", mapping.turns
    for turn in range(1 if has_turn_list else int(mapping.turns or 1)):
        for name, source in mapping.sources(turn).items():
            if source.default is None:
                turn_columns = (of_turn(column, turn) for column in source.named)
                yield from (
                    (name, re.split(r"[.\[]", bare_column)[0] if has_turn_list else bare_column)
                    for bare_column in turn_columns
                )


def _pieces(records: Iterable[Record]) -> Iterator[list[Record]]:
    piece: list[Record] = []
    characters = 0
    for record in records:
        piece.append(record)
        characters += len(record[1]) if isinstance(record[1], str) else 0
        if len(piece) >= _RECORDS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield piece
            piece, characters = [], 0
    if piece:
        yield piece


_reading: TranscriptReader
"""Reader of a worker process."""


def _begin(reading: TranscriptReader) -> None:
    global _reading
    _reading = reading
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process stops its workers


def _work(piece: list[Record]) -> Piece:
    return _piece(_reading, piece)


_READ_SCHEMA = {**SCHEMA, "row": pl.Int64(), "numbered": pl.String()}


def _piece(reading: TranscriptReader, records: Sequence[Record]) -> Piece:
    reading.passed_over.clear()
    reading.columns_seen.clear()
    rows: list[dict[str, Any]] = []
    count = 0
    for record in records:
        try:
            fields = fields_of(record, reading.file)
            if not reading.kept(fields):
                reading.passed_over["row that the mapping does not keep"] += 1
                continue
            turns = reading.turns(record[0], fields)
        except InputError as error:
            if not reading.skip_bad:
                raise
            reading.passed_over[f"bad row ({error.field or 'the row'})"] += 1
            continue
        rows += turns
        count += bool(turns)
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    schema = {name: _READ_SCHEMA[name] for name in columns}
    try:
        frame = pl.DataFrame(columns, schema=schema)
    except UnicodeEncodeError:  # a lone surrogate is not valid in a table
        frame = pl.DataFrame(_replace_surrogates(columns, reading.passed_over), schema=schema)
    return frame, count, Counter(reading.passed_over), set(reading.columns_seen)


def _replace_surrogates(
    columns: dict[str, list[Any]], passed_over: Counter[str]
) -> dict[str, list[Any]]:
    """Return the columns with U+FFFD in place of lone surrogates."""

    def valid_text(value: Any) -> Any:
        if not isinstance(value, str) or is_valid_text(value):
            return value
        passed_over["lone surrogate, written as U+FFFD, in a text"] += 1
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    return {name: [valid_text(value) for value in values] for name, values in columns.items()}


def _number_epochs(turns: pl.DataFrame) -> pl.DataFrame:
    """Number epochs that are names, in the order of the file."""
    names = turns["numbered"].unique(maintain_order=True)
    if names.len() == 1 and names[0] == "":
        return turns.drop("numbered")
    epoch = pl.col("numbered").replace_strict(names, range(1, names.len() + 1))
    return turns.with_columns(epoch.cast(pl.Int64).alias("epoch")).drop("numbered")


def _drop_repeats(
    turns: pl.DataFrame, file: str, passed_over: Counter[str], *, fold: bool
) -> pl.DataFrame:
    """Return the turns without repeats, which ``fold`` permits."""
    if fold:
        same_columns = [*_PLACE, "answer", "status", "suggested", "prompt", "reply"]
        once = turns.unique(same_columns, keep="first", maintain_order=True)
        if once.height < turns.height:
            passed_over["turn that another conversation shares"] += turns.height - once.height
        turns = once
    twice = turns.select(_PLACE).is_duplicated()
    if not twice.any():
        return turns
    of_both = turns.filter(twice)
    second = of_both.row(0, named=True)
    place = [pl.col(name).eq_missing(second[name]) for name in _PLACE]
    rows = of_both.filter(place)["row"].to_list()
    turn = (
        f"turn {second['turn']}, arm '{second['arm']}', path '{second['path']}', "
        f"epoch {second['epoch']} of question '{second['question']}'"
    )
    again = f"repeats {turn}, as in row {rows[0]}"
    problem = f"contains {turn} twice" if rows[0] == rows[1] else again
    remedy = (
        "Map epoch, arm or technique to distinguish the conversations, "
        "or set fold = true if they share turns"
    )
    raise InputError(problem, file, rows[1], remedy=remedy)


def _digest(paths: Sequence[Path], mapping: Mapping, questions: QuestionSet | None) -> str:
    hasher = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                hasher.update(block)
    hasher.update(mapping.model_dump_json().encode())
    hasher.update((questions.fingerprint if questions else "").encode())
    return hasher.hexdigest()


def _with_run(turns: pl.DataFrame, digest: str) -> pl.DataFrame:
    """Return all columns of the turns table, with a run id for each study.

    The run is a digest of the files, the mapping, the questions and the study.
    """
    study = ["model", "dataset", "protocol"]
    studies = turns.select(study).unique(maintain_order=True)
    runs = [
        IMPORTED_PREFIX + digest_of("\n".join((digest, *study_key)), 12)
        for study_key in studies.rows()
    ]
    studies_with_run = studies.with_columns(pl.Series("run", runs, pl.String))
    turns = turns.drop("row").join(studies_with_run, on=study, how="left", maintain_order="left")
    constant_columns = {"protocol_version": pl.lit(VERSION), "shared": pl.lit(value=False)}
    absent = [
        constant_columns.get(name, pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in SCHEMA.items()
        if name not in turns.columns
    ]
    return turns.with_columns(absent).select(*SCHEMA)


def cores() -> int:
    """Return the number of processes that can read at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
