"""Heads of transformers, one file per kind."""
