"""Inputs and their features: texts, images and table rows."""
