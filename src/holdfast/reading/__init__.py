"""Extraction of answers, decisions and refusals from replies."""
