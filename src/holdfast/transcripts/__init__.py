"""Transcripts: turns tables out of conversations made elsewhere, and conversations out of them."""

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
    "read_mapping",
    "write_table",
]
