"""Cooperative games with known values, and a driver that lets an explainer play them without a model.

Every game here is a sum of unanimity games, v(S) = Σ_T m_T · [T ⊆ S], or the majority game. The Shapley
value divides each m_T equally among the members of T; the Banzhaf value gives each member m_T / 2^(|T|−1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

import pertinent
from pertinent.array_types import Floats, Masks
from pertinent.asks import Algorithm, Compute, Fork, Gradients, MaskGradients, Publish
from pertinent.explainers.base import DEFAULT_SPARSITIES, Explainer, Finding, Task, plan_budget
from pertinent.masks import all_coalitions, full_mask
from pertinent.models.base import Model


@dataclass(eq=False)
class RecordedGame:
    """A function from masks (masks, features) to values (masks, classes) that logs all questions.

    Attributes
    ----------
    shapley, banzhaf
        Shapley and Banzhaf values (classes, features), if known.
    gradients
        Function from masks and a target to the gradients of its log-probability with respect to the masks.
    questions, differentiated
        Masks of each question for values and for gradients.
    events
        All questions in order: ``"values"`` or ``"gradients"``, and the masks.
    """

    d: int
    function: Callable[[Masks], Floats]
    shapley: Floats | None = None
    banzhaf: Floats | None = None
    gradients: Callable[[Masks, int], Floats] | None = None
    questions: list[Masks] = field(default_factory=list)
    differentiated: list[Masks] = field(default_factory=list)
    events: list[tuple[str, Masks]] = field(default_factory=list)

    def __call__(self, masks: Masks) -> Floats:
        """Return the values of masks and log the question."""
        self.questions.append(masks.copy())
        self.events.append(("values", masks.copy()))
        return self.values(masks)

    def values(self, masks: Masks) -> Floats:
        """Return the values of masks without logging them."""
        return self.function(np.asarray(masks, dtype=np.bool_))

    def differentiate(self, ask: MaskGradients) -> Gradients:
        """Return values and gradients and log the question."""
        assert self.gradients is not None
        masks: Any = ask.masks
        self.differentiated.append(masks.copy())
        self.events.append(("gradients", masks.copy()))
        return Gradients(self.values(masks), self.gradients(masks, ask.target))

    @property
    def calls(self) -> int:
        """Return the number of questions for values."""
        return len(self.questions)

    @property
    def masks(self) -> Masks:
        """Return all masks of the questions for values, in order, including repetitions."""
        return np.concatenate(self.questions) if self.questions else np.empty((0, self.d), dtype=np.bool_)

    @property
    def distinct(self) -> int:
        """Return the number of distinct masks of the questions for values."""
        return len(np.unique(self.masks, axis=0))


def sum_of_unanimity(
    d: int, sets: Iterable[Iterable[int]], weights: Any, offset: float = 0.0
) -> RecordedGame:
    """Return v(S) = offset + Σ_T m_T [T ⊆ S]; `weights` are (sets,) or (sets, classes)."""
    member = np.zeros((len(weights), d))
    for row, members in enumerate(sets):
        member[row, list(members)] = 1.0
    weights = np.atleast_2d(np.asarray(weights, dtype=float).T).T
    size = member.sum(axis=1)

    def function(masks: Masks) -> Floats:
        return np.asarray(offset + (masks @ member.T == size).astype(float) @ weights)

    shapley = weights.T @ (member / size[:, None])
    banzhaf = weights.T @ (member / 2.0 ** (size - 1)[:, None])
    return RecordedGame(d, function, shapley, banzhaf)


def additive(weights: Any, offset: float = 0.0) -> RecordedGame:
    """Return a game in which each feature adds its weight, independently of the other features."""
    return sum_of_unanimity(len(weights), [[i] for i in range(len(weights))], np.asarray(weights), offset)


def unanimity(d: int, members: Iterable[int]) -> RecordedGame:
    """Return a game that is 1 if all members are kept, otherwise 0."""
    return sum_of_unanimity(d, [list(members)], np.array([1.0]))


def random_interactions(d: int, seed: int, *, order: int = 2, classes: int = 1) -> RecordedGame:
    """Return a game in which every set of 1 … `order` features has a random normal weight for each class."""
    rng = np.random.default_rng([d, seed, order])
    sets = [c for size in range(1, order + 1) for c in combinations(range(d), size)]
    scale = np.array([1.0 / np.sqrt(comb(d, len(c))) for c in sets])
    return sum_of_unanimity(d, sets, rng.normal(size=(len(sets), classes)) * scale[:, None])


def majority(d: int) -> RecordedGame:
    """Return a game that is 1 if more than half of the features are kept."""
    least = d // 2 + 1
    pivotal = comb(d - 1, least - 1) / 2 ** (d - 1)
    return RecordedGame(
        d,
        lambda masks: (masks.sum(axis=1, keepdims=True) >= least).astype(float),
        np.full((1, d), 1.0 / d),
        np.full((1, d), pivotal),
    )


def random_table(d: int, seed: int, classes: int = 1) -> RecordedGame:
    """Return a game with an independent normal value for every mask and no structure to exploit."""
    table = np.random.default_rng([d, seed, 99]).normal(size=(2**d, classes))
    return RecordedGame(d, lambda masks: table[masks @ (1 << np.arange(d))])


@dataclass(frozen=True)
class Smooth:
    """A two-class game with p = σ(b + w·m + mᵀQm) for class 1, for any m from 0 to 1.

    Attributes
    ----------
    strength
        Scale of the weights w and Q.
    pairs
        Scale of the interactions Q relative to the weights w.
    """

    d: int
    seed: int
    strength: float = 1.0
    pairs: float = 1.0

    @property
    def parameters(self) -> tuple[float, Floats, Floats]:
        """Return b, w and Q."""
        rng = np.random.default_rng([self.d, self.seed, 7])
        pairs = np.triu(rng.normal(size=(self.d, self.d)), 1) * self.pairs / np.sqrt(self.d)
        return float(rng.normal()) / 2, self.strength * rng.normal(size=self.d), self.strength * pairs

    def game(self) -> RecordedGame:
        """Return the game, which has gradients."""
        offset, weights, pairs = self.parameters

        def function(masks: Masks) -> Floats:
            m = masks.astype(float)
            p = 1 / (1 + np.exp(-(offset + m @ weights + ((m @ pairs) * m).sum(axis=1))))
            return np.column_stack([1 - p, p])

        def gradients(masks: Masks, target: int) -> Floats:
            m = masks.astype(float)
            missing = 1 - function(masks)[:, [target]]
            return np.asarray((1 if target else -1) * missing * (weights + m @ (pairs + pairs.T)))

        return RecordedGame(self.d, function, gradients=gradients)


def as_probabilities(game: RecordedGame) -> RecordedGame:
    """Return a one-class game shifted and scaled into probabilities of two classes."""
    values = game.values(all_coalitions(game.d))[:, 0]
    low, high = values.min(), values.max()

    def function(masks: Masks) -> Floats:
        p = 0.1 + 0.8 * (game.values(masks)[:, 0] - low) / (high - low)
        return np.column_stack([1 - p, p])

    signs = 0.8 / (high - low) * np.array([[-1.0], [1.0]])
    shapley, banzhaf = (None if v is None else signs * v for v in (game.shapley, game.banzhaf))
    return RecordedGame(game.d, function, shapley, banzhaf)


def as_model(game: RecordedGame) -> Model:
    """Return a model over table rows: explain ``np.ones(d)`` with ``removal="constant"``."""
    return pertinent.wrap(lambda rows: game(np.asarray(rows) != 0), kind="table")


def play(
    explainer: Explainer,
    game: RecordedGame,
    *,
    target: int = 0,
    budget: int | None = None,
    sparsities: tuple[float, ...] = DEFAULT_SPARSITIES,
    seed: int = 0,
) -> Finding:
    """Run an explainer with the game as the model and return its finding.

    >>> from pertinent.explainers.leave_one_out import LeaveOneOut
    >>> play(LeaveOneOut(), additive([1.0, 2.0])).scores.tolist()
    [[1.0, 2.0]]
    """
    prediction = game.values(full_mask(game.d))[0]
    allowed = plan_budget(explainer, budget, game.d)
    rng = np.random.default_rng(seed)
    finding: Finding = answer(
        explainer.explain(Task(game.d, target, prediction, allowed, sparsities, rng)), game
    )
    return finding


def answer(algorithm: Algorithm, game: RecordedGame) -> Any:
    """Answer the questions of an explainer or metric with the game and return the result."""
    reply: Any = None
    while True:
        try:
            ask = algorithm.send(reply)
        except StopIteration as stop:
            return stop.value
        if isinstance(ask, Fork):
            reply = [answer(branch, game) for branch in ask.branches]
        elif isinstance(ask, Compute):
            reply = ask.compute()
        elif isinstance(ask, Publish):
            reply = None
        else:
            masks: Masks = ask.masks  # type: ignore[attr-defined]
            assert masks.dtype == np.bool_ and masks.shape[1:] == (game.d,)
            reply = game.differentiate(ask) if isinstance(ask, MaskGradients) else game(masks)
