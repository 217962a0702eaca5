"""Experiments of Hsieh et al. 2021."""
