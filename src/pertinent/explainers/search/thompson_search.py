"""Thompson search: a linear model is fitted to all answers and proposes what to ask next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import comb
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Arithmetic, Asking
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.search.base import largest, uniform_sets
from pertinent.explainers.search.local import LocalSearch, Seen, first_sets
from pertinent.settings import Count, NotNegative, Range

RATIOS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Candidate noise-to-signal ratios; the most likely one is used."""

MOST = 256
"""Largest number of answers that the model is fitted to: those closest to the best set."""

GROWTH = 16
"""A batch has at least 1/16 as many sets as there are answers, because fewer would change little."""

FAR = 1e-3
"""The smallest weight of an answer."""


@explainers.register("thompson-search")
@dataclass(frozen=True)
class ThompsonSearch(LocalSearch):
    r"""A search of our own, which learns from all answers; Parallel Local Search does not.

    1. Evaluate `initial` uniform random sets; with `start` the first is the set that this method chose.
    2. Fit a Bayesian linear model :math:`y \approx \theta^\top e` of the target's log-odds y (their
       negative for comprehensiveness; a regressor's objective itself), in which a set e that
       differs from the best in h features weighs :math:`\exp(-\texttt{near} \cdot h / k)`; noise
       and prior variance maximise the marginal likelihood.
    3. Draw `batch` samples of θ from the posterior, more if there are many answers. A share `local`
       of them propose the best swap in one of the three best sets, the others the k features with
       the largest θ (or the best new swap from there); if all of these are known, propose uniform
       random sets. Evaluate the proposals and repeat from 2.

    Uncertain features vary between draws and so get tried, so no setting is needed for exploration.
    If the budget covers all sets, all of them are evaluated.
    """

    paper = "pertinent (Thompson 1933 on a local linear model of the objective)"
    summary = "a linear model of the answers proposes the next sets, for each sparsity"
    initial: Annotated[int, Range(at_least=2)] = 20
    batch: Count = 8
    local: Annotated[float, Range(at_least=0, at_most=1)] = 0.6
    near: NotNegative = 2.0

    def search_from(self, start: Masks | None, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Ask, learn, propose, until the budget is spent."""
        d, budget = task.n_features, task.budget
        if comb(d, k) <= budget:
            return (yield from self.best_of_all(task, k))
        sets = first_sets(rng, min(self.initial, budget), d, k, start)
        seen = Seen(sets)
        evidence = self._evidence(task, (yield from self.judge(task, sets)))
        while len(sets) < budget:
            n = min(max(self.batch, len(sets) // GROWTH), budget - len(sets))
            proposed = yield Arithmetic(partial(self._propose, sets, evidence, seen, n, rng))
            new = np.array(proposed) if proposed else unseen(rng, n, d, k, seen)
            evidence = np.append(evidence, self._evidence(task, (yield from self.judge(task, new))))
            sets = np.concatenate([sets, new])
        return np.asarray(sets[evidence.argmax()])

    def _evidence(self, task: Task, objective: Floats) -> Floats:
        """The target's log-odds if `objective` is p, minus those if it is −p; else the objective itself."""
        if task.output.kind == "value":
            return objective
        p = np.clip(np.abs(objective), 1e-9, 1 - 1e-9)
        return self.signed(np.log(p / (1 - p)))

    def _propose(
        self, sets: Masks, evidence: Floats, seen: Seen, n: int, rng: np.random.Generator
    ) -> list[Masks]:
        """Up to `n` new sets."""
        best = sets[np.argsort(-evidence, kind="stable")[:3]]
        apart = (sets != best[0]).sum(axis=1) / 2
        weight = np.exp(-self.near * apart / best[0].sum()) + FAR
        proposed: list[Masks] = []
        for number, theta in enumerate(draw_posterior(sets, evidence, weight, n, rng)):
            near = number < self.local * n
            chosen = best[number % len(best)] if near else largest(theta, int(best[0].sum()))
            proposed += [chosen] if seen.is_new(chosen) else seen.best_swaps(chosen, theta, 1)
        return proposed


def unseen(rng: np.random.Generator, n: int, d: int, k: int, seen: Seen) -> Masks:
    """Up to `n` uniform random sets that are new; marks them as seen."""
    drawn = uniform_sets(rng, len(seen.names) + n, d, k)
    return np.array(list(islice((chosen for chosen in drawn if seen.is_new(chosen)), n)))


def draw_posterior(sets: Masks, evidence: Floats, weight: Floats, n: int, rng: np.random.Generator) -> Floats:
    """`n` draws of θ (n, features) from the posterior of a weighted Bayesian linear regression.

    A draw from the prior is corrected by how far it misses the evidence (Matheron's rule), which
    solves a system of the size of the answers or of the features, whichever are fewer.
    """
    nearest = np.argsort(-weight, kind="stable")[:MOST]
    sets, evidence, weight = sets[nearest], evidence[nearest], weight[nearest]
    share = weight / weight.sum()
    root = np.sqrt(share * len(share))
    centred = (sets - share @ sets) * root[:, None]
    response = evidence - share @ evidence
    response = response / (np.sqrt(share @ response**2) + 1e-12) * root
    powers, basis = decomposed(centred)
    noise, prior = likeliest(powers, response, basis)
    drawn = rng.standard_normal((n, sets.shape[1])) * np.sqrt(prior)
    missed = response - drawn @ centred.T - rng.standard_normal((n, len(sets))) * np.sqrt(noise * prior)
    return np.asarray(drawn + ((missed @ basis) / (powers + noise)) @ basis.T @ centred)


def decomposed(rows: Floats) -> tuple[Floats, Floats]:
    """The nonzero squared singular values of a matrix, and their left singular vectors."""
    wide = rows.shape[0] <= rows.shape[1]
    powers, basis = np.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    real = powers > 1e-9 * max(float(powers[-1]), 1e-9)
    powers, basis = powers[real], basis[:, real]
    return powers, basis if wide else rows @ basis / np.sqrt(powers)


def likeliest(powers: Floats, response: Floats, basis: Floats) -> tuple[float, float]:
    """The noise variance relative to the prior variance, and the prior variance, by marginal likelihood."""
    n, flat = len(response), len(response) - len(powers)
    along = (basis.T @ response) ** 2
    beside = max(float(response @ response - along.sum()), 0.0)
    best = (-np.inf, 1.0, 1.0)
    for ratio in RATIOS:
        noise = ratio * max(float(powers.sum()) / n, 1e-9)
        spread = powers + noise
        prior = (float((along / spread).sum()) + beside / noise) / n
        likelihood = -n * np.log(prior + 1e-300) - np.log(spread).sum() - flat * np.log(noise)
        best = max(best, (float(likelihood), noise, prior))
    return best[1], best[2]
