"""Generated files for a study: contexts, wrong options and labels, as rows of JSONL."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, read_eval_log_samples
from inspect_ai.model import Model

from holdfast.dialogue.budget import Budget
from holdfast.errors import (
    InputError,
    InterruptedRunError,
    counted,
    did_you_mean,
    unwritable,
)
from holdfast.files import named_path, unlinked, whole_file
from holdfast.protocols.protocol import Study
from holdfast.protocols.scoring import PREPARED_KEY
from holdfast.questions.loading import Problem, QuestionSet
from holdfast.questions.question import LABELS
from holdfast.questions.rows import read_rows
from holdfast.results.labels import label_rows, put_labels
from holdfast.results.runs import is_simulated
from holdfast.simulation import is_simulated_row

from .evaluation import Evaluation
from .progress import Progress
from .studies import OPTION_NAMES

_SETTINGS = ("temperature", "seed", "max_tokens", "sentences", "replace")


@dataclass(frozen=True)
class GeneratedFile:
    """Result of a generation.

    Attributes:
        name: name of the preparation.
        file: file of the rows, JSONL.
        rows: number of rows.
        missing: number of questions without a row, by kind and reason.
        budget: spending of this command.
        unfinished: description of what remains to resume, empty if nothing does.
    """

    name: str
    file: str
    rows: int
    missing: Counter[str]
    budget: Budget
    unfinished: str

    def as_json(self, *, with_spending: bool = True) -> dict[str, Any]:
        """Return the result as JSON data, without the spending if a run counts it."""
        fields = {
            "file": self.file,
            "rows": self.rows,
            "missing": dict(self.missing),
            "complete": not self.unfinished,
            "unfinished": self.unfinished,
        }
        if not with_spending:
            return fields
        return fields | {
            "calls": self.budget.calls,
            "cached": self.budget.cached,
            "tokens": self.budget.tokens,
            "cost": self.budget.cost,
        }

    def lines(self) -> list[str]:
        """Return the result as lines for people."""
        return [
            *(f"{kind}: missing for {counted(n, 'question')}" for kind, n in self.missing.items()),
            f"{OPTION_NAMES[self.name].capitalize()}: {self.file} ({counted(self.rows, 'row')})",
        ]


@dataclass(frozen=True)
class FileGeneration:
    """Generation of a file, which can be resumed from its logs."""

    study: Study
    model: Model
    file: str
    log_dir: str
    limit: int | None = None
    budget: Budget = field(default_factory=Budget)
    generation: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)

    def run(self) -> GeneratedFile:
        """Generate or resume; the file is replaced atomically and keeps its earlier rows."""
        name = self.study.name
        _writable(self.file)
        earlier_rows = _load_rows(self.file)
        _refuse_other_origin(
            self.file, earlier_rows, {"model": str(self.model), **self._settings()}
        )
        self.progress.say(f"Making {OPTION_NAMES[name]} with {self.model}")
        evaluation = Evaluation(
            [self.study],
            [self.model],
            self.log_dir,
            kind="preparation",
            limit=self.limit,
            generation=self.generation,
            budget=self.budget,
            progress=self.progress,
        )
        outcome = evaluation.run()
        rows = list(_rows(outcome.logs))
        new = {_key(row) for row in rows}
        rows_retained = [row for row in earlier_rows if _key(row) not in new]
        with whole_file(self.file) as file:
            for row in [*rows, *rows_retained]:
                file.write(f"{json.dumps(row, ensure_ascii=False)}\n".encode())
        if outcome.interrupted:
            raise InterruptedRunError
        row_count = len(rows) + len(rows_retained)
        return GeneratedFile(
            name, self.file, row_count, _count_missing(rows), self.budget, outcome.unfinished
        )

    def _settings(self) -> dict[str, Any]:
        """Return the settings that each row records."""
        config = self.study.config.model_dump(exclude_none=True)
        settings = self.study.arguments()
        return _select_settings(config | dict(self.generation) | settings)


def _select_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: config[name] for name in _SETTINGS if config.get(name) is not None}


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["question"], row.get("content_hash"), row.get("length")


def _refuse_other_origin(
    file: str, earlier_rows: Sequence[Mapping[str, Any]], origin: Mapping[str, Any]
) -> None:
    """Raise an error for rows from another model or other settings, which would be overwritten."""
    for row in earlier_rows:
        was = {"model": row.get("model"), **(row.get("settings") or {})}
        for name in (*was, *origin):
            if was.get(name) != origin.get(name):
                raise InputError(
                    "contains rows generated with other settings, which would be overwritten: "
                    f"{name} was {was.get(name)!r}, now it is {origin.get(name)!r}",
                    file,
                    field=name,
                    remedy="Give another -o FILE and another --log-dir, or the earlier settings",
                )


def _load_rows(file: str) -> list[dict[str, Any]]:
    """Load the existing rows of the file."""
    if not Path(file).is_file() or not Path(file).stat().st_size:
        return []
    rows = []
    for number, row in read_rows(Path(file)):
        if isinstance(row, str) or "question" not in row:
            raise InputError(
                "is a file of another kind", file, number, remedy="Give another -o FILE"
            )
        rows.append(row)
    return rows


def _rows(logs: Sequence[EvalLog]) -> Iterator[dict[str, Any]]:
    """Yield the generated row of each question, with model and settings."""
    for log in logs:
        config = log.eval.model_generate_config.model_dump(exclude_none=True)
        config |= log.plan.config.model_dump(exclude_none=True) | log.eval.task_args
        origin = {
            "model": log.eval.model,
            "settings": _select_settings(config),
            "template_version": int(log.eval.task_version),
        }
        unread = {"messages", "output", "events", "attachments", "timelines"}
        for sample in read_eval_log_samples(
            log.location, all_samples_required=False, exclude_fields=unread
        ):
            for row in sample.store.get(PREPARED_KEY, []):
                yield {**row, **origin}


def _count_missing(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in rows:
        missing = row.get("missing")
        if isinstance(missing, Mapping):
            at = f" of {row['length']} sentences" if row.get("length") else ""
            counts.update(f"{kind}{at} ({reason})" for kind, reason in missing.items())
        elif missing:
            counts[str(missing)] += 1
    return counts


def _writable(file: str) -> None:
    unlinked(file, "-o FILE")
    if os.path.isdir(file):
        raise InputError("cannot be written (Is a directory)", file, remedy="Give another -o FILE")
    if Path(file).suffix.lower() not in (".jsonl", ".ndjson"):
        raise InputError("does not end in .jsonl", file, remedy="Give -o a name in .jsonl")
    if not os.path.isfile(file):
        try:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).lstat()  # raises for an invalid file name
        except FileNotFoundError:
            return
        except OSError as error:
            raise unwritable(file, error, "-o FILE") from error


_IDS = ("question", "id", "index")


Row = Mapping[str, str]


def read_labels(
    source: str, questions: Sequence[QuestionSet], tested_models: Sequence[str]
) -> list[Row]:
    """Read the labels of these questions, for results of these models.

    Raises:
        InputError: the file cannot be read, a row is invalid, or no row matches the questions.
    """
    labels, problems = check_labels(source, questions, tested_models)
    if problems:
        raise problems[0].refused(source)
    if not labels:
        raise InputError(
            "has no label for any question of this study",
            source,
            field="question",
            remedy="Give the labels of this question set",
        )
    return labels


def check_labels(
    source: str, questions: Sequence[QuestionSet] = (), tested_models: Sequence[str] = ()
) -> tuple[list[Row], list[Problem]]:
    """Return the labels of these questions, or of all if none are given, and all invalid rows.

    Raises:
        InputError: the file as a whole cannot be read.
    """
    real = next((model for model in tested_models if not is_simulated(model)), None)
    rows: list[Row] = []
    problems: list[Problem] = []
    for number, row in read_rows(named_path(source)):
        if isinstance(row, str):
            problems.append(Problem(number, None, row))
            continue
        column = next((name for name in _IDS if name in row), None)
        if column is None:
            problems.append(Problem(number, "question", "is missing", "Name the question's id"))
            continue
        if not any(name in row for name in (*LABELS, "missing")):
            near = did_you_mean(str(list(row)[-1]), LABELS)
            problems.append(Problem(number, LABELS[1], "has no label", near))
            continue
        labels = {name: str(row[name]) for name in LABELS if row.get(name) not in (None, "")}
        if labels and not questions:
            rows.append({"question": str(row[column]), **labels})
        for question_set in questions:
            question = question_set.named(row[column])
            digest = row.get("content_hash")
            if not question or not labels or digest not in (None, "", question.content_hash):
                continue
            if real and is_simulated_row(row):
                problems.append(
                    Problem(
                        number,
                        None,
                        f"comes from a simulated classifier, and '{real}' is a real model",
                        "Generate labels with 'holdfast generate labels --model MODEL'",
                    )
                )
                continue
            rows.append({"dataset": question_set.name, "question": question.id, **labels})
    return rows, problems


def keep_labels(rows: Sequence[Row], log_dir: str) -> None:
    """Write labels into a log directory for all tables, in addition to existing labels."""
    if not rows:
        return
    labels_by_question: dict[tuple[str, str], Row] = {
        _question_key(row): row for row in label_rows(log_dir) or []
    }
    for row in rows:
        labels_by_question[_question_key(row)] = {
            **labels_by_question.get(_question_key(row), {}),
            **row,
        }
    put_labels(labels_by_question.values(), log_dir)


def _question_key(row: Row) -> tuple[str, str]:
    return row["dataset"], row["question"]
