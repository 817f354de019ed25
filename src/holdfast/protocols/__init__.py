"""Protocols: a folder for each system of the source papers, and what they share."""
