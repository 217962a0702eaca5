"""Jackknife over a random removal's draws: how much of the scores' variance the draws cause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats
from pertinent.stats import student_factor


@dataclass(frozen=True)
class RemovalJackknife:
    r"""The share of the scores' variance that comes from a removal's random draws.

    A removal's draws are divided into groups. An explainer gets the answers without group g (:math:`n_g` of
    the n draws) as additional columns and returns additional scores :math:`\phi_{-g}` next to :math:`\phi`.
    The variance of :math:`\phi` due to the draws is then

    .. math:: D = \frac{1}{G - 1} \sum_g \frac{(n - n_g)^2}{n\,n_g} (\phi_{-g} - \phi)^2 .

    Attributes
    ----------
    sizes
        Number of draws in each group; empty if the removal is not random.
    undrawn
        Fraction of the distinct background rows that were not drawn (0: all were used, and D is 0).
    """

    sizes: tuple[int, ...] = ()
    undrawn: float = 1.0

    def split_columns(self, rows: Floats) -> tuple[Floats, Floats]:
        """Split rows into all draws (columns, …) and those without each group (groups, columns, …)."""
        parts = rows.reshape(1 + len(self.sizes), -1, *rows.shape[1:])
        return parts[0], parts[1:]

    def standard_errors(
        self, scores: Floats, standard_errors: Floats | None, inflation: float = 1.0
    ) -> Floats:
        """Return the standard errors (columns, features) including the variance due to the draws.

        `scores` and `standard_errors` cover all columns, including the additional ones. Standard errors that
        were estimated from residuals already contain some of the draws' variance. That share grows by a known
        proportion when a group is left out, so it can be estimated and is not added twice. The estimate pools
        all features of a column, because a single feature is too noisy. If the standard errors were inflated
        for few draws, the estimate is divided by the square of that factor.
        """
        sizes = np.array(self.sizes)[:, None, None]
        n = sum(self.sizes)
        mean, without = self.split_columns(scores)
        weight = (n - sizes) ** 2 / (n * sizes * (len(sizes) - 1))
        drawn = (weight * (without - mean) ** 2).sum(axis=0)
        if standard_errors is None:
            sampled = contained = np.zeros_like(drawn)
        else:
            sampled, larger = self.split_columns(standard_errors**2)
            contained = np.nan_to_num((n - sizes) / n * (larger - sampled)).sum(axis=0) / inflation**2
        part, whole = contained.sum(axis=1, keepdims=True), drawn.sum(axis=1, keepdims=True)
        share = np.clip(np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0), 0, 1)
        added = student_factor(len(sizes) - 1) ** 2 * self.undrawn * (1 - share) * drawn
        return np.asarray(np.sqrt(sampled + added))
