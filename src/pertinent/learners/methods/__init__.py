"""Learned methods, one per file."""
