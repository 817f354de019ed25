"""Rendering of result tables as text and as Vega-Lite figures."""
