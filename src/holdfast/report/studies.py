"""The studies of a long table, for the figures, which are drawn from its rows."""

from holdfast.results.grid import Row, Studies, studies

__all__ = ["Row", "Studies", "studies"]
