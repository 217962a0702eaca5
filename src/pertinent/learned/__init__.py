"""Explainers that are fitted to a model first, and then answer in one pass of a network."""
