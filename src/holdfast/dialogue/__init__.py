"""Dialogue: asking, branching, and sharing what was asked before."""
