"""Report: what was measured as pages, sentences and files that people and CI read."""
