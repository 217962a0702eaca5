"""Games with known interactions: tables of all 2^d values, and long texts with values from a long run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from shapley_games import LONG_REVIEWS, Game, cache_values, exact_games, model_game, table

import pertinent
from pertinent.array_types import Floats, Masks
from pertinent.explainers.shapley.gaussian_process import fit
from pertinent.explainers.shapley.interaction_gaussian_process import _pairs, _parts
from pertinent.explainers.shapley.interaction_index import INDICES, exact_pairs
from pertinent.explainers.shapley.mask_design import spread_pairs
from pertinent.masks import all_coalitions, full_mask

D = 12
SETS = 60
"""Number of random sets in a long run."""


def games() -> Iterator[Game]:
    """Yield the games of `shapley_games`, rows with a network and a support vector machine, and sums."""
    yield from exact_games()
    yield from _smooth_models()
    kinds: dict[str, Callable[[np.random.Generator], Callable[[Masks], Floats]]] = {
        "sigmoid of pairs": _sigmoid,
        "dense pairs": lambda rng: _dense(rng, 2),
        "dense triples": lambda rng: _dense(rng, 3),
        "airport": _airport,
        "gloves": _gloves,
        "voting": _voting,
    }
    for family, make in kinds.items():
        for seed in range(3):
            yield table(family, make(np.random.default_rng(seed)), D)


def pairs_of(game: Game, index: str) -> Floats:
    """Return the true interactions of all pairs of features, (pairs,), from the game's table."""
    table = game.function(all_coalitions(game.d))[:, None]
    return exact_pairs(INDICES[index], table)[..., 0][np.triu_indices(game.d, 1)]


def _smooth_models() -> Iterator[Game]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    rows, truth = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(rows[:, :D])
    network = MLPRegressor(hidden_layer_sizes=(32, 32), max_iter=800, random_state=0)
    for family, estimator in (("network", network), ("support vectors", SVR(gamma=0.2))):
        model = pertinent.wrap(estimator.fit(rows, truth), background=rows[::20], output="value")
        yield from (table(family, *model_game(model, rows[i])) for i in (3, 100, 300))


def _sigmoid(rng: np.random.Generator) -> Callable[[Masks], Floats]:
    weights, pairs = rng.normal(size=D), np.triu(rng.normal(size=(D, D)), 1) / np.sqrt(D)
    return lambda masks: 1 / (1 + np.exp(-(masks @ weights + ((masks @ pairs) * masks).sum(axis=1))))


def _dense(rng: np.random.Generator, order: int) -> Callable[[Masks], Floats]:
    """Return a game in which every set of up to `order` features has a random weight."""
    sets = [c for size in range(1, order + 1) for c in combinations(range(D), size)]
    weights = rng.normal(size=len(sets))
    return lambda masks: sum(w * masks[:, list(c)].all(axis=1) for w, c in zip(weights, sets, strict=True))


def _airport(rng: np.random.Generator) -> Callable[[Masks], Floats]:
    costs = rng.random(D)
    return lambda masks: (masks * costs).max(axis=1)


def _gloves(rng: np.random.Generator) -> Callable[[Masks], Floats]:
    left = rng.permutation(D) < rng.integers(3, D - 2)
    return lambda masks: np.minimum(masks[:, left].sum(axis=1), masks[:, ~left].sum(axis=1)).astype(float)


def _voting(rng: np.random.Generator) -> Callable[[Masks], Floats]:
    votes = rng.uniform(1, 10, D)
    return lambda masks: (masks @ votes > 0.6 * votes.sum()).astype(float)


def long_games(n: int) -> Iterator[Game]:
    """Yield reviews of 34 words; their Shapley interaction indices come from a long run."""
    model: Any = pertinent.load("sentiment")
    for text in LONG_REVIEWS[:n]:
        function, d = model_game(model, text)
        cached = cache_values(function)
        yield Game("long reviews", d, cached, *_long_run(cached, d))


def _long_run(function: Callable[[Masks], Floats], d: int) -> tuple[Floats, float]:
    """Estimate the Shapley interactions of pairs; return them and their mean squared error.

    A Gaussian process of 1,000 pairs of masks is a control variate. Its residuals are estimated without bias:
    random sets are evaluated with every feature and every pair of features toggled, which gives a second
    difference of every pair.
    """
    rng = np.random.default_rng(12345)
    masks = np.concatenate([full_mask(d), spread_pairs(full_mask(d)[:0], 1000, rng)])
    values, complements = function(masks)[:, None], function(~masks)[:, None]
    odd, even = (values - complements) / 2, (values + complements) / 2
    prior, x = fit(masks, odd, even), np.where(masks, 1.0, -1.0)
    parts = _parts(prior, masks, odd, even)
    of_odd, of_even = (part.inverse_root.T @ part.whitened for part in parts)
    first, second = np.triu_indices(d, 1)
    toggles = np.zeros((1 + d + len(first), d), dtype=bool)
    toggles[1 + np.arange(d), np.arange(d)] = True
    pairs = 1 + d + np.arange(len(first))
    toggles[pairs, first] = toggles[pairs, second] = True
    draws = []
    for p in (np.arange(SETS) + rng.random(SETS)) / SETS:
        some = rng.random(d) < p
        signs = np.where(some ^ toggles, 1.0, -1.0)
        surrogate = prior.covariance(signs, x) @ of_odd + prior.parts(signs, x)[1] @ of_even
        left = function(some ^ toggles) - surrogate[:, 0]
        difference = left[pairs] - left[1 + first] - left[1 + second] + left[0]
        draws.append(np.where(some[first] == some[second], 1.0, -1.0) * difference)
    values_of_process = _pairs(parts[1], prior.r, x, INDICES["sii"].pairs_even, [0])[0][first, second, 0]
    return values_of_process + np.mean(draws, axis=0), float(np.var(draws, axis=0, ddof=1).mean() / SETS)
