"""Report: measures as people read and see them."""

from .attack_story import attack_story, attack_view
from .conviction_summary import conviction_summary, flexibility_sentence
from .figures import FIGURE_FORMATS, FIGURES, check_drawable, draw
from .layouts import LAYOUTS, render
from .studies import is_simulated
from .summary import summary_table
from .tables import FORMATS

__all__ = [
    "FIGURES",
    "FIGURE_FORMATS",
    "FORMATS",
    "LAYOUTS",
    "attack_story",
    "attack_view",
    "check_drawable",
    "conviction_summary",
    "draw",
    "flexibility_sentence",
    "is_simulated",
    "render",
    "summary_table",
]
