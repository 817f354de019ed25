"""The report: one HTML page that needs nothing else."""

from .headline import headline
from .page import MOST_CONVERSATIONS, Report, report_page
from .parts import report_figures

__all__ = ["MOST_CONVERSATIONS", "Report", "headline", "report_figures", "report_page"]
