"""Games that are hard to estimate: decisions, majorities, games without an even part, sharp and noisy games.

The prior and the standard errors of `shapley` were chosen by half of the families; the others are held out
(`HELD_OUT`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from math import comb
from typing import Any

import numpy as np
from shapley_games import Game, model_game, table

from pertinent.array_types import Floats, Ints, Masks


def hard_games() -> Iterator[Game]:
    """Yield three games of each family."""
    for family, make in FAMILIES.items():
        yield from (make(family, number) for number in range(3))


def _signs(masks: Masks) -> Floats:
    return np.where(masks, 1.0, -1.0)


def _sigmoid(family: str, number: int, *, length: float, shift: float, d: int) -> Game:
    """Return a sigmoid model with an opposing baseline; without a shift, f(S) + f(not S) is 1."""
    weights = np.random.default_rng([number, d]).normal(size=d)
    weights *= length / np.linalg.norm(weights)
    return table(family, lambda masks: 1 / (1 + np.exp(-_signs(masks) @ weights - shift)), d)


def _voting(family: str, number: int, *, quota: float) -> Game:
    """Return a game with value 1 for more than this share of all votes, else 0."""
    d = (12, 20, 40)[number]
    votes = np.random.default_rng(number).integers(1, 12, size=d)
    needed = int(quota * votes.sum()) + 1
    return Game(family, d, lambda masks: (masks @ votes >= needed).astype(float), _power(votes, needed))


def _power(votes: Ints, needed: int) -> Floats:
    """Compute the Shapley values of voters from the number of decided coalitions by size and votes."""
    d, total = len(votes), int(votes.sum())
    power = np.zeros(d)
    for voter in range(d):
        counts = np.zeros((d, total + 1))
        counts[0, 0] = 1.0
        for other in np.delete(votes, voter).tolist():
            counts[1:, other:] += counts[:-1, : total + 1 - other].copy()
        decided = counts[:, max(0, needed - votes[voter]) : needed].sum(axis=1)
        power[voter] = sum(decided[size] / (d * comb(d - 1, size)) for size in range(d))
    return power


def _network(family: str, number: int, *, hard: bool) -> Game:
    """Return a network of one hidden layer with random weights, or the sign of its output."""
    rng, d = np.random.default_rng(number), 12
    inner, bias, outer = rng.normal(size=(d, 16)) / np.sqrt(d), rng.normal(size=16), rng.normal(size=16) / 4

    def values(masks: Masks) -> Floats:
        answers = np.tanh(1.5 * _signs(masks) @ inner + bias) @ outer
        return (answers > 0).astype(float) if hard else np.asarray(answers)

    return table(family, values, d)


def _glove(family: str, number: int) -> Game:
    """Return the number of pairs of a left and a right glove."""
    left = np.arange(16) < (8, 6, 4)[number]
    return table(
        family, lambda masks: np.minimum(masks[:, left].sum(1), masks[:, ~left].sum(1)).astype(float), 16
    )


def _airport(family: str, number: int) -> Game:
    """Return the largest cost of the features, whose increments are shared by all features that need them."""
    d = (16, 30, 60)[number]
    costs = np.random.default_rng(number).gamma(2, size=d)
    order = np.argsort(costs)
    truth = np.empty(d)
    truth[order] = np.cumsum(np.diff(costs[order], prepend=0) / np.arange(d, 0, -1))
    return Game(family, d, lambda masks: np.where(masks, costs, 0).max(axis=1), truth)


def _pairs(family: str, number: int, *, singles: float) -> Game:
    """Return a sum of single features and of products of pairs."""
    rng, d = np.random.default_rng(number), (12, 24, 40)[number]
    single, pair = singles * rng.normal(size=d), np.triu(rng.normal(size=(d, d)), 1)
    truth = single + (pair.sum(axis=0) + pair.sum(axis=1)) / 2
    return Game(family, d, lambda masks: masks @ single + np.einsum("ni,ij,nj->n", masks, pair, masks), truth)


def _sparse(family: str, number: int) -> Game:
    """Return a sum of 15 unanimity games of at most 4 of 40 features."""
    rng, d = np.random.default_rng(number), 40
    members = [rng.choice(d, rng.integers(1, 5), replace=False) for _ in range(15)]
    weights = rng.uniform(-1, 1, size=15)
    truth = np.zeros(d)
    for some, weight in zip(members, weights, strict=True):
        truth[some] += weight / len(some)
    return Game(
        family,
        d,
        lambda masks: sum(w * masks[:, m].all(axis=1) for m, w in zip(members, weights, strict=True)),
        truth,
    )


def _nk(family: str, number: int) -> Game:
    """Return Kauffman's NK game: the mean of 14 tables, each of a feature and three others."""
    rng, d = np.random.default_rng(number), 14
    members = [np.append(rng.choice(np.delete(np.arange(d), i), 3, replace=False), i) for i in range(d)]
    tables = rng.random((d, 16))
    powers = 1 << np.arange(4)
    return table(
        family,
        lambda masks: np.mean(
            [t[masks[:, m] @ powers] for m, t in zip(members, tables, strict=True)], axis=0
        ),
        d,
    )


def _noisy(family: str, number: int) -> Game:
    """Return a sum of the features plus independent noise for each mask."""
    rng, d = np.random.default_rng(number), 12
    weights, noise = rng.normal(size=d), rng.normal(size=2**d) / 2
    return table(family, lambda masks: masks @ weights + noise[masks @ (1 << np.arange(d))], d)


def _rows(family: str, number: int, *, kind: str) -> Game:
    """Return a row with a support vector regressor or a nearest-neighbours classifier."""
    model, rows = _estimator(kind)
    return table(family, *model_game(model, rows[(3, len(rows) // 2, len(rows) - 5)[number]]))


@cache
def _estimator(kind: str) -> tuple[Any, Floats]:
    from sklearn.datasets import load_diabetes, load_wine
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    import pertinent

    load, estimator = (load_diabetes, SVR(C=100)) if kind == "svr" else (load_wine, KNeighborsClassifier(7))
    rows, truth = load(return_X_y=True)
    rows = rows[:, :12]
    fitted = make_pipeline(StandardScaler(), estimator).fit(rows, truth)
    return pertinent.wrap(fitted, background=rows[:: len(rows) // 30]), rows


FAMILIES: dict[str, Callable[[str, int], Game]] = {
    "self-dual sigmoid": partial(_sigmoid, length=2.8, shift=0.0, d=12),
    "voting, quota 1/2": partial(_voting, quota=0.5),
    "hard labels of a network": partial(_network, hard=True),
    "network": partial(_network, hard=False),
    "singles and pairs": partial(_pairs, singles=3.0),
    "sparse unanimity games": _sparse,
    "glove": _glove,
    "steep self-dual sigmoid": partial(_sigmoid, length=5.6, shift=0.0, d=14),
    "shifted sigmoid": partial(_sigmoid, length=4.0, shift=2.0, d=12),
    "voting, quota 0.65": partial(_voting, quota=0.65),
    "airport": _airport,
    "pairs": partial(_pairs, singles=0.0),
    "NK": _nk,
    "sum and noise": _noisy,
    "support vectors": partial(_rows, kind="svr"),
    "neighbours": partial(_rows, kind="neighbours"),
}
HELD_OUT = (
    "topics",
    "boosted regressor",
    "long reviews",
    "steep self-dual sigmoid",
    "shifted sigmoid",
    "voting, quota 0.65",
    "airport",
    "pairs",
    "NK",
    "sum and noise",
    "support vectors",
    "neighbours",
)
"""Families that were not used to choose the prior and the standard errors."""
