"""Simple models fitted around one input."""
