"""Anchors: small feature sets that, when kept, nearly always lead to the same prediction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, log
from typing import Annotated, Any

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import Asking, Values
from pertinent.config.settings import Count, ProperShare, Range, Share
from pertinent.errors import require
from pertinent.explainers.base import Finding, Steps, Task, explainers, n_kept
from pertinent.explainers.search.base import SeparateSearches
from pertinent.masks import mask_bytes

START = 100
"""Number of initial samples of the empty anchor; other anchors inherit the samples that contain them."""

SHARE = 0.25
"""Largest share of the remaining budget for one size, so a close race leaves some for larger sizes."""

BISECTIONS = 32
TINY = 1e-12


@explainers.register("anchors")
@dataclass(frozen=True)
class Anchors(SeparateSearches):
    """Ribeiro et al.'s Anchors: a beam search over feature sets that selects each beam by a KL-LUCB bandit.

    A sample keeps the anchor A, and every other feature with probability `keep`; prec(A) is the probability
    that the model then predicts the target. The goal is the anchor with prec(A) ≥ `threshold` and the largest
    coverage, the probability that a sample contains A. Since features are kept independently, the coverage is
    keep^|A|: the smallest anchor has the largest coverage, and precision breaks ties.

    1. *Candidates*: every set of the beam plus one feature, starting with the empty set.
    2. *KL-LUCB* (Kaufmann & Kalyanakrishnan 2013): sample the weakest of the `beam` best and its strongest
       rival until they are `epsilon` apart.
    3. Sample the sets whose mean reaches `threshold` until the lower bound of their precision reaches
       `threshold` − `tolerance`. Return the most precise set that passes; if none does, repeat from 1.

    If no set passes before the budget or the size limit is reached, the answer is the set with the highest
    lower bound in any beam, and `details` record that the threshold was not reached.

    Because the other features are independent, a sample of A that contains B ⊇ A is also a sample of B, so
    most candidates start with samples. No mask is evaluated twice. A run for at most k features is a prefix
    of a run for more, so one run with one budget serves all sparsities, and `spread` has no effect. Anchors
    are the same for both objectives, as in Hase et al. 2021.

    Parameters
    ----------
    threshold
        Required precision.
    delta
        Error probability of bounds and choices.
    epsilon
        Largest precision gap between the selected beam and the best one.
    tolerance
        Largest amount by which the lower bound may fall below the threshold.
    beam
        Number of sets of each size to extend.
    batch
        Number of samples drawn together for a set.
    keep
        Probability of keeping a feature outside the anchor.
    fill
        Extend a smaller anchor to k features by adding those with the highest individual precision, to make
        it comparable to other methods; ``False`` chooses only the anchor.
    """

    paper = "Ribeiro, Singh & Guestrin 2018, Alg. 2; Hase et al. 2021, Sec. 6.1 (2)"
    traits = replace(SeparateSearches.traits, needs_decision=True)
    summary = "the smallest set that nearly always leads to the same prediction"
    threshold: Share = 0.95
    delta: ProperShare = 0.05
    epsilon: ProperShare = 0.1
    tolerance: Annotated[float, Range(at_least=0, below=1)] = 0.05
    beam: Count = 4
    batch: Count = 10
    keep: ProperShare = 0.5
    fill: bool = True

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        require(not self.trajectory, "trajectory", "False for anchors, which never evaluate the set", True)

    @property
    def budget_per_sparsity(self) -> bool:
        """Return ``False``: one run provides the anchors of all sparsities."""
        return False

    def explain(self, task: Task) -> Steps:
        """Run once for the largest sparsity and extract the anchor for each sparsity."""
        samples = Samples(task, self.keep, task.rng)
        beams = yield from self._beams(samples, max(n_kept(s, task.n_features) for s in task.sparsities))
        return self._finding(samples, beams)

    def _finding(self, samples: Samples, beams: list[list[_Anchor]]) -> Finding:
        """Return the best anchor for each sparsity."""
        sizes = {s: n_kept(s, samples.d) for s in samples.task.sparsities}
        best = {k: _best(beams[: k + 1]) for k in sizes.values()}
        anchors = [{"sparsity": s, **self._describe(best[k])} for s, k in sizes.items()]
        chosen = {s: self._fill(best[k], k, samples) for s, k in sizes.items()}
        return Finding(chosen=chosen, details={**self._describe(best[max(best)]), "anchors": anchors})

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Return the anchor of at most k features, by a separate run."""
        samples = Samples(task, self.keep, rng)
        beams = yield from self._beams(samples, k)
        return self._fill(_best(beams), k, samples)

    def _beams(self, samples: Samples, k: int) -> Asking[list[list[_Anchor]]]:
        """Return the best anchors of each size until one passes, the size is k or the budget is spent."""
        arms = Arms(np.zeros((1, samples.d), dtype=np.bool_))
        samples.allow(SHARE)
        yield from samples.draw(arms, np.zeros(START, dtype=np.int64))
        beams: list[list[_Anchor]] = []
        for size in range(k + 1):
            if size:
                arms = samples.candidates(anchor.mask for anchor in beams[-1])
            samples.allow(SHARE)
            chosen = yield from self._top(samples, arms)
            samples.allow(1)
            beams.append((yield from self._judge(samples, arms, chosen)))
            if any(anchor.passes for anchor in beams[-1]) or (size and not samples.left):
                break
            if 0 < size < k:
                yield from samples.task.publish(lambda: self._finding(samples, beams))
        return beams

    def _top(self, samples: Samples, arms: Arms) -> Asking[Ints]:
        """Return the `beam` arms with the highest means, by KL-LUCB."""
        yield from samples.draw(arms, np.flatnonzero(arms.n == 0))
        rounds = 1
        while True:
            order = np.argsort(-arms.means, kind="stable")
            inside, outside = order[: self.beam], order[self.beam :]
            if not len(outside):
                return inside
            level = exploration(rounds, len(order), self.delta)
            low = lower_bounds(arms.means[inside], arms.n[inside], level)
            high = upper_bounds(arms.means[outside], arms.n[outside], level)
            if high.max() - low.min() <= self.epsilon:
                return inside
            pair = np.array([inside[low.argmin()], outside[high.argmax()]])
            if not (yield from samples.draw(arms, np.tile(pair, self.batch))):
                return inside
            rounds += 1

    def _judge(self, samples: Samples, arms: Arms, chosen: Ints) -> Asking[list[_Anchor]]:
        """Sample the chosen arms that could pass until their results are clear."""
        level = log((1 + (self.beam - 1) * samples.d) / self.delta)
        while True:
            mean, n = arms.means[chosen], arms.n[chosen]
            low, high = lower_bounds(mean, n, level), upper_bounds(mean, n, level)
            reached, sure = mean >= self.threshold, low >= self.threshold - self.tolerance
            unsure = chosen[reached & ~sure]
            if not len(unsure) or not (yield from samples.draw(arms, np.tile(unsure, self.batch))):
                break
        columns = (column.tolist() for column in (n.astype(int), mean, low, high, reached & sure))
        return [_Anchor(*row) for row in zip(arms.masks[chosen], *columns, strict=True)]

    def _fill(self, anchor: _Anchor, k: int, samples: Samples) -> Masks:
        mask = anchor.mask.copy()
        if self.fill:
            single = samples.candidates([np.zeros_like(mask)]).means
            mask[np.argsort(np.where(mask, -np.inf, -single), kind="stable")[:k]] = True
        return mask

    def _describe(self, anchor: _Anchor) -> dict[str, Any]:
        size = int(anchor.mask.sum())
        return {
            "anchor": np.flatnonzero(anchor.mask).tolist(),
            "anchor size": size,
            "precision": anchor.mean if anchor.n else None,
            "precision low": anchor.low,
            "precision high": anchor.high,
            "coverage": self.keep**size,
            "samples": anchor.n,
            "threshold reached": anchor.passes,
        }


