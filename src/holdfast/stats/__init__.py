"""Statistics by numpy alone: intervals, p-values, agreement; a question is the unit."""
