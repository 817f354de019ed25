"""A study put to models: planned, prepared, run, gone on with, split into shards, read again."""
