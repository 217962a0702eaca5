"""The numbers of an image or a table row, for methods that need more than the number of features."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.array_types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Numbers:
    """The values of an image (channels, height, width) or a table row.

    Attributes
    ----------
    values
        What they are.
    absent
        What they are where there is nothing: the removal's value if it fills in a constant; else black for
        pixels, and for a column the background's mean, or 0 without one.
    owners
        The feature that each belongs to.
    """

    values: Floats
    absent: Floats
    owners: Ints
