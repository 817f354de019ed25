"""Report: measures as people read them."""

from .layouts import LAYOUTS, render
from .studies import is_simulated
from .summary import summary_table
from .tables import FORMATS

__all__ = ["FORMATS", "LAYOUTS", "is_simulated", "render", "summary_table"]
