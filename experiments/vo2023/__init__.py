"""Experiments of Vo et al. 2023."""
