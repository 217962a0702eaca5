"""KernelSHAP: Shapley values as a weighted regression."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, islice
from math import comb
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import Compute, Values
from pertinent.config.settings import Range
from pertinent.errors import BudgetError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.explainers.search.base import as_masks
from pertinent.explainers.shapley.error_bounds import limit_errors, may_fit_by_chance
from pertinent.masks import mask_bytes
from pertinent.stats import student_factor

RIDGE = 0.02
"""Twice the ridge weight, in units of the mean eigenvalue, when there are as many equations as features."""

MOST_FEATURES = 3000
"""Largest number of features for which the regression is solved within seconds."""


@dataclass(frozen=True, eq=False)
class Coalitions:
    """One mask of each pair of complements, and the weight of each pair.

    The first `complete` pairs cover their sizes exhaustively; the others are a sample.
    """

    pairs: Masks
    weight: Floats
    complete: int

    def first(self, n: int) -> Coalitions:
        """Return the first n pairs; the sampled pairs kept share the total weight of all sampled pairs."""
        sampled = self.weight[self.complete :].sum() / self.weight[self.complete : n].sum()
        weight = np.append(self.weight[: self.complete], self.weight[self.complete : n] * sampled)
        return Coalitions(self.pairs[:n], weight, self.complete)


@explainers.register("kernel-shap")
@dataclass(frozen=True)
class KernelShap(Explainer):
    r"""The additive model that fits the game best under the Shapley kernel.

    .. math:: \min_\phi \sum_S \frac{d-1}{\binom{d}{|S|}|S|(d-|S|)}
        \Bigl(v(S) - v(\emptyset) - \sum_{i \in S} \phi_i\Bigr)^2
        \quad \text{s.t.} \quad \sum_i \phi_i = v(N) - v(\emptyset)

    Sizes are enumerated exhaustively while the budget allows, smallest and largest first; the rest is sampled
    in pairs of a mask and its complement. With all coalitions the result is the Shapley value.

    Parameters
    ----------
    samples
        Number of masks in addition to the empty and the full one; by default the rest of the budget.
    """

    paper = "Lundberg & Lee 2017, Thm. 2; paired sampling: Covert & Lee 2021"
    traits = Traits(evaluations_per_feature=2, all_classes=True, adds_up=True, standard_errors=True)
    summary = "Shapley values by weighted regression"
    samples: Annotated[int, Range(at_least=2)] | None = None

    def evaluations(self, n_features: int) -> int | None:
        """Return the number of samples plus 2, for the empty and the full mask."""
        return None if self.samples is None else min(self.samples + 2, 2**n_features)

    def min_budget(self, n_features: int) -> int:
        """Return the evaluations of the empty mask, the full mask and d − 1 pairs (one per equation)."""
        if n_features > MOST_FEATURES:
            raise BudgetError(
                f"kernel-shap supports at most {MOST_FEATURES:,} features, but the input has "
                f"{n_features:,}. Use shapley-sampling or coarser features."
            )
        return self.evaluations(n_features) or 2 * n_features

    def explain(self, task: Task) -> Steps:
        """Evaluate the coalitions and solve the regression."""
        d = task.n_features
        ends = yield from task.ask_empty_and_full()
        gain = ends[1] - ends[0]
        if d == 1:
            return Finding(gain[:, None], np.zeros_like(gain)[:, None], base_values=ends[0])
        drawn = coalitions(d, (self.samples or task.budget - 2) // 2, int(task.rng.integers(2**62)))
        values = np.empty((2, 0, len(gain)))  # of masks, and of their complements
        for size in task.rounds(drawn.complete + d, len(drawn.pairs)):
            more = drawn.pairs[values.shape[1] : size]
            answers = yield Values(np.concatenate([more, ~more]))
            values = np.concatenate([values, answers.reshape(2, len(more), -1)], axis=1)
            if size < len(drawn.pairs):
                yield from task.publish(partial(_finish, task, drawn.first(size), values, ends))
        solved = yield Compute(partial(_solve, drawn, values, ends), portable=True)
        return _finish(task, drawn, values, ends, solved)


def _solve(coalitions: Coalitions, values: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Solve the regression on the values of masks and complements (2, pairs, columns)."""
    return solve(coalitions, values.reshape(-1, values.shape[2]) - ends[0], ends[1] - ends[0])


def _finish(
    task: Task,
    coalitions: Coalitions,
    values: Floats,
    ends: Floats,
    solved: tuple[Floats, Floats] | None = None,
) -> Finding:
    """Return the finding of a regression; it is exact if no coalitions were sampled."""
    scores, errors = solved or _solve(coalitions, values, ends)
    finding = Finding(scores.T, errors.T, base_values=ends[0])
    n, d = coalitions.pairs.shape
    if n == coalitions.complete:
        return finding
    answers = np.concatenate([ends, values.reshape(-1, values.shape[2])])
    return limit_errors(task, finding, answers, may_fit_by_chance(answers, n - d + 1))


