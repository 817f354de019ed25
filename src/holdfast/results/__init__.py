"""Results: the turns table and what is measured on it. Reads logs and files only."""

from collections.abc import Callable, Mapping
from functools import partial

import polars as pl

from .accuracy import ACCURACY_COLUMNS, FAMILY_AVERAGE, accuracy
from .beliefs import BELIEFS_COLUMNS, beliefs
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
from .flexibility import FLEXIBILITY_COLUMNS, flexibility
from .flips import FLIPS_COLUMNS, flips
from .labels import LABELS_FILE
from .lengths import LENGTHS_COLUMNS, lengths
from .malfunctions import errors
from .positions import POSITIONS_COLUMNS, WINNERS_COLUMNS, positions, winners
from .published import PUBLISHED, beside_published, published
from .scale import SCALE_COLUMNS, scale
from .single_turn import SINGLE_TURN_COLUMNS, single_turn
from .sizes import Size, size_of, sizes
from .strata import strata, strata_columns
from .survival import SURVIVAL_COLUMNS, survival
from .tax import TAX_COLUMNS, tax
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
    "survival": survival,
    "tax": tax,
    "flexibility": flexibility,
    "positions": positions,
    "winners": winners,
    "beliefs": beliefs,
    "scale": scale,
}
"""Table by the name that ``holdfast table --table`` knows it by: a function of a turns table.

Tables of strata also take ``relative_to``, and ``scale`` takes ``models``, a file of sizes.
"""

__all__ = [
    "ACCURACY_COLUMNS",
    "ALL_MODELS",
    "BASELINE",
    "BELIEFS_COLUMNS",
    "COMPOUNDING_COLUMNS",
    "CUES_COLUMNS",
    "EXTENSIBLE",
    "FAMILY_AVERAGE",
    "FILE_NAME",
    "FLEXIBILITY_COLUMNS",
    "FLIPS_COLUMNS",
    "INPUTS",
    "LABELS_FILE",
    "LENGTHS_COLUMNS",
    "PARTS_COLUMNS",
    "POSITIONS_COLUMNS",
    "PUBLISHED",
    "SCALE_COLUMNS",
    "SCHEMA",
    "SINGLE_TURN_COLUMNS",
    "SUMMARY_COLUMNS",
    "SURVIVAL_COLUMNS",
    "TABLES",
    "TAX_COLUMNS",
    "WINNERS_COLUMNS",
    "Size",
    "accuracy",
    "beliefs",
    "beside_published",
    "compounding",
    "compounding_parts",
    "compounding_summary",
    "cues",
    "errors",
    "flexibility",
    "flips",
    "is_ours",
    "lengths",
    "logs_in",
    "positions",
    "published",
    "run_id",
    "run_settings",
    "scale",
    "single_turn",
    "size_of",
    "sizes",
    "strata",
    "strata_columns",
    "survival",
    "tax",
    "turns_table",
    "winners",
    "write_turns",
]
