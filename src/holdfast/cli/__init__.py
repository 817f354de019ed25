"""Command line, with one thin module for each command."""
