"""Shapley values from random permutations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import Values
from pertinent.config.settings import Count
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.explainers.shapley.error_bounds import count_distinct, limit_errors
from pertinent.stats import student_factor

SHARED, RARE = 1, 8
"""Weight of the mean variance over all features, in draws.

The second number applies if no feature has an effect in most orders: a feature without an effect in a few
orders may still have one in others.
"""

LEAST_ORDERS = 8
"""Number of orders from which standard errors are known if the answers have few distinct values."""

FIRST = 12
"""Number of orders before the first test for early stopping; with fewer, errors are too uncertain."""


@explainers.register("shapley-sampling")
@dataclass(frozen=True)
class ShapleySampling(Explainer):
    r"""The mean marginal contribution over random orders :math:`\pi` in which features are added.

    .. math:: \phi_i = \frac1m \sum_{\pi} v(\mathrm{Pre}^i(\pi) \cup \{i\}) - v(\mathrm{Pre}^i(\pi))

    The estimate is unbiased, and the scores of every sample sum to :math:`v(N) - v(\emptyset)`.

    Parameters
    ----------
    samples
        Number of permutations; by default as many as the budget allows.
    antithetic
        Follow each order by its reverse, which at least halves the variance if a feature's contribution
        depends on how many features precede it.
    """

    paper = "Castro, Gómez & Tejada 2009, Alg. 1; Štrumbelj & Kononenko 2010; Yang et al. 2023 (SVS)"
    traits = Traits(
        evaluations_per_feature=2, stops_early=True, all_classes=True, adds_up=True, standard_errors=True
    )
    summary = "Shapley values from random permutations"
    samples: Count | None = None
    antithetic: bool = True

    def evaluations(self, n_features: int) -> int | None:
        """Return d − 1 evaluations per order, plus 2 for the empty and the full mask."""
        return None if self.samples is None else self.samples * (n_features - 1) + 2

    def min_budget(self, n_features: int) -> int:
        """Return the evaluations of one order."""
        return self.evaluations(n_features) or n_features + 1

    def explain(self, task: Task) -> Steps:
        """Evaluate the masks along each order, from the empty to the full mask."""
        d = task.n_features
        ends = yield from task.ask_empty_and_full()
        if d == 1:
            finding = Finding((ends[1] - ends[0])[:, None], np.zeros((ends.shape[1], 1)), base_values=ends[0])
            return task.record_stop(finding, "stable")
        rounds = task.rounds(FIRST, self._samples(task), step=2)
        gains, answers = np.empty((0, d, ends.shape[1])), ends
        for samples in rounds:
            orders = draw_orders(task.rng, samples - len(gains), d, antithetic=self.antithetic)
            values = yield Values(prefixes(orders).reshape(-1, d))
            gains = np.concatenate([gains, _gains(orders, values, ends)])
            answers = np.concatenate([answers, values])
            is_rough = len(gains) < LEAST_ORDERS and count_distinct(answers) <= np.sqrt(len(answers))
            finding = limit_errors(task, self._estimate(gains, ends), answers, is_rough)
            if task.is_settled(finding, len(rounds)):
                return task.record_stop(finding, "stable")
            if samples < rounds[-1]:
                yield from task.publish(finding)
        return task.record_stop(finding, "budget")

    def _samples(self, task: Task) -> int:
        """Return the number of orders, also if the budget determines it (even, since pairs vary far less)."""
        if self.samples is not None:
            return self.samples
        samples = max(1, (task.budget - 2) // (task.n_features - 1))
        return samples - samples % 2 if self.antithetic and samples > 1 else samples

    def _estimate(self, gains: Floats, ends: Floats) -> Finding:
        """Return the mean and its standard error; an order and its reverse are one draw.

        A variance from few draws is uncertain. It is averaged with the mean variance over all features, which
        counts as `SHARED` to `RARE` draws, and inflated by Student's t for the number of draws, so that 1.96
        standard errors give a 95% interval. An order without its reverse is a separate draw.
        """
        size = 2 if self.antithetic else 1  # of a draw, in orders
        n, left = divmod(len(gains), size)
        mean, errors, inflation = gains.mean(axis=0), np.full(gains.shape[1:], np.nan), 1.0
        if n > 1:
            draws = gains[: size * n].reshape(n, size, *gains.shape[1:]).mean(axis=1)
            shared = SHARED + (RARE - SHARED) * (gains == 0).mean(axis=(0, 1))
            variance = n * size**2 * _moderate(draws, shared) + left * _moderate(gains, shared)
            inflation = student_factor(n)
            errors = inflation * np.sqrt(variance) / len(gains)
        return Finding(mean.T, errors.T, base_values=ends[0], inflation=inflation)


def _moderate(draws: Floats, shared: Floats) -> Floats:
    """Return the variance of each feature (features, columns), averaged with the mean over all features.

    `shared` (columns,) is the weight of that mean, in draws.
    """
    variance = draws.var(axis=0, ddof=1)
    freedom = len(draws) - 1
    return np.asarray((shared * variance.mean(axis=0) + freedom * variance) / (shared + freedom))


def _gains(orders: Ints, values: Floats, ends: Floats) -> Floats:
    """Return the marginal contribution of each feature in each order (orders, features, columns)."""
    n, d = orders.shape
    path = np.empty((n, d + 1, ends.shape[1]))
    path[:, 0], path[:, -1] = ends
    path[:, 1:-1] = values.reshape(n, d - 1, -1)
    gains = np.empty((n, d, ends.shape[1]))
    gains[np.arange(n)[:, None], orders] = np.diff(path, axis=1)
    return gains


def draw_orders(rng: np.random.Generator, n: int, d: int, *, antithetic: bool) -> Ints:
    """Return random permutations (n, d); if `antithetic`, every second one reverses its predecessor."""
    if not antithetic:
        return rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)
    drawn = rng.permuted(np.tile(np.arange(d), (-(-n // 2), 1)), axis=1)
    return np.stack([drawn, drawn[:, ::-1]], axis=1).reshape(-1, d)[:n]


def prefixes(orders: Ints) -> Masks:
    """Return the masks of the first 1, 2 … d − 1 features of each order (n, d − 1, d)."""
    rank = np.argsort(orders, axis=1)
    return rank[:, None, :] < np.arange(1, orders.shape[1])[None, :, None]
