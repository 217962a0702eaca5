"""Searches for the best feature set at each sparsity."""
