"""Explainers by robustness to attacks."""
