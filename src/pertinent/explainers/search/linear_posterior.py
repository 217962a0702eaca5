"""Posterior of a weighted Bayesian linear regression with estimated noise and prior variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Masks

RATIOS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Candidate noise-to-signal ratios; the most likely one is used."""


class LinearPosterior:
    """Draws from the posterior of a Bayesian linear regression that is refitted every few draws.

    Between fits, the ratio moves towards the most likely of `RATIOS` in single steps, alternately up and
    down.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._index: int | None = None
        self._step = 1

    def draw(self, sets: Masks, evidence: Floats, weight: Floats, n: int) -> Floats:
        """Return `n` draws of θ (n, features) from the posterior."""
        share = weight / weight.sum()
        root = np.sqrt(share * len(share))
        x = sets.astype(np.float64)
        centred = (x - share @ x) * root[:, None]
        response = evidence - share @ evidence
        response = response / (np.sqrt(share @ response**2) + 1e-12) * root
        system = System(centred, response)
        indices = range(len(RATIOS)) if self._index is None else [self._index, self._index + self._step]
        fits = [(system.fit(RATIOS[i]), i) for i in indices if 0 <= i < len(RATIOS)]
        fit, self._index = max(fits, key=lambda pair: pair[0].likelihood)
        self._step = -self._step
        return system.draw(fit, n, self.rng)


@dataclass(frozen=True, eq=False)
class Fit:
    """One fit of the regression.

    Attributes
    ----------
    noise
        Noise variance relative to the prior variance.
    prior
        Prior variance.
    likelihood
        Log-likelihood of both variances.
    root
        Cholesky factor of the normal matrix.
    solved
        Right-hand side solved with this factor.
    """

    noise: float
    prior: float
    likelihood: float
    root: Floats
    solved: Floats


class System:
    r"""A regression :math:`y = C\theta`, as equations in the answers or the features, whichever are fewer.

    The Cholesky factor of a matrix bordered by the right-hand side contains, as its last row, the right-hand
    side solved with the matrix's factor.
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
        """Return the fit for this noise-to-signal ratio, with the prior variance of maximum likelihood."""
        noise = ratio * self.power
        np.fill_diagonal(self.bordered, np.append(self.diagonal + noise, 1 + self.energy * (1 + 1 / noise)))
        factor = np.linalg.cholesky(self.bordered)
        solved = factor[-1, :-1]
        explained = float(solved @ solved)
        misfit = explained if self.wide else max(self.energy - explained, 0.0) / noise
        n_null = 0 if self.wide else self.n - self.size
        prior = misfit / self.n
        log_determinant = 2 * float(np.log(factor.diagonal()[:-1]).sum()) + n_null * np.log(noise)
        likelihood = -self.n * np.log(prior + 1e-300) - log_determinant
        return Fit(noise, prior, float(likelihood), factor[:-1, :-1], solved)

    def draw(self, fit: Fit, n: int, rng: np.random.Generator) -> Floats:
        """Return `n` draws of θ (n, features) from the posterior.

        In feature space, a draw is the mean plus noise whose covariance is the inverse normal matrix. In
        answer space, a draw from the prior is corrected by its distance from the response (Matheron's rule).
        """
        deviation = np.sqrt(fit.noise * fit.prior)
        if not self.wide:
            white = rng.standard_normal((n, self.size)) * deviation + fit.solved
            return np.asarray(np.linalg.solve(fit.root.T, white.T).T)
        draws = rng.standard_normal((n, self.centred.shape[1])) * np.sqrt(fit.prior)
        errors = self.response - draws @ self.centred.T - rng.standard_normal((n, self.n)) * deviation
        normal = self.bordered[:-1, :-1].copy()
        np.fill_diagonal(normal, self.diagonal + fit.noise)
        return np.asarray(draws + np.linalg.solve(normal, errors.T).T @ self.centred)
