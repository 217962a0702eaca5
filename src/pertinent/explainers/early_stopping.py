"""When to stop asking: the order of the strongest features is settled."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pertinent.array_types import Floats
from pertinent.settings import Count, ProperShare, Settings


@dataclass(frozen=True)
class Stable(Settings):
    """Stop when the first `top` features by magnitude are in the right order, with this confidence.

    Each of them must be told from all that come after it. What may go wrong is divided by the number of
    these comparisons and by the number of times that one looks. The errors of two scores are added, since
    one may be too large because the other is too small.
    """

    top: Count = 5
    confidence: ProperShare = 0.95

    def rounds(self, first: int, most: int, step: int = 1) -> list[int]:
        """How much has been asked for at each look: half as much again each time, in steps, at last `most`.

        >>> Stable().rounds(10, 40, step=2)
        [10, 14, 20, 30, 40]
        """
        sizes = []
        size = first
        while size < most:
            sizes.append(size)
            size += step * max(1, size // (2 * step))
        return [*sizes, most]

    def settled(self, scores: Floats, standard_errors: Floats | None, looks: int) -> bool:
        """Whether the order is settled, at one of so many looks; without any error it is."""
        if standard_errors is None or not standard_errors.any():
            return True
        size = np.abs(scores)
        top = min(self.top, len(size) - 1)
        z = NormalDist().inv_cdf(1 - (1 - self.confidence) / (max(1, top) * looks))
        order = np.argsort(-size, kind="stable")
        low, high = (size - z * standard_errors)[order], (size + z * standard_errors)[order]
        highest_after = np.maximum.accumulate(high[::-1])[::-1][1:]
        return bool((low[:top] > highest_after[:top]).all())
