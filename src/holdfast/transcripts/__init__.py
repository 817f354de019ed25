"""Transcripts: turns tables out of conversations made elsewhere, and conversations out of them."""

from .cells import plain_cell, plain_cells, safe_cells
from .export import FORMATS, Export, export, write_table
from .exported import is_exported
from .importing import Imported, cores, import_transcripts
from .mapping import Mapping, Source, TurnFields, read_mapping
from .records import SUFFIXES
from .review import REVIEW_COLUMNS

__all__ = [
    "FORMATS",
    "REVIEW_COLUMNS",
    "SUFFIXES",
    "Export",
    "Imported",
    "Mapping",
    "Source",
    "TurnFields",
    "cores",
    "export",
    "import_transcripts",
    "is_exported",
    "plain_cell",
    "plain_cells",
    "read_mapping",
    "safe_cells",
    "write_table",
]