@dataclass(frozen=True)
class _Anchor:
    """A set in a beam: number of samples, their mean, its bounds, and whether it passes."""

    mask: Masks
    n: int
    mean: float
    low: float
    high: float
    passes: bool


def _best(beams: list[list[_Anchor]]) -> _Anchor:
    """Return the most precise anchor that passes; if none does, the one with the best lower bound."""
    passing = [anchor for beam in beams for anchor in beam if anchor.passes]
    if passing:
        return max(passing, key=lambda a: (a.mean, a.low))
    return max((anchor for beam in beams[1:] for anchor in beam), key=lambda a: (a.low, a.mean))


class Arms:
    """Feature sets of one size, with the number of samples and of target predictions of each."""

    def __init__(self, masks: Masks, n: Floats | None = None, hits: Floats | None = None) -> None:
        self.masks = masks
        self.n = np.zeros(len(masks)) if n is None else n
        self.hits = np.zeros(len(masks)) if hits is None else hits

    @property
    def means(self) -> Floats:
        """Return the estimated precisions; 0 without samples."""
        return self.hits / np.maximum(self.n, 1)

    def add(self, arms: Ints, hits: Masks) -> None:
        """Count one sample for each arm in `arms`."""
        np.add.at(self.n, arms, 1)
        np.add.at(self.hits, arms, hits)


