"""Showing what was found: terminal, HTML, plots."""
