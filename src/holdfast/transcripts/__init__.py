"""Transcripts: turns tables out of conversations made elsewhere, and conversations out of them."""

from .audit_sheet import Labels as Labels
from .audit_sheet import read_audit as read_audit
from .export import FORMATS as FORMATS
from .export import Export as Export
from .export import export as export
from .export import write_table as write_table
from .hub import write_hub as write_hub
from .importing import Imported as Imported
from .importing import cores as cores
from .importing import import_transcripts as import_transcripts
from .mapping import FIELDS as FIELDS
from .mapping import FieldSource as FieldSource
from .mapping import Mapping as Mapping
from .mapping import read_mapping as read_mapping
from .mapping import shipped as shipped
from .reimport import is_exported as is_exported
from .review import REVIEW_COLUMNS as REVIEW_COLUMNS
from .transcript_rows import SUFFIXES as SUFFIXES
