"""Samples for anchors, shared by all sets they are valid for, and bounds on the precision of each set."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import Asking, Values
from pertinent.explainers.base import Task
from pertinent.masks import mask_bytes

BISECTIONS = 32
TINY = 1e-12


class Arms:
    """Sets of one size, the number of samples of each, and the number in which the target was predicted."""

    def __init__(self, masks: Masks, n: Floats | None = None, hits: Floats | None = None) -> None:
        self.masks = masks
        self.n = np.zeros(len(masks)) if n is None else n
        self.hits = np.zeros(len(masks)) if hits is None else hits

    @property
    def means(self) -> Floats:
        """The estimated precision; 0 without samples."""
        return self.hits / np.maximum(self.n, 1)

    def add(self, which: Ints, hits: Masks) -> None:
        """Count one sample for each arm in `which`."""
        np.add.at(self.n, which, 1)
        np.add.at(self.hits, which, hits)


class Samples:
    """All samples drawn, the set each was drawn for, and the remaining budget."""

    def __init__(self, task: Task, keep: float, rng: np.random.Generator) -> None:
        self.d = task.n_features
        self.left = task.budget
        self.task, self._keep, self._rng = task, keep, rng
        self._known: dict[bytes, bool] = {}
        self._drawn: list[tuple[Masks, Masks, Masks]] = []
        self.allow(1)

    def allow(self, share: float) -> None:
        """Let the next draws spend this share of the remaining budget.

        Known masks cost nothing, so the number of samples is also limited to the budget.
        """
        self._reserve = self.left - ceil(share * self.left)
        self._draws = self.task.budget

    def draw(self, arms: Arms, which: Ints) -> Asking[int]:
        """Draw a sample for each arm in `which`, as far as the budget allows; return their number."""
        task, which = self.task, which[: self._draws]
        drawn_for = arms.masks[which]
        masks = drawn_for | (self._rng.random(drawn_for.shape) < self._keep)
        keys = mask_bytes(masks)
        new: dict[bytes, int] = {}
        n = len(keys)
        for row, key in enumerate(keys):
            if key in self._known or key in new:
                continue
            if len(new) == self.left - self._reserve:
                n = row
                break
            new[key] = row
        if new:
            values = yield Values(masks[list(new.values())])
            same = task.output.same_decision(values, task.prediction, task.target)
            self._known.update(zip(new, same.tolist(), strict=True))
        hits = np.array([self._known[key] for key in keys[:n]], dtype=np.bool_)
        arms.add(which[:n], hits)
        self.left -= len(new)
        self._draws -= n
        self._drawn.append((masks[:n], drawn_for[:n], hits))
        return n

    def all(self) -> tuple[Masks, Masks, Masks]:
        """What each sample keeps, the set it was drawn for, and whether the target was predicted."""
        kept, drawn_for, hits = map(np.concatenate, zip(*self._drawn, strict=True))
        return kept, drawn_for, hits

    def candidates(self, parents: Iterable[Masks]) -> Arms:
        """Each parent plus one feature, with the existing samples that are valid for that set."""
        kept, drawn_for, predicted = self.all()
        arms: dict[bytes, tuple[Masks, int, int]] = {}
        for parent in parents:
            inside = (kept | ~parent).all(axis=1)
            beyond = drawn_for & ~parent
            # A sample drawn for a subset of the parent counts for every feature it keeps; one drawn
            # for a set with one feature outside the parent, for that feature; with more, for none.
            extra = beyond.sum(axis=1)
            serves = np.where((extra == 0)[:, None], kept, beyond) & (inside & (extra < 2))[:, None]
            n, hits = serves.sum(axis=0), serves[predicted].sum(axis=0)
            for feature in np.flatnonzero(~parent):
                mask = parent.copy()
                mask[feature] = True
                arms.setdefault(mask.tobytes(), (mask, n[feature], hits[feature]))
        masks, counts, positives = zip(*arms.values(), strict=True)
        return Arms(np.array(masks), np.array(counts, dtype=float), np.array(positives, dtype=float))


def exploration(rounds: int, arms: int, delta: float) -> float:
    """β(t, δ) of KL-LUCB with α = 1.1 and k₁ = 405.5 (Kaufmann & Kalyanakrishnan 2013, Thm. 2)."""
    first = log(405.5 * arms * rounds**1.1 / delta)
    return first + log(first)


def upper_bounds(means: Floats, n: Floats, level: float) -> Floats:
    """For each mean p of n draws, the largest q with n · KL(p ‖ q) ≤ level; 1 where n is 0."""
    p = np.clip(means, TINY, 1 - TINY)
    # KL(p ‖ q) = p log p + (1 − p) log(1 − p) − p log q − (1 − p) log(1 − q); the first two are constant.
    most = level - n * (p * np.log(p) + (1 - p) * np.log1p(-p))
    in_p, in_rest = -n * p, -n * (1 - p)
    low, high = p, np.ones_like(p)
    for _ in range(BISECTIONS):
        q = np.minimum((low + high) / 2, 1 - TINY)
        inside = in_p * np.log(q) + in_rest * np.log1p(-q) <= most
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return high


def lower_bounds(means: Floats, n: Floats, level: float) -> Floats:
    """For each mean p of n draws, the smallest q with n · KL(p ‖ q) ≤ level; 0 where n is 0."""
    return 1 - upper_bounds(1 - means, n, level)
