"""Statistics with numpy alone: intervals, p-values and agreement, with questions as units."""
