"""Transcripts: import of conversations as turns tables, and export of turns tables."""
