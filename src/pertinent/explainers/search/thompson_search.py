"""Thompson search: a linear model fitted to all answers proposes the next sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from math import comb
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import Asking, Compute
from pertinent.config.settings import Count, NotNegative, Range
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.search.base import uniform_sets
from pertinent.explainers.search.linear_posterior import LinearPosterior
from pertinent.explainers.search.local import LocalSearch, first_sets
from pertinent.masks import all_coalitions

MOST = 250
"""Largest number of answers used to fit the model: those closest to the best set."""

GROWTH = 1 / 8, 1 / 2
"""Smallest batch size, as a share of the number of answers, because smaller batches change little.

The first share applies initially, the second once there are `ENOUGH` answers per feature.
"""

ENOUGH = 16
"""Number of answers per feature beyond which further answers hardly change the model."""

SWAPS = np.array([1, 2, 4, 8, 16])
"""Limits on the number of swaps between a proposal and a best set, used cyclically."""

WIDTH = 2
"""Number of features outside, and inside, a known set that are exchanged to reach a new set."""

LEADERS = 3
"""Number of best sets from which proposals start."""

FAR = 1e-3
"""Smallest weight of an answer."""


@explainers.register("thompson-search")
@dataclass(frozen=True)
class ThompsonSearch(LocalSearch):
    r"""A search that learns from all answers, unlike Parallel Local Search.

    1. Evaluate `initial` uniform random sets; with `start`, the first is the set chosen by that method.
    2. Fit a Bayesian linear model :math:`y \approx \theta^\top e` of the target's log-odds y (negated for
       comprehensiveness; for a regressor the objective), in which a set e that differs from the best one in h
       features has the weight :math:`\exp(-\mathtt{near} \cdot h / k)`; noise and prior variance maximise the
       marginal likelihood.
    3. Draw `batch` samples of θ from the posterior, more if there are many answers. Each proposes the k
       features with the largest θ. A share `local` of the draws starts from one of the three best sets and
       makes only the 1, 2, 4, 8 or 16 best swaps towards that proposal. If a proposal is not new, it is
       replaced by the best new exchange of one or two features, chosen among those with the largest and
       smallest θ or at random, and if these are not new either, by a uniform random set. Evaluate the
       proposals and repeat from 2.

    Uncertain features vary between draws and are therefore tried; exploration needs no setting. If the budget
    covers all sets, all are evaluated.

    Parameters
    ----------
    initial
        Number of random sets evaluated before the first fit.
    batch
        Number of posterior draws per round.
    local
        Share of draws that start from one of the three best sets.
    near
        Decay of a set's weight with its distance from the best set; 0 weighs all sets equally.
    """

    paper = "pertinent (Thompson 1933 on a local linear model of the objective)"
    summary = "sets proposed by a linear model of all answers, for each sparsity"
    initial: Annotated[int, Range(at_least=2)] = 20
    batch: Count = 8
    local: Annotated[float, Range(at_least=0, at_most=1)] = 0.6
    near: NotNegative = 2.0

    def search_from(self, start: Masks | None, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Evaluate, fit and propose until the budget is spent."""
        d, budget = task.n_features, task.budget
        if comb(d, k) <= budget:
            return (yield from self.best_of_all(task, k))
        sets = first_sets(rng, min(self.initial, budget), d, k, start)
        seen, posterior = SeenSets(sets, rng), LinearPosterior(rng)
        evidence = self._evidence(task, (yield from self.judge(task, sets)))
        while len(sets) < budget:
            n = min(max(self.batch, int(growth(len(sets), d) * len(sets))), budget - len(sets))
            propose = partial(self._propose, posterior, sets, evidence, seen, n)
            new, posterior, seen = yield Compute(propose, portable=True)
            if not len(new):
                new = seen.uniform(posterior.rng, n, d, k)
            evidence = np.append(evidence, self._evidence(task, (yield from self.judge(task, new))))
            sets = np.concatenate([sets, new])
        return np.asarray(sets[evidence.argmax()])

    def _evidence(self, task: Task, objective: Floats) -> Floats:
        """Return the target's log-odds if `objective` is p, negated if it is −p; else the objective."""
        if task.output.kind == "value":
            return objective
        p = np.clip(np.abs(objective), 1e-9, 1 - 1e-9)
        return self.signed(np.log(p / (1 - p)))

    def _propose(
        self, posterior: LinearPosterior, sets: Masks, evidence: Floats, seen: SeenSets, n: int
    ) -> tuple[Masks, LinearPosterior, SeenSets]:
        """Return up to `n` new sets, the updated posterior and the seen sets."""
        best = sets[np.argsort(-evidence, kind="stable")[:LEADERS]]
        k = int(best[0].sum())
        distance = k - (sets.astype(np.float32) @ best[0].astype(np.float32)).astype(np.int32)
        nearest = np.argsort(distance, kind="stable")[:MOST]
        weight = np.exp(-self.near * distance[nearest] / k) + FAR
        thetas = posterior.draw(sets[nearest], evidence[nearest], weight, n)
        order, number = np.argsort(-thetas, axis=1), np.arange(n)
        starts, is_local = best[number % len(best)], number < self.local * n
        limits = np.where(is_local, SWAPS[number // len(best) % len(SWAPS)], k)
        proposed = toward(order, starts, limits)
        is_new = seen.add(proposed)
        new = [proposed[is_new]]
        bases = np.where(is_local[:, None], starts, proposed)[~is_new]
        thetas, order = thetas[~is_new], order[~is_new]
        if len(bases):
            exchanged, left = seen.best_exchanges(bases, thetas, order)
            new.append(exchanged)
            if len(left):
                shuffled = posterior.rng.permuted(order[left], axis=1)
                new.append(seen.best_exchanges(bases[left], thetas[left], shuffled)[0])
        return np.concatenate(new), posterior, seen


def growth(n_answers: int, d: int) -> float:
    """Return the smallest batch size, as a share of the number of answers."""
    least, most = GROWTH
    return float(np.clip(n_answers / (ENOUGH * d) * most, least, most))


def toward(order: Ints, starts: Masks, limits: Ints) -> Masks:
    """Return the starts after at most `limits` best swaps towards the first k features of `order`."""
    k = int(starts[0].sum())
    rows = np.arange(len(order))[:, None]
    inside = starts[rows, order]  # by rank
    enters, leaves = ~inside[:, :k], inside[:, k:]
    n_swaps = enters.sum(axis=1, keepdims=True)
    enters &= np.cumsum(enters, axis=1, dtype=np.int32) <= limits[:, None]
    leaves = leaves & (np.cumsum(leaves, axis=1, dtype=np.int32) > n_swaps - limits[:, None])
    moved = starts.copy()
    moved[rows, order[:, :k]] |= enters
    moved[rows, order[:, k:]] &= ~leaves
    return moved


class SeenSets:
    """The sets proposed so far, each identified by the XOR of one random word per feature."""

    def __init__(self, sets: Masks, rng: np.random.Generator) -> None:
        self._words = rng.integers(1 << 62, size=sets.shape[1])
        self._keys: set[int] = set()
        self.add(sets)

    def add(self, sets: Masks) -> Masks:
        """Mark sets as seen and return whether each was new."""
        n_before = [len(self._keys)]
        for key in self._keys_of(sets).tolist():
            self._keys.add(key)
            n_before.append(len(self._keys))
        return np.diff(n_before) > 0

    def _keys_of(self, sets: Masks) -> Ints:
        return np.asarray(np.bitwise_xor.reduce(np.where(sets, self._words, 0), axis=-1))

    def uniform(self, rng: np.random.Generator, n: int, d: int, k: int) -> Masks:
        """Return up to `n` new uniform random sets."""
        drawn = uniform_sets(rng, len(self._keys) + n, d, k)
        new = [key not in self._keys for key in self._keys_of(drawn).tolist()]
        sets = drawn[new][:n]
        self.add(sets)
        return sets

    def best_exchanges(self, bases: Masks, gains: Floats, order: Ints) -> tuple[Masks, Ints]:
        """Return the new set with the largest gain for each base, after up to `WIDTH` swaps.

        Only the first `WIDTH` features outside and the last `WIDTH` inside, by `order`, are exchanged. Also
        return the indices of the bases without a new set.
        """
        rows, k = np.arange(len(bases))[:, None], int(bases[0].sum())
        inside = bases[rows, order]
        n_out, n_in = min(WIDTH, bases.shape[1] - k), min(WIDTH, k)
        first = np.cumsum(~inside, axis=1, dtype=np.int32) <= n_out
        last = np.cumsum(inside, axis=1, dtype=np.int32) > k - n_in
        outsiders, insiders = (
            order[first & ~inside].reshape(-1, n_out),
            order[last & inside].reshape(-1, n_in),
        )
        enter, leave = exchanges(n_out, n_in)
        gain = gains[rows, outsiders] @ enter.T.astype(np.float64)
        gain -= gains[rows, insiders] @ leave.T.astype(np.float64)
        keys = self._keys_of_some(outsiders, enter) ^ self._keys_of_some(insiders, leave)
        keys ^= self._keys_of(bases)[:, None]
        ranked = np.argsort(-gain, axis=1, kind="stable")
        first_new = np.array([self._first_new(row) for row in keys[rows, ranked].tolist()])
        has_new = np.flatnonzero(first_new >= 0)
        chosen = ranked[has_new, first_new[has_new]]
        sets, rows = bases[has_new], rows[: len(has_new)]
        sets[rows, outsiders[has_new]], sets[rows, insiders[has_new]] = enter[chosen], ~leave[chosen]
        return sets, np.flatnonzero(first_new < 0)

    def _first_new(self, keys: list[int]) -> int:
        """Return the index of the first new key and mark it as seen; −1 if there is none."""
        index = next((i for i, key in enumerate(keys) if key not in self._keys), -1)
        self._keys.add(keys[index])
        return index

    def _keys_of_some(self, features: Ints, which: Masks) -> Ints:
        """Return the keys (rows, sets) of the sets of features (rows, n) selected by `which` (sets, n)."""
        keys, words = np.zeros((len(features), len(which)), dtype=np.int64), self._words.take(features)
        for i in range(which.shape[1]):
            keys ^= np.where(which[:, i], words[:, i, None], 0)
        return keys


@cache
def exchanges(n_out: int, n_in: int) -> tuple[Masks, Masks]:
    """Return all exchanges of equally many features: which of `n_out` enter and which of `n_in` leave."""
    out, into = all_coalitions(n_out), all_coalitions(n_in)
    pairs = [(a, b) for a in out for b in into if 0 < a.sum() == b.sum()]
    enter, leave = map(np.array, zip(*pairs, strict=True))
    return enter, leave
