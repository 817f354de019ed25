"""Pressure: a user who does not stop pushing a wrong answer."""
