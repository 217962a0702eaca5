"""Early stopping: the rule that ends sampling once the order of the strongest features is settled."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.settings import Count, ProperShare, Settings, check_settings
from pertinent.config.settings_parser import read_settings, split_settings
from pertinent.errors import unknown

STABLE = "stable"


@dataclass(frozen=True)
class EarlyStopping(Settings):
    """A rule that stops once the order of the `top` strongest features is right with this `confidence`.

    The confidence interval of each such feature must lie above the intervals of all features ranked below it.
    The error probability is divided by the number of these comparisons and by the number of rounds
    (Bonferroni). The standard errors of two scores are added, not their squares, because the scores may be
    negatively correlated.

    Parameters
    ----------
    top
        Number of features whose order must be settled.
    confidence
        Probability that the order is right.
    """

    top: Count = 5
    confidence: ProperShare = 0.95

    @classmethod
    def from_setting(cls, setting: str | EarlyStopping | None) -> EarlyStopping | None:
        """Return the rule for ``"stable"``, optionally with settings; an instance is returned unchanged.

        >>> EarlyStopping.from_setting("stable:top=3,confidence=0.9")
        EarlyStopping(top=3, confidence=0.9)
        """
        if not isinstance(setting, str):
            return setting
        name, settings = split_settings(setting, "rule for early stopping")
        if name != STABLE:
            raise unknown("rule for early stopping", name, [STABLE])
        check_settings(name, cls, settings)
        return cls(**read_settings(cls, settings))

    def settled(self, scores: Floats, standard_errors: Floats | None, looks: int) -> bool:
        """Return whether the order is settled, tested after each of `looks` rounds; True without errors."""
        if standard_errors is None or not standard_errors.any():
            return True
        magnitude = np.abs(scores)
        top = min(self.top, len(magnitude) - 1)
        z = NormalDist().inv_cdf(1 - (1 - self.confidence) / (max(1, top) * looks))
        order = np.argsort(-magnitude, kind="stable")
        low, high = (magnitude - z * standard_errors)[order], (magnitude + z * standard_errors)[order]
        highest_after = np.maximum.accumulate(high[::-1])[::-1][1:]
        return bool((low[:top] > highest_after[:top]).all())


def growing_sizes(first: int, most: int, step: int = 1) -> list[int]:
    """Return the total sample size after each round: 1.5 times the previous one, in multiples of `step`.

    >>> growing_sizes(10, 40, step=2)
    [10, 14, 20, 30, 40]
    """
    sizes = []
    size = first
    while size < most:
        sizes.append(size)
        size += step * max(1, size // (2 * step))
    return [*sizes, most]
