"""Results: the turns table and what is measured on it. Reads logs and files only."""
