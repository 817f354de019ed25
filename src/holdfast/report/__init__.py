"""Report: measures as people read them."""

from .summary import summary_table
from .tables import FORMATS, render

__all__ = ["FORMATS", "render", "summary_table"]
