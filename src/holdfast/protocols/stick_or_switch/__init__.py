"""Stick-or-Switch: the options of a question one after another (Guo et al., 2026)."""
