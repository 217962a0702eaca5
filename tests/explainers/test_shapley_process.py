"""The Gaussian process of `shapley`: its gradient, its search, and its masks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from pertinent.explainers.shapley import gaussian_process, quasi_newton
from pertinent.explainers.shapley.gaussian_process import (
    CONSTANT,
    Prior,
    condition,
    estimate,
    fit,
    invert_lower,
    log_posterior,
    noise_variances,
)
from pertinent.explainers.shapley.mask_design import spread_pairs
from pertinent.explainers.shapley.quasi_newton import climb

NONE = np.zeros((0, 9), dtype=bool)


def answers(n=24, d=5, columns=2, seed=0):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n, d)) < 0.5, 1.0, -1.0)
    x[0] = 1.0
    return x, rng.normal(size=(n, columns)), rng.normal(size=(n, columns))


def points(d=5):
    rng = np.random.default_rng(1)
    return [
        np.concatenate([rng.normal(-1.5, 0.7, d), rest])
        for rest in ([0.3, -2.0, -4.0], [-3.0, -7.0, -1.0], [2.0, -1.0, -6.0])
    ]


@pytest.mark.parametrize("with_even", [True, False])
@pytest.mark.parametrize("point", points())
def test_the_gradient_is_that_of_the_log_posterior(point, with_even):
    x, odd, even = answers()
    even = even if with_even else None
    _, slope = log_posterior(point, x, odd, even)
    steps = 1e-5 * np.eye(len(point))
    by_hand = [
        (log_posterior(point + s, x, odd, even)[0] - log_posterior(point - s, x, odd, even)[0]) / 2e-5
        for s in steps
    ]
    np.testing.assert_allclose(slope, by_hand, rtol=1e-5, atol=1e-6)


def test_the_log_posterior_is_the_density_of_the_answers_at_the_best_scales():
    """Compare differences between two priors with scipy's densities; constants cancel."""
    x, odd, even = answers(columns=1)
    n, d = x.shape
    one, other = points()[:2]

    def density(point):
        prior = Prior(1 / (1 + np.exp(-point[:d])), *np.exp(point[d:]))
        odd_part, even_part = prior.parts(x, x)
        odd_part = odd_part + prior.linear * (x * prior.r) @ x.T
        even_noise = noise_variances(prior.even_noise, n, even_part[0, 0])
        covariances = [
            odd_part + np.diag(noise_variances(prior.noise, n, odd_part[0, 0])),
            even_part + CONSTANT * even_part[0, 0] + np.diag(even_noise),
        ]
        total = gaussian_process._log_hyperprior(point)[0]
        for k, part in zip(covariances, (odd[:, 0], even[:, 0]), strict=True):
            scale = part @ np.linalg.solve(k, part) / n
            total += multivariate_normal(cov=scale * k, allow_singular=True).logpdf(part)
        return total

    found = log_posterior(one, x, odd, even)[0] - log_posterior(other, x, odd, even)[0]
    assert found == pytest.approx(density(one) - density(other), rel=1e-8)


def test_the_climb_finds_what_scipy_finds(monkeypatch):
    x, odd, even = answers(n=40)
    odd = odd * 0.1 + x @ np.array([[3.0, 1.0], [0.5, 0], [0, 2.0], [0.1, 0], [0, 0]])
    start = np.concatenate([np.full(5, -np.log(5)), [1.0, -9.0, -9.0]])
    best = minimize(lambda p: [-part for part in log_posterior(p, x, odd, even)], start, jac=True)
    roughly = climb(lambda p: log_posterior(p, x, odd, even), start)
    assert log_posterior(roughly, x, odd, even)[0] > -best.fun - 1.0
    monkeypatch.setattr(quasi_newton, "ENOUGH", 1e-9)
    found = climb(lambda p: log_posterior(p, x, odd, even), start)
    assert log_posterior(found, x, odd, even)[0] == pytest.approx(-best.fun, abs=1e-4)


@pytest.mark.parametrize("n", [3, 64, 65, 200])
def test_the_inverse_of_a_triangle(n):
    root = np.tril(np.random.default_rng(n).normal(size=(n, n))) + n * np.eye(n)
    np.testing.assert_allclose(invert_lower(root) @ root, np.eye(n), atol=1e-12)


def test_the_posterior_is_that_of_all_terms():
    """Compare with Bayes' rule on the coefficients of all odd sets."""
    from itertools import combinations, product

    d = 4
    prior = Prior(np.array([0.5, 0.2, 0.7, 0.3]), linear=2.0, noise=0.05)
    sets = [t for k in (1, 3) for t in combinations(range(d), k)]
    masks = np.array(list(product([True, False], repeat=d)))[:7]
    x = np.where(masks, 1.0, -1.0)
    odd = np.random.default_rng(0).normal(size=(7, 1))
    variances = np.array([np.prod(prior.r[list(t)]) * (1 + prior.linear * (len(t) == 1)) for t in sets])
    basis = np.array([x[:, list(t)].prod(axis=1) for t in sets]).T
    shares = np.array([[2 / len(t) if i in t else 0.0 for t in sets] for i in range(d)])
    k = basis @ np.diag(variances) @ basis.T
    k += np.diag(noise_variances(prior.noise, 7, k[0, 0]))
    gain = np.diag(variances) @ basis.T @ np.linalg.inv(k)
    values = shares @ gain @ odd
    values += (2 * odd[0] - values.sum(axis=0)) / d
    found = condition(prior, masks, odd)
    np.testing.assert_allclose(found.values, values, atol=1e-9)
    left = shares @ (np.diag(variances) - gain @ basis @ np.diag(variances)) @ shares.T
    np.testing.assert_allclose(found.variances, left.diagonal(), rtol=1e-6)
    residuals = [odd[i, 0] - _foretold(k, odd[:, 0], i) for i in range(7)]
    np.testing.assert_allclose(found.residuals[:, 0], residuals, rtol=1e-6)
    np.testing.assert_allclose(found.expected, 1 / np.diag(np.linalg.inv(k)), rtol=1e-6)


