"""Helpers for running torch models: devices, batches of tokens, gradients and attention."""
