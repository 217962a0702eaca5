"""Shapley and Banzhaf values, exact and sampled."""
