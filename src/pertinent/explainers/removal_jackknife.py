"""How much scores depend on what a random removal drew: a jackknife over groups of draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats
from pertinent.intervals import student_factor


@dataclass(frozen=True)
class Draws:
    r"""The groups of draws that are left out in turn, and what the scores without them tell.

    An explainer is given the answers without group g of :math:`n_g` of the n draws as more columns, so its
    scores come again for each, :math:`\phi_{-g}` beside :math:`\phi`. Then the draws' part of the variance
    of :math:`\phi` is

    .. math:: D = \frac{1}{G - 1} \sum_g \frac{(n - n_g)^2}{n\,n_g} (\phi_{-g} - \phi)^2 .

    Attributes
    ----------
    sizes
        The draws in each group; no groups where nothing is drawn.
    undrawn
        The share of all that could be drawn that is not: of a finite population drawn completely, nothing
        is left to chance.
    """

    sizes: tuple[int, ...] = ()
    undrawn: float = 1.0

    def apart(self, rows: Floats) -> tuple[Floats, Floats]:
        """Rows (columns, …) of all draws, and those without each group (groups, columns, …)."""
        parts = rows.reshape(1 + len(self.sizes), -1, *rows.shape[1:])
        return parts[0], parts[1:]

    def standard_errors(
        self, scores: Floats, standard_errors: Floats | None, enlarged: float = 1.0
    ) -> Floats:
        """The standard errors (columns, features) with the draws' part, from those of all columns.

        Errors that an explainer takes from the residuals of a sample contain what the draws add to these:
        without a group that part is larger in a known proportion, so it can be told, and is not counted
        twice. It is told for all features of a column together, since for one it is hardly known. Of errors
        that are `enlarged` because they come from few draws it is that much less.
        """
        sizes = np.array(self.sizes)[:, None, None]
        n = sum(self.sizes)
        mean, without = self.apart(scores)
        weight = (n - sizes) ** 2 / (n * sizes * (len(sizes) - 1))
        drawn = (weight * (without - mean) ** 2).sum(axis=0)
        if standard_errors is None:
            sampled = contained = np.zeros_like(drawn)
        else:
            sampled, larger = self.apart(standard_errors**2)
            contained = ((n - sizes) / n * (larger - sampled)).sum(axis=0) / enlarged**2
        part, whole = contained.sum(axis=1, keepdims=True), drawn.sum(axis=1, keepdims=True)
        share = np.clip(np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0), 0, 1)
        added = student_factor(len(sizes) - 1) ** 2 * self.undrawn * (1 - share) * drawn
        return np.asarray(np.sqrt(sampled + added))