def _inverse(gram: Floats) -> Floats:
    """Return the pseudo-inverse of a matrix whose rows sum to zero.

    If its null space contains nothing else, adding a constant makes it regular. A Cholesky factorisation,
    which is an order of magnitude faster, is then sufficient.
    """
    d = len(gram)
    constant = np.full((d, d), 1.0 / d)
    scale = gram.trace() / d
    with suppress(np.linalg.LinAlgError):
        root = np.linalg.cholesky(gram + scale * constant)
        if root.diagonal().min() ** 2 >= 1e-10 * scale:
            return np.asarray(np.linalg.inv(gram + scale * constant) - constant / scale)
    return np.asarray(np.linalg.pinv(gram, rcond=1e-12, hermitian=True))


@lru_cache(maxsize=64)
def coalitions(d: int, n_pairs: int, seed: int) -> Coalitions:
    """Return `draw_coalitions`, cached for inputs of the same size."""
    drawn = draw_coalitions(d, n_pairs, np.random.default_rng(seed))
    drawn.pairs.flags.writeable = False
    return drawn


def draw_coalitions(d: int, n_pairs: int, rng: np.random.Generator) -> Coalitions:
    """Return at most `n_pairs` pairs of a mask and its complement, weighted by the Shapley kernel."""
    sizes = np.arange(1, d // 2 + 1)
    weight = np.array([(d - 1) / (s * (d - s)) * (2 if 2 * s != d else 1) for s in sizes])
    weight /= weight.sum()
    counts = [n_pairs_of(d, s) for s in sizes.tolist()]
    masks: list[Masks] = []
    weights: list[Floats] = []
    covered = 0
    for size, share, count in zip(sizes.tolist(), weight, counts, strict=True):
        left = n_pairs - sum(map(len, masks))
        if count > left or left * share / weight[covered:].sum() < count * (1 - 1e-9):
            break
        masks.append(all_pairs(d, size))
        weights.append(np.full(count, share / count))
        covered += 1
    complete = sum(map(len, masks))
    if covered < len(sizes) and n_pairs > complete:
        sampled, counted = _sample_pairs(d, sizes[covered:], weight[covered:], n_pairs - complete, rng)
        masks.append(sampled)
        weights.append(weight[covered:].sum() * counted / counted.sum())
    return Coalitions(np.concatenate(masks), np.concatenate(weights), complete)


def n_pairs_of(d: int, size: int) -> int:
    """Return the number of subsets of one size, counting each pair of complements once."""
    return comb(d, size) // (2 if 2 * size == d else 1)


def all_pairs(d: int, size: int) -> Masks:
    """Return all subsets of one size, with only one of each pair of complements."""
    return as_masks(islice(combinations(range(d), size), n_pairs_of(d, size)), d)


def _sample_pairs(
    d: int, sizes: Ints, weight: Floats, n: int, rng: np.random.Generator
) -> tuple[Masks, Floats]:
    """Return up to `n` distinct pairs, and how often each was drawn."""
    counts: dict[bytes, int] = {}
    masks: list[Masks] = []
    for _ in range(5):
        size = rng.choice(sizes, size=n, p=weight / weight.sum())
        drawn = np.argsort(rng.random((n, d)), axis=1).argsort(axis=1) < size[:, None]
        drawn ^= drawn[:, :1] & (2 * size == d)[:, None]
        for key, mask in zip(mask_bytes(drawn), drawn, strict=True):
            if key not in counts:
                if len(counts) == n:  # more draws would only repeat pairs and favour small sizes
                    return np.array(masks), np.array([*counts.values()], dtype=np.float64)
                counts[key] = 0
                masks.append(mask)
            counts[key] += 1
    return np.array(masks), np.array([*counts.values()], dtype=np.float64)


def solve(coalitions: Coalitions, values: Floats, gain: Floats) -> tuple[Floats, Floats]:
    """Return the solution of the constrained regression (features, classes), and its standard errors.

    The constraint is met by sharing the gain equally and fitting the residual with scores that sum to zero.
    If there are several solutions, the minimum-norm solution is used, which favours no feature. A mask and
    its complement form one equation, for half the difference of their values. With fewer than 1.5 d
    equations, a small ridge keeps the error bounded, unless d or more equations are solved exactly. Standard
    errors come from the jackknife (HC3): each residual is that of the fit without its pair.
    """
    (n, d), complete = coalitions.pairs.shape, coalitions.complete
    share = coalitions.pairs.mean(axis=1, keepdims=True)
    design = coalitions.pairs - share
    response = (values[:n] - values[n:]) / 2 - (share - 0.5) * gain
    weighted = design * coalitions.weight[:, None]
    gram = design.T @ weighted
    lever = weighted @ _inverse(gram)
    phi = lever.T @ response  # relative to gain / d
    exact = n >= d and bool(np.abs(response - design @ phi).max() <= 1e-6 * np.abs(response).max())
    if complete < n < 1.5 * d and not exact:
        gram += RIDGE * (1.5 * d / n - 1) * gram.trace() / (d - 1) * (np.eye(d) - 1 / d)
        lever = weighted @ _inverse(gram)
        phi = lever.T @ response
    if complete < n < d:  # an exact fit has no residuals to estimate errors from
        return gain / d + phi, np.full_like(phi, np.nan)
    leverage = np.minimum((lever * design).sum(axis=1, keepdims=True), 1 - 1e-6)
    residuals = ((response - design @ phi) / (1 - leverage))[complete:]
    variance = (lever[complete:] ** 2).T @ residuals**2
    return gain / d + phi, student_factor(max(1, n - d + 1)) * np.sqrt(variance)
