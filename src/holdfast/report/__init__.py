"""Report: measures as people read and see them."""

from holdfast.protocols.medfuzz.story import attack_story, attack_view
from holdfast.render import FIGURE_FORMATS, FIGURES, check_drawable, draw
from holdfast.render.tables import FORMATS, arranged, render

from .comparison import comparison_page, render_comparison
from .gate import gate_counts, gate_markdown, gate_rows, gate_sentence, junit_xml
from .page import Report, headline, report_figures, report_page
from .terminal import (
    attack_sentences,
    attack_table,
    conviction_summary,
    fitted,
    flexibility_sentence,
    human_line,
    summary_table,
    terminal,
)

__all__ = [
    "FIGURES",
    "FIGURE_FORMATS",
    "FORMATS",
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
