"""Report: what was measured as pages, sentences and files that people and CI read."""

from .comparison_page import comparison_page, render_comparison
from .design_page import designs_text, designs_told
from .first_screen import headline
from .gate_summary import (
    gate_counts,
    gate_markdown,
    gate_rows,
    gate_sentence,
    junit_xml,
    looked_markdown,
    looked_rows,
    looked_sentence,
)
from .leaderboard import LeaderboardSource, is_leaderboard, leaderboard_pages
from .page import Report, report_figures, report_page

__all__ = [
    "LeaderboardSource",
    "Report",
    "comparison_page",
    "designs_text",
    "designs_told",
    "gate_counts",
    "gate_markdown",
    "gate_rows",
    "gate_sentence",
    "headline",
    "is_leaderboard",
    "junit_xml",
    "leaderboard_pages",
    "looked_markdown",
    "looked_rows",
    "looked_sentence",
    "render_comparison",
    "report_figures",
    "report_page",
]
