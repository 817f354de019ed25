"""Reader of the records of a file of transcripts, by the rules of a mapping."""

import json
import re
from collections import Counter
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import InputError, did_you_mean
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import LABELS, Question, options_inside
from holdfast.reading.answers import extract_answer, first_character
from holdfast.reading.extraction import READING_VERSION, Extraction
from holdfast.results.readings import GIVEN_RULE, NON_RESPONSE

from .exchanges import UNANSWERED_READING, Exchange, exchanges_in
from .mapped import ABSTENTION, NUMBERS, Cells, at_path, json_or, options_in
from .mapping import LATER, Mapping, has_turn, of_turn

Row = dict[str, Any]
"""Turn by the names of the turns table, with ``row`` (1-based) and ``numbered``."""

STATUSES = ("parsed", "ambiguous", "refused", "none", "error")

PROTOCOL = "imported"
"""Protocol of turns whose mapping names none."""
CHALLENGE = "challenge"
"""Technique of later turns whose mapping names none."""
FAMILY = "imported"
"""Family of techniques whose mapping names none."""

_READERS = {"extracted": extract_answer, "first-character": first_character}
_UNREAD = Extraction(None, "none", GIVEN_RULE)
_TEXT_FIELDS = ("prompt", "reply", "answer", "status")
"""Fields of the text of a turn. Without any of them there is no turn."""
_LABELS = ("family", "axis", "depth")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_CHECK = "Check --questions, and 'join' in the mapping"
_CACHE_SIZE = 50_000
_SHORT = 2_000


