"""Cooperative games whose answers are known, and a driver that lets an explainer play them without a model.

Every game here is a sum of unanimity games, v(S) = Σ_T m_T · [T ⊆ S], or the majority game. The Shapley
value shares each m_T equally among the members of T; the Banzhaf value gives each member m_T / 2^(|T|−1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np

import pertinent
from pertinent.asks import Compute, Fork, Gradients, MaskGradients
from pertinent.explainers.base import DEFAULT_SPARSITIES, Explainer, Finding, Task, plan_budget


@dataclass(eq=False)
class Game:
    """Values (masks, classes) of masks (masks, features); remembers every question.

    `gradients` of masks and a target are those of its log-probability, where the game has any.
    """

    d: int
    function: Callable[[np.ndarray], np.ndarray]
    shapley: np.ndarray | None = None
    banzhaf: np.ndarray | None = None
    asked: list[np.ndarray] = field(default_factory=list)
    gradients: Callable[[np.ndarray, int], np.ndarray] | None = None
    differentiated: list[np.ndarray] = field(default_factory=list)
    events: list[tuple[str, np.ndarray]] = field(default_factory=list)

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        self.asked.append(masks.copy())
        self.events.append(("values", masks.copy()))
        return self.values(masks)

    def values(self, masks: np.ndarray) -> np.ndarray:
        """The same without being counted."""
        return self.function(np.asarray(masks, dtype=bool))

    @property
    def calls(self) -> int:
        return len(self.asked)

    @property
    def masks(self) -> np.ndarray:
        """Every mask asked for, in order, repetitions included."""
        return np.concatenate(self.asked) if self.asked else np.empty((0, self.d), dtype=bool)

    @property
    def distinct(self) -> int:
        return len(np.unique(self.masks, axis=0))


def sum_of_unanimity(d: int, sets: Iterable[Iterable[int]], weights: np.ndarray, offset: float = 0.0) -> Game:
    """v(S) = offset + Σ_T m_T [T ⊆ S]; `weights` are (sets,) or (sets, classes)."""
    member = np.zeros((len(weights), d))
    for row, members in enumerate(sets):
        member[row, list(members)] = 1.0
    weights = np.atleast_2d(np.asarray(weights, dtype=float).T).T
    size = member.sum(axis=1)

    def function(masks: np.ndarray) -> np.ndarray:
        return offset + (masks @ member.T == size).astype(float) @ weights

    shapley = weights.T @ (member / size[:, None])
    banzhaf = weights.T @ (member / 2.0 ** (size - 1)[:, None])
    return Game(d, function, shapley, banzhaf)


def additive(weights: np.ndarray, offset: float = 0.0) -> Game:
    """Every feature brings its own weight, whoever else is there."""
    return sum_of_unanimity(len(weights), [[i] for i in range(len(weights))], np.asarray(weights), offset)


def unanimity(d: int, members: Iterable[int]) -> Game:
    """1 where all members are kept, else 0."""
    return sum_of_unanimity(d, [list(members)], np.array([1.0]))


def random_interactions(d: int, seed: int, *, order: int = 2, classes: int = 1) -> Game:
    """Every set of 1 … `order` features has a random normal weight for each class."""
    rng = np.random.default_rng([d, seed, order])
    sets = [c for size in range(1, order + 1) for c in combinations(range(d), size)]
    scale = np.array([1.0 / np.sqrt(comb(d, len(c))) for c in sets])
    return sum_of_unanimity(d, sets, rng.normal(size=(len(sets), classes)) * scale[:, None])


def majority(d: int) -> Game:
    """1 where more than half of the features are kept: symmetric, so all values are equal."""
    least = d // 2 + 1
    pivotal = comb(d - 1, least - 1) / 2 ** (d - 1)
    return Game(
        d,
        lambda masks: (masks.sum(axis=1, keepdims=True) >= least).astype(float),
        np.full((1, d), 1.0 / d),
        np.full((1, d), pivotal),
    )


def random_table(d: int, seed: int, classes: int = 1) -> Game:
    """An independent normal value for every mask: no structure to exploit, and no closed form."""
    table = np.random.default_rng([d, seed, 99]).normal(size=(2**d, classes))
    return Game(d, lambda masks: table[masks @ (1 << np.arange(d))])


@dataclass(frozen=True)
class Smooth:
    """p = σ(b + w·m + mᵀQm) of class 1, for any m from 0 to 1: two classes, with gradients."""

    d: int
    seed: int
    strength: float = 1.0
    pairs: float = 1.0

    @property
    def parameters(self) -> tuple[float, np.ndarray, np.ndarray]:
        rng = np.random.default_rng([self.d, self.seed, 7])
        pairs = np.triu(rng.normal(size=(self.d, self.d)), 1) * self.pairs / np.sqrt(self.d)
        return float(rng.normal()) / 2, self.strength * rng.normal(size=self.d), self.strength * pairs

    def game(self) -> Game:
        offset, weights, pairs = self.parameters

        def function(masks: np.ndarray) -> np.ndarray:
            m = masks.astype(float)
            p = 1 / (1 + np.exp(-(offset + m @ weights + ((m @ pairs) * m).sum(axis=1))))
            return np.column_stack([1 - p, p])

        def gradients(masks: np.ndarray, target: int) -> np.ndarray:
            m = masks.astype(float)
            missing = 1 - function(masks)[:, [target]]
            return (1 if target else -1) * missing * (weights + m @ (pairs + pairs.T))

        return Game(self.d, function, gradients=gradients)


def play(
    explainer: Explainer,
    game: Game,
    d: int | None = None,
    *,
    target: int = 0,
    budget: int | None = None,
    sparsities: tuple[float, ...] = DEFAULT_SPARSITIES,
    seed: int = 0,
) -> Finding:
    """Run an explainer's generator with the game as the model."""
    d = game.d if d is None else d
    prediction = game.values(np.ones((1, d), dtype=bool))[0]
    allowed = plan_budget(explainer, budget, d)
    rng = np.random.default_rng(seed)
    return converse(explainer.explain(Task(d, target, prediction, allowed, sparsities, rng)), game)


