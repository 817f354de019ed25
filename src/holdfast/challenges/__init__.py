"""Challenges: the catalogue, the contexts and their wordings."""
