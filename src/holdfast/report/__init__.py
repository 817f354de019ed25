"""Report: measures as people read and see them."""

from .attack_story import attack_story, attack_view
from .attack_summary import attack_sentences, attack_table, human_line
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
    "attack_sentences",
    "attack_story",
    "attack_table",
    "attack_view",
    "check_drawable",
    "conviction_summary",
    "draw",
    "flexibility_sentence",
    "human_line",
    "is_simulated",
    "render",
    "summary_table",
]
