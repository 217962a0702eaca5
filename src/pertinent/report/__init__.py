"""Showing results: terminal, HTML, plots."""
