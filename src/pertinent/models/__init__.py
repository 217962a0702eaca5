"""Models that can be explained: transformers, torch modules, estimators and functions."""
