"""Render: rows of a table of results as text, and as pictures drawn with Vega-Lite."""
