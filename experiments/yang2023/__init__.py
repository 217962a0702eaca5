"""Experiments of Yang et al. 2023."""
