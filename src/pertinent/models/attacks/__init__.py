"""Attacks: the smallest changes of an input that change the model's decision."""
