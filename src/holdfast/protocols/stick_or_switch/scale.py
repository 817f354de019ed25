"""Scale: conviction, abstention and flexibility by model size."""

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

import polars as pl

from holdfast.errors import InputError, did_you_mean
from holdfast.results.declaration import ByStudy, Number, Share, Table
from holdfast.results.first_answers import STUDY
from holdfast.results.grid import Grid, Row, one_line
from holdfast.results.inference import looked_up

from . import charts
from .convictions import (
    ABSTENTION,
    CONVICTION,
    SINGLE_SHOT,
    SINGLE_SHOT_ABSTAIN,
    survival,
    tax,
    with_raw,
)
from .flexibility import flexibility

_ENDS = ("low", "high")
_INTERVAL_COLUMNS = ("conviction", "tax", "abstention", "abstention_tax", "correct", "incorrect")
"""Figures with a 95% interval, by the prefix of its column names."""
SCALE_COLUMNS = (
    "model", "family", "parameters", "dataset", "single_shot", "isolated", "conviction", "tax",
    "raw_tax", "single_shot_abstention", "isolated_abstention", "abstention", "abstention_tax",
    "raw_abstention_tax", "correct_rate", "incorrect_rate",
    *(f"{of}_{end}" for of in _INTERVAL_COLUMNS for end in _ENDS), "run",
)  # fmt: skip

COLUMNS = ("model", "family", "parameters", "aliases")
"""Columns of a file of sizes; ``aliases`` is optional."""

_MODELS_FILE = "models.csv"
_TELL_APART = "Remove one, or distinguish them by more of their ids, as in owner/name"

_REMARK = re.compile(r"\s*\[[^][]*\]$")
_SERVING = re.compile(
    r"[-_:. ](?:instruct|it|latest|free|qat|awq|gptq|gguf|fp8|fp16|bf16|int4|int8|[48]bit"
    r"|q\d[0-9a-z_]*|\d{4}-\d{2}-\d{2})(?![^\W_])"
)
_BETWEEN = re.compile(r"[^\w.]+|_+|(?<=[^\W\d_])(?=\d)")

_STUDY = tuple(name for name in STUDY if name != "protocol")
_TAXES = {
    (CONVICTION, SINGLE_SHOT): {
        "single_shot": "single_shot", "isolated": "isolated", "tax": "tax",
        "low": "tax_low", "high": "tax_high", "raw_tax": "raw_tax",
    },
    (ABSTENTION, SINGLE_SHOT): {
        "isolated": "isolated_abstention", "tax": "abstention_tax",
        "low": "abstention_tax_low", "high": "abstention_tax_high",
        "raw_tax": "raw_abstention_tax",
    },
    (ABSTENTION, SINGLE_SHOT_ABSTAIN): {"single_shot": "single_shot_abstention"},
}  # fmt: skip
"""Columns from ``tax`` with their names here, by behaviour and baseline."""


@dataclass(frozen=True)
class Size:
    """Size of a model.

    Attributes:
        model: name in the file of sizes.
        family: models that differ mainly in size.
        billions: nominal number of parameters in billions, None if undisclosed.
    """

    model: str
    family: str
    billions: float | None


def scale(turns: pl.DataFrame, models: str | None = None) -> pl.DataFrame:
    """Compute the measures of Stick-or-Switch by parameter count (Stick-or-Switch, Figures 2 to 6).

    All figures and 95% intervals come from other tables. Figure 2 has single-shot and isolated
    accuracy, Figure 4 the same for abstention.

    Args:
        turns: a turns table. Only the protocol ``stick-or-switch`` is used.
        models: a CSV file of sizes, added to the bundled ones (``sizes``).

    Returns:
        One row for each model and data set. Families are in the order of their first turn, and
        models within a family by size, with unknown sizes last.

    Raises:
        InputError: the file of sizes cannot be used.
    """
    known_sizes = sizes(models)
    survival_rows, taxes = survival(turns), tax(turns)
    last = survival_rows.group_by(*_STUDY, "arm", maintain_order=True).agg(
        pl.col("survival", *_ENDS).last()
    )
    rows = survival_rows.select(_STUDY).unique(maintain_order=True)
    for arm, name in (("positive", "conviction"), ("negative", "abstention")):
        last_rows = last.filter(pl.col("arm") == arm).select(
            *_STUDY,
            pl.col("survival").alias(name),
            *(pl.col(end).alias(f"{name}_{end}") for end in _ENDS),
        )
        rows = looked_up(rows, last_rows, _STUDY)
    for (behaviour, against), names in _TAXES.items():
        tax_rows = taxes.filter(pl.col("behaviour") == behaviour, pl.col("against") == against)
        tax_columns = tax_rows.select(*_STUDY, *(pl.col(a).alias(b) for a, b in names.items()))
        rows = looked_up(rows, tax_columns, _STUDY)
    switches = flexibility(turns).select(
        *_STUDY, "correct_rate", "incorrect_rate", "correct_low", "correct_high",
        "incorrect_low", "incorrect_high",
    )  # fmt: skip
    return with_sizes(looked_up(rows, switches, _STUDY), known_sizes).select(SCALE_COLUMNS)


