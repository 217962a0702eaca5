"""Gradients of torch modules and transformers."""
