"""Defences: wrappers of the model under test."""