class Samples:
    """All samples drawn so far, the set that each was drawn for, and the remaining budget."""

    def __init__(self, task: Task, keep: float, rng: np.random.Generator) -> None:
        self.d = task.n_features
        self.left = task.budget
        self.task, self._keep, self._rng = task, keep, rng
        self._predicted: dict[bytes, bool] = {}
        self._drawn: list[tuple[Masks, Masks, Masks]] = []
        self.allow(1)

    def allow(self, share: float) -> None:
        """Limit the next draws to this share of the remaining budget.

        Previously evaluated masks cost nothing, so the number of samples is also limited to the budget.
        """
        self._reserve = self.left - ceil(share * self.left)
        self._draws = self.task.budget

    def draw(self, arms: Arms, which: Ints) -> Asking[int]:
        """Draw a sample for each arm in `which` while the budget lasts, and return the number of samples."""
        task, which = self.task, which[: self._draws]
        drawn_for = arms.masks[which]
        masks = drawn_for | (self._rng.random(drawn_for.shape) < self._keep)
        keys = mask_bytes(masks)
        new: dict[bytes, int] = {}
        n = len(keys)
        for row, key in enumerate(keys):
            if key in self._predicted or key in new:
                continue
            if len(new) == self.left - self._reserve:
                n = row
                break
            new[key] = row
        if new:
            values = yield Values(masks[list(new.values())])
            same = task.output.same_decision(values, task.prediction, task.target)
            self._predicted.update(zip(new, same.tolist(), strict=True))
        hits = np.array([self._predicted[key] for key in keys[:n]], dtype=np.bool_)
        arms.add(which[:n], hits)
        self.left -= len(new)
        self._draws -= n
        self._drawn.append((masks[:n], drawn_for[:n], hits))
        return n

    def all(self) -> tuple[Masks, Masks, Masks]:
        """Return each sample's kept features, the set it was drawn for, and whether it was a hit."""
        kept, drawn_for, hits = map(np.concatenate, zip(*self._drawn, strict=True))
        return kept, drawn_for, hits

    def candidates(self, parents: Iterable[Masks]) -> Arms:
        """Return each parent plus one feature, with the existing samples that are valid for that set."""
        kept, drawn_for, predicted = self.all()
        arms: dict[bytes, tuple[Masks, int, int]] = {}
        for parent in parents:
            inside = (kept | ~parent).all(axis=1)
            beyond = drawn_for & ~parent
            # A sample drawn for a subset of the parent is valid for every feature it keeps. A sample drawn
            # for a set with one feature outside the parent is valid for that feature; with more, for no
            # candidate.
            extra = beyond.sum(axis=1)
            valid = np.where((extra == 0)[:, None], kept, beyond) & (inside & (extra < 2))[:, None]
            n, hits = valid.sum(axis=0), valid[predicted].sum(axis=0)
            for feature in np.flatnonzero(~parent):
                mask = parent.copy()
                mask[feature] = True
                arms.setdefault(mask.tobytes(), (mask, n[feature], hits[feature]))
        masks, counts, positives = zip(*arms.values(), strict=True)
        return Arms(np.array(masks), np.array(counts, dtype=float), np.array(positives, dtype=float))


def exploration(rounds: int, arms: int, delta: float) -> float:
    """Return β(t, δ) of KL-LUCB with α = 1.1 and k₁ = 405.5 (Kaufmann & Kalyanakrishnan 2013, Thm. 2)."""
    first = log(405.5 * arms * rounds**1.1 / delta)
    return first + log(first)


def upper_bounds(means: Floats, n: Floats, level: float) -> Floats:
    """Return, for each mean p of n draws, the largest q with n · KL(p ‖ q) ≤ level; 1 where n is 0."""
    p = np.clip(means, TINY, 1 - TINY)
    # KL(p ‖ q) = p log p + (1 − p) log(1 − p) − p log q − (1 − p) log(1 − q); the first two terms are
    # constant.
    most = level - n * (p * np.log(p) + (1 - p) * np.log1p(-p))
    in_p, in_rest = -n * p, -n * (1 - p)
    low, high = p, np.ones_like(p)
    for _ in range(BISECTIONS):
        q = np.minimum((low + high) / 2, 1 - TINY)
        inside = in_p * np.log(q) + in_rest * np.log1p(-q) <= most
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return high


def lower_bounds(means: Floats, n: Floats, level: float) -> Floats:
    """Return, for each mean p of n draws, the smallest q with n · KL(p ‖ q) ≤ level; 0 where n is 0."""
    return 1 - upper_bounds(1 - means, n, level)
