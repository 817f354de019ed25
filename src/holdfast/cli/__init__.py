"""The command line: one module for each command, thin."""

from .app import main

__all__ = ["main"]
