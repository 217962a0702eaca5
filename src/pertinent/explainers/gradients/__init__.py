"""Salience from the model's own gradients."""
