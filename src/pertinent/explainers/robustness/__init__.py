"""Explainers by robustness: features are relevant if attacks need them (Hsieh et al. 2021)."""
