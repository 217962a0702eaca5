"""Experiments of MAGNEx."""