def converse(algorithm, game: Game):
    """Answer an explainer's or metric's questions with the game until it returns."""
    answer = None
    while True:
        try:
            ask = algorithm.send(answer)
        except StopIteration as stop:
            return stop.value
        if isinstance(ask, Fork):
            answer = [converse(branch, game) for branch in ask.branches]
        elif isinstance(ask, Compute):
            answer = ask.compute()
        else:
            assert ask.masks.dtype == bool
            assert ask.masks.shape[1:] == (game.d,)
            answer = differentiate(game, ask) if isinstance(ask, MaskGradients) else game(ask.masks)


def differentiate(game: Game, ask: MaskGradients) -> Gradients:
    """Values and gradients, remembered apart from the questions for values."""
    game.differentiated.append(ask.masks.copy())
    game.events.append(("gradients", ask.masks.copy()))
    return Gradients(game.values(ask.masks), game.gradients(ask.masks, ask.target))


def as_probabilities(game: Game) -> Game:
    """The same game of one class, moved and scaled into probabilities of two classes."""
    every = (np.arange(2**game.d)[:, None] >> np.arange(game.d) & 1).astype(bool)
    values = game.values(every)[:, 0]
    low, high = values.min(), values.max()

    def function(masks: np.ndarray) -> np.ndarray:
        p = 0.1 + 0.8 * (game.values(masks)[:, 0] - low) / (high - low)
        return np.column_stack([1 - p, p])

    signs = 0.8 / (high - low) * np.array([[-1.0], [1.0]])
    return Game(
        game.d,
        function,
        None if game.shapley is None else signs * game.shapley,
        None if game.banzhaf is None else signs * game.banzhaf,
    )


def as_model(game: Game):
    """A pertinent model over table rows: explain ``np.ones(d)`` with removal='constant'."""
    return pertinent.wrap(lambda rows: game(np.asarray(rows) != 0), kind="table")
