"""Results: the turns table and its measures, computed from logs and files alone."""