def with_sizes(rows: pl.DataFrame, known_sizes: Mapping[str, Size]) -> pl.DataFrame:
    """Add ``family`` and ``parameters`` to the rows, sorted by both."""
    model_sizes = [size_of(model, known_sizes) for model in rows["model"]]
    rows = rows.with_columns(
        pl.Series("family", [size.family if size else None for size in model_sizes], pl.String),
        pl.Series(
            "parameters", [size.billions if size else None for size in model_sizes], pl.Float64
        ),
    ).with_row_index("_row")
    place = pl.when(pl.col("family").is_not_null()).then(pl.col("_row").min().over("family"))
    return rows.sort(place, "parameters", "_row", nulls_last=True).drop("_row")


def sizes(path: str | None = None) -> Mapping[str, Size]:
    """Return the sizes of the models of Stick-or-Switch (section 4.2), and of the user's.

    A file has the columns ``COLUMNS``: name, family, parameters in billions (empty if unknown), and
    other names, separated by ``;``. A row with the name of a bundled model replaces that model,
    including its aliases.

    Args:
        path: the user's CSV file, UTF-8.

    Returns:
        Size by normalised name (``size_of``), including aliases, bundled ones first.

    Raises:
        InputError: the file cannot be read, lacks a column, or has an unknown one. Or a row has no
            name or family, a size that is not a positive number, or the name of another row.
    """
    if path is None:
        return _load_bundled()
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        remedy = "Give a CSV file of sizes"
        raise InputError(f"cannot be read ({reason})", path, remedy=remedy) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 (byte {error.start})"
        raise InputError(problem, path, remedy="Save it as UTF-8") from error
    return _replace_sizes(_load_bundled(), _parse_sizes(text, path))


def size_of(model: str, sizes: Mapping[str, Size]) -> Size | None:
    """Return the size of a model by its id at a provider.

    Case, punctuation, a remark in square brackets at the end, and words about the serving of a
    model (``-Instruct``, ``-it``, ``:latest``, a quantisation, a date) are ignored. A known name
    without a slash matches at every provider (``openai/gpt-4o``, ``azure/gpt-4o``). A name with a
    slash matches the end of an id and has priority. No other word is ignored: ``gpt-4o-mini`` and
    ``Qwen2.5-Coder-7B`` are different models.

    Args:
        model: id such as ``vllm/Qwen/Qwen2.5-7B-Instruct`` or ``ollama/qwen2.5:7b``, or a printed
            name.
        sizes: sizes from ``sizes``.

    Returns:
        The size for the longest known name at the end of the id, None without one.
    """
    parts = _normalise_name(model).split("/")
    names = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((sizes[name] for name in names if name in sizes), None)


@cache
def _load_bundled() -> dict[str, Size]:
    return _parse_sizes(files(__package__).joinpath(_MODELS_FILE).read_text("utf-8"), _MODELS_FILE)


def _replace_sizes(
    base_sizes: Mapping[str, Size], user_sizes: Mapping[str, Size]
) -> dict[str, Size]:
    replacements: dict[Size, Size] = {}
    for name, size in base_sizes.items():
        if name in user_sizes:
            replacements.setdefault(size, user_sizes[name])
    return {
        **{name: replacements.get(size, size) for name, size in base_sizes.items()},
        **user_sizes,
    }


def _normalise_name(name: str) -> str:
    """Normalise a name: folders in lower case, the last part as its words."""
    *folders, last = _REMARK.sub("", name.strip().casefold()).split("/")
    words = _BETWEEN.split(_SERVING.sub("", last))
    return "/".join([*folders, " ".join(word for word in words if word)])


def _parse_sizes(text: str, file: str) -> dict[str, Size]:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    sizes_by_name: dict[str, Size] = {}
    rows: dict[str, int] = {}
    number = 0
    try:
        header = [cell.strip() for cell in next(lines, [])]
        _check_columns(header, file)
        for number, cells in enumerate(lines, start=1):
            if any(cell.strip() for cell in cells):
                fault = partial(InputError, file=file, row=number)
                size, names = _size(header, cells, fault)
                for field, name in names:
                    key = _normalise_name(name)
                    if not key.rpartition("/")[2]:
                        problem = f"'{name}' ends in no letter or digit"
                        raise fault(problem, field=field, remedy="Name the model")
                    if rows.setdefault(key, number) != number:
                        problem = f"'{name}' is the same model as row {rows[key]}"
                        raise fault(problem, field=field, remedy=_TELL_APART)
                    sizes_by_name[key] = size
    except csv.Error as error:
        raise InputError(
            f"broken CSV ({error})", file, number + 1, remedy="Check the quotes"
        ) from error
    return sizes_by_name


