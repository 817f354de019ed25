"""Dialogue: requests, branches of conversations, and shared generations."""
