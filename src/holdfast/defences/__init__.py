"""Defences: what wraps the model under test."""