@dataclass
class TranscriptReader:
    """Reader with its mapping, its questions and its counts so far.

    Attributes:
        mapping: columns by field.
        questions: questions to join to the rows, None if the rows are complete.
        file: name of the transcripts in error messages.
        dataset: data set of rows that name none.
        whole: whether every row has every column, as in a table.
        skip_bad: whether to skip a row that cannot be read.
        passed_over: counts of what was skipped, by kind.
        columns_seen: turn columns that some row has, for a file whose rows can lack some.
        columns_beyond: columns of turns after the last turn that the mapping reads.
    """

    mapping: Mapping
    questions: QuestionSet | None
    file: str
    dataset: str
    whole: bool
    skip_bad: bool = False
    passed_over: Counter[str] = field(default_factory=Counter)
    columns_seen: set[str] = field(default_factory=set)
    columns_beyond: set[str] = field(default_factory=set)
    _extraction_cache: dict[tuple[str, str], Extraction] = field(default_factory=dict)
    _options: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look up what every turn needs."""
        self._sources = self.mapping.sources(0), self.mapping.sources(1)
        mapped_fields = self._sources[0].keys() | self._sources[1].keys()
        self._numbers = [name for name in NUMBERS if name in mapped_fields]
        self._strata = [name for name in LABELS if self.questions or name in mapped_fields]
        question_list = self.questions.questions if self.questions else ()
        self._by_stem = (
            {_normalise_spaces(q.stem): q for q in question_list}
            if self.mapping.join == "stem"
            else {}
        )

    @property
    def turn_columns(self) -> list[tuple[str, str]]:
        """Fields of the text of a turn, with the columns and their placeholders."""
        return [
            (name, column)
            for name in _TEXT_FIELDS
            for source in (self._sources[1].get(name),)
            for column in (source.named if source else ())
            if has_turn(column)
        ]

    def kept(self, record: Map[str, Any]) -> bool:
        """Return whether the mapping reads a row, by its ``keep`` and ``drop``."""
        for column, values_wanted in (*self.mapping.keep.items(), *self.mapping.drop.items()):
            keeps = column in self.mapping.keep
            value, near = (record[column], None) if column in record else at_path(record, column)
            if near is not None and keeps:
                problem = "is missing, but the mapping selects rows by it"
                raise InputError(problem, self.file, None, column, did_you_mean(column, near))
            text = "" if value is None else str(value)
            text = text.lower() if isinstance(value, bool) else text
            if (text in values_wanted) is not keeps:
                return False
        return True

    def turns(self, number: int, record: Map[str, Any]) -> list[Row]:
        """Return the turns of a record."""
        markers = self.mapping.markers
        # every element of a list of turns has every column
        whole = self.whole or isinstance(self.mapping.turns, str)
        cells = Cells(self._sources, record, number, self.file, whole, markers)
        question = cells.question = self._question(cells)
        id = cells.text("question", 0)
        if id is None:
            raise cells.refused("question", 0, "no question is named", "Map the field 'question'")
        id = _CONTROL.sub(" ", id)  # a text can serve as id, and an id is one line
        cells.options = question.options if question else self._options_of(cells)
        cells.protocol = cells.text("protocol", 0) or PROTOCOL
        # the same for every turn
        common_fields = {
            "question": question.id if question else id,
            "dataset": cells.text("dataset", 0) or self.dataset,
            "protocol": cells.protocol,
            "model": cells.text("model", 0),
            "row": number,
            **_epoch(cells),
        }
        if common_fields["model"] is None:
            raise cells.refused("model", 0, "no model is named", "Map the field 'model'")
        steps: list[str] = []
        rows: list[Row] = []
        first: str | None = None
        for turn, exchange in enumerate(self._exchanges(cells)):
            row = {**common_fields, "turn": turn, "prompt": exchange.prompt}
            row |= self._place(cells, turn, steps)
            stated_extraction = self._find_stated_answer(cells, turn, exchange)
            extraction = stated_extraction or self._extract(cells, turn, exchange.reply or "")
            if self.mapping.without_gold:
                first = first if turn else extraction.answer
                if first is None:
                    self.passed_over["conversation with an unparsed first answer"] += 1
                    return []
                row["dataset"] = f"{common_fields['dataset']} (no gold)"
            row |= _letters(cells, turn, first)
            row["reply"] = exchange.reply or ""
            row |= {
                "answer": extraction.answer,
                "status": extraction.status,
                "rule": extraction.rule,
            }
            row["reading_version"] = None if stated_extraction else READING_VERSION
            row["answer_rules"] = None if stated_extraction else extraction.answer
            row["correct"] = extraction.answer is not None and extraction.answer == row["gold"]
            for label in self._strata:
                label_text = cells.text(label, turn)
                row[label] = label_text or (getattr(question, label) if question else None)
            for name in self._numbers:
                row[name] = cells.number(name, turn)
            rows.append(row)
        return rows

    def _question(self, cells: Cells) -> Question | None:
        if self.questions is None:
            return None
        name = cells.text("question", 0)
        question = None
        if name is not None and self.mapping.join == "id":
            question = self.questions.named(name)
        elif name is not None and self.mapping.join == "stem":
            question = self._by_stem.get(_normalise_spaces(name))
        elif name is not None and name.isascii() and name.isdecimal():
            place = int(name[:9]) - (self._sources[0]["question"].base or 0)
            question_list = self.questions.questions
            question = question_list[place] if 0 <= place < len(question_list) else None
        if question is None:
            n = len(self.questions.questions)
            excerpt = (name or "")[:80]
            problem = f"'{excerpt}' is not one of the {n} questions of {self.questions.name}"
            raise cells.refused("question", 0, problem, _CHECK)
        return question

    def _options_of(self, cells: Cells) -> dict[str, str] | None:
        option_columns, inside = self.mapping.options, self.mapping.options_inside
        value: Any
        if inside is not None:
            _, within = options_inside(str(cells.value(inside, "options_inside")))
            if not within:
                remedy = "Write the options as lines 'A. …' or as (A) …, or map 'options'"
                raise cells.error("contains no options", inside, remedy)
            return within
        if option_columns is None:
            return None
        if isinstance(option_columns, str):
            value = cells.value(option_columns, "options")
            if isinstance(value, str) and value in self._options:
                return self._options[value]
        else:
            value = [cells.value(column, "options") for column in option_columns]
            while value and value[-1] in (None, ""):  # fewer options than the widest question
                value.pop()
        options = options_in(value)
        if options is None:
            column = option_columns if isinstance(option_columns, str) else option_columns[0]
            remedy = "Give 2 to 26 options as an object, a list, or lines 'A. …'"
            raise cells.error("contains no options", column, remedy)
        if isinstance(value, str):
            if len(self._options) >= _CACHE_SIZE:
                self._options.clear()
            self._options[value] = options
        return options

    def _exchanges(self, cells: Cells) -> list[Exchange]:
        column = self.mapping.messages
        if column is not None:
            messages = cells.value(column, "messages")
            if isinstance(messages, str):
                try:
                    messages = json.loads(messages)
                except (ValueError, RecursionError):
                    messages = None
            if not isinstance(messages, list):
                remedy = "Give objects with role and content"
                raise cells.error("is not a list of messages", column, remedy)
            exchanges, passed_over = exchanges_in(
                messages, lambda problem, remedy: cells.error(problem, column, remedy)
            )
            self.passed_over.update(passed_over)
            return exchanges
        columns_by_turn = [self._columns(cells, turn) for turn in range(self._count(cells))]
        # empty turns at the end: the conversation was over. Elements of a list always count
        while (
            len(columns_by_turn) > 1
            and not columns_by_turn[-1][1]
            and not isinstance(self.mapping.turns, str)
        ):
            columns_by_turn.pop()
            self.passed_over["turn without reply, answer and prompt at the end of a row"] += 1
        return [exchange for exchange, _ in columns_by_turn]

    def _count(self, cells: Cells) -> int:
        """Return the number of turns of a row."""
        turns = self.mapping.turns
        if isinstance(turns, str):
            value = cells.value(turns, "turns")
            elements = json_or(value) if isinstance(value, str) else value
            if not isinstance(elements, list) or not (elements or self.mapping.after_first):
                remedy = "Name the column of a list, or give the number of turns"
                raise cells.error("is not a list of turns", turns, remedy)
            count = len(elements) + self.mapping.after_first
            self._check_lists(cells, turns, count)
            return count
        if turns is not None and not cells.whole:
            self._check_turns(cells, turns)
        return turns or 1

    def _check_lists(self, cells: Cells, turns: str, count: int) -> None:
        """Refuse a list longer than the list of turns: its last elements would be lost."""
        for name, column in self.turn_columns:
            list_column, mark, _ = column.partition("[{")
            listed_value = at_path(cells.record, list_column)[0] if mark else None
            if isinstance(listed_value, list) and len(listed_value) > count - (LATER in column):
                problem = (
                    f"has {len(listed_value)} elements, more than '{turns}', and the mapping reads "
                    f"'{name}' from it"
                )
                raise cells.error(
                    problem, list_column, "Correct the row, or name the longer list as 'turns'"
                )

    def _check_turns(self, cells: Cells, turns: int) -> None:
        """Record the turn columns of a row, and refuse a gap between them."""
        for name, column in self.turn_columns:
            gap = ""
            for turn in range(1 if LATER in column else 0, turns):
                turn_column = of_turn(column, turn)
                if (
                    turn_column not in cells.record
                    and at_path(cells.record, turn_column)[1] is not None
                ):
                    gap = gap or turn_column
                    continue
                self.columns_seen.add(turn_column)
                if gap:
                    problem = (
                        f"is missing, but '{turn_column}' exists and the mapping reads "
                        f"'{name}' from both"
                    )
                    raise cells.error(problem, gap, did_you_mean(gap, map(str, cells.record)))

    def _columns(self, cells: Cells, turn: int) -> tuple[Exchange, bool]:
        """Return prompt and reply of a turn, and whether the turn has content."""
        prompt, reply = (cells.text(name, turn, raw=True) for name in ("prompt", "reply"))
        has_content = any((reply, cells.text("answer", turn), cells.text("status", turn)))
        if prompt and not has_content and turn > 0:
            return Exchange(prompt, None, *UNANSWERED_READING), True
        return Exchange(prompt, reply), has_content

    def _place(self, cells: Cells, turn: int, steps: list[str]) -> Row:
        """Return arm, path, technique and its labels."""
        path, technique = cells.text("path", turn), cells.text("technique", turn)
        is_mapped = "path" in self._sources[turn > 0]
        if technique is not None and (">" in technique or "@" in technique) and not is_mapped:
            problem = f"'{technique}' contains '>' or '@', which separate the steps of a path"
            raise cells.refused("technique", turn, problem, "Rename it with 'values'")
        if not is_mapped:
            if turn > 0 or technique is not None:
                steps.append(technique or CHALLENGE)
            path = ">".join(steps)
        path = path or ""
        if path and technique is None:
            technique = path.rpartition(">")[2].partition("@")[0]
        arm = cells.text("arm", turn)
        if arm is None:
            arm = ("single-turn", "followup", "compound")[min(turn, 2)] if path else "baseline"
        labels = {name: (cells.text(name, turn) or "") if path else "" for name in _LABELS}
        if path and not labels["family"]:
            labels["family"] = FAMILY
        return {"arm": arm, "path": path, "technique": technique or "", **labels}

    def _find_stated_answer(self, cells: Cells, turn: int, exchange: Exchange) -> Extraction | None:
        """Return the answer that the file states, None to extract it from the reply."""
        markers, reply = self.mapping.markers, (exchange.reply or "").strip()
        if markers and (reply in markers or cells.text("answer", turn) in markers):
            return Extraction(None, "none", NON_RESPONSE)
        status = cells.text("status", turn)
        if status is not None and status not in STATUSES:
            remedy = did_you_mean(status, STATUSES)
            raise cells.refused("status", turn, f"unknown status '{status}'", remedy)
        if status is not None and status != "parsed":
            return Extraction(None, status, GIVEN_RULE)  # type: ignore[arg-type]
        if exchange.status:
            return Extraction(None, exchange.status, exchange.rule)  # type: ignore[arg-type]
        answer = cells.letter("answer", turn)
        if answer is not None:
            return Extraction(answer, "parsed", GIVEN_RULE)
        if status == "parsed":
            problem = "is empty, but the status is 'parsed'"
            raise cells.refused("answer", turn, problem, "Give the answer, or another status")
        unread = self.mapping.answers == "given"
        if unread or (not exchange.reply and "answer" in self._sources[turn > 0]):
            return _UNREAD
        return None

    def _extract(self, cells: Cells, turn: int, reply: str) -> Extraction:
        options, question = cells.options, cells.question
        if options is None:
            problem = "no options are known, so the answer cannot be extracted"
            remedy = "Map 'options' or 'answer', or give --questions"
            raise cells.refused("options", turn, problem, remedy)
        parse = _READERS[self.mapping.answers]
        if len(reply) > _SHORT:
            return parse(reply, options)
        # short replies, such as a letter, often repeat
        key = (question.id if question else "\n".join(options.values()), reply)
        if key not in self._extraction_cache:
            if len(self._extraction_cache) >= _CACHE_SIZE:
                self._extraction_cache.clear()
            self._extraction_cache[key] = parse(reply, options)
        return self._extraction_cache[key]


def _normalise_spaces(text: str) -> str:
    return " ".join(text.split())


def _letters(cells: Cells, turn: int, first: str | None) -> Row:
    """Return the letters of the options of a turn, with ``first`` in place of the gold."""
    gold, question = first or cells.letter("gold", turn), cells.question
    if question is not None and first is None:
        if gold is not None and gold not in (question.gold, ABSTENTION):
            subject = f"question '{question.id}' of {question.source}"
            problem = f"is '{gold}', but {subject} has '{question.gold}'"
            raise cells.refused("gold", turn, problem, _CHECK)
        gold = gold or question.gold
    if gold is None:
        remedy = "Map the field 'gold', give --questions, or set without_gold = true"
        raise cells.refused("gold", turn, "no right option is named", remedy)
    return {
        "gold": gold,
        "target": cells.letter("target", turn) or gold,
        "suggested": cells.letter("suggested", turn),
        "shown": cells.text("shown", turn),
    }


def _epoch(cells: Cells) -> Row:
    """Return the epoch, or the name that will be numbered."""
    source = cells.source("epoch")
    text = cells.text("epoch", 0)
    if source is not None and source.numbered:
        return {"epoch": 1, "numbered": text or ""}
    if text is not None and not (text.isascii() and text.isdecimal() and 0 < int(text[:9])):
        raise cells.refused(
            "epoch", 0, f"'{text[:40]}' is not an integer from 1", "Set numbered = true"
        )
    return {"epoch": int(text[:9]) if text else 1, "numbered": ""}
