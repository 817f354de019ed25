"""Running: studies are planned, prepared, run, resumed, split into shards, and rescored."""
