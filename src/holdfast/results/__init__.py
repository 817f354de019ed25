"""Results: the turns table and what is measured on it. Reads logs and files only."""

from collections.abc import Callable, Mapping
from functools import partial

import polars as pl

from .accuracy import ACCURACY_COLUMNS, FAMILY_AVERAGE, accuracy
from .compounding import (
    ALL_MODELS,
    COMPOUNDING_COLUMNS,
    PARTS_COLUMNS,
    SUMMARY_COLUMNS,
    compounding,
    compounding_parts,
    compounding_summary,
)
from .cues import CUES_COLUMNS, cues
from .first_answers import BASELINE
from .flips import FLIPS_COLUMNS, flips
from .labels import LABELS_FILE
from .lengths import LENGTHS_COLUMNS, lengths
from .malfunctions import errors
from .published import PUBLISHED, beside_published, published
from .single_turn import SINGLE_TURN_COLUMNS, single_turn
from .strata import strata, strata_columns
from .turns import (
    EXTENSIBLE,
    FILE_NAME,
    INPUTS,
    SCHEMA,
    is_ours,
    logs_in,
    run_id,
    run_settings,
    turns_table,
    write_turns,
)

TABLES: Mapping[str, Callable[..., pl.DataFrame]] = {
    "accuracy": accuracy,
    "flips": flips,
    "steps": partial(strata, by="step"),
    "systems": partial(strata, by="system"),
    "specialties": partial(strata, by="specialty"),
    "subjects": partial(strata, by="subject"),
    "lengths": lengths,
    "compounding": compounding,
    "compounding-parts": compounding_parts,
    "compounding-summary": compounding_summary,
    "single-turn": single_turn,
    "cues": cues,
}
"""Table by the name that ``holdfast table --table`` knows it by: a function of a turns table.

Tables of strata also take ``relative_to``.
"""

__all__ = [
    "ACCURACY_COLUMNS",
    "ALL_MODELS",
    "BASELINE",
    "COMPOUNDING_COLUMNS",
    "CUES_COLUMNS",
    "EXTENSIBLE",
    "FAMILY_AVERAGE",
    "FILE_NAME",
    "FLIPS_COLUMNS",
    "INPUTS",
    "LABELS_FILE",
    "LENGTHS_COLUMNS",
    "PARTS_COLUMNS",
    "PUBLISHED",
    "SCHEMA",
    "SINGLE_TURN_COLUMNS",
    "SUMMARY_COLUMNS",
    "TABLES",
    "accuracy",
    "beside_published",
    "compounding",
    "compounding_parts",
    "compounding_summary",
    "cues",
    "errors",
    "flips",
    "is_ours",
    "lengths",
    "logs_in",
    "published",
    "run_id",
    "run_settings",
    "single_turn",
    "strata",
    "strata_columns",
    "turns_table",
    "write_turns",
]
