"""Stick-or-Switch: options of a question are offered one after another (Guo et al., 2026)."""
