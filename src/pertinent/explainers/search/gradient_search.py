"""Gradient searches: descent on feature probabilities, and first-order swaps in a beam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Asking, Fork, MaskGradients
from pertinent.config.settings import Count, NotNegative, Positive, Share
from pertinent.explainers.base import Finding, Task, explainers
from pertinent.explainers.search import base
from pertinent.explainers.search.base import Search, SeparateSearches, largest, uniform_sets
from pertinent.explainers.search.local import VisitedSets


@explainers.register("gradient-search")
@dataclass(frozen=True)
class GradientSearch(Search):
    r"""Hase et al.'s Gradient Search.

    The state s ∈ ℝᵈ starts at N(0, I). Each update draws a set :math:`e \sim` Gumbel-Softmax(s), hard, with
    the straight-through gradient, and takes a step of AdamW on

    .. math:: -\log p(\mathrm{Replace}(x, e)) + \lambda \left( \sum_j \sigma(s_j) - t \right)^2

    (on log p for comprehensiveness). Every `check_every` updates, the k features with the largest s are
    evaluated; the best of these sets is the answer. An update costs a forward and a backward pass, a check
    one more forward pass. Only the checks depend on k, so a single descent serves all sparsities for the
    budget of one.

    Parameters
    ----------
    learning_rate, sparsity_weight
        Step size and λ.
    target_sparsity
        Share of features that determines t = ceil(share · d).
    check_every
        Number of updates between checks.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (4) and App. A.2"
    traits = replace(Search.traits, asks=(MaskGradients,))
    summary = "gradient descent on which features to choose, for each sparsity"
    learning_rate: Positive = 0.1
    sparsity_weight: NotNegative = 1e-3
    target_sparsity: Share = 0.05
    check_every: Count = 20

    def best_sets(self, task: Task, sizes: Sequence[int], log: base.SearchLog) -> Asking[dict[int, Masks]]:
        """Run one descent shared by all set sizes, and check each size separately."""
        rng = task.rng.spawn(1)[0]
        state = rng.standard_normal(task.n_features)
        step = AdamW(self.learning_rate, task.n_features)
        check = len(sizes) if self.spread else 1
        best = dict.fromkeys(sizes, -np.inf)
        seen: dict[int, set[bytes]] = {k: set() for k in sizes}
        checks = passes = 0
        while True:
            chosen = {k: largest(state, k) for k in sizes}
            objectives = yield Fork([self._checked(task, mask) for mask in chosen.values()])
            checks += check
            for (k, mask), objective in zip(chosen.items(), objectives, strict=True):
                seen[k].add(mask.tobytes())
                if objective > best[k]:
                    best[k], log.best[k] = objective, mask
                    log.improvements[k].append([len(seen[k]) + passes, float(self.signed(objective))])
            updates = min(self.check_every, (task.budget - passes - checks - check) // 2)
            if updates < 1 or min(sizes) == task.n_features:
                return log.best
            yield from task.publish(Finding(chosen=base.chosen_sets(log.best, task)))
            for _ in range(updates):
                state = step(state, (yield from self._gradient(task, state, rng)))
            passes += 2 * updates

    def _checked(self, task: Task, chosen: Masks) -> Asking[float]:
        """Return the objective of one set; each size runs in its own fork with its own budget."""
        return float((yield from self.judge(task, chosen[None]))[0])

    def _gradient(self, task: Task, state: Floats, rng: np.random.Generator) -> Asking[Floats]:
        """Return the gradient of the loss for one draw."""
        noise = rng.gumbel(size=(2, len(state)))
        soft = _sigmoid(state + noise[0] - noise[1])
        _, gain = yield from self.gains(task, (soft > 0.5)[None])
        share = _sigmoid(state)
        excess = share.sum() - ceil(self.target_sparsity * len(state))
        penalty = 2 * self.sparsity_weight * excess * share * (1 - share)
        return np.asarray(-gain[0] * soft * (1 - soft) + penalty)


class AdamW:
    """AdamW (Loshchilov & Hutter 2019, Alg. 2) with torch's defaults; without `decay` it is Adam.

    Implemented in numpy, because torch's optimiser takes five times as long for a few hundred parameters.
    """

    def __init__(self, rate: float, n: int, decay: float = 0.01) -> None:
        self.rate = rate
        self.decay = decay
        self.steps = 0
        self.mean, self.square = np.zeros(n), np.zeros(n)

    def __call__(self, state: Floats, gradient: Floats) -> Floats:
        """Return the state after one step."""
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        shrinkage = 1 - self.decay * self.rate
        return np.asarray(state * shrinkage - self.rate * mean / (np.sqrt(square) + 1e-8))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))


@explainers.register("taylor-search")
@dataclass(frozen=True)
class TaylorSearch(SeparateSearches):
    """Hase et al.'s Taylor Search, after HotFlip.

    1. Start at a random set.
    2. With g the gradient of the objective along the mask, swapping i out and j in changes the objective by
       about g_j − g_i. Each set in the beam proposes its `width` best new swaps.
    3. The proposals are evaluated, and the `width` best form the next beam.

    A gradient costs a forward and a backward pass. The best set evaluated is the answer.

    Parameters
    ----------
    width
        Width of the beam, and number of proposals per set.
    steps
        Largest number of steps; by default as many as the budget allows.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (5) and App. A.2"
    traits = replace(SeparateSearches.traits, asks=(MaskGradients,))
    summary = "first-order swaps in a beam, for each sparsity"
    width: Count = 3
    steps: Count | None = None

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Move the beam until the budget is spent."""
        beam = uniform_sets(rng, 1, task.n_features, k)
        best, best_set = (yield from self.judge(task, beam))[0], beam[0]
        spent, step = 1, 0
        visited = VisitedSets(beam)
        while k < task.n_features and (self.steps is None or step < self.steps):
            beam = beam[: (task.budget - spent) // (2 + 1)]
            if not len(beam):
                break
            _, gains = yield from self.gains(task, beam)
            spent += 2 * len(beam)
            proposals = []
            for chosen, gain in zip(beam, gains, strict=True):
                proposals += visited.best_swaps(chosen, gain, self.width)
            proposals = proposals[: task.budget - spent]
            if not proposals:
                break
            sets = np.array(proposals)
            objective = yield from self.judge(task, sets)
            spent += len(sets)
            step += 1
            order = np.argsort(-objective, kind="stable")
            if objective[order[0]] > best:
                best, best_set = objective[order[0]], sets[order[0]]
            beam = sets[order[: self.width]]
        return np.asarray(best_set)
