"""Removals: what an input looks like without some of its features. One file per removal."""

from pertinent.removal.base import Removal, removals

__all__ = ["Removal", "removals"]
