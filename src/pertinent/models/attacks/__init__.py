"""Attacks: the smallest changes of an input that change a decision."""
