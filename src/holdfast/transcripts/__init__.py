"""Transcripts: turns tables out of conversations made elsewhere, and conversations out of them."""
