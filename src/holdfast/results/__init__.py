"""Results: the turns table and what is measured on it. Reads logs and files only."""

from .measures import BASELINE, FAMILY_AVERAGE, accuracy, errors, flips
from .turns import (
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

TABLES = {"accuracy": accuracy, "flips": flips}
"""Table by the name that ``holdfast table --table`` knows it by."""

__all__ = [
    "BASELINE",
    "FAMILY_AVERAGE",
    "FILE_NAME",
    "INPUTS",
    "SCHEMA",
    "TABLES",
    "accuracy",
    "errors",
    "flips",
    "is_ours",
    "logs_in",
    "run_id",
    "run_settings",
    "turns_table",
    "write_turns",
]