def _check_columns(header: list[str], file: str) -> None:
    for column in header:
        if column not in COLUMNS:
            remedy = did_you_mean(column, COLUMNS)
            raise InputError(f"unknown column '{column}'", file, remedy=remedy)
        if header.count(column) > 1:
            raise InputError("is named twice", file, field=column, remedy="Remove one of the two")
    for column in COLUMNS[:3]:
        if column not in header:
            remedy = "Start with model,family,parameters"
            raise InputError("is missing", file, field=column, remedy=remedy)


def _size(
    header: list[str], cells: list[str], fault: Callable[..., InputError]
) -> tuple[Size, list[tuple[str, str]]]:
    """Parse a row; return the size, and column and text of each name."""
    if len(cells) != len(header):
        problem = f"has {len(cells)} cells where the header has {len(header)}"
        raise fault(problem, remedy="Put a cell with a comma in quotes")
    row = {column: cell.strip() for column, cell in zip(header, cells, strict=True)}
    for field in ("model", "family"):
        if not row[field]:
            raise fault("is empty", field=field, remedy=f"Name the {field}")
    parameters_text = row["parameters"]
    try:
        billions = float(parameters_text) if parameters_text else None
    except ValueError:
        billions = math.nan
    if billions is not None and not (0 < billions < math.inf):
        remedy = "Write 7 for seven billion, 0.5 for half a billion; leave it empty if unknown"
        raise fault(
            f"'{parameters_text}' is not a number of billions", field="parameters", remedy=remedy
        )
    aliases = [alias.strip() for alias in row.get("aliases", "").split(";")]
    names = [("model", row["model"]), *(("aliases", alias) for alias in aliases if alias)]
    return Size(row["model"], row["family"], billions), names


def _family(row: Row) -> str:
    return one_line(row["family"] or "Unknown family")


_SAYS = {
    "family": "Family of the model. Null where it is not known.",
    "parameters": "Parameters of the model in billions. Null where they are not known.",
    "single_shot": "Single-shot accuracy, with all options at once, from `tax`.",
    "isolated": "Share that chose the right answer at turn 1, between two options, from `tax`.",
    "conviction": "S(T), the share that kept the right answer to the last turn, from `survival`.",
    "tax": "Tax of conviction with the choice at turn 1 as the baseline, from `tax`.",
    "raw_tax": "The paper's tax, S(T) less single-shot accuracy, from `tax`.",
    "single_shot_abstention": "Single-shot abstention, with all wrong options and None of the "
    "Above at once, from `tax`.",
    "isolated_abstention": "Share that abstained at turn 1, between one wrong option and None of "
    "the Above, from `tax`.",
    "abstention": "S(T), the share that kept an abstention to the last turn, from `survival`.",
    "abstention_tax": "Tax of abstention with the choice at turn 1 as the baseline, from `tax`.",
    "raw_abstention_tax": "The paper's tax of abstention, S(T) less single-shot accuracy, from "
    "`tax`.",
    "correct_rate": "Share of abstentions that switched to the right answer when it was offered, "
    "from `flexibility`.",
    "incorrect_rate": "Share of abstentions that switched to another wrong option when it was "
    "offered, from `flexibility`.",
}

_LAYOUT = ByStudy(
    (
        Number("Billions of parameters", "parameters", digits=None),
        Share("Single-shot %", "single_shot"),
        Share("Isolated %", "isolated"),
        Share("Conviction %", "conviction"),
        Share("Tax", "tax", signed=True),
        Share("Single-shot abstention %", "single_shot_abstention"),
        Share("Isolated abstention %", "isolated_abstention"),
        Share("Abstention %", "abstention"),
        Share("Abstention tax", "abstention_tax", signed=True),
        Share("Correct switches %", "correct_rate"),
        Share("Incorrect switches %", "incorrect_rate"),
    ),
    ("Conviction and abstention: end to end, S(T). Taxes: points to the choice at turn 1.",),
    _family,
)


def _layout(rows: Sequence[Row]) -> list[Grid] | None:
    raw = {"raw_tax": "Paper's tax", "raw_abstention_tax": "Paper's abstention tax"}
    return replace(_LAYOUT, columns=with_raw(_LAYOUT.columns, raw, rows))(rows)


SCALE = Table(
    "scale",
    scale,
    layout=_layout,
    title="Does size help?",
    lead="The measures by parameters of the model.",
    section="stick-or-switch",
    chart=charts.SCALE,
    takes=("models",),
    says=_SAYS,
    intervals={"correct": "correct_rate", "incorrect": "incorrect_rate"},
)