def _foretold(k, y, i):
    """Return the mean of an answer given the others."""
    others = np.delete(np.arange(len(y)), i)
    return k[i, others] @ np.linalg.solve(k[np.ix_(others, others)], y[others])


@pytest.mark.parametrize("d", [2, 3, 4, 7, 10, 20])
def test_masks_are_as_many_as_asked_for_and_no_two_are_alike(d):
    most = 2 ** (d - 1) - 1
    for n in {1, min(most, d - 1), min(most, d), min(most, 3 * d), min(most, 511), min(most, 510)}:
        masks = spread_pairs(np.zeros((0, d), dtype=bool), n, np.random.default_rng(n))
        assert masks.shape == (n, d)
        assert len(np.unique(masks ^ masks[:, :1], axis=0)) == n
        assert not masks.all(axis=1).any()
        assert masks.any(axis=1).all()


def test_masks_go_on_from_those_that_are_known():
    known = spread_pairs(NONE, 20, np.random.default_rng(0))
    more = spread_pairs(known, 60, np.random.default_rng(1))
    both = np.concatenate([known, more])
    assert len(both) == 60
    assert len(np.unique(both ^ both[:, :1], axis=0)) == 60


def test_the_first_masks_span_all_features():
    """Check that d − 1 masks and the full mask solve additive games with 2d evaluations."""
    for seed in range(20):
        masks = np.concatenate([np.ones((1, 9), bool), spread_pairs(NONE, 8, np.random.default_rng(seed))])
        assert np.linalg.matrix_rank(np.where(masks, 1.0, -1.0)) == 9


def test_spread_masks_are_less_alike_than_random_ones_of_the_same_sizes():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        masks = spread_pairs(np.zeros((0, 30), dtype=bool), 150, rng)
        masks = masks[masks.sum(axis=1) >= 10]  # a few features are alike however they are drawn
        drawn = np.array([rng.permutation(mask) for mask in masks])
        assert likeness(masks) < 0.7 * likeness(drawn)


def likeness(masks):
    """Return the sum of the fourth powers of the cosines of different masks."""
    x = np.where(masks, 1.0, -1.0)
    return ((x @ x.T / masks.shape[1]) ** 4).sum() - len(x)


def self_dual(d, seed):
    """Return a sigmoid model with an opposing baseline, its answers to d pairs of masks, and its values."""
    from pertinent.masks import all_coalitions, shapley_values_of

    weight = np.random.default_rng(seed).normal(size=d)
    weight *= 3 / np.linalg.norm(weight)

    def values(masks):
        return 1 / (1 + np.exp(-np.where(masks, 1.0, -1.0) @ weight))[:, None]

    masks = np.concatenate(
        [np.ones((1, d), bool), spread_pairs(np.zeros((0, d), bool), d - 1, np.random.default_rng(seed))]
    )
    return masks, values(masks), values(~masks), shapley_values_of(values(all_coalitions(d)))


def test_a_game_without_an_even_part_is_not_taken_for_linear_and_free_of_noise():
    """Check coverage of 1.96 standard errors when f(S) + f(not S) is constant."""
    covered = []
    for seed in range(20):
        masks, values, complements, truth = self_dual(10, seed)
        found = estimate(masks, (values - complements) / 2, (values + complements) / 2, slice(None))
        covered.append(np.abs(found.values - truth) <= 1.96 * found.errors)
    assert np.mean(covered) > 0.9


def test_the_scale_of_the_even_part_does_not_matter_unless_it_hardly_varies():
    x, odd, even = answers(n=30)
    masks = x > 0
    found, larger = fit(masks, odd, even), fit(masks, odd, 7 * even)
    np.testing.assert_allclose(found.r, larger.r, rtol=1e-6)
    none, hardly = fit(masks, odd, 0 * even), fit(masks, odd, 0.01 * even)
    np.testing.assert_array_equal(none.r, hardly.r)
    assert not np.allclose(found.r, none.r)


def test_hard_decisions_have_honest_errors():
    """Check a weighted majority of 12: three features that explain 59 answers do not explain the rest."""
    from pertinent.masks import all_coalitions, shapley_values_of

    weights = np.array([9, 8, 7, 5, 5, 4, 4, 3, 2, 2, 1, 1])
    quota = weights.sum() / 2

    def values(masks):
        return (masks @ weights > quota).astype(float)[:, None]

    truth, covered = shapley_values_of(values(all_coalitions(12))), []
    for seed in range(20):
        masks = spread_pairs(np.zeros((0, 12), bool), 59, np.random.default_rng(seed))
        masks = np.concatenate([np.ones((1, 12), bool), masks])
        odd, even = (values(masks) - values(~masks)) / 2, (values(masks) + values(~masks)) / 2
        found = estimate(masks, odd, even, slice(None))
        covered.append(np.abs(found.values - truth) <= 1.96 * found.errors)
    assert np.mean(covered) > 0.9
