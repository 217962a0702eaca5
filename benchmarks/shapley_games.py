"""Games whose Shapley values are known: all 2^d answers in a table, or a long text and a long run."""

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
"""Of a long run."""


@dataclass(eq=False)
class Game:
    """Values of masks, and the Shapley values with their own mean squared error; counts distinct masks."""

    family: str
    d: int
    function: Callable[[Masks], Floats]
    truth: Floats
    own_error: float = 0.0
    asked: set[bytes] = field(default_factory=set)

    def __call__(self, masks: Any) -> Floats:
        """The values."""
        masks = np.atleast_2d(masks) > 0.5
        self.asked.update(mask_bytes(masks))
        return self.function(masks)


def exact_games() -> Iterator[Game]:
    """Texts of 10 to 12 words, rows under forests and boosting, and sums of unanimity games."""
    for name, texts in (("sentiment", REVIEWS), ("topics", NEWS)):
        model = pertinent.load(name)
        yield from (table(name, *of_model(model, text)) for text in texts)
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
        yield from (table(name, *of_model(model, rows[i])) for i in (3, len(rows) // 2, len(rows) - 5))
    rng = np.random.default_rng(0)
    for _ in range(3):
        yield table("unanimity games", _unanimity(rng, 12), 12)


def long_games(n: int) -> Iterator[Game]:
    """Reviews of 34 words and more, each answered once; the truth is that of a long run."""
    model = pertinent.load("sentiment")
    for text in LONG_REVIEWS[:n]:
        function, d = of_model(model, text)
        remembered = _remembering(function)
        truth, own_error = _long_run(remembered, d)
        yield Game("long reviews", d, remembered, truth, own_error)


def _unanimity(rng: np.random.Generator, d: int) -> Callable[[Masks], Floats]:
    """A sum of 30 unanimity games with random members."""
    members = [rng.choice(d, rng.integers(1, d + 1), replace=False) for _ in range(30)]
    weights = rng.uniform(-1, 1, size=30)
    return lambda masks: sum(w * masks[:, m].all(axis=1) for w, m in zip(weights, members, strict=True))


def of_model(model: Any, raw: Any) -> tuple[Callable[[Masks], Floats], int]:
    """The target's value for masks, and the number of features."""
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
    """A game whose answers are all asked for at once."""
    table = function(all_coalitions(d))
    place = 1 << np.arange(d)
    return Game(family, d, lambda masks: table[masks @ place], shapley_values_of(table))


def _remembering(function: Callable[[Masks], Floats]) -> Callable[[Masks], Floats]:
    """The same function, that computes the value of a mask only once."""
    known: dict[bytes, float] = {}

    def values(masks: Masks) -> Floats:
        keys = mask_bytes(masks)
        new = {key: row for row, key in enumerate(keys) if key not in known}
        if new:
            known.update(zip(new, function(masks[list(new.values())]).tolist(), strict=True))
        return np.array([known[key] for key in keys])

    return values


def _long_run(function: Callable[[Masks], Floats], d: int) -> tuple[Floats, float]:
    """Shapley values by many pairs of orders, and their mean squared error.

    The orders walk through what a process of 400 pairs of masks does not explain, and its own values are
    added: without bias, as orders alone are, but with less variance.
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
    end_rests = np.array([complements[0], values[0]]) - prior.covariance(ends, x) @ alpha
    path[:, 0], path[:, -1] = end_rests
    for row, part in enumerate(walked):
        path[row, 1:-1] = function(part) - prior.covariance(np.where(part, 1.0, -1.0), x) @ alpha
    gains = np.empty((len(orders), d))
    gains[np.arange(len(orders))[:, None], orders] = np.diff(path, axis=1)
    draws = gains.reshape(-1, 2, d).mean(axis=1)
    return surrogate_values + draws.mean(axis=0), float(draws.var(axis=0, ddof=1).mean() / len(draws))
