"""Challenges: what is put to the model. The catalogue, the contexts and their wording."""
