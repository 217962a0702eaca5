"""KernelSHAP: Shapley values as a weighted regression."""

from __future__ import annotations

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
"""Twice the weight of the ridge, in units of the equations' mean eigenvalue, with as many as features."""

MOST_FEATURES = 3000
"""Largest number of features for which the regression is solved in seconds."""


@dataclass(frozen=True, eq=False)
class Coalitions:
    """Masks, one of each pair of a mask and its complement, and the weight of each pair.

    The first `complete` pairs cover their sizes completely; the others are a sample.
    """

    pairs: Masks
    weight: Floats
    complete: int

    def first(self, n: int) -> Coalitions:
        """The first n pairs; the sampled ones among them get the total weight of all sampled pairs."""
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

    Sizes are enumerated completely as far as the budget allows, smallest and largest first; the rest
    is sampled in pairs of a mask and its complement. With all coalitions the result is the Shapley
    value.

    Parameters
    ----------
    samples
        Number of masks besides the empty and the full one; by default the rest of the budget.
    """

    paper = "Lundberg & Lee 2017, Thm. 2; paired sampling: Covert & Lee 2021"
    traits = Traits(evaluations_per_feature=2, all_classes=True, adds_up=True, standard_errors=True)
    summary = "Shapley values by weighted regression"
    samples: Annotated[int, Range(at_least=2)] | None = None

    def evaluations(self, n_features: int) -> int | None:
        """The samples, the empty mask and the full mask."""
        return None if self.samples is None else min(self.samples + 2, 2**n_features)

    def min_budget(self, n_features: int) -> int:
        """The empty mask, the full mask, and d − 1 pairs: a mask and its complement give one equation."""
        if n_features > MOST_FEATURES:
            raise BudgetError(
                f"kernel-shap takes at most {MOST_FEATURES:,} features, because it solves a system of as "
                f"many equations, but the input has {n_features:,}. Use shapley-sampling or coarser features."
            )
        return self.evaluations(n_features) or 2 * n_features

    def explain(self, task: Task) -> Steps:
        """Ask for the coalitions and solve the regression."""
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
    """Return the regression on the values of masks and complements (2, pairs, columns)."""
    return solve(coalitions, values.reshape(-1, values.shape[2]) - ends[0], ends[1] - ends[0])


def _finish(
    task: Task,
    coalitions: Coalitions,
    values: Floats,
    ends: Floats,
    solved: tuple[Floats, Floats] | None = None,
) -> Finding:
    """Return the finding of a regression, which is exact if no coalitions were sampled."""
    scores, errors = solved or _solve(coalitions, values, ends)
    found = Finding(scores.T, errors.T, base_values=ends[0])
    n, d = coalitions.pairs.shape
    if n == coalitions.complete:
        return found
    answers = np.concatenate([ends, values.reshape(-1, values.shape[2])])
    return limit_errors(task, found, answers, may_fit_by_chance(answers, n - d + 1))


def _inverse(gram: Floats) -> Floats:
    """The pseudo-inverse of a matrix whose rows sum to zero.

    Where nothing else is in its null space, adding a constant makes it regular, and a Cholesky
    factorisation will do, which is an order of magnitude faster.
    """
    d = len(gram)
    constant = np.full((d, d), 1.0 / d)
    scale = gram.trace() / d
    try:
        root = np.linalg.cholesky(gram + scale * constant)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(gram, rcond=1e-12, hermitian=True))
    if root.diagonal().min() ** 2 < 1e-10 * scale:
        return np.asarray(np.linalg.pinv(gram, rcond=1e-12, hermitian=True))
    return np.asarray(np.linalg.inv(gram + scale * constant) - constant / scale)


@lru_cache(maxsize=64)
def coalitions(d: int, n_pairs: int, seed: int) -> Coalitions:
    """`draw_coalitions`, made once for all inputs of the same size."""
    drawn = draw_coalitions(d, n_pairs, np.random.default_rng(seed))
    drawn.pairs.flags.writeable = False
    return drawn


def draw_coalitions(d: int, n_pairs: int, rng: np.random.Generator) -> Coalitions:
    """Pairs of a mask and its complement, at most `n_pairs`, weighted by the Shapley kernel."""
    sizes = np.arange(1, d // 2 + 1)
    weight = np.array([(d - 1) / (s * (d - s)) * (2 if 2 * s != d else 1) for s in sizes])
    weight /= weight.sum()
    counts = [n_pairs_of(d, s) for s in sizes.tolist()]
    masks: list[Masks] = []
    weights: list[Floats] = []
    covered = 0
    for size, share, count in zip(sizes.tolist(), weight, counts, strict=True):
        rest = n_pairs - sum(map(len, masks))
        if count > rest or rest * share / weight[covered:].sum() < count * (1 - 1e-9):
            break
        masks.append(all_pairs(d, size))
        weights.append(np.full(count, share / count))
        covered += 1
    complete = sum(map(len, masks))
    if covered < len(sizes) and n_pairs > complete:
        sampled, times = _sample_pairs(d, sizes[covered:], weight[covered:], n_pairs - complete, rng)
        masks.append(sampled)
        weights.append(weight[covered:].sum() * times / times.sum())
    return Coalitions(np.concatenate(masks), np.concatenate(weights), complete)


def n_pairs_of(d: int, size: int) -> int:
    """Number of subsets of one size, counting only one of each pair of complements."""
    return comb(d, size) // (2 if 2 * size == d else 1)


def all_pairs(d: int, size: int) -> Masks:
    """All subsets of one size, but only one of each pair of complements."""
    return as_masks(islice(combinations(range(d), size), n_pairs_of(d, size)), d)


def _sample_pairs(
    d: int, sizes: Ints, weight: Floats, n: int, rng: np.random.Generator
) -> tuple[Masks, Floats]:
    """Up to `n` distinct pairs, and the number of times each was drawn."""
    seen: dict[bytes, int] = {}
    masks: list[Masks] = []
    times: list[int] = []
    for _ in range(5):
        size = rng.choice(sizes, size=n, p=weight / weight.sum())
        drawn = np.argsort(rng.random((n, d)), axis=1).argsort(axis=1) < size[:, None]
        drawn ^= drawn[:, :1] & (2 * size == d)[:, None]
        for key, mask in zip(mask_bytes(drawn), drawn, strict=True):
            if key in seen:
                times[seen[key]] += 1
            elif len(seen) < n:
                seen[key] = len(seen)
                masks.append(mask)
                times.append(1)
            else:  # more draws would only count known pairs, and favour small sizes
                return np.array(masks), np.array(times, dtype=np.float64)
    return np.array(masks), np.array(times, dtype=np.float64)


def solve(found: Coalitions, values: Floats, gain: Floats) -> tuple[Floats, Floats]:
    """The constrained regression, (features, classes), and the standard errors from the sampled pairs.

    The constraint is met by sharing the gain equally and fitting the residual with scores that sum to
    zero; if there are several solutions, the one of smallest norm is used, which favours no feature. A mask
    and its complement are one equation, of half the difference of their values. With fewer than 1.5 d
    equations a small ridge keeps the error bounded, unless d or more are solved exactly. Standard errors are
    those of the jackknife (HC3): each residual is that of the fit without its pair.
    """
    n, d = found.pairs.shape
    share = found.pairs.mean(axis=1, keepdims=True)
    design = found.pairs - share
    response = (values[:n] - values[n:]) / 2 - (share - 0.5) * gain
    weighted = design * found.weight[:, None]
    gram = design.T @ weighted
    lever = weighted @ _inverse(gram)
    rest = lever.T @ response
    exact = n >= d and bool(np.abs(response - design @ rest).max() <= 1e-6 * np.abs(response).max())
    if found.complete < n < 1.5 * d and not exact:
        gram += RIDGE * (1.5 * d / n - 1) * gram.trace() / (d - 1) * (np.eye(d) - 1 / d)
        lever = weighted @ _inverse(gram)
        rest = lever.T @ response
    if found.complete < n < d:  # an exact fit says nothing about the error
        return gain / d + rest, np.full_like(rest, np.nan)
    own = np.minimum((lever * design).sum(axis=1, keepdims=True), 1 - 1e-6)
    without = ((response - design @ rest) / (1 - own))[found.complete :]
    variance = (lever[found.complete :] ** 2).T @ without**2
    return gain / d + rest, student_factor(max(1, n - d + 1)) * np.sqrt(variance)
