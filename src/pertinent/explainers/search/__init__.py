"""Searches for the best set of features at each sparsity."""
