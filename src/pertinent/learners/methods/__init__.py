"""Learned methods, one file each."""
