"""What is explained: transformers, torch modules, estimators and functions."""
