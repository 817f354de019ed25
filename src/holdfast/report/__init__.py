"""Report: measures as people read and see them."""

from .attack_story import attack_story, attack_view
from .attack_summary import attack_sentences, attack_table, human_line
from .comparison_layout import render_comparison
from .comparison_page import comparison_page
from .conviction_summary import conviction_summary, flexibility_sentence
from .figures import FIGURE_FORMATS, FIGURES, check_drawable, draw
from .gate_summary import gate_counts, gate_markdown, gate_rows, gate_sentence
from .junit import junit_xml
from .layouts import LAYOUTS, arranged, render
from .page import Report, headline, report_figures, report_page
from .summary import summary_table
from .tables import FORMATS
from .terminal import fitted, terminal

__all__ = [
    "FIGURES",
    "FIGURE_FORMATS",
    "FORMATS",
    "LAYOUTS",
    "Report",
    "arranged",
    "attack_sentences",
    "attack_story",
    "attack_table",
    "attack_view",
    "check_drawable",
    "comparison_page",
    "conviction_summary",
    "draw",
    "fitted",
    "flexibility_sentence",
    "gate_counts",
    "gate_markdown",
    "gate_rows",
    "gate_sentence",
    "headline",
    "human_line",
    "junit_xml",
    "render",
    "render_comparison",
    "report_figures",
    "report_page",
    "summary_table",
    "terminal",
]
