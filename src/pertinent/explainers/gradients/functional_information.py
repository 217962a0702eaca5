"""Functional information: how much each feature adds to the entropy of the answer around the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Gradients, PathGradients
from pertinent.explainers.base import Finding, Steps, Task, explainers
from pertinent.explainers.gradients.gradient import GradientExplainer
from pertinent.explainers.gradients.integrated_gradients import LONGEST
from pertinent.settings import Count, Positive


@explainers.register("functional-information")
@dataclass(frozen=True)
class FunctionalInformation(GradientExplainer):
    r"""The part of the functional Fisher information that is each feature's.

    Around the input, z ~ N(x, Σ), the functional entropy of the target's probability p is at most half its
    functional Fisher information (a log-Sobolev inequality), which with a diagonal Σ is a sum over the
    numbers z_j, and so over features S, the embeddings of a token, the values of a patch or columns:

    .. math:: I_S = \mathbb{E}_z \left[ \frac{1}{p(z)}
        \sum_{j \in S} \sigma_j^2 \left( \frac{\partial p(z)}{\partial z_j} \right)^2 \right]

    Scores are never negative: they tell how much, not in which direction.

    Parameters
    ----------
    samples
        Draws of z, each at the price of a forward and a backward pass. Vo et al. 2023 try 50 to 200.
    noise
        σ_j as a share of the standard deviation of the text's word embeddings, of the image's values, or of
        the column in the background (of 1 without one).

    Note
    ----
    By default σ² is about 0.15 of the variance, as in the authors' code. That code adds the derivatives of a
    token's embedding or a pixel's channels before it squares them; here squares are added.
    A plain value may be negative, which has no functional entropy: its square is taken for p, so that the
    information is 4 times the mean of the squared derivatives.
    """

    paper = "Gat et al. 2022"
    meaning = "magnitude"
    summary = "the functional Fisher information of each feature, around the input"
    samples: Count = 100
    noise: Positive = 0.387

    def evaluations(self, n_features: int) -> int:
        """Two for each sample."""
        del n_features
        return 2 * self.samples

    def explain(self, task: Task) -> Steps:
        """Ask at random points around the input, and average."""
        parts = []
        for first in range(0, self.samples, LONGEST):
            draws = np.arange(first, min(first + LONGEST, self.samples))
            found = yield PathGradients(
                np.ones(len(draws)), task.target, times="itself", draws=draws, noise=self.noise
            )
            parts.append(_information(found, task))
        every = np.concatenate(parts)
        n = self.samples
        errors = every.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(task.n_features, np.nan)
        return Finding(scores=every.mean(axis=0), standard_errors=errors)


def _information(found: Gradients, task: Task) -> Floats:
    """The squared gradient along the noise by the value (draws, features); 0 where both are."""
    squares = found.gradients**2
    if task.output.kind == "value":
        return np.asarray(4 * squares)
    p = found.values[:, [task.target]]
    return np.divide(squares, p, out=np.zeros_like(squares), where=p > 0)
