"""Games with known Shapley values: tables of all 2^d values, and long texts with values from a long run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pertinent
from pertinent.array_types import Floats, Masks
from pertinent.explainers.shapley.gaussian_process import fit, noise_variances
from pertinent.explainers.shapley.mask_design import spread_pairs
from pertinent.explainers.shapley.shapley_sampling import draw_orders, prefixes
from pertinent.masks import all_coalitions, full_mask, mask_bytes, shapley_values_of
from pertinent.removals.base import removals

REVIEWS = (
    "A slow start then a wonderful ending and superb acting overall",
    "Flat jokes and a clumsy script waste a talented cast here",
    "Not bad at all but never really funny or moving either",
)
NEWS = (
    "Shares of the chip maker rose after it raised its forecast",
    "The goalkeeper saved two penalties and the home side won",
    "Astronomers found water on a small planet near a star",
)
LONG_REVIEWS = (
    (
        "The first hour drags and the jokes fall flat but once the sisters finally meet the film finds a "
        "warm and honest voice and the last scene quiet and beautifully acted stays with you"
    ),
    (
        "For all its money and noise this sequel has no idea what made the first one work so it repeats the "
        "old tricks without charm and leaves a fine cast with nothing to do"
    ),
)
PAIRS_OF_ORDERS = 250
"""Number of pairs of orders in a long run."""


@dataclass(eq=False)
class Game:
    """Game with known Shapley values.

    Attributes
    ----------
    family, d
        The name of its family, and the number of features.
    function
        A function from masks (masks, features) to values (masks,).
    truth, truth_error
        The Shapley values (features,), and their mean squared error.
    evaluated
        The distinct masks that were evaluated.
    """

    family: str
    d: int
    function: Callable[[Masks], Floats]
    truth: Floats
    truth_error: float = 0.0
    evaluated: set[bytes] = field(default_factory=set)

    def __call__(self, masks: Any) -> Floats:
        """Return the values of masks, and record the masks."""
        masks = np.atleast_2d(masks) > 0.5
        self.evaluated.update(mask_bytes(masks))
        return self.function(masks)


def exact_games() -> Iterator[Game]:
    """Yield texts of 10 to 12 words, rows with forests and boosting, and sums of unanimity games."""
    for name, texts in (("sentiment", REVIEWS), ("topics", NEWS)):
        model = pertinent.load(name)
        yield from (table(name, *model_game(model, text)) for text in texts)
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier

    tables: tuple[tuple[str, Any, Any], ...] = (
        ("forest", load_wine, RandomForestClassifier(60, random_state=0)),
        ("boosted regressor", load_diabetes, GradientBoostingRegressor(max_depth=4, random_state=0)),
        ("boosted classifier", load_breast_cancer, GradientBoostingClassifier(max_depth=5, random_state=0)),
    )
    for name, load, estimator in tables:
        rows, truth = load(return_X_y=True)
        rows = rows[:, :12]
        model = pertinent.wrap(estimator.fit(rows, truth), background=rows[:: len(rows) // 30])
        yield from (table(name, *model_game(model, rows[i])) for i in (3, len(rows) // 2, len(rows) - 5))
    rng = np.random.default_rng(0)
    for _ in range(3):
        yield table("unanimity games", _unanimity(rng, 12), 12)


def long_games(n: int) -> Iterator[Game]:
    """Yield reviews of 34 words; their truth comes from a long run."""
    model = pertinent.load("sentiment")
    for text in LONG_REVIEWS[:n]:
        function, d = model_game(model, text)
        cached = cache_values(function)
        yield Game("long reviews", d, cached, *_long_run(cached, d))


def _unanimity(rng: np.random.Generator, d: int) -> Callable[[Masks], Floats]:
    """Return a sum of 30 unanimity games with random members."""
    members = [rng.choice(d, rng.integers(1, d + 1), replace=False) for _ in range(30)]
    weights = rng.uniform(-1, 1, size=30)
    return lambda masks: sum(w * masks[:, m].all(axis=1) for w, m in zip(weights, members, strict=True))


def model_game(model: Any, raw: Any) -> tuple[Callable[[Masks], Floats], int]:
    """Return a function from masks to the target's value, and the number of features."""
    input = model.prepare(raw)
    removal = removals.make(model.default_removal(input)).bind(model)

    def rows(masks: Masks) -> Floats:
        outputs = np.asarray(model.submit([removal(input, masks, 0)]).outputs())
        checked = model.checked(outputs, len(masks) * removal.draws)
        natural = model.output.natural(checked)
        return np.asarray(natural.reshape(len(masks), removal.draws, -1).mean(axis=1))

    target = model.output.default_target(rows(full_mask(input.n_features))[0])

    def values(masks: Masks) -> Floats:
        parts = np.array_split(masks, -(-len(masks) // 512))
        return np.concatenate([rows(part)[:, target] for part in parts])

    return values, input.n_features


def table(family: str, function: Callable[[Masks], Floats], d: int) -> Game:
    """Return a game with a table of the values of all masks."""
    table = function(all_coalitions(d))
    powers = 1 << np.arange(d)
    return Game(family, d, lambda masks: table[masks @ powers], shapley_values_of(table))


def cache_values(function: Callable[[Masks], Floats]) -> Callable[[Masks], Floats]:
    """Return a function that computes the value of each mask only once."""
    cached: dict[bytes, float] = {}

    def values(masks: Masks) -> Floats:
        keys = mask_bytes(masks)
        new = {key: row for row, key in enumerate(keys) if key not in cached}
        if new:
            cached.update(zip(new, function(masks[list(new.values())]).tolist(), strict=True))
        return np.array([cached[key] for key in keys])

    return values


def _long_run(function: Callable[[Masks], Floats], d: int) -> tuple[Floats, float]:
    """Estimate Shapley values by many pairs of orders; return them and their mean squared error.

    A Gaussian process of 400 pairs of masks is a control variate: the orders walk through its residuals, and
    its Shapley values are added. The estimate is unbiased, with less variance than without the process.
    """
    rng = np.random.default_rng(12345)
    masks = np.concatenate([full_mask(d), spread_pairs(full_mask(d)[:0], 400, rng)])
    values, complements = function(masks), function(~masks)
    odd, even = (values - complements)[:, None] / 2, (values + complements)[:, None] / 2
    prior = fit(masks, odd, even)
    x = np.where(masks, 1.0, -1.0)
    covariance = prior.covariance(x, x)
    covariance[np.diag_indices(len(x))] += noise_variances(prior.noise, len(x), covariance[0, 0])
    alpha = np.linalg.solve(covariance, odd[:, 0])
    surrogate_values = prior.covariance_with_values(x).T @ alpha
    orders = draw_orders(rng, 2 * PAIRS_OF_ORDERS, d, antithetic=True)
    walked = prefixes(orders)
    ends = np.array([-1.0, 1.0])[:, None] * np.ones((1, d))
    path = np.empty((len(orders), d + 1))
    end_residuals = np.array([complements[0], values[0]]) - prior.covariance(ends, x) @ alpha
    path[:, 0], path[:, -1] = end_residuals
    for row, part in enumerate(walked):
        path[row, 1:-1] = function(part) - prior.covariance(np.where(part, 1.0, -1.0), x) @ alpha
    gains = np.empty((len(orders), d))
    gains[np.arange(len(orders))[:, None], orders] = np.diff(path, axis=1)
    draws = gains.reshape(-1, 2, d).mean(axis=1)
    return surrogate_values + draws.mean(axis=0), float(draws.var(axis=0, ddof=1).mean() / len(draws))
