"""Explainers based on robustness to attacks."""
