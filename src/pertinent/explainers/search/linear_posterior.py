"""The posterior of a weighted Bayesian linear regression, whose noise and prior variance are estimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Masks

RATIOS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Candidate noise-to-signal ratios; the most likely one is used."""


class LinearPosterior:
    """Draws from the posterior of a Bayesian linear regression, fitted anew for every few draws.

    From one fit to the next it follows the most likely of `RATIOS` in single steps, up and down in turn.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._place: int | None = None
        self._step = 1

    def draw(self, sets: Masks, evidence: Floats, weight: Floats, n: int) -> Floats:
        """`n` draws of θ (n, features) from the posterior."""
        share = weight / weight.sum()
        root = np.sqrt(share * len(share))
        x = sets.astype(np.float64)
        centred = (x - share @ x) * root[:, None]
        response = evidence - share @ evidence
        response = response / (np.sqrt(share @ response**2) + 1e-12) * root
        system = System(centred, response)
        places = range(len(RATIOS)) if self._place is None else [self._place, self._place + self._step]
        fits = [(system.fit(RATIOS[place]), place) for place in places if 0 <= place < len(RATIOS)]
        fit, self._place = max(fits, key=lambda found: found[0].likelihood)
        self._step = -self._step
        return system.draw(fit, n, self.rng)


@dataclass(frozen=True, eq=False)
class Fit:
    """The noise variance relative to the prior variance, the prior variance, and their log-likelihood.

    `root` is the Cholesky factor of the normal matrix, and `solved` the right-hand side solved by it.
    """

    noise: float
    prior: float
    likelihood: float
    root: Floats
    solved: Floats


class System:
    r"""A regression :math:`y = C\theta` as equations in the answers or in the features, whichever are fewer.

    The Cholesky factor of a matrix with one more row and column, the right-hand side, has that side
    solved by the factor in its last row.
    """

    def __init__(self, centred: Floats, response: Floats) -> None:
        self.centred, self.response = centred, response
        self.n, d = centred.shape
        self.wide = self.n <= d
        self.size = min(self.n, d)
        self.energy = float(response @ response)
        self.bordered = np.empty((self.size + 1, self.size + 1))
        self.bordered[:-1, :-1] = centred @ centred.T if self.wide else centred.T @ centred
        self.bordered[-1, :-1] = response if self.wide else response @ centred
        self.diagonal = self.bordered.diagonal()[:-1].copy()
        self.power = max(float(self.diagonal.sum()) / self.n, 1e-9)

    def fit(self, ratio: float) -> Fit:
        """The fit with this ratio of noise to signal; the prior variance maximises the likelihood."""
        noise = ratio * self.power
        np.fill_diagonal(self.bordered, np.append(self.diagonal + noise, 1 + self.energy * (1 + 1 / noise)))
        factor = np.linalg.cholesky(self.bordered)
        solved = factor[-1, :-1]
        explained = float(solved @ solved)
        misfit = explained if self.wide else max(self.energy - explained, 0.0) / noise
        flat = 0 if self.wide else self.n - self.size
        prior = misfit / self.n
        spread = 2 * float(np.log(factor.diagonal()[:-1]).sum()) + flat * np.log(noise)
        likelihood = -self.n * np.log(prior + 1e-300) - spread
        return Fit(noise, prior, float(likelihood), factor[:-1, :-1], solved)

    def draw(self, fit: Fit, n: int, rng: np.random.Generator) -> Floats:
        """`n` draws of θ (n, features) from the posterior.

        By the features, they are the mean and noise of the normal matrix's inverse covariance. By the
        answers, a draw from the prior is corrected by how far it misses the response (Matheron's rule).
        """
        deviation = np.sqrt(fit.noise * fit.prior)
        if not self.wide:
            white = rng.standard_normal((n, self.size)) * deviation + fit.solved
            return np.asarray(np.linalg.solve(fit.root.T, white.T).T)
        drawn = rng.standard_normal((n, self.centred.shape[1])) * np.sqrt(fit.prior)
        missed = self.response - drawn @ self.centred.T - rng.standard_normal((n, self.n)) * deviation
        normal = self.bordered[:-1, :-1].copy()
        np.fill_diagonal(normal, self.diagonal + fit.noise)
        return np.asarray(drawn + np.linalg.solve(normal, missed.T).T @ self.centred)
