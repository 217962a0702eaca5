"""What "without" means: one file per removal."""

from pertinent.removal.base import Removal, removals

__all__ = ["Removal", "removals"]
