"""Experiments of Hase et al. 2021."""
